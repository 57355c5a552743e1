//! The script thread's queue: scripts that may run long, which one runs now, and how it is stopped. Knows nothing of
//! Lua, and nothing of how a script is run.

use super::Program;
use crate::clients::ClientHandle;
use crate::clients::ticket::Ticket;
use crate::clients::tracking::Tracker;
use locks::{Condvar, Mutex, rank};
use resp::Protocol;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// A script to run on the script thread, with all it needs of its client.
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

/// The queue of the script thread, and the script that it runs.
#[derive(Default)]
pub struct ScriptThread {
    queue: Mutex<VecDeque<Job>, { rank::SCRIPT_QUEUE }>,
    arrived: Condvar,
    /// There is a thread that serves the queue.
    served: AtomicBool,
    running: Mutex<Option<Running>, { rank::SCRIPT_RUNNING }>,
    /// Scripts that run for long where their clients are served: they have written, or they would have been given up.
    long_elsewhere: AtomicUsize,
}

/// The script or function that runs now.
struct Running {
    job: Arc<Job>,
    began_ns: u64,
    /// It has changed something: stopping it would leave a partial change.
    has_written: bool,
    to_be_killed: bool,
}

/// What FUNCTION STATS shows of the running function.
pub struct RunningFunction {
    pub name: Vec<u8>,
    pub command: Vec<Vec<u8>>,
    pub took_ms: u64,
}

/// Script or function.
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
    /// SCRIPT KILL was sent while a function runs, or FUNCTION KILL while a script does.
    IsOther,
}

impl ScriptThread {
    /// True when a thread serves the queue, so that scripts can be sent.
    pub fn is_served(&self) -> bool {
        self.served.load(Relaxed)
    }

    /// Queues a script.
    pub fn send(&self, job: Job) {
        self.queue.lock().push_back(job);
        self.arrived.notify_one();
    }

    /// Stops the running script or function at its next step.
    pub fn kill(&self, kind: ProgramKind) -> Result<(), Unkillable> {
        match &mut *self.running.lock() {
            None if self.long_elsewhere.load(Relaxed) > 0 => Err(Unkillable::HasWritten),
            None => Err(Unkillable::NotRunning),
            Some(running) if running.has_written => Err(Unkillable::HasWritten),
            Some(running) if running.job.kind() != kind => Err(Unkillable::IsOther),
            Some(running) => {
                running.to_be_killed = true;
                Ok(())
            }
        }
    }

    /// Whether a script or a function runs now, if any does.
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

    /// Notes that the running script has written, so that it cannot be killed any more.
    pub(crate) fn note_written(&self) {
        if let Some(running) = &mut *self.running.lock() {
            running.has_written = true;
        }
    }

    /// Notes that a script runs for long elsewhere.
    pub(crate) fn begin_elsewhere(&self) {
        self.long_elsewhere.fetch_add(1, Relaxed);
    }

    /// It has ended.
    pub(crate) fn end_elsewhere(&self) {
        self.long_elsewhere.fetch_sub(1, Relaxed);
    }

    /// True when the running script is to stop.
    pub(crate) fn is_to_be_killed(&self) -> bool {
        self.running.lock().as_ref().is_some_and(|running| running.to_be_killed)
    }

    /// Notes that a script begins to run.
    pub(crate) fn begin(&self, job: &Arc<Job>, began_ns: u64) {
        *self.running.lock() = Some(Running { job: job.clone(), began_ns, has_written: false, to_be_killed: false });
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        *self.running.lock() = None;
    }

    /// Notes that a thread serves the queue from now on.
    pub(crate) fn set_served(&self) {
        self.served.store(true, Relaxed);
    }

    /// The next script; waits until there is one.
    pub(crate) fn next(&self) -> Job {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.pop_front() {
                return job;
            }
            self.arrived.wait(&mut queue);
        }
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
