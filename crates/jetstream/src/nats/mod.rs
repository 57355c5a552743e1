//! The stream on NATS JetStream. Knows NATS; refuses to know what a frame is.

mod alarm;
mod checks;
mod connection;
mod inspect;
mod members;
mod objects;
mod replicas;
mod shared;
mod stream;
mod url;

pub use checks::{Finding, Requirements};
pub use connection::{NatsLog, NatsOptions, OpenError};
pub use inspect::{MemberStatus, SnapshotStatus, Status, StreamStatus};
pub use members::{Announcement, Member, Members};
pub use replicas::{ReplicaState, ReplicaStatus};
pub use url::NatsUrl;
