//! The change of a run: its definition, application and encoding.

use super::event::Event;
use super::{EVENTS_MAX, Run, TIME_MAX_MS, TYPE};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Applied, Entry, Fate, Object};

/// A change of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The new last event, with its number, from 1 on, and its time in unix milliseconds.
    /// [`NewEvent::encode`](super::NewEvent::encode) makes the bytes.
    Append { number: u64, time_ms: u64, event: &'a [u8] },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const APPEND: u8 = 1;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        let Change::Append { number, time_ms, event } = *self;
        out.push(tag::APPEND);
        put_number(number - 1, out);
        put_number(time_ms, out);
        put_bytes(event, out);
    }

    pub(in crate::types) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::APPEND => {
                let (before, time_ms, event) = (reader.number()?, reader.number()?, reader.bytes()?);
                if before >= EVENTS_MAX || time_ms > TIME_MAX_MS {
                    return Err(BadEffect::OutOfRange);
                }
                Event::check(event)?;
                Ok(Change::Append { number: before + 1, time_ms, event })
            }
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        Fate::Gains { replaces: false }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        "run.append"
    }

    /// Applies the change to an entry that holds a run. A recorded event always follows the last one; one that does
    /// not, which only damage can cause, is ignored.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry) -> Applied {
        let Change::Append { number, time_ms, event } = *self;
        match entry.object_mut() {
            Some(Object::Run(run)) => {
                let follows = number == run.len() + 1 && time_ms >= run.last_ms();
                Applied::counted((follows && run.push(time_ms, event)).into())
            }
            _ => panic!("a change of a run was recorded for another type"),
        }
    }

    /// Creates the entry that the change makes of a missing key.
    pub(in crate::types) fn create(&self, name: &[u8]) -> Option<(Entry, Applied)> {
        let Change::Append { number: 1, time_ms, event } = *self else { return None };
        let mut run = Run::new();
        run.push(time_ms, event);
        Some((Entry::with_object(name, Box::new(Object::Run(run)), None), Applied::counted(1)))
    }
}
