//! Lua 5.1 as Redis has it: states, sandbox, libraries, conversions. Refuses to know commands, keys and clients.
//!
//! The way through: a [`State`] holds one Lua state with Redis's sandbox. [`State::load`] compiles a script under its
//! digest, [`State::run`] runs it; while it runs, the script talks to a [`Host`], which executes commands. The
//! script's result, or its error, is appended to the client's output in RESP, by Redis's rules.
//!
//! Inside: `stack` is the raw Lua API with a safe face (read its rule on errors first), `context` what the functions
//! of a state share, `heap` its memory. `api` is the `redis` table, `reply` the conversions, `sandbox` the globals, and `bits`,
//! `cjson`, `cmsgpack` and `structs` are the libraries.
//!
//! Lua itself is version 5.1.5 from the package `lua-src`, under the MIT licence (Copyright (C) 1994-2012 Lua.org,
//! PUC-Rio), with the changes in `patches/holdfast.patch`; `build.rs` applies and compiles them. The raw bindings are those
//! of `mlua-sys` with its feature `external`: `mlua` would build a copy of its own, without the changes.

mod api;
mod bits;
mod cjson;
mod cmsgpack;
mod context;
mod functions;
mod heap;
mod nesting;
mod random;
mod reply;
mod sandbox;
mod shebang;
mod stack;
mod state;
mod structs;
mod text;

pub use functions::FunctionInfo;
pub use heap::total_bytes;
pub use resp::Protocol;
pub use shebang::{ScriptFlags, Shebang};
pub use state::{Limits, Ran, State};

/// What a running script may ask for.
pub trait Host {
    /// `redis.call` and `redis.pcall`: executes a command and appends its reply, in RESP2 or as [`Host::set_resp`]
    /// asked. An error reply starts with `-`.
    fn call(&mut self, args: &[&[u8]], reply: &mut Vec<u8>);

    /// `redis.log`: the level is 0 (debug) to 3 (warning).
    fn log(&mut self, level: i64, message: &[u8]);

    /// `redis.setresp`: the protocol of the replies to `call` from here on. Every run starts with 2.
    fn set_resp(&mut self, version: u8);

    /// `redis.acl_check_cmd`: may the script's user run this command? `Err` is the text of an error without its code.
    fn acl_check(&mut self, args: &[&[u8]]) -> Result<bool, String>;

    /// `redis.set_repl`: bit 0 the journal, bit 1 replicas.
    fn set_repl(&mut self, flags: i64);

    /// Asked every so many instructions while a script runs: go on, or stop.
    fn tick(&mut self) -> Tick;
}

/// The host's answer to "may I go on?".
pub enum Tick {
    Continue,
    /// The script ends with this error, whatever it does to catch it (`-CODE text`, or a text that gets the code ERR).
    Kill(String),
}

/// The digest under which a script is known.
pub fn sha1hex(source: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = sha1_smol::Sha1::from(source).digest().bytes();
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
