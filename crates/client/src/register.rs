//! One register in the process: what REG.PUT, REG.INCRBY and REG.SEAL do at the server. Knows versions and operations;
//! refuses to know keys, types and snapshots.

use std::collections::BTreeMap;

use redis::{ErrorKind, ServerErrorKind};

use crate::error::Error;
use crate::state_version::{Applied, OrderedVersion, StateVersion};

/// What one version does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Sets the value.
    Put(Vec<u8>),
    /// Adds to the value, a number.
    Add(i64),
}

/// A value with its version, and what waits for its turn.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) current: Option<Current>,
    /// The versions below this one are closed, if that is ahead of the newest version.
    pub(crate) sealed: Option<StateVersion>,
    pub(crate) buffer: BTreeMap<StateVersion, Operation>,
    /// Which kind of ordered versions it takes; `None` before the first.
    pub(crate) kind: Option<Kind>,
}

/// The newest version that was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) version: StateVersion,
    pub(crate) operation: Operation,
    pub(crate) value: Vec<u8>,
}

/// The kind of ordered versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Numbers,
    Pairs,
}

impl Kind {
    fn of(version: OrderedVersion) -> Kind {
        match version {
            OrderedVersion::Number(_) => Kind::Numbers,
            OrderedVersion::Pair(..) => Kind::Pairs,
        }
    }
}

/// The server's default of `reg-buffer-max`.
const BUFFER_MAX: usize = 1024;

impl Register {
    /// Applies an operation unless its version comes too late.
    pub(crate) fn update(&mut self, version: StateVersion, operation: Operation) -> Result<Applied, Error> {
        match self.too_late(version, &operation) {
            Some(verdict) => Ok(verdict),
            None => self.apply(version, operation),
        }
    }

    /// Applies an operation if it is its turn, or buffers it.
    pub(crate) fn update_in_order(&mut self, version: OrderedVersion, operation: Operation) -> Result<Applied, Error> {
        self.check_kind(version)?;
        let at = StateVersion::from(version);
        if let Some(verdict) = self.too_late(at, &operation) {
            return Ok(verdict);
        }
        let is_due = matches!(version, OrderedVersion::Number(number) if self.next() == Some(number));
        if is_due {
            let applied = self.apply(at, operation)?;
            self.kind = Some(Kind::of(version));
            return Ok(applied);
        }
        if !self.buffer.contains_key(&at) && self.buffer.len() >= BUFFER_MAX {
            return Err(refused("too many versions of the register wait for their turn"));
        }
        self.buffer.insert(at, operation);
        self.kind = Some(Kind::of(version));
        Ok(Applied::Buffered)
    }

    /// Applies what is buffered below a version, and numbers from it on without a gap. Returns how many. It does not
    /// decide the kind of a register.
    pub(crate) fn seal(&mut self, below: OrderedVersion) -> Result<u64, Error> {
        self.check_kind(below)?;
        let (at, mut sealed, mut applied) = (StateVersion::from(below), self.clone(), 0);
        let open = if self.is_empty() { Some(1.into()) } else { self.open_from() };
        if open.is_none_or(|open| at <= open) {
            return Ok(0);
        }
        while let Some(first) = sealed.buffer.first_entry().filter(|first| *first.key() < at) {
            let (version, operation) = first.remove_entry();
            sealed.set(version, operation)?;
            applied += 1;
        }
        if self.kind == Some(Kind::Numbers) {
            applied += sealed.apply_without_gap(at.round);
        }
        let reached = sealed.current.as_ref().map_or(open, |current| successor(current.version));
        if reached.is_some_and(|reached| at > reached) {
            sealed.sealed = Some(at);
        }
        *self = sealed;
        Ok(applied)
    }

    /// True when nothing was ever kept in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.is_none() && self.sealed.is_none() && self.buffer.is_empty()
    }

    /// What becomes of an operation whose version is closed, or buffered with other words.
    fn too_late(&self, version: StateVersion, operation: &Operation) -> Option<Applied> {
        let current = self.current.as_ref();
        if current.is_some_and(|current| version <= current.version) || self.is_sealed(version) {
            return Some(match current {
                Some(current) if current.version == version => match current.operation == *operation {
                    true => Applied::Duplicate,
                    false => Applied::Mismatch,
                },
                _ => Applied::Stale,
            });
        }
        self.buffer.get(&version).is_some_and(|buffered| buffered != operation).then_some(Applied::Mismatch)
    }

    fn is_sealed(&self, version: StateVersion) -> bool {
        self.sealed.is_some_and(|sealed| version < sealed)
    }

    /// The lowest version that is not closed; `None` when there is none any more.
    fn open_from(&self) -> Option<StateVersion> {
        let least = if self.kind == Some(Kind::Pairs) { 0 } else { 1 };
        let least = self.sealed.unwrap_or(least.into());
        match &self.current {
            None => Some(least),
            Some(current) => successor(current.version).map(|next| next.max(least)),
        }
    }

    /// The next number; `None` when there is none any more.
    fn next(&self) -> Option<u64> {
        self.open_from().filter(|next| next.epoch == 0).map(|next| next.round)
    }

    /// Applies an operation, and the numbers that are buffered behind it.
    fn apply(&mut self, version: StateVersion, operation: Operation) -> Result<Applied, Error> {
        self.set(version, operation)?;
        if let (Some(StateVersion { epoch: 0, round }), Some(Kind::Numbers)) = (successor(version), self.kind) {
            self.apply_without_gap(round);
        }
        Ok(Applied::Applied)
    }

    /// Applies buffered numbers from this one on, up to the first gap or the first that cannot be applied.
    fn apply_without_gap(&mut self, from: u64) -> u64 {
        let (mut next, mut applied) = (Some(from), 0);
        while let Some(number) = next
            && let Some(operation) = self.buffer.get(&number.into()).cloned()
            && self.set(number.into(), operation).is_ok()
        {
            (next, applied) = (number.checked_add(1), applied + 1);
        }
        applied
    }

    /// Sets the newest version. What is buffered up to it was applied, or overtaken.
    fn set(&mut self, version: StateVersion, operation: Operation) -> Result<(), Error> {
        let value = match &operation {
            Operation::Put(value) => value.clone(),
            Operation::Add(number) => {
                let before = self.current.as_ref().map_or(Some(0), |current| whole_number(&current.value));
                let before = before.ok_or_else(|| refused("the value of the register is not a whole number"))?;
                let sum = before.checked_add(*number).ok_or_else(|| refused("the sum does not fit in 64 bits"))?;
                sum.to_string().into_bytes()
            }
        };
        self.buffer.retain(|buffered, _| *buffered > version);
        self.sealed = self.sealed.filter(|sealed| successor(version).is_some_and(|next| *sealed > next));
        self.current = Some(Current { version, operation, value });
        Ok(())
    }

    fn check_kind(&self, version: OrderedVersion) -> Result<(), Error> {
        if version == OrderedVersion::Number(0) {
            return Err(refused("the version of an ordered register is a whole number from 1 on"));
        }
        match self.kind.is_none_or(|kind| kind == Kind::of(version)) {
            true => Ok(()),
            false => Err(refused("the ordered versions of the register are of the other kind")),
        }
    }
}

/// The lowest version above this one, if there is one.
fn successor(version: StateVersion) -> Option<StateVersion> {
    match version.round.checked_add(1) {
        Some(round) => Some(StateVersion { round, ..version }),
        None => version.epoch.checked_add(1).map(|epoch| StateVersion { epoch, round: 0 }),
    }
}

/// A number as the server writes it.
fn whole_number(value: &[u8]) -> Option<i64> {
    let text = str::from_utf8(value).ok()?;
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// An error as of the server.
pub(crate) fn refused(why: &'static str) -> Error {
    Error::Refused((ErrorKind::Server(ServerErrorKind::ResponseError), why).into())
}
