//! Which lists of a database a value is in: expiring fields, runs by status, sessions. Knows the types that are
//! listed; refuses to know how a database keeps its lists.

use super::{Entry, Object};

/// What lists a key is in, and where.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) struct Listed {
    /// When the key expires; when a session is to be looked at.
    pub(crate) deadline: Option<u64>,
    /// The soonest deadline of a field of a hash; the status of a run; when the oldest request of a session was sent.
    pub(crate) also: Option<u64>,
    pub(crate) kind: ListKind,
}

/// Which lists a key is in, beside that of the deadlines.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum ListKind {
    #[default]
    Other,
    Hash,
    Run,
    /// In none of those that other keys are in.
    Session,
}

impl Listed {
    #[inline]
    pub(crate) fn of(entry: &Entry) -> Listed {
        let (deadline, also, kind) = match entry.object() {
            Some(Object::Hash(table)) => (entry.deadline(), table.soonest(), ListKind::Hash),
            Some(Object::Run(run)) => (entry.deadline(), Some(run.status() as u64), ListKind::Run),
            Some(Object::Session(session)) => (Some(session.queued_ms()), session.oldest_sent_ms(), ListKind::Session),
            _ => (entry.deadline(), None, ListKind::Other),
        };
        Listed { deadline, also, kind }
    }
}
