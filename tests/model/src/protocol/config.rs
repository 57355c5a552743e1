//! What a run explores, and which rule of the protocol it breaks. Knows nothing of what follows from it.

/// The bounds and the variant of a run.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) servers: u8,
    pub(crate) writes: u8,
    /// The write that is too large for one message; 0 for none.
    pub(crate) large_write: u8,
    /// The frames that it takes.
    pub(crate) pieces: u8,
    pub(crate) log_max: u8,
    pub(crate) epoch_max: u8,
    /// Starts and attempted take-overs of one server.
    pub(crate) incarnation_max: u8,
    /// Ticks of the writer's clock.
    pub(crate) lease: u8,
    /// Ticks of a follower's clock since it received the last frame.
    pub(crate) wait: u8,
    /// Frames in flight.
    pub(crate) pipeline: u8,
    /// A frame of an older epoch than the one before it is skipped; otherwise it stops its reader.
    pub(crate) skip_old_epochs: bool,
    pub(crate) reads: Reads,
    /// A pause may lie between the check of a reply and its sending.
    pub(crate) pause_before_send: bool,
    /// The clock of server 0 may stand still while the others go on: a paused virtual machine.
    pub(crate) frozen_clock: bool,
    /// Drops messages that can no longer have an effect.
    pub(crate) prune: bool,
    /// Goes on after a violation, to see what follows from it.
    pub(crate) explore_on: bool,
    pub(crate) budget: Budget,
    pub(crate) mutation: Mutation,
}

/// Faults and requests that are still to come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Budget {
    pub(crate) reads: u8,
    pub(crate) crashes: u8,
    pub(crate) duplicates: u8,
    pub(crate) losses: u8,
    /// Ticks that a clock may miss.
    pub(crate) skew: u8,
    pub(crate) handovers: u8,
    pub(crate) snapshots: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reads {
    /// Answered while the lease is valid.
    Lease,
    /// Answered when an append that was sent after they were executed is acknowledged. No clock.
    Confirmed,
    /// Like `Confirmed`, but an append that is in flight already counts (wrong).
    ConfirmedByEarlier,
}

/// Rules that can be broken, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutation {
    Nothing,
    // The lease.
    NoLeaseCheck,
    CheckAtStartOfTick,
    /// Not wrong, as it turns out: the request has been received by then.
    CheckWhenReceived,
    LeaseFromAcknowledgement,
    LeaseFromResend,
    HeartbeatNotCounted,
    ImpatientStart,
    // Take-over.
    EpochUnconditional,
    ServesBeforeEpochAcknowledged,
    /// Frames do not name their writer.
    NoNonce,
    /// Frames name the server, but not its start.
    NonceOfServer,
    /// Frames name the process, but not which of its take-overs.
    NonceOfProcess,
    HandoverKeepsLease,
    // Appends without an answer.
    EmptyMeansFailed,
    ConflictMeansRefused,
    ResendWithMore,
    CumulativeAcknowledgement,
    // Batches in pieces.
    AcknowledgedAtFirstPiece,
    /// A reader applies a batch with its first piece.
    UnfinishedApplied,
    /// An epoch record completes the batch before it.
    EpochAppliesUnfinished,
    /// A new writer numbers its batches as if the unfinished one had been there.
    EpochCountsUnfinished,
    /// A snapshot continues between two pieces.
    SnapshotInsideBatch,
    // Replies.
    ReplyBeforeAcknowledged,
    RepliesSurviveFence,
    // Snapshots.
    SnapshotNotAwaited,
    /// A position alone says what a snapshot has, though a frame holds several batches.
    SnapshotByFrame,
    SnapshotSurvivesFence,
    PurgeToNewest,
    ManifestOverwritten,
    KeepLastPublished,
}

impl Config {
    /// Two servers, two writes, one read, a clock that may miss a tick, two take-overs.
    pub(crate) fn small() -> Config {
        Config {
            servers: 2,
            writes: 2,
            large_write: 0,
            pieces: 2,
            log_max: 4,
            epoch_max: 3,
            incarnation_max: 2,
            lease: 1,
            wait: 2,
            pipeline: 1,
            skip_old_epochs: false,
            reads: Reads::Lease,
            pause_before_send: false,
            frozen_clock: false,
            prune: true,
            explore_on: false,
            budget: Budget { reads: 1, crashes: 0, duplicates: 0, losses: 0, skew: 1, handovers: 0, snapshots: 0 },
            mutation: Mutation::Nothing,
        }
    }
}
