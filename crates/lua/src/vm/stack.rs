//! The Lua stack as seen by one function: its shape, pushing, tables. No method raises a Lua error (see the room's
//! `mod.rs`). Knows nothing of Redis. How strings and blocks are read in place: see `borrowed`.
//!
//! Every method is safe to call with any argument. An index that names no value reads as nothing (`Type::None`). What
//! else is wrong panics: a value of the wrong kind, a push without room, a pop below the frame or of a pinned value.
//! Lua's own functions check none of that; those in `patches/holdfast.patch` do, and return a status (`added`). A
//! function has 20 free slots and asks ([`Stack::has_room`]) for more.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use mlua_sys as ffi;

use super::interpreter::Interpreter;

/// IMPORTANT: not `Send`, by its pointers: `borrowed` relies on it.
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

/// The keys of a table, all of which are positive integers.
#[derive(Clone, Copy)]
pub(crate) struct ArrayKeys {
    pub(crate) count: c_int,
    pub(crate) max: f64,
    /// The largest as a C `int`, in which lua-cjson keeps it: a key that does not fit makes it `INT_MIN`, and each key
    /// that follows is larger.
    pub(crate) int_max: c_int,
}

pub(crate) const REGISTRY: c_int = ffi::LUA_REGISTRYINDEX;
pub(crate) const GLOBALS: c_int = ffi::LUA_GLOBALSINDEX;
pub(crate) const ALL_RESULTS: c_int = ffi::LUA_MULTRET;

/// The index of a value that is bound to the running function.
pub(crate) const fn upvalue(position: c_int) -> c_int {
    ffi::lua_upvalueindex(position)
}

/// What `patches/holdfast.patch` adds to Lua. None of them raises an error, and all of them check their arguments: any
/// index and any number may be passed with a live state. What is wrong changes nothing and returns [`added::MISUSE`].
mod added {
    use super::ffi::lua_State;
    use std::ffi::{c_char, c_int};

    pub(super) const MISUSE: c_int = -2;

    unsafe extern "C-unwind" {
        pub(super) fn holdfast_pop(lua: *mut lua_State, count: u16, floor: c_int) -> c_int;
        pub(super) fn holdfast_settop(lua: *mut lua_State, len: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_insert(lua: *mut lua_State, index: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_insertboolean(lua: *mut lua_State, index: c_int, value: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_remove(lua: *mut lua_State, index: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_replace(lua: *mut lua_State, index: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_pushvalue(lua: *mut lua_State, index: c_int) -> c_int;
        pub(super) fn holdfast_pushnil(lua: *mut lua_State) -> c_int;
        pub(super) fn holdfast_pushboolean(lua: *mut lua_State, value: c_int) -> c_int;
        pub(super) fn holdfast_pushnumber(lua: *mut lua_State, value: f64) -> c_int;
        pub(super) fn holdfast_pushlstring(lua: *mut lua_State, start: *const c_char, len: usize) -> c_int;
        pub(super) fn holdfast_createtable(lua: *mut lua_State, array: c_int, fields: c_int) -> c_int;
        pub(super) fn holdfast_setstring(
            lua: *mut lua_State,
            index: c_int,
            position: c_int,
            start: *const c_char,
            len: usize,
        ) -> c_int;
        pub(super) fn holdfast_hasroom(lua: *mut lua_State, count: c_int) -> c_int;
        pub(super) fn holdfast_pcall(lua: *mut lua_State, arguments: c_int, results: c_int, handler: c_int) -> c_int;
        pub(super) fn holdfast_setreadonly(lua: *mut lua_State, index: c_int, on: c_int) -> c_int;
        pub(super) fn holdfast_isreadonly(lua: *mut lua_State, index: c_int) -> c_int;
        pub(super) fn holdfast_rawget(lua: *mut lua_State, index: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_rawgeti(lua: *mut lua_State, index: c_int, position: c_int) -> c_int;
        pub(super) fn holdfast_rawset(lua: *mut lua_State, index: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_rawsetkey(lua: *mut lua_State, index: c_int, key: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_rawseti(lua: *mut lua_State, index: c_int, position: c_int, floor: c_int) -> c_int;
        pub(super) fn holdfast_next(lua: *mut lua_State, index: c_int, at: *mut c_int) -> c_int;
        pub(super) fn holdfast_countkeys(
            lua: *mut lua_State,
            index: c_int,
            max: *mut f64,
            int_max: *mut c_int,
        ) -> c_int;
        pub(super) fn holdfast_isplainarray(lua: *mut lua_State, index: c_int) -> c_int;
        pub(super) fn holdfast_arraylen(lua: *mut lua_State, index: c_int) -> c_int;
    }
}

/// Panics if a function of [`added`] has refused its arguments; returns its status otherwise.
#[inline]
fn checked(status: c_int) -> c_int {
    if status == added::MISUSE {
        misuse();
    }
    status
}

#[cold]
#[inline(never)]
fn misuse() -> ! {
    panic!("a Lua value of the wrong kind, no room on the stack, or fewer values on it than are taken")
}

impl Type {
    /// From Lua's number of a type.
    #[inline]
    fn of(number: c_int) -> Type {
        match number {
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

    /// For a function that Lua has called; `holdfast_enter` has returned `user`.
    ///
    /// # Safety
    /// As for [`Stack::of`].
    #[inline]
    pub(super) unsafe fn entered(lua: *mut ffi::lua_State, user: *const c_void) -> Self {
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
        // SAFETY: by the promise made to `interpreter::open`, the user data begins with an `Interpreter` that outlives
        // the state.
        unsafe { &*self.user.cast() }
    }

    /// An error if Lua may not have so many bytes more. To be asked before something large, and in every loop that
    /// makes as many values as its input asks for.
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

    /// How many values at the bottom of the frame may not be removed: see `borrowed`.
    #[inline]
    fn floor(self) -> c_int {
        self.interpreter().pinned()
    }

    /// Removes values from the top, or pushes nils, within the room that there is.
    #[inline]
    pub(crate) fn set_len(self, len: c_int) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_settop(self.lua, len, self.floor()) });
    }

    #[inline]
    pub(crate) fn pop(self, count: c_int) {
        let Ok(count) = u16::try_from(count) else { misuse() };
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_pop(self.lua, count, self.floor()) });
    }

    /// Pushes the value at `index`; nil if there is none.
    #[inline]
    pub(crate) fn copy(self, index: c_int) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_pushvalue(self.lua, index) });
    }

    /// Moves the value on top down to `index`.
    pub(crate) fn insert(self, index: c_int) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_insert(self.lua, index, self.floor()) });
    }

    /// Pushes a boolean and moves it down to `index`.
    pub(crate) fn insert_boolean(self, index: c_int, value: bool) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_insertboolean(self.lua, index, value as c_int, self.floor()) });
    }

    pub(crate) fn remove(self, index: c_int) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_remove(self.lua, index, self.floor()) });
    }

    /// Pops a value into the place of the one at `index`.
    pub(crate) fn replace(self, index: c_int) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_replace(self.lua, index, self.floor()) });
    }

    /// Pops a table and makes it the globals of functions that are compiled from here on.
    pub(crate) fn set_globals(self) {
        assert!(self.kind(-1) == Type::Table && self.len() > self.floor(), "globals are a table");
        // SAFETY: a live state with a table on top, which is not pinned.
        unsafe { ffi::lua_replace(self.lua, GLOBALS) }
    }

    /// Makes room for `count` more values, or says that the stack is at its limit.
    #[inline]
    pub(crate) fn has_room(self, count: c_int) -> bool {
        // SAFETY: a live state.
        unsafe { ffi::lua_checkstack(self.lua, count) != 0 }
    }

    /// Room for an error that ends the function. At the limit of the stack the values on top make way for it: they are
    /// the function's, and it has no more use for them.
    pub(crate) fn make_room(self, count: c_int) {
        if !self.has_room(count) {
            self.pop(count);
        }
    }

    // --- reading ---------------------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn kind(self, index: c_int) -> Type {
        // SAFETY: a live state; any index may be asked, since `index2adr` is patched.
        Type::of(unsafe { ffi::lua_type(self.lua, index) })
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
        // SAFETY: as in `kind`.
        unsafe { ffi::lua_toboolean(self.lua, index) != 0 }
    }

    /// The number, or zero if the value is none and no text of one.
    #[inline]
    pub(crate) fn number(self, index: c_int) -> f64 {
        // SAFETY: as in `kind`.
        unsafe { ffi::lua_tonumber(self.lua, index) }
    }

    /// A number, or a string that reads as one.
    pub(crate) fn is_number(self, index: c_int) -> bool {
        // SAFETY: as in `kind`.
        unsafe { ffi::lua_isnumber(self.lua, index) != 0 }
    }

    /// The length without metamethods (`lua_objlen`).
    pub(crate) fn raw_len(self, index: c_int) -> usize {
        // SAFETY: as in `kind`.
        unsafe { ffi::lua_objlen(self.lua, index) }
    }

    // --- pushing ---------------------------------------------------------------------------------------------

    /// For a push that does not check by itself.
    fn assert_room(self, count: c_int) {
        // SAFETY: a live state.
        if unsafe { added::holdfast_hasroom(self.lua, count) } == 0 {
            misuse();
        }
    }

    /// For a function of Lua that takes so many values from the top.
    #[inline]
    pub(super) fn assert_has(self, count: c_int) {
        assert!(count >= 0 && self.len() - count >= self.floor(), "the values that are taken are on the stack");
    }

    #[inline]
    pub(crate) fn push_nil(self) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_pushnil(self.lua) });
    }

    #[inline]
    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_pushboolean(self.lua, value as c_int) });
    }

    #[inline]
    pub(crate) fn push_number(self, value: f64) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_pushnumber(self.lua, value) });
    }

    #[inline]
    pub(crate) fn push_bytes(self, bytes: &[u8]) {
        // SAFETY: a live state; Lua copies the bytes.
        checked(unsafe { added::holdfast_pushlstring(self.lua, bytes.as_ptr().cast(), bytes.len()) });
    }

    pub(crate) fn push_null(self) {
        self.assert_room(1);
        // SAFETY: a live state with room.
        unsafe { ffi::lua_pushlightuserdata(self.lua, std::ptr::null_mut()) }
    }

    #[inline]
    pub(crate) fn push_table(self, array: usize, fields: usize) {
        let (array, fields) = (array.min(1 << 26) as c_int, fields.min(1 << 26) as c_int);
        // SAFETY: a live state; 2^26 is the largest size for which Lua raises no error.
        checked(unsafe { added::holdfast_createtable(self.lua, array, fields) });
    }

    /// A new block of memory that Lua owns. Its bytes are not initialised.
    pub(super) fn push_block(self, size: usize) -> *mut c_void {
        assert!(size < 4096);
        self.assert_room(1);
        // SAFETY: a live state with room.
        unsafe { ffi::lua_newuserdata(self.lua, size) }
    }

    /// Replaces the two strings on top by one.
    pub(crate) fn join_two(self) {
        self.assert_has(2);
        assert!(self.is_text(-1) && self.is_text(-2), "Lua looks for a metamethod of anything else");
        // SAFETY: two strings or numbers are on top, and not pinned.
        unsafe { ffi::lua_concat(self.lua, 2) }
    }

    /// A string or a number.
    #[inline]
    pub(crate) fn is_text(self, index: c_int) -> bool {
        matches!(self.kind(index), Type::String | Type::Number)
    }

    /// A function with the top `upvalues` values bound to it.
    pub(crate) fn push_function(self, function: Function, upvalues: u8) {
        let upvalues = c_int::from(upvalues);
        self.assert_has(upvalues);
        self.assert_room(1);
        // SAFETY: a live state with the values and with room.
        unsafe { ffi::lua_pushcclosure(self.lua, function.0, upvalues) }
    }

    // --- tables ----------------------------------------------------------------------------------------------

    /// Replaces the key on top by its value, without metamethods, and returns the value's type.
    #[inline]
    pub(crate) fn raw_get(self, table: c_int) -> Type {
        // SAFETY: a live state.
        Type::of(checked(unsafe { added::holdfast_rawget(self.lua, table, self.floor()) }))
    }

    /// Pushes the value at the position, without metamethods, and returns its type.
    #[inline]
    pub(crate) fn raw_get_at(self, table: c_int, position: c_int) -> Type {
        // SAFETY: a live state.
        Type::of(checked(unsafe { added::holdfast_rawgeti(self.lua, table, position) }))
    }

    /// What is known of the keys of a table, if all are positive integers.
    #[inline]
    pub(crate) fn array_keys(self, table: c_int) -> Option<ArrayKeys> {
        let mut keys = ArrayKeys { count: 0, max: 0.0, int_max: 0 };
        // SAFETY: a live state, and the numbers are ours.
        let count = unsafe { added::holdfast_countkeys(self.lua, table, &mut keys.max, &mut keys.int_max) };
        keys.count = checked(count);
        (keys.count >= 0).then_some(keys)
    }

    /// How many elements the table has, up to the first nil.
    #[inline]
    pub(crate) fn array_len(self, table: c_int) -> c_int {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_arraylen(self.lua, table) })
    }

    /// Pops a value and a key and stores them, without metamethods, readonly or not. The error of a key that is nil or
    /// not a number, and of a table that is too large, is Lua's.
    #[inline]
    pub(crate) fn raw_set(self, table: c_int) -> Result<(), Raise> {
        // SAFETY: a live state.
        match unsafe { added::holdfast_rawset(self.lua, table, self.floor()) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// As [`Stack::raw_set`], with the value at the index `key`, which stays, for the key.
    #[inline]
    pub(crate) fn raw_set_key(self, table: c_int, key: c_int) -> Result<(), Raise> {
        // SAFETY: a live state.
        match unsafe { added::holdfast_rawsetkey(self.lua, table, key, self.floor()) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// As [`Stack::raw_set`], with the position for the key.
    #[inline]
    pub(crate) fn raw_set_at(self, table: c_int, position: c_int) -> Result<(), Raise> {
        // SAFETY: a live state.
        match unsafe { added::holdfast_rawseti(self.lua, table, position, self.floor()) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// As [`Stack::raw_set_at`], with a new string for the value.
    #[inline]
    pub(crate) fn set_string_at(self, table: c_int, position: c_int, bytes: &[u8]) -> Result<(), Raise> {
        let (start, len) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: a live state; Lua copies the bytes.
        match unsafe { added::holdfast_setstring(self.lua, table, position, start, len) } {
            0 => Ok(()),
            status => Err(self.not_stored(status)),
        }
    }

    /// The texts are those of `luaH_set` and `setnodevector`.
    #[cold]
    fn not_stored(self, status: c_int) -> Raise {
        checked(status);
        self.make_room(1);
        self.push_bytes(match status {
            1 => b"table index is nil",
            2 => b"table index is NaN",
            _ => b"table overflow",
        });
        Raise::Value
    }

    /// Pushes a field, without metamethods.
    pub(crate) fn get_field(self, table: c_int, name: &str) -> Type {
        let table = self.absolute(table);
        self.push_bytes(name.as_bytes());
        self.raw_get(table)
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
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_next(self.lua, table, &mut cursor.0) }) != 0
    }

    /// Pushes the metatable if there is one.
    pub(crate) fn metatable(self, index: c_int) -> bool {
        self.assert_room(1);
        // SAFETY: as in `kind`, and there is room.
        unsafe { ffi::lua_getmetatable(self.lua, index) != 0 }
    }

    /// Pushes a value that is bound to a function, if there is one.
    pub(crate) fn push_bound(self, function: c_int, position: c_int) -> bool {
        self.assert_room(1);
        // SAFETY: as in `kind`, and there is room; Lua checks the position, and that it is a function.
        unsafe { !ffi::lua_getupvalue(self.lua, function, position).is_null() }
    }

    /// Pops a table and makes it the metatable of the value.
    pub(crate) fn set_metatable(self, index: c_int) {
        self.assert_has(1);
        assert!(self.kind(-1) == Type::Table, "a metatable is a table");
        assert!(!self.is_readonly(index), "Lua raises an error for a readonly table");
        // SAFETY: two tables, and the upper one is not pinned.
        unsafe { ffi::lua_setmetatable(self.lua, index) };
    }

    pub(crate) fn set_readonly(self, table: c_int, on: bool) {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_setreadonly(self.lua, table, on as c_int) });
    }

    pub(crate) fn is_readonly(self, table: c_int) -> bool {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_isreadonly(self.lua, table) }) != 0
    }

    /// No hash part: the table has no named fields at all.
    #[inline]
    pub(crate) fn is_plain_array(self, table: c_int) -> bool {
        // SAFETY: a live state.
        checked(unsafe { added::holdfast_isplainarray(self.lua, table) }) != 0
    }

    // --- calls -----------------------------------------------------------------------------------------------

    /// `lua_pcall`: calls the function below its arguments, with the limit on memory in force. Returns Lua's status.
    #[inline]
    pub(super) fn pcall(self, arguments: c_int, results: c_int, handler: c_int) -> c_int {
        assert!(self.floor() == 0, "no Lua code runs while values are pinned");
        self.interpreter().enforce_limit();
        // SAFETY: a live state. Errors end in `lua_pcall`; what that allocates after an error, outside of its own
        // protection, are two strings that `anchor_messages` has made.
        let status = unsafe { added::holdfast_pcall(self.lua, arguments, results, handler) };
        self.interpreter().lift_limit();
        checked(status)
    }

    // --- references, the collector ---------------------------------------------------------------------------

    /// Pops a value into the registry.
    pub(crate) fn keep(self) -> c_int {
        self.assert_has(1);
        self.assert_registry();
        // SAFETY: a value is on top, and Lua raises no error as asserted.
        unsafe { ffi::luaL_ref(self.lua, REGISTRY) }
    }

    /// Frees a reference that [`Stack::keep`] has returned.
    pub(crate) fn drop_kept(self, reference: c_int) {
        self.assert_registry();
        // SAFETY: Lua raises no error as asserted. A number that is no reference only makes a later one wrong.
        unsafe { ffi::luaL_unref(self.lua, REGISTRY, reference) }
    }

    /// Lua raises an error when it stores into a table that is readonly or too large, and pushes two values meanwhile.
    fn assert_registry(self) {
        const LEN_MAX: usize = 1 << 24;
        assert!(self.has_room(2) && !self.is_readonly(REGISTRY) && self.raw_len(REGISTRY) < LEN_MAX);
    }

    /// A full cycle of the collector. Nothing has a finalizer, so no Lua code runs.
    pub(crate) fn collect(self) {
        // SAFETY: a live state.
        unsafe { ffi::lua_gc(self.lua, ffi::LUA_GCCOLLECT, 0) };
    }

    /// A few steps of the collector; true when a cycle has ended.
    pub(crate) fn collect_some(self) -> bool {
        // SAFETY: a live state.
        unsafe { ffi::lua_gc(self.lua, ffi::LUA_GCSTEP, 0) == 1 }
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
