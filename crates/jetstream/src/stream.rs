//! The interface of a stream of messages that several processes reach over a network, and of the clock that leases are
//! counted by. Knows nothing of frames. [`crate::NatsStream`] is the one of production; tests have their own.

use crate::frame::{Nonce, Position};
use bytes::Bytes;
use std::sync::Weak;
use std::time::Duration;
use thiserror::Error;

/// A stream of messages, as one process reaches it.
///
/// A request is answered later, once, on a thread of the stream: never inside the call. It may also never be answered,
/// or be answered with an error although it was done.
pub trait Stream: Send + Sync {
    /// Appends a message if the last one is at `last`.
    fn append(&self, last: Position, message: Bytes, answer: Answer<Appended>);

    /// Reads what is stored at a position.
    fn read(&self, position: Position, answer: Answer<Found>);

    /// Where the stream begins and ends. It is answered only while the stream has a leader.
    fn extent(&self, answer: Answer<Extent>);

    /// Removes all messages up to `upto`.
    fn purge(&self, upto: Position, answer: Answer<()>);

    /// Delivers the messages from `from` on, in order, until the result is dropped or the receiver is gone.
    fn follow(&self, from: Position, receiver: Weak<dyn Receive>) -> Box<dyn Send>;

    /// The longest message that it takes, in bytes.
    fn message_max(&self) -> usize;

    /// The clock that leases are counted by. It goes on while the machine sleeps, and never goes back.
    fn now_ns(&self) -> u64;

    /// Calls [`Tick::tick`] some twenty times a second, until it is dropped.
    fn tick(&self, ticking: Weak<dyn Tick>);

    /// Calls [`Tick::tick`] once more, after a time that is much shorter than that between two others. A stream that cannot
    /// leaves it to the next of them.
    fn tick_after(&self, after: Duration, ticking: Weak<dyn Tick>) {
        let _ = (after, ticking);
    }

    /// What tells one attempt from any other.
    fn nonce(&self) -> Nonce {
        Nonce::random()
    }

    /// Lets a moment pass, for a thread that waits for an answer.
    fn pause(&self);
}

/// What is called with the answer to a request.
pub type Answer<T> = Box<dyn FnOnce(Result<T, Unanswered>) + Send>;

/// The result of an append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Appended {
    At(Position),
    /// The last message is not where it was expected.
    Conflict,
}

/// What was found at a position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    Message(Bytes),
    /// It was there, and has been removed with all before it.
    Purged,
    /// There are messages before it and behind it. It may have been stored just now, and be found the next time.
    Missing,
    /// Nothing is there yet. The stream ends at this position.
    Empty {
        last: Position,
    },
}

/// Where a stream begins and ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The first message that is kept; one more than `last` if there is none.
    pub first: Position,
    pub last: Position,
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Unanswered {
    pub reason: String,
    /// The stream does not exist, so nothing will answer.
    pub is_gone: bool,
}

impl Unanswered {
    pub fn new(reason: impl Into<String>) -> Unanswered {
        Unanswered { reason: reason.into(), is_gone: false }
    }
}

/// Takes the messages of a stream. It is called on a thread of the stream, which it must not block.
pub trait Receive: Send + Sync {
    fn receive(&self, position: Position, message: Bytes);

    /// False while it has more messages than it should hold: delivery waits.
    fn has_room(&self) -> bool;

    /// The stream cannot be followed any more.
    fn fail(&self, reason: Unanswered);
}

/// Does something as time passes.
pub trait Tick: Send + Sync {
    fn tick(&self);
}

/// The time of the log: by it, deadlines are judged, whoever writes.
pub trait Time: Send + Sync {
    /// The time of this process, as it is said in a frame: the writer's, or what it follows. A writer's never goes back
    /// behind it. Unix milliseconds.
    fn now_ms(&self) -> u64;

    /// What the clock of this machine says.
    fn own_ms(&self) -> u64;

    /// This process follows: its time is that of the last frame that it has applied.
    fn follow(&self, time_ms: u64);

    /// This process writes from now on. Its time is never before `floor_ms`, goes on from there, and stops at `ceiling_ms`.
    fn begin(&self, floor_ms: u64, ceiling_ms: u64);

    /// The writer's time may go on up to `ceiling_ms`.
    fn allow(&self, ceiling_ms: u64);
}
