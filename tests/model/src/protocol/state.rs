//! What a state of the model holds: the log, the network, the object store, the servers, and what clients have seen.
//! Knows nothing of steps or rules.

use super::config::Budget;
use super::writes::Writes;

/// One state of the system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State {
    pub(crate) servers: Vec<Server>,
    /// All frames ever appended. Those up to `purged` can no longer be read.
    pub(crate) log: Vec<Frame>,
    pub(crate) purged: u8,
    pub(crate) requests: Vec<Request>,
    pub(crate) answers: Vec<Answer>,
    /// Published snapshots, the lowest position first.
    pub(crate) store: Vec<Snapshot>,
    pub(crate) next_write: u8,
    pub(crate) budget: Budget,
    /// How much of the log clients have seen: the place of the last acknowledged write, the length of the longest read.
    pub(crate) observed: u8,
    pub(crate) acknowledged: Writes,
    pub(crate) refused: Writes,
    /// Epoch, server and incarnation of every writer that has replied.
    pub(crate) repliers: Vec<(u8, u8, u8)>,
    /// Flags of `invariants`.
    pub(crate) violations: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Server {
    pub(crate) up: bool,
    /// Counts starts and attempted take-overs. With the server's number it is the nonce of its frames.
    pub(crate) incarnation: u8,
    pub(crate) role: Role,
    /// The highest epoch seen; a writer's own.
    pub(crate) epoch: u8,
    /// The last frame that counts. `None` after a load: the manifest has it, and the model looks it up when it is
    /// needed.
    pub(crate) chain: Option<Link>,
    /// The position up to which the log was applied or, by its writer, acknowledged.
    pub(crate) applied: u8,
    /// The batch of which only some pieces are in the log up to `applied`.
    pub(crate) unfinished: Option<Unfinished>,
    /// The keyspace: the writes that were executed or applied, in their order.
    pub(crate) state: Writes,
    /// Executed, and not yet wholly sent.
    pub(crate) queue: Writes,
    pub(crate) pending: Vec<Pending>,
    /// Ticks until the lease ends.
    pub(crate) lease: u8,
    /// Ticks until a follower may take over.
    pub(crate) wait: u8,
    pub(crate) releasing: bool,
    pub(crate) replies: Vec<Reply>,
    /// Replies that passed the check. The process may be paused before it sends them.
    pub(crate) checked_replies: Vec<Reply>,
    /// A snapshot that is being written, and the store as it was at its begin.
    pub(crate) snapshot: Option<(Snapshot, Vec<Snapshot>)>,
    pub(crate) purge_to: Option<u8>,
    /// A reader that found damage.
    pub(crate) halted: bool,
    /// For `Mutation::CheckAtStartOfTick`: the lease was valid when a tick of the server began.
    pub(crate) leased_at_tick_start: bool,
    /// For `Mutation::EpochCountsUnfinished`: batches that it has numbered, and that are not there.
    pub(crate) miscounted: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Role {
    Follower,
    /// Its epoch record has no answer yet.
    Candidate,
    Writer,
}

/// A message of the stream. `author` and `incarnation` are the nonce of its writer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Frame {
    pub(crate) epoch: u8,
    pub(crate) author: u8,
    pub(crate) incarnation: u8,
    pub(crate) kind: Kind,
    /// The number of its first batch or, without any, of the batch that comes next.
    pub(crate) first_batch: u8,
    /// Each write is a batch.
    pub(crate) writes: Writes,
    /// Counts the frames of an epoch.
    pub(crate) number: u8,
    /// The frame before it, as its author knew it: stands for the chained CRC.
    pub(crate) chain: Option<Link>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Epoch,
    /// Whole batches.
    Data,
    /// A piece of a batch that is larger than a message, counted from 1. Others follow.
    Piece(u8),
    /// The last piece: with it the batch counts.
    LastPiece(u8),
    Heartbeat,
    /// The writer gives its lease back: a planned hand-over.
    Release,
}

/// What identifies a frame to the next one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Link {
    pub(crate) epoch: u8,
    pub(crate) author: u8,
    pub(crate) number: u8,
}

impl Frame {
    pub(crate) fn link(&self) -> Link {
        Link { epoch: self.epoch, author: self.author, number: self.number }
    }

    /// The batches that count once this frame does.
    pub(crate) fn completes(&self) -> Writes {
        if matches!(self.kind, Kind::Piece(_)) { Writes::default() } else { self.writes }
    }
}

/// A batch of which the last piece is missing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Unfinished {
    pub(crate) batch: Writes,
    pub(crate) pieces: u8,
}

/// A frame without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pending {
    pub(crate) frame: Frame,
    pub(crate) position: u8,
    /// What is left of the lease that it gives, counted from when it was first sent.
    pub(crate) lease: u8,
    pub(crate) acknowledged: bool,
}

/// An append on its way. `expected` is Nats-Expected-Last-Sequence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Request {
    pub(crate) expected: Option<u8>,
    pub(crate) frame: Frame,
}

/// An acknowledgement on its way, or a conflict (`at` is `None`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Answer {
    pub(crate) frame: Frame,
    pub(crate) at: Option<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Operation {
    Write(u8),
    Read(Writes),
}

/// A reply that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reply {
    pub(crate) operation: Operation,
    /// The position that has to be acknowledged first.
    pub(crate) depends_on: u8,
    pub(crate) epoch: u8,
    /// Of its server when the request was executed.
    pub(crate) incarnation: u8,
    /// What clients had seen when the request was made: the reply may not be older.
    pub(crate) floor: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Snapshot {
    /// The last frame whose batches it has all, and behind which no batch is unfinished. A start reads on from the
    /// next.
    pub(crate) position: u8,
    /// The frame of its newest batch, which must be acknowledged before it is published. A start skips the batches
    /// between the two, which it reads again.
    pub(crate) newest: u8,
    pub(crate) epoch: u8,
    pub(crate) state: Writes,
}
