//! The settings of a `cjson` table, and the functions with which a script changes them. Refuses to know what they do.

use std::ffi::c_int;

use crate::context::Context;
use crate::vm::{Raise, Returned, Stack, Text, Type, upvalue};

/// The settings of one `cjson` table, in memory that Lua owns.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) sparse_convert: c_int,
    pub(super) sparse_ratio: c_int,
    pub(super) sparse_safe: c_int,
    pub(super) encode_depth_max: c_int,
    pub(super) decode_depth_max: c_int,
    /// 0 refuse, 1 write them, 2 write null.
    pub(super) encode_invalid_numbers: c_int,
    pub(super) decode_invalid_numbers: c_int,
    pub(super) keep_buffer: c_int,
    pub(super) precision: c_int,
}

pub(super) const DEFAULTS: Settings = Settings {
    sparse_convert: 0,
    sparse_ratio: 2,
    sparse_safe: 10,
    encode_depth_max: 1000,
    decode_depth_max: 1000,
    encode_invalid_numbers: 0,
    decode_invalid_numbers: 1,
    keep_buffer: 1,
    precision: 14,
};

/// The settings of the running function's table.
pub(super) fn settings(stack: Stack<'_>) -> Settings {
    stack.value(upvalue(1)).expect("`open` binds the settings to each function")
}

/// Puts the settings of the `cjson` table on top back to what they were at first. Redis lets a script's settings stay
/// for all that follow; with a state for each thread a script's result would depend on where it runs.
pub(crate) fn reset(stack: Stack<'_>) {
    stack.get_field(-1, "encode");
    if stack.push_bound(-1, 1) {
        stack.set_value(-1, DEFAULTS);
        stack.pop(1);
    }
    stack.pop(1);
}

/// Gives `change` the settings to write, after the number of arguments was checked.
fn change(stack: Stack<'_>, arguments: c_int, change: impl FnOnce(&mut Settings) -> Result<(), Raise>) -> Returned {
    if stack.len() > arguments {
        return Err(stack.bad_argument(arguments + 1, format_args!("found too many arguments")));
    }
    stack.set_len(arguments);
    Context::of(stack).cjson_changed.set(true);
    let mut settings = settings(stack);
    let changed = change(&mut settings);
    // What came before a wrong argument is set, as in Redis.
    stack.set_value(upvalue(1), settings);
    changed.map(|()| arguments)
}

/// Sets a number from an argument, if given, and pushes it.
fn number(stack: Stack<'_>, position: c_int, setting: &mut c_int, min: c_int, max: c_int) -> Result<(), Raise> {
    if stack.kind(position) != Type::Nil {
        let value = stack.argument_integer(position)? as c_int;
        if !(min..=max).contains(&value) {
            // Redis blames the first argument, whichever it was.
            return Err(stack.bad_argument(1, format_args!("expected integer between {min} and {max}")));
        }
        *setting = value;
    }
    stack.push_number(f64::from(*setting));
    Ok(())
}

/// Sets one of some words, or a boolean for the first two, and pushes it.
fn choice(stack: Stack<'_>, position: c_int, setting: &mut c_int, options: &[&str]) -> Result<(), Raise> {
    match stack.kind(position) {
        Type::Nil => {}
        Type::Boolean => *setting = c_int::from(stack.boolean(position)),
        _ => {
            let (found, wrong) = stack.with_argument(position, |word| {
                let found = options.iter().position(|option| option.as_bytes() == word);
                (found, Text::<150>::of(&[b"invalid option '", word, b"'"]))
            })?;
            let Some(at) = found else { return Err(stack.bad_argument_bytes(position, wrong.as_bytes())) };
            *setting = at as c_int;
        }
    }
    match *setting {
        0 | 1 => stack.push_boolean(*setting == 1),
        other => stack.push_bytes(options[other as usize].as_bytes()),
    }
    Ok(())
}

const OFF_ON: &[&str] = &["off", "on"];

pub(super) fn encode_sparse_array(stack: Stack<'_>) -> Returned {
    change(stack, 3, |settings| {
        choice(stack, 1, &mut settings.sparse_convert, OFF_ON)?;
        number(stack, 2, &mut settings.sparse_ratio, 0, c_int::MAX)?;
        number(stack, 3, &mut settings.sparse_safe, 0, c_int::MAX)
    })
}

pub(super) fn encode_max_depth(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| number(stack, 1, &mut settings.encode_depth_max, 1, c_int::MAX))
}

pub(super) fn decode_max_depth(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| number(stack, 1, &mut settings.decode_depth_max, 1, c_int::MAX))
}

pub(super) fn encode_number_precision(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| number(stack, 1, &mut settings.precision, 1, 14))
}

/// The buffer is always kept; the setting is only remembered.
pub(super) fn encode_keep_buffer(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| choice(stack, 1, &mut settings.keep_buffer, OFF_ON))
}

pub(super) fn encode_invalid_numbers(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| choice(stack, 1, &mut settings.encode_invalid_numbers, &["off", "on", "null"]))
}

pub(super) fn decode_invalid_numbers(stack: Stack<'_>) -> Returned {
    change(stack, 1, |settings| choice(stack, 1, &mut settings.decode_invalid_numbers, OFF_ON))
}
