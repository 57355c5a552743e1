//! The background thread: index backfills, commands on copies of indexes, and sweeps that the configuration asks for.
//! Knows when each is due; refuses to know how it is done.

mod copies;

use crate::clients::ClientHandle;
use crate::commands::records::check_sweep;
use crate::execution::background_tasks::{IndexBackfill, SlicedWork, Task};
use crate::execution::client::Client;
use crate::execution::engine::Engine;
use crate::execution::execute::Flow;
use crate::execution::indexes::SLICE_NS;
use crate::execution::worker::Worker;
use resp::{OwnedRequest, Reply};
use std::sync::Arc;
use std::time::Duration;

/// A sweep that is made again and again.
pub struct Sweeper {
    pub index: String,
    pub every: Duration,
    /// Records are swept whose score is older than that.
    pub older_than_ms: u64,
    pub db: usize,
    /// The options of SWEEP, after the index and the time.
    pub options: Vec<Vec<u8>>,
}

impl Sweeper {
    /// Why its sweeps would be refused, if so. A configuration that cannot work is found out at the start.
    pub fn check(&self, now_ms: u64) -> Result<(), String> {
        check_sweep(self.request(now_ms).as_request(), now_ms).map_err(|error| error.to_string())
    }

    fn request(&self, now_ms: u64) -> OwnedRequest {
        let before = now_ms.saturating_sub(self.older_than_ms).to_string();
        let mut request = OwnedRequest::default();
        [b"SWEEP", self.index.as_bytes(), b"BEFORE", before.as_bytes()].into_iter().for_each(|arg| request.push(arg));
        self.options.iter().for_each(|arg| request.push(arg));
        request
    }
}

impl Engine {
    /// Runs background tasks for as long as the process lives. Called on a thread that does nothing else.
    pub fn serve_background_tasks(&self, mut worker: Worker, sweepers: &[Sweeper]) -> ! {
        const IDLE: Duration = Duration::from_secs(3600);
        self.background_tasks.set_served();
        let now_ns = || self.clock.monotonic_ns();
        let mut failures: Vec<Option<String>> = vec![None; sweepers.len()];
        let mut due: Vec<u64> = sweepers.iter().map(|sweeper| now_ns() + sweeper.every.as_nanos() as u64).collect();
        loop {
            let soonest = due.iter().min().map_or(IDLE, |at| Duration::from_nanos(at.saturating_sub(now_ns())));
            match self.background_tasks.next(soonest) {
                Some(Task::Backfill(backfill)) => self.run_backfill(&mut worker, &backfill),
                Some(Task::OnCopy(command)) => self.run_on_copies(&mut worker, &command),
                Some(Task::InSlices(work)) => self.run_slice(&mut worker, work),
                None => {}
            }
            for (at, due) in due.iter_mut().enumerate().filter(|(_, due)| **due <= now_ns()) {
                let sweeper = &sweepers[at];
                let failure = self.sweep(&mut worker, sweeper);
                // Log an error when it begins, changes or ends, not at every interval.
                if failure != failures[at] {
                    let text =
                        failure.as_ref().map_or("sweeps again".to_owned(), |why| format!("could not sweep: {why}"));
                    self.host.log(&format!("the sweeper of {} {text}", sweeper.index));
                }
                failures[at] = failure;
                *due = now_ns() + sweeper.every.as_nanos() as u64;
            }
        }
    }

    /// Does a slice of some work, and leaves the rest for later.
    fn run_slice(&self, worker: &mut Worker, mut work: SlicedWork) {
        self.begin(worker);
        let outcome = (work.step)(self, worker);
        self.persistence.write();
        if self.has_deferred() {
            self.serve_deferred(worker);
        }
        let Some(outcome) = outcome else {
            // Others have as much time as the work.
            std::thread::sleep(Duration::from_nanos(SLICE_NS));
            return self.background_tasks.send(Task::InSlices(work));
        };
        let mut reply = Vec::new();
        let mut writer = Reply::new(&mut reply, work.protocol);
        match outcome {
            Ok(answer) => answer(&mut writer),
            Err(error) => writer.error(&error.to_string()),
        }
        work.ticket.put_done(reply, self.persistence.tail());
        work.handle.wake();
    }

    fn run_backfill(&self, worker: &mut Worker, backfill: &IndexBackfill) {
        self.begin(worker);
        let outcome = self.backfill_index(worker, &backfill.index);
        let mut reply = Vec::new();
        let mut writer = Reply::new(&mut reply, backfill.protocol);
        let sequence = match outcome {
            Ok(sequence) => {
                writer.ok();
                sequence
            }
            Err(error) => {
                writer.error(&error.to_string());
                0
            }
        };
        backfill.ticket.put_done(reply, sequence);
        backfill.handle.wake();
    }

    /// Why it could not, if so.
    fn sweep(&self, worker: &mut Worker, sweeper: &Sweeper) -> Option<String> {
        let (id, now_ms) = (self.clients.next_id(), self.clock.unix_us() / 1000);
        let handle = ClientHandle::new(id, "sweeper".into(), String::new(), -1, now_ms, Box::new(|| {}));
        let mut client = Client::new(Arc::new(handle), true);
        client.db = sweeper.db;
        self.begin(worker);
        let mut reply = Vec::new();
        let request = sweeper.request(worker.now_ms);
        let flow = self.execute_to_end(worker, &mut client, request.as_request(), &mut reply);
        let failed = reply.first() == Some(&b'-') && !reply.starts_with(b"-LOADING") && !reply.starts_with(b"-BUSY");
        let failed = failed || !matches!(flow, Flow::Continue);
        failed.then(|| String::from_utf8_lossy(&reply).trim_end().to_owned())
    }
}
