//! Time across writers, and liveness.

use super::{Case, Form, Subject, changed};
use crate::expiry::Rule;
use crate::protocol::config::Config;

pub(super) fn time() -> Vec<Case> {
    [
        ("time: each writer by its own clock", Rule::OwnClock, false),
        ("time: frames carry the time", Rule::FrameTime, false),
        ("time: frames carry a ceiling", Rule::Ceiling, true),
        ("time: a release stops the time", Rule::Release, true),
        ("time: a release does not stop the time", Rule::ReleaseGoesOn, false),
    ]
    .map(|(name, rule, holds)| Case { name, subject: Subject::Expiry { rule, holds }, form: Form::Quick, threads: 1 })
    .into()
}

pub(super) fn liveness() -> Vec<Case> {
    vec![
        live("live: a crash, a loss", true, Form::Quick, |c| {
            crash_and_loss(c);
        }),
        live("live: a crash, snapshots, purge", true, Form::Standard, |c| {
            crash_and_loss(c);
            c.epoch_max = 2;
            (c.budget.snapshots, c.budget.losses) = (2, 0);
        }),
        live("live: a batch in two pieces, a crash", true, Form::Standard, |c| {
            crash_and_loss(c);
            (c.large_write, c.log_max) = (1, 5);
            c.budget.losses = 0;
        }),
        live("live: two in flight, readers stop", false, Form::Standard, |c| {
            (c.pipeline, c.log_max, c.explore_on) = (2, 5, true);
            (c.budget.skew, c.budget.reads) = (0, 0);
        }),
        live("live: two crashes, a loss, a hand-over", true, Form::Full, |c| {
            crash_and_loss(c);
            (c.budget.crashes, c.budget.handovers) = (2, 1);
        }),
    ]
}

fn live(name: &'static str, holds: bool, form: Form, change: fn(&mut Config)) -> Case {
    Case { name, subject: Subject::Liveness { config: changed(change), holds }, form, threads: 1 }
}

fn crash_and_loss(config: &mut Config) {
    (config.writes, config.incarnation_max) = (1, 3);
    (config.budget.reads, config.budget.skew, config.budget.crashes, config.budget.losses) = (0, 0, 1, 1);
}
