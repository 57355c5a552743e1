//! `math.random` with the generator Redis uses (that of `lrand48`), so that a script sees the same numbers everywhere.

use crate::context::Context;
use crate::stack::{Raise, Returned, Stack, c_int32};

/// A 48-bit linear congruential generator.
#[derive(Clone, Copy)]
pub(crate) struct Random(u64);

/// What `lrand48` starts from when nobody seeds it, and where Redis's scripts start. Redis lets the sequence go on from script
/// to script; here every script starts anew, so that what it does depends on nothing but its arguments.
impl Default for Random {
    fn default() -> Self {
        Random(0x1234_ABCD_330E)
    }
}

impl Random {
    fn seeded(seed: i32) -> Self {
        Random((seed as u32 as u64) << 16 | 0x330E)
    }

    /// 31 bits.
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        (self.0 >> 17) as u32
    }
}

pub(crate) fn random(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    if !context.has_host() {
        return Err(stack.error(format_args!("math.random can only be called inside a script invocation")));
    }
    const MAX: u32 = i32::MAX as u32;
    let mut generator = context.random.get();
    let r = f64::from(generator.next() % MAX) / f64::from(MAX);
    context.random.set(generator);
    let (low, high) = match stack.len() {
        0 => {
            stack.push_number(r);
            return Ok(1);
        }
        1 => (1, checked_int(stack, 1)?),
        2 => (checked_int(stack, 1)?, checked_int(stack, 2)?),
        _ => return Err(stack.error(format_args!("wrong number of arguments"))),
    };
    if low > high {
        return Err(stack.bad_argument(stack.len(), format_args!("interval is empty")));
    }
    let span = high.wrapping_sub(low).wrapping_add(1);
    stack.push_number((r * f64::from(span)).floor() + f64::from(low));
    Ok(1)
}

pub(crate) fn seed(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    if !context.has_host() {
        return Err(stack.error(format_args!("math.randomseed can only be called inside a script invocation")));
    }
    context.random.set(Random::seeded(checked_int(stack, 1)?));
    Ok(0)
}

fn checked_int(stack: Stack<'_>, position: i32) -> Result<i32, Raise> {
    Ok(c_int32(stack.argument_number(position)?))
}
