//! Unacknowledged requests to the client of a session: by id, and by the time of sending. Knows ids, times and
//! payloads; refuses to know how they are delivered.
//!
//! Ids are assigned in order and acknowledged in order, so pending ids are consecutive. A request that is sent becomes
//! the last in the order of sending, which is a list through all of them.

use super::NUMBER_MAX;
use crate::storage::size_class::size_class;
use std::collections::VecDeque;

/// A pending request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    pub id: u64,
    pub sent_ms: u64,
    pub payload: &'a [u8],
}

#[derive(Clone)]
struct Kept {
    payload: Box<[u8]>,
    sent_ms: u64,
    /// The requests that were sent right before and after it, by the low half of their ids; its own id at an end.
    before: u32,
    after: u32,
}

/// The pending requests.
#[derive(Clone, Default)]
pub(super) struct Pending {
    /// The last id that was assigned.
    last_id: u64,
    /// Consecutive requests that end with `last_id`.
    requests: VecDeque<Kept>,
    /// The ends of the order of sending, if there is a request.
    oldest: u32,
    newest: u32,
    bytes: usize,
}

/// For a session without requests to its client.
pub(super) static NONE: Pending = Pending { last_id: 0, requests: VecDeque::new(), oldest: 0, newest: 0, bytes: 0 };

impl Pending {
    pub(super) fn last_id(&self) -> u64 {
        self.last_id
    }

    pub(super) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The id of the first pending request, or of the next one if none is pending.
    fn first_id(&self) -> u64 {
        self.last_id + 1 - self.requests.len() as u64
    }

    /// The position of a request, by the low half of its id.
    #[inline]
    fn at(&self, half: u32) -> usize {
        half.wrapping_sub(self.first_id() as u32) as usize
    }

    fn request(&self, at: usize) -> Request<'_> {
        let Kept { payload, sent_ms, .. } = &self.requests[at];
        Request { id: self.first_id() + at as u64, sent_ms: *sent_ms, payload }
    }

    /// The requests after an id, in order.
    pub(super) fn after(&self, id: u64) -> impl ExactSizeIterator<Item = Request<'_>> {
        let from = (id.saturating_add(1)).saturating_sub(self.first_id()).min(self.requests.len() as u64) as usize;
        (from..self.requests.len()).map(|at| self.request(at))
    }

    /// All requests, the oldest sending time first.
    pub(super) fn by_age(&self) -> impl Iterator<Item = Request<'_>> {
        let mut next = (!self.requests.is_empty()).then_some(self.oldest);
        std::iter::from_fn(move || {
            let half = next?;
            let at = self.at(half);
            let after = self.requests[at].after;
            next = (after != half).then_some(after);
            Some(self.request(at))
        })
    }

    pub(super) fn oldest_sent_ms(&self) -> Option<u64> {
        (!self.requests.is_empty()).then(|| self.requests[self.at(self.oldest)].sent_ms)
    }

    pub(super) fn newest_sent_ms(&self) -> u64 {
        if self.requests.is_empty() { 0 } else { self.requests[self.at(self.newest)].sent_ms }
    }

    /// Removes a request from the order of sending.
    fn unlink(&mut self, at: usize) {
        let half = (self.first_id() as u32).wrapping_add(at as u32);
        let Kept { before, after, .. } = self.requests[at];
        let (before_at, after_at) = (self.at(before), self.at(after));
        match (before == half, after == half) {
            (true, true) => {}
            (true, false) => {
                self.oldest = after;
                self.requests[after_at].before = after;
            }
            (false, true) => {
                self.newest = before;
                self.requests[before_at].after = before;
            }
            (false, false) => {
                self.requests[before_at].after = after;
                self.requests[after_at].before = before;
            }
        }
    }

    /// Appends an unlinked request to the order of sending; `is_only` when there is no other.
    fn link_last(&mut self, at: usize, is_only: bool) {
        let half = (self.first_id() as u32).wrapping_add(at as u32);
        let before = if is_only { half } else { self.newest };
        if is_only {
            self.oldest = half;
        } else {
            let newest_at = self.at(before);
            self.requests[newest_at].after = half;
        }
        let request = &mut self.requests[at];
        (request.before, request.after) = (before, half);
        self.newest = half;
    }

    /// Adds the request with this id, which follows the last; any other id, which only damage can cause, is ignored.
    pub(super) fn push(&mut self, id: u64, at_ms: u64, payload: &[u8]) -> bool {
        if id != self.last_id + 1 || id > NUMBER_MAX || self.requests.len() >= u32::MAX as usize {
            return false;
        }
        let sent_ms = at_ms.max(self.newest_sent_ms());
        let is_only = self.requests.is_empty();
        if is_only {
            // Most sessions have one at a time; room for four would dominate their size.
            self.requests.reserve_exact(1);
        }
        self.last_id = id;
        self.bytes += payload.len();
        self.requests.push_back(Kept { payload: payload.into(), sent_ms, before: 0, after: 0 });
        self.link_last(self.requests.len() - 1, is_only);
        true
    }

    /// Records that the requests from one id to another are sent now, in the order of their ids. Returns how many.
    pub(super) fn send(&mut self, first: u64, last: u64, at_ms: u64) -> usize {
        let sent_ms = at_ms.max(self.newest_sent_ms());
        let (first, last) = (first.max(self.first_id()), last.min(self.last_id));
        if first > last {
            return 0;
        }
        let from = (first - self.first_id()) as usize;
        let count = (last - first) as usize + 1;
        for at in from..from + count {
            self.unlink(at);
            self.link_last(at, self.requests.len() == 1);
            self.requests[at].sent_ms = sent_ms;
        }
        count
    }

    /// Removes the requests up to an id. Returns how many.
    pub(super) fn acknowledge(&mut self, upto: u64) -> usize {
        let count = upto.saturating_add(1).saturating_sub(self.first_id()).min(self.requests.len() as u64) as usize;
        if count == self.requests.len() {
            self.requests = VecDeque::new();
            self.bytes = 0;
            return count;
        }
        for _ in 0..count {
            self.unlink(0);
            let gone = self.requests.pop_front().expect("there are as many");
            self.bytes -= gone.payload.len();
        }
        if self.requests.len() < self.requests.capacity() / SPARE_SHARE {
            self.requests.shrink_to(self.requests.len() * 2);
        }
        count
    }

    /// Builds it from an image: the last id, then id, time and payload in the order of sending.
    pub(super) fn from_image<'a>(last_id: u64, by_age: &[Request<'a>]) -> Pending {
        let mut pending = Pending { last_id, ..Pending::default() };
        let mut by_id: Vec<&Request<'a>> = by_age.iter().collect();
        by_id.sort_unstable_by_key(|request| request.id);
        pending.requests.reserve_exact(by_id.len());
        for Request { sent_ms, payload, .. } in by_id {
            pending.bytes += payload.len();
            let payload = (*payload).into();
            pending.requests.push_back(Kept { payload, sent_ms: *sent_ms, before: 0, after: 0 });
        }
        for (number, request) in by_age.iter().enumerate() {
            let at = pending.at(request.id as u32);
            pending.link_last(at, number == 0);
        }
        pending
    }

    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let sampled = self.requests.len().min(samples);
        let payloads: usize = self.requests.iter().take(sampled).map(|kept| size_class(kept.payload.len())).sum();
        let payloads = payloads / sampled.max(1) * self.requests.len();
        size_class(size_of::<Pending>()) + size_class(self.requests.capacity() * size_of::<Kept>()) + payloads
    }
}

/// Memory is freed when at most one in this many places is used.
const SPARE_SHARE: usize = 4;
