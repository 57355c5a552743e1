//! Functions of Lua that behave differently in Redis's sandbox. Refuses to know commands.

use super::interrupt::raise_kill;
use crate::context::Context;
use crate::libraries::math;
use crate::vm::{ALL_RESULTS, Returned, Stack, Type, function_of, upvalue};

/// Functions of Lua that behave differently here; the globals are on top.
pub(super) fn replace_functions(stack: Stack<'_>) {
    stack.set_function("pcall", function_of(protected_call));
    stack.set_function("xpcall", function_of(protected_call_with_handler));
    stack.get_field(-1, "collectgarbage");
    stack.push_function(function_of(collect_garbage), 1);
    stack.set_field(-2, "collectgarbage");
    stack.get_field(-1, "coroutine");
    stack.get_field(-1, "resume");
    stack.push_function(function_of(resume), 1);
    stack.set_field(-2, "resume");
    stack.pop(1);
    stack.get_field(-1, "math");
    stack.set_function("random", function_of(math::random));
    stack.set_function("randomseed", function_of(math::seed));
    stack.pop(1);
}

/// `pcall` that gives the text of an error table, as scripts written for older versions of Redis expect, and that
/// cannot catch a kill.
fn protected_call(stack: Stack<'_>) -> Returned {
    let len = stack.len();
    if len == 0 {
        return Err(stack.bad_argument(1, format_args!("value expected")));
    }
    let status = stack.protected_call(len - 1, ALL_RESULTS, 0);
    if Context::of(stack).killed.get() {
        return Err(raise_kill(stack));
    }
    if status == 0 {
        stack.need_room(1, "too many results")?;
        stack.insert_boolean(1, true);
        return Ok(stack.len());
    }
    stack.has_room(2);
    if stack.kind(-1) == Type::Table {
        stack.get_field(-1, "err");
        // If there is no text, Redis returns both: the table and what it found in its place.
        if matches!(stack.kind(-1), Type::String | Type::Number) {
            stack.replace(-2);
        }
    }
    stack.insert_boolean(1, false);
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

/// The script's handler (the upvalue), unless the error is a kill: that is raised from the hook, hooks do not nest, and
/// so nothing could stop a handler that runs on.
fn guarded_handler(stack: Stack<'_>) -> Returned {
    if Context::of(stack).killed.get() {
        return Ok(1);
    }
    stack.set_len(1);
    stack.copy(upvalue(1));
    stack.insert(1);
    stack.call(1, 1)?;
    Ok(1)
}

/// Lua's own `coroutine.resume` (the upvalue), which also must not catch a kill.
fn resume(stack: Stack<'_>) -> Returned {
    stack.copy(upvalue(1));
    stack.insert(1);
    let called = stack.call(stack.len() - 1, ALL_RESULTS);
    if Context::of(stack).killed.get() {
        return Err(raise_kill(stack));
    }
    called.map(|()| stack.len())
}

/// Lua's own `collectgarbage` (the upvalue); settings outlive the script, so the host has to know.
fn collect_garbage(stack: Stack<'_>) -> Returned {
    Context::of(stack).collector_changed.set(true);
    stack.copy(upvalue(1));
    stack.insert(1);
    stack.call(stack.len() - 1, ALL_RESULTS)?;
    Ok(stack.len())
}

/// `os.clock`: processor time of this process, in seconds.
pub(super) fn clock(stack: Stack<'_>) -> Returned {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    // C's `clock` counts microseconds.
    stack.push_number(time.tv_sec as f64 + (time.tv_nsec / 1000) as f64 / 1e6);
    Ok(1)
}
