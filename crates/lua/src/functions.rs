//! Libraries of functions: loading one, and `redis.register_function`. Refuses to know how they are stored or called by name.

use std::ffi::c_int;
use std::time::{Duration, Instant};

use crate::api::{self, Version};
use crate::context::Context;
use crate::reply;
use crate::sandbox;
use crate::shebang::ScriptFlags;
use crate::stack::{Raise, Returned, Stack, Type, function_of};

/// A function that a library registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    pub description: Option<Vec<u8>>,
    pub flags: ScriptFlags,
}

/// A library that is being loaded gets this long; it should only register functions.
const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

pub(crate) struct Registration {
    pub(crate) info: FunctionInfo,
    /// The function, kept in the registry.
    pub(crate) function: c_int,
}

/// The globals of a library while it loads: `redis` has little more than `register_function`.
pub(crate) fn push_loading_globals(stack: Stack<'_>, version: &Version) -> c_int {
    stack.push_table(0, 4);
    stack.push_table(0, 12);
    sandbox::set(stack, c"register_function", function_of(register_function));
    api::set_common_fields(stack, version);
    sandbox::set_missing_is_error(stack);
    stack.set_field(-2, c"redis");
    sandbox::protect(stack);
    stack.keep()
}

thread_local! {
    /// When the library that is being loaded on this thread must be done. Loading one does not lead to
    /// loading another, so there is one at a time.
    static LOAD_UNTIL: std::cell::Cell<Option<Instant>> = const { std::cell::Cell::new(None) };
}

/// Runs `load` with a deadline.
pub(crate) fn within_load_time<R>(load: impl FnOnce() -> R) -> R {
    LOAD_UNTIL.set(Some(Instant::now() + LOAD_TIME_MAX));
    let result = load();
    LOAD_UNTIL.set(None);
    result
}

/// Asked by the tick: has the library that is being loaded run out of time?
pub(crate) fn is_overdue(context: &Context) -> bool {
    let overdue = LOAD_UNTIL.get().is_some_and(|until| Instant::now() > until);
    if overdue {
        context.killed.set(true);
        // SAFETY: the cell is borrowed for one store.
        unsafe { *context.kill_message.get() = b"FUNCTION LOAD timeout".to_vec() };
    }
    overdue
}

fn fail(stack: Stack<'_>, message: &str) -> Raise {
    reply::push_error(stack, message.as_bytes());
    stack.raise()
}

fn register_function(stack: Stack<'_>) -> Returned {
    let context = Context::of(stack);
    // SAFETY: the cell is borrowed for one look.
    if unsafe { (*context.loading.get()).is_none() } {
        return Err(fail(stack, "redis.register_function can only be called on FUNCTION LOAD command"));
    }
    // Indices of the arguments, all still on the stack, so that nothing of Rust owns anything when Lua is asked.
    let arguments = match stack.len() {
        1 => named(stack)?,
        2 => positional(stack)?,
        _ => return Err(fail(stack, "wrong number of arguments to redis.register_function")),
    };
    stack.copy(arguments.function);
    let function = stack.keep();
    let refused = {
        // SAFETY: no Lua code runs in this block, so the list has one borrower.
        let list = unsafe { (*context.loading.get()).as_mut() }.expect("looked at above");
        register(list, stack, &arguments, function)
    };
    if let Some(message) = refused {
        stack.drop_kept(function);
        return Err(fail(stack, message));
    }
    Ok(0)
}

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
    let name = stack.bytes(given.name).unwrap_or_default();
    let valid = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !valid {
        return Some(
            "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long",
        );
    }
    let name = String::from_utf8_lossy(name).into_owned();
    if list.iter().any(|known| known.info.name == name) {
        return Some("Function already exists in the library");
    }
    let description = given.description.and_then(|index| stack.bytes(index)).map(<[u8]>::to_vec);
    list.push(Registration { info: FunctionInfo { name, description, flags: given.flags }, function });
    None
}

fn positional(stack: Stack<'_>) -> Result<Arguments, Raise> {
    // Converts a number to its text in place, so that reading it later cannot fail.
    if stack.bytes(1).is_none() {
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
    stack.push_nil();
    while stack.next(TABLE) {
        if stack.kind(-2) != Type::String {
            return Err(fail(stack, "named argument key given to redis.register_function is not a string"));
        }
        let key = stack.bytes(-2).unwrap_or_default();
        let is = |name: &str| key.eq_ignore_ascii_case(name.as_bytes());
        if is("function_name") {
            if stack.bytes(-1).is_none() {
                return Err(fail(stack, "function_name argument given to redis.register_function must be a string"));
            }
            stack.copy(-1);
            stack.replace(name);
        } else if is("description") {
            if stack.bytes(-1).is_none() {
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
        stack.pop(1);
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
        stack.raw_get_at(-1, position);
        if stack.kind(-1) == Type::Nil {
            stack.pop(1);
            break;
        }
        let known = stack.bytes(-1).and_then(|name| std::str::from_utf8(name).ok()).is_some_and(|name| flags.set(name));
        stack.pop(1);
        if !known {
            return Err(fail(stack, "unknown flag given"));
        }
    }
    Ok(())
}
