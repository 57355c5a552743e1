//! The protocol as it is designed, with one kind of fault or event after the other; and variants of it that do not
//! hold, by their bounds alone.

use super::{Case, breaks, holds, holds_but_late};
use crate::protocol::config::{Mutation, Reads};
use crate::protocol::invariants::flags::*;

pub(super) fn cases() -> Vec<Case> {
    vec![
        holds("design: two servers", |_| ()),
        holds("design: two servers, one write", |c| c.writes = 1).quick(),
        holds_but_late("design: reads confirmed by the log, clock of 0 frozen", |c| {
            c.reads = Reads::Confirmed;
            c.frozen_clock = true;
        }),
        holds("design: a crash", |c| {
            c.writes = 1;
            c.budget.crashes = 1;
        }),
        holds("design: hand-over", |c| {
            c.writes = 1;
            c.budget.handovers = 1;
        })
        .quick(),
        holds("design: snapshots, a crash", |c| {
            (c.writes, c.epoch_max, c.incarnation_max) = (1, 2, 1);
            (c.budget.reads, c.budget.crashes, c.budget.snapshots, c.budget.skew) = (0, 1, 1, 0);
        })
        .quick(),
        holds("design: snapshots, purge, a crash", |c| {
            (c.writes, c.epoch_max, c.incarnation_max) = (1, 2, 1);
            (c.budget.reads, c.budget.crashes, c.budget.snapshots, c.budget.skew) = (0, 1, 2, 0);
        }),
        holds("design: every message kept, a duplicate, a loss", |c| {
            (c.writes, c.log_max, c.epoch_max, c.prune) = (1, 3, 2, false);
            (c.budget.duplicates, c.budget.losses) = (1, 1);
        }),
        holds_but_late("design: a pause between check and sending", |c| {
            c.pause_before_send = true;
            c.writes = 1;
        })
        .quick(),
        holds("design: one batch, in two pieces", |c| {
            (c.writes, c.large_write) = (1, 1);
        })
        .quick(),
        // Two pieces, an epoch record between or behind them, and a batch that follows.
        holds("design: a batch in two pieces", |c| {
            (c.large_write, c.log_max) = (1, 5);
        }),
        holds("design: a batch in two pieces behind another", |c| {
            (c.large_write, c.log_max) = (2, 5);
        }),
        holds("design: a batch in two pieces, snapshots, a crash", |c| {
            (c.large_write, c.log_max, c.epoch_max, c.incarnation_max) = (1, 5, 2, 1);
            (c.budget.reads, c.budget.crashes, c.budget.snapshots, c.budget.skew) = (0, 1, 1, 0);
        }),
        holds_but_late("not broken: lease checked when the request is received", |c| {
            c.mutation = Mutation::CheckWhenReceived;
            c.writes = 1;
        }),
    ]
}

/// What does not hold with other clocks, waits, or frames in flight.
pub(super) fn variants() -> Vec<Case> {
    vec![
        breaks("clock: 0 frozen, reads by lease", STALE | LATE_REPLY, |c| c.frozen_clock = true).quick(),
        breaks("clock: wait = lease, one lost tick", STALE | LATE_REPLY, |c| c.wait = c.lease).quick(),
        breaks("clock: two lost ticks, wait = lease + 1", STALE | LATE_REPLY, |c| c.budget.skew = 2).quick(),
        breaks("pipeline: two in flight, readers stop", READER_STOPPED | CHAIN, |c| c.pipeline = 2).quick(),
        breaks("pipeline: two in flight, older epochs skipped", CHAIN, |c| {
            (c.pipeline, c.skip_old_epochs, c.log_max, c.writes, c.epoch_max) = (2, true, 6, 4, 2);
            (c.budget.reads, c.budget.skew) = (0, 0);
        })
        .quick(),
        breaks("pipeline: cumulative acknowledgement", LOST | WRITER_STATE, |c| {
            (c.pipeline, c.skip_old_epochs) = (2, true);
            c.mutation = Mutation::CumulativeAcknowledgement;
        })
        .quick(),
    ]
}
