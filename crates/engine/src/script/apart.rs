//! Scripts that may run long, on a thread of their own: who waits for which, which one runs, and how it is stopped.
//! Knows nothing of Lua.

use super::Script;
use crate::client::Client;
use crate::clients::ClientHandle;
use crate::engine::{Engine, Worker};
use crate::tracking::Tracker;
use parking_lot::{Condvar, Mutex};
use resp::{Protocol, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A script to be run apart, with all it needs of its client.
pub struct Job {
    pub script: Arc<Script>,
    pub keys: Vec<Vec<u8>>,
    pub args: Vec<Vec<u8>>,
    pub read_only: bool,
    pub db: usize,
    pub protocol: Protocol,
    pub handle: Arc<ClientHandle>,
    /// As the client's: the keys that the script reads are remembered.
    pub tracker: Option<Arc<Tracker>>,
    pub caching: bool,
    pub ticket: Arc<Ticket>,
}

/// Where a client that waits finds the outcome.
#[derive(Default)]
pub struct Ticket(Mutex<Option<Outcome>>);

struct Outcome {
    reply: Vec<u8>,
    depends_on: u64,
    last_batch: u64,
}

impl Ticket {
    /// The reply, once there is one. What it tells of is noted with the client.
    pub fn take(&self, client: &mut Client) -> Option<Vec<u8>> {
        let outcome = self.0.lock().take()?;
        client.depends_on = client.depends_on.max(outcome.depends_on);
        client.last_batch = client.last_batch.max(outcome.last_batch);
        Some(outcome.reply)
    }
}

/// Scripts that run apart.
#[derive(Default)]
pub struct Apart {
    queue: Mutex<VecDeque<Job>>,
    arrived: Condvar,
    /// There is a thread that serves the queue.
    served: AtomicBool,
    running: Mutex<Option<Running>>,
}

/// The script that runs now.
struct Running {
    /// It has changed something: stopping it would leave half of it behind.
    has_written: bool,
    to_be_killed: bool,
}

/// Why a script cannot be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    NotRunning,
    HasWritten,
}

impl Apart {
    /// True when scripts can be sent here.
    pub fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    /// Has a script run when those before it have.
    pub fn send(&self, job: Job) {
        self.queue.lock().push_back(job);
        self.arrived.notify_one();
    }

    /// Has the running script stop at its next step.
    pub fn kill(&self) -> Result<(), Unkillable> {
        match &mut *self.running.lock() {
            None => Err(Unkillable::NotRunning),
            Some(running) if running.has_written => Err(Unkillable::HasWritten),
            Some(running) => {
                running.to_be_killed = true;
                Ok(())
            }
        }
    }

    /// Notes that the running script has changed something.
    pub(crate) fn note_written(&self) {
        if let Some(running) = &mut *self.running.lock() {
            running.has_written = true;
        }
    }

    /// True when the running script is to stop.
    pub(crate) fn is_to_be_killed(&self) -> bool {
        self.running.lock().as_ref().is_some_and(|running| running.to_be_killed)
    }

    fn next(&self) -> Job {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.pop_front() {
                return job;
            }
            self.arrived.wait(&mut queue);
        }
    }
}

impl Engine {
    /// Runs scripts that were sent apart, for as long as the process lives. Called on a thread that does nothing else.
    pub fn serve_scripts(&self, mut worker: Worker) -> ! {
        self.apart.served.store(true, Relaxed);
        loop {
            let job = self.apart.next();
            self.begin(&mut worker);
            // A client of its own: what a script does to its connection ends with it.
            let mut client = Client::new(job.handle.clone(), true);
            client.db = job.db;
            client.protocol = job.protocol;
            client.tracker = job.tracker.clone();
            client.caching = job.caching;
            *self.apart.running.lock() = Some(Running { has_written: false, to_be_killed: false });
            let mut reply = Vec::new();
            let keys: Vec<&[u8]> = job.keys.iter().map(Vec::as_slice).collect();
            let args: Vec<&[u8]> = job.args.iter().map(Vec::as_slice).collect();
            let mut writer = Reply::new(&mut reply, job.protocol);
            let outcome =
                self.run_script(&mut worker, &mut client, &job.script, &keys, &args, job.read_only, &mut writer, None);
            if let Err(error) = outcome {
                reply.clear();
                let text = error.to_string();
                worker.books.stats.count_error(&text);
                Reply::new(&mut reply, job.protocol).error(&text);
            }
            *self.apart.running.lock() = None;
            self.set_busy(false);
            let (depends_on, last_batch) = (client.depends_on, client.last_batch);
            *job.ticket.0.lock() = Some(Outcome { reply, depends_on, last_batch });
            job.handle.wake();
        }
    }
}
