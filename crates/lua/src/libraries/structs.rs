//! The `struct` library: values to and from fixed binary layouts, with the formats of Roberto Ierusalimschy's `struct`
//! 0.2. Knows nothing of Redis.

use crate::context::Context;
use crate::vm::{Pinned, Raise, Returned, Stack, Text, c_integer, function_of, until_nul};

pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table(0, 3);
    stack.set_function("pack", function_of(pack));
    stack.set_function("unpack", function_of(unpack));
    stack.set_function("size", function_of(size));
}

/// The largest integer, in bytes.
const INTEGER_BYTES_MAX: usize = 32;
/// What `!` without a number aligns to.
const ALIGN_DEFAULT: usize = 8;

/// Reads a format, and keeps what it says about the items to come.
struct Format<'f> {
    rest: &'f [u8],
    big_endian: bool,
    align: usize,
}

impl<'f> Format<'f> {
    /// The format is the first argument, which is pinned.
    fn new(pinned: Pinned<'f>) -> Result<Self, Raise> {
        Ok(Format { rest: until_nul(pinned.argument_bytes(1)?), big_endian: false, align: 1 })
    }

    /// The next option and its size (zero where it depends on the value, or there is none).
    fn next(&mut self, stack: Stack<'_>) -> Result<Option<(u8, usize)>, Raise> {
        let Some((&option, rest)) = self.rest.split_first() else { return Ok(None) };
        self.rest = rest;
        let size = match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(stack, 1)?,
            b'i' | b'I' => {
                let size = self.number(stack, 4)?;
                if size > INTEGER_BYTES_MAX {
                    return Err(
                        stack.error(format_args!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}"))
                    );
                }
                size
            }
            _ => 0,
        };
        Ok(Some((option, size)))
    }

    fn number(&mut self, stack: Stack<'_>, default: usize) -> Result<usize, Raise> {
        if !self.rest.first().is_some_and(u8::is_ascii_digit) {
            return Ok(default);
        }
        let mut number: usize = 0;
        while let Some((digit @ b'0'..=b'9', rest)) = self.rest.split_first() {
            number = number * 10 + usize::from(digit - b'0');
            if number > i32::MAX as usize {
                return Err(stack.error(format_args!("integral size overflow")));
            }
            self.rest = rest;
        }
        Ok(number)
    }

    /// Bytes to skip so that an item of this size is aligned.
    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        size.wrapping_sub(position & (size - 1)) & (size - 1)
    }

    /// An option that is no item.
    fn control(&mut self, stack: Stack<'_>, option: u8) -> Result<(), Raise> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let align = self.number(stack, ALIGN_DEFAULT)?;
                if !align.is_power_of_two() {
                    return Err(stack.error(format_args!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            _ => {
                let message = Text::<40>::of(&[b"invalid format option '", &[option], b"'"]);
                return Err(stack.bad_argument_bytes(1, message.as_bytes()));
            }
        }
        Ok(())
    }
}

fn pack(stack: Stack<'_>) -> Returned {
    stack.with_pinned(1, |pinned| pack_by(stack, Format::new(pinned)?))
}

fn pack_by(stack: Stack<'_>, mut format: Format<'_>) -> Returned {
    // What is missing reads as nil.
    stack.push_nil();
    let context = Context::of(stack);
    let mut packed = context.scratch();
    let mut argument = 2;
    while let Some((option, size)) = format.next(stack)? {
        let padding = format.padding(packed.len(), option, size);
        let len = packed.len() + padding;
        packed.resize(len, 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                let bytes = integer_bytes(stack.argument_number(argument)?, size);
                append(&mut packed, &bytes[..size], format.big_endian);
                argument += 1;
            }
            b'x' => packed.push(0),
            b'f' => {
                append(&mut packed, &(stack.argument_number(argument)? as f32).to_le_bytes(), format.big_endian);
                argument += 1;
            }
            b'd' => {
                append(&mut packed, &stack.argument_number(argument)?.to_le_bytes(), format.big_endian);
                argument += 1;
            }
            b'c' | b's' => {
                let to: &mut Vec<u8> = &mut packed;
                let fits = stack.with_argument(argument, |string| {
                    let size = if size == 0 { string.len() } else { size };
                    string.get(..size).map(|string| to.extend_from_slice(string)).is_some()
                })?;
                argument += 1;
                if !fits {
                    return Err(stack.bad_argument(argument, format_args!("string too short")));
                }
                if option == b's' {
                    packed.push(0);
                }
            }
            _ => format.control(stack, option)?,
        }
        context.check_scratch(&packed)?;
    }
    stack.check_memory(packed.len())?;
    stack.push_bytes(&packed);
    Ok(1)
}

fn append(packed: &mut Vec<u8>, little_endian: &[u8], reverse: bool) {
    let start = packed.len();
    packed.extend_from_slice(little_endian);
    if reverse {
        packed[start..].reverse();
    }
}

/// A number as C's casts make it, little endian; above eight bytes there are only zeroes.
fn integer_bytes(number: f64, size: usize) -> [u8; INTEGER_BYTES_MAX] {
    const TOO_LARGE: f64 = 18_446_744_073_709_551_616.0;
    let value = if number < 0.0 {
        c_integer(number) as u64
    } else if number < TOO_LARGE {
        number as u64
    } else {
        0
    };
    let mut bytes = [0; INTEGER_BYTES_MAX];
    let len = size.min(8);
    bytes[..len].copy_from_slice(&value.to_le_bytes()[..len]);
    bytes
}

fn unpack(stack: Stack<'_>) -> Returned {
    stack.with_pinned(2, |pinned| unpack_by(stack, Format::new(pinned)?, pinned.argument_bytes(2)?))
}

fn unpack_by(stack: Stack<'_>, mut format: Format<'_>, data: &[u8]) -> Returned {
    let offset = stack.argument_integer_or(3, 1)?;
    // A negative offset is a very large one.
    if offset == 0 {
        return Err(stack.bad_argument(3, format_args!("offset must be 1 or greater")));
    }
    let mut position = (offset as usize).wrapping_sub(1);
    let mut results = 0;
    let too_short = || stack.bad_argument(2, format_args!("data string too short"));
    while let Some((option, mut size)) = format.next(stack)? {
        position = position.wrapping_add(format.padding(position, option, size));
        let fits = |position: usize, size: usize| size <= data.len() && position <= data.len() - size;
        if !fits(position, size) {
            return Err(too_short());
        }
        stack.need_room(2, "too many results")?;
        let item = &data[position..position + size];
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                stack.push_number(integer(item, option.is_ascii_lowercase(), format.big_endian));
                results += 1;
            }
            b'x' => {}
            b'f' => {
                let bytes: [u8; 4] = ordered(item, format.big_endian);
                stack.push_number(f64::from(f32::from_le_bytes(bytes)));
                results += 1;
            }
            b'd' => {
                stack.push_number(f64::from_le_bytes(ordered(item, format.big_endian)));
                results += 1;
            }
            b'c' => {
                if size == 0 {
                    if results == 0 || !stack.is_number(-1) {
                        return Err(stack.error(format_args!("format 'c0' needs a previous size")));
                    }
                    size = c_integer(stack.number(-1)) as usize;
                    stack.pop(1);
                    results -= 1;
                    if !fits(position, size) {
                        return Err(too_short());
                    }
                }
                stack.check_memory(size)?;
                stack.push_bytes(&data[position..position + size]);
                results += 1;
            }
            b's' => {
                let Some(len) = data[position..].iter().position(|&byte| byte == 0) else {
                    return Err(stack.error(format_args!("unfinished string in data")));
                };
                stack.check_memory(len)?;
                stack.push_bytes(&data[position..position + len]);
                size = len + 1;
                results += 1;
            }
            _ => format.control(stack, option)?,
        }
        position += size;
    }
    stack.push_number((position as i64).wrapping_add(1) as f64);
    Ok(results + 1)
}

fn ordered<const N: usize>(item: &[u8], big_endian: bool) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(item);
    if big_endian {
        bytes.reverse();
    }
    bytes
}

fn integer(item: &[u8], signed: bool, big_endian: bool) -> f64 {
    let mut value: u64 = 0;
    let mut take = |byte: &u8| value = value << 8 | u64::from(*byte);
    if big_endian {
        item.iter().for_each(&mut take);
    } else {
        item.iter().rev().for_each(&mut take);
    }
    if !signed {
        return value as f64;
    }
    let mask = u64::MAX.wrapping_shl((item.len() as u32 * 8).wrapping_sub(1));
    if value & mask != 0 {
        value |= mask;
    }
    value as i64 as f64
}

fn size(stack: Stack<'_>) -> Returned {
    stack.with_pinned(1, |pinned| size_of(stack, Format::new(pinned)?))
}

fn size_of(stack: Stack<'_>, mut format: Format<'_>) -> Returned {
    let mut position = 0;
    while let Some((option, size)) = format.next(stack)? {
        position += format.padding(position, option, size);
        match option {
            b's' => return Err(stack.bad_argument(1, format_args!("option 's' has no fixed size"))),
            b'c' if size == 0 => return Err(stack.bad_argument(1, format_args!("option 'c0' has no fixed size"))),
            _ if !option.is_ascii_alphanumeric() => format.control(stack, option)?,
            _ => {}
        }
        position += size;
    }
    stack.push_number(position as f64);
    Ok(1)
}
