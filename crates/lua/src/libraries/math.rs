//! `math.random` and `math.randomseed` with Redis's generator. Refuses to know how it makes numbers.

use crate::context::{Context, Random};
use crate::vm::{Raise, Returned, Stack, c_int32};

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
