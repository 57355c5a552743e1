//! What the state of the whole server allows now: whether keys may expire, which events are published, which error a
//! command gets that meets a long script. Refuses to know commands.

use crate::command::Handler;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::scripts::{LongScript, ProgramKind};
use crate::settings::events::Events;
use crate::worker::Worker;
use std::sync::Arc;

/// Notes that a script has become long: from now on no thread waits for its locks.
pub fn begin_long_script(engine: &Engine, script: LongScript) -> Arc<LongScript> {
    engine.keyspace.mark_held_long(&script.shards, true);
    engine.scripting.long.begin(script)
}

/// Notes that a script has run for `busy-reply-threshold`: from now on clients get -BUSY.
pub fn begin_busy(engine: &Engine) {
    engine.restrictions.set_busy(true);
    engine.scripting.long.wake_parked();
    engine.scripting.threads.give_back();
}

/// Notes that a long script has ended and released its locks.
pub fn end_long_script(engine: &Engine, script: &Arc<LongScript>) {
    engine.keyspace.mark_held_long(&script.shards, false);
    if engine.scripting.long.end(script) {
        engine.restrictions.set_busy(false);
    }
    engine.scripting.long.wake_parked();
}

/// The error for commands that cannot run during a long script or function. Before `busy-reply-threshold`, it makes
/// them wait.
#[cold]
pub fn busy(engine: &Engine) -> CommandError {
    if !engine.restrictions.is_busy() {
        return CommandError::AwaitsScript;
    }
    match engine.scripting.long.kind() {
        Some(ProgramKind::Function) => CommandError::BusyFunction,
        _ => CommandError::Busy,
    }
}

/// The classes of events that a command publishes.
#[inline]
pub fn published_events(engine: &Engine, handler: Handler) -> Events {
    match engine.settings.notify_keyspace_events().published() {
        none if none.is_empty() => none,
        // While expiry is off, expired keys read as absent but are not removed, so no "expired" event is due.
        told if matches!(handler, Handler::Read(_)) && !may_expire(engine) => told & Events::KEY_MISS,
        told => told,
    }
}

/// True when expired keys may be removed. While writes are refused, clients are paused or another server's data comes in,
/// they read as absent but stay.
#[inline]
pub fn may_expire(engine: &Engine) -> bool {
    let is_paused = || engine.pause.is_set() && engine.pause.is_on(engine.clock.monotonic_ms());
    !engine.restrictions.any() && !engine.settings.import_mode() && !is_paused()
}

/// Notes that the long scripts of a request have ended and released their locks.
pub fn end_long_scripts(engine: &Engine, worker: &mut Worker) {
    for long in worker.ended_long.drain(..) {
        end_long_script(engine, &long);
    }
}
