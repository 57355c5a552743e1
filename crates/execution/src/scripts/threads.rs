//! The queue of requests for the script threads, and the state of such a request. Refuses to know how one starts,
//! leaves its worker and ends (`detached`).

use super::LuaState;
use crate::client::Client;
use crate::engine::Engine;
use crate::flow::Flow;
use crate::observability::statistics::WorkerMetrics;
use crate::ticket::Ticket;
use crate::worker::Worker;
use fiber::{Fiber, Stack};
use locks::{Condvar, Mutex, rank};
use resp::OwnedRequest;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// The threads on which long scripts run, and their queues.
#[derive(Default)]
pub struct ScriptThreads {
    pub(super) queue: Mutex<Queue, { rank::SCRIPT_QUEUE }>,
    pub(super) arrived: Condvar,
    pub(super) left: Condvar,
    /// The engine, for requests that outlive the call that started them. Set when there are threads.
    pub(super) engine: OnceLock<Weak<Engine>>,
    /// Sessions with a hook have expired, and the script thread is notified or is removing them.
    pub expires_sessions: AtomicBool,
    /// Changes when the Lua states have something to free.
    pub(super) to_tidy: AtomicU64,
}

#[derive(Default)]
pub(super) struct Queue {
    /// For the script thread: tasks that have not started.
    pub(super) waiting: VecDeque<ScriptTask>,
    /// For the other threads: requests that have left their workers.
    pub(super) left: VecDeque<Detached>,
    /// Metrics for the requests that have left their workers, one for each of these threads.
    pub(super) metrics: Vec<Arc<WorkerMetrics>>,
    #[allow(clippy::vec_box, reason = "a worker takes the box, not what is in it")]
    pub(super) lua_states: Vec<Box<LuaState>>,
}

/// A task of the script thread.
pub(super) enum ScriptTask {
    Request(Box<QueuedRequest>),
    /// A client whose connection has ended.
    Forget(Box<Client>),
    /// Sessions with a hook have expired.
    ExpireSessions,
    /// Its Lua state has something to free.
    Tidy,
}

impl ScriptTask {
    /// Returns a request to its connection. The result is what the script thread has to do itself.
    pub(super) fn give_back(self) -> Option<ScriptTask> {
        let ScriptTask::Request(mut waiting) = self else { return Some(self) };
        // A request that has run a slice is not refused.
        if waiting.client.unfinished.is_some() {
            return Some(ScriptTask::Request(waiting));
        }
        let handle = waiting.client.handle.clone();
        waiting.client.given_back = Some(Box::new(std::mem::take(&mut waiting.request)));
        match waiting.ticket.put_with_client(Vec::new(), waiting.client) {
            Ok(()) => {
                handle.wake();
                None
            }
            // The connection has ended: removing its client takes locks, for which the script thread can wait.
            Err(client) => Some(ScriptTask::Forget(client)),
        }
    }
}

/// A request that has not started.
pub(super) struct QueuedRequest {
    pub(super) client: Box<Client>,
    pub(super) request: OwnedRequest,
    pub(super) ticket: Arc<Ticket>,
}

/// A request that has left its worker.
pub(super) struct Detached {
    pub(super) fiber: Fiber<Box<Run>>,
    pub(super) ticket: Arc<Ticket>,
}

/// The state of a request on a fiber. None of it belongs to the thread on which the request started.
pub struct Run {
    pub(super) worker: Worker,
    pub(super) client: Option<Client>,
    pub(super) request: OwnedRequest,
    pub(super) out: Vec<u8>,
    pub(super) flow: Flow,
}

/// A stack and its run, kept for the next request.
pub struct SpareRun {
    pub(super) stack: Stack,
    pub(super) run: Box<Run>,
}

impl ScriptThreads {
    /// The engine, if there are threads for scripts.
    pub(super) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get()?.upgrade()
    }

    pub(super) fn send(&self, task: ScriptTask) {
        self.queue.lock().waiting.push_back(task);
        self.arrived.notify_one();
    }

    /// Returns requests that have not started to their connections, which execute them again: while the server is busy,
    /// they are refused.
    pub fn give_back(&self) {
        let mut queue = self.queue.lock();
        let waiting = std::mem::take(&mut queue.waiting);
        queue.waiting = waiting.into_iter().filter_map(ScriptTask::give_back).collect();
    }

    pub(super) fn next(&self) -> ScriptTask {
        let mut queue = self.queue.lock();
        loop {
            if let Some(task) = queue.waiting.pop_front() {
                return task;
            }
            self.arrived.wait(&mut queue);
        }
    }

    pub(super) fn next_left(&self) -> Detached {
        let mut queue = self.queue.lock();
        loop {
            if let Some(detached) = queue.left.pop_front() {
                return detached;
            }
            self.left.wait(&mut queue);
        }
    }

    /// Takes the Lua state of an ended run.
    pub fn take_lua_state(&self) -> Option<Box<LuaState>> {
        self.queue.lock().lua_states.pop()
    }

    /// Makes the script thread tidy up its Lua state, once for each number.
    pub fn wake_to_tidy(&self, number: u64) {
        if self.engine.get().is_some() && self.to_tidy.swap(number, Relaxed) != number {
            self.send(ScriptTask::Tidy);
        }
    }

    /// Makes the script thread remove expired sessions with a hook, unless it is notified already.
    pub fn expire_sessions(&self) {
        if !self.expires_sessions.swap(true, Relaxed) {
            self.send(ScriptTask::ExpireSessions);
        }
    }
}
