//! One broken rule at a time, each with the invariants that may notice it. All are part of the quick form.

use super::{Case, Expected, Subject, breaks, broken};
use crate::protocol::config::{Mutation::*, Reads};
use crate::protocol::invariants::flags::*;

const STALE_OR_LATE: u16 = STALE | LATE_REPLY;

pub(super) fn cases() -> Vec<Case> {
    [lease(), take_over(), appends(), pieces(), replies(), snapshots()].into_iter().flatten().collect()
}

fn lease() -> Vec<Case> {
    vec![
        broken("broken: no lease check", NoLeaseCheck, STALE_OR_LATE, |_| ()),
        broken("broken: lease checked when the tick begins", CheckAtStartOfTick, STALE_OR_LATE, |_| ()),
        broken("broken: lease from the acknowledgement", LeaseFromAcknowledgement, STALE_OR_LATE, |_| ()),
        broken("broken: lease from the last resend", LeaseFromResend, STALE_OR_LATE, |_| ()),
        broken("broken: heartbeats not counted", HeartbeatNotCounted, STALE_OR_LATE, |_| ()),
        broken("broken: a start takes over at once", ImpatientStart, STALE_OR_LATE, |c| {
            (c.writes, c.epoch_max) = (1, 2);
            (c.budget.crashes, c.budget.snapshots, c.budget.skew) = (1, 1, 0);
        }),
    ]
}

fn take_over() -> Vec<Case> {
    let two_writers = STALE_OR_LATE | TWO_WRITERS | WRITER_STATE;
    let unconditional = STALE_OR_LATE | CHAIN | WRITER_STATE | NO_PREFIX | READER_STOPPED;
    vec![
        broken("broken: epoch not conditional", EpochUnconditional, unconditional, |_| ()),
        broken(
            "broken: serves before its epoch is acknowledged",
            ServesBeforeEpochAcknowledged,
            STALE_OR_LATE | WRITER_STATE,
            |_| (),
        ),
        broken("broken: frames do not name their writer", NoNonce, two_writers, |c| c.budget.skew = 0),
        broken("broken: nonce of a server, not of its start", NonceOfServer, two_writers, |c| {
            (c.writes, c.incarnation_max) = (1, 3);
            (c.budget.crashes, c.budget.skew) = (1, 0);
        }),
        broken("broken: one nonce for a process", NonceOfProcess, STALE_OR_LATE | WRITER_STATE, |c| c.budget.skew = 0),
        broken("broken: hand-over keeps the lease", HandoverKeepsLease, STALE_OR_LATE, |c| c.budget.handovers = 1),
    ]
}

fn appends() -> Vec<Case> {
    vec![
        broken("broken: an empty position means failed", EmptyMeansFailed, REFUSED_APPLIED, |_| ()),
        broken("broken: a conflict means refused", ConflictMeansRefused, REFUSED_APPLIED, |c| c.prune = false),
        broken("broken: resent with more", ResendWithMore, LOST | PHANTOM | WRITER_STATE, |_| ()),
    ]
}

fn pieces() -> Vec<Case> {
    vec![
        broken("broken: a batch acknowledged at its first piece", AcknowledgedAtFirstPiece, LOST | PHANTOM, |c| {
            (c.large_write, c.log_max) = (1, 5);
        }),
        broken("broken: a reader applies an unfinished batch", UnfinishedApplied, NO_PREFIX, |c| {
            (c.large_write, c.log_max) = (1, 5);
        }),
        broken(
            "broken: an epoch completes the batch before it",
            EpochAppliesUnfinished,
            NO_PREFIX | WRITER_STATE,
            |c| {
                (c.large_write, c.log_max) = (1, 5);
            },
        ),
        broken("broken: an epoch counts the unfinished batch", EpochCountsUnfinished, READER_STOPPED, |c| {
            (c.large_write, c.log_max) = (1, 5);
        }),
        broken("broken: a snapshot continues inside a batch", SnapshotInsideBatch, READER_STOPPED, |c| {
            (c.large_write, c.log_max) = (1, 5);
            (c.budget.snapshots, c.budget.crashes, c.budget.reads) = (1, 1, 0);
        }),
    ]
}

fn replies() -> Vec<Case> {
    vec![
        broken("broken: reads do not wait", ReplyBeforeAcknowledged, PHANTOM, |_| ()),
        broken("broken: replies outlive the fence", RepliesSurviveFence, LOST | PHANTOM | STALE_OR_LATE, |_| ()),
        breaks("broken: reads ride on an append in flight", STALE_OR_LATE, |c| {
            (c.reads, c.frozen_clock) = (Reads::ConfirmedByEarlier, true);
            c.budget.skew = 0;
        })
        .quick(),
    ]
}

fn snapshots() -> Vec<Case> {
    vec![
        broken("broken: snapshot not waited for", SnapshotNotAwaited, SNAPSHOT, |c| c.budget.snapshots = 1),
        broken("broken: a snapshot knows its frame, not its batch", SnapshotByFrame, SNAPSHOT, |c| {
            c.budget.snapshots = 1;
        }),
        broken("broken: snapshot outlives the fence", SnapshotSurvivesFence, SNAPSHOT, |c| {
            (c.budget.snapshots, c.budget.reads, c.budget.skew) = (1, 0, 0);
        }),
        broken("broken: purge up to the newest snapshot", PurgeToNewest, PURGED, |c| {
            (c.budget.snapshots, c.budget.reads) = (2, 0);
        }),
        broken("broken: manifest overwritten", ManifestOverwritten, PURGED, |c| {
            (c.writes, c.log_max) = (1, 5);
            (c.budget.snapshots, c.budget.reads, c.budget.skew) = (3, 0, 0);
        }),
        broken("broken: the two last published are kept", KeepLastPublished, PURGED, |c| {
            c.log_max = 5;
            (c.budget.snapshots, c.budget.reads) = (4, 0);
        }),
    ]
}

/// Invariants that others hide, because they are broken sooner.
pub(super) fn hidden() -> Vec<Case> {
    let two_writers = STALE_OR_LATE | TWO_WRITERS | WRITER_STATE;
    let any = STALE_OR_LATE | WRITER_STATE | NO_PREFIX | LOST | PHANTOM;
    vec![
        seeks(TWO_WRITERS, broken("seen: two writers reply in an epoch", NoNonce, two_writers, |c| c.budget.skew = 0)),
        seeks(
            READER_STOPPED,
            broken("seen: a reader stops at a sound log", Nothing, any | CHAIN | READER_STOPPED, |c| {
                (c.pipeline, c.explore_on) = (2, true);
            }),
        ),
        seeks(
            NO_PREFIX,
            broken("seen: a follower is no prefix", SnapshotNotAwaited, any | SNAPSHOT | PURGED, |c| {
                c.explore_on = true;
                (c.budget.snapshots, c.budget.crashes) = (1, 1);
            }),
        ),
        seeks(
            SNAPSHOT,
            broken("seen: a snapshot has an unfinished batch", AcknowledgedAtFirstPiece, any | SNAPSHOT, |c| {
                (c.large_write, c.log_max) = (1, 5);
                c.budget.snapshots = 1;
            }),
        ),
        seeks(
            PHANTOM,
            broken("seen: a read shows an unfinished batch", EpochAppliesUnfinished, any | READER_STOPPED, |c| {
                (c.large_write, c.log_max, c.explore_on) = (1, 5, true);
            }),
        ),
    ]
}

fn seeks(flag: u16, mut case: Case) -> Case {
    if let Subject::Protocol(_, Expected::Breaks { sought, .. }) = &mut case.subject {
        *sought = flag;
    }
    case.standard()
}
