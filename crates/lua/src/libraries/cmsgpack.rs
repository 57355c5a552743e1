//! The `cmsgpack` library: MessagePack with the rules of lua-cmsgpack 0.4.0, as Redis carries it. Knows nothing
//! of Redis's data.

use std::ffi::c_int;

use crate::context::{Context, Kind, Nesting};
use crate::vm::{Cursor, Raise, Returned, Stack, Type, c_integer, function_of};

pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table(0, 8);
    stack.set_function("pack", function_of(pack));
    stack.set_function("unpack", function_of(unpack));
    stack.set_function("unpack_one", function_of(unpack_one));
    stack.set_function("unpack_limit", function_of(unpack_limit));
    for (name, text) in [
        ("_NAME", "cmsgpack"),
        ("_VERSION", "lua-cmsgpack 0.4.0"),
        ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
        ("_DESCRIPTION", "MessagePack C implementation for Lua"),
    ] {
        stack.push_bytes(text.as_bytes());
        stack.set_field(-2, name);
    }
}

/// Tables nested deeper are packed as nil, which also ends cycles.
const NESTING_MAX: u32 = 16;

fn pack(stack: Stack<'_>) -> Returned {
    let count = stack.len();
    if count == 0 {
        return Err(stack.bad_argument(0, format_args!("MessagePack pack needs input.")));
    }
    if !stack.has_room(count) {
        return Err(stack.bad_argument(0, format_args!("Too many arguments for MessagePack pack.")));
    }
    let context = Context::of(stack);
    let mut packed = context.scratch();
    for position in 1..=count {
        stack.need_room(1, "in function mp_check")?;
        stack.copy(position);
        pack_value(stack, context, &mut packed, 0)?;
    }
    stack.charge_bytes(packed.len());
    stack.check_memory(packed.len())?;
    stack.push_bytes(&packed);
    Ok(1)
}

/// Packs the value on top and pops it.
fn pack_value(stack: Stack<'_>, context: &Context, packed: &mut Vec<u8>, level: u32) -> Result<(), Raise> {
    match stack.kind(-1) {
        Type::String => {
            stack.with_string(-1, |bytes| pack_bytes(packed, bytes));
        }
        Type::Boolean => packed.push(if stack.boolean(-1) { 0xc3 } else { 0xc2 }),
        Type::Number => pack_number(packed, stack.number(-1)),
        Type::Table if level < NESTING_MAX => {
            // Tables that share their parts can stand for more than there is memory.
            context.check_scratch(packed)?;
            stack.need_room(5, "in function mp_encode_lua_table_as_map")?;
            if is_array(stack) {
                let len = stack.raw_len(-1);
                pack_len(packed, len, 0x90, 0xdc);
                for position in 1..=len {
                    stack.raw_get_at(-1, position as c_int);
                    pack_value(stack, context, packed, level + 1)?;
                }
            } else {
                let (mut len, mut cursor) = (0, Cursor::default());
                while stack.next(-1, &mut cursor) {
                    stack.pop(2);
                    len += 1;
                }
                pack_len(packed, len, 0x80, 0xde);
                let mut cursor = Cursor::default();
                while stack.next(-1, &mut cursor) {
                    // The key first.
                    stack.insert(-2);
                    pack_value(stack, context, packed, level + 1)?;
                    pack_value(stack, context, packed, level + 1)?;
                }
            }
        }
        _ => packed.push(0xc0),
    }
    stack.pop(1);
    Ok(())
}

/// Only the keys 1 to n, without a hole. An empty table is an array.
fn is_array(stack: Stack<'_>) -> bool {
    stack.array_keys(-1).is_some_and(|keys| keys.max == f64::from(keys.count))
}

fn pack_number(packed: &mut Vec<u8>, number: f64) {
    let integer = c_integer(number);
    if number.is_finite() && integer as f64 == number && number < 9_223_372_036_854_775_808.0 {
        return pack_integer(packed, integer);
    }
    let single = number as f32;
    if f64::from(single) == number {
        packed.push(0xca);
        packed.extend_from_slice(&single.to_be_bytes());
    } else {
        packed.push(0xcb);
        packed.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_integer(packed: &mut Vec<u8>, n: i64) {
    let (kind, len) = match n {
        -32..=127 => return packed.push(n as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -128..=-33 => (0xd0, 1),
        -32768..=-129 => (0xd1, 2),
        -2_147_483_648..=-32769 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    packed.push(kind);
    packed.extend_from_slice(&n.to_be_bytes()[8 - len..]);
}

fn pack_bytes(packed: &mut Vec<u8>, bytes: &[u8]) {
    let len = bytes.len();
    match len {
        0..=31 => packed.push(0xa0 | len as u8),
        32..=0xff => packed.extend_from_slice(&[0xd9, len as u8]),
        0x100..=0xffff => {
            packed.push(0xda);
            packed.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            packed.push(0xdb);
            packed.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    packed.extend_from_slice(bytes);
}

/// The head of an array or map: in one byte up to 15, else with a length of 16 or 32 bits.
fn pack_len(packed: &mut Vec<u8>, len: usize, short: u8, long: u8) {
    match len {
        0..=15 => packed.push(short | len as u8),
        16..=0xffff => {
            packed.push(long);
            packed.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            packed.push(long + 1);
            packed.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn unpack(stack: Stack<'_>) -> Returned {
    unpack_some(stack, 0, 0)
}

fn unpack_one(stack: Stack<'_>) -> Returned {
    let offset = stack.argument_integer_or(2, 0)?;
    stack.set_len(1);
    unpack_some(stack, 1, offset)
}

fn unpack_limit(stack: Stack<'_>) -> Returned {
    let limit = stack.argument_integer(2)?;
    let offset = stack.argument_integer_or(3, 0)?;
    stack.set_len(1);
    unpack_some(stack, limit, offset)
}

fn unpack_some(stack: Stack<'_>, limit: i64, offset: i64) -> Returned {
    stack.with_pinned(1, |pinned| unpack_bytes(stack, pinned.argument_bytes(1)?, limit, offset))
}

fn unpack_bytes(stack: Stack<'_>, input: &[u8], limit: i64, offset: i64) -> Returned {
    let all = limit == 0 && offset == 0;
    let len = input.len();
    stack.charge_bytes(len);
    if offset < 0 || limit < 0 {
        return Err(stack.error(format_args!(
            "Invalid request to unpack with offset of {offset} and limit of {len}.",
            offset = offset as i32,
        )));
    }
    if offset as u64 > len as u64 {
        return Err(stack.error(format_args!("Start offset {} greater than input length {len}.", offset as i32)));
    }
    let limit = if all { i64::from(i32::MAX) } else { limit };
    let mut rest = &input[offset as usize..];
    let mut count = 0;
    while !rest.is_empty() && i64::from(count) < limit {
        rest = unpack_value(stack, rest)?;
        count += 1;
    }
    if !all {
        stack.need_room(1, "in function mp_unpack_full")?;
        stack.push_number(if rest.is_empty() { -1.0 } else { (len - rest.len()) as f64 });
        stack.insert(2);
        count += 1;
    }
    Ok(count)
}

/// Pushes one value, tables with all they hold, and returns what follows.
fn unpack_value<'i>(stack: Stack<'_>, mut rest: &'i [u8]) -> Result<&'i [u8], Raise> {
    let mut nesting = Context::of(stack).nesting();
    loop {
        stack.check_memory(0)?;
        stack.need_room(
            3,
            match nesting.last() {
                Some(inner) if !inner.is_map() => "in function mp_decode_to_lua_array",
                _ => "too many return values at once; use unpack_one or unpack_limit instead.",
            },
        )?;
        let opened = match unpack_scalar(stack, &mut rest) {
            Ok(opened) => opened,
            Err(Broken::Memory) => return Err(Raise::Memory),
            Err(Broken::Short) => return Err(stack.error(format_args!("Missing bytes in input."))),
            Err(Broken::Format) => return Err(stack.error(format_args!("Bad data format in input."))),
        };
        match opened {
            Some((map, len)) => {
                stack.push_table(0, 0);
                nesting.push(if map { Nesting::new(Kind::Map, len * 2) } else { Nesting::new(Kind::Array, len) });
            }
            // The value on top belongs to the innermost open table, if there is one.
            None => {
                if let Some(inner) = nesting.last_mut() {
                    store(stack, inner)?;
                }
            }
        }
        // Close what is complete.
        while nesting.last().is_some_and(|inner| inner.left == 0) {
            nesting.pop();
            if let Some(outer) = nesting.last_mut() {
                store(stack, outer)?;
            }
        }
        if nesting.is_empty() {
            return Ok(rest);
        }
    }
}

/// Puts the value on top into the table below; a key waits for its value.
fn store(stack: Stack<'_>, inner: &mut Nesting) -> Result<(), Raise> {
    inner.left -= 1;
    if !inner.is_map() {
        inner.position += 1;
        stack.raw_set_at(-2, inner.position)
    } else if inner.left.is_multiple_of(2) {
        stack.raw_set(-3)
    } else {
        Ok(())
    }
}

enum Broken {
    Short,
    Format,
    Memory,
}

/// Pushes a value that is no table, or says what table begins here.
fn unpack_scalar(stack: Stack<'_>, rest: &mut &[u8]) -> Result<Option<(bool, usize)>, Broken> {
    let kind = take::<1>(rest)?[0];
    match kind {
        0x00..=0x7f => stack.push_number(f64::from(kind)),
        0xe0..=0xff => stack.push_number(f64::from(kind as i8)),
        0x80..=0x8f => return Ok(Some((true, usize::from(kind & 0xf)))),
        0x90..=0x9f => return Ok(Some((false, usize::from(kind & 0xf)))),
        0xa0..=0xbf => push_bytes(stack, rest, usize::from(kind & 0x1f))?,
        0xc0 => stack.push_nil(),
        0xc2 => stack.push_boolean(false),
        0xc3 => stack.push_boolean(true),
        0xca => stack.push_number(f64::from(f32::from_be_bytes(take(rest)?))),
        0xcb => stack.push_number(f64::from_be_bytes(take(rest)?)),
        0xcc => stack.push_number(f64::from(take::<1>(rest)?[0])),
        0xcd => stack.push_number(f64::from(u16::from_be_bytes(take(rest)?))),
        0xce => stack.push_number(f64::from(u32::from_be_bytes(take(rest)?))),
        // Redis pushes it as a signed integer.
        0xcf | 0xd3 => stack.push_number(i64::from_be_bytes(take(rest)?) as f64),
        0xd0 => stack.push_number(f64::from(take::<1>(rest)?[0] as i8)),
        0xd1 => stack.push_number(f64::from(i16::from_be_bytes(take(rest)?))),
        0xd2 => stack.push_number(f64::from(i32::from_be_bytes(take(rest)?))),
        0xd9 => {
            let len = usize::from(take::<1>(rest)?[0]);
            push_bytes(stack, rest, len)?;
        }
        0xda => {
            let len = usize::from(u16::from_be_bytes(take(rest)?));
            push_bytes(stack, rest, len)?;
        }
        0xdb => {
            let len = u32::from_be_bytes(take(rest)?) as usize;
            push_bytes(stack, rest, len)?;
        }
        0xdc | 0xde => return Ok(Some((kind == 0xde, usize::from(u16::from_be_bytes(take(rest)?))))),
        0xdd | 0xdf => return Ok(Some((kind == 0xdf, u32::from_be_bytes(take(rest)?) as usize))),
        _ => return Err(Broken::Format),
    }
    Ok(None)
}

fn push_bytes(stack: Stack<'_>, rest: &mut &[u8], len: usize) -> Result<(), Broken> {
    let (bytes, after) = rest.split_at_checked(len).ok_or(Broken::Short)?;
    stack.check_memory(len).map_err(|_| Broken::Memory)?;
    stack.push_bytes(bytes);
    *rest = after;
    Ok(())
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], Broken> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or(Broken::Short)?;
    *rest = after;
    Ok(*bytes)
}
