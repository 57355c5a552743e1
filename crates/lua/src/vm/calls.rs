//! Where control passes between Rust and Lua: Lua calls a function or a hook in Rust, Rust calls Lua and catches its
//! errors. The limit on memory is lifted and enforced here, and nowhere else. Refuses to know what is called.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::AssertUnwindSafe;

use mlua_sys as ffi;

use super::stack::{Function, Raise, Returned, Stack};

/// A hook in the form in which Lua calls it.
#[derive(Clone, Copy)]
pub(crate) struct Hook(unsafe extern "C-unwind" fn(*mut ffi::lua_State, *mut ffi::lua_Debug));

/// How often a hook runs.
#[derive(Clone, Copy)]
pub(crate) enum HookEvery {
    Instructions(c_int),
    /// At every instruction and every line.
    Line,
}

/// What Lua's own libraries export to be called once.
pub(crate) const LIBRARIES: [Function; 4] = [
    Function(ffi::luaopen_base),
    Function(ffi::luaopen_table),
    Function(ffi::luaopen_string),
    Function(ffi::luaopen_math),
];

/// `function_of(f)` names the type of `f`, a plain `fn` or a closure that captures nothing, and so the shim for it.
pub(crate) fn function_of<F>(_: F) -> Function
where
    F: Fn(Stack<'_>) -> Returned + Copy + 'static,
{
    Function(shim::<F>)
}

/// As [`function_of`]; a hook has no results.
pub(crate) fn hook_of<F>(_: F) -> Hook
where
    F: Fn(Stack<'_>) -> Result<(), Raise> + Copy + 'static,
{
    Hook(hook_shim::<F>)
}

unsafe extern "C-unwind" {
    fn holdfast_memoryerror(lua: *mut ffi::lua_State) -> c_int;
    fn holdfast_enter(lua: *mut ffi::lua_State, steps: usize) -> *const c_void;
    fn holdfast_charge(lua: *mut ffi::lua_State, steps: usize);
}

/// A call of a function in Rust takes about as long as so many instructions of Lua.
const CALL_STEPS: usize = 32;
/// And so many bytes that one reads or writes as long as one.
const BYTES_PER_STEP: usize = 4;

/// # Safety
/// Called by Lua only.
unsafe extern "C-unwind" fn shim<F>(lua: *mut ffi::lua_State) -> c_int
where
    F: Fn(Stack<'_>) -> Returned + Copy + 'static,
{
    // SAFETY: Lua calls this with a live state, and nothing of Rust is alive in this frame when `leave` raises an
    // error.
    unsafe {
        let stack = Stack::entered(lua, holdfast_enter(lua, CALL_STEPS));
        let returned = run(stack, instance::<F>());
        leave(stack, returned)
    }
}

/// # Safety
/// Called by Lua only.
unsafe extern "C-unwind" fn hook_shim<F>(lua: *mut ffi::lua_State, _: *mut ffi::lua_Debug)
where
    F: Fn(Stack<'_>) -> Result<(), Raise> + Copy + 'static,
{
    // SAFETY: as in `shim`.
    unsafe {
        let stack = Stack::of(lua);
        let returned = run(stack, |stack| instance::<F>()(stack).map(|()| 0));
        leave(stack, returned);
    }
}

/// The only value of a type without bytes.
fn instance<F: Copy + 'static>() -> F {
    const { assert!(size_of::<F>() == 0, "a Lua function cannot capture") };
    // SAFETY: F has no bytes, so any aligned address holds one; F is Copy, so there may be many.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

/// Runs the function with the limit on memory lifted. A panic becomes an error of Lua, behind which
/// [`Stack::protected_call`] continues it.
#[inline]
fn run(stack: Stack<'_>, function: impl FnOnce(Stack<'_>) -> Returned) -> Returned {
    stack.interpreter().lift_limit();
    let checked = || {
        let results = function(stack)?;
        stack.assert_has(results);
        Ok(results)
    };
    std::panic::catch_unwind(AssertUnwindSafe(checked)).unwrap_or_else(|payload| {
        stack.interpreter().keep_panic(payload);
        Err(Raise::Memory)
    })
}

/// Returns to Lua with results or by an error.
///
/// # Safety
/// Called by Lua's way into Rust, whose frame has no destructor; on `Raise::Value` the error value is on top.
#[inline]
unsafe fn leave(stack: Stack<'_>, returned: Returned) -> c_int {
    const { assert!(!std::mem::needs_drop::<(Stack<'_>, Returned)>(), "an error skips destructors") };
    let has_memory = stack.interpreter().enforce_limit();
    match returned {
        Ok(results) if has_memory => results,
        // SAFETY: the caller's promise; this frame has no destructor, as asserted above.
        Err(Raise::Value) => unsafe { ffi::lua_error(stack.lua()) },
        // SAFETY: the caller's promise; this frame has no destructor, as asserted above.
        Ok(_) | Err(Raise::Memory) => unsafe { holdfast_memoryerror(stack.lua()) },
    }
}

impl Stack<'_> {
    /// A function has read or written so many bytes: the next tick comes that much earlier.
    pub(crate) fn charge_bytes(self, bytes: usize) {
        // SAFETY: a live state; it changes a counter.
        unsafe { holdfast_charge(self.lua(), bytes / BYTES_PER_STEP) };
    }

    /// Calls the function below its arguments. Not zero: it failed, and the error is on top.
    #[inline]
    pub(crate) fn protected_call(self, arguments: c_int, results: c_int, handler: c_int) -> c_int {
        let status = self.pcall(arguments, results, handler);
        self.interpreter().resume_panic();
        status
    }

    /// As [`Stack::protected_call`], for a function whose errors are raised further.
    #[inline]
    pub(crate) fn call(self, arguments: c_int, results: c_int) -> Result<(), Raise> {
        match self.protected_call(arguments, results, 0) {
            0 => Ok(()),
            ffi::LUA_ERRMEM => Err(Raise::Memory),
            _ => Err(Raise::Value),
        }
    }

    /// Compiles; leaves the function, or the error, on top.
    pub(crate) fn compile(self, source: &[u8], name: &CStr) -> bool {
        assert!(self.has_room(1), "the caller has room for a function");
        self.interpreter().enforce_limit();
        // SAFETY: Lua reads the source within its length, and the name is a C string. Errors end in `lua_load`, which
        // is protected as `lua_pcall` is.
        let status =
            unsafe { ffi::luaL_loadbuffer(self.lua(), source.as_ptr().cast::<c_char>(), source.len(), name.as_ptr()) };
        self.interpreter().lift_limit();
        status == 0
    }

    /// Makes the messages that `lua_pcall` needs when it has caught an error, and keeps them for as long as the state
    /// lives. Made on demand, they could fail for lack of memory, outside of every protected call.
    pub(crate) fn anchor_messages(self) {
        for message in [b"not enough memory".as_slice(), b"error in error handling"] {
            self.push_bytes(message);
            self.keep();
        }
    }

    /// Sets or clears the hook of this thread; new coroutines inherit it.
    pub(crate) fn set_hook(self, hook: Option<(Hook, HookEvery)>) {
        let (hook, mask, count) = match hook {
            Some((hook, HookEvery::Instructions(count))) => (Some(hook.0), ffi::LUA_MASKCOUNT, count),
            Some((hook, HookEvery::Line)) => (Some(hook.0), ffi::LUA_MASKCOUNT | ffi::LUA_MASKLINE, 1),
            None => (None, 0, 0),
        };
        // SAFETY: setting a hook is allowed at any time.
        unsafe { ffi::lua_sethook(self.lua(), hook, mask, count) };
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::vm::interpreter::{Interpreter, close, open};
    use crate::vm::stack::ALL_RESULTS;

    thread_local! {
        static DROPPED: Cell<u32> = const { Cell::new(0) };
    }

    /// Counts how often it is dropped: `longjmp` would not.
    struct Local(#[expect(dead_code, reason = "a destructor that frees something")] String);

    impl Drop for Local {
        fn drop(&mut self) {
            DROPPED.set(DROPPED.get() + 1);
        }
    }

    fn local() -> Local {
        Local("on the heap".into())
    }

    /// Calls the function with a limit on memory; the status and the error's text.
    fn run_limited(function: Function, bytes_max: usize) -> (c_int, Vec<u8>) {
        DROPPED.set(0);
        let interpreter = Box::new(Interpreter::new());
        // SAFETY: the interpreter is boxed and outlives the state, and it is all there is.
        unsafe {
            let lua = open((&raw const *interpreter).cast());
            let stack = Stack::of(lua);
            stack.anchor_messages();
            for library in LIBRARIES {
                stack.push_function(library, 0);
                stack.call(0, 0).unwrap();
            }
            interpreter.set_bytes_max(interpreter.used_bytes() + bytes_max);
            stack.push_function(function, 0);
            let status = stack.protected_call(0, ALL_RESULTS, 0);
            let text = stack.with_string(-1, <[u8]>::to_vec).unwrap_or_default();
            close(lua);
            (status, text)
        }
    }

    #[test]
    fn running_out_of_memory_drops_the_locals() {
        fn without_asking(stack: Stack<'_>) -> Returned {
            let _alive = local();
            for _ in 0..10 {
                let _inner = local();
                stack.push_bytes(&[b'x'; 10_000]);
                stack.pop(1);
            }
            Ok(0)
        }
        fn asking(stack: Stack<'_>) -> Returned {
            let _alive = local();
            loop {
                let _inner = local();
                stack.check_memory(10_000)?;
                stack.push_table(625, 0);
                stack.keep();
            }
        }
        let memory_error = (ffi::LUA_ERRMEM, b"not enough memory".to_vec());
        assert_eq!(run_limited(function_of(without_asking), 1 << 20).0, 0);
        assert_eq!(DROPPED.get(), 11);
        assert_eq!(run_limited(function_of(without_asking), 5_000), memory_error);
        assert_eq!(DROPPED.get(), 11);
        assert_eq!(run_limited(function_of(asking), 50_000), memory_error);
        assert!(DROPPED.get() > 2, "{} rounds", DROPPED.get());
    }

    #[test]
    fn an_error_of_lua_drops_the_locals_of_the_rust_that_called_it() {
        fn calls_lua(stack: Stack<'_>) -> Returned {
            let _alive = local();
            assert!(stack.compile(b"error('wrong', 0)", c"test"));
            stack.call(0, 0)?;
            unreachable!("Lua raises an error")
        }
        fn calls_rust(stack: Stack<'_>) -> Returned {
            let _alive = local();
            stack.push_function(function_of(calls_lua), 0);
            stack.call(0, 0).map(|()| 0)
        }
        assert_eq!(run_limited(function_of(calls_rust), 1 << 20), (ffi::LUA_ERRRUN, b"wrong".to_vec()));
        assert_eq!(DROPPED.get(), 2);
    }

    #[test]
    fn a_panic_passes_through_lua_and_leaves_it_in_order() {
        fn panics(_: Stack<'_>) -> Returned {
            let _alive = local();
            panic!("on purpose")
        }
        fn catches(stack: Stack<'_>) -> Returned {
            for _ in 0..10 {
                let _alive = local();
                let depth = stack.len();
                let caught = std::panic::catch_unwind(AssertUnwindSafe(|| {
                    let source = b"local panics = ... coroutine.wrap(function() pcall(panics) end)()";
                    assert!(stack.compile(source, c"test"));
                    stack.push_function(function_of(panics), 0);
                    stack.protected_call(1, 0, 0)
                }));
                assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
                stack.set_len(depth);
            }
            Ok(0)
        }
        assert_eq!(run_limited(function_of(catches), 1 << 20), (0, Vec::new()));
        assert_eq!(DROPPED.get(), 20);
    }

    #[test]
    fn a_function_returns_no_more_than_it_has_pushed() {
        fn returns_too_many(stack: Stack<'_>) -> Returned {
            let _alive = local();
            stack.push_nil();
            Ok(2)
        }
        fn returns_fewer_than_none(_: Stack<'_>) -> Returned {
            Ok(-1)
        }
        assert!(std::panic::catch_unwind(|| run_limited(function_of(returns_fewer_than_none), 1 << 20)).is_err());
        assert!(std::panic::catch_unwind(|| run_limited(function_of(returns_too_many), 1 << 20)).is_err());
        assert_eq!(DROPPED.get(), 1);
    }

    #[test]
    fn a_failing_error_handler_has_its_message_when_there_is_no_interpreter() {
        fn handler(stack: Stack<'_>) -> Returned {
            Err(stack.error(format_args!("again")))
        }
        fn protects(stack: Stack<'_>) -> Returned {
            let _alive = local();
            stack.push_function(function_of(handler), 0);
            assert!(stack.compile(b"local t = {} while true do t[#t + 1] = #t .. '' end", c"fill"));
            let status = stack.protected_call(0, 0, 0);
            assert_eq!(status, ffi::LUA_ERRMEM);
            stack.pop(1);
            stack.collect();
            assert!(stack.compile(b"error('first', 0)", c"fail"));
            assert_ne!(stack.protected_call(0, 0, 1), 0);
            Ok(1)
        }
        assert_eq!(run_limited(function_of(protects), 100_000), (0, b"error in error handling".to_vec()));
        assert_eq!(DROPPED.get(), 1);
    }

    #[test]
    fn a_key_that_no_table_can_have_is_an_error_and_no_jump() {
        fn stores(stack: Stack<'_>) -> Returned {
            let _alive = local();
            stack.push_table(0, 0);
            stack.push_number(f64::NAN);
            stack.push_boolean(true);
            stack.raw_set(1).map(|()| 0)
        }
        assert_eq!(run_limited(function_of(stores), 1 << 20), (ffi::LUA_ERRRUN, b"table index is NaN".to_vec()));
        assert_eq!(DROPPED.get(), 1);
    }
}
