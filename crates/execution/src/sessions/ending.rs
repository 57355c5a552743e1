//! Removes a session and calls its hook. Knows how a function is called; refuses to know when sessions end.

use super::HookEvent;
use super::lookup::still_in;
use crate::acl::user::server_user;
use crate::client::Client;
use crate::clients::ClientHandle;
use crate::engine::Engine;
use crate::error::shown;
use crate::own_changes;
use crate::scripts::run::{ProgramCall, run_program};
use crate::settings::events::Events;
use crate::worker::Worker;
use keyspace::types::Object;
use keyspace::types::session::{capabilities_of, put_capabilities};
use keyspace::{Cause, Effect, Entry, Key, Locked};
use resp::{Protocol, Reply};
use std::sync::Arc;

/// Calls a hook for a session, in the same batch. Everything is locked. The error is the function's error line.
pub fn call_hook(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    locked: &mut Locked<'_>,
    function: &[u8],
    key: Key<'_>,
    capabilities: &[u8],
) -> Result<(), String> {
    let Some(program) = engine.scripting.functions.find(function) else {
        return Err(format!("ERR there is no function {} for the hook of sessions", shown(function)));
    };
    let args: Vec<&[u8]> = capabilities_of(capabilities).flat_map(|(name, value)| [name, value]).collect();
    let mut out = Vec::new();
    let mut reply = Reply::new(&mut out, Protocol::Resp2);
    let was_in_hook = std::mem::replace(&mut worker.in_hook, true);
    // The hook's time counts from here.
    worker.last_ns = engine.clock.monotonic_ns();
    let held = Some(locked.lend());
    let command: [&[u8]; 2] = [b"FCALL", function];
    let call = ProgramCall { program: &program, command, keys: &[key.name], args: &args, read_only: false };
    let outcome = run_program(engine, worker, client, call, &mut reply, held, None);
    worker.in_hook = was_in_hook;
    match outcome {
        Err(error) => Err(error.to_string()),
        Ok(()) if out.first() == Some(&b'-') => {
            Err(String::from_utf8_lossy(&out[1..out.len().saturating_sub(2)]).into_owned())
        }
        Ok(()) => Ok(()),
    }
}

/// Removes a session with its contents, after calling its hook. Its shard is locked; if there is a hook, everything is.
pub fn end_session(
    engine: &Engine,
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
    if let Some(function) = engine.sessions.hook(HookEvent::Expired) {
        // The function may still send requests to the session. They are removed with it and delivered to no client.
        session.begin_dying();
        let mut capabilities = Vec::new();
        put_capabilities(session.capabilities(), &mut capabilities);
        if let Err(error) = call_hook(engine, worker, client, locked, &function, key, &capabilities) {
            engine.sessions.count_hook_failure();
            let (function, session) = (function.escape_ascii(), key.name.escape_ascii());
            tracing::warn!(%function, %session, %error, "the hook of a removed session failed");
        }
    }
    let Some(db) = still_in(locked, db, key, birth) else { return };
    let mut keys = own_changes::own_changes(engine, worker, locked.lend(), db);
    keys.record(&Effect::Delete { key, cause });
    match cause {
        Cause::Deleted => keys.notify(Events::MODULE, "session.close", key),
        Cause::Expired | Cause::Evicted => {}
    }
    let garbage = keys.finish().take_garbage();
    engine.free(garbage);
}

/// The client under which background work runs.
pub fn system_client(db: usize) -> Client {
    let handle = ClientHandle::new(0, String::new(), String::new(), -1, 0, Box::new(|| {}));
    let mut client = Client::new(Arc::new(handle), true);
    client.user = Some(server_user());
    client.db = db;
    client
}
