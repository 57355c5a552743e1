//! The host of a running script: calls commands under the locks that the script holds. Knows Redis's rules for commands
//! in scripts; refuses to know Lua.

use crate::acl::Context;
use crate::call::Call;
use crate::client::Client;
use crate::command::{CommandRow, Flags, Locks, registry};
use crate::conditions;
use crate::dispatch;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::gates;
use crate::interactive;
use crate::metrics::count_rejected;
use crate::scripts;
use crate::scripts::{LONG_NS, LongScript, Program};
use crate::worker::Worker;
use keyspace::Locked;
use lua::Tick;
use resp::{OwnedRequest, Protocol, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The server as seen by one run of a script.
pub(super) struct ScriptHost<'a> {
    pub(super) engine: &'a Engine,
    pub(super) worker: &'a mut Worker,
    pub(super) client: &'a mut Client,
    pub(super) locked: Locked<'a>,
    pub(super) program: &'a Program,
    /// Everything is locked: the script may touch any key.
    pub(super) has_all: bool,
    /// In an interactive transaction: the keys that it has declared. The transaction has no others for it.
    pub(super) keys: Option<&'a [&'a [u8]]>,
    pub(super) read_only: bool,
    /// It may use memory beyond the limit.
    pub(super) allow_oom: bool,
    /// The command that runs it and the script's name there, its keys and its arguments.
    pub(super) command: [&'a [u8]; 2],
    pub(super) arguments: [&'a [&'a [u8]]; 2],
    /// It may become long: it runs on a fiber, or its thread serves no clients.
    pub(super) may_be_long: bool,
    /// Set when it has become long.
    pub(super) long: Option<Arc<LongScript>>,
    pub(super) has_written: bool,
    pub(super) began_ns: u64,
    pub(super) request: OwnedRequest,
    /// The last error reply of one of its commands. It was counted there, and is not counted again when the script
    /// returns it.
    pub(super) counted_error: Vec<u8>,
}

impl lua::Host for ScriptHost<'_> {
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>) {
        self.request.clear();
        args.iter().for_each(|arg| self.request.push(arg));
        let request = std::mem::take(&mut self.request);
        let protocol = self.client.protocol;
        let reply_at = reply.len();
        if self.may_be_long && self.worker.last_ns.saturating_sub(self.began_ns) > LONG_NS {
            // Between two commands as well as in `tick`: a script that only calls commands may execute few instructions
            // of Lua.
            self.look_at_time();
        }
        let outcome = self.find(args).and_then(|row| self.check(row, &request).map(|()| row));
        match outcome {
            Err(error) => {
                let text = error.to_string();
                self.client.tally.operations += 1;
                count_rejected(self.worker, request.as_request());
                self.worker.metrics.stats.count_error(&text);
                Reply::new(reply, protocol).error(&text);
            }
            Ok(row) => {
                if row.flags_of(request.as_request()).has(Flags::WRITE) {
                    self.has_written = true;
                    self.worker.batch.script_has_written = true;
                }
                let mut writer = Reply::new(reply, protocol);
                let request = request.as_request();
                let call = Call::new(self.worker, self.client, row, request).find_only_key();
                dispatch::execute_on(self.engine, call, &mut writer, &mut self.locked);
            }
        }
        if reply.get(reply_at) == Some(&b'-') {
            self.counted_error = reply[reply_at..].trim_ascii_end().to_vec();
        }
        self.request = request;
    }

    fn log(&mut self, level: i64, message: &[u8]) {
        let text = || String::from_utf8_lossy(message);
        // Redis's log levels, as the server log names them.
        match level {
            ..=0 => tracing::trace!("{}", text()),
            1 => tracing::debug!("{}", text()),
            2 => tracing::info!("{}", text()),
            3.. => tracing::warn!("{}", text()),
        }
    }

    fn set_resp(&mut self, version: u8) {
        self.client.protocol = if version == 3 { Protocol::Resp3 } else { Protocol::Resp2 };
    }

    fn acl_check(&mut self, args: &[&[u8]]) -> Result<bool, String> {
        let request: OwnedRequest = args.iter().copied().collect();
        match self.find(args) {
            Ok(row) => Ok(gates::pass_user(self.engine, self.client, row, request.as_request()).is_ok()),
            Err(_) => Err("Invalid command passed to redis.acl_check_cmd()".into()),
        }
    }

    // All changes of a script are recorded, whatever it sets here: there are no replicas that could do without them.
    fn set_repl(&mut self, _: i64) {}

    fn tick(&mut self) -> Tick {
        if !self.may_be_long {
            return self.tick_in_place();
        }
        self.look_at_time();
        match &self.long {
            Some(long) if long.is_killed() => {
                self.worker.batch.script_was_cut_short |= long.is_private;
                Tick::Kill("Script killed by user with SCRIPT KILL...".into())
            }
            _ => Tick::Continue,
        }
    }
}

impl ScriptHost<'_> {
    /// Notes when the script has become long, and when it has run for `busy-reply-threshold`. IMPORTANT: not inlined,
    /// like every function that may return on another thread: see `execution::scripts::detached`.
    #[inline(never)]
    fn look_at_time(&mut self) {
        let took_ns = self.engine.clock.monotonic_ns().saturating_sub(self.began_ns);
        match &self.long {
            None if took_ns > LONG_NS => self.become_long(),
            Some(long) if took_ns / 1_000_000 > self.engine.settings.busy_reply_threshold() && long.begin_busy() => {
                conditions::begin_busy(self.engine);
            }
            _ => {}
        }
    }

    /// Makes the script long: it leaves its worker, and no client waits for its locks any more.
    #[cold]
    fn become_long(&mut self) {
        let is_private = self.keys.is_some();
        let shards = if is_private { Vec::new() } else { self.locked.numbers() };
        let [keys, args] = self.arguments;
        let count = keys.len().to_string().into_bytes();
        let words = self.command.into_iter().chain([count.as_slice()]).chain(keys.iter().copied());
        let command = words.chain(args.iter().copied()).map(<[u8]>::to_vec).collect();
        let (kind, name) = (self.program.kind(), self.program.name().to_vec());
        let long = LongScript::new(kind, name, command, self.began_ns, shards, is_private, self.has_written);
        self.long = Some(conditions::begin_long_script(self.engine, long));
        scripts::leaving::leave_worker(self.engine, self.worker);
    }

    /// The tick where there are no script threads: nothing could kill the script.
    #[cold]
    fn tick_in_place(&mut self) -> Tick {
        // A bounded script ends by itself. It may have written, so it is not stopped because a command took long.
        if self.program.reading().is_bounded {
            return Tick::Continue;
        }
        let took_ns = self.engine.clock.monotonic_ns().saturating_sub(self.began_ns);
        let limit_ms = self.engine.settings.busy_reply_threshold();
        if took_ns / 1_000_000 <= limit_ms.max(1) {
            return Tick::Continue;
        }
        self.worker.batch.script_was_cut_short = true;
        Tick::Kill(format!("a script inside a transaction ran for more than {limit_ms} ms (busy-reply-threshold)"))
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

    /// Checks whether a script may call this command now.
    fn check(&mut self, row: &'static CommandRow, request: &OwnedRequest) -> Result<(), CommandError> {
        let flags = row.flags_of(request.as_request());
        if flags.has(Flags::NOSCRIPT) && !self.engine.debug.scripts_call_anything.load(Relaxed) {
            return Err(CommandError::fixed("ERR This Redis command is not allowed from script"));
        }
        if let Err(error) = gates::pass_user(self.engine, self.client, row, request.as_request()) {
            gates::note_if_denied(self.engine, self.client, &error, Context::Script);
            let why = error.to_string();
            let why = why.strip_prefix("NOPERM ").unwrap_or(&why);
            return Err(CommandError::said(format!("ERR ACL failure in script: {why}")));
        }
        if (flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE)) && self.read_only {
            return Err(CommandError::fixed("ERR Write commands are not allowed from read-only scripts."));
        }
        if flags.has(Flags::DENYOOM) && !self.allow_oom && !self.has_written {
            let only_removes = || row.only_removes(request.as_request());
            gates::pass_memory_limit(self.engine).or_else(|error| if only_removes() { Ok(()) } else { Err(error) })?;
        }
        // What has written may write on: it happens as a whole or not at all.
        if flags.has(Flags::WRITE) && !self.has_written {
            self.engine.restrictions.pass_write()?;
            gates::pass_replicas(self.engine)?;
        }
        if let Some(declared) = self.keys {
            self.check_in_transaction(row, request, declared)?;
            return self.check_alive(flags);
        }
        let held = self.has_all || row.keys(request.as_request()).all(|key| self.locked.holds(key));
        let locks = row.locks(request.as_request());
        let walks = matches!(locks, Locks::Everything | Locks::Walk);
        let runs_others = locks == Locks::Declared;
        if !held || walks && !self.has_all || runs_others {
            return Err(self.undeclared());
        }
        self.check_alive(flags)
    }

    /// Refuses writes of a killed script. A script that has written cannot be killed.
    fn check_alive(&self, flags: Flags) -> Result<(), CommandError> {
        match &self.long {
            Some(long) if flags.has(Flags::WRITE) && !long.note_written() => {
                Err(CommandError::fixed("ERR Script killed by user with SCRIPT KILL..."))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether a script may call this command in an interactive transaction.
    fn check_in_transaction(
        &mut self,
        row: &'static CommandRow,
        request: &OwnedRequest,
        declared: &[&[u8]],
    ) -> Result<(), CommandError> {
        let request = request.as_request();
        interactive::rules::pass_transaction_rules(row, request)?;
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
