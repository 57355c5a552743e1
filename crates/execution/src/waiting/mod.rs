//! Blocked clients: what they wait for, for how long, and the reply that ends the wait. Knows events; refuses to know
//! sockets and timers.

pub mod blocked;
pub mod keys;
pub mod outcome;
pub mod queueing;
pub mod records;
pub mod serving;
pub mod waiter;

pub use blocked::{Blocked, Event};
pub use outcome::WAITAOF_WITHOUT_JOURNAL;
pub use outcome::{outcome, stop_waiting};
