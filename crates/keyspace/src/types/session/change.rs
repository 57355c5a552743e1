//! The changes of a session: their definition, application and encoding.

use super::answers::{Answer, RequestDigest};
use super::{NUMBER_MAX, Session, TYPE};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Applied, Entry, Fate, Object};

/// A change of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The session exists. [`put_capabilities`] encodes its capabilities.
    Open { created_ms: u64, ttl_ms: u64, capabilities: &'a [u8] },
    /// The time to live without renewal.
    Ttl { ttl_ms: u64 },
    /// A request got this answer; requests below `low` will not be repeated.
    Answer { id: u64, request: RequestDigest, is_resp3: bool, low: u64, reply: &'a [u8] },
    /// Requests below this one will not be repeated.
    Low { low: u64 },
    /// A new request to the client, which counts as sent at that time.
    Push { id: u64, at_ms: u64, payload: &'a [u8] },
    /// The client has acknowledged the requests up to this one.
    Acknowledge { upto: u64 },
    /// The requests from one id to another were sent at that time.
    Sent { first: u64, last: u64, at_ms: u64 },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const OPEN: u8 = 1;
    pub(super) const TTL: u8 = 2;
    pub(super) const ANSWER: u8 = 3;
    pub(super) const LOW: u8 = 4;
    pub(super) const PUSH: u8 = 5;
    pub(super) const ACKNOWLEDGE: u8 = 6;
    pub(super) const SENT: u8 = 7;
}

/// Encodes names and values.
pub fn put_capabilities<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>, out: &mut Vec<u8>) {
    for (name, value) in pairs {
        put_bytes(name, out);
        put_bytes(value, out);
    }
}

/// Decodes checked names and values.
pub fn capabilities_of(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut reader = Reader::new(bytes);
    std::iter::from_fn(move || Some((reader.bytes().ok()?, reader.bytes().ok()?)))
}

pub(super) fn check_capabilities(bytes: &[u8]) -> Result<(), BadEffect> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        reader.bytes()?;
        reader.bytes()?;
    }
    Ok(())
}

/// Reads a number that a reply can show.
pub(super) fn shown_number(reader: &mut Reader<'_>) -> Result<u64, BadEffect> {
    Some(reader.number()?).filter(|number| *number <= NUMBER_MAX).ok_or(BadEffect::OutOfRange)
}

pub(super) fn put_digest(digest: RequestDigest, out: &mut Vec<u8>) {
    out.extend_from_slice(&digest.crc.to_le_bytes());
    out.extend_from_slice(&digest.lengths.to_le_bytes());
}

pub(super) fn digest(reader: &mut Reader<'_>) -> Result<RequestDigest, BadEffect> {
    let crc = u32::from_le_bytes(reader.array()?);
    Ok(RequestDigest { crc, lengths: u32::from_le_bytes(reader.array()?) })
}

pub(super) fn flag(reader: &mut Reader<'_>) -> Result<bool, BadEffect> {
    match reader.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(BadEffect::OutOfRange),
    }
}

impl<'a> Change<'a> {
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Open { created_ms, ttl_ms, capabilities } => {
                out.push(tag::OPEN);
                put_number(created_ms, out);
                put_number(ttl_ms, out);
                put_bytes(capabilities, out);
            }
            Change::Ttl { ttl_ms } => {
                out.push(tag::TTL);
                put_number(ttl_ms, out);
            }
            Change::Answer { id, request, is_resp3, low, reply } => {
                out.push(tag::ANSWER);
                put_number(id, out);
                // Most clients wait for each answer: their lowest id is this one.
                put_number(id.saturating_sub(low), out);
                put_digest(request, out);
                out.push(is_resp3.into());
                put_bytes(reply, out);
            }
            Change::Low { low } => {
                out.push(tag::LOW);
                put_number(low, out);
            }
            Change::Push { id, at_ms, payload } => {
                out.push(tag::PUSH);
                put_number(id, out);
                put_number(at_ms, out);
                put_bytes(payload, out);
            }
            Change::Acknowledge { upto } => {
                out.push(tag::ACKNOWLEDGE);
                put_number(upto, out);
            }
            Change::Sent { first, last, at_ms } => {
                out.push(tag::SENT);
                put_number(first, out);
                put_number(last.saturating_sub(first), out);
                put_number(at_ms, out);
            }
        }
    }

    pub(in crate::types) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        Ok(match reader.byte()? {
            tag::OPEN => {
                let (created_ms, ttl_ms) = (shown_number(reader)?, shown_number(reader)?);
                let capabilities = reader.bytes()?;
                check_capabilities(capabilities)?;
                Change::Open { created_ms, ttl_ms, capabilities }
            }
            tag::TTL => Change::Ttl { ttl_ms: shown_number(reader)? },
            tag::ANSWER => {
                let (id, behind) = (shown_number(reader)?, reader.number()?);
                let low = id.checked_sub(behind).ok_or(BadEffect::OutOfRange)?;
                let (request, is_resp3) = (digest(reader)?, flag(reader)?);
                Change::Answer { id, request, is_resp3, low, reply: reader.bytes()? }
            }
            tag::LOW => Change::Low { low: shown_number(reader)? },
            tag::PUSH => {
                let (id, at_ms) = (shown_number(reader)?, shown_number(reader)?);
                Change::Push { id, at_ms, payload: reader.bytes()? }
            }
            tag::ACKNOWLEDGE => Change::Acknowledge { upto: shown_number(reader)? },
            tag::SENT => {
                let (first, more) = (shown_number(reader)?, reader.number()?);
                let last = first.checked_add(more).filter(|last| *last <= NUMBER_MAX).ok_or(BadEffect::OutOfRange)?;
                Change::Sent { first, last, at_ms: shown_number(reader)? }
            }
            unknown => return Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        })
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        Fate::Gains { replaces: false }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Open { .. } | Change::Ttl { .. } => "session.open",
            Change::Answer { .. } | Change::Low { .. } => "session.call",
            Change::Push { .. } => "session.push",
            Change::Acknowledge { .. } => "session.ack",
            Change::Sent { .. } => "session.retry",
        }
    }

    /// Applies the change to an entry that holds a session.
    pub(in crate::types) fn apply(&self, entry: &mut Entry) -> Applied {
        let Some(Object::Session(session)) = entry.object_mut() else {
            panic!("a change of a session was recorded for another type");
        };
        Applied::counted(match *self {
            // No version opens a session that exists.
            Change::Open { .. } => 0,
            Change::Ttl { ttl_ms } => {
                session.ttl_ms = ttl_ms;
                // It may expire before its scheduled check: the next expiry cycle checks it.
                session.queued_ms = 0;
                1
            }
            Change::Answer { id, request, is_resp3, low, reply } => {
                session.answers.raise_low(low);
                session.answers.add(Answer::new(id, request, is_resp3, reply));
                1
            }
            Change::Low { low } => {
                session.answers.raise_low(low);
                1
            }
            Change::Push { id, at_ms, payload } => session.pending_mut().push(id, at_ms, payload).into(),
            Change::Acknowledge { upto } => session.pending.as_mut().map_or(0, |pending| pending.acknowledge(upto)),
            Change::Sent { first, last, at_ms } => {
                session.pending.as_mut().map_or(0, |pending| pending.send(first, last, at_ms))
            }
        })
    }

    /// Creates the entry that the change makes of a missing key.
    pub(in crate::types) fn create(&self, name: &[u8]) -> Option<(Entry, Applied)> {
        let Change::Open { created_ms, ttl_ms, capabilities } = *self else { return None };
        let session = Session::new(created_ms, ttl_ms, capabilities);
        Some((Entry::with_object(name, Box::new(Object::Session(session)), None), Applied::counted(1)))
    }
}
