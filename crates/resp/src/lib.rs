//! Bytes to arguments, replies to bytes. Knows RESP2 and RESP3; refuses to know what a command or a key is.
//!
//! [`Scanner`] finds the next complete request in a buffer and yields it as a [`Request`], whose arguments borrow from
//! that buffer. [`Reply`] writes one reply, in the client's protocol, straight into the client's output buffer.

#![forbid(unsafe_code)]

mod inline;
mod reply;
mod request;
mod scanner;
mod whole;

pub use inline::{UnbalancedQuotes, split_line};
pub use reply::{Protocol, Reply};
pub use request::{OwnedRequest, Pipeline, Request};
pub use scanner::{Limits, ProtocolError, Scan, Scanner};
pub use whole::is_one_reply;
