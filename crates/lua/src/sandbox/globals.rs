//! The globals a script sees, all of them readonly: Lua's safe functions, Redis's libraries, the `redis` table, which is
//! also named `server`. Refuses to know what the functions do.

use std::ffi::c_int;

use super::redis_table::{self, Version};
use super::register::register_function;
use super::{error_handler, replaced};
use crate::libraries;
use crate::vm::{Cursor, GLOBALS, LIBRARIES, REGISTRY, Returned, Stack, Text, Type, function_of, until_nul};

/// What of Lua's base library scripts do not get: files, other functions' environments, finalizers.
const REMOVED: [&str; 6] = ["dofile", "loadfile", "print", "getfenv", "setfenv", "newproxy"];

/// References to what [`open`] built.
pub(crate) struct Globals {
    /// Of EVAL.
    pub(crate) eval: c_int,
    /// Of functions: a proxy for one of the two that follow.
    pub(crate) functions: c_int,
    /// What it reads through to while they run.
    pub(crate) functions_table: c_int,
    /// What it reads through to while their library loads.
    pub(crate) loading: c_int,
}

/// Builds all of it in a fresh state.
pub(crate) fn open(stack: Stack<'_>, version: &Version) -> Globals {
    for library in LIBRARIES {
        stack.push_function(library, 0);
        stack.call(0, 0).expect("a new state has room for Lua's libraries");
    }
    stack.copy(GLOBALS);
    for name in REMOVED {
        stack.push_nil();
        stack.set_field(-2, name);
    }
    replaced::replace_functions(stack);
    for (name, open) in [
        ("cjson", libraries::cjson::open as fn(Stack<'_>)),
        ("cmsgpack", libraries::cmsgpack::open),
        ("bit", libraries::bits::open),
        ("struct", libraries::structs::open),
    ] {
        open(stack);
        stack.set_field(-2, name);
    }
    stack.push_table(0, 1);
    stack.set_function("clock", function_of(replaced::clock));
    stack.set_field(-2, "os");
    // Strings share one metatable, and it shares the `string` table.
    stack.push_bytes(b"");
    stack.metatable(-1);
    stack.set_readonly(-1, true);
    stack.pop(2);

    error_handler::prepare(stack);

    // From here on there are two sets of globals: one for EVAL (its `redis` has a few fields more), one for functions.
    let (functions_table, of_functions) = {
        stack.push_table(0, 48);
        copy_fields(stack, -2, -1);
        push_redis(stack, version, false);
        set_both_names(stack);
        stack.copy(-1);
        stack.set_field(-2, "_G");
        protect(stack);
        stack.copy(-1);
        let table = stack.keep();
        push_proxy(stack);
        (table, stack.keep())
    };
    let loading = keep_loading_globals(stack, version);
    push_redis(stack, version, true);
    set_both_names(stack);
    stack.push_function(function_of(error_handler), 0);
    stack.set_field(-2, "__redis__err__handler");
    protect(stack);
    let eval = stack.keep();
    Globals { eval, functions: of_functions, functions_table, loading }
}

/// The globals of a library while it loads: `redis` has little more than `register_function`.
fn keep_loading_globals(stack: Stack<'_>, version: &Version) -> c_int {
    stack.push_table(0, 4);
    stack.push_table(0, 12);
    stack.set_function("register_function", function_of(register_function));
    redis_table::set_common_fields(stack, version);
    set_missing_is_error(stack);
    set_both_names(stack);
    protect(stack);
    stack.keep()
}

/// Makes the table on top a field of the one below, under Redis's name and under Valkey's: it is one table, as in Valkey.
fn set_both_names(stack: Stack<'_>) {
    stack.copy(-1);
    stack.set_field(-3, "server");
    stack.set_field(-2, "redis");
}

/// Makes the proxy that functions have for globals, which is the environment now, read through to the kept table.
pub(crate) fn set_proxied(stack: Stack<'_>, table: c_int) {
    stack.copy(GLOBALS);
    stack.metatable(-1);
    stack.raw_get_at(REGISTRY, table);
    stack.set_field(-2, "__index");
    stack.pop(2);
}

/// Puts the settings of EVAL's `cjson` back to what they were.
pub(crate) fn reset_cjson(stack: Stack<'_>, globals: &Globals) {
    stack.raw_get_at(REGISTRY, globals.eval);
    stack.get_field(-1, "cjson");
    libraries::cjson::reset(stack);
    stack.pop(2);
}

/// Replaces the table on top by an empty readonly one that reads through to it.
fn push_proxy(stack: Stack<'_>) {
    stack.push_table(0, 0);
    stack.push_table(0, 1);
    stack.copy(-3);
    stack.set_field(-2, "__index");
    stack.set_readonly(-1, true);
    stack.set_metatable(-2);
    stack.set_readonly(-1, true);
    stack.remove(-2);
}

fn push_redis(stack: Stack<'_>, version: &Version, eval: bool) {
    stack.push_table(0, 32);
    redis_table::set_common_fields(stack, version);
    redis_table::set_running_fields(stack);
    if eval {
        redis_table::set_eval_fields(stack);
    }
}

fn copy_fields(stack: Stack<'_>, from: c_int, to: c_int) {
    let (from, to) = (stack.len() + 1 + from, stack.len() + 1 + to);
    let mut cursor = Cursor::default();
    while stack.next(from, &mut cursor) {
        stack.raw_set(to).expect("the keys are names");
    }
}

/// Reading what is not there is an error, and so is every write, in the table on top and in all it holds.
fn protect(stack: Stack<'_>) {
    set_missing_is_error(stack);
    set_readonly_recursively(stack);
}

fn set_missing_is_error(stack: Stack<'_>) {
    stack.push_table(0, 1);
    stack.set_function("__index", function_of(missing_global));
    stack.set_metatable(-2);
}

fn set_readonly_recursively(stack: Stack<'_>) {
    if stack.is_readonly(-1) {
        return;
    }
    stack.set_readonly(-1, true);
    stack.has_room(4);
    let mut cursor = Cursor::default();
    while stack.next(-1, &mut cursor) {
        if stack.kind(-1) == Type::Table {
            set_readonly_recursively(stack);
        }
        stack.pop(2);
    }
    if stack.metatable(-1) {
        set_readonly_recursively(stack);
        stack.pop(1);
    }
}

fn missing_global(stack: Stack<'_>) -> Returned {
    if stack.len() != 2 {
        return Err(stack.error(format_args!("Wrong number of arguments to luaProtectedTableError")));
    }
    let message = stack.with_bytes(2, |name| {
        Text::<512>::of(&[b"Script attempted to access nonexistent global variable '", until_nul(name), b"'"])
    });
    match message {
        Some(message) => Err(stack.error_bytes(message.as_bytes())),
        None => Err(stack.error(format_args!("Second argument to luaProtectedTableError must be a string or number"))),
    }
}
