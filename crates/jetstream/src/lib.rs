//! A replicated log on a stream that keeps messages on several machines. Knows the protocol by which one process writes it
//! and others follow and take over; refuses to know what a batch means, and who asks.
//!
//! - [`frame`]: the bytes of a message, and the chain that each reader checks.
//! - [`delivery`]: one frame at a time, until it is known what became of it.
//! - [`lease`]: how long a writer may answer, and a follower waits.
//! - [`log`], [`follower`], [`place`], [`snapshots`]: `journal`'s interfaces over it; [`blocks`]: what snapshots are stored as.
//! - [`stream`]: what it needs of a stream; [`nats`] has it from NATS JetStream, [`simulation`] from a seed.
//!
//! `docs/cluster.md` says what is promised; `tests/model` has a model of the protocol.

#![forbid(unsafe_code)]

mod blocks;
mod context;
mod delivery;
mod follower;
mod frame;
#[cfg(any(test, feature = "simulation"))]
pub mod fuzzing;
mod lease;
mod log;
mod mark;
mod mutation;
mod nats;
mod objects;
mod place;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod snapshots;
mod stream;
#[cfg(test)]
mod testing;

pub use context::LogProgress;
pub use frame::{Damage, LogId, Nonce, Position};
pub use lease::Timing;
pub use mark::Mark;
pub use nats::{
    Announcement, Finding, Member, MemberStatus, Members, NatsLog, NatsOptions, NatsUrl, OpenError, ReplicaState,
    ReplicaStatus, Requirements, SnapshotStatus, Status, StreamStatus,
};
pub use objects::Objects;
pub use place::{Membership, StreamPlace};
pub use stream::{Answer, Appended, Extent, Found, Receive, Stream, Tick, Time, Unanswered};
