//! Runs one script: its locks, its host, its journal batch.

use super::host::ScriptHost;
use crate::client::Client;
use crate::commit;
use crate::conditions;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::gates;
use crate::scripts::{LuaState, Program, Script};
use crate::worker::Worker;
use keyspace::{Key, Locked};
use lua::ScriptArguments;
use resp::{OwnedRequest, Protocol, Reply};

/// A script or function, with its keys and arguments.
#[derive(Clone, Copy)]
pub struct ProgramCall<'a> {
    pub program: &'a Program,
    /// The command that runs it, and the script's name there.
    pub command: [&'a [u8]; 2],
    pub keys: &'a [&'a [u8]],
    pub args: &'a [&'a [u8]],
    pub read_only: bool,
}

/// Runs a script or function and writes its reply. `held` are the locks of the surrounding transaction, which holds all
/// locks that the script needs; `all` are all locks, if they were taken for this script.
pub fn run_program<'e>(
    engine: &'e Engine,
    worker: &mut Worker,
    client: &mut Client,
    call: ProgramCall<'_>,
    reply: &mut Reply<'_>,
    mut held: Option<Locked<'_>>,
    all: Option<Locked<'e>>,
) -> CommandResult {
    let ProgramCall { program, command, keys, args, read_only } = call;
    pass_script_gates(engine, program, read_only, held.is_some())?;
    let entered_ns = worker.last_ns;
    let (flags, analysis) = (program.flags().unwrap_or_default(), program.reading());
    let read_only = read_only || flags.no_writes;
    // A state that has grown large is not kept: it would never return its fragmented memory.
    let kept = worker.lua.take().filter(|lua| lua.state.footprint_bytes() <= LUA_STATE_BYTES_KEPT);
    let kept = kept.or_else(|| engine.scripting.threads.take_lua_state());
    let mut lua = kept.unwrap_or_else(|| Box::new(LuaState::new()));
    if let Err(error) = lua.prepare(&engine.scripting.scripts, program) {
        worker.lua = Some(lua);
        return Err(error);
    }
    let is_part = held.is_some();
    let is_private = worker.batch.is_private;
    let has_all =
        is_part && !is_private || !analysis.declares_all_keys || engine.indexes.has_any_of(keys.iter().copied());
    let all = all.filter(|_| has_all);
    let mut own = match &held {
        Some(_) => None,
        None if has_all && all.is_some() => all,
        None if has_all => engine.keyspace.lock_all_unless_busy(),
        // IMPORTANT: definitions of libraries are in the first shard. The reply depends on the batch that defined the
        // function.
        None if keys.is_empty() && matches!(program, Program::Function(..)) => {
            engine.keyspace.lock_shard_unless_busy(0)
        }
        None => engine.keyspace.lock_keys_unless_busy(keys.iter().map(|key| Key::new(key))),
    };
    let Some(locked) = held.as_mut().map(Locked::lend).or(own.as_mut().map(Locked::lend)) else {
        worker.lua = Some(lua);
        return Err(conditions::busy(engine));
    };
    client.depends_on = client.depends_on.max(locked.changed_by());
    // Changes of the script to the connection end with the script.
    let (db, protocol) = (client.db, std::mem::replace(&mut client.protocol, Protocol::Resp2));
    let was_atomic = std::mem::replace(&mut worker.batch.is_atomic, true);
    let was_in_script = std::mem::replace(&mut worker.in_script, true);
    let may_be_long = worker.is_on_fiber || worker.is_script_thread;
    // Without the time spent waiting for the locks.
    let began_ns = if may_be_long { engine.clock.monotonic_ns() } else { worker.last_ns };
    let allow_oom = flags.allow_oom || read_only;
    let (mut out, request) = (std::mem::take(&mut worker.script_reply), std::mem::take(&mut worker.script_request));
    out.clear();
    let (garbage, request, counted_error, long) = {
        let mut host = ScriptHost {
            engine,
            worker,
            client,
            locked,
            program,
            has_all,
            keys: is_private.then_some(keys),
            read_only,
            allow_oom,
            command,
            arguments: [keys, args],
            may_be_long,
            long: None,
            has_written: false,
            began_ns,
            request,
            counted_error: Vec::new(),
        };
        match program {
            Program::Script(script) => {
                lua.state.run(&mut host, &script.sha, ScriptArguments { keys, args }, protocol, &mut out)
            }
            Program::Function(library, at) => {
                let name = &library.functions[*at].info.name;
                lua.state.run_function(
                    &mut host,
                    &library.handle,
                    name,
                    ScriptArguments { keys, args },
                    protocol,
                    &mut out,
                )
            }
        };
        (host.locked.take_garbage(), host.request, host.counted_error, host.long)
    };
    client.db = db;
    client.protocol = protocol;
    worker.batch.is_atomic = was_atomic;
    worker.in_script = was_in_script;
    // The time of the commands that it has called counts as the script's own.
    worker.last_ns = entered_ns;
    if let Some(mut locked) = own {
        commit::commit(engine, worker, Some(client), &mut locked);
        drop(locked);
    }
    engine.free(garbage);
    worker.ended_long.extend(long);
    reply.raw(&out);
    if out.first() == Some(&b'-') {
        worker.script_has_failed = true;
        // The place where it was raised may follow the command's own text.
        if counted_error.is_empty() || !out.starts_with(&counted_error) {
            let text = String::from_utf8_lossy(&out[1..out.len().saturating_sub(2)]).into_owned();
            worker.metrics.stats.count_error(&text);
        }
    }
    if out.capacity() > SCRIPT_REPLY_KEPT {
        out = Vec::new();
    }
    worker.script_reply = out;
    worker.script_request = if request.capacity() > SCRIPT_REPLY_KEPT { OwnedRequest::default() } else { request };
    // In a transaction a large state is kept until the next script, so that it is not freed while locks are held.
    worker.lua = (is_part || lua.state.footprint_bytes() <= LUA_STATE_BYTES_KEPT).then_some(lua);
    Ok(())
}

/// True unless it is certain that a program with these keys reads no index.
pub fn may_read_index(engine: &Engine, program: &Program, keys: &[&[u8]]) -> bool {
    !engine.indexes.is_empty() && (!program.reading().names_no_index || engine.indexes.has_any_of(keys.iter().copied()))
}

/// Checks the gates for a script that declares flags, before it starts.
fn pass_script_gates(engine: &Engine, program: &Program, read_only: bool, in_transaction: bool) -> CommandResult {
    let Some(flags) = program.flags() else { return Ok(()) };
    if !flags.no_writes {
        engine.restrictions.pass_write()?;
        gates::pass_replicas(engine)?;
        if !flags.allow_oom && !in_transaction {
            gates::pass_memory_limit(engine)?;
        }
        if read_only {
            return Err(CommandError::fixed("ERR Can not execute a script with write flag using *_ro command."));
        }
        // In a transaction, which has passed the gates already, Redis has another error text.
        if !flags.allow_oom && gates::pass_memory_limit(engine).is_err() {
            return Err(CommandError::fixed(
                "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
            ));
        }
    }
    Ok(())
}

impl Worker {
    /// The worker's Lua state; created when it is first needed.
    pub fn lua(&mut self) -> &mut LuaState {
        self.lua.get_or_insert_with(|| Box::new(LuaState::new()))
    }

    /// Checks whether a script compiles.
    pub fn compile(&mut self, engine: &Engine, script: &Script) -> CommandResult {
        self.lua().compile(&engine.scripting.scripts, script)
    }
}

/// The largest Lua state that is kept for the next script.
pub const LUA_STATE_BYTES_KEPT: usize = 32 * 1024 * 1024;

/// The largest buffer for a reply or a request that is kept for reuse.
const SCRIPT_REPLY_KEPT: usize = 64 * 1024;
