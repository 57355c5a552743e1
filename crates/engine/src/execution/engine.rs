//! Executes requests: finds the row, passes the gates, has it dispatched, keeps the books. Knows nothing of sockets;
//! whoever owns one calls `execute`.

use crate::clients::Clients;
use crate::clients::pause::Pause;
use crate::clients::pubsub::PubSub;
use crate::clients::tracking::Tracking;
use crate::error::CommandError;
use crate::execution::background_tasks::BackgroundTasks;
use crate::execution::batch_limit::BATCH_BYTES_MAX;
use crate::execution::client::{Client, ReplyMode};
use crate::execution::command::{CommandRow, Flags, Handler, KeyRange, Locks, Registry, registry};
use crate::execution::commit::PendingBatch;
use crate::execution::context::After;
use crate::execution::scripts::{Functions, LuaState, ScriptThread, Scripts};
use crate::execution::transaction::WatchList;
use crate::execution::waiting::keys::KeyWaiters;
use crate::execution::waiting::{Blocked, Event};
use crate::host::{Clock, Host};
use crate::observability::latency::{Histograms, Monitor};
use crate::observability::monitor::Monitors;
use crate::observability::slowlog::SlowLog;
use crate::observability::stats::{Sampler, Totals, WorkerStats};
use crate::panics;
use crate::persistence::{NoPersistence, Persistence};
use crate::settings::events::Events;
use crate::settings::{ClientClass, Settings};
use keyspace::Thresholds;
use keyspace::index::Indexes;
use keyspace::locked::{BATCH_MAX, Batch, Garbage};
use keyspace::types::{hash, sorted_set};
use keyspace::{Key, Keyspace, Locked, Usage};
use locks::{Mutex, RwLock, rank};
use resp::{OwnedRequest, Reply, Request};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The state server without its sockets.
pub struct Engine {
    /// All commands.
    pub registry: &'static Registry,
    pub keyspace: Keyspace,
    pub settings: Arc<Settings>,
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
    /// What no worker is kept waiting for.
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
    /// Forty hexadecimal digits that tell one run of the server from another.
    pub run_id: String,
    /// Keeps what is changed.
    pub persistence: Arc<dyn Persistence>,
    /// Watches of clients that are gone, to be removed.
    pub(crate) left_watches: Mutex<Vec<WatchList>, { rank::LEFT_WATCHES }>,
    /// How many keys are watched.
    pub(crate) watches: AtomicUsize,
    /// Clients that wait for keys.
    pub(crate) waiters: KeyWaiters,
    /// How many walks over all keys are under way.
    pub(crate) walks: AtomicUsize,
    /// How often what walks had gathered became of no use.
    pub(crate) walks_spoiled: AtomicUsize,
    /// Bits of [`restriction`](crate::execution::gates).
    pub(crate) restrictions: AtomicU8,
    /// Why writes are refused, if they are.
    pub(crate) refusal: Mutex<String, { rank::REFUSAL }>,
    /// The longest batch of the journal; DEBUG SET-BATCH-BYTES-MAX.
    pub(crate) batch_bytes_max: AtomicUsize,
    /// DEBUG SET-DISABLE-DENY-SCRIPTS: scripts may call what is not for them.
    pub scripts_call_anything: AtomicBool,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expiry: AtomicBool,
    /// The most memory seen in use, and what was in use before there was any data.
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

/// What a worker writes and anybody may read.
pub struct WorkerBooks {
    pub stats: WorkerStats,
    pub histograms: Histograms,
}

/// What one worker thread carries from request to request.
pub struct Worker {
    pub books: Arc<WorkerBooks>,
    pub random: fastrand::Rng,
    /// The instant that the requests being executed see.
    pub now_ms: u64,
    /// Arguments of the request being executed that nobody else may see, such as passwords. Handlers add them.
    pub secrets: Vec<usize>,
    /// What was recorded and not committed yet.
    pub(crate) batch: PendingBatch,
    /// Made when the first script runs here.
    pub(crate) lua: Option<Box<LuaState>>,
    /// Buffers for what scripts ask and answer, kept for their memory.
    pub(crate) script_reply: Vec<u8>,
    pub(crate) script_request: OwnedRequest,
    /// A script runs: what is executed is what it calls.
    pub(crate) in_script: bool,
    /// When the last command ended: where the next one's time begins.
    pub(crate) last_ns: u64,
    /// How far unix time is ahead of the monotonic clock, in nanoseconds.
    ahead_ns: u64,
}

impl Worker {
    /// The instant that the requests being executed see, on the monotonic clock.
    #[inline]
    pub fn monotonic_ms(&self) -> u64 {
        self.last_ns / 1_000_000
    }
}

/// What the connection does after a request.
pub enum Flow {
    /// Goes on with the next request.
    Continue,
    /// Sends what is there and closes.
    Close,
    /// Waits, with nothing replied yet.
    Block(Blocked),
    /// Leaves the request where it is and tries again at this time (unix ms), or when woken.
    Paused(u64),
    /// Leaves the request where it is and executes it again, to go on with it, when others have had their turn.
    Again,
}

/// Locks taken for requests to come: see [`Engine::look_ahead`].
#[derive(Default)]
pub struct Ahead<'e> {
    batch: Option<Batch<'e>>,
}

impl<'e> Ahead<'e> {
    /// The shard of a key: lent if it is held, otherwise locked once nothing else is.
    #[inline]
    pub(crate) fn lock_key<'s>(&'s mut self, keyspace: &'s Keyspace, key: Key<'_>) -> Option<Locked<'s>> {
        if !self.batch.as_ref().is_some_and(|batch| batch.holds(key)) {
            self.release();
        }
        match &mut self.batch {
            Some(batch) => Some(batch.lend(key)),
            None => keyspace.lock_key_unless_busy(key),
        }
    }

    /// Gives all locks back: before a command that takes others, or that takes long.
    pub(crate) fn release(&mut self) {
        self.batch = None;
    }
}

/// When a transaction has grown by so much, all clients are looked at: together they may take more than `maxmemory-clients`.
const GROWN_BYTES: usize = 1024 * 1024;

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
            watches: AtomicUsize::new(0),
            waiters: KeyWaiters::default(),
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

    /// The same with something that keeps what is changed.
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
            secrets: Vec::new(),
            batch: PendingBatch::default(),
            lua: None,
            script_reply: Vec::new(),
            script_request: OwnedRequest::default(),
            in_script: false,
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

    /// Notes how much has been done and how much memory is in use. Called about ten times a second.
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
        worker.last_ns = monotonic_ns;
        worker.ahead_ns = (unix_us * 1000).wrapping_sub(monotonic_ns);
    }

    /// Makes ready to execute several requests of a client one after the other: as far as each touches one key, their
    /// locks are taken and their entries fetched. What is returned goes to [`Engine::execute_ahead`] with each.
    pub fn look_ahead<'r>(&self, client: &Client, requests: impl Iterator<Item = Request<'r>>) -> Ahead<'_> {
        let mut keys: SmallVec<[Key<'r>; BATCH_MAX]> = SmallVec::new();
        if client.transaction.is_some() {
            return Ahead::default();
        }
        for request in requests.take(BATCH_MAX) {
            let Ok(registered) = self.find(client, request) else { break };
            match registered.command.keys.locks {
                Locks::Key(at) => keys.push(Key::new(request.arg(usize::from(at)))),
                Locks::Declared => match registered.found_keys(request).ranges[..] {
                    [KeyRange { first, last, .. }] if first == last => {
                        keys.push(Key::new(request.arg(first as usize)));
                    }
                    _ => break,
                },
                _ => break,
            }
        }
        Ahead { batch: (keys.len() > 1).then(|| self.keyspace.lock_batch(client.db, &keys)) }
    }

    /// Leaves what a command has removed to be freed where nobody waits for it.
    #[inline]
    pub(crate) fn free(&self, garbage: Garbage) {
        if !garbage.is_empty() {
            self.host.discard(Box::new(garbage));
        }
    }

    /// Executes one request of a client to its end, however long it takes: for those who serve no others.
    pub fn execute_to_end(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) -> Flow {
        loop {
            match self.execute(worker, client, request, out) {
                Flow::Again => {
                    // Others may want the locks.
                    std::thread::yield_now();
                    self.begin(worker);
                }
                flow => return flow,
            }
        }
    }

    /// Executes one request of a client and appends its reply to `out`.
    #[inline]
    pub fn execute(&self, worker: &mut Worker, client: &mut Client, request: Request<'_>, out: &mut Vec<u8>) -> Flow {
        self.execute_ahead(worker, client, request, out, &mut Ahead::default())
    }

    /// The same for a request that [`Engine::look_ahead`] has seen.
    #[inline]
    pub fn execute_ahead(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        request: Request<'_>,
        out: &mut Vec<u8>,
        ahead: &mut Ahead<'_>,
    ) -> Flow {
        let reply_at = out.len();
        let depended_on = client.depends_on;
        let found = self.find(client, request);
        if let Ok(registered) = found
            && let Some(until_ms) =
                self.pause.holds(|| self.may_write(client, registered, request), worker.monotonic_ms())
            && !registered.command.flags.has(Flags::PAUSE_EXEMPT)
            && self.gates(client, registered, request).is_ok()
        {
            client.handle.last_command.store(registered.index as u32 + 1, Relaxed);
            self.pause.wait(&client.handle);
            return Flow::Paused(until_ms);
        }
        client.handle.note_active(worker.last_ns);
        let mut after = After::Continue;
        match found {
            Ok(registered) if client.transaction.is_some() && !registered.command.flags.has(Flags::NOT_QUEUED) => {
                client.last_command = Some(registered);
                self.queue(worker, client, registered, request, out);
            }
            Ok(registered) => {
                client.last_command = Some(registered);
                client.handle.last_command.store(registered.index as u32 + 1, Relaxed);
                self.run(worker, client, registered, request, out, &mut after, ahead);
            }
            Err(_) if is_http(request) => after = After::Close,
            Err(ref error) => {
                count_rejected(worker, request);
                let ends_queue = |row: &CommandRow| row.command.flags.has(Flags::ENDS_QUEUE);
                if self.registry.find(request.arg(0)).is_some_and(ends_queue) {
                    // IMPORTANT: it takes locks.
                    ahead.release();
                    let error = self.abandon(client, error);
                    self.fail(worker, client, out, reply_at, &error);
                } else {
                    if let Some(transaction) = &mut client.transaction {
                        transaction.failed = true;
                    }
                    self.fail(worker, client, out, reply_at, error);
                }
            }
        }
        if matches!(after, After::Again) {
            out.truncate(reply_at);
            return Flow::Again;
        }
        if self.is_restricted() && client.depends_on > depended_on {
            self.hide_what_is_not_kept(worker, client, out, reply_at, depended_on);
        }
        if client.caching
            && client.transaction.is_none()
            && !found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::KEEPS_CACHING))
        {
            // It was for this command, or for this transaction.
            client.caching = false;
        }
        match client.reply_mode {
            ReplyMode::On => {}
            // What tells of subscriptions is no reply, whatever it looks like in RESP2.
            ReplyMode::Off | ReplyMode::Skipping
                if found.as_ref().is_ok_and(|row| row.command.flags.has(Flags::SENDS_MESSAGES))
                    && out.get(reply_at).is_none_or(|byte| *byte != b'-') => {}
            ReplyMode::Off => silence(out, reply_at, &mut after),
            ReplyMode::SkipNext => client.reply_mode = ReplyMode::Skipping,
            ReplyMode::Skipping => {
                silence(out, reply_at, &mut after);
                client.reply_mode = ReplyMode::On;
            }
        }
        if self.has_deferred() {
            // IMPORTANT: it takes locks.
            ahead.release();
            self.serve_deferred(worker);
        }
        match after {
            After::Continue => Flow::Continue,
            After::Close => Flow::Close,
            After::Again => Flow::Again,
            After::Block(blocked) => {
                // Nothing that CLIENT UNBLOCK could end: its script runs. One who waits for a key has begun under its locks.
                if !matches!(blocked.event, Event::Background(_) | Event::Value) {
                    client.handle.wait_state.begin(0);
                }
                Flow::Block(blocked)
            }
        }
    }

    /// While the journal has failed, nobody reads what it has not kept: a restart would bring back what was before. IMPORTANT:
    /// a reply that tells of nothing newer stands, and a connection goes on.
    #[cold]
    fn hide_what_is_not_kept(
        &self,
        worker: &Worker,
        client: &mut Client,
        out: &mut Vec<u8>,
        reply_at: usize,
        depended_on: u64,
    ) {
        let limit = self.persistence.readable(client.waits_for_disk(&self.settings));
        if limit.is_some_and(|limit| client.depends_on > limit && client.last_batch <= limit) {
            client.depends_on = depended_on;
            self.fail(worker, client, out, reply_at, &self.refusal());
        }
    }

    /// Keeps a command for EXEC.
    fn queue(
        &self,
        worker: &Worker,
        client: &mut Client,
        registered: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
    ) {
        let refused = match self.gates(client, registered, request) {
            Ok(()) if registered.command.flags.has(Flags::NO_MULTI) => {
                Some(CommandError::fixed("ERR Command not allowed inside a transaction"))
            }
            gates => gates.err(),
        };
        let bytes_max = self.settings.client_query_buffer_limit();
        let transaction = client.transaction.as_mut().expect("only commands of a transaction are queued");
        let before = transaction.bytes();
        let refused = refused.or_else(|| transaction.push(registered, request, bytes_max).err());
        client.handle.note_queued(Some((transaction.len(), transaction.bytes())));
        let has_grown = transaction.bytes() / GROWN_BYTES > before / GROWN_BYTES;
        match refused {
            None => Reply::new(out, client.protocol).simple("QUEUED"),
            Some(error) => {
                transaction.failed = true;
                worker.books.stats.commands[registered.index].rejected.add(1);
                self.fail(worker, client, out, out.len(), &error);
            }
        }
        if has_grown {
            self.evict_clients();
        }
    }

    /// The row of a request's command, once it has passed the gates that do not depend on state.
    #[inline]
    fn find(&self, client: &Client, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
        let name = request.arg(0);
        let registered = match client.last_command {
            // A pipeline repeats itself: comparing with the last command is cheaper than looking it up.
            Some(last) if last.name_args == 1 && name.eq_ignore_ascii_case(last.command.name.as_bytes()) => last,
            _ => match self.registry.find(name) {
                Some(registered) => registered,
                None => return Err(unknown_command(request)),
            },
        };
        let registered = match registered.subcommands.is_empty() {
            true => registered,
            false => subcommand(registered, request)?,
        };
        if !registered.accepts(request.len()) {
            return Err(CommandError::WrongArity(registered.full_name.as_str().into()));
        }
        Ok(registered)
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    fn run(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        registered: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
        after: &mut After,
        ahead: &mut Ahead<'_>,
    ) {
        let reply_at = out.len();
        let counters_at = registered.index;
        // What has begun is not refused: it would have changed something.
        if client.unfinished.is_none()
            && let Err(error) = self.gates(client, registered, request)
        {
            worker.books.stats.commands[counters_at].rejected.add(1);
            let error = match registered.command.flags.has(Flags::ENDS_QUEUE) {
                // IMPORTANT: it takes locks.
                true => {
                    ahead.release();
                    self.abandon(client, &error)
                }
                false => error,
            };
            return self.fail(worker, client, out, reply_at, &error);
        }
        worker.secrets.clear();
        let result = match registered.command.handler {
            Handler::Server(_) | Handler::Script(_) => {
                let (db, protocol) = (client.db, client.protocol);
                let result = panics::catch(|| self.dispatch(worker, client, registered, request, out, after, ahead));
                if result == Err(CommandError::Internal) {
                    forget_command(worker, client, after);
                    // A script has its own while it runs.
                    (client.db, client.protocol) = (db, protocol);
                }
                result
            }
            _ => self.dispatch(worker, client, registered, request, out, after, ahead),
        };
        if matches!(after, After::Again) {
            return self.note_slice(worker, client);
        }
        worker.last_ns = worker.last_ns.saturating_sub(std::mem::take(&mut client.slices_ns));
        self.keep_books(worker, client, registered, request);
        if let Err(error) = result {
            worker.books.stats.commands[counters_at].failed.add(1);
            self.fail(worker, client, out, reply_at, &error);
        }
    }

    /// Notes what a part of a command took. It counts when the command has ended.
    #[cold]
    fn note_slice(&self, worker: &mut Worker, client: &mut Client) {
        let ended_ns = self.clock.monotonic_ns();
        client.slices_ns += ended_ns.saturating_sub(worker.last_ns);
        worker.last_ns = ended_ns;
    }

    /// Notes what a command that has just ended took, for those who look.
    #[inline]
    pub(crate) fn keep_books(
        &self,
        worker: &mut Worker,
        client: &Client,
        registered: &'static CommandRow,
        request: Request<'_>,
    ) {
        let ended_ns = self.clock.monotonic_ns();
        let took_ns = ended_ns.saturating_sub(worker.last_ns);
        worker.last_ns = ended_ns;
        if !worker.batch.is_atomic {
            // A command that took long must not make the next one of its pipeline see the past. Those of a transaction
            // see one instant.
            worker.now_ms = ended_ns.wrapping_add(worker.ahead_ns) / 1_000_000;
        }
        let books = &*worker.books;
        let counters = &books.stats.commands[registered.index];
        counters.calls.add(1);
        counters.ns.add(took_ns);
        if self.settings.latency_tracking() {
            books.histograms.add(registered.index, took_ns);
        }
        self.note_slow(worker, client, registered, request, took_ns);
        if self.monitors.any() && !registered.command.flags.has(Flags::SKIP_MONITOR.union(Flags::ADMIN)) {
            self.feed_monitors(worker, client, request);
        }
    }

    /// Which events are published when a command is run.
    #[inline]
    pub(crate) fn events_told(&self, handler: Handler) -> Events {
        match self.settings.notify_keyspace_events().published() {
            none if none.is_empty() => none,
            // What is past its time is absent then, but it is not removed.
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
        Thresholds {
            hash: hash::Thresholds {
                entries_max: self.settings.hash_max_listpack_entries() as usize,
                value_bytes_max: self.settings.hash_max_listpack_value() as usize,
            },
            sorted_set: sorted_set::Thresholds {
                entries_max: self.settings.zset_max_listpack_entries() as usize,
                value_bytes_max: self.settings.zset_max_listpack_value() as usize,
            },
        }
    }

    /// Replaces whatever was written of the reply by the error, and counts it.
    #[cold]
    fn fail(&self, worker: &Worker, client: &Client, out: &mut Vec<u8>, reply_at: usize, error: &CommandError) {
        out.truncate(reply_at);
        let text = error.to_string();
        worker.books.stats.count_error(&text);
        Reply::new(out, client.protocol).error(&text);
    }

    #[inline]
    pub(crate) fn note_slow(
        &self,
        worker: &Worker,
        client: &Client,
        registered: &CommandRow,
        request: Request<'_>,
        took_ns: u64,
    ) {
        let took_us = took_ns / 1000;
        let slower_than_us = self.settings.slowlog_log_slower_than();
        if slower_than_us >= 0 && took_us >= slower_than_us as u64 && !registered.command.flags.has(Flags::SKIP_SLOWLOG)
        {
            self.log_slow(worker, client, request, took_us);
        }
        let threshold_ms = self.settings.latency_monitor_threshold();
        if threshold_ms > 0 && took_us >= threshold_ms.saturating_mul(1000) {
            let event = if registered.command.flags.has(Flags::FAST) { "fast-command" } else { "command" };
            self.latency.add(event, worker.now_ms / 1000, took_us / 1000);
        }
    }

    #[cold]
    pub(crate) fn feed_monitors(&self, worker: &Worker, client: &Client, request: Request<'_>) {
        let limit = self.settings.client_output_buffer_limit(ClientClass::Normal).hard_bytes;
        let shown = without_secrets(worker, request);
        let origin = if worker.in_script { "lua" } else { &*client.handle.address };
        self.monitors.feed(self.clock.unix_us(), client.db, origin, shown, limit);
    }

    #[cold]
    fn log_slow(&self, worker: &Worker, client: &Client, request: Request<'_>, took_us: u64) {
        let name = client.handle.name();
        let len_max = self.settings.slowlog_max_len() as usize;
        let shown = without_secrets(worker, request);
        self.slowlog.add(shown, worker.now_ms / 1000, took_us, &client.handle.address, &name, len_max);
    }
}

/// Forgets what a command had begun that panicked without having changed a key.
#[cold]
fn forget_command(worker: &mut Worker, client: &mut Client, after: &mut After) {
    worker.in_script = false;
    worker.batch = PendingBatch::default();
    client.unfinished = None;
    *after = After::Continue;
}

/// Takes a reply back, and the one that is still to come if the client waits.
fn silence(out: &mut Vec<u8>, reply_at: usize, after: &mut After) {
    out.truncate(reply_at);
    if let After::Block(blocked) = after {
        blocked.silent = true;
    }
}

/// The arguments of a request for others to see.
fn without_secrets<'a>(worker: &'a Worker, request: Request<'a>) -> impl ExactSizeIterator<Item = &'a [u8]> {
    const REDACTED: &[u8] = b"(redacted)";
    let args = request.iter().enumerate();
    args.map(|(at, arg)| if worker.secrets.contains(&at) { REDACTED } else { arg })
}

/// Forty random hexadecimal digits.
pub(crate) fn random_id(random: &mut fastrand::Rng) -> String {
    (0..40).map(|_| char::from_digit(random.u32(..16), 16).unwrap_or('0')).collect()
}

/// Counts a request with the wrong number of arguments for the command it names.
#[cold]
fn count_rejected(worker: &Worker, request: Request<'_>) {
    let Some(command) = registry().find(request.arg(0)) else { return };
    let row = match command.subcommands.is_empty() || request.len() == 1 {
        true => Some(command),
        false => command.subcommand(request.arg(1)),
    };
    if let Some(row) = row {
        worker.books.stats.commands[row.index].rejected.add(1);
    }
}

/// The row of a container's subcommand; the container itself when none is named, as COMMAND may be called alone.
fn subcommand(container: &'static CommandRow, request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
    if request.len() < 2 {
        return Ok(container);
    }
    let name = request.arg(1);
    container.subcommand(name).ok_or_else(|| CommandError::unknown_subcommand(container.command.name, name))
}

/// A web browser that was made to talk to us sends one of these before anything that its page could have chosen. As
/// in Redis, the connection ends there, so that a page cannot run commands.
#[cold]
fn is_http(request: Request<'_>) -> bool {
    ["post", "host:"].iter().any(|word| request.arg(0).eq_ignore_ascii_case(word.as_bytes()))
}

/// Redis's words: the name and the beginning of the arguments, cut to a readable length.
#[cold]
fn unknown_command(request: Request<'_>) -> CommandError {
    let shown = |bytes: &[u8], max: usize| {
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(max)]).into_owned();
        text.replace(['\r', '\n'], " ")
    };
    let mut args = String::new();
    for arg in request.iter().skip(1) {
        if args.len() >= 128 {
            break;
        }
        args.push_str(&format!("'{}' ", shown(arg, 128 - args.len())));
    }
    CommandError::said(format!(
        "ERR unknown command '{}', with args beginning with: {args}",
        shown(request.arg(0), 128)
    ))
}
