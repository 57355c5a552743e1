//! A frame: one message of the stream. Knows its bytes and what a chain of frames has to look like; refuses to know how
//! one is sent.
//!
//! ```text
//!  0      4      5          8     16      20          24       40           48           52      56
//!  | HFL1 | kind | 0        | log | epoch | partition | nonce  | previous   | previous   | count | 0
//!  |      |      |          | id  |       |           |        | position   | crc        |       |
//!  56      64        72          80                  end - 4
//!  | first | time_ms | ceiling_ms | payload ...       | crc |
//! ```
//!
//! - `previous position`, `previous crc`: of the frame before. `crc` is over all bytes before it, and so chains.
//! - `first`, `count`: the number of the first batch that ends in this frame, and how many end there.
//! - `time_ms`, `ceiling_ms`: the writer's time, and the latest time by which it judges until the next frame.
//!
//! The payloads of an epoch's frames, one after the other, are its batches: for each its time (8 bytes), its length (8
//! bytes) and its bytes. A batch that is larger than a message is spread over several frames, and counts when its last
//! one is stored. The next epoch drops a batch whose end is missing.

use bytes::Bytes;
use journal::{Epoch, Sequence};
use std::fmt;
use thiserror::Error;

const MAGIC: &[u8; 4] = b"HFL1";
pub(crate) const HEADER_LEN: usize = 80;
const CRC_LEN: usize = 4;
/// What a frame needs beside its payload.
pub(crate) const OVERHEAD: usize = HEADER_LEN + CRC_LEN;
/// The time and the length before each batch.
const BATCH_HEADER_LEN: usize = 16;
/// No batch is longer: a length beyond it is damage.
const BATCH_BYTES_MAX: u64 = 1 << 40;

/// The place of a message in the stream. The first is 1; 0 is before it.
pub type Position = u64;

/// Which log a frame belongs to: chosen at random when the log is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogId(pub u64);

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Tells the frames of one attempt to take over from those of any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nonce(pub u128);

impl Nonce {
    pub fn random() -> Nonce {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            // It fails only before the kernel has any randomness, and then says so for a moment.
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()).unwrap_or(0);
        }
        Nonce(u128::from_le_bytes(bytes))
    }
}

/// What a frame is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Batches, or none: then it renews the lease.
    Batches,
    /// A new writer has taken the log over. Its payload says where clients reach it.
    Epoch,
    /// The writer has given the log up. Its payload names the member that should take it, if any.
    Release,
}

impl Kind {
    fn tag(self) -> u8 {
        match self {
            Kind::Batches => 1,
            Kind::Epoch => 2,
            Kind::Release => 3,
        }
    }

    fn of(tag: u8) -> Option<Kind> {
        Some(match tag {
            1 => Kind::Batches,
            2 => Kind::Epoch,
            3 => Kind::Release,
            _ => return None,
        })
    }
}

/// The end of a chain of frames: what the next frame has to continue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) position: Position,
    pub(crate) crc: u32,
    pub(crate) epoch: Epoch,
    pub(crate) nonce: Nonce,
    /// The last batch that is complete.
    pub(crate) sequence: Sequence,
    pub(crate) time_ms: u64,
    pub(crate) ceiling_ms: u64,
}

impl Link {
    /// Before the first frame.
    pub(crate) const START: Link = Link {
        position: 0,
        crc: 0,
        epoch: Epoch::NONE,
        nonce: Nonce(0),
        sequence: Sequence::NONE,
        time_ms: 0,
        ceiling_ms: 0,
    };
}

/// What is said of a frame beside the chain it continues.
pub(crate) struct Contents<'p> {
    pub(crate) kind: Kind,
    pub(crate) epoch: Epoch,
    pub(crate) nonce: Nonce,
    /// How many batches end in it.
    pub(crate) count: u32,
    pub(crate) time_ms: u64,
    pub(crate) ceiling_ms: u64,
    pub(crate) payload: &'p [u8],
}

/// A frame that continues `after`, and the chain with it.
pub(crate) fn encode(log: LogId, partition: u32, after: &Link, contents: &Contents<'_>) -> (Bytes, Link) {
    let Contents { kind, epoch, nonce, count, time_ms, ceiling_ms, payload } = *contents;
    let mut bytes = Vec::with_capacity(OVERHEAD + payload.len());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[kind.tag(), 0, 0, 0]);
    bytes.extend_from_slice(&log.0.to_le_bytes());
    bytes.extend_from_slice(&epoch.0.to_le_bytes());
    bytes.extend_from_slice(&partition.to_le_bytes());
    bytes.extend_from_slice(&nonce.0.to_le_bytes());
    bytes.extend_from_slice(&after.position.to_le_bytes());
    bytes.extend_from_slice(&after.crc.to_le_bytes());
    bytes.extend_from_slice(&count.to_le_bytes());
    bytes.extend_from_slice(&after.sequence.next().0.to_le_bytes());
    bytes.extend_from_slice(&time_ms.to_le_bytes());
    bytes.extend_from_slice(&ceiling_ms.to_le_bytes());
    bytes.extend_from_slice(payload);
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    let sequence = Sequence(after.sequence.0 + u64::from(count));
    let link = Link { position: after.position + 1, crc, epoch, nonce, sequence, time_ms, ceiling_ms };
    (bytes.into(), link)
}

/// Appends a batch to a payload.
pub(crate) fn encode_batch(payload: &mut Vec<u8>, time_ms: u64, batch: &[u8]) {
    payload.extend_from_slice(&time_ms.to_le_bytes());
    payload.extend_from_slice(&(batch.len() as u64).to_le_bytes());
    payload.extend_from_slice(batch);
}

/// Why the log cannot be read on from a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    #[error("message {position} of the stream is not of this log: {detail}")]
    Foreign { position: Position, detail: String },
    #[error("message {position} of the stream is damaged: {detail}")]
    Broken { position: Position, detail: String },
    #[error("messages are missing from the stream: message {found} follows message {last}")]
    Gap { last: Position, found: Position },
    #[error("message {position} of the stream does not continue the one before: {detail}")]
    Unchained { position: Position, detail: String },
    #[error("{reason}")]
    Gone { reason: String },
    #[error(
        "message {position} of the stream is missing, although there are others before it and behind it: part of the log is lost"
    )]
    Hole { position: Position },
    #[error("the stream ends at message {last}, but message {needed} was acknowledged: part of the log is lost")]
    Lost { last: Position, needed: Position },
    #[error(
        "the stream begins at message {first}, but the newest snapshot needs message {needed}: part of the log is lost"
    )]
    Purged { first: Position, needed: Position },
}

/// A frame, as it was read. It has been checked against the chain.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: Kind,
    pub(crate) epoch: Epoch,
    pub(crate) count: u32,
    pub(crate) payload: Bytes,
    /// The end of the chain with this frame.
    pub(crate) link: Link,
}

/// The epoch and nonce of a frame that is not followed, if it is one of this log.
pub(crate) fn writer_of(log: LogId, bytes: &[u8]) -> Option<(Epoch, Nonce)> {
    let is_frame = bytes.len() >= OVERHEAD && &bytes[..4] == MAGIC && u64_at(bytes, 8) == log.0;
    is_frame.then(|| (Epoch(u32_at(bytes, 16)), Nonce(u128::from_le_bytes(bytes[24..40].try_into().unwrap()))))
}

/// Reads the message at `position`, which must continue the chain that ends with `last`.
pub(crate) fn decode(
    log: LogId,
    partition: u32,
    last: &Link,
    position: Position,
    bytes: &Bytes,
) -> Result<Frame, Damage> {
    if position != last.position + 1 {
        return Err(Damage::Gap { last: last.position, found: position });
    }
    let (kind, crc) = check_alone(log, partition, position, bytes)?;
    check_place(position, bytes)?;
    let body = &bytes[..bytes.len() - CRC_LEN];
    let unchained = |detail: String| Damage::Unchained { position, detail };
    let (before, before_crc) = (u64_at(bytes, 40), u32_at(bytes, 48));
    if (before, before_crc) != (last.position, last.crc) {
        return Err(unchained(format!(
            "it continues message {before} ({before_crc:08x}), and the last one is {} ({:08x})",
            last.position, last.crc
        )));
    }
    let (epoch, nonce) = (Epoch(u32_at(bytes, 16)), Nonce(u128::from_le_bytes(bytes[24..40].try_into().unwrap())));
    let continues = match kind {
        Kind::Epoch => epoch > last.epoch,
        Kind::Batches | Kind::Release => epoch == last.epoch && nonce == last.nonce,
    };
    if !continues {
        return Err(unchained(format!("it is of epoch {epoch}, and the last one of epoch {}", last.epoch)));
    }
    let (count, first) = (u32_at(bytes, 52), u64_at(bytes, 56));
    if first != last.sequence.next().0 {
        return Err(unchained(format!("it goes on with batch {first}, and the last one was {}", last.sequence)));
    }
    if count > 0 && kind != Kind::Batches {
        return Err(Damage::Broken { position, detail: "it has batches, and is none of those that do".into() });
    }
    let link = Link {
        position,
        crc,
        epoch,
        nonce,
        sequence: Sequence(last.sequence.0 + u64::from(count)),
        time_ms: u64_at(bytes, 64),
        ceiling_ms: u64_at(bytes, 72),
    };
    Ok(Frame { kind, epoch, count, payload: bytes.slice(HEADER_LEN..body.len()), link })
}

/// True when no writer of this log has put a message at this position: it is of another program, or a copy of a frame that
/// was made for another position.
pub(crate) fn is_misplaced(log: LogId, partition: u32, position: Position, bytes: &[u8]) -> bool {
    match check_alone(log, partition, position, bytes) {
        Ok(_) => made_for(bytes) != position,
        // It may be of a newer version, or damaged, if it begins as a frame.
        Err(Damage::Foreign { .. }) => match writer_of(log, bytes) {
            Some(_) => made_for(bytes) != position,
            None => !bytes.starts_with(&MAGIC[..3]) || is_whole(bytes),
        },
        Err(_) => false,
    }
}

/// What can be said of a message without the one before it: its kind and its checksum, if it is a whole frame of this log.
fn check_alone(log: LogId, partition: u32, position: Position, bytes: &[u8]) -> Result<(Kind, u32), Damage> {
    let foreign = |detail: String| Damage::Foreign { position, detail };
    if bytes.len() < OVERHEAD || &bytes[..4] != MAGIC {
        let start: String = bytes.iter().take(40).map(|byte| std::ascii::escape_default(*byte).to_string()).collect();
        return Err(foreign(format!("it begins with \"{start}\". Another program writes to this stream")));
    }
    let body = &bytes[..bytes.len() - CRC_LEN];
    let crc = u32_at(bytes, body.len());
    if crc32c::crc32c(body) != crc {
        return Err(Damage::Broken { position, detail: "its checksum does not match".into() });
    }
    let found = LogId(u64_at(bytes, 8));
    if found != log {
        return Err(foreign(format!("it belongs to the log {found}, and this is {log}")));
    }
    if u32_at(bytes, 20) != partition {
        return Err(foreign(format!("it is of partition {}, and this is {partition}", u32_at(bytes, 20))));
    }
    let kind = Kind::of(bytes[4]).filter(|_| bytes[5..8] == [0; 3]);
    let kind = kind.ok_or_else(|| foreign("it was written by a newer version of Holdfast".into()))?;
    Ok((kind, crc))
}

/// True for a frame of any log.
fn is_whole(bytes: &[u8]) -> bool {
    let has_crc = |body: &[u8]| crc32c::crc32c(body) == u32_at(bytes, body.len());
    bytes.len() >= OVERHEAD && &bytes[..4] == MAGIC && has_crc(&bytes[..bytes.len() - CRC_LEN])
}

/// The position that a frame was made for.
fn made_for(bytes: &[u8]) -> Position {
    u64_at(bytes, 40).wrapping_add(1)
}

/// An error for a copy of another frame.
fn check_place(position: Position, bytes: &[u8]) -> Result<(), Damage> {
    match made_for(bytes) {
        own if own == position => Ok(()),
        other => {
            let detail = format!("it is a copy of message {other}. Another program writes to this stream");
            Err(Damage::Foreign { position, detail })
        }
    }
}

/// The epoch and the time of a message that is looked at without the one before it.
pub(crate) fn glance(log: LogId, partition: u32, position: Position, bytes: &[u8]) -> Result<(Epoch, u64), Damage> {
    check_alone(log, partition, position, bytes)?;
    check_place(position, bytes)?;
    Ok((Epoch(u32_at(bytes, 16)), u64_at(bytes, 64)))
}

/// The batches of the frames of an epoch.
#[derive(Default)]
pub(crate) struct Assembly {
    /// The beginning of a batch whose end is in a later frame.
    begun: Vec<u8>,
}

impl Assembly {
    /// True when all batches so far are complete.
    #[cfg(test)]
    fn is_complete(&self) -> bool {
        self.begun.is_empty()
    }

    /// Adds a frame. `found` is called with the time and the bytes of each batch that ends in it.
    pub(crate) fn add(&mut self, frame: &Frame, mut found: impl FnMut(u64, Vec<u8>)) -> Result<(), Damage> {
        match frame.kind {
            Kind::Epoch | Kind::Release => {
                // What its writer did not finish never happened.
                self.begun.clear();
                return Ok(());
            }
            Kind::Batches => {}
        }
        let broken = |detail: &str| Damage::Broken { position: frame.link.position, detail: detail.to_owned() };
        let joined;
        let mut rest: &[u8] = match self.begun.is_empty() {
            true => &frame.payload,
            false => {
                self.begun.extend_from_slice(&frame.payload);
                if frame.count == 0 {
                    return Ok(());
                }
                joined = std::mem::take(&mut self.begun);
                &joined
            }
        };
        for _ in 0..frame.count {
            let whole = rest.split_at_checked(BATCH_HEADER_LEN).and_then(|(header, after)| {
                let length = u64_at(header, 8);
                let length = usize::try_from(length).ok().filter(|_| length < BATCH_BYTES_MAX)?;
                Some((u64_at(header, 0), after.split_at_checked(length)?))
            });
            let Some((time_ms, (batch, after))) = whole else {
                return Err(broken("it has fewer batches than it says"));
            };
            found(time_ms, batch.to_vec());
            rest = after;
        }
        let is_whole = rest.split_at_checked(BATCH_HEADER_LEN).is_some_and(|(header, after)| {
            usize::try_from(u64_at(header, 8)).is_ok_and(|length| after.len() >= length)
        });
        if is_whole {
            return Err(broken("it has more batches than it says"));
        }
        self.begun = rest.to_vec();
        Ok(())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: LogId = LogId(0x0102_0304_0506_0708);

    fn contents(kind: Kind, epoch: u32, count: u32, payload: &[u8]) -> Contents<'_> {
        Contents { kind, epoch: Epoch(epoch), nonce: Nonce(epoch.into()), count, time_ms: 5, ceiling_ms: 9, payload }
    }

    fn append(last: &mut Link, kind: Kind, epoch: u32, count: u32, payload: &[u8]) -> Bytes {
        let (bytes, link) = encode(LOG, 0, last, &contents(kind, epoch, count, payload));
        *last = link;
        bytes
    }

    #[test]
    fn the_layout_is_pinned() {
        let after = Link { position: 6, crc: 7, sequence: Sequence(8), ..Link::START };
        let (bytes, link) = encode(LOG, 3, &after, &contents(Kind::Release, 4, 0, b"x"));
        assert_eq!(bytes[..16], *b"HFL1\x03\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01");
        assert_eq!(bytes[16..24], *b"\x04\0\0\0\x03\0\0\0");
        assert_eq!((bytes[24], bytes[40], bytes[48], bytes[52]), (4, 6, 7, 0));
        assert_eq!((bytes[56], bytes[64], bytes[72], bytes[80]), (9, 5, 9, b'x'));
        assert_eq!(bytes[81..], crc32c::crc32c(&bytes[..81]).to_le_bytes());
        assert_eq!((link.position, link.sequence, link.epoch), (7, Sequence(8), Epoch(4)));
    }

    #[test]
    fn batches_of_any_size_come_back_however_they_are_cut() {
        for cut in [1, 3, 16, 17, 40, 1000] {
            let batches: Vec<Vec<u8>> = (0..20u8).map(|number| vec![number; usize::from(number) * 7]).collect();
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            for batch in &batches {
                encode_batch(&mut bytes, 1, batch);
                ends.push(bytes.len());
            }
            let mut last = Link::START;
            let mut messages = vec![append(&mut last, Kind::Epoch, 1, 0, b"here")];
            for (number, piece) in bytes.chunks(cut).enumerate() {
                let (from, to) = (number * cut, number * cut + piece.len());
                let count = ends.iter().filter(|end| **end > from && **end <= to).count();
                messages.push(append(&mut last, Kind::Batches, 1, count as u32, piece));
            }
            let (mut chain, mut assembly, mut found) = (Link::START, Assembly::default(), Vec::new());
            for (at, message) in messages.iter().enumerate() {
                let frame = decode(LOG, 0, &chain, at as u64 + 1, message).unwrap();
                assembly.add(&frame, |_, batch| found.push(batch)).unwrap();
                chain = frame.link;
            }
            assert_eq!((found, chain, assembly.is_complete()), (batches, last, true));
        }
    }

    #[test]
    fn an_epoch_drops_the_batch_that_its_writer_before_did_not_finish() {
        let mut last = Link::START;
        let mut bytes = Vec::new();
        encode_batch(&mut bytes, 1, b"never finished");
        let mut whole = Vec::new();
        encode_batch(&mut whole, 1, b"whole");
        let messages = [
            append(&mut last, Kind::Epoch, 1, 0, b""),
            append(&mut last, Kind::Batches, 1, 0, &bytes[..20]),
            append(&mut last, Kind::Epoch, 2, 0, b""),
            append(&mut last, Kind::Batches, 2, 1, &whole),
        ];
        let (mut chain, mut assembly, mut found) = (Link::START, Assembly::default(), Vec::new());
        for (at, message) in messages.iter().enumerate() {
            let frame = decode(LOG, 0, &chain, at as u64 + 1, message).unwrap();
            assembly.add(&frame, |_, batch| found.push(batch)).unwrap();
            chain = frame.link;
        }
        assert_eq!((found, chain.sequence), (vec![b"whole".to_vec()], Sequence(1)));
    }

    #[test]
    fn whatever_does_not_continue_the_chain_is_refused() {
        let mut last = Link::START;
        let first = append(&mut last, Kind::Epoch, 1, 0, b"");
        let (after_first, mut other) = (last, last);
        let second = append(&mut last, Kind::Batches, 1, 0, b"");
        let read = |link: &Link, position, bytes: &Bytes| decode(LOG, 0, link, position, bytes).unwrap_err();
        assert!(matches!(read(&Link::START, 2, &second), Damage::Gap { last: 0, found: 2 }));
        assert!(matches!(read(&after_first, 2, &first), Damage::Foreign { .. }));
        assert!(matches!(read(&after_first, 2, &Bytes::from_static(b"hello")), Damage::Foreign { .. }));
        for at in 0..second.len() {
            let mut flipped = second.to_vec();
            flipped[at] ^= 4;
            decode(LOG, 0, &after_first, 2, &flipped.into()).unwrap_err();
        }
        let another = append(&mut other, Kind::Batches, 2, 0, b"");
        assert!(matches!(read(&after_first, 2, &another), Damage::Unchained { .. }));
        let (counted, _) = encode(LOG, 0, &after_first, &contents(Kind::Release, 1, 1, b""));
        assert!(matches!(read(&after_first, 2, &counted), Damage::Broken { .. }));
        let (foreign, _) = encode(LogId(1), 0, &after_first, &contents(Kind::Batches, 1, 0, b""));
        assert!(matches!(read(&after_first, 2, &foreign), Damage::Foreign { .. }));
        let (partition, _) = encode(LOG, 1, &after_first, &contents(Kind::Batches, 1, 0, b""));
        assert!(matches!(read(&after_first, 2, &partition), Damage::Foreign { .. }));
        // What may be passed over: others' messages, and copies of frames. Never a frame in its place, of a newer version too.
        let (mut newer, mut broken) = (second[..second.len() - CRC_LEN].to_vec(), second.to_vec());
        newer[4] = 200;
        newer.extend_from_slice(&crc32c::crc32c(&newer).to_le_bytes());
        *broken.last_mut().unwrap() ^= 1;
        assert!(matches!(read(&after_first, 2, &newer.clone().into()), Damage::Foreign { .. }));
        for (bytes, position, expected) in [
            (&b"hello"[..], 2, true),
            (&first, 2, true),
            (&foreign, 2, true),
            (&second, 3, true),
            (&newer, 3, true),
            (&second, 2, false),
            (&another, 2, false),
            (&newer, 2, false),
            (b"HFL2 of a later time", 2, false),
            (&second[..50], 2, false),
            (&broken, 2, false),
        ] {
            assert_eq!(is_misplaced(LOG, 0, position, bytes), expected);
        }
    }
}
