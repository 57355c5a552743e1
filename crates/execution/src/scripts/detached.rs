//! Requests that may run long because they run Lua. Each starts on its client's worker, on a fiber; when it has become
//! long, it moves to another thread with its whole state. Knows how such a request starts, moves and ends; refuses to
//! know what it does.
//!
//! A handler that is about to run unbounded Lua returns [`After::Detach`](crate::context::After), and its request is
//! executed again by [`execute_detachable`]. Each worker starts at most one such request at a time, and none while a
//! long script runs: further requests are sent to the script thread, which runs them one after the other. So one thread
//! per worker is enough for the requests that have left their workers.

use super::threads::{Detached, QueuedRequest, Run, ScriptTask, SpareRun};
use crate::client::Client;
use crate::conditions;
use crate::context::StartThread;
use crate::departure;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::scripts;
use crate::sessions;
use crate::ticket::Ticket;
use crate::waiting::{Blocked, Event};
use crate::worker::Worker;
use fiber::{Fiber, FiberState, Stack};
use resp::{OwnedRequest, Request};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The stack of a request: Lua recurses on it. Untouched pages take no memory.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// How long the script thread waits before it retries a delayed request.
const TRY_AGAIN: Duration = Duration::from_micros(500);
/// The most Lua states of ended runs that are kept for reuse.
const LUA_STATES_KEPT: usize = 4;
/// The largest reply buffer that is kept for the next run.
const OUT_BYTES_KEPT: usize = 64 * 1024;

/// Begins to serve scripts: call it once, before the threads start. Requests that have left their workers use these
/// metrics, one for each worker.
pub fn begin_serving_scripts(engine: &Arc<Engine>, metrics: Range<usize>) {
    engine.scripting.threads.queue.lock().metrics = engine.statistics.workers()[metrics].to_vec();
    let _ = engine.scripting.threads.engine.set(Arc::downgrade(engine));
}

/// Runs the script thread: serves its queue as long as the process lives.
pub fn serve_scripts(engine: &Engine, mut worker: Worker) -> ! {
    worker.is_script_thread = true;
    loop {
        run_script_task(engine, &mut worker, engine.scripting.threads.next());
    }
}

/// Runs one task of the script thread, on this thread. False when there is none. For tests without threads.
pub fn try_serve_script(engine: &Engine, worker: &mut Worker) -> bool {
    worker.is_script_thread = true;
    let next = engine.scripting.threads.queue.lock().waiting.pop_front();
    next.map(|task| run_script_task(engine, worker, task)).is_some()
}

fn run_script_task(engine: &Engine, worker: &mut Worker, task: ScriptTask) {
    match task {
        ScriptTask::Request(waiting) => run_waiting(engine, worker, *waiting),
        ScriptTask::Forget(client) => forget_client(engine, *client),
        ScriptTask::ExpireSessions => {
            engine.begin(worker);
            sessions::expiry::expire_due_sessions(engine, worker);
        }
        ScriptTask::Tidy => {
            // Freed after the lock is released: they may be large.
            let states = std::mem::take(&mut engine.scripting.threads.queue.lock().lua_states);
            drop(states);
            if scripts::tidy::tidy_lua(engine, worker) {
                // The rest comes after the requests that clients wait for.
                engine.scripting.threads.send(ScriptTask::Tidy);
            }
        }
    }
}

/// Runs one of the threads for requests that have left their workers. There must be as many as workers.
pub fn serve_detached(engine: &Engine) -> ! {
    loop {
        finish_detached(engine, engine.scripting.threads.next_left());
    }
}

/// Runs one request that has left its worker to its end, on this thread. False when there is none. For tests without
/// threads.
pub fn try_serve_detached(engine: &Engine) -> bool {
    let next = engine.scripting.threads.queue.lock().left.pop_front();
    next.map(|detached| finish_detached(engine, detached)).is_some()
}

fn finish_detached(engine: &Engine, Detached { fiber, ticket }: Detached) {
    match fiber.resume() {
        FiberState::Done(mut run, _) => {
            let client = run.client.take().expect("a run has its client until it ends");
            let (out, flow) = (std::mem::take(&mut run.out), std::mem::replace(&mut run.flow, Flow::Continue));
            let lua = run.worker.lua.take();
            let mut queue = engine.scripting.threads.queue.lock();
            queue.metrics.push(run.worker.metrics.clone());
            if queue.lua_states.len() < LUA_STATES_KEPT {
                queue.lua_states.extend(lua);
            }
            drop(queue);
            return_client(engine, &ticket, client, out, &flow);
        }
        FiberState::Paused(_) => unreachable!("a request leaves its worker once"),
    }
}

/// Runs a request on the script thread from its beginning.
fn run_waiting(engine: &Engine, worker: &mut Worker, waiting: QueuedRequest) {
    let QueuedRequest { mut client, request, ticket } = waiting;
    let mut out = Vec::new();
    let flow = loop {
        engine.begin(worker);
        let flow = (engine.procedures.execute)(engine, worker, &mut client, request.as_request(), &mut out);
        conditions::end_long_scripts(engine, worker);
        match flow {
            Flow::Again => std::thread::yield_now(),
            // Clients are paused, or another long script holds the locks.
            Flow::Paused(_) | Flow::AwaitScript => std::thread::sleep(TRY_AGAIN),
            flow => break flow,
        }
    };
    return_client(engine, &ticket, *client, out, &flow);
}

/// Returns a client to its connection, with the reply.
fn return_client(engine: &Engine, ticket: &Ticket, mut client: Client, out: Vec<u8>, flow: &Flow) {
    let handle = client.handle.clone();
    client.closes = matches!(flow, Flow::Close);
    match ticket.put_with_client(out, Box::new(client)) {
        Ok(()) => handle.wake(),
        // The connection has ended meanwhile.
        Err(client) => forget_client(engine, *client),
    }
}

fn forget_client(engine: &Engine, mut client: Client) {
    let mut departed = departure::depart(engine, &mut client);
    while departure::forget_some(engine, &mut departed) {}
}

/// Executes a request that may become long.
pub fn execute_detachable(
    engine: &Engine,
    worker: &mut Worker,
    client: &mut Client,
    request: Request<'_>,
    out: &mut Vec<u8>,
    begin: StartThread,
) -> Flow {
    let Some(shared) = engine.scripting.threads.engine() else {
        unreachable!("a worker asks for it only where there are threads for scripts");
    };
    let spare = match begin == StartThread::OnScriptThread || engine.scripting.long.any() {
        true => None,
        false => worker.spare_run.take().or_else(|| new_run(engine, worker)),
    };
    let Some(SpareRun { stack, mut run }) = spare else { return send_away(engine, client, request) };
    run.request.clear();
    request.iter().for_each(|arg| run.request.push(arg));
    run.client = Some(client.leave_stand_in());
    run.worker.follow_time_of(worker);
    std::mem::swap(&mut run.worker, worker);
    run.worker.is_on_fiber = true;
    let work = move || {
        let mut run = run;
        let Run { worker, client, request, out, flow } = &mut *run;
        let client = client.as_mut().expect("a run has its client until it ends");
        *flow = (shared.procedures.execute)(&shared, worker, client, request.as_request(), out);
        conditions::end_long_scripts(&shared, worker);
        drop(shared);
        run
    };
    match detachable(stack, work).resume() {
        FiberState::Done(mut run, stack) => {
            std::mem::swap(&mut run.worker, worker);
            worker.is_on_fiber = false;
            *client = run.client.take().expect("a run has its client until it ends");
            match out.is_empty() {
                true => std::mem::swap(out, &mut run.out),
                false => out.extend_from_slice(&run.out),
            }
            run.out.clear();
            if run.out.capacity() > OUT_BYTES_KEPT {
                run.out = Vec::new();
            }
            if run.request.capacity() > OUT_BYTES_KEPT {
                run.request = OwnedRequest::default();
            }
            let flow = std::mem::replace(&mut run.flow, Flow::Continue);
            worker.spare_run = Some(SpareRun { stack, run });
            flow
        }
        FiberState::Paused(fiber) => {
            let ticket = client.wait_for_return();
            engine.scripting.threads.queue.lock().left.push_back(Detached { fiber, ticket: ticket.clone() });
            engine.scripting.threads.left.notify_one();
            awaited(ticket)
        }
    }
}

/// Sends a request to the script thread.
fn send_away(engine: &Engine, client: &mut Client, request: Request<'_>) -> Flow {
    let sent = Box::new(client.leave_stand_in());
    let ticket = client.wait_for_return();
    let request = request.iter().collect();
    engine.scripting.threads.send(ScriptTask::Request(Box::new(QueuedRequest {
        client: sent,
        request,
        ticket: ticket.clone(),
    })));
    if engine.restrictions.is_busy() {
        // A script has become busy since this request passed the gates.
        engine.scripting.threads.give_back();
    }
    awaited(ticket)
}

/// Creates another stack and worker, if there is address space for them.
fn new_run(engine: &Engine, worker: &Worker) -> Option<SpareRun> {
    let stack = Stack::new(STACK_BYTES).ok()?;
    let (worker, request) = (engine.worker_with(worker.metrics.clone(), true), OwnedRequest::default());
    Some(SpareRun {
        stack,
        run: Box::new(Run { worker, client: None, request, out: Vec::new(), flow: Flow::Continue }),
    })
}

/// Puts a request on a fiber.
#[allow(unsafe_code, reason = "the promise that a request may go on in another thread is made here, and nowhere else")]
fn detachable(stack: Stack, work: impl FnOnce() -> Box<Run> + Send + 'static) -> Fiber<Box<Run>> {
    // SAFETY: a request pauses in `leave_worker` alone, called by a running script between two of its steps. On its
    // stack are then the run itself, which is `Send`; its Lua state, which is `Send` and belongs to the run; locks of
    // shards, whose guards may be released by another thread (`parking_lot`'s feature `send_guard`; debug builds check
    // that there are no others); and references to these. Thread-locals are in `panics` and, in debug builds, in
    // `locks`: they are handed over, and no function that pauses accesses one.
    unsafe { Fiber::new(stack, work) }
}

fn awaited(ticket: Arc<Ticket>) -> Flow {
    Flow::Block(Blocked { until_ms: None, event: Event::Background(ticket), silent: false })
}
