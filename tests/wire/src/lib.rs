//! Talks to a server over its socket and compares what it says with what a transcript expects.
//! Knows nothing of how the server is made: the same tests run against Holdfast and against Redis.
//!
//! Start at [`check`]; `README.md` describes the notation. Below it lie a [`Session`] (the server for
//! one test alone), a [`Connection`] and the [`Reply`].

#![forbid(unsafe_code)]

mod agreement;
mod connection;
mod events;
mod history;
pub mod own;
mod pattern;
mod random;
mod redis;
mod reply;
mod rows;
mod server;
mod session;
mod skip;
mod text;
mod transcript;

pub use agreement::{agree_with_redis, spoil};
pub use connection::Connection;
pub use events::check_events;
pub use history::{History, spoil_behind_key};
pub use random::Random;
pub use redis::Redis;
pub use reply::Reply;
pub use server::{Server, binary, free_address, fresh_dir};
pub use session::{Product, Session};
pub use skip::skip;
pub use text::{glob, quote, split_args};

/// Runs a transcript against an empty server, alone, and panics at the first reply that differs.
#[track_caller]
pub fn check(transcript: &str) {
    Session::start().check(transcript);
}
