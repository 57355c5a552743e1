//! The background thread: index backfills, commands on copies of indexes, and sweeps from the configuration. Knows when
//! each is due; refuses to know how it is done.

mod copies;

use self::copies::CopyJob;
use crate::records::check_sweep;
use execution::acl::User;
use execution::acl::user::server_user;
use execution::background_tasks::{BackgroundTask, IndexBackfill, SlicedWork};
use execution::client::Client;
use execution::clients::ClientHandle;
use execution::clients::account::usage::NO_WORKER;
use execution::engine::Engine;
use execution::execute;
use execution::flow::Flow;
use execution::indexes;
use execution::reply_limit;
use execution::slices::SLICE_NS;
use execution::sweepers::SweeperReport;
use execution::waiting;
use execution::worker::Worker;
use resp::{OwnedRequest, Reply};
use std::sync::Arc;
use std::time::Duration;

/// A sweep that is repeated at an interval.
pub struct Sweeper {
    pub index: String,
    pub every: Duration,
    /// Records with an older score are swept.
    pub older_than_ms: u64,
    pub db: usize,
    /// The options of SWEEP, after the index and the time.
    pub options: Vec<Vec<u8>>,
    /// The user with whose rights it sweeps; without one, the server itself, which has all.
    pub user: Option<String>,
}

impl Sweeper {
    /// Returns why its sweeps would be refused, if so. Called at the start, to find a configuration that cannot work.
    pub fn check(&self, now_ms: u64) -> Result<(), String> {
        check_sweep(self.request(now_ms).as_request(), now_ms).map_err(|error| error.to_string())
    }

    fn report(&self) -> SweeperReport {
        SweeperReport {
            index: self.index.clone(),
            db: self.db,
            user: self.user.clone(),
            sweeps: 0,
            failures: 0,
            failure: None,
        }
    }

    /// The user with whose rights it sweeps now.
    fn find_user(&self, engine: &Engine) -> Result<Arc<User>, String> {
        let Some(name) = &self.user else { return Ok(server_user()) };
        match engine.acl.find(name.as_bytes()) {
            None => Err(format!("its user {name} does not exist")),
            Some(user) if !user.rights().is_on => Err(format!("its user {name} is off")),
            Some(user) => Ok(user),
        }
    }

    fn request(&self, now_ms: u64) -> OwnedRequest {
        let before = now_ms.saturating_sub(self.older_than_ms).to_string();
        let mut request = OwnedRequest::default();
        [b"SWEEP", self.index.as_bytes(), b"BEFORE", before.as_bytes()].into_iter().for_each(|arg| request.push(arg));
        self.options.iter().for_each(|arg| request.push(arg));
        request
    }
}

/// Runs background tasks for as long as the process lives. Called on a thread that does nothing else.
pub fn serve_background_tasks(engine: &Engine, mut worker: Worker, sweepers: &[Sweeper]) -> ! {
    const IDLE: Duration = Duration::from_secs(3600);
    engine.background_tasks.set_served();
    let now_ns = || engine.clock.monotonic_ns();
    engine.sweepers.set(sweepers.iter().map(Sweeper::report).collect());
    let mut failures: Vec<Option<String>> = vec![None; sweepers.len()];
    let mut due: Vec<u64> = sweepers.iter().map(|sweeper| now_ns() + sweeper.every.as_nanos() as u64).collect();
    loop {
        let soonest = due.iter().min().map_or(IDLE, |at| Duration::from_nanos(at.saturating_sub(now_ns())));
        if let Some(task) = engine.background_tasks.next(soonest)
            && run_task(engine, &mut worker, task)
        {
            // Other threads get as much time as the work.
            std::thread::sleep(Duration::from_nanos(SLICE_NS));
        }
        for (at, due) in due.iter_mut().enumerate().filter(|(_, due)| **due <= now_ns()) {
            let sweeper = &sweepers[at];
            let failure = sweep(engine, &mut worker, sweeper);
            // Log an error when it begins, changes or ends, not at every interval.
            if failure != failures[at] {
                match &failure {
                    Some(error) => tracing::warn!(index = %sweeper.index, %error, "the sweeper could not sweep"),
                    None => tracing::info!(index = %sweeper.index, "the sweeper sweeps again"),
                }
            }
            engine.sweepers.note(at, failure.clone());
            failures[at] = failure;
            *due = now_ns() + sweeper.every.as_nanos() as u64;
        }
    }
}

/// Does one slice of the next background task, for a caller that serves the queue in place of the background thread.
/// False when there is none. After the first call, commands leave work to it.
pub fn serve_background_slice(engine: &Engine, worker: &mut Worker) -> bool {
    engine.background_tasks.set_served();
    match engine.background_tasks.next(Duration::ZERO) {
        Some(task) => {
            run_task(engine, worker, task);
            true
        }
        None => false,
    }
}

/// Does one slice of a task, and queues the rest. True when there is more.
fn run_task(engine: &Engine, worker: &mut Worker, task: BackgroundTask) -> bool {
    match task {
        BackgroundTask::Backfill(backfill) => {
            run_backfill(engine, worker, &backfill);
            false
        }
        BackgroundTask::OnCopy(command) => {
            let mut job = Some(CopyJob::new(engine, command));
            let go_on = Box::new(move |engine: &Engine, worker: &mut Worker| {
                job = job.take().and_then(|job| copies::run_on_copies(engine, worker, job));
                job.is_some()
            });
            run_task(engine, worker, BackgroundTask::Continued(go_on))
        }
        BackgroundTask::Continued(mut go_on) => {
            let has_more = go_on(engine, worker);
            if has_more {
                engine.background_tasks.send(BackgroundTask::Continued(go_on));
            }
            has_more
        }
        BackgroundTask::InSlices(work) => run_slice(engine, worker, work),
    }
}

/// Does one slice of a command's work, and queues the rest. True when there is more.
fn run_slice(engine: &Engine, worker: &mut Worker, mut work: SlicedWork) -> bool {
    engine.begin(worker);
    let outcome = (work.step)(engine, worker);
    engine.persistence.write();
    if waiting::queueing::has_deferred(engine) {
        waiting::serving::serve_deferred(engine, worker);
    }
    let Some(outcome) = outcome else {
        engine.background_tasks.send(BackgroundTask::InSlices(work));
        return true;
    };
    let mut reply = Vec::new();
    let mut writer = Reply::new(&mut reply, work.protocol);
    match outcome {
        Ok(answer) => answer(&mut writer),
        Err(error) => writer.error(&error.to_string()),
    }
    if reply.len() > work.reply_bytes_max {
        reply.clear();
        Reply::new(&mut reply, work.protocol).error(&reply_limit::refuse(&work.handle).to_string());
    }
    // IMPORTANT: before its client learns that the work has ended. This drops the token of its database.
    drop(work.step);
    work.ticket.put_done(reply, engine.persistence.tail());
    work.handle.wake();
    false
}

fn run_backfill(engine: &Engine, worker: &mut Worker, backfill: &IndexBackfill) {
    engine.begin(worker);
    let outcome = indexes::backfill_index(engine, worker, &backfill.index);
    let mut reply = Vec::new();
    let mut writer = Reply::new(&mut reply, backfill.protocol);
    let sequence = match outcome {
        Ok(sequence) => {
            (backfill.reply)(&mut writer);
            sequence
        }
        Err(error) => {
            writer.error(&error.to_string());
            // It reveals that another client has dropped the index.
            engine.persistence.tail()
        }
    };
    backfill.ticket.put_done(reply, sequence);
    backfill.handle.wake();
}

/// Runs a sweep. Returns why it failed, if it did.
fn sweep(engine: &Engine, worker: &mut Worker, sweeper: &Sweeper) -> Option<String> {
    let (id, now_ms) = (engine.clients.next_id(), engine.clock.unix_us() / 1000);
    let handle = ClientHandle::new(id, "sweeper".into(), String::new(), -1, now_ms, Box::new(|| {}));
    let mut client = Client::new(Arc::new(handle), true);
    // At each sweep: a right that is taken away is gone at once.
    let user = match sweeper.find_user(engine) {
        Ok(user) => user,
        Err(why) => return Some(why),
    };
    client.user = Some(user.clone());
    client.db = sweeper.db;
    engine.begin(worker);
    let mut reply = Vec::new();
    let request = sweeper.request(worker.now_ms);
    let flow = execute::execute_to_end(engine, worker, &mut client, request.as_request(), &mut reply);
    user.account.counters.add(NO_WORKER, &client.tally.with_bytes(0, 0));
    // These pass by themselves, or are the writer's to do.
    const NO_FAILURES: [&[u8]; 3] = [b"-LOADING", b"-BUSY", b"-READONLY"];
    let failed = reply.first() == Some(&b'-') && !NO_FAILURES.iter().any(|code| reply.starts_with(code));
    if let Flow::Paused(_) = flow {
        // It does not wait: it comes again.
        engine.pause.forget(&client.handle);
    }
    let failed = failed || !matches!(flow, Flow::Continue | Flow::Paused(_));
    failed.then(|| String::from_utf8_lossy(&reply).trim_end().to_owned())
}
