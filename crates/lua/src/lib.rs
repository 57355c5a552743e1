//! Lua 5.1 as Redis has it: states, sandbox, libraries, conversions. Refuses to know commands, keys and clients.
//!
//! The way through: a [`State`] holds one Lua state with Redis's sandbox. [`State::load`] compiles a script under its
//! digest, [`State::run`] runs it; while it runs, the script asks a [`Host`], which executes commands. The
//! script's result, or its error, is appended to the client's output in RESP, by Redis's rules.
//!
//! Inside, each folder uses only those below it:
//!
//! ```text
//! state        scripts and libraries by name, running them
//! sandbox/     the globals, the `redis` table, errors, stopping a script
//! libraries/   `cjson`, `cmsgpack`, `bit`, `struct`, `math.random`
//! convert/     between RESP and Lua values
//! context/     what the functions of one state share
//! vm/          the Lua interpreter with a safe face: read its rule on errors first
//! ```
//!
//! Lua itself is version 5.1.5 from the package `lua-src`, under the MIT licence (Copyright (C) 1994-2012 Lua.org,
//! PUC-Rio), with the changes in `patches/holdfast.patch`; `build/main.rs` applies and compiles them. The raw bindings
//! are those of `mlua-sys` with its feature `external`: `mlua` would build its own copy, without the changes.

#[allow(unsafe_code, reason = "Lua keeps a pointer to the context of its state")]
mod context;
mod convert;
mod digest;
mod host;
mod libraries;
mod sandbox;
mod shebang;
#[allow(unsafe_code, reason = "it owns the memory of a Lua state")]
mod state;
#[allow(unsafe_code, reason = "it calls the functions of Lua")]
mod vm;

pub use context::FunctionInfo;
pub use digest::sha1hex;
pub use host::{Host, Tick};
pub use resp::Protocol;
pub use shebang::{ScriptFlags, Shebang};
pub use state::{Limits, Ran, ScriptArguments, State};
pub use vm::total_bytes;
