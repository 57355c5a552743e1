//! A lost job or session, as part of an error. Knows no store.

use std::fmt;

use crate::record::Fields;

/// A job that a worker no longer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The key of its record.
    pub key: Vec<u8>,
    /// The token under which the worker held it.
    pub token: i64,
    /// The current state and attempt; empty if the record is gone.
    pub current: Fields,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "attempt {} of the job {} is over: it ", self.token, self.key.escape_ascii())?;
        if self.current.is_empty() {
            return f.write_str("is gone");
        }
        f.write_str("has")?;
        for (name, value) in self.current.iter() {
            write!(f, " {}={}", name.escape_ascii(), value.escape_ascii())?;
        }
        Ok(())
    }
}

/// A session that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostSession {
    /// Its name.
    pub session_id: Vec<u8>,
    /// The number of the request; `None` if it is not a numbered one.
    pub request_id: Option<u64>,
    /// True when the request may have run. False when it was sent only to a session that was gone.
    pub maybe_applied: bool,
}

impl fmt::Display for LostSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the session {} is gone", self.session_id.escape_ascii())?;
        match (self.request_id, self.maybe_applied) {
            (None, _) => Ok(()),
            (Some(id), true) => write!(f, "; its request {id} may have run, or not"),
            (Some(id), false) => write!(f, "; its request {id} has not run"),
        }
    }
}
