//! The stream on NATS JetStream. Knows NATS; refuses to know what a frame is.

mod alarm;
mod checks;
mod connection;
mod members;
mod objects;
mod stream;
mod url;

pub use checks::{Finding, Requirements};
pub use connection::{NatsLog, NatsOptions, OpenError};
pub use members::{Announcement, Member, Members};
pub use url::NatsUrl;
