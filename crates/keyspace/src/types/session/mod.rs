//! Sessions: the answers that a client's requests got, so that each takes effect once, and requests to the client that wait to be
//! acknowledged. Knows numbers, answers and the order in which requests were sent; refuses to know commands, connections and clocks.
//!
//! What is journalled is in [`Change`]. How long a session lives, where it is queued to be looked at, and who is attached to it
//! are of this process alone: after a start each session has its full time again, and nobody is attached.

mod answers;
mod change;
mod image;
mod pending;

pub use answers::{Answer, RequestDigest};
pub use change::{Change, capabilities_of, put_capabilities};
pub use pending::Request;

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use answers::Answers;
use pending::Pending;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the rest of the server needs to know of sessions.
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
    to_redis: image::to_redis,
    digest: image::digest,
};

/// A session with more bytes than this is freed in the background.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

/// The largest id of a request, and the latest time: what a reply can show as an integer.
pub const NUMBER_MAX: u64 = i64::MAX as u64;

/// The session that an entry of a session holds.
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
    /// No other session of this process has it.
    birth: u64,
    created_ms: u64,
    ttl_ms: u64,
    /// Names and values, as [`put_capabilities`] writes them.
    capabilities: Option<Box<[u8]>>,
    answers: Answers,
    /// Boxed: most sessions are never sent a request.
    pending: Option<Box<Pending>>,
    /// When it expires, as far as this process knows; 0 when nobody has looked yet. Readers may move it.
    until_ms: AtomicU64,
    /// Where it is in the list of sessions that are to be looked at.
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

    /// Tells it from every other session that was at its key before, or will be.
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

    /// The requests below this one are answered for good: their answers are not kept.
    #[inline]
    pub fn low(&self) -> u64 {
        self.answers.low()
    }

    /// The answer to a request, if it is kept.
    #[inline]
    pub fn answer(&self, id: u64) -> Option<&Answer> {
        self.answers.get(id)
    }

    /// How many answers are kept.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// All answers that are kept, in the order of their ids.
    pub fn all_answers(&self) -> impl ExactSizeIterator<Item = &Answer> {
        self.answers.iter()
    }

    /// How many bytes they have.
    #[inline]
    pub fn answer_bytes(&self) -> usize {
        self.answers.bytes()
    }

    /// How many bytes the answers to requests below `low` have.
    pub fn answer_bytes_below(&self, low: u64) -> usize {
        self.answers.bytes_below(low)
    }

    /// The id of the last request to the client; 0 before the first.
    #[inline]
    pub fn last_id(&self) -> u64 {
        self.pending.as_ref().map_or(0, |pending| pending.last_id())
    }

    /// How many requests to the client are not acknowledged.
    #[inline]
    pub fn pending_len(&self) -> usize {
        self.pending.as_ref().map_or(0, |pending| pending.len())
    }

    /// The pending requests behind an id, in order.
    pub fn pending_after(&self, id: u64) -> impl ExactSizeIterator<Item = Request<'_>> {
        let pending = self.pending.as_deref().unwrap_or(&pending::NONE);
        pending.after(id)
    }

    /// The pending requests that were last sent before `before_ms`, those of the longest ago first.
    pub fn sent_before(&self, before_ms: u64) -> impl Iterator<Item = Request<'_>> {
        let by_age = self.pending.iter().flat_map(|pending| pending.by_age());
        by_age.take_while(move |request| request.sent_ms < before_ms)
    }

    /// When the pending request that was not sent for longest was sent.
    #[inline]
    pub(crate) fn oldest_sent_ms(&self) -> Option<u64> {
        self.pending.as_ref().and_then(|pending| pending.oldest_sent_ms())
    }

    /// When the last of its pending requests was sent: none is sent before that.
    pub fn newest_sent_ms(&self) -> u64 {
        self.pending.as_ref().map_or(0, |pending| pending.newest_sent_ms())
    }

    /// True when its time is up.
    #[inline]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        let until_ms = self.until_ms.load(Relaxed);
        until_ms != 0 && until_ms <= now_ms
    }

    /// Its full time begins now.
    #[inline]
    pub fn renew(&self, now_ms: u64) {
        // IMPORTANT: never 0, which says that nobody has looked.
        self.until_ms.store(now_ms.saturating_add(self.ttl_ms).max(1), Relaxed);
    }

    /// When it expires, if nothing renews it.
    pub fn expires_ms(&self, now_ms: u64) -> u64 {
        match self.until_ms.load(Relaxed) {
            0 => now_ms.saturating_add(self.ttl_ms),
            until_ms => until_ms,
        }
    }

    /// It is about to be removed: it lives as long as that takes, and its requests are sent to nobody.
    pub fn begin_dying(&self) {
        self.until_ms.store(u64::MAX, Relaxed);
        self.detach();
    }

    /// The client that its requests are sent to; 0 for none.
    #[inline]
    pub fn attached(&self) -> u64 {
        self.attached.load(Relaxed)
    }

    /// From now on its requests are sent to this client.
    pub fn attach(&self, client: u64) {
        self.attached.store(client, Relaxed);
    }

    /// From now on they are sent to none.
    pub fn detach(&self) {
        self.attached.store(0, Relaxed);
    }

    /// Where it is in the list of sessions that are to be looked at.
    #[inline]
    pub(crate) fn queued_ms(&self) -> u64 {
        self.queued_ms
    }

    /// Moves it in that list to the time at which it expires. If nobody has looked at it yet, its full time begins now.
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
