//! The clients of the server as other clients and threads see them: handles, subscriptions, tracking, waits. Knows how
//! a client is reached; refuses to know commands and how they run.

pub mod account;
pub mod by_account;
pub mod handle;
pub mod pause;
pub mod pubsub;
pub mod tracking;
pub mod wait_state;

pub use account::Account;
pub use by_account::ClientsByAccount;
pub use handle::*;
pub use handle::{CLIENT_BYTES, NameKind};
