//! Between Lua values and RESP: a command's reply becomes a value, a script's value becomes a reply. Knows Redis's rules
//! for that, and no command.

use std::ffi::c_int;

use resp::Protocol;

use crate::stack::{Raise, Stack, Type, c_integer};
use crate::text::Digits;

// --- a reply becomes a value ---------------------------------------------------------------------------------------

/// Pushes the Lua value of the reply. The bytes come from the host and are well formed; what is not reads as nil.
#[inline]
pub(crate) fn push(stack: Stack<'_>, reply: &[u8]) -> Result<(), Raise> {
    push_one(stack, reply).map(|_| ())
}

const STACK_LIMIT: &str = "lua stack limit reach when parsing redis.call reply";

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
                stack.push_bytes(&rest[..len]);
                rest = rest.get(len + 2..).unwrap_or_default();
            }
            None => stack.push_boolean(false),
        },
        b':' => stack.push_number(integer(line) as f64),
        b'+' => {
            stack.need_room(3, STACK_LIMIT)?;
            push_field(stack, b"ok", line);
        }
        b'-' => {
            stack.need_room(4, STACK_LIMIT)?;
            push_error_line(stack, line);
            ignore_error_stats(stack);
        }
        b'*' | b'>' => match length(line) {
            Some(len) => {
                stack.need_room(4, STACK_LIMIT)?;
                stack.push_table(len.min(rest.len()), 0);
                for position in 1..=len {
                    if rest.is_empty() {
                        break;
                    }
                    rest = push_one(stack, rest)?;
                    stack.raw_set_at(-2, position as c_int);
                }
            }
            None => stack.push_boolean(false),
        },
        b'_' => stack.push_nil(),
        b'#' => stack.push_boolean(line.first() == Some(&b't')),
        b',' => {
            stack.need_room(3, STACK_LIMIT)?;
            stack.push_table(0, 1);
            stack.push_bytes(b"double");
            stack.push_number(double(line));
            stack.raw_set(-3);
        }
        b'(' => {
            stack.need_room(3, STACK_LIMIT)?;
            push_field(stack, b"big_number", line);
        }
        b'=' => {
            stack.need_room(5, STACK_LIMIT)?;
            let len = length(line).unwrap_or(0).min(rest.len());
            let content = &rest[..len];
            rest = rest.get(len + 2..).unwrap_or_default();
            let (format, string) = content.split_at(content.len().min(3));
            stack.push_table(0, 1);
            stack.push_bytes(b"verbatim_string");
            stack.push_table(0, 2);
            stack.push_bytes(b"string");
            stack.push_bytes(string.get(1..).unwrap_or_default());
            stack.raw_set(-3);
            stack.push_bytes(b"format");
            stack.push_bytes(format);
            stack.raw_set(-3);
            stack.raw_set(-3);
        }
        b'%' => {
            stack.need_room(6, STACK_LIMIT)?;
            let len = length(line).unwrap_or(0);
            stack.push_table(0, 1);
            stack.push_bytes(b"map");
            stack.push_table(0, len.min(rest.len()));
            for _ in 0..len {
                if rest.is_empty() {
                    break;
                }
                rest = push_one(stack, rest)?;
                rest = push_one(stack, rest)?;
                match stack.kind(-2) {
                    Type::Nil => stack.pop(2),
                    _ => stack.raw_set(-3),
                }
            }
            stack.raw_set(-3);
        }
        b'~' => {
            stack.need_room(6, STACK_LIMIT)?;
            let len = length(line).unwrap_or(0);
            stack.push_table(0, 1);
            stack.push_bytes(b"set");
            stack.push_table(0, len.min(rest.len()));
            for _ in 0..len {
                if rest.is_empty() {
                    break;
                }
                rest = push_one(stack, rest)?;
                if stack.kind(-1) == Type::Nil {
                    stack.pop(1);
                    continue;
                }
                stack.push_boolean(true);
                stack.raw_set(-3);
            }
            stack.raw_set(-3);
        }
        b'|' => {
            // Attributes are not shown to scripts.
            for _ in 0..length(line).unwrap_or(0).saturating_mul(2) {
                if rest.is_empty() {
                    break;
                }
                stack.need_room(2, STACK_LIMIT)?;
                rest = push_one(stack, rest)?;
                stack.pop(1);
            }
            return push_one(stack, rest);
        }
        _ => stack.push_nil(),
    }
    Ok(rest)
}

fn push_field(stack: Stack<'_>, name: &[u8], value: &[u8]) {
    stack.push_table(0, 1);
    stack.push_bytes(name);
    stack.push_bytes(value);
    stack.raw_set(-3);
}

/// Pushes the table that stands for an error: `{err = "CODE text"}`. A text without a code gets `ERR`.
pub(crate) fn push_error(stack: Stack<'_>, message: &[u8]) {
    stack.has_room(4);
    match message.strip_prefix(b"-") {
        Some(line) => push_error_line(stack, line),
        None => push_coded(stack, b"ERR", message),
    }
}

/// As [`push_error`], for a text whose dash was left out: its first word is a code.
pub(crate) fn push_error_with_code(stack: Stack<'_>, line: &[u8]) {
    stack.has_room(4);
    push_error_line(stack, line);
}

/// An error reply without its dash: the first word is the code, unless it is the only word.
fn push_error_line(stack: Stack<'_>, line: &[u8]) {
    match line.iter().position(|&byte| byte == b' ') {
        Some(space) => push_coded(stack, &line[..space], &line[space + 1..]),
        None => push_coded(stack, b"ERR", line),
    }
}

fn push_coded(stack: Stack<'_>, code: &[u8], message: &[u8]) {
    let message = trim(message, b"\r\n");
    stack.push_table(0, 2);
    stack.push_bytes(b"err");
    let text = crate::context::Context::of(stack).scratch();
    text.extend_from_slice(code);
    text.push(b' ');
    text.extend_from_slice(message);
    stack.push_bytes(text);
    stack.raw_set(-3);
}

/// Redis marks errors that a command already counted.
pub(crate) fn ignore_error_stats(stack: Stack<'_>) {
    stack.push_bytes(b"ignore_error_stats_update");
    stack.push_boolean(true);
    stack.raw_set(-3);
}

pub(crate) fn trim<'b>(mut bytes: &'b [u8], set: &[u8]) -> &'b [u8] {
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

// --- a value becomes a reply ---------------------------------------------------------------------------------------

/// A table whose elements are being written.
pub(crate) struct Open {
    kind: OpenKind,
    /// Array: the position written last.
    position: c_int,
    len: c_int,
}

enum OpenKind {
    Array,
    Map,
    Set,
}

/// Where the names that matter in a result are kept on the caller's stack, so that no lookup makes a string.
#[derive(Clone, Copy)]
pub(crate) struct Names {
    pub(crate) err: c_int,
    pub(crate) ok: c_int,
    pub(crate) double: c_int,
    pub(crate) big_number: c_int,
    pub(crate) verbatim_string: c_int,
    pub(crate) map: c_int,
    pub(crate) set: c_int,
    pub(crate) format: c_int,
    pub(crate) string: c_int,
}

/// In the order of [`Names`].
pub(crate) const NAMES: [&[u8]; 9] =
    [b"err", b"ok", b"double", b"big_number", b"verbatim_string", b"map", b"set", b"format", b"string"];

/// Writes the value on top and pops it. `protocol` is the client's, `script_resp3` what the script set for itself.
///
/// Tables are walked with a list instead of recursion: how deep they nest is the script's choice, the C stack is ours.
pub(crate) fn write(
    stack: Stack<'_>,
    names: &Names,
    protocol: Protocol,
    script_resp3: bool,
    bytes_max: usize,
    open: &mut Vec<Open>,
    out: &mut Vec<u8>,
) -> Result<(), Raise> {
    let writer = Writer { stack, names, protocol, script_resp3 };
    let start = out.len();
    writer.value(open, out);
    while let Some(top) = open.last_mut() {
        // A few nested tables that share their parts can stand for more bytes than there are in the world.
        if out.len() - start > bytes_max {
            push_error(stack, b"the script's reply is too large");
            return Err(stack.raise());
        }
        match top.kind {
            OpenKind::Array if top.position < top.len => {
                top.position += 1;
                stack.raw_get_at(-1, top.position);
                writer.value(open, out);
            }
            OpenKind::Array => {
                open.pop();
                stack.pop(1);
            }
            // The stack holds the table and the key that was written last (nil before the first).
            OpenKind::Map => {
                if top.position == 1 {
                    top.position = 0;
                    // The value of the key just written.
                    stack.copy(-1);
                    stack.raw_get(-3);
                    writer.value(open, out);
                } else if stack.next(-2) {
                    top.position = 1;
                    stack.pop(1);
                    stack.copy(-1);
                    writer.value(open, out);
                } else {
                    open.pop();
                    stack.pop(1);
                }
            }
            OpenKind::Set => {
                if stack.next(-2) {
                    stack.pop(1);
                    stack.copy(-1);
                    writer.value(open, out);
                } else {
                    open.pop();
                    stack.pop(1);
                }
            }
        }
    }
    Ok(())
}

struct Writer<'a, 's> {
    stack: Stack<'s>,
    names: &'a Names,
    protocol: Protocol,
    script_resp3: bool,
}

impl Writer<'_, '_> {
    /// Writes the value on top. A table with elements stays, and is opened; everything else is popped.
    #[inline]
    fn value(&self, open: &mut Vec<Open>, out: &mut Vec<u8>) {
        let stack = self.stack;
        if !stack.has_room(5) {
            out.extend_from_slice(b"-ERR reached lua stack limit\r\n");
            stack.pop(1);
            return;
        }
        match stack.kind(-1) {
            Type::String => bulk(out, stack.bytes(-1).unwrap_or_default()),
            Type::Number => line(out, b':', Digits::new().integer(c_integer(stack.number(-1)))),
            Type::Boolean => self.boolean(stack.boolean(-1), out),
            Type::Table => return self.table(open, out),
            _ => self.null(out),
        }
        stack.pop(1);
    }

    fn boolean(&self, value: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(match (self.script_resp3, self.protocol, value) {
            (false, _, true) => b":1\r\n",
            (false, _, false) => return self.null(out),
            (true, Protocol::Resp2, true) => b":1\r\n",
            (true, Protocol::Resp2, false) => b":0\r\n",
            (true, Protocol::Resp3, true) => b"#t\r\n",
            (true, Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    fn null(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    fn table(&self, open: &mut Vec<Open>, out: &mut Vec<u8>) {
        let stack = self.stack;
        if !stack.is_plain_array(-1) && self.named(open, out) {
            return;
        }
        // Elements up to the first nil.
        let mut len: c_int = 0;
        loop {
            stack.raw_get_at(-1, len + 1);
            let end = stack.kind(-1) == Type::Nil;
            stack.pop(1);
            if end || len == c_int::MAX - 1 {
                break;
            }
            len += 1;
        }
        header(out, b'*', len as usize);
        open.push(Open { kind: OpenKind::Array, position: 0, len });
    }

    /// Pushes the field, without metamethods.
    fn field(&self, table: c_int, name: c_int) -> Type {
        self.stack.copy(name);
        self.stack.raw_get(if table < 0 { table - 1 } else { table });
        self.stack.kind(-1)
    }

    /// A table that says what it is by a field.
    fn named(&self, open: &mut Vec<Open>, out: &mut Vec<u8>) -> bool {
        let (stack, names) = (self.stack, self.names);
        if self.field(-1, names.err) == Type::String {
            error_line(out, stack.bytes(-1).unwrap_or_default());
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.ok) == Type::String {
            out.push(b'+');
            extend_single_line(out, until_nul(stack.bytes(-1).unwrap_or_default()));
            out.extend_from_slice(b"\r\n");
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.double) == Type::Number {
            let mut digits = Digits::new();
            let text = digits.general(stack.number(-1), 17);
            match self.protocol {
                Protocol::Resp2 => bulk(out, text),
                Protocol::Resp3 => line(out, b',', text),
            }
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.big_number) == Type::String {
            let text = stack.bytes(-1).unwrap_or_default();
            match self.protocol {
                Protocol::Resp2 => header(out, b'$', text.len()),
                Protocol::Resp3 => out.push(b'('),
            }
            extend_single_line(out, text);
            out.extend_from_slice(b"\r\n");
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.verbatim_string) == Type::Table {
            if self.field(-1, names.format) == Type::String && self.field(-2, names.string) == Type::String {
                let format = until_nul(stack.bytes(-2).unwrap_or_default());
                let text = stack.bytes(-1).unwrap_or_default();
                match self.protocol {
                    Protocol::Resp2 => bulk(out, text),
                    Protocol::Resp3 => {
                        header(out, b'=', text.len() + 4);
                        let mut padded = [b' ', b' ', b' ', b':'];
                        let len = format.len().min(3);
                        padded[..len].copy_from_slice(&format[..len]);
                        out.extend_from_slice(&padded);
                        out.extend_from_slice(text);
                        out.extend_from_slice(b"\r\n");
                    }
                }
                stack.pop(4);
                return true;
            }
            // One or two fields were pushed; back to the inner table.
            let extra = if stack.kind(-2) == Type::String { 2 } else { 1 };
            stack.pop(extra);
        }
        stack.pop(1);
        if self.field(-1, names.map) == Type::Table {
            let pairs = self.count();
            match self.protocol {
                Protocol::Resp2 => header(out, b'*', pairs * 2),
                Protocol::Resp3 => header(out, b'%', pairs),
            }
            self.open(OpenKind::Map, open);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.set) == Type::Table {
            let members = self.count();
            header(out, if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, members);
            self.open(OpenKind::Set, open);
            return true;
        }
        stack.pop(1);
        false
    }

    /// How many keys the table on top has.
    fn count(&self) -> usize {
        let mut count = 0;
        self.stack.push_nil();
        while self.stack.next(-2) {
            self.stack.pop(1);
            count += 1;
        }
        count
    }

    /// Replaces the outer table by the inner one on top, ready to be walked.
    fn open(&self, kind: OpenKind, open: &mut Vec<Open>) {
        self.stack.remove(-2);
        self.stack.push_nil();
        open.push(Open { kind, position: 0, len: 0 });
    }
}

/// Writes an error reply; C strings end at NUL, and a reply's line has no line breaks.
pub(crate) fn error_line(out: &mut Vec<u8>, message: &[u8]) {
    out.push(b'-');
    extend_single_line(out, trim_end(until_nul(message)));
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn trim_end(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | b'\n'] = bytes {
        bytes = rest;
    }
    bytes
}

fn extend_single_line(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
}

#[inline]
fn bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    header(out, b'$', bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

#[inline]
fn header(out: &mut Vec<u8>, kind: u8, len: usize) {
    if len < 10 {
        out.extend_from_slice(&[kind, b'0' + len as u8, b'\r', b'\n']);
    } else {
        line(out, kind, Digits::new().integer(len as i64));
    }
}

#[inline]
fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}
