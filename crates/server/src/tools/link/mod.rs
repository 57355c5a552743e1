//! Connections of the tools to servers that speak the Redis protocol. Knows TLS, passwords, requests and replies; refuses to
//! know what is asked.

mod client;
mod reply;
mod socket;
mod way;

pub(super) use client::{Client, Refusal, encode, is_about_the_server, login};
pub(super) use reply::Reply;
pub(super) use socket::Socket;
pub(super) use way::{Way, password};

use formats::replication::{FileError, Trouble};

/// True for an error after which another connection may do better, perhaps later.
pub(super) fn is_lost(error: &anyhow::Error) -> bool {
    let has_ended = |error: &FileError| matches!(error.trouble, Trouble::Ended);
    error.chain().any(|cause| {
        cause.is::<std::io::Error>()
            || cause.downcast_ref::<Refusal>().is_some_and(Refusal::passes)
            || cause.downcast_ref::<FileError>().is_some_and(has_ended)
    })
}
