//! What the server must hold: a plain map. What commands do to it is in `commands`. Knows nothing of sockets, crashes or
//! who sent what.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use wire::Reply;

use crate::cells::Cell;
use crate::event_runs::{self, Events};
use crate::registers::{Checkpoint, Register};
use crate::sessions::Session;
use crate::streams::Stream;

/// Keys, their values and their deadlines. Cloning is cheap: entries are shared until one of them changes.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct State {
    pub(crate) entries: BTreeMap<Place, Arc<Entry>>,
}

/// Where an entry is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) db: u32,
    pub(crate) key: Vec<u8>,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) deadline: Option<Deadline>,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    String(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Field>),
    Scores(BTreeMap<Vec<u8>, f64>),
    List(Vec<Vec<u8>>),
    Cell(Cell),
    Run(Events),
    Register(Register),
    /// A string that REG.SNAPSHOT has stored.
    Checkpoint(Checkpoint),
    Session(Session),
    Stream(Stream),
    /// Of an index or a library of functions. These have a place too, though not in a database.
    Definition(Vec<u8>),
}

/// Where definitions are. FLUSHALL leaves them.
pub(crate) const DEFINITIONS: u32 = u32::MAX;

#[derive(Clone, PartialEq)]
pub(crate) struct Field {
    pub(crate) value: Vec<u8>,
    pub(crate) deadline: Option<Deadline>,
}

/// When something expires, in unix milliseconds, as far as the client can know: exact if it named the instant or has
/// asked for it, a range if it named a time to live.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Deadline {
    pub(crate) earliest_ms: i64,
    pub(crate) latest_ms: i64,
}

/// How far the server's idea of "now" may lie behind ours. It may use one instant for a whole batch of requests.
pub(crate) const CLOCK_SLACK_MS: i64 = 500;

/// How far servers' clocks may be from ours, where a test sets them wrong.
static CLOCK_ERROR_MS: AtomicI64 = AtomicI64::new(0);

pub(crate) fn set_clock_error(ms: i64) {
    CLOCK_ERROR_MS.store(ms, Ordering::SeqCst);
}

pub(crate) fn clock_error_ms() -> i64 {
    CLOCK_ERROR_MS.load(Ordering::SeqCst)
}

impl Deadline {
    pub(crate) fn at(ms: i64) -> Deadline {
        Deadline { earliest_ms: ms, latest_ms: ms }
    }

    /// A time to live that was sent at `sent_ms`. The server counts from when it runs the command, and a command that
    /// takes a minute fails the test for another reason.
    pub(crate) fn within(sent_ms: i64, ttl_ms: i64) -> Deadline {
        let expected_ms = sent_ms + ttl_ms;
        let (early_ms, late_ms) = (CLOCK_SLACK_MS + clock_error_ms(), 60_000 + clock_error_ms());
        Deadline { earliest_ms: expected_ms - early_ms, latest_ms: expected_ms + late_ms }
    }

    pub(crate) fn exact_ms(self) -> Option<i64> {
        (self.earliest_ms == self.latest_ms).then_some(self.earliest_ms)
    }

    pub(crate) fn contains(self, ms: i64) -> bool {
        (self.earliest_ms..=self.latest_ms).contains(&ms)
    }
}

impl Place {
    pub(crate) fn new(db: u32, key: &[u8]) -> Place {
        Place { db, key: key.to_vec() }
    }
}

impl State {
    pub(crate) fn get(&self, db: u32, key: &[u8]) -> Option<&Entry> {
        self.entries.get(&Place::new(db, key)).map(|entry| &**entry)
    }

    /// Learns from a reply what the client could not know: the exact instant of a deadline, the time of an event.
    pub(crate) fn learn(&mut self, db: u32, args: &[Vec<u8>], reply: &Reply) {
        if args[0] == b"RUN.APPEND" {
            if let Some((run_seq, time)) = event_runs::told(reply)
                && let Some(Entry { value: Value::Run(events), .. }) = self.entry_mut(db, &args[1])
                && let Some(event) = events.get_mut(run_seq - 1)
            {
                Arc::make_mut(event).persisted_at = Some(time);
            }
            return;
        }
        let (deadline, instant) = match (args[0].as_slice(), reply) {
            (b"PEXPIRETIME", Reply::Integer(ms)) => (self.entry_mut(db, &args[1]).map(|e| &mut e.deadline), ms),
            (b"HPEXPIRETIME", Reply::Array(times)) => match times.as_slice() {
                [Reply::Integer(ms)] => (self.field_mut(db, &args[1], &args[4]).map(|f| &mut f.deadline), ms),
                _ => return,
            },
            _ => return,
        };
        if let Some(Some(deadline)) = deadline
            && deadline.contains(*instant)
        {
            *deadline = Deadline::at(*instant);
        }
    }

    pub(crate) fn entry_mut(&mut self, db: u32, key: &[u8]) -> Option<&mut Entry> {
        self.entries.get_mut(&Place::new(db, key)).map(Arc::make_mut)
    }

    fn field_mut(&mut self, db: u32, key: &[u8], field: &[u8]) -> Option<&mut Field> {
        match &mut self.entry_mut(db, key)?.value {
            Value::Hash(fields) => fields.get_mut(field),
            _ => None,
        }
    }

    pub(crate) fn define(&mut self, name: &[u8], definition: Vec<u8>) {
        let entry = Entry { value: Value::Definition(definition), deadline: None };
        self.entries.insert(Place::new(DEFINITIONS, name), Arc::new(entry));
    }
}

/// Reads a number that the load wrote.
pub(crate) fn int(digits: &[u8]) -> i64 {
    parse_int(digits).unwrap_or_else(|| panic!("{} is no integer", wire::quote(digits)))
}

/// A finite number, as a score or in a field.
pub(crate) fn parse_score(digits: &[u8]) -> Option<f64> {
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|score: &f64| score.is_finite())
}

/// A number in the one form that Redis takes: without a plus or leading zeros.
pub(crate) fn parse_int(digits: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == digits).then_some(number)
}
