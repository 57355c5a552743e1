//! A command's reply becomes a Lua value. Knows Redis's rules for that, and no command.

use std::ffi::c_int;

use super::errors::{mark_as_counted, push_error_line};
use crate::context::Context;
use crate::host::Tick;
use crate::vm::{Raise, Stack, Type};

/// How many values are made between two ticks of the host: a long reply may keep no worker from its other clients.
const VALUES_PER_TICK: usize = 1024;

/// Asks the host whether the script may continue, after so many values. One that may not is stopped at its next
/// instruction.
fn tick_after(stack: Stack<'_>, values: usize) {
    if values.is_multiple_of(VALUES_PER_TICK)
        && let Some(Tick::Kill(_)) = Context::of(stack).host(|host| host.tick())
    {
        stack.charge_bytes(usize::MAX);
    }
}

/// Pushes the Lua value of the reply. The bytes come from the host and are well formed; what is not reads as nil.
#[inline]
pub(crate) fn push(stack: Stack<'_>, reply: &[u8]) -> Result<(), Raise> {
    push_one(stack, reply).map(|_| ())
}

/// Room on the stack, and memory for one more table.
#[inline]
fn need(stack: Stack<'_>, room: c_int) -> Result<(), Raise> {
    stack.check_memory(0)?;
    stack.need_room(room, "lua stack limit reach when parsing redis.call reply")
}

/// How many values can be in so many bytes: the shortest, a null, has three.
fn values_max(reply: &[u8]) -> usize {
    reply.len() / 3
}

/// Pushes one value and returns what follows it.
fn push_one<'r>(stack: Stack<'_>, reply: &'r [u8]) -> Result<&'r [u8], Raise> {
    let Some((&kind, rest)) = reply.split_first() else {
        stack.push_nil();
        return Ok(reply);
    };
    let (line, mut rest) = split_line(rest);
    match kind {
        b'$' => match length(line) {
            Some(len) => {
                let len = len.min(rest.len());
                stack.check_memory(len)?;
                stack.push_bytes(&rest[..len]);
                rest = rest.get(len + 2..).unwrap_or_default();
            }
            None => stack.push_boolean(false),
        },
        b':' => stack.push_number(integer(line) as f64),
        b'+' => {
            need(stack, 3)?;
            push_field(stack, b"ok", line)?;
        }
        b'-' => {
            need(stack, 4)?;
            push_error_line(stack, line);
            mark_as_counted(stack);
        }
        b'*' | b'>' => match length(line) {
            Some(len) => {
                need(stack, 4)?;
                stack.push_table(len.min(values_max(rest)), 0);
                for position in 1..=len {
                    if rest.is_empty() {
                        break;
                    }
                    rest = push_one(stack, rest)?;
                    stack.raw_set_at(-2, position as c_int)?;
                    tick_after(stack, position);
                }
            }
            None => stack.push_boolean(false),
        },
        b'_' => stack.push_nil(),
        b'#' => stack.push_boolean(line.first() == Some(&b't')),
        b',' => {
            need(stack, 3)?;
            stack.push_table(0, 1);
            stack.push_number(double(line));
            stack.set_field(-2, "double");
        }
        b'(' => {
            need(stack, 3)?;
            push_field(stack, b"big_number", line)?;
        }
        b'=' => {
            need(stack, 5)?;
            let len = length(line).unwrap_or(0).min(rest.len());
            let content = &rest[..len];
            rest = rest.get(len + 2..).unwrap_or_default();
            let (format, string) = content.split_at(content.len().min(3));
            stack.push_table(0, 1);
            stack.push_table(0, 2);
            stack.push_bytes(string.get(1..).unwrap_or_default());
            stack.set_field(-2, "string");
            stack.push_bytes(format);
            stack.set_field(-2, "format");
            stack.set_field(-2, "verbatim_string");
        }
        b'%' => {
            need(stack, 6)?;
            let len = length(line).unwrap_or(0);
            stack.push_table(0, 1);
            stack.push_bytes(b"map");
            stack.push_table(0, len.min(values_max(rest)));
            for number in 1..=len {
                if rest.is_empty() {
                    break;
                }
                tick_after(stack, number);
                rest = push_one(stack, rest)?;
                rest = push_one(stack, rest)?;
                match stack.kind(-2) {
                    Type::Nil => stack.pop(2),
                    _ => stack.raw_set(-3)?,
                }
            }
            stack.raw_set(-3)?;
        }
        b'~' => {
            need(stack, 6)?;
            let len = length(line).unwrap_or(0);
            stack.push_table(0, 1);
            stack.push_bytes(b"set");
            stack.push_table(0, len.min(values_max(rest)));
            for number in 1..=len {
                if rest.is_empty() {
                    break;
                }
                tick_after(stack, number);
                rest = push_one(stack, rest)?;
                if stack.kind(-1) == Type::Nil {
                    stack.pop(1);
                    continue;
                }
                stack.push_boolean(true);
                stack.raw_set(-3)?;
            }
            stack.raw_set(-3)?;
        }
        b'|' => {
            // Attributes are not shown to scripts.
            for _ in 0..length(line).unwrap_or(0).saturating_mul(2) {
                if rest.is_empty() {
                    break;
                }
                need(stack, 2)?;
                rest = push_one(stack, rest)?;
                stack.pop(1);
            }
            return push_one(stack, rest);
        }
        _ => stack.push_nil(),
    }
    Ok(rest)
}

fn push_field(stack: Stack<'_>, name: &[u8], value: &[u8]) -> Result<(), Raise> {
    stack.push_table(0, 1);
    stack.push_bytes(name);
    stack.push_bytes(value);
    stack.raw_set(-3)
}

#[inline]
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    // Lines are short except for errors and simple strings; a plain loop beats the setup of a vectorised search.
    match bytes.iter().position(|&byte| byte == b'\r') {
        Some(end) => (&bytes[..end], bytes.get(end + 2..).unwrap_or_default()),
        None => (bytes, &[]),
    }
}

#[inline]
fn length(line: &[u8]) -> Option<usize> {
    usize::try_from(integer(line)).ok()
}

#[inline]
fn integer(line: &[u8]) -> i64 {
    let (negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let mut value: i64 = 0;
    for digit in digits {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit.wrapping_sub(b'0')));
    }
    if negative { value.wrapping_neg() } else { value }
}

fn double(line: &[u8]) -> f64 {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}
