//! The state server without its sockets: all its state in one place. What it does is in the files beside this one.

use super::worker::{Worker, WorkerBooks};
use crate::clients::Clients;
use crate::clients::pause::Pause;
use crate::clients::pubsub::PubSub;
use crate::clients::tracking::Tracking;
use crate::execution::background_tasks::BackgroundTasks;
use crate::execution::batch_limit::BATCH_BYTES_MAX;
use crate::execution::command::{Handler, Registry};
use crate::execution::commit::PendingBatch;
use crate::execution::eviction::{Candidates, Eviction};
use crate::execution::forks::Forks;
use crate::execution::interactive::EndedTransactions;
use crate::execution::register_restores::Restores;
use crate::execution::scripts::{Functions, ScriptThread, Scripts};
use crate::execution::sessions::Sessions;
use crate::execution::transaction::WatchList;
use crate::execution::waiting::keys::KeyWaiters;
use crate::execution::waiting::records::RecordWaiters;
use crate::host::{Clock, Host};
use crate::observability::latency::{Histograms, Monitor};
use crate::observability::monitor::Monitors;
use crate::observability::slowlog::SlowLog;
use crate::observability::stats::{Sampler, Totals, WorkerStats};
use crate::persistence::{NoPersistence, Persistence};
use crate::settings::events::Events;
use crate::settings::{self, Settings};
use keyspace::Thresholds;
use keyspace::index::Indexes;
use keyspace::locked::Garbage;
use keyspace::types::THRESHOLD_SETTINGS;
use keyspace::{Keyspace, Usage};
use locks::{Mutex, RwLock, rank};
use resp::OwnedRequest;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The state server without its sockets.
pub struct Engine {
    /// All commands.
    pub registry: &'static Registry,
    pub keyspace: Keyspace,
    pub settings: Arc<Settings>,
    /// Rows of the settings that say when a small value becomes a large one.
    threshold_rows: [usize; THRESHOLD_SETTINGS.len()],
    pub clients: Clients,
    pub monitors: Monitors,
    pub pubsub: PubSub,
    pub tracking: Tracking,
    pub scripts: Scripts,
    pub functions: Functions,
    /// Indexes of records.
    pub(crate) indexes: RwLock<Indexes, { rank::INDEXES }>,
    /// Names of the indexes that the configuration asks for.
    pub(crate) configured_indexes: RwLock<BTreeSet<Vec<u8>>, { rank::CONFIGURED_INDEXES }>,
    /// Work of the background thread.
    pub background_tasks: BackgroundTasks,
    /// One of them stamps records.
    pub(crate) stamps: AtomicBool,
    /// Scripts that may run long.
    pub script_thread: ScriptThread,
    pub pause: Pause,
    pub slowlog: SlowLog,
    pub latency: Monitor,
    pub host: Arc<dyn Host>,
    pub clock: Arc<dyn Clock>,
    /// Unix milliseconds at which the engine was made.
    /// Nanoseconds of the monotonic clock.
    pub started_ns: u64,
    /// Forty hexadecimal digits that identify this run of the server.
    pub run_id: String,
    /// Stores the effects: the journal and snapshots.
    pub persistence: Arc<dyn Persistence>,
    /// Watches of disconnected clients, to be removed.
    pub(crate) left_watches: Mutex<Vec<WatchList>, { rank::LEFT_WATCHES }>,
    /// How many keys are watched.
    pub(crate) watches: Apart,
    /// Interactive transactions that were not committed.
    pub transactions: EndedTransactions,
    /// Forks of cells that are under way.
    pub(crate) forks: Forks,
    /// Restores of registers in slices that are under way.
    pub(crate) restores: Restores,
    /// What all sessions have in common.
    pub sessions: Sessions,
    /// What is known of memory beyond the limit.
    pub eviction: Eviction,
    /// Clients that wait for keys.
    pub(crate) waiters: KeyWaiters,
    /// Clients that wait for records of indexes.
    pub(crate) record_waiters: Arc<RecordWaiters>,
    /// The number of the last wait.
    pub(crate) last_wait: AtomicU64,
    /// How many walks over all keys are under way.
    pub(crate) walks: AtomicUsize,
    /// How often the parts of walks were spoiled.
    pub(crate) walks_spoiled: AtomicUsize,
    /// Bits of [`restriction`](crate::execution::gates).
    pub(crate) restrictions: AtomicU8,
    /// Why writes are refused, if they are.
    pub(crate) refusal: Mutex<String, { rank::REFUSAL }>,
    /// The longest batch of the journal; DEBUG SET-BATCH-BYTES-MAX.
    pub(crate) batch_bytes_max: AtomicUsize,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call commands that are flagged `noscript`.
    pub scripts_call_anything: AtomicBool,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expiry: AtomicBool,
    /// The peak of memory in use, and memory in use before there was any data.
    pub peak_memory: AtomicU64,
    pub startup_memory: AtomicU64,
    /// How busy the server is.
    pub sampler: Sampler,
    /// What a replica would know this server's history by: the run's own id, unless DEBUG CHANGE-REPL-ID changed it.
    pub replication_id: Mutex<String, { rank::REPLICATION_ID }>,
    /// Unix milliseconds of the last CONFIG RESETSTAT.
    pub stats_since_ms: AtomicU64,
    workers: Vec<Arc<WorkerBooks>>,
}

/// A counter alone on its cache lines: every transaction writes it, and what lies around it is read by every command.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Apart(AtomicUsize);

impl std::ops::Deref for Apart {
    type Target = AtomicUsize;

    #[inline]
    fn deref(&self) -> &AtomicUsize {
        &self.0
    }
}

impl Engine {
    /// An engine with these commands, `workers` worker threads to come and an empty keyspace of `shards` shards.
    pub fn with_commands(
        registry: &'static Registry,
        settings: Arc<Settings>,
        host: Arc<dyn Host>,
        clock: Arc<dyn Clock>,
        shards: usize,
        workers: usize,
    ) -> Engine {
        let rows = registry.rows().len();
        let (started_ms, started_ns) = (clock.unix_us() / 1000, clock.monotonic_ns());
        let mut random = fastrand::Rng::with_seed(clock.unix_us() ^ u64::from(host.process_id()) << 32);
        let books = || Arc::new(WorkerBooks { stats: WorkerStats::new(rows), histograms: Histograms::new(rows) });
        let run_id = random_id(&mut random);
        Engine {
            registry,
            keyspace: Keyspace::new(shards),
            threshold_rows: THRESHOLD_SETTINGS.map(settings::row_of),
            settings,
            clients: Clients::default(),
            monitors: Monitors::default(),
            pubsub: PubSub::default(),
            tracking: Tracking::default(),
            scripts: Scripts::default(),
            functions: Functions::default(),
            indexes: RwLock::default(),
            configured_indexes: RwLock::default(),
            background_tasks: BackgroundTasks::default(),
            stamps: AtomicBool::new(false),
            script_thread: ScriptThread::default(),
            pause: Pause::default(),
            slowlog: SlowLog::default(),
            latency: Monitor::default(),
            host,
            clock,
            started_ns,
            replication_id: Mutex::new(run_id.clone()),
            run_id,
            persistence: Arc::new(NoPersistence),
            left_watches: Mutex::default(),
            watches: Apart::default(),
            transactions: EndedTransactions::default(),
            forks: Forks::default(),
            restores: Restores::default(),
            sessions: Sessions::default(),
            eviction: Eviction::default(),
            waiters: KeyWaiters::default(),
            record_waiters: Arc::default(),
            last_wait: AtomicU64::new(0),
            walks: AtomicUsize::new(0),
            walks_spoiled: AtomicUsize::new(0),
            restrictions: AtomicU8::new(0),
            refusal: Mutex::default(),
            batch_bytes_max: AtomicUsize::new(BATCH_BYTES_MAX),
            scripts_call_anything: AtomicBool::new(false),
            active_expiry: AtomicBool::new(true),
            peak_memory: AtomicU64::new(0),
            startup_memory: AtomicU64::new(0),
            sampler: Sampler::default(),
            stats_since_ms: AtomicU64::new(started_ms),
            workers: (0..workers.max(1)).map(|_| books()).collect(),
        }
    }

    /// Sets where effects are stored.
    pub fn with_persistence(mut self, persistence: Arc<dyn Persistence>) -> Engine {
        self.persistence = persistence;
        self
    }

    /// The working state of worker `index`. Each worker takes its own once.
    pub fn worker(&self, index: usize) -> Worker {
        let seed = self.clock.unix_us() ^ self.clock.monotonic_ns().rotate_left(32) ^ index as u64;
        self.startup_memory.fetch_max(self.host.used_memory(), Relaxed);
        Worker {
            books: self.workers[index].clone(),
            random: fastrand::Rng::with_seed(seed),
            now_ms: self.clock.unix_us() / 1000,
            now_us: self.clock.unix_us(),
            secrets: Vec::new(),
            batch: PendingBatch::default(),
            spare_transactions: Vec::new(),
            shards_to_expire: 0,
            candidates: Candidates::default(),
            lua: None,
            script_reply: Vec::new(),
            script_request: OwnedRequest::default(),
            in_script: false,
            is_script_thread: false,
            script_has_failed: false,
            in_hook: false,
            last_ns: self.clock.monotonic_ns(),
            ahead_ns: 0,
        }
    }

    /// Every worker's books.
    pub fn books(&self) -> &[Arc<WorkerBooks>] {
        &self.workers
    }

    /// The counters of all workers together.
    pub fn totals(&self) -> Totals {
        Totals::of(self.workers.iter().map(|books| &books.stats))
    }

    /// Periodic work, about ten times a second: samples counters and memory, and retries clean-ups that a lock had
    /// delayed.
    pub fn sample(&self) {
        self.remove_left_watches();
        self.leave_left_queues();
        self.clock.adjust();
        self.sampler.note(self.clock.monotonic_ns(), &self.totals());
        self.peak_memory.fetch_max(self.host.used_memory(), Relaxed);
    }

    /// Begins a batch of requests. Each sees the instant at which the one before it ended.
    pub fn begin(&self, worker: &mut Worker) {
        let (unix_us, monotonic_ns) = self.clock.both();
        worker.now_ms = unix_us / 1000;
        worker.now_us = unix_us;
        worker.last_ns = monotonic_ns;
        worker.ahead_ns = (unix_us * 1000).wrapping_sub(monotonic_ns);
    }

    /// Frees removed values off the request path, where the host can.
    #[inline]
    pub(crate) fn free(&self, garbage: Garbage) {
        if !garbage.is_empty() {
            self.host.discard(Box::new(self.eviction.counted(garbage)));
        }
    }

    /// The classes of events that a command publishes.
    #[inline]
    pub(crate) fn published_events(&self, handler: Handler) -> Events {
        match self.settings.notify_keyspace_events().published() {
            none if none.is_empty() => none,
            // While expiry is off, expired keys read as absent but are not removed, so no "expired" event is due.
            told if matches!(handler, Handler::Read(_)) && !self.may_expire() => told & Events::KEY_MISS,
            told => told,
        }
    }

    /// What is remembered of the use of keys.
    #[inline]
    pub(crate) fn usage(&self, random: &mut fastrand::Rng) -> Usage {
        if !self.settings.maxmemory_policy().is_lfu() {
            return Usage::Time;
        }
        let (log_factor, decay_minutes) = (self.settings.lfu_log_factor(), self.settings.lfu_decay_time());
        Usage::Frequency { log_factor, decay_minutes, draw: random.u32(..) }
    }

    /// When small values become large ones.
    #[inline]
    pub fn thresholds(&self) -> Thresholds {
        Thresholds::of(self.threshold_rows.map(|row| self.settings.size(row) as usize))
    }
}

/// Forty random hexadecimal digits.
pub(crate) fn random_id(random: &mut fastrand::Rng) -> String {
    (0..40).map(|_| char::from_digit(random.u32(..16), 16).unwrap_or('0')).collect()
}
