//! Models of the lock-free parts: loom runs each of them in every order that its threads can take, and with every value
//! that a load may return under the C11 memory model. Refuses to know what the parts are for.
//!
//! The parts are the files of the server, included by their path. They take their atomics from `crate::sync`, which is
//! `std::sync` in their own crates and `loom::sync` here; so nothing in the server is compiled differently for a test.

#![forbid(unsafe_code)]

pub mod index_heads;
pub mod journal_watermarks;
pub mod script_kills;
pub mod wait_states;

mod sync {
    pub(crate) use loom::sync::atomic;
}

#[path = "../../../crates/journal/src/sequence.rs"]
#[allow(dead_code, unreachable_pub, reason = "the models need a part of it, and nothing outside does")]
mod sequence;
