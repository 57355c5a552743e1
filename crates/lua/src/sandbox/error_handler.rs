//! What becomes of an error that a script does not catch: a table with its text and where it happened. Refuses to
//! know how it reaches a client.

use std::ffi::c_int;

use crate::vm::{REGISTRY, Raise, Returned, Stack, Type};

/// Where `tostring` is kept for [`push_text`].
const TOSTRING: &str = "holdfast.tostring";

/// Keeps `tostring` of the globals on top, before a script can see them.
pub(super) fn keep_tostring(stack: Stack<'_>) {
    stack.get_field(-1, "tostring");
    stack.set_field(REGISTRY, TOSTRING);
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
    if let Some((source, line)) = place {
        if stack.is_readonly(1) {
            stack.push_bytes(b"Attempt to modify a readonly table");
            return Err(stack.raise());
        }
        if !has_own_assignment(stack) {
            stack.push_bytes(source);
            stack.set_field(1, "source");
            stack.push_number(f64::from(line));
            stack.set_field(1, "line");
        }
    }
    Ok(1)
}

/// Does the error table say itself what an assignment does? Redis's handler would run that code of the script; here the
/// table stays as it is.
fn has_own_assignment(stack: Stack<'_>) -> bool {
    if !stack.metatable(1) {
        return false;
    }
    stack.get_field(-1, "__newindex");
    let found = stack.kind(-1) != Type::Nil;
    stack.pop(2);
    found
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
