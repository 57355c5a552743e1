//! The Lua interpreter as the rest of the crate sees it: a safe face over its C functions. Knows Lua, nothing of Redis.
//!
//! # No Lua error passes through Rust
//! Lua reports an error by `longjmp`, which runs no destructor; over a Rust frame with a destructor that is undefined
//! behaviour. So no function of Lua that can raise an error is called while a frame of Rust is between it and the place
//! where it is caught:
//! - A Lua function in Rust returns `Err(Raise)`, and `calls::shim` raises it when that function has returned.
//! - The limit on memory is lifted while Rust runs ([`Interpreter`]), so what allocates cannot fail. A function in Rust
//!   asks [`Stack::check_memory`] while it makes values, and the shim once more when it has returned.
//! - What may raise for other reasons is only reached through [`Stack::protected_call`] and [`Stack::compile`], which
//!   catch it, or has a twin in `patches/holdfast.patch` that returns a status (`holdfast_rawset`, `holdfast_next`).
//!
//! A panic of Rust passes through Lua as an error, and continues as a panic behind it.
//!
//! # No method of `Stack` can break memory
//! Any argument may be passed: see `stack` on what is checked, and `borrowed` on how long a slice lives. Only the
//! functions that make a `Stack` or a state are `unsafe`.
//!
//! Rejected: marking each method that may raise `unsafe`. Then every line of every library is unsafe, and its reader
//! has to know which locals have destructors. Rejected: a protected call around each of them. It costs more than most
//! do.

mod arguments;
mod borrowed;
mod calls;
mod heap;
mod interpreter;
mod stack;
mod text;

pub(crate) use arguments::{c_int32, c_integer};
pub(crate) use borrowed::Pinned;
pub(crate) use calls::{HookEvery, LIBRARIES, function_of, hook_of};
pub use heap::total_bytes;
pub(crate) use interpreter::{Interpreter, close, open};
pub(crate) use mlua_sys::lua_State;
pub(crate) use stack::{ALL_RESULTS, Cursor, GLOBALS, REGISTRY, Raise, Returned, Stack, Type, upvalue};
pub(crate) use text::{Digits, Text, until_nul};
