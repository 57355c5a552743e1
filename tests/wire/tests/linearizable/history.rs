//! What was asked and answered, and between which instants. Knows nothing of what is right.

use std::sync::atomic::{AtomicU64, Ordering};

use wire::Reply;

use crate::action::Action;

/// One action of one client.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) client: usize,
    pub(crate) action: Action,
    pub(crate) answer: Answer,
    /// It took effect after the first of these instants and before the second.
    pub(crate) invoked: u64,
    pub(crate) returned: u64,
}

#[derive(Clone)]
pub(crate) enum Answer {
    Reply(Reply),
    /// There was one, and it does not matter: only a report has these.
    Any,
    /// The server ended first: the action took effect before that, or never.
    None,
}

/// In the order in which they were invoked; those of one client in the order in which it sent them.
pub(crate) type History = Vec<Operation>;

/// Counts instants. What returned before something else was invoked has the smaller number.
#[derive(Default)]
pub(crate) struct Clock(AtomicU64);

impl Clock {
    pub(crate) fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// How many instants there have been.
    pub(crate) fn passed(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// One history of what each client has done.
pub(crate) fn merged(histories: impl IntoIterator<Item = History>) -> History {
    let mut all: History = histories.into_iter().flatten().collect();
    // Stable, for those that a client sent at one instant.
    all.sort_by_key(|operation| operation.invoked);
    all
}
