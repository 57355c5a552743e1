//! SESSION.HOOK: which functions are called for sessions; and how they are called.

use super::still_in;
use crate::args::is_word;
use crate::clients::ClientHandle;
use crate::commands::shared::options::{argument, error, shown};
use crate::error::CommandResult;
use crate::execution::client::Client;
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::sessions::HookEvent;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::types::Object;
use keyspace::types::session::{capabilities_of, put_capabilities};
use keyspace::{Cause, Definable, Effect, Entry, Key, Locked};
use resp::{Protocol, Reply};
use std::sync::Arc;

pub(super) fn hook(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let engine = cx.engine;
    let Some(word) = cx.args.try_next() else {
        cx.reply.map(HookEvent::ALL.len());
        for event in HookEvent::ALL {
            cx.reply.bulk(event.name().as_bytes());
            match engine.sessions.hook(event) {
                Some(function) => cx.reply.bulk(&function),
                None => cx.reply.null(),
            }
        }
        return Ok(());
    };
    let Some(event) = HookEvent::ALL.into_iter().find(|event| is_word(word, event.name())) else {
        return Err(error(format!("a hook is CREATED or EXPIRED, not {}", shown(word))));
    };
    let function = argument(&mut cx.args, "the name of the function, or NONE,")?;
    cx.args.finish()?;
    let function = Some(function).filter(|function| !is_word(function, "NONE"));
    if let Some(function) = function
        && engine.functions.find(function).is_none()
    {
        return Err(error(format!("there is no function {}", shown(function))));
    }
    let mut own;
    let mut locked = match &mut cx.held {
        Some(held) => held.lend(),
        None => {
            own = engine.keyspace.lock_all_unless_busy().ok_or_else(|| engine.busy())?;
            own.lend()
        }
    };
    let (what, name) = (Definable::Hook, event.name().as_bytes());
    let mut keys = engine.own_changes(cx.worker, locked.lend(), cx.client.db);
    match function {
        Some(definition) => keys.record(&Effect::Define { what, name, definition }),
        None => keys.record(&Effect::Undefine { what, name }),
    };
    keys.finish();
    engine.commit(cx.worker, Some(cx.client), &mut locked);
    cx.reply.ok();
    Ok(())
}

impl Engine {
    /// Calls a function for a session, in the same batch. Everything is locked. The error is its error line.
    pub(super) fn call_hook(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        locked: &mut Locked<'_>,
        function: &[u8],
        key: Key<'_>,
        capabilities: &[u8],
    ) -> Result<(), String> {
        let Some(program) = self.functions.find(function) else {
            return Err(format!("ERR there is no function {} for the hook of sessions", shown(function)));
        };
        let args: Vec<&[u8]> = capabilities_of(capabilities).flat_map(|(name, value)| [name, value]).collect();
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, Protocol::Resp2);
        let was_in_hook = std::mem::replace(&mut worker.in_hook, true);
        // Its time counts from here.
        worker.last_ns = self.clock.monotonic_ns();
        let held = Some(locked.lend());
        let outcome = self.run_program(worker, client, &program, &[key.name], &args, false, &mut reply, held, None);
        worker.in_hook = was_in_hook;
        match outcome {
            Err(error) => Err(error.to_string()),
            Ok(_) if out.first() == Some(&b'-') => {
                Err(String::from_utf8_lossy(&out[1..out.len().saturating_sub(2)]).into_owned())
            }
            // Part of something larger, it is not given up.
            Ok(_) => Ok(()),
        }
    }

    /// Removes a session with all it has, after the hook was called. Its shard is locked, and everything if there is a hook.
    pub(super) fn end_session(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        locked: &mut Locked<'_>,
        key: Key<'_>,
        cause: Cause,
    ) {
        let db = client.db;
        let entry = locked.db(db, key).entry(key);
        let Some(Object::Session(session)) = entry.and_then(Entry::object) else { return };
        let birth = session.birth();
        if let Some(function) = self.sessions.hook(HookEvent::Expired) {
            // It can be sent requests as long as the function runs; they go with it, and nobody sees them.
            session.begin_dying();
            let mut capabilities = Vec::new();
            put_capabilities(session.capabilities(), &mut capabilities);
            if let Err(error) = self.call_hook(worker, client, locked, &function, key, &capabilities) {
                self.sessions.count_hook_failure();
                let (function, name) = (function.escape_ascii(), key.name.escape_ascii());
                self.host
                    .log(&format!("the function '{function}' failed for the session '{name}', which is gone: {error}"));
            }
        }
        let Some(db) = still_in(locked, db, key, birth) else { return };
        let mut keys = self.own_changes(worker, locked.lend(), db);
        keys.record(&Effect::Delete { key, cause });
        match cause {
            Cause::Deleted => keys.notify(Events::MODULE, "session.close", key),
            Cause::Expired | Cause::Evicted => {}
        }
        let garbage = keys.finish().take_garbage();
        self.free(garbage);
    }

    /// Who acts when nobody has asked for it.
    pub(super) fn nobody(&self, db: usize) -> Client {
        let handle = ClientHandle::new(0, String::new(), String::new(), -1, 0, Box::new(|| {}));
        let mut client = Client::new(Arc::new(handle), true);
        client.db = db;
        client
    }
}
