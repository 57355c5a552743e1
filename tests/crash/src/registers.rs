//! What the load's commands on registers do to the model: which versions apply, which wait, what a checkpoint has and what a
//! restore makes of it. Knows nothing of how the server writes them; that is in `checkpoints`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use wire::Reply;

use crate::commands::Call;
use crate::model::{Entry, Place, Value, int, parse_int};
use crate::request::excerpt;

/// An epoch and a round in it.
pub(crate) type Version = (u64, u64);

#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Register {
    pub(crate) current: Option<Current>,
    /// Versions of epoch 0 below this one come too late; 0 when that says no more than the current version does.
    pub(crate) sealed: u64,
    /// What waits for its turn, by its round in epoch 0.
    pub(crate) buffer: BTreeMap<u64, Operation>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Current {
    pub(crate) version: Version,
    /// The last operation that was applied.
    pub(crate) by: Operation,
    pub(crate) value: Vec<u8>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Operation {
    Put(Vec<u8>),
    Add(i64),
}

/// What REG.SNAPSHOT STORE keeps.
#[derive(Clone, PartialEq)]
pub(crate) struct Checkpoint {
    pub(crate) prefix: Vec<u8>,
    pub(crate) position: Vec<u8>,
    pub(crate) registers: BTreeMap<Vec<u8>, Arc<Entry>>,
}

impl Register {
    /// The next version in order; `None` once an epoch has begun.
    pub(crate) fn next(&self) -> Option<u64> {
        match &self.current {
            None => Some(self.sealed.max(1)),
            Some(current) if current.version.0 == 0 => Some(self.sealed.max(current.version.1 + 1)),
            Some(_) => None,
        }
    }

    /// Takes an operation as the server must, and says what becomes of it.
    fn take(&mut self, version: Version, operation: Operation, is_ordered: bool) -> &'static str {
        if let Some(current) = self.current.as_ref().filter(|current| current.version == version) {
            return if current.by == operation { "DUPLICATE" } else { "MISMATCH" };
        }
        let is_late = self.current.as_ref().is_some_and(|current| version < current.version);
        if is_late || version < (0, self.sealed) {
            return "STALE";
        }
        if version.0 == 0 && self.buffer.get(&version.1).is_some_and(|waiting| *waiting != operation) {
            return "MISMATCH";
        }
        if is_ordered && self.next() != Some(version.1) {
            self.buffer.insert(version.1, operation);
            return "BUFFERED";
        }
        self.apply(version, operation);
        self.apply_without_gap();
        "APPLIED"
    }

    fn apply(&mut self, version: Version, operation: Operation) {
        let value = match &operation {
            Operation::Put(value) => value.clone(),
            Operation::Add(number) => {
                let before = self.current.as_ref().map_or(0, |current| int(&current.value));
                (before + number).to_string().into_bytes()
            }
        };
        self.current = Some(Current { version, by: operation, value });
        // With an epoch, no version of epoch 0 is still to come.
        let reached = if version.0 == 0 { version.1 + 1 } else { u64::MAX };
        self.buffer.retain(|waiting, _| *waiting >= reached);
        if self.sealed <= reached {
            self.sealed = 0;
        }
    }

    fn apply_without_gap(&mut self) {
        while let Some(next) = self.next()
            && let Some(operation) = self.buffer.remove(&next)
        {
            self.apply((0, next), operation);
        }
    }

    /// Nothing below that version is still to come. Returns how many operations that lets apply.
    fn seal(&mut self, below: u64) -> i64 {
        if self.next().is_none_or(|next| below <= next) {
            return 0;
        }
        let waiting = self.buffer.len();
        while let Some((version, operation)) = self.buffer.pop_first() {
            if version >= below {
                self.buffer.insert(version, operation);
                break;
            }
            self.apply((0, version), operation);
        }
        if self.next().is_some_and(|next| below > next) {
            self.sealed = below;
        }
        self.apply_without_gap();
        (waiting - self.buffer.len()) as i64
    }

    /// True when an addition can be applied, now and in its turn.
    pub(crate) fn takes_additions(&self) -> bool {
        self.current.as_ref().is_none_or(|current| parse_int(&current.value).is_some())
            && self.buffer.values().all(|operation| matches!(operation, Operation::Add(_)))
    }

    /// True when no addition waits, which a put could make impossible.
    pub(crate) fn takes_puts(&self) -> bool {
        self.buffer.values().all(|operation| matches!(operation, Operation::Put(_)))
    }

    pub(crate) fn version(&self) -> Option<Version> {
        self.current.as_ref().map(|current| current.version)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.current {
            None => f.write_str("register without a version")?,
            Some(Current { version, by, value }) => {
                write!(f, "register at {} by {by}: {}", show_version(*version), excerpt(value))?;
            }
        }
        if self.sealed > 0 {
            write!(f, ", sealed below {}", self.sealed)?;
        }
        self.buffer.iter().try_for_each(|(version, operation)| write!(f, ", {version} waits: {operation}"))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Put(value) => write!(f, "a put of {}", excerpt(value)),
            Operation::Add(number) => write!(f, "an addition of {number}"),
        }
    }
}

impl Checkpoint {
    fn covers(&self, place: &Place, entry: &Entry, db: u32) -> bool {
        place.db == db && place.key.starts_with(&self.prefix) && matches!(entry.value, Value::Register(_))
    }
}

impl Call<'_> {
    fn register(&self) -> Option<&Register> {
        self.entry().map(register_of)
    }

    fn register_mut(&mut self) -> &mut Register {
        if self.entry().is_none() {
            self.put(Entry { value: Value::Register(Register::default()), deadline: None });
        }
        match &mut self.entry_mut().expect("it was just put").value {
            Value::Register(register) => register,
            _ => panic!("a command for registers on another type"),
        }
    }

    /// `REG.GET key`
    pub(crate) fn reg_get(&self) -> Reply {
        match self.register().and_then(|register| register.current.as_ref()) {
            None => Reply::NilBulk,
            Some(current) => {
                let shown = show_version(current.version).into_bytes();
                Reply::Array(vec![Reply::Bulk(current.value.clone()), Reply::Bulk(shown)])
            }
        }
    }

    /// `REG.PUT key version value [ORDERED]`
    pub(crate) fn reg_put(&mut self, rest: &[Vec<u8>]) -> Reply {
        self.take_operation(rest, Operation::Put(rest[1].clone()))
    }

    /// `REG.INCRBY key version n [ORDERED]`
    pub(crate) fn reg_incrby(&mut self, rest: &[Vec<u8>]) -> Reply {
        self.take_operation(rest, Operation::Add(int(&rest[1])))
    }

    fn take_operation(&mut self, rest: &[Vec<u8>], operation: Operation) -> Reply {
        let is_ordered = rest.len() == 3;
        let verdict = self.register_mut().take(read_version(&rest[0]), operation, is_ordered);
        Reply::Simple(verdict.into())
    }

    /// `REG.SEAL key version`
    pub(crate) fn reg_seal(&mut self, rest: &[Vec<u8>]) -> Reply {
        let sealed = self.register_mut().seal(read_version(&rest[0]).1);
        // A seal below the first version makes no register.
        if self.register() == Some(&Register::default()) {
            self.take();
        }
        Reply::Integer(sealed)
    }

    /// `REG.SNAPSHOT PREFIX prefix POSITION position STORE key`: here `self.key` is the word PREFIX.
    pub(crate) fn reg_snapshot(&mut self, rest: &[Vec<u8>]) -> Reply {
        let mut checkpoint =
            Checkpoint { prefix: rest[0].clone(), position: rest[2].clone(), registers: BTreeMap::new() };
        for (place, entry) in &self.state.entries {
            if checkpoint.covers(place, entry, self.db) {
                checkpoint.registers.insert(place.key.clone(), Arc::clone(entry));
            }
        }
        let count = checkpoint.registers.len() as i64;
        let entry = Entry { value: Value::Checkpoint(checkpoint), deadline: None };
        self.state.entries.insert(Place::new(self.db, &rest[4]), Arc::new(entry));
        Reply::Integer(count)
    }

    /// `REG.RESTORE FROM key MERGE|REPLACE`: here `self.key` is the word FROM.
    pub(crate) fn reg_restore(&mut self, rest: &[Vec<u8>]) -> Reply {
        let db = self.db;
        let checkpoint = match self.state.get(db, &rest[0]).map(|entry| &entry.value) {
            Some(Value::Checkpoint(checkpoint)) => checkpoint.clone(),
            _ => panic!("a restore from a key that is no checkpoint"),
        };
        let merges = rest[1] == b"MERGE";
        if !merges {
            self.state.entries.retain(|place, entry| !checkpoint.covers(place, entry, db));
        }
        let mut set = 0;
        for (key, saved) in &checkpoint.registers {
            let version = |entry: &Entry| register_of(entry).version();
            if self.state.get(db, key).is_none_or(|entry| version(saved) > version(entry)) {
                self.state.entries.insert(Place::new(db, key), Arc::clone(saved));
                set += 1;
            }
        }
        Reply::Array(vec![Reply::Integer(set), Reply::Bulk(checkpoint.position)])
    }
}

pub(crate) fn register_of(entry: &Entry) -> &Register {
    match &entry.value {
        Value::Register(register) => register,
        _ => panic!("a command for registers on another type"),
    }
}

pub(crate) fn show_version(version: Version) -> String {
    match version {
        (0, round) => round.to_string(),
        (epoch, round) => format!("{epoch}.{round}"),
    }
}

/// A version that the load wrote.
fn read_version(text: &[u8]) -> Version {
    let text = std::str::from_utf8(text).expect("a version is ASCII");
    let (epoch, round) = text.split_once('.').unwrap_or(("0", text));
    (epoch.parse().expect("an epoch"), round.parse().expect("a round"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(value: &str) -> Operation {
        Operation::Put(value.into())
    }

    #[test]
    fn additions_in_any_order_come_to_the_sum() {
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [2, 4, 1, 3]] {
            let mut register = Register::default();
            for version in order.into_iter().chain(order) {
                register.take((0, version), Operation::Add(version as i64 * 10), true);
            }
            let expected = Current { version: (0, 4), by: Operation::Add(40), value: b"100".to_vec() };
            assert_eq!(register, Register { current: Some(expected), ..Register::default() }, "{order:?}");
        }
    }

    #[test]
    fn what_becomes_of_a_version() {
        let mut register = Register::default();
        for (version, value, is_ordered, expected) in [
            ((0, 2), "b", true, "BUFFERED"),
            ((0, 2), "x", true, "MISMATCH"),
            ((0, 2), "b", true, "BUFFERED"),
            ((0, 1), "a", true, "APPLIED"),
            ((0, 1), "a", true, "STALE"),
            ((0, 2), "b", false, "DUPLICATE"),
            ((0, 2), "x", false, "MISMATCH"),
            ((0, 9), "i", true, "BUFFERED"),
            ((0, 7), "g", false, "APPLIED"),
            ((0, 8), "h", true, "APPLIED"),
            ((1, 0), "z", false, "APPLIED"),
            ((0, 99), "n", false, "STALE"),
        ] {
            assert_eq!(register.take(version, put(value), is_ordered), expected, "{version:?} {value}");
        }
    }

    #[test]
    fn a_seal_applies_what_is_below_and_what_follows() {
        let mut register = Register::default();
        for version in [3, 5, 6, 9] {
            register.take((0, version), Operation::Add(1), true);
        }
        assert_eq!(register.seal(5), 3);
        assert_eq!((register.version(), register.sealed), (Some((0, 6)), 0));
        assert_eq!((register.seal(8), register.sealed), (0, 8));
        assert_eq!(register.take((0, 7), Operation::Add(1), true), "STALE");
        assert_eq!(register.take((0, 8), Operation::Add(1), true), "APPLIED");
        assert_eq!((register.version(), register.sealed), (Some((0, 9)), 0));
    }
}
