//! Scripts that may run long, on a thread of their own: who waits for which, which one runs, and how it is stopped.
//! Knows nothing of Lua.

use super::Program;
use crate::client::Client;
use crate::clients::ClientHandle;
use crate::command::registry;
use crate::engine::{Engine, Worker};
use crate::tracking::Tracker;
use crate::waiting::Ticket;
use locks::{Condvar, Mutex, rank};
use resp::{OwnedRequest, Protocol, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A script to be run apart, with all it needs of its client.
pub struct Job {
    pub program: Program,
    /// The command's name, as the client wrote it, and its first argument.
    pub command: [Vec<u8>; 2],
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

/// Scripts that run apart.
#[derive(Default)]
pub struct Apart {
    queue: Mutex<VecDeque<Job>, { rank::SCRIPT_QUEUE }>,
    arrived: Condvar,
    /// There is a thread that serves the queue.
    served: AtomicBool,
    running: Mutex<Option<Running>, { rank::SCRIPT_RUNNING }>,
}

/// The script or function that runs now.
struct Running {
    job: Arc<Job>,
    began_ns: u64,
    /// It has changed something: stopping it would leave half of it behind.
    has_written: bool,
    to_be_killed: bool,
}

/// What FUNCTION STATS tells of a function that runs.
pub struct RunningFunction {
    pub name: Vec<u8>,
    pub command: Vec<Vec<u8>>,
    pub took_ms: u64,
}

/// Which of the two is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramKind {
    Script,
    Function,
}

/// Why a script or function cannot be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unkillable {
    NotRunning,
    HasWritten,
    /// It is a function, or it is none: whoever asked meant the other.
    IsOther,
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

    /// Has the running script or function stop at its next step.
    pub fn kill(&self, kind: ProgramKind) -> Result<(), Unkillable> {
        match &mut *self.running.lock() {
            None => Err(Unkillable::NotRunning),
            Some(running) if running.has_written => Err(Unkillable::HasWritten),
            Some(running) if running.job.kind() != kind => Err(Unkillable::IsOther),
            Some(running) => {
                running.to_be_killed = true;
                Ok(())
            }
        }
    }

    /// Which of the two runs, if any does.
    pub fn running(&self) -> Option<ProgramKind> {
        self.running.lock().as_ref().map(|running| running.job.kind())
    }

    /// The function that runs, if one does.
    pub fn running_function(&self, now_ns: u64) -> Option<RunningFunction> {
        let running = self.running.lock();
        let running = running.as_ref().filter(|running| running.job.kind() == ProgramKind::Function)?;
        let job = &running.job;
        let count = job.keys.len().to_string().into_bytes();
        let command = job.command.iter().chain([&count]).chain(&job.keys).chain(&job.args);
        Some(RunningFunction {
            name: job.program.name().to_vec(),
            command: command.cloned().collect(),
            took_ms: now_ns.saturating_sub(running.began_ns) / 1_000_000,
        })
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
    /// Adds what a script took to the books of its command, which has been counted as a call when it was sent here.
    fn note_script_time(&self, worker: &Worker, client: &Client, job: &Job, began_ns: u64) {
        let Some(row) = registry().find(&job.command[0]) else { return };
        let took_ns = self.clock.monotonic_ns().saturating_sub(began_ns);
        worker.books.stats.commands[row.index].ns.add(took_ns);
        let count = job.keys.len().to_string().into_bytes();
        let words = job.command.iter().chain([&count]).chain(&job.keys).chain(&job.args);
        let request: OwnedRequest = words.map(Vec::as_slice).collect();
        self.note_slow(worker, client, row, request.as_request(), took_ns);
    }
}

impl Job {
    fn kind(&self) -> ProgramKind {
        match self.program {
            Program::Script(_) => ProgramKind::Script,
            Program::Function(..) => ProgramKind::Function,
        }
    }
}

impl Engine {
    /// Runs scripts that were sent apart, for as long as the process lives. Called on a thread that does nothing else.
    pub fn serve_scripts(&self, mut worker: Worker) -> ! {
        self.apart.served.store(true, Relaxed);
        loop {
            let job = Arc::new(self.apart.next());
            self.begin(&mut worker);
            // A client of its own: what a script does to its connection ends with it.
            let mut client = Client::new(job.handle.clone(), true);
            client.db = job.db;
            client.protocol = job.protocol;
            client.tracker = job.tracker.clone();
            client.caching = job.caching;
            let began_ns = self.clock.monotonic_ns();
            *self.apart.running.lock() =
                Some(Running { job: job.clone(), began_ns, has_written: false, to_be_killed: false });
            let mut reply = Vec::new();
            let keys: Vec<&[u8]> = job.keys.iter().map(Vec::as_slice).collect();
            let args: Vec<&[u8]> = job.args.iter().map(Vec::as_slice).collect();
            let mut writer = Reply::new(&mut reply, job.protocol);
            let outcome = self.run_program(
                &mut worker,
                &mut client,
                &job.program,
                &keys,
                &args,
                job.read_only,
                &mut writer,
                None,
            );
            if let Err(error) = outcome {
                reply.clear();
                let text = error.to_string();
                worker.books.stats.count_error(&text);
                Reply::new(&mut reply, job.protocol).error(&text);
            }
            *self.apart.running.lock() = None;
            self.set_busy(false);
            self.note_script_time(&worker, &client, &job, began_ns);
            job.ticket.put(reply, &client);
            job.handle.wake();
        }
    }
}
