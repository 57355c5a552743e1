//! What a running script may call: commands, under the locks that it holds. Knows Redis's rules for commands in
//! scripts; refuses to know Lua.

use crate::error::CommandError;
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Flags, Locks, registry};
use crate::execution::engine::Engine;
use crate::execution::execute::count_rejected;
use crate::execution::scripts::{GIVEN_UP_NS, Program};
use crate::execution::worker::Worker;
use keyspace::Locked;
use lua::Tick;
use resp::{OwnedRequest, Protocol, Reply};
use std::sync::atomic::Ordering::Relaxed;

/// Where a script runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Where its client is served: it is bounded, or part of something larger.
    Client,
    /// Likewise, though it is not bounded: it has been quick until now.
    Trial,
    /// Where SCRIPT KILL can stop it.
    ScriptThread,
}

/// The server as one run of a script sees it.
pub(super) struct ScriptHost<'a> {
    pub(super) engine: &'a Engine,
    pub(super) worker: &'a mut Worker,
    pub(super) client: &'a mut Client,
    pub(super) locked: Locked<'a>,
    pub(super) program: &'a Program,
    /// Everything is locked: the script may touch any key.
    pub(super) has_all: bool,
    /// In an interactive transaction: the keys that it has declared, which are all that the transaction has for it.
    pub(super) keys: Option<&'a [&'a [u8]]>,
    pub(super) read_only: bool,
    /// It may use memory beyond the limit.
    pub(super) allow_oom: bool,
    pub(super) place: Place,
    pub(super) has_written: bool,
    /// It has done nothing yet but read.
    pub(super) can_begin_again: bool,
    /// It is to run on the script thread instead.
    pub(super) is_given_up: bool,
    /// Others are told that a script runs for long.
    pub(super) has_made_busy: bool,
    pub(super) began_ns: u64,
    pub(super) request: OwnedRequest,
    /// The last error that one of its commands has answered with. It is counted where that happened, and not once more when it
    /// is the script's own answer.
    pub(super) counted_error: Vec<u8>,
}

impl lua::Host for ScriptHost<'_> {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        self.request.clear();
        args.iter().for_each(|arg| self.request.push(arg));
        let request = std::mem::take(&mut self.request);
        let protocol = self.client.protocol;
        let reply_at = reply.len();
        if self.give_up_if_long(self.worker.last_ns) {
            Reply::new(reply, protocol).error("ERR the script begins again");
            self.request = request;
            return;
        }
        let outcome = self.find(args).and_then(|row| self.check(row, &request).map(|()| row));
        match outcome {
            Err(error) => {
                let text = error.to_string();
                count_rejected(self.worker, request.as_request());
                self.worker.books.stats.count_error(&text);
                Reply::new(reply, protocol).error(&text);
            }
            Ok(row) => {
                self.can_begin_again &= row.command.flags.has(Flags::READONLY);
                if row.command.flags.has(Flags::WRITE)
                    && !std::mem::replace(&mut self.has_written, true)
                    && self.place == Place::ScriptThread
                {
                    self.engine.script_thread.note_written();
                }
                let mut writer = Reply::new(reply, protocol);
                let request = request.as_request();
                self.engine.execute_under(self.worker, self.client, row, request, &mut writer, &mut self.locked);
            }
        }
        if reply.get(reply_at) == Some(&b'-') {
            self.counted_error = reply[reply_at..].trim_ascii_end().to_vec();
        }
        self.request = request;
    }

    fn log(&mut self, level: i64, message: &[u8]) {
        self.can_begin_again = false;
        if level >= self.engine.settings.loglevel() as i64 {
            self.engine.host.log(&String::from_utf8_lossy(message));
        }
    }

    fn set_resp(&mut self, version: u8) {
        self.client.protocol = if version == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
    }

    fn acl_check(&mut self, args: &[&[u8]]) -> Result<bool, String> {
        // There is one user, and it may do everything.
        match self.find(args) {
            Ok(_) => Ok(true),
            Err(_) => Err("Invalid command passed to redis.acl_check_cmd()".into()),
        }
    }

    // All changes of a script are recorded, whatever it asks for: there are no replicas that could do without them.
    fn set_repl(&mut self, _: i64) {}

    fn tick(&mut self) -> Tick {
        let now_ns = self.engine.clock.monotonic_ns();
        let took_ms = now_ns.saturating_sub(self.began_ns) / 1_000_000;
        let limit_ms = self.engine.settings.busy_reply_threshold();
        if self.give_up_if_long(now_ns) {
            return Tick::Kill("the script begins again".into());
        }
        if self.place == Place::ScriptThread && self.engine.script_thread.is_to_be_killed() {
            return Tick::Kill("Script killed by user with SCRIPT KILL...".into());
        }
        if self.place != Place::Client {
            if took_ms > limit_ms {
                self.engine.set_busy(true);
                if !std::mem::replace(&mut self.has_made_busy, true) && self.place == Place::Trial {
                    self.engine.script_thread.begin_elsewhere();
                }
            }
            return Tick::Continue;
        }
        // Outside the script thread it cannot be killed, and it blocks the worker's other clients.
        if took_ms > limit_ms.max(1) {
            self.worker.batch.script_was_cut_short = true;
            return Tick::Kill(format!(
                "a script inside a transaction ran for more than {limit_ms} ms \
                 (busy-reply-threshold)"
            ));
        }
        Tick::Continue
    }
}

impl ScriptHost<'_> {
    /// Gives the script up if it takes long on trial and has done nothing yet but read. From then on it can do nothing.
    fn give_up_if_long(&mut self, now_ns: u64) -> bool {
        let is_long = || now_ns.saturating_sub(self.began_ns) > GIVEN_UP_NS;
        self.is_given_up |= self.place == Place::Trial && self.can_begin_again && is_long();
        self.is_given_up
    }

    fn find(&self, args: &[&[u8]]) -> Result<&'static CommandRow, CommandError> {
        let unknown = CommandError::fixed("ERR Unknown Redis command called from script");
        let Some(row) = registry().find(args[0]) else { return Err(unknown) };
        let row = match row.subcommands.is_empty() || args.len() < 2 {
            true => row,
            false => row.subcommand(args[1]).ok_or(unknown)?,
        };
        match row.accepts(args.len()) {
            true => Ok(row),
            false => Err(CommandError::fixed("ERR Wrong number of args calling Redis command from script")),
        }
    }

    /// Whether a script may call this command, here and now.
    fn check(&mut self, row: &'static CommandRow, request: &OwnedRequest) -> Result<(), CommandError> {
        let flags = row.command.flags;
        if flags.has(Flags::NOSCRIPT) && !self.engine.scripts_call_anything.load(Relaxed) {
            return Err(CommandError::fixed("ERR This Redis command is not allowed from script"));
        }
        if (flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE)) && self.read_only {
            return Err(CommandError::fixed("ERR Write commands are not allowed from read-only scripts."));
        }
        if flags.has(Flags::DENYOOM) && !self.allow_oom && !self.has_written {
            let only_removes = || row.only_removes(request.as_request());
            self.engine.pass_memory_limit().or_else(|error| if only_removes() { Ok(()) } else { Err(error) })?;
        }
        if flags.has(Flags::WRITE) {
            self.engine.pass_write_restrictions()?;
            if !self.has_written {
                self.engine.pass_replicas()?;
            }
        }
        if let Some(declared) = self.keys {
            return self.check_in_transaction(row, request, declared);
        }
        let held = self.has_all || row.keys(request.as_request()).all(|key| self.locked.holds(key));
        let locks = row.locks(request.as_request());
        let walks = matches!(locks, Locks::Everything | Locks::Walk);
        let runs_others = locks == Locks::Declared;
        if !held || walks && !self.has_all || runs_others {
            return Err(self.undeclared());
        }
        Ok(())
    }

    /// Whether a script may call this command in an interactive transaction.
    fn check_in_transaction(
        &mut self,
        row: &'static CommandRow,
        request: &OwnedRequest,
        declared: &[&[u8]],
    ) -> Result<(), CommandError> {
        let request = request.as_request();
        self.engine.pass_transaction_rules(row, request)?;
        if row.command.keys.locks == Locks::Declared || !row.keys(request).all(|key| declared.contains(&key.name)) {
            self.worker.batch.touched_undeclared_key = true;
            return Err(self.undeclared());
        }
        Ok(())
    }

    fn undeclared(&self) -> CommandError {
        let name = String::from_utf8_lossy(self.program.name()).into_owned();
        CommandError::said(format!("ERR script {name} touched a key that it did not declare"))
    }
}
