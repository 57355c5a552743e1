//! Which requests may become long, and how one leaves the thread on which it started. Refuses to know where it
//! continues (`detached`).

use crate::command::{CommandRow, Flags};
use crate::context::StartThread;
use crate::engine::Engine;
use crate::panics;
use crate::worker::Worker;
use locks::rank;

/// Where a command starts that may run unbounded Lua; `None` for other commands.
pub fn may_run_long(engine: &Engine, row: &'static CommandRow) -> Option<StartThread> {
    let flags = row.command.flags;
    match flags.has(Flags::RUNS_LUA) || flags.has(Flags::CALLS_HOOKS) && engine.sessions.has_hooks() {
        true => Some(start_thread(engine)),
        false => flags.has(Flags::LOADS_LUA).then_some(StartThread::OnScriptThread),
    }
}

/// Where a request starts that may call any function. A library that takes long to load has no step at which the
/// request could leave a worker.
pub fn start_thread(engine: &Engine) -> StartThread {
    match engine.scripting.functions.any_slow() {
        true => StartThread::OnScriptThread,
        false => StartThread::OnWorker,
    }
}

/// Moves the request that runs on this thread to another one, if it can move: this function then returns on the other
/// thread.
pub fn leave_worker(engine: &Engine, worker: &mut Worker) {
    if !worker.is_on_fiber {
        return;
    }
    worker.is_on_fiber = false;
    worker.is_script_thread = true;
    if let Some(metrics) = engine.scripting.threads.queue.lock().metrics.pop() {
        worker.metrics = metrics;
    }
    let (held, caught) = (locks::hand_over(rank::SHARDS), panics::hand_over());
    fiber::pause();
    held.take_over();
    caught.take_over();
}
