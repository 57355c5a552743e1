//! The state server without its sockets: all its state in one place. Its procedures are in the files beside this one.

use super::worker::Worker;
use crate::acl::Acl;
use crate::background_tasks::BackgroundTasks;
use crate::clients::Clients;
use crate::clients::pause::Pause;
use crate::clients::pubsub::PubSub;
use crate::clients::tracking::Tracking;
use crate::command::Registry;
use crate::database_tokens::Databases;
use crate::eviction::{Candidates, Eviction};
use crate::forks::Forks;
use crate::host::{Clock, Host};
use crate::indexes::IndexCatalogue;
use crate::instants::Instants;
use crate::interactive::EndedTransactions;
use crate::observability::hot_keys::HotKeys;
use crate::observability::latency::Monitor;
use crate::observability::monitor::Monitors;
use crate::observability::slowlog::SlowLog;
use crate::observability::statistics::{Statistics, WorkerMetrics};
use crate::parts::{DebugSwitches, Identity, Procedures, Scripting, Waiting};
use crate::pending_batch::PendingBatch;
use crate::persistence::{NoPersistence, Persistence};
use crate::register_restores::Restores;
use crate::restrictions::Restrictions;
use crate::sessions::Sessions;
use crate::settings::{self, Settings};
use crate::sweepers::Sweepers;
use crate::walks::Walks;
use crate::watches::WatchedKeys;
use keyspace::Thresholds;
use keyspace::garbage::Garbage;
use keyspace::types::THRESHOLD_SETTINGS;
use keyspace::{Keyspace, Usage};
use resp::OwnedRequest;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The state server without its sockets.
pub struct Engine {
    /// All commands.
    pub registry: &'static Registry,
    pub keyspace: Keyspace,
    pub settings: Arc<Settings>,
    /// Rows of the settings with the size limits of compact encodings.
    threshold_rows: [usize; THRESHOLD_SETTINGS.len()],
    /// Users and their rights.
    pub acl: Acl,
    pub clients: Clients,
    pub monitors: Monitors,
    pub pubsub: PubSub,
    pub tracking: Tracking,
    /// Indexes of records.
    pub indexes: IndexCatalogue,
    /// Work of the background thread.
    pub background_tasks: BackgroundTasks,
    /// How sweepers fare.
    pub sweepers: Sweepers,
    pub pause: Pause,
    pub slowlog: SlowLog,
    pub latency: Monitor,
    /// What HOTKEYS counts.
    pub hot_keys: HotKeys,
    pub host: Arc<dyn Host>,
    pub clock: Arc<dyn Clock>,
    /// Stores the effects: the journal and snapshots.
    pub persistence: Arc<dyn Persistence>,
    /// Keys that clients watch.
    pub watches: WatchedKeys,
    /// Counters of interactive transactions that were not committed.
    pub transactions: EndedTransactions,
    /// Forks of cells in progress.
    pub forks: Forks,
    /// Instants that read-only transactions read at.
    pub instants: Instants,
    /// Restores of registers in progress.
    pub restores: Restores,
    /// Databases in which commands work in slices.
    pub databases: Arc<Databases>,
    /// State that all sessions share.
    pub sessions: Sessions,
    /// The state of eviction.
    pub eviction: Eviction,
    /// Walks over all keys, for snapshots.
    pub walks: Walks,
    /// Conditions under which commands are refused.
    pub restrictions: Restrictions,
    /// Clients that wait for keys and for records.
    pub waiting: Waiting,
    /// Scripts and functions, and the threads on which long ones run.
    pub scripting: Scripting,
    /// How other servers and clients identify this server.
    pub identity: Identity,
    /// Counters of all workers, and memory in use.
    pub statistics: Statistics,
    /// Switches of DEBUG.
    pub debug: DebugSwitches,
    pub procedures: Procedures,
}

impl Engine {
    /// Creates an engine with these commands, for `workers` worker threads, with an empty keyspace of `shards` shards.
    pub fn new(
        registry: &'static Registry,
        procedures: Procedures,
        settings: Arc<Settings>,
        host: Arc<dyn Host>,
        clock: Arc<dyn Clock>,
        shards: usize,
        workers: usize,
    ) -> Engine {
        let rows = registry.rows().len();
        let acl = Acl::default();
        if settings.requires_password() {
            acl.set_default_password(settings.requirepass().as_bytes());
        }
        let (started_ms, started_ns) = (clock.unix_us() / 1000, clock.monotonic_ns());
        let mut random = fastrand::Rng::with_seed(clock.unix_us() ^ u64::from(host.process_id()) << 32);
        let run_id = random_id(&mut random);
        Engine {
            registry,
            keyspace: Keyspace::new(shards),
            threshold_rows: THRESHOLD_SETTINGS.map(settings::row_of),
            settings,
            acl,
            clients: Clients::default(),
            monitors: Monitors::default(),
            pubsub: PubSub::default(),
            tracking: Tracking::default(),
            indexes: IndexCatalogue::default(),
            background_tasks: BackgroundTasks::default(),
            sweepers: Sweepers::default(),
            pause: Pause::default(),
            slowlog: SlowLog::default(),
            latency: Monitor::default(),
            hot_keys: HotKeys::default(),
            host,
            clock,
            persistence: Arc::new(NoPersistence),
            watches: WatchedKeys::default(),
            transactions: EndedTransactions::default(),
            forks: Forks::default(),
            instants: Instants::default(),
            restores: Restores::default(),
            databases: Arc::default(),
            sessions: Sessions::default(),
            eviction: Eviction::default(),
            walks: Walks::default(),
            restrictions: Restrictions::default(),
            waiting: Waiting::default(),
            scripting: Scripting::default(),
            identity: Identity::new(run_id, started_ns),
            statistics: Statistics::new(rows, workers, started_ms),
            debug: DebugSwitches::default(),
            procedures,
        }
    }

    /// Sets where effects are stored.
    pub fn with_persistence(mut self, persistence: Arc<dyn Persistence>) -> Engine {
        self.persistence = persistence;
        self
    }

    /// Creates the working state of worker `index`. Called once for each worker.
    pub fn worker(&self, index: usize) -> Worker {
        self.statistics.startup_memory.fetch_max(self.host.used_memory(), Relaxed);
        self.worker_with(self.statistics.workers()[index].clone(), false)
    }

    /// Creates the working state of a thread that serves clients: long work on it moves to another thread.
    pub fn client_worker(&self, index: usize) -> Worker {
        self.statistics.startup_memory.fetch_max(self.host.used_memory(), Relaxed);
        self.worker_with(self.statistics.workers()[index].clone(), true)
    }

    /// Creates working state with these metrics.
    pub fn worker_with(&self, metrics: Arc<WorkerMetrics>, serves_clients: bool) -> Worker {
        let seed =
            self.clock.unix_us() ^ self.clock.monotonic_ns().rotate_left(32) ^ Arc::as_ptr(&metrics).addr() as u64;
        Worker {
            metrics,
            random: fastrand::Rng::with_seed(seed),
            now_ms: self.clock.unix_us() / 1000,
            now_us: self.clock.unix_us(),
            time_stands: false,
            secrets: Vec::new(),
            batch: PendingBatch::default(),
            spare_transactions: Vec::new(),
            shards_to_expire: 0,
            candidates: Candidates::default(),
            lua: None,
            script_reply: Vec::new(),
            script_request: OwnedRequest::default(),
            in_script: false,
            serves_clients,
            is_on_fiber: false,
            is_script_thread: false,
            ended_long: Vec::new(),
            spare_run: None,
            script_has_failed: false,
            in_hook: false,
            last_ns: self.clock.monotonic_ns(),
            ahead_ns: 0,
        }
    }

    /// Begins a batch of requests. Each sees the instant at which the one before it ended.
    #[inline]
    pub fn begin(&self, worker: &mut Worker) {
        let (unix_us, monotonic_ns) = self.clock.both();
        worker.now_ms = unix_us / 1000;
        worker.now_us = unix_us;
        worker.time_stands = self.clock.stands();
        worker.last_ns = monotonic_ns;
        worker.ahead_ns = (unix_us * 1000).wrapping_sub(monotonic_ns);
    }

    /// Frees removed values outside the request path, if the host has a thread for it.
    #[inline]
    pub fn free(&self, garbage: Garbage) {
        if !garbage.is_empty() {
            self.free_elsewhere(garbage);
        }
    }

    #[cold]
    fn free_elsewhere(&self, garbage: Garbage) {
        self.host.discard(Box::new(self.eviction.counted(garbage)));
    }

    /// How the use of keys is recorded.
    #[inline]
    pub fn usage(&self, random: &mut fastrand::Rng) -> Usage {
        if !self.settings.maxmemory_policy().is_lfu() {
            return Usage::Time;
        }
        let (log_factor, decay_minutes) = (self.settings.lfu_log_factor(), self.settings.lfu_decay_time());
        Usage::Frequency { log_factor, decay_minutes, draw: random.u32(..) }
    }

    /// The sizes at which compact values are converted.
    #[inline]
    pub fn thresholds(&self) -> Thresholds {
        Thresholds::of(self.threshold_rows.map(|row| self.settings.size(row) as usize))
    }
}

/// Forty random hexadecimal digits.
pub fn random_id(random: &mut fastrand::Rng) -> String {
    (0..40).map(|_| char::from_digit(random.u32(..16), 16).unwrap_or('0')).collect()
}
