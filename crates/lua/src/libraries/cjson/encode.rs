//! Lua values to JSON. Knows nothing of Redis.

use std::ffi::c_int;

use super::settings::{Settings, settings};
use crate::context::{Context, Kind, Nesting};
use crate::vm::{Digits, Raise, Returned, Stack, Type};

pub(super) fn encode(stack: Stack<'_>) -> Returned {
    if stack.len() != 1 {
        return Err(stack.bad_argument(1, format_args!("expected 1 argument")));
    }
    let context = Context::of(stack);
    let encoder = Encoder { stack, settings: settings(stack), context };
    let mut json = context.scratch();
    let encoded = encoder.all(&mut json, &mut context.nesting());
    stack.charge_bytes(json.len());
    encoded?;
    stack.check_memory(json.len())?;
    stack.push_bytes(&json);
    Ok(1)
}

struct Encoder<'s> {
    stack: Stack<'s>,
    settings: Settings,
    context: &'s Context,
}

impl Encoder<'_> {
    /// Writes the value on top.
    fn all(&self, json: &mut Vec<u8>, open: &mut Vec<Nesting>) -> Result<(), Raise> {
        let stack = self.stack;
        stack.copy(1);
        self.value(json, open)?;
        // Every open table is on the stack.
        while let Some(top) = open.last_mut() {
            if top.is_map() {
                if !stack.next(-1, &mut top.cursor) {
                    json.push(b'}');
                    open.pop();
                    stack.pop(1);
                    continue;
                }
                if top.position > 0 {
                    json.push(b',');
                }
                top.position = 1;
                match stack.kind(-2) {
                    Type::Number => {
                        json.push(b'"');
                        self.number(json, -2)?;
                        json.extend_from_slice(b"\":");
                    }
                    Type::String => {
                        stack.with_string(-2, |bytes| string(json, bytes));
                        json.push(b':');
                    }
                    _ => return Err(self.refuse(-2, "table key must be a number or string")),
                }
                stack.remove(-2);
            } else {
                if top.position as usize == top.left {
                    json.push(b']');
                    open.pop();
                    stack.pop(1);
                    continue;
                }
                if top.position > 0 {
                    json.push(b',');
                }
                top.position += 1;
                stack.raw_get_at(-1, top.position);
            }
            self.context.check_scratch(json)?;
            self.value(json, open)?;
        }
        Ok(())
    }

    /// Writes and pops the value on top; a table is opened and stays.
    fn value(&self, json: &mut Vec<u8>, open: &mut Vec<Nesting>) -> Result<(), Raise> {
        let stack = self.stack;
        match stack.kind(-1) {
            Type::String => {
                stack.with_string(-1, |bytes| string(json, bytes));
            }
            Type::Number => self.number(json, -1)?,
            Type::Boolean => json.extend_from_slice(if stack.boolean(-1) { b"true" } else { b"false" }),
            Type::Nil => json.extend_from_slice(b"null"),
            Type::LightUserdata if stack.is_null(-1) => json.extend_from_slice(b"null"),
            Type::Table => return self.table(json, open),
            _ => return Err(self.refuse(-1, "type not supported")),
        }
        stack.pop(1);
        Ok(())
    }

    fn table(&self, json: &mut Vec<u8>, open: &mut Vec<Nesting>) -> Result<(), Raise> {
        let depth = open.len() + 1;
        if depth > self.settings.encode_depth_max as usize || !self.stack.has_room(4) {
            return Err(self.stack.error(format_args!("Cannot serialise, excessive nesting ({depth})")));
        }
        match self.array_len()? {
            Some(len) if len > 0 => {
                json.push(b'[');
                open.push(Nesting::new(Kind::Array, len as usize));
            }
            _ => {
                json.push(b'{');
                open.push(Nesting::new(Kind::Map, 0));
            }
        }
        Ok(())
    }

    /// The largest index if all keys are positive integers and there are enough of them. An empty table has none.
    fn array_len(&self) -> Result<Option<c_int>, Raise> {
        let (stack, settings) = (self.stack, &self.settings);
        let Some(keys) = stack.array_keys(-1) else { return Ok(None) };
        let (items, max) = (keys.count, keys.int_max);
        let sparse = settings.sparse_ratio > 0
            && max > items.saturating_mul(settings.sparse_ratio)
            && max > settings.sparse_safe;
        if !sparse {
            return Ok(Some(max));
        }
        if settings.sparse_convert == 0 {
            return Err(self.refuse(-1, "excessively sparse array"));
        }
        Ok(None)
    }

    fn number(&self, json: &mut Vec<u8>, index: c_int) -> Result<(), Raise> {
        let number = self.stack.number(index);
        if !number.is_finite() {
            match self.settings.encode_invalid_numbers {
                0 => return Err(self.refuse(index, "must not be NaN or Inf")),
                1 if number.is_nan() => {
                    json.extend_from_slice(b"nan");
                    return Ok(());
                }
                1 => {}
                _ => {
                    json.extend_from_slice(b"null");
                    return Ok(());
                }
            }
        }
        json.extend_from_slice(Digits::new().general(number, self.settings.precision));
        Ok(())
    }

    fn refuse(&self, index: c_int, reason: &str) -> Raise {
        let kind = self.stack.kind_name(index);
        self.stack.error(format_args!("Cannot serialise {kind}: {reason}"))
    }
}

fn string(json: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    json.push(b'"');
    let mut plain = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && !matches!(byte, b'"' | b'\\' | b'/' | 0x7f) {
            continue;
        }
        json.extend_from_slice(&bytes[plain..at]);
        plain = at + 1;
        let short = match byte {
            b'"' | b'\\' | b'/' => byte,
            8 => b'b',
            9 => b't',
            10 => b'n',
            12 => b'f',
            13 => b'r',
            _ => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                json.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
                continue;
            }
        };
        json.extend_from_slice(&[b'\\', short]);
    }
    json.extend_from_slice(&bytes[plain..]);
    json.push(b'"');
}
