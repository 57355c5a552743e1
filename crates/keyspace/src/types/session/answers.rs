//! The answers of a session: the reply to each request, ordered by id, from the lowest id that the client may repeat.
//! Knows ids and bytes; refuses to know what a request is.

use crate::storage::size_class::size_class;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Answers up to this length need no allocation: `+OK`, and most numbers.
const INLINE_BYTES: usize = 16;

/// Distinguishes a request from others that a client may send under the same id by mistake: the CRC-32C of its
/// concatenated arguments, and a number computed from their lengths. IMPORTANT: journals on disk contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestDigest {
    pub crc: u32,
    pub lengths: u32,
}

/// The multiplier of the lengths: odd, with its bits spread.
const LENGTH_FACTOR: u32 = 0x9e37_79b1;

impl RequestDigest {
    /// Computes the digest of a request's arguments.
    #[inline]
    pub fn of<'a>(args: impl Iterator<Item = &'a [u8]>) -> RequestDigest {
        let (mut crc, mut lengths) = (0, 0u32);
        for arg in args {
            crc = crc32c::crc32c_append(crc, arg);
            lengths = lengths.wrapping_add(arg.len() as u32 + 1).wrapping_mul(LENGTH_FACTOR);
        }
        RequestDigest { crc, lengths }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub id: u64,
    pub request: RequestDigest,
    /// The bytes are RESP3, not RESP2.
    pub is_resp3: bool,
    bytes: SmallVec<[u8; INLINE_BYTES]>,
}

impl Answer {
    pub(super) fn new(id: u64, request: RequestDigest, is_resp3: bool, bytes: &[u8]) -> Answer {
        Answer { id, request, is_resp3, bytes: SmallVec::from_slice(bytes) }
    }

    /// The reply, as it was sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The retained answers.
#[derive(Clone, Default)]
pub(super) struct Answers {
    low: u64,
    /// Ordered by id, none below `low`.
    kept: VecDeque<Answer>,
    bytes: usize,
}

impl Answers {
    pub(super) fn low(&self) -> u64 {
        self.low
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn bytes_below(&self, low: u64) -> usize {
        self.kept.iter().take_while(|answer| answer.id < low).map(|answer| answer.bytes.len()).sum()
    }

    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<&Answer> {
        // Most requests are new: their ids are above all others.
        if self.kept.back().is_none_or(|last| last.id < id) {
            return None;
        }
        let at = self.kept.binary_search_by_key(&id, |answer| answer.id).ok()?;
        Some(&self.kept[at])
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Answer> {
        self.kept.iter()
    }

    /// Adds an answer. The first answer to an id is retained; one below the lowest id is dropped.
    #[inline]
    pub(super) fn add(&mut self, answer: Answer) {
        if answer.id < self.low {
            return;
        }
        let at = match self.kept.back() {
            Some(last) if last.id >= answer.id => {
                match self.kept.binary_search_by_key(&answer.id, |answer| answer.id) {
                    Ok(_) => return,
                    Err(at) => at,
                }
            }
            _ => self.kept.len(),
        };
        if self.kept.capacity() == 0 {
            // A client that waits for each answer has one at a time.
            self.kept.reserve_exact(1);
        }
        self.bytes += answer.bytes.len();
        self.kept.insert(at, answer);
    }

    /// Drops the answers below an id, which never decreases.
    #[inline]
    pub(super) fn raise_low(&mut self, low: u64) {
        if low <= self.low {
            return;
        }
        self.low = low;
        while let Some(first) = self.kept.front()
            && first.id < low
        {
            self.bytes -= first.bytes.len();
            self.kept.pop_front();
        }
        if self.kept.capacity() > SPARE_MIN && self.kept.len() < self.kept.capacity() / SPARE_SHARE {
            self.kept.shrink_to(self.kept.len() * 2);
        }
    }

    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let own = |answer: &Answer| if answer.bytes.spilled() { size_class(answer.bytes.len()) } else { 0 };
        let sampled = self.kept.len().min(samples);
        let spilled: usize = self.kept.iter().take(sampled).map(own).sum();
        let spilled = spilled / sampled.max(1) * self.kept.len();
        size_class(self.kept.capacity() * size_of::<Answer>()) + spilled
    }
}

/// Memory for at least this many answers is freed when few of them are used.
const SPARE_MIN: usize = 64;
const SPARE_SHARE: usize = 8;
