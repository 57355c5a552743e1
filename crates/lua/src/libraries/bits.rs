//! The `bit` library: operations on 32 bits, with the rules of LuaBitOp. Knows nothing of Redis.

use crate::vm::{Raise, Returned, Stack, Type, function_of};

pub(crate) fn open(stack: Stack<'_>) {
    stack.push_table(0, 12);
    stack.set_function("tobit", function_of(tobit));
    stack.set_function("bnot", function_of(bnot));
    stack.set_function("band", function_of(band));
    stack.set_function("bor", function_of(bor));
    stack.set_function("bxor", function_of(bxor));
    stack.set_function("lshift", function_of(lshift));
    stack.set_function("rshift", function_of(rshift));
    stack.set_function("arshift", function_of(arshift));
    stack.set_function("rol", function_of(rol));
    stack.set_function("ror", function_of(ror));
    stack.set_function("bswap", function_of(bswap));
    stack.set_function("tohex", function_of(tohex));
}

/// The lower 32 bits of the argument, rounded to an integer.
fn argument(stack: Stack<'_>, position: i32) -> Result<u32, Raise> {
    // Adding 1.5 * 2^52 leaves the integer in the low bits of the mantissa, two's complement, rounded to even.
    const ALIGN: f64 = 6_755_399_441_055_744.0;
    let bits = (stack.argument_number(position)? + ALIGN).to_bits() as u32;
    Ok(bits)
}

fn done(stack: Stack<'_>, bits: u32) -> Returned {
    stack.push_number(f64::from(bits as i32));
    Ok(1)
}

fn tobit(stack: Stack<'_>) -> Returned {
    done(stack, argument(stack, 1)?)
}

fn bnot(stack: Stack<'_>) -> Returned {
    done(stack, !argument(stack, 1)?)
}

fn bswap(stack: Stack<'_>) -> Returned {
    done(stack, argument(stack, 1)?.swap_bytes())
}

fn fold(stack: Stack<'_>, operation: impl Fn(u32, u32) -> u32) -> Returned {
    let mut bits = argument(stack, 1)?;
    for position in (2..=stack.len()).rev() {
        bits = operation(bits, argument(stack, position)?);
    }
    done(stack, bits)
}

fn band(stack: Stack<'_>) -> Returned {
    fold(stack, |a, b| a & b)
}

fn bor(stack: Stack<'_>) -> Returned {
    fold(stack, |a, b| a | b)
}

fn bxor(stack: Stack<'_>) -> Returned {
    fold(stack, |a, b| a ^ b)
}

fn shift(stack: Stack<'_>, operation: impl Fn(u32, u32) -> u32) -> Returned {
    let (bits, by) = (argument(stack, 1)?, argument(stack, 2)? & 31);
    done(stack, operation(bits, by))
}

fn lshift(stack: Stack<'_>) -> Returned {
    shift(stack, |bits, by| bits << by)
}

fn rshift(stack: Stack<'_>) -> Returned {
    shift(stack, |bits, by| bits >> by)
}

fn arshift(stack: Stack<'_>) -> Returned {
    shift(stack, |bits, by| (bits as i32 >> by) as u32)
}

fn rol(stack: Stack<'_>) -> Returned {
    shift(stack, u32::rotate_left)
}

fn ror(stack: Stack<'_>) -> Returned {
    shift(stack, u32::rotate_right)
}

/// As many hexadecimal digits as asked for, upper case if the number is negative.
fn tohex(stack: Stack<'_>) -> Returned {
    let mut bits = argument(stack, 1)?;
    let wanted = if stack.kind(2) == Type::None { 8 } else { argument(stack, 2)? as i32 };
    let digits = if wanted < 0 { b"0123456789ABCDEF" } else { b"0123456789abcdef" };
    let mut text = [0; 8];
    let len = wanted.unsigned_abs().min(8) as usize;
    for digit in text[..len].iter_mut().rev() {
        *digit = digits[(bits & 15) as usize];
        bits >>= 4;
    }
    stack.push_bytes(&text[..len]);
    Ok(1)
}
