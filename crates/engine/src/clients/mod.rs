//! The clients of the server as other clients and threads see them: handles, subscriptions, tracking, waits. Knows how
//! a client is reached; refuses to know commands and how they run.

pub(crate) mod handle;
pub mod pause;
pub mod pubsub;
pub(crate) mod ticket;
pub mod tracking;
pub(crate) mod wait_state;

pub(crate) use handle::CLIENT_BYTES;
pub use handle::*;
pub use ticket::Ticket;
