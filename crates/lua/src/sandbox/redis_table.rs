//! The `redis` table: what a script may ask of its host. Knows argument rules and error texts, no command.

use std::ffi::c_int;

use crate::context::Context;
use crate::convert::{self, fail, push_error, push_error_with_code};
use crate::digest;
use crate::vm::{Digits, Raise, Returned, Stack, Type, c_int32, function_of, until_nul};

/// Fields of the `redis` table that every kind of code sees.
pub(crate) fn set_common_fields(stack: Stack<'_>, version: &Version) {
    stack.set_function("log", function_of(log));
    for (name, level) in [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)] {
        set_number(stack, name, level);
    }
    set_number(stack, "REDIS_VERSION_NUM", version.number());
    stack.push_bytes(version.text.as_bytes());
    stack.set_field(-2, "REDIS_VERSION");
}

/// Fields for code that runs with a host.
pub(crate) fn set_running_fields(stack: Stack<'_>) {
    stack.set_function("call", function_of(call));
    stack.set_function("pcall", function_of(pcall));
    stack.set_function("setresp", function_of(setresp));
    stack.set_function("sha1hex", function_of(sha1hex));
    stack.set_function("error_reply", function_of(error_reply));
    stack.set_function("status_reply", function_of(status_reply));
    stack.set_function("set_repl", function_of(set_repl));
    stack.set_function("acl_check_cmd", function_of(acl_check_cmd));
    for (name, flags) in [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)] {
        set_number(stack, name, flags);
    }
}

/// Fields for EVAL only. There is no debugger, so they answer as Redis does when none is attached.
pub(crate) fn set_eval_fields(stack: Stack<'_>) {
    stack.set_function("replicate_commands", function_of(replicate_commands));
    stack.set_function("breakpoint", function_of(breakpoint));
    stack.set_function("debug", function_of(debug));
}

/// The version that scripts are told.
pub(crate) struct Version {
    pub(crate) text: String,
}

impl Version {
    /// `0x00MMmmpp`.
    fn number(&self) -> i32 {
        self.text.split('.').take(3).fold(0, |number, part| number << 8 | part.parse::<i32>().unwrap_or(0))
    }
}

fn set_number(stack: Stack<'_>, name: &str, number: i32) {
    stack.push_number(f64::from(number));
    stack.set_field(-2, name);
}

fn call(stack: Stack<'_>) -> Returned {
    if command(stack, Context::of(stack))? { Ok(1) } else { Err(stack.raise()) }
}

fn pcall(stack: Stack<'_>) -> Returned {
    command(stack, Context::of(stack))?;
    Ok(1)
}

/// Pushes the command's reply, or an error table and says so.
#[inline]
fn command(stack: Stack<'_>, context: &Context) -> Result<bool, Raise> {
    if !context.has_host() {
        return Err(fail(stack, "redis.call/pcall can only be called inside a script invocation"));
    }
    let mut reply = context.reply();
    let asked = with_arguments(stack, context, |arguments| {
        context.host(|host| host.call(arguments, &mut reply));
    });
    if let Err(message) = asked {
        push_error(stack, message.as_bytes());
        return Ok(false);
    }
    // The arguments are no longer needed; their room is enough for the reply.
    stack.set_len(0);
    convert::push(stack, &reply)?;
    Ok(reply.first() != Some(&b'-'))
}

/// Calls `use_them` with the arguments of the running function, straight from the stack. Nothing is allocated for up to
/// sixteen of them.
#[inline]
fn with_arguments<R>(
    stack: Stack<'_>,
    context: &Context,
    use_them: impl FnOnce(&[&[u8]]) -> R,
) -> Result<R, &'static str> {
    const FEW: usize = 16;
    let count = stack.len();
    if count == 0 {
        return Err("Please specify at least one argument for this redis lib call");
    }
    if !stack.are_strings(count) {
        for position in 1..=count {
            make_text(stack, position)?;
        }
    }
    stack.with_pinned(count, |pinned| {
        if count as usize <= FEW {
            let mut few: [&[u8]; FEW] = [&[]; FEW];
            few.iter_mut().zip(pinned.strings()).for_each(|(slot, string)| *slot = string);
            return Ok(use_them(&few[..count as usize]));
        }
        context.with_many_arguments(|many| {
            many.extend(pinned.strings());
            Ok(use_them(many))
        })
    })
}

/// Makes a number the text that Redis makes of it (`%.17g`; Lua's own conversion would lose digits).
#[inline]
fn make_text(stack: Stack<'_>, position: c_int) -> Result<(), &'static str> {
    match stack.kind(position) {
        Type::String => {}
        Type::Number => {
            stack.push_bytes(Digits::new().general(stack.number(position), 17));
            stack.replace(position);
        }
        _ => return Err("Lua redis lib command arguments must be strings or integers"),
    }
    Ok(())
}

fn sha1hex(stack: Stack<'_>) -> Returned {
    if stack.len() != 1 {
        return Err(fail(stack, "wrong number of arguments"));
    }
    let digest = stack.with_bytes(1, digest::sha1hex).unwrap_or_else(|| digest::sha1hex(b""));
    stack.push_bytes(&digest);
    Ok(1)
}

fn error_reply(stack: Stack<'_>) -> Returned {
    if stack.len() != 1 || stack.kind(1) != Type::String {
        push_error(stack, b"wrong number or type of arguments");
        return Ok(1);
    }
    stack.with_pinned(1, |pinned| {
        let text = until_nul(pinned.bytes(1).unwrap_or_default());
        if text.first() == Some(&b'-') {
            push_error(stack, text);
        } else {
            push_error_with_code(stack, text);
        }
    });
    Ok(1)
}

fn status_reply(stack: Stack<'_>) -> Returned {
    if stack.len() != 1 || stack.kind(1) != Type::String {
        push_error(stack, b"wrong number or type of arguments");
        return Ok(1);
    }
    stack.push_table(0, 1);
    stack.copy(1);
    stack.set_field(-2, "ok");
    Ok(1)
}

fn log(stack: Stack<'_>) -> Returned {
    let count = stack.len();
    if count < 2 {
        return Err(fail(stack, "redis.log() requires two arguments or more."));
    }
    if !stack.is_number(1) {
        return Err(fail(stack, "First argument must be a number (log level)."));
    }
    let level = c_int32(stack.number(1));
    if !(0..=3).contains(&level) {
        return Err(fail(stack, "Invalid debug level."));
    }
    let context = Context::of(stack);
    let mut text = context.scratch();
    for position in 2..=count {
        let text: &mut Vec<u8> = &mut text;
        stack.with_bytes(position, |part| {
            if position != 2 {
                text.push(b' ');
            }
            text.extend_from_slice(part);
        });
    }
    context.host(|host| host.log(i64::from(level), &text));
    Ok(0)
}

fn setresp(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    if !context.has_host() {
        return Err(fail(stack, "redis.setresp can only be called inside a script invocation"));
    }
    if stack.len() != 1 {
        return Err(fail(stack, "redis.setresp() requires one argument."));
    }
    let version = c_int32(stack.number(1));
    if version != 2 && version != 3 {
        return Err(fail(stack, "RESP version must be 2 or 3."));
    }
    context.resp3.set(version == 3);
    context.host(|host| host.set_resp(version as u8));
    Ok(0)
}

fn set_repl(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    if !context.has_host() {
        return Err(fail(stack, "redis.set_repl can only be called inside a script invocation"));
    }
    if stack.len() != 1 {
        return Err(fail(stack, "redis.set_repl() requires two arguments."));
    }
    let flags = c_int32(stack.number(1));
    if flags & !3 != 0 {
        return Err(fail(stack, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."));
    }
    context.host(|host| host.set_repl(i64::from(flags)));
    Ok(0)
}

fn acl_check_cmd(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    if !context.has_host() {
        return Err(fail(stack, "redis.acl_check_cmd can only be called inside a script invocation"));
    }
    match with_arguments(stack, context, |arguments| context.host(|host| host.acl_check(arguments))) {
        Ok(Some(Ok(allowed))) => {
            stack.push_boolean(allowed);
            Ok(1)
        }
        Ok(Some(Err(message))) => Err(fail(stack, &message)),
        Ok(None) => Err(fail(stack, "")),
        Err(message) => Err(fail(stack, message)),
    }
}

/// Effects are what is replicated, always.
fn replicate_commands(stack: Stack<'_>) -> Returned {
    stack.push_boolean(true);
    Ok(1)
}

fn breakpoint(stack: Stack<'_>) -> Returned {
    stack.push_boolean(false);
    Ok(1)
}

fn debug(_: Stack<'_>) -> Returned {
    Ok(0)
}
