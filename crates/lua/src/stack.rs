//! The Lua stack as seen by one C function: the raw API with a safe face. Knows Lua, nothing of Redis.
//!
//! # How errors travel
//! Lua reports trouble by `longjmp`, which runs no destructor. So:
//! - our functions return `Err(Raise)` with the error value on top of the stack, and only [`call`], the shim Lua
//!   calls, raises it, when nothing of Rust is left on the way;
//! - Lua itself may still jump from almost any method here, when memory runs out. Hence the one rule of this crate:
//!   **no local with a destructor is alive while a method of `Stack` runs.** Buffers live in the [`Context`](crate::context::Context) and are
//!   borrowed, texts are built in [`Text`].
//!
//! Methods are safe to call because a `Stack` exists only inside a protected call (or where a comment says why no error
//! is possible). Slices borrowed from strings stay valid while the string is on the stack or in a table that is.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt::Write;
use std::marker::PhantomData;

use mlua_sys as ffi;
pub(crate) use mlua_sys::lua_State;

use crate::text::Text;

#[derive(Clone, Copy)]
pub(crate) struct Stack<'s> {
    lua: *mut lua_State,
    alive: PhantomData<&'s lua_State>,
}

/// The error value is on top of the stack, to be raised by the shim.
pub(crate) struct Raise(());

/// How many results are on top of the stack.
pub(crate) type Returned = Result<c_int, Raise>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    None,
    Nil,
    Boolean,
    LightUserdata,
    Number,
    String,
    Table,
    Function,
    Userdata,
    Thread,
}

pub(crate) const REGISTRY: c_int = ffi::LUA_REGISTRYINDEX;
pub(crate) const GLOBALS: c_int = ffi::LUA_GLOBALSINDEX;
pub(crate) const ALL_RESULTS: c_int = ffi::LUA_MULTRET;

unsafe extern "C-unwind" {
    fn holdfast_setreadonly(lua: *mut lua_State, index: c_int, on: c_int);
    fn holdfast_isreadonly(lua: *mut lua_State, index: c_int) -> c_int;
    fn holdfast_rawsetforce(lua: *mut lua_State, index: c_int);
    fn holdfast_isplainarray(lua: *mut lua_State, index: c_int) -> c_int;
}

/// The C function that Lua calls for the Rust function `F`, a type without a value (a plain `fn` or a closure that captures nothing).
///
/// # Safety
/// Called by Lua only.
pub(crate) unsafe extern "C-unwind" fn call<F>(lua: *mut lua_State) -> c_int
where
    F: Fn(Stack<'_>) -> Returned + Copy + 'static,
{
    const { assert!(size_of::<F>() == 0, "a Lua function cannot capture") };
    // SAFETY: F has no bytes, so any aligned address holds one.
    let function: F = unsafe { std::ptr::NonNull::<F>::dangling().read() };
    // SAFETY: Lua calls us with a live state, inside a protected call.
    let stack = unsafe { Stack::of(lua) };
    match function(stack) {
        Ok(results) => results,
        // SAFETY: the error value is on top; this frame has no destructors.
        Err(Raise(())) => unsafe { ffi::lua_error(lua) },
    }
}

/// The address of the shim for a function item: `function_of(f)` names the type of `f`.
pub(crate) fn function_of<F>(_: F) -> ffi::lua_CFunction
where
    F: Fn(Stack<'_>) -> Returned + Copy + 'static,
{
    call::<F>
}

impl<'s> Stack<'s> {
    /// # Safety
    /// `lua` is a live state, and errors raised through it are caught by a protected call (or cannot happen).
    pub(crate) unsafe fn of(lua: *mut lua_State) -> Self {
        Stack { lua, alive: PhantomData }
    }

    pub(crate) fn raw(self) -> *mut lua_State {
        self.lua
    }

    // --- shape -----------------------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn len(self) -> c_int {
        // SAFETY: a live state.
        unsafe { ffi::lua_gettop(self.lua) }
    }

    #[inline]
    pub(crate) fn set_len(self, len: c_int) {
        // SAFETY: a live state; callers only shrink, or grow within the room they asked for.
        unsafe { ffi::lua_settop(self.lua, len) }
    }

    #[inline]
    pub(crate) fn pop(self, count: c_int) {
        // SAFETY: callers pop what they pushed.
        unsafe { ffi::lua_settop(self.lua, -count - 1) }
    }

    #[inline]
    pub(crate) fn copy(self, index: c_int) {
        // SAFETY: a valid index; room is the caller's.
        unsafe { ffi::lua_pushvalue(self.lua, index) }
    }

    pub(crate) fn insert(self, index: c_int) {
        // SAFETY: a valid index.
        unsafe { ffi::lua_insert(self.lua, index) }
    }

    pub(crate) fn remove(self, index: c_int) {
        // SAFETY: a valid index.
        unsafe { ffi::lua_remove(self.lua, index) }
    }

    pub(crate) fn replace(self, index: c_int) {
        // SAFETY: a valid index.
        unsafe { ffi::lua_replace(self.lua, index) }
    }

    /// Makes room for `count` more values, or says that the stack is at its limit.
    #[inline]
    pub(crate) fn has_room(self, count: c_int) -> bool {
        // SAFETY: a live state.
        unsafe { ffi::lua_checkstack(self.lua, count) != 0 }
    }

    pub(crate) fn need_room(self, count: c_int, message: &str) -> Result<(), Raise> {
        if self.has_room(count) {
            return Ok(());
        }
        Err(self.error(format_args!("stack overflow ({message})")))
    }

    // --- reading ---------------------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn kind(self, index: c_int) -> Type {
        // SAFETY: any index may be asked.
        match unsafe { ffi::lua_type(self.lua, index) } {
            ffi::LUA_TNIL => Type::Nil,
            ffi::LUA_TBOOLEAN => Type::Boolean,
            ffi::LUA_TLIGHTUSERDATA => Type::LightUserdata,
            ffi::LUA_TNUMBER => Type::Number,
            ffi::LUA_TSTRING => Type::String,
            ffi::LUA_TTABLE => Type::Table,
            ffi::LUA_TFUNCTION => Type::Function,
            ffi::LUA_TUSERDATA => Type::Userdata,
            ffi::LUA_TTHREAD => Type::Thread,
            _ => Type::None,
        }
    }

    /// Lua's name of the value's type.
    pub(crate) fn kind_name(self, index: c_int) -> &'static str {
        match self.kind(index) {
            Type::None => "no value",
            Type::Nil => "nil",
            Type::Boolean => "boolean",
            Type::LightUserdata | Type::Userdata => "userdata",
            Type::Number => "number",
            Type::String => "string",
            Type::Table => "table",
            Type::Function => "function",
            Type::Thread => "thread",
        }
    }

    #[inline]
    pub(crate) fn boolean(self, index: c_int) -> bool {
        // SAFETY: any index may be asked.
        unsafe { ffi::lua_toboolean(self.lua, index) != 0 }
    }

    /// The number, or zero if the value is none and no text of one.
    #[inline]
    pub(crate) fn number(self, index: c_int) -> f64 {
        // SAFETY: any index may be asked.
        unsafe { ffi::lua_tonumber(self.lua, index) }
    }

    /// A number, or a string that reads as one.
    pub(crate) fn is_number(self, index: c_int) -> bool {
        // SAFETY: any index may be asked.
        unsafe { ffi::lua_isnumber(self.lua, index) != 0 }
    }

    /// The bytes of a string; a number becomes its text, on the stack too. Anything else is `None`.
    #[inline]
    pub(crate) fn bytes(self, index: c_int) -> Option<&'s [u8]> {
        let mut len = 0;
        // SAFETY: any index may be asked; the string is anchored on the stack (see the module's rule on slices).
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut len);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
        }
    }

    /// The bytes of a string that is known to be one: nothing is converted, so nothing can fail.
    #[inline]
    pub(crate) fn string(self, index: c_int) -> Option<&'s [u8]> {
        (self.kind(index) == Type::String).then(|| self.bytes(index)).flatten()
    }

    /// What C's `strtod` reads in the string at `index` from byte `at` on: the number and how many bytes it took.
    pub(crate) fn c_number(self, index: c_int, at: usize) -> (f64, usize) {
        let mut len = 0;
        // SAFETY: a Lua string ends with a NUL, so the reader stops within it; `at` is checked against its length.
        unsafe {
            let start = ffi::lua_tolstring(self.lua, index, &mut len);
            assert!(!start.is_null() && at <= len, "callers read within a string");
            let from = start.add(at);
            let mut end = std::ptr::null_mut();
            let number = libc::strtod(from, &mut end);
            (number, end.offset_from(from) as usize)
        }
    }

    pub(crate) fn userdata(self, index: c_int) -> *mut c_void {
        // SAFETY: any index may be asked.
        unsafe { ffi::lua_touserdata(self.lua, index) }
    }

    /// The length without metamethods (`lua_objlen`).
    pub(crate) fn raw_len(self, index: c_int) -> usize {
        // SAFETY: a valid index.
        unsafe { ffi::lua_objlen(self.lua, index) }
    }

    // --- pushing ---------------------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn push_nil(self) {
        // SAFETY: room is the caller's.
        unsafe { ffi::lua_pushnil(self.lua) }
    }

    #[inline]
    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: room is the caller's.
        unsafe { ffi::lua_pushboolean(self.lua, value as c_int) }
    }

    #[inline]
    pub(crate) fn push_number(self, value: f64) {
        // SAFETY: room is the caller's.
        unsafe { ffi::lua_pushnumber(self.lua, value) }
    }

    #[inline]
    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: Lua copies the bytes; room is the caller's.
        unsafe { ffi::lua_pushlstring_(self.lua, bytes.as_ptr().cast(), bytes.len()) }
    }

    pub(crate) fn push_null(self) {
        // SAFETY: room is the caller's.
        unsafe { ffi::lua_pushlightuserdata(self.lua, std::ptr::null_mut()) }
    }

    #[inline]
    pub(crate) fn push_table(self, array: usize, fields: usize) {
        let (array, fields) = (array.min(1 << 26) as c_int, fields.min(1 << 26) as c_int);
        // SAFETY: room is the caller's.
        unsafe { ffi::lua_createtable(self.lua, array, fields) }
    }

    /// A new block of memory owned by Lua, zeroed.
    pub(crate) fn push_userdata(self, bytes: usize) -> *mut c_void {
        // SAFETY: room is the caller's; the block is `bytes` long.
        unsafe {
            let block = ffi::lua_newuserdata(self.lua, bytes);
            std::ptr::write_bytes(block.cast::<u8>(), 0, bytes);
            block
        }
    }

    /// A function with the top `upvalues` values bound to it.
    pub(crate) fn push_function(self, function: ffi::lua_CFunction, upvalues: c_int) {
        // SAFETY: the caller pushed the upvalues; room is the caller's.
        unsafe { ffi::lua_pushcclosure(self.lua, function, upvalues) }
    }

    // --- tables ----------------------------------------------------------------------------------------------

    /// Replaces the key on top by its value, without metamethods.
    #[inline]
    pub(crate) fn raw_get(self, table: c_int) {
        // SAFETY: callers name a table.
        unsafe { ffi::lua_rawget_(self.lua, table) }
    }

    #[inline]
    pub(crate) fn raw_get_at(self, table: c_int, position: c_int) {
        // SAFETY: callers name a table; room is the caller's.
        unsafe { ffi::lua_rawgeti_(self.lua, table, position) }
    }

    /// Pops a value and a key and stores them, without metamethods.
    #[inline]
    pub(crate) fn raw_set(self, table: c_int) {
        // SAFETY: callers name a table.
        unsafe { ffi::lua_rawset(self.lua, table) }
    }

    #[inline]
    pub(crate) fn raw_set_at(self, table: c_int, position: c_int) {
        // SAFETY: callers name a table.
        unsafe { ffi::lua_rawseti_(self.lua, table, position) }
    }

    /// As [`Stack::raw_set`], readonly or not.
    #[inline]
    pub(crate) fn raw_set_force(self, table: c_int) {
        // SAFETY: callers name a table.
        unsafe { holdfast_rawsetforce(self.lua, table) }
    }

    /// Pushes a field, metamethods included.
    pub(crate) fn get_field(self, table: c_int, name: &CStr) {
        // SAFETY: a valid index and a C string.
        unsafe { ffi::lua_getfield_(self.lua, table, name.as_ptr()) }
    }

    /// Pops a value into a field, metamethods included.
    pub(crate) fn set_field(self, table: c_int, name: &CStr) {
        // SAFETY: a valid index and a C string.
        unsafe { ffi::lua_setfield(self.lua, table, name.as_ptr()) }
    }

    /// Pops a key; pushes the next key and value, or nothing and says so. A key that is not in the table cannot happen:
    /// callers pass what the last call gave and do not change the table between.
    #[inline]
    pub(crate) fn next(self, table: c_int) -> bool {
        // SAFETY: callers name a table.
        unsafe { ffi::lua_next(self.lua, table) != 0 }
    }

    /// Pushes the metatable if there is one.
    pub(crate) fn metatable(self, index: c_int) -> bool {
        // SAFETY: a valid index.
        unsafe { ffi::lua_getmetatable(self.lua, index) != 0 }
    }

    /// Pops a table and makes it the metatable of the value.
    pub(crate) fn set_metatable(self, index: c_int) {
        // SAFETY: a valid index, and the caller pushed a table.
        unsafe { ffi::lua_setmetatable(self.lua, index) };
    }

    pub(crate) fn set_readonly(self, table: c_int, on: bool) {
        // SAFETY: callers name a table.
        unsafe { holdfast_setreadonly(self.lua, table, on as c_int) }
    }

    pub(crate) fn is_readonly(self, table: c_int) -> bool {
        // SAFETY: callers name a table.
        unsafe { holdfast_isreadonly(self.lua, table) != 0 }
    }

    /// No hash part: the table has no named fields at all.
    #[inline]
    pub(crate) fn is_plain_array(self, table: c_int) -> bool {
        // SAFETY: callers name a table.
        unsafe { holdfast_isplainarray(self.lua, table) != 0 }
    }

    // --- calls and references --------------------------------------------------------------------------------

    /// Calls the function below its arguments; its errors are ours.
    #[inline]
    pub(crate) fn call(self, arguments: c_int, results: c_int) {
        // SAFETY: the caller pushed a function and its arguments.
        unsafe { ffi::lua_call(self.lua, arguments, results) }
    }

    /// Calls it and catches its error, left on top.
    pub(crate) fn protected_call(self, arguments: c_int, results: c_int, handler: c_int) -> c_int {
        // SAFETY: the caller pushed a function and its arguments; the handler is zero or a valid index.
        unsafe { ffi::lua_pcall(self.lua, arguments, results, handler) }
    }

    /// Compiles; leaves the function, or the error, on top.
    pub(crate) fn compile(self, source: &[u8], name: &CStr) -> bool {
        // SAFETY: Lua reads the source within its length; the name is a C string.
        unsafe { ffi::luaL_loadbuffer(self.lua, source.as_ptr().cast::<c_char>(), source.len(), name.as_ptr()) == 0 }
    }

    /// Pops a value into the registry.
    pub(crate) fn keep(self) -> c_int {
        // SAFETY: the caller pushed a value.
        unsafe { ffi::luaL_ref(self.lua, REGISTRY) }
    }

    pub(crate) fn drop_kept(self, reference: c_int) {
        // SAFETY: the reference came from `keep`.
        unsafe { ffi::luaL_unref(self.lua, REGISTRY, reference) }
    }

    // --- errors ----------------------------------------------------------------------------------------------

    /// Raises the value on top.
    pub(crate) fn raise(self) -> Raise {
        Raise(())
    }

    /// A text with the position of the caller in front, as `luaL_error` makes it.
    pub(crate) fn error(self, message: std::fmt::Arguments<'_>) -> Raise {
        let mut text = Text::<512>::new();
        let _ = text.write_fmt(message);
        self.error_bytes(text.as_bytes())
    }

    #[cold]
    pub(crate) fn error_bytes(self, message: &[u8]) -> Raise {
        self.has_room(3);
        // SAFETY: three values fit (Lua keeps a reserve for errors should the stack be at its limit).
        unsafe { ffi::luaL_where(self.lua, 1) };
        self.push_bytes(message);
        // SAFETY: the two texts are on top.
        unsafe { ffi::lua_concat(self.lua, 2) };
        Raise(())
    }

    /// `bad argument #1 to 'encode' (…)`.
    #[cold]
    pub(crate) fn bad_argument(self, position: c_int, message: std::fmt::Arguments<'_>) -> Raise {
        let mut text = Text::<200>::new();
        let _ = text.write_fmt(message);
        self.bad_argument_bytes(position, text.as_bytes())
    }

    #[cold]
    pub(crate) fn bad_argument_bytes(self, mut position: c_int, message: &[u8]) -> Raise {
        // SAFETY: all zeroes is a valid `lua_Debug`.
        let mut frame: ffi::lua_Debug = unsafe { std::mem::zeroed() };
        // SAFETY: level 0 is the running function, and the names live as long as it runs.
        let name: Option<(&CStr, bool)> = unsafe {
            if ffi::lua_getstack(self.lua, 0, &mut frame) == 0 {
                None
            } else {
                ffi::lua_getinfo(self.lua, c"n".as_ptr(), &mut frame);
                let name = if frame.name.is_null() { c"?" } else { CStr::from_ptr(frame.name) };
                let method = !frame.namewhat.is_null() && CStr::from_ptr(frame.namewhat) == c"method";
                Some((name, method))
            }
        };
        let mut text = Text::<512>::new();
        match name {
            None => {
                let _ = write!(text, "bad argument #{position} (");
            }
            Some((name, true)) if position == 1 => {
                for part in [b"calling '".as_slice(), name.to_bytes(), b"' on bad self ("] {
                    text.push(part);
                }
            }
            Some((name, method)) => {
                position -= c_int::from(method);
                let _ = write!(text, "bad argument #{position} to '");
                text.push(name.to_bytes());
                text.push(b"' (");
            }
        }
        text.push(message);
        text.push(b")");
        self.error_bytes(text.as_bytes())
    }

    #[cold]
    fn bad_kind(self, position: c_int, expected: &str) -> Raise {
        let found = self.kind_name(position);
        self.bad_argument(position, format_args!("{expected} expected, got {found}"))
    }

    // --- arguments -------------------------------------------------------------------------------------------

    pub(crate) fn argument_bytes(self, position: c_int) -> Result<&'s [u8], Raise> {
        self.bytes(position).ok_or_else(|| self.bad_kind(position, "string"))
    }

    pub(crate) fn argument_number(self, position: c_int) -> Result<f64, Raise> {
        let number = self.number(position);
        if number == 0.0 && !self.is_number(position) {
            return Err(self.bad_kind(position, "number"));
        }
        Ok(number)
    }

    pub(crate) fn argument_integer(self, position: c_int) -> Result<i64, Raise> {
        Ok(c_integer(self.argument_number(position)?))
    }

    pub(crate) fn argument_integer_or(self, position: c_int, default: i64) -> Result<i64, Raise> {
        match self.kind(position) {
            Type::None | Type::Nil => Ok(default),
            _ => self.argument_integer(position),
        }
    }
}

/// A double as C's cast to a 64-bit integer makes it on x86: what does not fit is the smallest integer.
#[inline]
pub(crate) fn c_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

/// The same to 32 bits: Lua's `luaL_checkint` casts twice.
#[inline]
pub(crate) fn c_int32(number: f64) -> i32 {
    c_integer(number) as i32
}
