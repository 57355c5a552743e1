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
    /// The state of the journal and its snapshots, for INFO.
    fn report(&self) -> Report;
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
    pub sequence: u64,
    pub durable: u64,
    /// Why writes are refused.
    pub failure: Option<String>,
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
