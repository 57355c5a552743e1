//! The change of a cell: its definition, application and encoding. Knows when a cell changes its form; refuses to know
//! how each form is laid out.

use super::packed::VALUE_BYTES_MAX;
use super::{History, PACKED, TIME_MAX_US, TYPE, VERSION_MAX, Version, packed};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Applied, Entry, Fate, Object};

/// A change of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The newest version; at most `older` versions before it are retained.
    Write { version: Version<'a>, older: u64 },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const WRITE: u8 = 1;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        let Change::Write { version, older } = *self;
        out.push(tag::WRITE);
        put_number(version.number - 1, out);
        put_number(older, out);
        put_number(version.time_us, out);
        put_bytes(version.value, out);
    }

    pub(in crate::types) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::WRITE => {
                let (before, older, time_us, value) =
                    (reader.number()?, reader.number()?, reader.number()?, reader.bytes()?);
                if before >= VERSION_MAX || older > before || time_us > TIME_MAX_US {
                    return Err(BadEffect::OutOfRange);
                }
                Ok(Change::Write { version: Version { number: before + 1, time_us, value }, older })
            }
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        Fate::Gains { replaces: false }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        "cell.set"
    }

    /// Applies the change to an entry that holds a cell.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry) -> Applied {
        let Change::Write { version, older } = *self;
        let oldest = version.number - older;
        match entry.object_mut() {
            Some(Object::Cell(history)) if older > 0 || !history.is_short() => {
                match follows(version, history.newest_stamp()) {
                    true => {
                        history.push(version);
                        history.forget_before(oldest);
                    }
                    false => *history = History::new(version),
                }
            }
            Some(Object::Cell(_)) => set(entry, version),
            Some(_) => panic!("a change of a cell was recorded for another type"),
            None => {
                let current = packed::read(entry.body());
                match older > 0 && follows(version, (current.number, current.time_us)) {
                    true => {
                        let mut history = History::new(current);
                        history.push(version);
                        entry.set_object(Box::new(Object::Cell(history)));
                    }
                    false => set(entry, version),
                }
            }
        }
        Applied::counted(1)
    }

    /// Creates the entry that the change makes of a missing key.
    #[inline]
    pub(in crate::types) fn create(&self, name: &[u8]) -> (Entry, Applied) {
        let Change::Write { version, older: _ } = *self;
        (create(name, version, None), Applied::counted(1))
    }
}

/// True when a version is the successor of the one with this number and time. A recorded change always is; a damaged
/// one replaces the cell, so that versions have no gap.
#[inline]
fn follows(version: Version<'_>, (number, time_us): (u64, u64)) -> bool {
    version.number == number + 1 && version.time_us > time_us
}

/// Creates an entry for a cell with one version.
pub(super) fn create(name: &[u8], version: Version<'_>, deadline: Option<u64>) -> Entry {
    match version.value.len() <= VALUE_BYTES_MAX {
        true => packed::create(name, version, deadline),
        false => Entry::with_object(name, Box::new(Object::Cell(History::new(version))), deadline),
    }
}

/// Replaces all versions of an entry by this one.
fn set(entry: &mut Entry, version: Version<'_>) {
    match version.value.len() <= VALUE_BYTES_MAX {
        true => packed::set(entry, version),
        false => entry.set_object(Box::new(Object::Cell(History::new(version)))),
    }
    debug_assert!(entry.object().is_some() || entry.kind() == PACKED);
}
