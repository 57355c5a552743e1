//! Errors as Lua has them, as RESP has them, and the rules between. Knows no command.

use crate::context::Context;
use crate::vm::{Raise, Stack, until_nul};

/// Pushes the table that stands for an error: `{err = "CODE text"}`. A text without a code gets `ERR`.
pub(crate) fn push_error(stack: Stack<'_>, message: &[u8]) {
    stack.make_room(4);
    match message.strip_prefix(b"-") {
        Some(line) => push_error_line(stack, line),
        None => push_coded(stack, b"ERR", message),
    }
}

/// Raises what [`push_error`] pushes.
pub(crate) fn fail(stack: Stack<'_>, message: &str) -> Raise {
    push_error(stack, message.as_bytes());
    stack.raise()
}

/// As [`push_error`], for a text whose dash was left out: its first word is a code.
pub(crate) fn push_error_with_code(stack: Stack<'_>, line: &[u8]) {
    stack.make_room(4);
    push_error_line(stack, line);
}

/// An error reply without its dash: the first word is the code, unless it is the only word.
pub(super) fn push_error_line(stack: Stack<'_>, line: &[u8]) {
    match line.iter().position(|&byte| byte == b' ') {
        Some(space) => push_coded(stack, &line[..space], &line[space + 1..]),
        None => push_coded(stack, b"ERR", line),
    }
}

fn push_coded(stack: Stack<'_>, code: &[u8], message: &[u8]) {
    let message = trim(message, b"\r\n");
    stack.push_table(0, 2);
    let mut text = Context::of(stack).scratch();
    text.extend_from_slice(code);
    text.push(b' ');
    text.extend_from_slice(message);
    stack.push_bytes(&text);
    stack.set_field(-2, "err");
}

/// Redis marks errors that a command already counted.
pub(super) fn mark_as_counted(stack: Stack<'_>) {
    stack.push_boolean(true);
    stack.set_field(-2, "ignore_error_stats_update");
}

fn trim<'b>(mut bytes: &'b [u8], set: &[u8]) -> &'b [u8] {
    while let [first, rest @ ..] = bytes
        && set.contains(first)
    {
        bytes = rest;
    }
    while let [rest @ .., last] = bytes
        && set.contains(last)
    {
        bytes = rest;
    }
    bytes
}

/// Writes an error reply; C strings end at NUL, and a reply's line has no line breaks.
pub(crate) fn error_line(out: &mut Vec<u8>, message: &[u8]) {
    out.push(b'-');
    extend_single_line(out, trim_end(until_nul(message)));
    out.extend_from_slice(b"\r\n");
}

fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}

pub(super) fn extend_single_line(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
}
