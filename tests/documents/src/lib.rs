//! The documents as tests: their Rust blocks as programs, and the transcripts in them. Knows how blocks are marked;
//! refuses to know what they are about. README.md describes the marks.

#![forbid(unsafe_code)]

pub mod fences;
pub mod redis_cli;

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Mutex;

/// The Rust programs of a document, each with the line of its block.
pub type Programs = (&'static str, &'static [(usize, fn() -> Result<(), String>)]);

include!(concat!(env!("OUT_DIR"), "/blocks.rs"));

static URL: Mutex<&str> = Mutex::new("");

/// The server that programs connect to from now on.
pub fn connect_to(address: SocketAddr) {
    *URL.lock().expect("no test panics with it") = format!("redis://{address}").leak();
}

/// The address that a program has in the place of the one in its document.
pub fn url() -> &'static str {
    *URL.lock().expect("no test panics with it")
}

/// What a program's `main` may return.
pub trait Ended {
    fn result(self) -> Result<(), String>;
}

impl Ended for () {
    fn result(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: Debug> Ended for Result<(), E> {
    fn result(self) -> Result<(), String> {
        self.map_err(|error| format!("{error:?}"))
    }
}
