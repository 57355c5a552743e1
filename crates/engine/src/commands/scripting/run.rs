//! Runs one script: its locks, its host, its journal batch.

use super::host::{Place, ScriptHost};
use crate::error::{CommandError, CommandResult};
use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::execution::scripts::{LuaState, Program, Script};
use crate::execution::worker::Worker;
use keyspace::{Key, Locked};
use resp::{OwnedRequest, Protocol, Reply};

impl Engine {
    /// Runs a script or function and writes its reply. `held`: the locks of the transaction that it is part of, which has them all;
    /// `all`: all locks, if they were taken for it.
    /// False when it was given up and is to run on the script thread: nothing was changed or replied.
    #[allow(clippy::too_many_arguments, reason = "one run's whole context, passed on once")]
    pub(crate) fn run_program<'e>(
        &'e self,
        worker: &mut Worker,
        client: &mut Client,
        program: &Program,
        keys: &[&[u8]],
        args: &[&[u8]],
        read_only: bool,
        reply: &mut Reply<'_>,
        mut held: Option<Locked<'_>>,
        all: Option<Locked<'e>>,
    ) -> Result<bool, CommandError> {
        self.pass_script_gates(program, read_only, held.is_some())?;
        let entered_ns = worker.last_ns;
        let (flags, analysis) = (program.flags().unwrap_or_default(), program.reading());
        let read_only = read_only || flags.no_writes;
        // A state that has grown large is not kept: it would never return its fragmented memory.
        let kept = worker.lua.take().filter(|lua| lua.state.footprint_bytes() <= LUA_STATE_BYTES_KEPT);
        let mut lua = kept.unwrap_or_else(|| Box::new(LuaState::new()));
        if let Err(error) = lua.prepare(&self.scripts, &self.functions, program) {
            worker.lua = Some(lua);
            return Err(error);
        }
        let is_part = held.is_some();
        let is_private = worker.batch.is_private;
        let has_all = is_part && !is_private || !analysis.declares_all_keys || self.any_is_index(keys.iter().copied());
        let all = all.filter(|_| has_all);
        let mut own = match &held {
            Some(_) => None,
            None if has_all && all.is_some() => all,
            None if has_all => self.keyspace.lock_all_unless_busy(),
            // IMPORTANT: libraries are kept in the first shard. The reply tells of the batch that has defined the function.
            None if keys.is_empty() && matches!(program, Program::Function(..)) => {
                self.keyspace.lock_shard_unless_busy(0)
            }
            None => self.keyspace.lock_keys_unless_busy(keys.iter().map(|key| Key::new(key))),
        };
        let Some(locked) = held.as_mut().map(Locked::lend).or(own.as_mut().map(Locked::lend)) else {
            worker.lua = Some(lua);
            return Err(self.busy());
        };
        client.depends_on = client.depends_on.max(locked.changed_by());
        // What it does to its connection ends with it.
        let (db, protocol) = (client.db, std::mem::replace(&mut client.protocol, Protocol::Resp2));
        let was_atomic = std::mem::replace(&mut worker.batch.is_atomic, true);
        let was_in_script = std::mem::replace(&mut worker.in_script, true);
        let may_be_long = !is_part && !analysis.is_bounded && self.script_thread.is_served();
        let place = match (may_be_long, worker.is_script_thread) {
            (true, true) => Place::ScriptThread,
            (true, false) => Place::Trial,
            (false, _) => Place::Client,
        };
        // Without the time that it has waited for its locks.
        let began_ns = if may_be_long { self.clock.monotonic_ns() } else { worker.last_ns };
        let allow_oom = flags.allow_oom || read_only;
        let (mut out, request) = (std::mem::take(&mut worker.script_reply), std::mem::take(&mut worker.script_request));
        out.clear();
        let (garbage, request, counted_error, is_given_up) = {
            let mut host = ScriptHost {
                engine: self,
                worker,
                client,
                locked,
                program,
                has_all,
                keys: is_private.then_some(keys),
                read_only,
                allow_oom,
                place,
                has_written: false,
                can_begin_again: true,
                is_given_up: false,
                has_made_busy: false,
                began_ns,
                request,
                counted_error: Vec::new(),
            };
            match program {
                Program::Script(script) => lua.state.run(&mut host, &script.sha, keys, args, protocol, &mut out),
                Program::Function(library, at) => {
                    let name = &library.functions[*at].info.name;
                    lua.state.run_function(&mut host, &library.handle, name, keys, args, protocol, &mut out)
                }
            };
            if host.has_made_busy {
                self.set_busy(false);
                if place == Place::Trial {
                    self.script_thread.end_elsewhere();
                }
            }
            (host.locked.take_garbage(), host.request, host.counted_error, host.is_given_up)
        };
        client.db = db;
        client.protocol = protocol;
        worker.batch.is_atomic = was_atomic;
        worker.in_script = was_in_script;
        // The time of the commands that it has called is its own too.
        worker.last_ns = entered_ns;
        if let Some(mut locked) = own {
            self.commit(worker, Some(client), &mut locked);
            drop(locked);
        }
        self.free(garbage);
        if is_given_up {
            program.pace().note_given_up();
            out.clear();
        } else if may_be_long {
            program.pace().note(self.clock.monotonic_ns().saturating_sub(began_ns));
        }
        reply.raw(&out);
        if out.first() == Some(&b'-') {
            worker.script_has_failed = true;
            // Where it was raised may be added to the command's own text.
            if counted_error.is_empty() || !out.starts_with(&counted_error) {
                let text = String::from_utf8_lossy(&out[1..out.len().saturating_sub(2)]).into_owned();
                worker.books.stats.count_error(&text);
            }
        }
        if out.capacity() > SCRIPT_REPLY_KEPT {
            out = Vec::new();
        }
        worker.script_reply = out;
        worker.script_request = if request.capacity() > SCRIPT_REPLY_KEPT { OwnedRequest::default() } else { request };
        // In a transaction a large state is kept until the next script, so that it is not freed while locks are held.
        worker.lua = (is_part || lua.state.footprint_bytes() <= LUA_STATE_BYTES_KEPT).then_some(lua);
        Ok(!is_given_up)
    }

    /// True unless it is certain that a program with these keys reads no index.
    pub(super) fn may_read_index(&self, program: &Program, keys: &[&[u8]]) -> bool {
        self.has_indexes() && (!program.reading().names_no_index || self.any_is_index(keys.iter().copied()))
    }

    /// The gates for a script that declares flags, before it begins.
    fn pass_script_gates(&self, program: &Program, read_only: bool, in_transaction: bool) -> CommandResult {
        let Some(flags) = program.flags() else { return Ok(()) };
        if !flags.no_writes {
            self.pass_write_restrictions()?;
            self.pass_replicas()?;
            if !flags.allow_oom && !in_transaction {
                self.pass_memory_limit()?;
            }
            if read_only {
                return Err(CommandError::fixed("ERR Can not execute a script with write flag using *_ro command."));
            }
            // In a transaction, which has passed the gates already, Redis has another error text.
            if !flags.allow_oom && self.pass_memory_limit().is_err() {
                return Err(CommandError::fixed(
                    "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
                ));
            }
        }
        Ok(())
    }
}

impl Worker {
    /// The worker's Lua state; made when it is first needed.
    pub(crate) fn lua(&mut self) -> &mut LuaState {
        self.lua.get_or_insert_with(|| Box::new(LuaState::new()))
    }

    /// Finds out whether a script compiles.
    pub(crate) fn compile(&mut self, engine: &Engine, script: &Script) -> CommandResult {
        self.lua().compile(&engine.scripts, script)
    }
}

/// The largest Lua state that is kept for the next script.
const LUA_STATE_BYTES_KEPT: usize = 32 * 1024 * 1024;

/// The largest buffer for a reply or a request that is kept for the next.
const SCRIPT_REPLY_KEPT: usize = 64 * 1024;
