//! Sessions: the answers to a client's requests, so that each takes effect once, and unacknowledged requests to the
//! client. Knows ids, answers and the order of sending; refuses to know commands, connections and clocks.
//!
//! [`Change`] has what is journalled. The remaining lifetime of a session, the time of its next check and the attached
//! client exist only in this process: after a start each session has its full TTL, and no client is attached.

mod answers;
mod change;
mod image;
mod pending;

pub use answers::{Answer, RequestDigest};
pub use change::{Change, capabilities_of, put_capabilities};
pub use image::can_be_restored;
pub use pending::Request;

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use answers::Answers;
use pending::Pending;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The row of sessions.
pub static TYPE: ValueType = ValueType {
    tag: 8,
    name: "session",
    redis_number: 108,
    event_letter: 'd',
    is_own: true,
    is_bound: true,
    name_error: |_| None,
    encoding: |_| "session",
    elements: |entry, _| session(entry).elements(),
    heap_bytes: |object, samples| session_of(object).map_or(0, |session| session.heap_bytes(samples)),
    is_freed_later: |object| {
        session_of(object).is_some_and(|session| {
            session.elements() > FREED_AT_ONCE_MAX || session.payload_bytes() > FREED_AT_ONCE_BYTES_MAX
        })
    },
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: image::to_redis,
    digest: image::digest,
};

/// A larger session is freed in the background.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

/// The largest request id, and the latest time, that a reply can show as an integer.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

/// The session in an entry.
#[inline]
pub fn session(entry: &Entry) -> &Session {
    entry.object().and_then(session_of).expect("the entry holds a session")
}

#[inline]
fn session_of(object: &Object) -> Option<&Session> {
    match object {
        Object::Session(session) => Some(session),
        _ => None,
    }
}

/// A session.
pub struct Session {
    /// Unique among the sessions of this process.
    birth: u64,
    created_ms: u64,
    ttl_ms: u64,
    /// Names and values, as [`put_capabilities`] encodes them.
    capabilities: Option<Box<[u8]>>,
    answers: Answers,
    /// Boxed: most sessions never have a request to their client.
    pending: Option<Box<Pending>>,
    /// When it expires, as far as this process knows; 0 when that is not set yet. Readers may change it.
    until_ms: AtomicU64,
    /// The time of its next check.
    queued_ms: u64,
    /// The client that its requests are sent to; 0 for none. Readers may change it.
    attached: AtomicU64,
}

impl Clone for Session {
    fn clone(&self) -> Session {
        Session {
            birth: next_birth(),
            created_ms: self.created_ms,
            ttl_ms: self.ttl_ms,
            capabilities: self.capabilities.clone(),
            answers: self.answers.clone(),
            pending: self.pending.clone(),
            until_ms: AtomicU64::new(self.until_ms.load(Relaxed)),
            queued_ms: self.queued_ms,
            attached: AtomicU64::new(0),
        }
    }
}

impl Session {
    /// A copy that takes the place of this session: the same one, with the client that is attached to it.
    pub(crate) fn same(&self) -> Session {
        Session { birth: self.birth, attached: AtomicU64::new(self.attached.load(Relaxed)), ..self.clone() }
    }
}

fn next_birth() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Session {
    fn new(created_ms: u64, ttl_ms: u64, capabilities: &[u8]) -> Session {
        Session {
            birth: next_birth(),
            created_ms,
            ttl_ms,
            capabilities: (!capabilities.is_empty()).then(|| capabilities.into()),
            answers: Answers::default(),
            pending: None,
            until_ms: AtomicU64::new(0),
            queued_ms: 0,
            attached: AtomicU64::new(0),
        }
    }

    /// Distinguishes it from every other session that was or will be at its key.
    #[inline]
    pub fn birth(&self) -> u64 {
        self.birth
    }

    pub fn created_ms(&self) -> u64 {
        self.created_ms
    }

    pub fn ttl_ms(&self) -> u64 {
        self.ttl_ms
    }

    /// Names and values.
    pub fn capabilities(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        capabilities_of(self.capabilities.as_deref().unwrap_or_default())
    }

    /// Requests below this id will not be repeated: their answers are dropped.
    #[inline]
    pub fn low(&self) -> u64 {
        self.answers.low()
    }

    /// The answer to a request, if it is retained.
    #[inline]
    pub fn answer(&self, id: u64) -> Option<&Answer> {
        self.answers.get(id)
    }

    /// The number of retained answers.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// All retained answers, ordered by id.
    pub fn all_answers(&self) -> impl ExactSizeIterator<Item = &Answer> {
        self.answers.iter()
    }

    /// The bytes of the retained answers.
    #[inline]
    pub fn answer_bytes(&self) -> usize {
        self.answers.bytes()
    }

    /// The bytes of the answers to requests below `low`.
    pub fn answer_bytes_below(&self, low: u64) -> usize {
        self.answers.bytes_below(low)
    }

    /// The id of the last request to the client; 0 before the first.
    #[inline]
    pub fn last_id(&self) -> u64 {
        self.pending.as_ref().map_or(0, |pending| pending.last_id())
    }

    /// The number of unacknowledged requests to the client.
    #[inline]
    pub fn pending_len(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.len())
    }

    /// The pending requests after an id, in order.
    pub fn pending_after(&self, id: u64) -> impl ExactSizeIterator<Item = Request<'_>> {
        let pending = self.pending.as_deref().unwrap_or(&pending::NONE);
        pending.after(id)
    }

    /// The pending requests that were last sent before `before_ms`, oldest first.
    pub fn sent_before(&self, before_ms: u64) -> impl Iterator<Item = Request<'_>> {
        let by_age = self.pending.iter().flat_map(|pending| pending.by_age());
        by_age.take_while(move |request| request.sent_ms < before_ms)
    }

    /// When the oldest pending request was last sent.
    #[inline]
    pub(crate) fn oldest_sent_ms(&self) -> Option<u64> {
        self.pending.as_ref().and_then(|pending| pending.oldest_sent_ms())
    }

    /// When the newest pending request was last sent: none was sent later.
    pub fn newest_sent_ms(&self) -> u64 {
        self.pending.as_ref().map_or(0, |pending| pending.newest_sent_ms())
    }

    /// True when it has expired.
    #[inline]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        let until_ms = self.until_ms.load(Relaxed);
        until_ms != 0 && until_ms <= now_ms
    }

    /// Restarts its full TTL.
    #[inline]
    pub fn renew(&self, now_ms: u64) {
        // IMPORTANT: never 0, which means "not set".
        self.until_ms.store(now_ms.saturating_add(self.ttl_ms).max(1), Relaxed);
    }

    /// Stops its clock: it has its full TTL again when it is checked next. Not for one that is being removed.
    pub fn stop_clock(&self) {
        let _ = self.until_ms.fetch_update(Relaxed, Relaxed, |until_ms| (until_ms != u64::MAX).then_some(0));
    }

    /// When it expires if it is not renewed.
    pub fn expires_ms(&self, now_ms: u64) -> u64 {
        match self.until_ms.load(Relaxed) {
            0 => now_ms.saturating_add(self.ttl_ms),
            until_ms => until_ms,
        }
    }

    /// Keeps it alive while it is being removed; its requests are no longer sent.
    pub fn begin_dying(&self) {
        self.until_ms.store(u64::MAX, Relaxed);
        self.detach();
    }

    /// The client that its requests are sent to; 0 for none.
    #[inline]
    pub fn attached(&self) -> u64 {
        self.attached.load(Relaxed)
    }

    /// Attaches a client, which its requests are sent to.
    pub fn attach(&self, client: u64) {
        self.attached.store(client, Relaxed);
    }

    /// Detaches the client.
    pub fn detach(&self) {
        self.attached.store(0, Relaxed);
    }

    /// The time of its next check.
    #[inline]
    pub(crate) fn queued_ms(&self) -> u64 {
        self.queued_ms
    }

    /// Schedules its next check at the time of its expiry. If that is not set yet, its full TTL begins now.
    pub(crate) fn queue(&mut self, now_ms: u64) {
        if *self.until_ms.get_mut() == 0 {
            self.renew(now_ms);
        }
        self.queued_ms = *self.until_ms.get_mut();
    }

    fn elements(&self) -> usize {
        1 + self.answers.len() + self.pending_len()
    }

    fn payload_bytes(&self) -> usize {
        self.answers.bytes() + self.pending.as_ref().map_or(0, |pending| pending.bytes())
    }

    fn heap_bytes(&self, samples: usize) -> usize {
        let capabilities =
            self.capabilities.as_ref().map_or(0, |bytes| crate::storage::size_class::size_class(bytes.len()));
        let pending = self.pending.as_ref().map_or(0, |pending| pending.heap_bytes(samples));
        capabilities + self.answers.heap_bytes(samples) + pending
    }

    fn pending_mut(&mut self) -> &mut Pending {
        self.pending.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests;
