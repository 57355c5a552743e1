//! The cases: what is run, in which form, and what is expected. Knows nothing of how a case is run.

mod broken;
mod design;
mod large;
mod others;

use crate::expiry::Rule;
use crate::protocol::config::{Config, Mutation};
use crate::protocol::invariants::flags::LATE_REPLY;

/// Every case of every form.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = design::cases();
    cases.extend(design::variants());
    cases.extend(broken::cases());
    cases.extend(broken::hidden());
    cases.extend(others::time());
    cases.extend(others::liveness());
    cases.extend(large::cases());
    cases
}

pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) subject: Subject,
    pub(crate) form: Form,
    pub(crate) threads: usize,
}

/// A form has the cases of those before it, too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Form {
    Quick,
    Standard,
    Full,
}

pub(crate) enum Subject {
    Protocol(Config, Expected),
    /// The model of time across writers.
    Expiry {
        rule: Rule,
        holds: bool,
    },
    Liveness {
        config: Config,
        holds: bool,
    },
}

pub(crate) enum Expected {
    /// All invariants hold in all states.
    Holds,
    /// Replies are sent after a later epoch began, as they may; they are not stale, and all other invariants hold.
    OnlyLateReplies,
    /// The search ends when one of the invariants `sought` is broken. None but those `allowed` may be.
    Breaks { sought: u16, allowed: u16 },
}

fn case(name: &'static str, config: Config, expected: Expected) -> Case {
    Case { name, subject: Subject::Protocol(config, expected), form: Form::Standard, threads: 1 }
}

fn holds(name: &'static str, change: fn(&mut Config)) -> Case {
    case(name, changed(change), Expected::Holds)
}

fn holds_but_late(name: &'static str, change: fn(&mut Config)) -> Case {
    case(name, changed(change), Expected::OnlyLateReplies)
}

/// One of the invariants must be broken. A late reply alone does not count: it is not a stale one.
fn breaks(name: &'static str, allowed: u16, change: fn(&mut Config)) -> Case {
    case(name, changed(change), Expected::Breaks { sought: allowed & !LATE_REPLY, allowed })
}

/// A mutation, which must be noticed.
fn broken(name: &'static str, mutation: Mutation, allowed: u16, change: fn(&mut Config)) -> Case {
    let mut case = breaks(name, allowed, change);
    if let Subject::Protocol(config, _) = &mut case.subject {
        config.mutation = mutation;
    }
    case.quick()
}

fn changed(change: fn(&mut Config)) -> Config {
    let mut config = Config::small();
    change(&mut config);
    config
}

impl Case {
    fn quick(self) -> Case {
        Case { form: Form::Quick, ..self }
    }

    fn standard(self) -> Case {
        Case { form: Form::Standard, ..self }
    }
}
