//! An engine with nothing real around it but a journal in memory: what a replay has to bring back comes from here.
//! Knows how to ask; refuses to know what, so that several tests and the fuzz target `replay` share it.

use super::host::IdleHost;
use engine::execution::replay::Replay;
use engine::execution::walk::{Placement, SnapshotPart, Walk};
use engine::persistence::journal_state::JournalState;
use engine::persistence::{Report, SnapshotBusy, SnapshotReason};
use engine::{Client, ClientHandle, Clock, Engine, Flow, Persistence, Settings, Worker};
use keyspace::index::{Condition, Definition, HeldWhere};
use resp::{OwnedRequest, Request};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// An engine, the time it is told, and what it has recorded.
pub(crate) struct Place {
    pub(crate) engine: Arc<Engine>,
    pub(crate) kept: Arc<Kept>,
    clock: Arc<ToldClock>,
}

impl Place {
    /// An empty engine with settings other than the defaults.
    pub(crate) fn new(shards: usize, workers: usize, changed: &[(&str, &str)]) -> Place {
        Place::with(shards, workers, settings(changed))
    }

    /// The same with settings that may be shared.
    pub(crate) fn with(shards: usize, workers: usize, settings: Arc<Settings>) -> Place {
        let clock = Arc::new(ToldClock {
            stands: AtomicBool::new(false),
            unix_us: AtomicU64::new(1_763_172_000_000_000),
            unix_look_us: AtomicU64::new(0),
            passed_us: AtomicU64::new(1_763_172_000_000_000),
            look_ns: AtomicU64::new(0),
            looked_ns: AtomicU64::new(0),
        });
        let kept = Arc::new(Kept::default());
        let engine = engine::with_all_commands(settings, Arc::new(IdleHost), clock.clone(), shards, workers);
        let place = Place { engine: Arc::new(engine.with_persistence(kept.clone())), kept, clock };
        let failures = engine::revive_indexes(&place.engine, &configured()).failures;
        assert!(failures.is_empty(), "{failures:?}");
        place
    }

    /// A client on worker `index`.
    pub(crate) fn asker(&self, index: usize) -> Asker<'_> {
        let (id, now_ms) = (self.engine.clients.next_id(), self.now_ms());
        let handle = ClientHandle::new(id, "127.0.0.1:9".into(), "127.0.0.1:6379".into(), 9, now_ms, Box::new(|| {}));
        Asker { engine: &self.engine, worker: self.engine.worker(index), client: Client::new(Arc::new(handle), true) }
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&self, ms: u64) {
        self.clock.unix_us.fetch_add(ms * 1000, Relaxed);
        self.clock.passed_us.fetch_add(ms * 1000, Relaxed);
    }

    /// Sets the clock back or forward, while no time passes.
    pub(crate) fn step_ms(&self, ms: i64) {
        let unix_us = self.clock.unix_us().checked_add_signed(ms * 1000).expect("the time is after 1970");
        self.clock.unix_us.store(unix_us, Relaxed);
    }

    /// From here on each look at the monotonic clock takes so long by that clock.
    pub(crate) fn set_look_ns(&self, ns: u64) {
        self.clock.look_ns.store(ns, Relaxed);
    }

    /// From here on each look at the clock takes so long by that clock.
    pub(crate) fn set_unix_look_ms(&self, ms: u64) {
        self.clock.unix_look_us.store(ms * 1000, Relaxed);
    }

    /// From here on the clock says that time stands still, or no longer.
    pub(crate) fn set_stands(&self, stands: bool) {
        self.clock.stands.store(stands, Relaxed);
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.unix_us() / 1000
    }

    /// Takes over the time of another place.
    pub(crate) fn set_time_of(&self, other: &Place) {
        self.clock.unix_us.store(other.clock.unix_us(), Relaxed);
        self.clock.passed_us.store(other.clock.passed_us.load(Relaxed), Relaxed);
    }

    /// A replay into this place.
    pub(crate) fn replay(&self, placement: Option<Placement>) -> Replay<'_> {
        Replay::new(&self.engine, placement)
    }
}

/// Indexes that are there from the beginning: of everything, and of some records only.
fn configured() -> Vec<(Vec<u8>, Definition)> {
    let definition = |prefixes: &[&str], field: &str, condition| Definition {
        prefixes: prefixes.iter().map(|prefix| prefix.as_bytes().to_vec()).collect(),
        field: field.into(),
        condition,
        ..Definition::default()
    };
    let condition = Condition { field: b"f2".to_vec(), values: vec![b"v".to_vec(), b"1".to_vec()], only: false };
    let held = HeldWhere { field: b"f3".to_vec(), values: vec![b"v".to_vec(), b"7".to_vec()] };
    vec![
        (b"index:all".to_vec(), definition(&[""], "f1", None)),
        (b"index:some".to_vec(), definition(&["a", "c", "{a}"], "f3", Some(condition))),
        (
            b"index:groups".to_vec(),
            Definition { group: Some(b"f2".to_vec()), held: Some(held), ..definition(&[""], "f1", None) },
        ),
    ]
}

/// Settings other than the defaults. No request may ask for half a gigabyte of zeros; small queues reach the limits of claims.
pub(crate) fn settings(changed: &[(&str, &str)]) -> Arc<Settings> {
    let settings = Settings::new();
    let defaults = [("enable-debug-command", "yes"), ("proto-max-bulk-len", "1mb"), ("claim-reject-max", "2")];
    for (name, value) in defaults.iter().chain(changed) {
        settings.load(name.as_bytes(), value.as_bytes()).expect("a setting of that name takes that value");
    }
    Arc::new(settings)
}

/// One client on one worker.
pub(crate) struct Asker<'e> {
    engine: &'e Engine,
    worker: Worker,
    pub(crate) client: Client,
}

impl Asker<'_> {
    /// Executes one request at the present instant and gives back its reply.
    pub(crate) fn ask(&mut self, args: &[Vec<u8>]) -> Vec<u8> {
        let request: OwnedRequest = args.iter().map(Vec::as_slice).collect();
        let mut reply = Vec::new();
        self.engine.begin(&mut self.worker);
        let flow = engine::execute(self.engine, &mut self.worker, &mut self.client, request.as_request(), &mut reply);
        self.settle(flow, request.as_request(), &mut reply);
        reply
    }

    /// The same for words.
    pub(crate) fn say(&mut self, words: &str) -> Vec<u8> {
        self.ask(&words.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>())
    }

    /// Executes requests as a connection does that has several of them in its buffer.
    pub(crate) fn ask_at_once(&mut self, requests: &[Vec<Vec<u8>>]) {
        let owned: Vec<OwnedRequest> =
            requests.iter().map(|request| request.iter().map(Vec::as_slice).collect()).collect();
        let requests: Vec<Request<'_>> = owned.iter().map(OwnedRequest::as_request).collect();
        self.engine.begin(&mut self.worker);
        let mut ahead = engine::look_ahead(self.engine, &self.client, requests.iter().copied());
        for request in requests {
            let mut reply = Vec::new();
            let (worker, client) = (&mut self.worker, &mut self.client);
            let flow = engine::execute_ahead(self.engine, worker, client, request, &mut reply, &mut ahead);
            self.settle(flow, request, &mut reply);
        }
    }

    /// Ends a wait at once, unless a commit is serving the client: then waits for its reply.
    fn settle(&mut self, flow: Flow, request: Request<'_>, reply: &mut Vec<u8>) {
        match flow {
            Flow::Again => {
                let (worker, client) = (&mut self.worker, &mut self.client);
                let flow = engine::execute_to_end(self.engine, worker, client, request, reply);
                self.settle(flow, request, reply);
            }
            Flow::Continue => {}
            Flow::Block(blocked) => loop {
                if let Some(outcome) =
                    engine::outcome(self.engine, &self.worker, &mut self.client, &blocked.event, true)
                {
                    return reply.extend(outcome);
                }
                // What was there before is searched first.
                engine::serve_due_records(self.engine, &mut self.worker);
                std::thread::yield_now();
            },
            Flow::Close | Flow::Paused(_) | Flow::AwaitScript => {
                panic!("only commands that do not end the connection are asked for")
            }
        }
    }

    /// Removes what is overdue, as the server does now and then.
    pub(crate) fn expire(&mut self) {
        engine::expire_cycle(self.engine, &mut self.worker, 0, 1, u64::MAX / 2);
    }
}

/// A journal in memory.
#[derive(Default)]
pub(crate) struct Kept {
    batches: Mutex<Vec<Vec<u8>>>,
}

impl Kept {
    /// All batches with their numbers, in their order.
    pub(crate) fn batches(&self) -> Vec<(u64, Vec<u8>)> {
        self.batches_after(0)
    }

    /// The batches behind that of a number, with their numbers.
    pub(crate) fn batches_after(&self, sequence: u64) -> Vec<(u64, Vec<u8>)> {
        (sequence + 1..).zip(self.locked().iter().skip(sequence as usize).cloned()).collect()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.batches.lock().expect("no thread panics with it")
    }
}

impl Persistence for Kept {
    fn state(&self) -> JournalState {
        JournalState::Sound
    }

    fn readable(&self, _: bool) -> Option<u64> {
        None
    }

    fn is_recording(&self) -> bool {
        true
    }

    fn append(&self, batch: &[u8], _: u64) -> u64 {
        let mut batches = self.locked();
        batches.push(batch.to_vec());
        batches.len() as u64
    }

    fn tail(&self) -> u64 {
        self.locked().len() as u64
    }

    fn durable(&self) -> Option<u64> {
        Some(self.tail())
    }

    fn request_sync(&self) {}

    fn begin_snapshot(&self, _: SnapshotReason) -> Result<u64, SnapshotBusy> {
        Ok(0)
    }

    fn schedule_snapshot(&self, _: SnapshotReason) {}

    fn snapshot_result(&self, _: u64) -> Option<Result<(), String>> {
        Some(Ok(()))
    }

    fn report(&self) -> Report {
        Report::default()
    }
}

/// What a walk has met so far.
pub(crate) struct Taken {
    pub(crate) placement: Placement,
    /// The last batch before the walk.
    pub(crate) begun_after: u64,
    pub(crate) parts: Vec<(SnapshotPart, Vec<u8>)>,
}

impl Taken {
    pub(crate) fn of(walk: &Walk<'_>, begun_after: u64) -> Taken {
        Taken { placement: walk.placement(), begun_after, parts: Vec::new() }
    }

    /// Takes the next part; false when there was none.
    pub(crate) fn step(&mut self, walk: &mut Walk<'_>) -> bool {
        let mut keys = Vec::new();
        let Some(part) = walk.next(&mut keys) else { return false };
        self.parts.push((part, keys));
        true
    }

    /// The batch that even its oldest part has.
    pub(crate) fn oldest(&self) -> u64 {
        self.parts.iter().map(|(part, _)| part.sequence).min().unwrap_or(0)
    }

    pub(crate) fn newest(&self) -> u64 {
        self.parts.iter().map(|(part, _)| part.sequence).max().unwrap_or(0)
    }
}

struct ToldClock {
    stands: AtomicBool,
    unix_us: AtomicU64,
    /// How long a look at it takes by it.
    unix_look_us: AtomicU64,
    /// How much time has passed, whatever the clock was set to.
    passed_us: AtomicU64,
    /// How long a look at the monotonic clock takes by it, and all looks so far.
    look_ns: AtomicU64,
    looked_ns: AtomicU64,
}

impl Clock for ToldClock {
    fn unix_us(&self) -> u64 {
        self.unix_us.fetch_add(self.unix_look_us.load(Relaxed), Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        let look_ns = self.look_ns.load(Relaxed);
        self.passed_us.load(Relaxed) * 1000 + self.looked_ns.fetch_add(look_ns, Relaxed)
    }

    fn stands(&self) -> bool {
        self.stands.load(Relaxed)
    }
}
