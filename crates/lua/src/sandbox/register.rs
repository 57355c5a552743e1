//! `redis.register_function`: what a library says while it is loaded. Refuses to know how functions are stored or
//! called.

use std::ffi::c_int;

use crate::context::{Context, FunctionInfo, Registration};
use crate::convert::fail;
use crate::shebang::ScriptFlags;
use crate::vm::{Cursor, Raise, Returned, Stack, Type};

pub(super) fn register_function(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    let mut loading = context.loading.borrow_mut();
    let Some(list) = loading.as_mut() else {
        return Err(fail(stack, "redis.register_function can only be called on FUNCTION LOAD command"));
    };
    let arguments = match stack.len() {
        1 => named(stack)?,
        2 => positional(stack)?,
        _ => return Err(fail(stack, "wrong number of arguments to redis.register_function")),
    };
    stack.copy(arguments.function);
    let function = stack.keep();
    if let Some(message) = register(list, stack, &arguments, function) {
        stack.drop_kept(function);
        return Err(fail(stack, message));
    }
    Ok(0)
}

/// Where the arguments are on the stack.
struct Arguments {
    name: c_int,
    description: Option<c_int>,
    function: c_int,
    flags: ScriptFlags,
}

/// Adds the function to the library; a text says why not.
fn register(
    list: &mut Vec<Registration>,
    stack: Stack<'_>,
    given: &Arguments,
    function: c_int,
) -> Option<&'static str> {
    let name = stack.with_bytes(given.name, <[u8]>::to_vec).unwrap_or_default();
    let valid = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !valid {
        return Some(
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        );
    }
    let name = String::from_utf8_lossy(&name).into_owned();
    if list.iter().any(|known| known.info.name == name) {
        return Some("Function already exists in the library");
    }
    let description = given.description.and_then(|index| stack.with_bytes(index, <[u8]>::to_vec));
    list.push(Registration { info: FunctionInfo { name, description, flags: given.flags }, function });
    None
}

fn positional(stack: Stack<'_>) -> Result<Arguments, Raise> {
    if !stack.is_text(1) {
        return Err(fail(stack, "first argument to redis.register_function must be a string"));
    }
    if stack.kind(2) != Type::Function {
        return Err(fail(stack, "second argument to redis.register_function must be a function"));
    }
    Ok(Arguments { name: 1, description: None, function: 2, flags: ScriptFlags::default() })
}

fn named(stack: Stack<'_>) -> Result<Arguments, Raise> {
    const TABLE: c_int = 1;
    if stack.kind(TABLE) != Type::Table {
        return Err(fail(
            stack,
            "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).",
        ));
    }
    // What is found is kept at fixed places above the table.
    let (name, description, function) = (2, 3, 4);
    stack.need_room(10, "redis.register_function")?;
    for _ in 0..3 {
        stack.push_nil();
    }
    let mut flags = ScriptFlags::default();
    let mut cursor = Cursor::default();
    while stack.next(TABLE, &mut cursor) {
        if stack.kind(-2) != Type::String {
            return Err(fail(stack, "named argument key given to redis.register_function is not a string"));
        }
        let is = |name: &str| stack.with_string(-2, |key| key.eq_ignore_ascii_case(name.as_bytes())) == Some(true);
        if is("function_name") {
            if !stack.is_text(-1) {
                return Err(fail(stack, "function_name argument given to redis.register_function must be a string"));
            }
            stack.copy(-1);
            stack.replace(name);
        } else if is("description") {
            if !stack.is_text(-1) {
                return Err(fail(stack, "description argument given to redis.register_function must be a string"));
            }
            stack.copy(-1);
            stack.replace(description);
        } else if is("callback") {
            if stack.kind(-1) != Type::Function {
                return Err(fail(stack, "callback argument given to redis.register_function must be a function"));
            }
            stack.copy(-1);
            stack.replace(function);
        } else if is("flags") {
            if stack.kind(-1) != Type::Table {
                return Err(fail(
                    stack,
                    "flags argument to redis.register_function must be a table representing function flags",
                ));
            }
            read_flags(stack, &mut flags)?;
        } else {
            return Err(fail(stack, "unknown argument given to redis.register_function"));
        }
        stack.pop(2);
    }
    if stack.kind(name) == Type::Nil {
        return Err(fail(stack, "redis.register_function must get a function name argument"));
    }
    if stack.kind(function) == Type::Nil {
        return Err(fail(stack, "redis.register_function must get a callback argument"));
    }
    let description = (stack.kind(description) != Type::Nil).then_some(description);
    Ok(Arguments { name, description, function, flags })
}

/// Reads the list of flag names on top.
fn read_flags(stack: Stack<'_>, flags: &mut ScriptFlags) -> Result<(), Raise> {
    for position in 1.. {
        if stack.raw_get_at(-1, position) == Type::Nil {
            stack.pop(1);
            break;
        }
        let known =
            stack.with_bytes(-1, |name| std::str::from_utf8(name).is_ok_and(|name| flags.set(name))) == Some(true);
        stack.pop(1);
        if !known {
            return Err(fail(stack, "unknown flag given"));
        }
    }
    Ok(())
}
