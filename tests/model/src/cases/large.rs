//! The design with larger bounds: gigabytes of memory, minutes each.

use super::{Case, Form, holds, holds_but_late};
use crate::protocol::config::Reads;

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        holds("large: longer log, two reads", |c| {
            c.log_max = 5;
            c.budget.reads = 2;
        }),
        holds("large: lease 2, wait 4, two lost ticks", |c| {
            (c.lease, c.wait, c.writes) = (2, 4, 1);
            c.budget.skew = 2;
        }),
        holds("large: two crashes", |c| {
            (c.incarnation_max, c.writes) = (3, 1);
            c.budget.crashes = 2;
        }),
        holds("large: three servers", |c| (c.servers, c.incarnation_max, c.writes) = (3, 1, 1)),
        holds("large: snapshots by any server, a crash, a hand-over", |c| {
            (c.log_max, c.epoch_max) = (5, 2);
            (c.budget.snapshots, c.budget.crashes, c.budget.handovers) = (3, 1, 1);
            (c.budget.reads, c.budget.skew) = (0, 0);
        }),
        holds_but_late("large: reads confirmed, frozen clock, crash", |c| {
            (c.writes, c.frozen_clock, c.reads) = (1, true, Reads::Confirmed);
            c.budget.crashes = 1;
        }),
        holds("large: a batch in three pieces, a crash", |c| {
            (c.large_write, c.pieces, c.log_max, c.epoch_max) = (1, 3, 6, 2);
            (c.budget.crashes, c.budget.reads, c.budget.skew) = (1, 1, 0);
        }),
    ];
    cases.into_iter().map(|case| Case { form: Form::Full, threads: 2, ..case }).collect()
}
