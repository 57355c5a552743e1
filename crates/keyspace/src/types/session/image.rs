//! A whole session: as the bytes in snapshots, effects and DUMP, and as DEBUG DIGEST hashes it. docs/effect-format.md
//! describes the bytes.

use super::answers::Answer;
use super::change::{check_capabilities, digest as request_digest, flag, put_digest, shown_number};
use super::pending::{Pending, Request};
use super::{Session, TYPE, session};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Entry, Object, Shapes};

/// Encodings of a session. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    pub(super) const WHOLE: u8 = 0;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let session = session(entry);
    out.push(form::WHOLE);
    put_number(session.created_ms, out);
    put_number(session.ttl_ms, out);
    put_bytes(session.capabilities.as_deref().unwrap_or_default(), out);
    put_number(session.low(), out);
    put_number(session.answers.len() as u64, out);
    for answer in session.answers.iter() {
        put_number(answer.id, out);
        put_digest(answer.request, out);
        out.push(answer.is_resp3.into());
        put_bytes(answer.bytes(), out);
    }
    put_number(session.last_id(), out);
    put_number(session.pending_len() as u64, out);
    for request in session.pending.iter().flat_map(|pending| pending.by_age()) {
        put_number(request.id, out);
        put_number(request.sent_ms, out);
        put_bytes(request.payload, out);
    }
}

/// Reads an image, which may be damaged, and passes on its parts.
fn parse<'a>(
    reader: &mut Reader<'a>,
    mut answer: impl FnMut(Answer),
    mut request: impl FnMut(Request<'a>),
) -> Result<Head<'a>, BadEffect> {
    if reader.byte()? != form::WHOLE {
        return Err(BadEffect::OutOfRange);
    }
    let (created_ms, ttl_ms, capabilities) = (shown_number(reader)?, shown_number(reader)?, reader.bytes()?);
    check_capabilities(capabilities)?;
    let low = shown_number(reader)?;
    let mut next = low;
    for _ in 0..reader.count()? {
        let id = shown_number(reader)?;
        if id < next {
            return Err(BadEffect::OutOfRange);
        }
        next = id + 1;
        let (digest, is_resp3) = (request_digest(reader)?, flag(reader)?);
        answer(Answer::new(id, digest, is_resp3, reader.bytes()?));
    }
    let (last_id, count) = (shown_number(reader)?, reader.number()?);
    let first_id = (last_id + 1).checked_sub(count).filter(|first| *first > 0).ok_or(BadEffect::OutOfRange)?;
    let mut sent_ms = 0;
    for _ in 0..count {
        let (id, sent, payload) = (shown_number(reader)?, shown_number(reader)?, reader.bytes()?);
        if !(first_id..=last_id).contains(&id) || sent < sent_ms {
            return Err(BadEffect::OutOfRange);
        }
        sent_ms = sent;
        request(Request { id, sent_ms: sent, payload });
    }
    Ok(Head { created_ms, ttl_ms, capabilities, low, last_id })
}

struct Head<'a> {
    created_ms: u64,
    ttl_ms: u64,
    capabilities: &'a [u8],
    low: u64,
    last_id: u64,
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    let mut ids = Vec::new();
    parse(reader, drop, |request| ids.push(request.id))?;
    // All are within a range of as many ids: so they are all distinct, or one occurs twice.
    ids.sort_unstable();
    match ids.windows(2).all(|pair| pair[0] < pair[1]) {
        true => Ok(()),
        false => Err(BadEffect::OutOfRange),
    }
}

/// True for a checked image that a client may restore: its answers will be sent to a client as they are. `is_reply` says
/// whether bytes are one reply, of RESP3 or of RESP2. Journals are trusted that far.
pub fn can_be_restored(image: &[u8], is_reply: impl Fn(&[u8], bool) -> bool) -> bool {
    let mut are_replies = true;
    let head = parse(
        &mut Reader::new(image),
        |answer| are_replies = are_replies && is_reply(answer.bytes(), answer.is_resp3),
        |_| {},
    );
    head.is_ok_and(|head| head.ttl_ms > 0) && are_replies
}

/// A session has no deadline but its own: only damaged bytes give it one, which is ignored.
pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, _: Option<u64>) -> Entry {
    let (mut answers, mut requests) = (Vec::new(), Vec::new());
    let head = parse(&mut image, |answer| answers.push(answer), |request| requests.push(request))
        .expect("an image is checked before it is read");
    let mut session = Session::new(head.created_ms, head.ttl_ms, head.capabilities);
    session.answers.raise_low(head.low);
    answers.into_iter().for_each(|answer| session.answers.add(answer));
    if head.last_id > 0 {
        session.pending = Some(Box::new(Pending::from_image(head.last_id, &requests)));
    }
    Entry::with_object(name, Box::new(Object::Session(session)), None)
}

/// Redis has no sessions: the image, for DUMP.
pub(super) fn to_redis(entry: &Entry, shapes: &Shapes, _: u64) -> formats::Value {
    let mut image = Vec::new();
    write(entry, shapes, &mut image);
    formats::Value::Own(formats::OwnValue { tag: TYPE.tag, image })
}

pub(super) fn digest(entry: &Entry, shapes: &Shapes, _: u64, digest: &mut Digest) {
    let mut image = Vec::new();
    write(entry, shapes, &mut image);
    digest.mix(&image);
}
