//! What operations come to, one after the other. Knows sums and gaps; refuses to change a register.

use super::{Current, Operation, RegisterRef, Version};
use numbers::{I64_CHARS_MAX, format_i64, parse_i64};
use std::borrow::Cow;

/// Why an addition cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The value is no whole number of 64 bits.
    NotInteger,
    /// The sum is none.
    Overflow,
}

/// A register on its way: what its version and value are after some more operations.
pub struct Progress<'a> {
    version: Option<Version>,
    added: Option<i64>,
    value: Option<Cow<'a, [u8]>>,
    applied: u64,
}

impl<'a> Progress<'a> {
    /// From what there is of a register.
    pub fn from(current: Option<Current<'a>>) -> Progress<'a> {
        Progress {
            version: current.map(|current| current.version),
            added: current.and_then(|current| current.added),
            value: current.map(|current| Cow::Borrowed(current.value)),
            applied: 0,
        }
    }

    /// Applies one operation. A value that is not there yet counts as 0.
    pub fn apply(&mut self, version: Version, operation: Operation<'a>) -> Result<(), Unfit> {
        let (added, value) = match operation {
            Operation::Put(value) => (None, Cow::Borrowed(value)),
            Operation::Add(number) => {
                let before = match &self.value {
                    Some(value) => parse_i64(value).ok_or(Unfit::NotInteger)?,
                    None => 0,
                };
                let sum = before.checked_add(number).ok_or(Unfit::Overflow)?;
                (Some(number), Cow::Owned(format_i64(sum, &mut [0; I64_CHARS_MAX]).to_vec()))
            }
        };
        *self = Progress { version: Some(version), added, value: Some(value), applied: self.applied + 1 };
        Ok(())
    }

    /// Applies what is buffered from that version on, up to the first gap, or to the first operation that cannot be applied.
    pub fn apply_without_gap(&mut self, register: RegisterRef<'a>, from: u64) {
        let mut next = Some(from);
        for (version, operation) in register.buffered_from(from) {
            if next != Some(version) || self.apply(Version::of_round(version), operation).is_err() {
                break;
            }
            next = version.checked_add(1);
        }
    }

    /// Applies all that is buffered below that version, gaps or not. An error says which version cannot be applied, and why.
    pub fn apply_below(&mut self, register: RegisterRef<'a>, below: u64) -> Result<(), (u64, Unfit)> {
        for (version, operation) in register.buffered_from(0).take_while(|(version, _)| *version < below) {
            self.apply(Version::of_round(version), operation).map_err(|unfit| (version, unfit))?;
        }
        Ok(())
    }

    /// How many operations were applied.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// What it comes to; `None` when nothing was ever applied.
    pub fn current(&self) -> Option<Current<'_>> {
        Some(Current { version: self.version?, added: self.added, value: self.value.as_ref()? })
    }

    /// The same, apart from the register.
    pub fn into_owned(self) -> Progress<'static> {
        let Progress { version, added, value, applied } = self;
        Progress { version, added, value: value.map(|value| Cow::Owned(value.into_owned())), applied }
    }
}
