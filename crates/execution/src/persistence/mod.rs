//! The interface to the store of effects. The server provides the journal and its snapshots; an engine without one
//! stores nothing.

pub mod journal_state;

use journal_state::JournalState;

/// Stores effects. Sequence numbers count batches, from 1 on.
pub trait Persistence: Send + Sync {
    /// The state of the journal, which determines what replies promise.
    fn state(&self) -> JournalState;
    /// The newest batch whose changes may be read while the journal has failed: the last one that is written, or
    /// durable (`strict`). `None` without such a limit.
    fn readable(&self, strict: bool) -> Option<u64>;
    /// True when effects are to be appended.
    fn is_recording(&self) -> bool;
    /// Appends a batch of effects, made at that unix time, and returns its number. Called while the shards it has
    /// changed are locked, so it never waits for a disk.
    fn append(&self, batch: &[u8], time_ms: u64) -> u64;
    /// The number of the last batch.
    fn tail(&self) -> u64;
    /// Hands appended batches to the operating system. Workers do so before they reply; other threads call this, so
    /// that batches do not pile up.
    fn write(&self) {}
    /// The last batch that survives a power failure, like all before it; `None` while nothing is promised.
    fn durable(&self) -> Option<u64>;
    /// Requests a sync of everything appended so far.
    fn request_sync(&self);
    /// Begins a snapshot and returns its number, for `snapshot_result`; an error when another one is being written.
    fn begin_snapshot(&self, why: SnapshotReason) -> Result<u64, SnapshotBusy>;
    /// Requests a snapshot, to begin after the current one if there is one.
    fn schedule_snapshot(&self, why: SnapshotReason);
    /// The result of a snapshot; `None` while it is being written.
    fn snapshot_result(&self, number: u64) -> Option<Result<(), String>>;
    /// The memory of batches that are not stored yet, and of the buffers for the next ones.
    fn buffer_bytes(&self) -> u64 {
        0
    }
    /// The state of the journal and its snapshots, for INFO.
    fn report(&self) -> Report;
    /// Whether this server writes or follows, and who else does.
    fn replication(&self) -> Replication {
        Replication::default()
    }
    /// The log and the servers that share it; `None` for a log that is on one machine.
    fn cluster(&self) -> Option<ClusterReport> {
        None
    }
    /// How many followers have applied a batch.
    fn replicas_at(&self, _sequence: u64) -> usize {
        0
    }
    /// Begins a change of role and returns its number, for `role_result`; an error if it cannot begin.
    fn change_role(&self, _change: RoleChange) -> Result<u64, String> {
        Err("this server has no data directory".into())
    }
    /// The result of a change of role; `None` until it is done.
    fn role_result(&self, _number: u64) -> Option<Result<(), String>> {
        None
    }
}

/// A change of role that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleChange {
    /// REPLICAOF NO ONE: a follower becomes the writer.
    Promote,
    /// FAILOVER: a follower, or the one at that address, is told to take over.
    HandOver { to: Option<(String, u16)>, timeout_ms: Option<u64>, force: bool },
    /// FAILOVER ABORT.
    AbortHandOver,
}

/// Whether this server writes or follows.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    pub role: Role,
    /// The newest batch that is applied here.
    pub sequence: u64,
    /// Since when this server has its role, in unix time; 0 if that is not known.
    pub since_ms: u64,
    /// A hand-over is in progress.
    pub hands_over: bool,
    /// The servers of this log that are known here, this one first. Clients that ask for the writer are told of these.
    pub members: Vec<MemberReport>,
}

/// A server of a log, as another one knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberReport {
    /// Where its clients reach it.
    pub host: String,
    pub port: u16,
    /// Where it answers as Sentinels do; 0 is nowhere.
    pub sentinel_port: u16,
    /// It accepts writes, or did when it was last heard of. Of a server that is loading, fenced or stopping this is false.
    pub is_writer: bool,
    pub is_self: bool,
    /// The newest batch that it has applied.
    pub sequence: u64,
    /// Since it was last heard of.
    pub silent_ms: u64,
}

/// Writer or follower.
#[derive(Clone, Debug)]
pub enum Role {
    Writer { followers: Vec<FollowerReport> },
    Follower(WriterReport),
}

impl Default for Role {
    fn default() -> Self {
        Role::Writer { followers: Vec::new() }
    }
}

/// What a writer knows of a follower.
#[derive(Clone, Debug)]
pub struct FollowerReport {
    pub host: String,
    pub port: u16,
    /// The newest batch that it has applied.
    pub sequence: u64,
    /// Since it was last heard of.
    pub silent_ms: u64,
}

/// What a follower knows of its writer.
#[derive(Clone, Debug, Default)]
pub struct WriterReport {
    pub host: String,
    /// 0 while it is not known.
    pub port: u16,
    /// It answers.
    pub is_connected: bool,
    pub is_loading: bool,
    /// Since it was last heard of.
    pub silent_ms: u64,
    /// Batches that it has written and that are not applied here yet.
    pub lag_batches: u64,
    /// The age of the oldest of them.
    pub lag_ms: u64,
}

/// A log that several machines share, as this server sees it.
#[derive(Clone, Debug, Default)]
pub struct ClusterReport {
    /// The URL of the log, without its password.
    pub log: String,
    /// The epoch of the last frame that was stored or read here.
    pub epoch: u32,
    /// How long this server may still answer if nothing more is stored; `None` for one that follows.
    pub lease_left_ms: Option<u64>,
    /// The servers that were heard of lately, with this one.
    pub members: usize,
    /// A server of the log is connected.
    pub is_connected: bool,
    /// The place of the last frame, how many were stored and read here, and how long ago the last one was.
    pub position: u64,
    pub frames: u64,
    pub silent_ms: u64,
    /// What the checks have found to be wrong, or worth knowing.
    pub findings: Vec<String>,
}

/// What a snapshot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReason {
    /// SAVE, BGSAVE or a save point.
    Save,
    /// BGREWRITEAOF or a journal that has grown long.
    Compaction,
}

/// Another snapshot is being written, for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotBusy(pub SnapshotReason);

/// Figures about persistence for INFO.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub state: Option<JournalState>,
    /// There is room on the disk for more.
    pub has_room: bool,
    pub loading: Option<Loading>,
    pub snapshot: Option<Snapshotting>,
    pub scheduled: Option<SnapshotReason>,
    /// By reason: saves, then compactions.
    pub saves: Finished,
    pub compactions: Finished,
    /// Unix seconds of the last good snapshot.
    pub last_save_s: u64,
    pub changes_at_last_save: u64,
    pub keys_loaded: u64,
    /// Bytes of the journal that a start would read, and of the newest snapshot.
    pub journal_bytes: u64,
    pub snapshot_bytes: u64,
    /// Bytes that were appended and not yet handed to the operating system.
    pub unwritten_bytes: u64,
    /// The newest batch, the newest that the operating system has, and the newest that survives a power failure.
    pub sequence: u64,
    pub written: u64,
    pub durable: u64,
    /// Why writes are refused.
    pub failure: Option<String>,
    /// How long the syncs of the journal took; `None` without one in files.
    pub syncs: Option<SyncTimes>,
}

/// How long syncs took, since the journal was opened.
#[derive(Clone, Debug, Default)]
pub struct SyncTimes {
    /// Ascending bounds in nanoseconds, and how many took at most as long.
    pub at_most: Vec<(u64, u64)>,
    pub count: u64,
    pub sum_ns: u64,
}

/// Figures about finished snapshots of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Finished {
    pub count: u64,
    pub last_failed: bool,
    pub failures_in_a_row: u64,
    pub last_took_s: Option<u64>,
}

/// The progress of loading at the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loading {
    /// Unix seconds.
    pub since_s: u64,
    pub total_bytes: u64,
    pub loaded_bytes: u64,
    pub left_s: u64,
}

/// The progress of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Snapshotting {
    pub why: SnapshotReason,
    /// How long it has been running.
    pub running_s: u64,
    pub keys: u64,
    pub keys_total: u64,
    /// From 0 to 1.
    pub progress: f64,
}

/// Stores nothing.
#[derive(Default)]
pub struct NoPersistence;

impl Persistence for NoPersistence {
    fn state(&self) -> JournalState {
        JournalState::Off
    }

    fn readable(&self, _: bool) -> Option<u64> {
        None
    }

    fn is_recording(&self) -> bool {
        false
    }

    fn append(&self, _: &[u8], _: u64) -> u64 {
        0
    }

    fn tail(&self) -> u64 {
        0
    }

    fn durable(&self) -> Option<u64> {
        None
    }

    fn request_sync(&self) {}

    fn begin_snapshot(&self, _: SnapshotReason) -> Result<u64, SnapshotBusy> {
        Ok(0)
    }

    fn schedule_snapshot(&self, _: SnapshotReason) {}

    fn snapshot_result(&self, _: u64) -> Option<Result<(), String>> {
        Some(Err("nothing is stored here".into()))
    }

    fn report(&self) -> Report {
        Report::default()
    }
}
