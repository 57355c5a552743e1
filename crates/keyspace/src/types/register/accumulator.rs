//! The result of applying operations in sequence. Knows sums and gaps; refuses to change a register.

use super::{Current, Operation, RegisterRef, Version};
use numbers::{I64_CHARS_MAX, format_i64, parse_i64};
use std::borrow::Cow;

/// Why an addition cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The value is not a 64-bit integer.
    NotInteger,
    /// The sum overflows.
    Overflow,
}

/// The version and value of a register after some more operations.
pub struct Accumulator<'a> {
    version: Option<Version>,
    added: Option<i64>,
    value: Option<Cow<'a, [u8]>>,
    applied: u64,
}

impl<'a> Accumulator<'a> {
    /// Starts from the current state of a register.
    pub fn from(current: Option<Current<'a>>) -> Accumulator<'a> {
        Accumulator {
            version: current.map(|current| current.version),
            added: current.and_then(|current| current.added),
            value: current.map(|current| Cow::Borrowed(current.value)),
            applied: 0,
        }
    }

    /// Applies one operation. A missing value counts as 0.
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
        *self = Accumulator { version: Some(version), added, value: Some(value), applied: self.applied + 1 };
        Ok(())
    }

    /// Applies buffered operations from that version on, up to the first gap or the first operation that cannot be
    /// applied.
    pub fn apply_without_gap(&mut self, register: RegisterRef<'a>, from: u64) {
        let mut next = Some(Version::of_round(from));
        for (version, operation) in register.buffered_from(Version::of_round(from)) {
            if next != Some(version) || self.apply(version, operation).is_err() {
                break;
            }
            next = version.successor();
        }
    }

    /// Applies all buffered operations below that version, ignoring gaps. An error says which version cannot be
    /// applied, and why.
    pub fn apply_below(&mut self, register: RegisterRef<'a>, below: Version) -> Result<(), (Version, Unfit)> {
        let from_first = register.buffered_from(Version::of_round(0));
        for (version, operation) in from_first.take_while(|(version, _)| *version < below) {
            self.apply(version, operation).map_err(|unfit| (version, unfit))?;
        }
        Ok(())
    }

    /// The number of applied operations.
    pub fn applied(&self) -> u64 {
        self.applied
    }

    /// The resulting version and value; `None` when nothing was ever applied.
    pub fn current(&self) -> Option<Current<'_>> {
        Some(Current { version: self.version?, added: self.added, value: self.value.as_ref()? })
    }

    /// Copies the borrowed value.
    pub fn into_owned(self) -> Accumulator<'static> {
        let Accumulator { version, added, value, applied } = self;
        Accumulator { version, added, value: value.map(|value| Cow::Owned(value.into_owned())), applied }
    }
}
