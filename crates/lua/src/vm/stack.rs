//! The Lua stack as seen by one function: reading, pushing, tables. No method raises a Lua error (see the room's
//! `mod.rs`). Knows nothing of Redis.
//!
//! What callers promise, and no type says: an index names a value of the kind that the method is for; a function has 20
//! free slots and asks ([`Stack::has_room`]) for more; slices borrowed from strings are used while the string is on the
//! stack or in a table that is. In debug builds Lua checks the first two at every call and aborts (`LUA_USE_APICHECK`).

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use mlua_sys as ffi;

use super::interpreter::Interpreter;

#[derive(Clone, Copy)]
pub(crate) struct Stack<'s> {
    lua: *mut ffi::lua_State,
    /// What was given to `interpreter::open`.
    user: *const c_void,
    alive: PhantomData<&'s ffi::lua_State>,
}

/// Why a function ends with an error. Raised when it has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Raise {
    /// The error value is on top of the stack.
    Value,
    /// Not enough memory.
    Memory,
}

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

/// A function in the form in which Lua calls it; made by `calls::function_of`.
#[derive(Clone, Copy)]
pub(crate) struct Function(pub(super) ffi::lua_CFunction);

/// A place in a table, for [`Stack::next`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor(c_int);

pub(crate) const REGISTRY: c_int = ffi::LUA_REGISTRYINDEX;
pub(crate) const GLOBALS: c_int = ffi::LUA_GLOBALSINDEX;
pub(crate) const ALL_RESULTS: c_int = ffi::LUA_MULTRET;

/// The index of a value that is bound to the running function.
pub(crate) const fn upvalue(position: c_int) -> c_int {
    ffi::lua_upvalueindex(position)
}

/// What `patches/holdfast.patch` adds to Lua. None of them raises an error.
mod added {
    use super::ffi::lua_State;
    use std::ffi::c_int;

    unsafe extern "C-unwind" {
        pub(super) fn holdfast_setreadonly(lua: *mut lua_State, index: c_int, on: c_int);
        pub(super) fn holdfast_isreadonly(lua: *mut lua_State, index: c_int) -> c_int;
        pub(super) fn holdfast_rawset(lua: *mut lua_State, index: c_int) -> c_int;
        pub(super) fn holdfast_rawseti(lua: *mut lua_State, index: c_int, position: c_int) -> c_int;
        pub(super) fn holdfast_next(lua: *mut lua_State, index: c_int, at: *mut c_int) -> c_int;
        pub(super) fn holdfast_isplainarray(lua: *mut lua_State, index: c_int) -> c_int;
    }
}

impl<'s> Stack<'s> {
    /// # Safety
    /// `lua` is a live state that `interpreter::open` has made, or one of its coroutines, and the limit on memory is
    /// lifted before a method is called.
    #[inline]
    pub(crate) unsafe fn of(lua: *mut ffi::lua_State) -> Self {
        let mut user = std::ptr::null_mut();
        // SAFETY: a live state.
        unsafe { ffi::lua_getallocf(lua, &mut user) };
        Stack { lua, user, alive: PhantomData }
    }

    pub(super) fn lua(self) -> *mut ffi::lua_State {
        self.lua
    }

    /// What was given to `interpreter::open`.
    #[inline]
    pub(crate) fn user(self) -> *const c_void {
        self.user
    }

    #[inline]
    pub(super) fn interpreter(self) -> &'s Interpreter {
        // SAFETY: by the promise made to `interpreter::open`, the user data begins with an `Interpreter` that outlives the state.
        unsafe { &*self.user.cast() }
    }

    /// An error if Lua may not have so many bytes more. To be asked before something large, and in every loop that makes
    /// as many values as its input asks for.
    #[inline]
    pub(crate) fn check_memory(self, bytes: usize) -> Result<(), Raise> {
        if self.interpreter().has_room(bytes) { Ok(()) } else { Err(Raise::Memory) }
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

    /// Room for an error that ends the function. At the limit of the stack the values on top make way for it: they are the
    /// function's, and it has no more use for them.
    pub(crate) fn make_room(self, count: c_int) {
        if !self.has_room(count) {
            self.pop(count);
        }
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
        // SAFETY: room is the caller's; 2^26 is the largest size for which Lua raises no error.
        unsafe { ffi::lua_createtable(self.lua, array, fields) }
    }

    /// A new block of memory that Lua owns, with this value in it.
    pub(crate) fn push_userdata<T: Copy + 'static>(self, value: T) {
        const { assert!(size_of::<T>() < 4096 && align_of::<T>() <= 8, "Lua's blocks are aligned for a double") };
        // SAFETY: room is the caller's; the block is new and large enough.
        unsafe { ffi::lua_newuserdata(self.lua, size_of::<T>()).cast::<T>().write(value) }
    }

    /// Replaces the two strings on top by one.
    pub(crate) fn join_two(self) {
        debug_assert!(self.is_text(-1) && self.is_text(-2), "Lua looks for a metamethod of anything else");
        // SAFETY: two strings or numbers are on top.
        unsafe { ffi::lua_concat(self.lua, 2) }
    }

    fn is_text(self, index: c_int) -> bool {
        matches!(self.kind(index), Type::String | Type::Number)
    }

    /// A function with the top `upvalues` values bound to it.
    pub(crate) fn push_function(self, function: Function, upvalues: c_int) {
        // SAFETY: the caller pushed the upvalues; room is the caller's.
        unsafe { ffi::lua_pushcclosure(self.lua, function.0, upvalues) }
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

    /// Pops a value and a key and stores them, without metamethods, readonly or not. The error of a key that is nil or
    /// not a number, and of a table that is too large, is Lua's.
    #[inline]
    pub(crate) fn raw_set(self, table: c_int) -> Result<(), Raise> {
        // SAFETY: callers name a table and have pushed two values.
        match unsafe { added::holdfast_rawset(self.lua, table) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// As [`Stack::raw_set`], with the position for the key.
    #[inline]
    pub(crate) fn raw_set_at(self, table: c_int, position: c_int) -> Result<(), Raise> {
        // SAFETY: callers name a table and have pushed a value.
        match unsafe { added::holdfast_rawseti(self.lua, table, position) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// The texts are those of `luaH_set` and `setnodevector`.
    #[cold]
    fn not_stored(self, status: c_int) -> Raise {
        self.make_room(1);
        self.push_bytes(match status {
            1 => b"table index is nil",
            2 => b"table index is NaN",
            _ => b"table overflow",
        });
        Raise::Value
    }

    /// Pushes a field, without metamethods.
    pub(crate) fn get_field(self, table: c_int, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        self.raw_get(table);
    }

    /// Pops a value into a field, without metamethods, readonly or not.
    pub(crate) fn set_field(self, table: c_int, name: &str) {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        self.insert(-2);
        self.raw_set(table).unwrap_or_else(|_| panic!("a table of ours has room for {name}"));
    }

    pub(crate) fn set_function(self, name: &str, function: Function) {
        self.push_function(function, 0);
        self.set_field(-2, name);
    }

    /// The index that stays the same when more is pushed.
    fn absolute(self, index: c_int) -> c_int {
        if (REGISTRY + 1..0).contains(&index) { self.len() + 1 + index } else { index }
    }

    /// Pushes the next key and value, or nothing and says so. What the table holds may change meanwhile; then it is
    /// open which values are met.
    #[inline]
    pub(crate) fn next(self, table: c_int, cursor: &mut Cursor) -> bool {
        // SAFETY: callers name a table; room is the caller's.
        unsafe { added::holdfast_next(self.lua, table, &mut cursor.0) != 0 }
    }

    /// Pushes the metatable if there is one.
    pub(crate) fn metatable(self, index: c_int) -> bool {
        // SAFETY: a valid index.
        unsafe { ffi::lua_getmetatable(self.lua, index) != 0 }
    }

    /// Pushes a value that is bound to a function, if there is one.
    pub(crate) fn push_bound(self, function: c_int, position: c_int) -> bool {
        // SAFETY: callers name a function; room is the caller's.
        unsafe { !ffi::lua_getupvalue(self.lua, function, position).is_null() }
    }

    /// Pops a table and makes it the metatable of the value.
    pub(crate) fn set_metatable(self, index: c_int) {
        assert!(!self.is_readonly(index), "Lua raises an error for a readonly table");
        // SAFETY: a valid index, and the caller pushed a table.
        unsafe { ffi::lua_setmetatable(self.lua, index) };
    }

    pub(crate) fn set_readonly(self, table: c_int, on: bool) {
        // SAFETY: callers name a table.
        unsafe { added::holdfast_setreadonly(self.lua, table, on as c_int) }
    }

    pub(crate) fn is_readonly(self, table: c_int) -> bool {
        // SAFETY: callers name a table.
        unsafe { added::holdfast_isreadonly(self.lua, table) != 0 }
    }

    /// No hash part: the table has no named fields at all.
    #[inline]
    pub(crate) fn is_plain_array(self, table: c_int) -> bool {
        // SAFETY: callers name a table.
        unsafe { added::holdfast_isplainarray(self.lua, table) != 0 }
    }

    // --- references, the collector ---------------------------------------------------------------------------

    /// Pops a value into the registry.
    pub(crate) fn keep(self) -> c_int {
        // SAFETY: the caller pushed a value; the registry is not readonly, and memory is at its end before it is too large.
        unsafe { ffi::luaL_ref(self.lua, REGISTRY) }
    }

    pub(crate) fn drop_kept(self, reference: c_int) {
        // SAFETY: the reference came from `keep`.
        unsafe { ffi::luaL_unref(self.lua, REGISTRY, reference) }
    }

    /// A full cycle of the collector. Nothing has a finalizer, so no Lua code runs.
    pub(crate) fn collect(self) {
        // SAFETY: a live state.
        unsafe { ffi::lua_gc(self.lua, ffi::LUA_GCCOLLECT, 0) };
    }

    /// Starts the collector with these settings, in percent: see `lua_gc`.
    pub(crate) fn set_collector(self, pause: c_int, speed: c_int) {
        // SAFETY: a live state; these only set numbers.
        unsafe {
            ffi::lua_gc(self.lua, ffi::LUA_GCRESTART, 0);
            ffi::lua_gc(self.lua, ffi::LUA_GCSETPAUSE, pause);
            ffi::lua_gc(self.lua, ffi::LUA_GCSETSTEPMUL, speed);
        }
    }
}
