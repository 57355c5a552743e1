//! A script's value becomes a reply. Knows Redis's rules for that, and no command.

use std::ffi::c_int;

use resp::Protocol;

use super::errors::{error_line, extend_single_line, fail};
use crate::context::{Kind, Nesting};
use crate::vm::{Cursor, Digits, Raise, Stack, Type, c_integer, until_nul};

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
    open: &mut Vec<Nesting>,
    out: &mut Vec<u8>,
) -> Result<(), Raise> {
    let writer = Writer { stack, names, protocol, script_resp3 };
    let start = out.len();
    writer.value(open, out);
    while let Some(top) = open.last_mut() {
        // Nested tables that share their parts can stand for more bytes than there is memory.
        if out.len() - start > bytes_max {
            return Err(fail(stack, "the script's reply is too large"));
        }
        match top.kind {
            Kind::Array if (top.position as usize) < top.left => {
                top.position += 1;
                stack.raw_get_at(-1, top.position);
                writer.value(open, out);
            }
            // The value of the key that was just written, which is on top of the table.
            Kind::Map if top.left == 1 => {
                top.left = 0;
                stack.raw_get(-2);
                writer.value(open, out);
            }
            Kind::Map | Kind::Set if stack.next(-1, &mut top.cursor) => {
                stack.pop(1);
                if top.is_map() {
                    top.left = 1;
                    stack.copy(-1);
                }
                writer.value(open, out);
            }
            _ => {
                open.pop();
                stack.pop(1);
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
    fn value(&self, open: &mut Vec<Nesting>, out: &mut Vec<u8>) {
        let stack = self.stack;
        if !stack.has_room(5) {
            out.extend_from_slice(b"-ERR reached lua stack limit\r\n");
            stack.pop(1);
            return;
        }
        match stack.kind(-1) {
            Type::String => {
                stack.with_string(-1, |text| bulk(out, text));
            }
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

    fn table(&self, open: &mut Vec<Nesting>, out: &mut Vec<u8>) {
        let stack = self.stack;
        if !stack.is_plain_array(-1) && self.named(open, out) {
            return;
        }
        // Elements up to the first nil.
        let len = stack.array_len(-1);
        header(out, b'*', len as usize);
        open.push(Nesting::new(Kind::Array, len as usize));
    }

    /// Pushes the field, without metamethods.
    fn field(&self, table: c_int, name: c_int) -> Type {
        self.stack.copy(name);
        self.stack.raw_get(if table < 0 { table - 1 } else { table })
    }

    /// A table that says what it is by a field.
    fn named(&self, open: &mut Vec<Nesting>, out: &mut Vec<u8>) -> bool {
        let (stack, names) = (self.stack, self.names);
        if self.field(-1, names.err) == Type::String {
            stack.with_string(-1, |text| error_line(out, text));
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.ok) == Type::String {
            out.push(b'+');
            stack.with_string(-1, |text| extend_single_line(out, until_nul(text)));
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
            let protocol = self.protocol;
            stack.with_string(-1, |text| {
                match protocol {
                    Protocol::Resp2 => header(out, b'$', text.len()),
                    Protocol::Resp3 => out.push(b'('),
                }
                extend_single_line(out, text);
            });
            out.extend_from_slice(b"\r\n");
            stack.pop(2);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.verbatim_string) == Type::Table {
            if self.field(-1, names.format) == Type::String && self.field(-2, names.string) == Type::String {
                let mut format = [b' ', b' ', b' ', b':'];
                stack.with_string(-2, |text| {
                    let text = until_nul(text);
                    let len = text.len().min(3);
                    format[..len].copy_from_slice(&text[..len]);
                });
                let protocol = self.protocol;
                stack.with_string(-1, |text| match protocol {
                    Protocol::Resp2 => bulk(out, text),
                    Protocol::Resp3 => {
                        header(out, b'=', text.len() + 4);
                        out.extend_from_slice(&format);
                        out.extend_from_slice(text);
                        out.extend_from_slice(b"\r\n");
                    }
                });
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
            self.open(Kind::Map, open);
            return true;
        }
        stack.pop(1);
        if self.field(-1, names.set) == Type::Table {
            let members = self.count();
            header(out, if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, members);
            self.open(Kind::Set, open);
            return true;
        }
        stack.pop(1);
        false
    }

    /// How many keys the table on top has.
    fn count(&self) -> usize {
        let (mut count, mut cursor) = (0, Cursor::default());
        while self.stack.next(-1, &mut cursor) {
            self.stack.pop(2);
            count += 1;
        }
        count
    }

    /// Replaces the outer table by the inner one on top, ready to be walked.
    fn open(&self, kind: Kind, open: &mut Vec<Nesting>) {
        self.stack.remove(-2);
        open.push(Nesting::new(kind, 0));
    }
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
