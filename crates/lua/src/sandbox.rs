//! The globals a script sees, all of them readonly: Lua's safe functions, Redis's libraries, the `redis` table. Refuses to
//! know what the functions do.

use std::ffi::{CStr, c_int};

use mlua_sys as ffi;

use crate::api::{self, Version};
use crate::context::{Context, TICK_INSTRUCTIONS};
use crate::reply;
use crate::stack::{ALL_RESULTS, GLOBALS, REGISTRY, Returned, Stack, Type, function_of};
use crate::text::Text;
use crate::{Tick, bits, cjson, cmsgpack, functions, random, structs};

/// What of Lua's base library scripts do not get: files, other functions' environments, finalizers.
const REMOVED: [&CStr; 6] = [c"dofile", c"loadfile", c"print", c"getfenv", c"setfenv", c"newproxy"];

/// References to what [`open`] built.
pub(crate) struct Globals {
    /// Of EVAL.
    pub(crate) eval: c_int,
    /// Of functions: a window onto one of the two that follow.
    pub(crate) functions: c_int,
    /// What the window shows while they run.
    pub(crate) functions_table: c_int,
    /// What it shows while their library loads.
    pub(crate) loading: c_int,
}

/// Builds all of it in a fresh state.
pub(crate) fn open(stack: Stack<'_>, version: &Version) -> Globals {
    for library in [ffi::luaopen_base, ffi::luaopen_table, ffi::luaopen_string, ffi::luaopen_math] {
        stack.push_function(library, 0);
        stack.call(0, 0);
    }
    stack.copy(GLOBALS);
    for name in REMOVED {
        stack.push_nil();
        stack.set_field(-2, name);
    }
    replace_functions(stack);
    for (name, open) in [
        (c"cjson", cjson::open as fn(Stack<'_>)),
        (c"cmsgpack", cmsgpack::open),
        (c"bit", bits::open),
        (c"struct", structs::open),
    ] {
        open(stack);
        stack.set_field(-2, name);
    }
    stack.push_table(0, 1);
    set(stack, c"clock", function_of(clock));
    stack.set_field(-2, c"os");
    // Strings share one metatable, and it shares the `string` table.
    stack.push_bytes(b"");
    stack.metatable(-1);
    stack.set_readonly(-1, true);
    stack.pop(2);

    stack.get_field(-1, c"tostring");
    stack.set_field(REGISTRY, TOSTRING);

    // From here on there are two sets of globals: one for EVAL (its `redis` has a few fields more), one for functions.
    let (functions_table, of_functions) = {
        stack.push_table(0, 48);
        copy_fields(stack, -2, -1);
        push_redis(stack, version, false);
        stack.set_field(-2, c"redis");
        stack.copy(-1);
        stack.set_field(-2, c"_G");
        protect(stack);
        // A function's environment is an empty table that reads through to the real one.
        stack.copy(-1);
        let table = stack.keep();
        push_window(stack);
        (table, stack.keep())
    };
    let loading = functions::push_loading_globals(stack, version);
    push_redis(stack, version, true);
    stack.set_field(-2, c"redis");
    stack.push_function(function_of(error_handler), 0);
    stack.set_field(-2, c"__redis__err__handler");
    protect(stack);
    let eval = stack.keep();
    Globals { eval, functions: of_functions, functions_table, loading }
}

/// Replaces the table on top by an empty readonly one that reads through to it.
pub(crate) fn push_window(stack: Stack<'_>) {
    stack.push_table(0, 0);
    stack.push_table(0, 1);
    stack.copy(-3);
    stack.set_field(-2, c"__index");
    stack.set_readonly(-1, true);
    stack.set_metatable(-2);
    stack.set_readonly(-1, true);
    stack.remove(-2);
}

fn push_redis(stack: Stack<'_>, version: &Version, eval: bool) {
    stack.push_table(0, 32);
    api::set_common_fields(stack, version);
    api::set_running_fields(stack);
    if eval {
        api::set_eval_fields(stack);
    }
}

fn copy_fields(stack: Stack<'_>, from: c_int, to: c_int) {
    let (from, to) = (stack.len() + 1 + from, stack.len() + 1 + to);
    stack.push_nil();
    while stack.next(from) {
        stack.copy(-2);
        stack.insert(-2);
        stack.raw_set(to);
    }
}

/// Reading what is not there is an error, and so is every write, in the table on top and in all it holds.
pub(crate) fn protect(stack: Stack<'_>) {
    set_missing_is_error(stack);
    set_readonly_recursively(stack);
}

pub(crate) fn set_missing_is_error(stack: Stack<'_>) {
    stack.push_table(0, 1);
    set(stack, c"__index", function_of(missing_global));
    stack.set_metatable(-2);
}

pub(crate) fn set_readonly_recursively(stack: Stack<'_>) {
    if stack.is_readonly(-1) {
        return;
    }
    stack.set_readonly(-1, true);
    stack.has_room(4);
    stack.push_nil();
    while stack.next(-2) {
        if stack.kind(-1) == Type::Table {
            set_readonly_recursively(stack);
        }
        stack.pop(1);
    }
    if stack.metatable(-1) {
        set_readonly_recursively(stack);
        stack.pop(1);
    }
}

pub(crate) fn set(stack: Stack<'_>, name: &CStr, function: ffi::lua_CFunction) {
    stack.push_function(function, 0);
    stack.set_field(-2, name);
}

/// Functions of Lua that behave differently here; the globals are on top.
fn replace_functions(stack: Stack<'_>) {
    set(stack, c"pcall", function_of(protected_call));
    set(stack, c"xpcall", function_of(protected_call_with_handler));
    stack.get_field(-1, c"collectgarbage");
    stack.push_function(function_of(collect_garbage), 1);
    stack.set_field(-2, c"collectgarbage");
    stack.get_field(-1, c"coroutine");
    stack.get_field(-1, c"resume");
    stack.push_function(function_of(resume), 1);
    stack.set_field(-2, c"resume");
    stack.pop(1);
    stack.get_field(-1, c"math");
    set(stack, c"random", function_of(random::random));
    set(stack, c"randomseed", function_of(random::seed));
    stack.pop(1);
}

fn missing_global(stack: Stack<'_>) -> Returned {
    if stack.len() != 2 {
        return Err(stack.error(format_args!("Wrong number of arguments to luaProtectedTableError")));
    }
    match stack.bytes(2) {
        Some(name) => {
            let parts = [b"Script attempted to access nonexistent global variable '", reply::until_nul(name), b"'"];
            Err(stack.error_bytes(Text::<512>::of(&parts).as_bytes()))
        }
        None => Err(stack.error(format_args!("Second argument to luaProtectedTableError must be a string or number"))),
    }
}

/// `pcall` that gives the text of an error table, as scripts written for older versions of Redis expect, and that cannot
/// catch a kill.
fn protected_call(stack: Stack<'_>) -> Returned {
    if stack.len() == 0 {
        return Err(stack.bad_argument(1, format_args!("value expected")));
    }
    let status = stack.protected_call(stack.len() - 1, ALL_RESULTS, 0);
    if Context::of(stack).killed.get() {
        return Err(raise_kill(stack));
    }
    if status == 0 {
        stack.need_room(1, "too many results")?;
        stack.push_boolean(true);
        stack.insert(1);
        return Ok(stack.len());
    }
    stack.has_room(2);
    if stack.kind(-1) == Type::Table {
        stack.push_bytes(b"err");
        stack.raw_get(-2);
        // If there is no text, Redis returns both: the table and what it found in its place.
        if matches!(stack.kind(-1), Type::String | Type::Number) {
            stack.replace(-2);
        }
    }
    stack.push_boolean(false);
    stack.insert(1);
    Ok(stack.len())
}

fn protected_call_with_handler(stack: Stack<'_>) -> Returned {
    if stack.len() < 2 {
        return Err(stack.bad_argument(2, format_args!("value expected")));
    }
    stack.set_len(2);
    stack.push_function(function_of(guarded_handler), 1);
    stack.insert(1);
    let status = stack.protected_call(0, ALL_RESULTS, 1);
    if Context::of(stack).killed.get() {
        return Err(raise_kill(stack));
    }
    stack.need_room(1, "too many results")?;
    stack.push_boolean(status == 0);
    stack.replace(1);
    Ok(stack.len())
}

/// The script's handler (the upvalue), unless the error is a kill: that is raised from the hook, hooks do not nest, and so
/// nothing could stop a handler that takes its time.
fn guarded_handler(stack: Stack<'_>) -> Returned {
    if Context::of(stack).killed.get() {
        return Ok(1);
    }
    stack.set_len(1);
    stack.copy(upvalue(1));
    stack.insert(1);
    stack.call(1, 1);
    Ok(1)
}

/// Lua's own `coroutine.resume` (the upvalue), which also must not catch a kill.
fn resume(stack: Stack<'_>) -> Returned {
    stack.copy(upvalue(1));
    stack.insert(1);
    stack.call(stack.len() - 1, ALL_RESULTS);
    if Context::of(stack).killed.get() {
        return Err(raise_kill(stack));
    }
    Ok(stack.len())
}

pub(crate) fn upvalue(position: c_int) -> c_int {
    ffi::lua_upvalueindex(position)
}

/// Lua's own `collectgarbage` (the upvalue); settings outlive the script, so the host has to know.
fn collect_garbage(stack: Stack<'_>) -> Returned {
    Context::of(stack).collector_touched.set(true);
    stack.copy(upvalue(1));
    stack.insert(1);
    stack.call(stack.len() - 1, ALL_RESULTS);
    Ok(stack.len())
}

/// Processor time of this process, in seconds.
fn clock(stack: Stack<'_>) -> Returned {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    // C's `clock` counts microseconds.
    stack.push_number(time.tv_sec as f64 + (time.tv_nsec / 1000) as f64 / 1e6);
    Ok(1)
}

/// Makes an error a table and notes where it happened, as Redis's handler does.
pub(crate) fn error_handler(stack: Stack<'_>) -> Returned {
    stack.set_len(1);
    // SAFETY: all zeroes is a valid `lua_Debug`.
    let mut frame: ffi::lua_Debug = unsafe { std::mem::zeroed() };
    // SAFETY: level 1 is what raised the error, level 2 what called it; the names live as long as the frame.
    let place = unsafe {
        let mut found = ffi::lua_getstack(stack.raw(), 1, &mut frame) != 0;
        if found {
            ffi::lua_getinfo(stack.raw(), c"Sl".as_ptr(), &mut frame);
            if CStr::from_ptr(frame.what) == c"C" {
                found = ffi::lua_getstack(stack.raw(), 2, &mut frame) != 0;
                if found {
                    ffi::lua_getinfo(stack.raw(), c"Sl".as_ptr(), &mut frame);
                }
            }
        }
        found.then(|| (CStr::from_ptr(frame.source).to_bytes(), frame.currentline))
    };
    if stack.kind(1) != Type::Table {
        stack.push_table(0, 3);
        stack.push_bytes(b"err");
        stack.push_bytes(b"ERR ");
        push_text(stack, 1);
        // SAFETY: two strings are on top.
        unsafe { ffi::lua_concat(stack.raw(), 2) };
        stack.raw_set(-3);
        stack.replace(1);
    }
    if let Some((source, line)) = place {
        stack.push_bytes(source);
        stack.set_field(1, c"source");
        stack.push_number(f64::from(line));
        stack.set_field(1, c"line");
    }
    Ok(1)
}

/// Pushes what `tostring` gives for a value that is not a table.
fn push_text(stack: Stack<'_>, index: c_int) {
    match stack.kind(index) {
        Type::String | Type::Number => stack.copy(index),
        Type::Boolean => stack.push_bytes(if stack.boolean(index) { b"true" } else { b"false" }),
        Type::Nil | Type::None => stack.push_bytes(b"nil"),
        _ => {
            stack.get_field(REGISTRY, TOSTRING);
            stack.copy(index);
            stack.call(1, 1);
        }
    }
}

/// Where `tostring` is kept for [`push_text`].
pub(crate) const TOSTRING: &CStr = c"holdfast.tostring";

/// Pushes the error of a kill.
fn raise_kill(stack: Stack<'_>) -> crate::stack::Raise {
    stack.has_room(4);
    let context = Context::of(stack);
    // SAFETY: written only by `tick`, which does not run now.
    let message = unsafe { &*context.kill_message.get() };
    reply::push_error(stack, message);
    stack.raise()
}

/// Asks the host from time to time whether the script may go on.
pub(crate) unsafe extern "C-unwind" fn hook(lua: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    // SAFETY: Lua calls the hook inside the protected call that runs the script.
    let stack = unsafe { Stack::of(lua) };
    if tick(stack) {
        // SAFETY: the error value is on top; neither frame has destructors.
        unsafe { ffi::lua_error(lua) }
    }
}

/// True if the script must stop; the error is on top then.
fn tick(stack: Stack<'_>) -> bool {
    let context = Context::of(stack);
    if !context.killed.get() {
        let killed = context.host(|host| match host.tick() {
            Tick::Continue => false,
            Tick::Kill(message) => {
                context.killed.set(true);
                // SAFETY: the cell is borrowed for one store.
                unsafe { *context.kill_message.get() = message.into_bytes() };
                true
            }
        });
        match killed {
            Some(false) => return false,
            Some(true) => {}
            // Without a host nothing runs but a library that is being loaded.
            None => {
                if !functions::is_overdue(context) && !context.killed.get() {
                    return false;
                }
            }
        }
    }
    // The script must not get to the next instruction of a handler of its own: ask at every one from now on.
    // SAFETY: setting a hook is allowed at any time.
    unsafe { ffi::lua_sethook(stack.raw(), Some(hook), ffi::LUA_MASKCOUNT | ffi::LUA_MASKLINE, 1) };
    let _ = raise_kill(stack);
    true
}

/// Sets or clears the hook of the main thread; coroutines inherit it.
pub(crate) fn set_hook(stack: Stack<'_>, on: bool) {
    // SAFETY: setting a hook is allowed at any time.
    unsafe {
        match on {
            true => ffi::lua_sethook(stack.raw(), Some(hook), ffi::LUA_MASKCOUNT, TICK_INSTRUCTIONS),
            false => ffi::lua_sethook(stack.raw(), None, 0, 0),
        };
    }
}
