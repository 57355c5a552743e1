//! What becomes of an error that a script does not catch: a table with its text and where it happened. Refuses to
//! know how it reaches a client.

use std::ffi::c_int;

use crate::vm::{REGISTRY, Raise, Returned, Stack, Type, function_of};

/// Where `tostring` is kept for [`push_text`].
const TOSTRING: &str = "holdfast.tostring";

/// Where the function is kept that assigns to an error table with a metatable of the script's.
const SET_PLACE: &str = "holdfast.set_place";

/// Keeps what the handler needs: `tostring` of the globals on top, before a script can see them.
pub(super) fn prepare(stack: Stack<'_>) {
    stack.get_field(-1, "tostring");
    stack.set_field(REGISTRY, TOSTRING);
    let compiled = stack.compile(b"local err, source, line = ... err.source = source err.line = line", c"=holdfast");
    assert!(compiled, "a valid chunk");
    stack.set_field(REGISTRY, SET_PLACE);
}

/// Makes an error a table and notes where it happened, as Redis's handler does.
pub(crate) fn error_handler(stack: Stack<'_>) -> Returned {
    stack.set_len(1);
    let place = stack.place_of_error();
    if stack.kind(1) != Type::Table {
        stack.push_table(0, 3);
        stack.push_bytes(b"ERR ");
        push_text(stack, 1)?;
        stack.join_two();
        stack.set_field(-2, "err");
        stack.replace(1);
    }
    let Some((source, line)) = place else { return Ok(1) };
    if stack.is_readonly(1) {
        stack.push_bytes(b"Attempt to modify a readonly table");
        return Err(stack.raise());
    }
    if stack.metatable(1) {
        // An assignment may run code of the script. Its error replaces this one, and has its own place.
        stack.set_len(1);
        stack.push_function(function_of(error_handler), 0);
        stack.get_field(REGISTRY, SET_PLACE);
        stack.copy(1);
        stack.push_bytes(source);
        stack.push_number(f64::from(line));
        if stack.protected_call(3, 0, 2) != 0 {
            stack.replace(1);
        }
        stack.set_len(1);
        return Ok(1);
    }
    stack.push_bytes(source);
    stack.set_field(1, "source");
    stack.push_number(f64::from(line));
    stack.set_field(1, "line");
    Ok(1)
}

/// Pushes what `tostring` gives for a value that is not a table.
fn push_text(stack: Stack<'_>, index: c_int) -> Result<(), Raise> {
    match stack.kind(index) {
        Type::String | Type::Number => stack.copy(index),
        Type::Boolean => stack.push_bytes(if stack.boolean(index) { b"true" } else { b"false" }),
        Type::Nil | Type::None => stack.push_bytes(b"nil"),
        _ => {
            stack.get_field(REGISTRY, TOSTRING);
            stack.copy(index);
            stack.call(1, 1)?;
        }
    }
    Ok(())
}
