//! Strings and blocks that Rust reads where Lua has them, without a copy. Knows nothing of Redis.
//!
//! Lua frees a string when nothing refers to it any more, at any allocation. So a slice of one is lent in two ways
//! only, in both of which the string stays on the stack:
//! - [`Stack::with_bytes`] lends it to a closure that cannot reach the stack: the closure is `Send`, and a `Stack` is
//!   not.
//! - [`Stack::with_pinned`] pins the arguments of the function. While they are pinned, a method that would remove one
//!   of them panics, and so does a call of Lua code; everything else works on the stack above them.

use std::any::TypeId;
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};

use mlua_sys as ffi;

use super::interpreter::Interpreter;
use super::stack::{Raise, Stack};

/// What `patches/holdfast.patch` adds to Lua for this file. Any index may be passed with a live state.
mod added {
    use super::*;

    unsafe extern "C-unwind" {
        pub(super) fn holdfast_string(lua: *mut ffi::lua_State, index: c_int, len: *mut usize) -> *const c_char;
        pub(super) fn holdfast_arestrings(lua: *mut ffi::lua_State, count: c_int) -> c_int;
        pub(super) fn holdfast_userdata(lua: *mut ffi::lua_State, index: c_int, size: usize) -> *mut c_void;
    }
}

/// The values at the bottom of a frame that stay on the stack for `'p`.
#[derive(Clone, Copy)]
pub(crate) struct Pinned<'p> {
    stack: Stack<'p>,
    count: c_int,
}

impl<'p> Pinned<'p> {
    /// The bytes of a pinned string; a number becomes its text, on the stack too. Anything else is `None`.
    #[inline]
    pub(crate) fn bytes(self, position: c_int) -> Option<&'p [u8]> {
        if !(1..=self.count).contains(&position) {
            return None;
        }
        // SAFETY: the string stays where it is for `'p`: see `Stack::with_pinned`.
        unsafe { self.stack.bytes(position) }
    }

    /// All pinned values; what is no string is empty.
    #[inline]
    pub(crate) fn strings(self) -> impl Iterator<Item = &'p [u8]> {
        (1..=self.count).map(move |position| {
            // SAFETY: as in `bytes`.
            unsafe { self.stack.string(position) }.unwrap_or_default()
        })
    }

    /// As [`Pinned::bytes`], for an argument that must be a string.
    pub(crate) fn argument_bytes(self, position: c_int) -> Result<&'p [u8], Raise> {
        self.bytes(position).ok_or_else(|| self.stack.bad_kind(position, "string"))
    }
}

/// Unpins also when the closure panics.
struct Unpin<'s>(&'s Interpreter);

impl Drop for Unpin<'_> {
    fn drop(&mut self) {
        self.0.set_pinned(0);
    }
}

/// A value in a block of Lua's, with its type: a block of the same size may be of another.
#[repr(C)]
struct Block<T> {
    kind: TypeId,
    value: Cell<T>,
}

impl<'s> Stack<'s> {
    /// Calls `read` with the bytes of the string at `index`; a number becomes its text, on the stack too. Anything else
    /// is `None`.
    #[inline]
    pub(crate) fn with_bytes<R>(self, index: c_int, read: impl FnOnce(&[u8]) -> R + Send) -> Option<R> {
        // SAFETY: the string is on the stack or bound to the running function, and `read` cannot change either: it has
        // no `Stack`, which is not `Send`.
        unsafe { self.bytes(index) }.map(read)
    }

    /// As [`Stack::with_bytes`], for a string only: nothing is converted.
    #[inline]
    pub(crate) fn with_string<R>(self, index: c_int, read: impl FnOnce(&[u8]) -> R + Send) -> Option<R> {
        // SAFETY: as in `with_bytes`.
        unsafe { self.string(index) }.map(read)
    }

    /// The first `count` values of the frame are strings.
    #[inline]
    pub(crate) fn are_strings(self, count: c_int) -> bool {
        // SAFETY: a live state; any count may be asked.
        unsafe { added::holdfast_arestrings(self.lua(), count) != 0 }
    }

    /// As [`Stack::with_bytes`], for an argument that must be a string.
    pub(crate) fn with_argument<R>(self, position: c_int, read: impl FnOnce(&[u8]) -> R + Send) -> Result<R, Raise> {
        self.with_bytes(position, read).ok_or_else(|| self.bad_kind(position, "string"))
    }

    /// Pins the first `count` values of the frame, or as many as there are, while `run` runs.
    #[inline]
    pub(crate) fn with_pinned<R>(self, count: c_int, run: impl FnOnce(Pinned<'_>) -> R) -> R {
        let interpreter = self.interpreter();
        assert!(interpreter.pinned() == 0, "values are pinned once at a time");
        let count = count.clamp(0, self.len());
        interpreter.set_pinned(count);
        let _unpin = Unpin(interpreter);
        run(Pinned { stack: self, count })
    }

    /// The bytes of a string or a number, as in [`Stack::with_bytes`].
    ///
    /// # Safety
    /// The string stays on the stack while the slice is used.
    #[inline]
    unsafe fn bytes<'b>(self, index: c_int) -> Option<&'b [u8]> {
        let mut len = 0;
        // SAFETY: a live state; any index may be asked. The rest is the caller's promise.
        unsafe {
            let start = ffi::lua_tolstring(self.lua(), index, &mut len);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
        }
    }

    /// The bytes of a string, as in [`Stack::with_string`].
    ///
    /// # Safety
    /// As for [`Stack::bytes`].
    #[inline]
    unsafe fn string<'b>(self, index: c_int) -> Option<&'b [u8]> {
        let mut len = 0;
        // SAFETY: a live state; any index may be asked. The rest is the caller's promise.
        unsafe {
            let start = added::holdfast_string(self.lua(), index, &mut len);
            (!start.is_null()).then(|| std::slice::from_raw_parts(start.cast(), len))
        }
    }

    /// What C's `strtod` reads in the string at `index` from byte `at` on: the number and how many bytes it took.
    pub(crate) fn c_number(self, index: c_int, at: usize) -> (f64, usize) {
        let mut len = 0;
        // SAFETY: a Lua string ends with a NUL, so the reader stops within it; `at` is checked against its length.
        unsafe {
            let start = ffi::lua_tolstring(self.lua(), index, &mut len);
            assert!(!start.is_null() && at <= len, "callers read within a string");
            let from = start.add(at);
            let mut end = std::ptr::null_mut();
            let number = libc::strtod(from, &mut end);
            (number, end.offset_from(from) as usize)
        }
    }

    /// The pointer of a light userdata is null (`push_null`).
    pub(crate) fn is_null(self, index: c_int) -> bool {
        // SAFETY: a live state; any index may be asked.
        unsafe { ffi::lua_islightuserdata(self.lua(), index) != 0 && ffi::lua_touserdata(self.lua(), index).is_null() }
    }

    /// Pushes a new block of memory that Lua owns, with this value in it.
    pub(crate) fn push_value<T: Copy + 'static>(self, value: T) {
        const { assert!(align_of::<Block<T>>() <= 8, "Lua's blocks are aligned for a double") };
        let block = self.push_block(size_of::<Block<T>>()).cast::<Block<T>>();
        // SAFETY: the block is new, aligned and large enough.
        unsafe { block.write(Block { kind: TypeId::of::<T>(), value: Cell::new(value) }) };
    }

    /// The value in the block at `index`, if it was pushed as one of this type.
    #[inline]
    pub(crate) fn value<T: Copy + 'static>(self, index: c_int) -> Option<T> {
        self.with_value(index, Cell::get)
    }

    /// Changes the value in the block at `index`. False if it was not pushed as one of this type.
    pub(crate) fn set_value<T: Copy + 'static>(self, index: c_int, value: T) -> bool {
        self.with_value(index, |cell| cell.set(value)).is_some()
    }

    #[inline]
    fn with_value<T: Copy + 'static, R>(self, index: c_int, access: impl FnOnce(&Cell<T>) -> R) -> Option<R> {
        // SAFETY: a live state; any index may be asked.
        let block = unsafe { added::holdfast_userdata(self.lua(), index, size_of::<Block<T>>()) };
        // SAFETY: scripts cannot make blocks, so `push_value` has made this one: it begins with the type of its value,
        // and if that is `T`, it is a `Block<T>`. It is on the stack or bound to the running function, and `access`
        // does not change either: the two callers above copy a value.
        unsafe {
            if block.is_null() || *block.cast::<TypeId>() != TypeId::of::<T>() {
                return None;
            }
            Some(access(&(*block.cast::<Block<T>>()).value))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::vm::interpreter::{close, open};
    use crate::vm::stack::{Cursor, REGISTRY, Type, upvalue};

    fn with_state(test: impl FnOnce(Stack<'_>)) {
        let interpreter = Box::new(Interpreter::new());
        // SAFETY: the interpreter is boxed and outlives the state, and it is all there is.
        unsafe {
            let lua = open((&raw const *interpreter).cast());
            let stack = Stack::of(lua);
            stack.anchor_messages();
            test(stack);
            close(lua);
        }
    }

    /// Does not compile if a `Stack`, or what leads to one, is `Send`: the compiler would not know which `unique` is
    /// meant.
    #[expect(dead_code, reason = "it is compiled, not called")]
    fn closures_cannot_reach_the_stack() {
        trait Either<A> {
            fn unique() {}
        }
        impl<T: ?Sized> Either<()> for T {}
        impl<T: ?Sized + Send> Either<u8> for T {}
        <Stack<'_> as Either<_>>::unique();
        <Pinned<'_> as Either<_>>::unique();
        <&Interpreter as Either<_>>::unique();
    }

    /// Panics, and leaves the stack as it was.
    #[track_caller]
    fn refused(stack: Stack<'_>, misuse: impl FnOnce()) {
        let len = stack.len();
        assert!(catch_unwind(AssertUnwindSafe(misuse)).is_err());
        assert_eq!(stack.len(), len);
    }

    #[test]
    fn an_index_that_names_nothing_reads_as_nothing() {
        with_state(|stack| {
            stack.push_number(1.5);
            for index in [0, 2, -2, 100, -100, -9_999, c_int::MAX, upvalue(1), upvalue(255), -10_001, c_int::MIN] {
                assert_eq!(stack.kind(index), Type::None, "{index}");
                assert_eq!((stack.number(index), stack.boolean(index), stack.raw_len(index)), (0.0, false, 0));
                assert_eq!((stack.with_bytes(index, <[u8]>::len), stack.with_string(index, <[u8]>::len)), (None, None));
                assert!(stack.value::<u64>(index).is_none() && !stack.is_null(index) && !stack.is_number(index));
            }
            assert_eq!((stack.kind(1), stack.kind(-1)), (Type::Number, Type::Number));
        });
    }

    #[test]
    fn what_is_wrong_panics_and_changes_nothing() {
        with_state(|stack| {
            stack.push_bytes(b"no table");
            refused(stack, || stack.pop(2));
            refused(stack, || stack.pop(-1));
            refused(stack, || stack.set_len(-1));
            refused(stack, || stack.set_len(1_000_000));
            for index in [0, 2, -2, REGISTRY, c_int::MIN, c_int::MAX] {
                refused(stack, || stack.insert(index));
                refused(stack, || stack.remove(index));
                refused(stack, || stack.replace(index));
            }
            for index in [0, 3, -3, REGISTRY] {
                refused(stack, || stack.insert_boolean(index, true));
            }
            for index in [1, 0, 5, -5] {
                refused(stack, || _ = stack.raw_get(index));
                refused(stack, || _ = stack.raw_get_at(index, 1));
                refused(stack, || _ = stack.raw_set(index));
                refused(stack, || _ = stack.raw_set_at(index, 1));
                refused(stack, || _ = stack.next(index, &mut Cursor::default()));
                refused(stack, || stack.set_readonly(index, true));
                refused(stack, || _ = stack.is_readonly(index));
                refused(stack, || _ = stack.is_plain_array(index));
                refused(stack, || _ = stack.array_len(index));
                refused(stack, || _ = stack.array_keys(index));
                refused(stack, || _ = stack.set_string_at(index, 1, b""));
                refused(stack, || _ = stack.raw_set_key(index, 1));
                refused(stack, || stack.set_metatable(index));
            }
            refused(stack, || _ = stack.raw_set(REGISTRY));
            refused(stack, || stack.join_two());
            refused(stack, || stack.set_globals());
            for (arguments, results, handler) in
                [(1, 0, 0), (-1, 0, 0), (0, 1_000_000, 0), (0, 0, 1), (0, 0, -1), (0, -2, 0)]
            {
                refused(stack, || _ = stack.protected_call(arguments, results, handler));
            }
            stack.pop(1);
            refused(stack, || _ = stack.keep());
            refused(stack, || _ = stack.raw_get(REGISTRY));
        });
    }

    #[test]
    fn a_push_without_room_panics() {
        with_state(|stack| {
            while stack.has_room(1) {
                stack.push_nil();
            }
            refused(stack, || stack.push_nil());
            refused(stack, || stack.push_boolean(true));
            refused(stack, || stack.push_number(1.0));
            refused(stack, || stack.push_bytes(b"x"));
            refused(stack, || stack.push_table(0, 0));
            refused(stack, || stack.push_null());
            refused(stack, || stack.push_value(1u64));
            refused(stack, || stack.copy(1));
            refused(stack, || _ = stack.raw_get_at(REGISTRY, 1));
            refused(stack, || _ = stack.next(REGISTRY, &mut Cursor::default()));
            refused(stack, || _ = stack.metatable(1));
            refused(stack, || _ = stack.compile(b"return 1", c"test"));
        });
    }

    #[test]
    fn a_pinned_string_cannot_be_removed() {
        with_state(|stack| {
            stack.push_bytes(b"pinned");
            stack.push_table(0, 0);
            stack.with_pinned(1, |pinned| {
                let text = pinned.bytes(1).unwrap();
                assert_eq!(pinned.bytes(2), None, "not pinned");
                refused(stack, || stack.pop(2));
                refused(stack, || stack.set_len(0));
                refused(stack, || stack.insert(1));
                refused(stack, || stack.remove(1));
                refused(stack, || stack.replace(-2));
                refused(stack, || stack.with_pinned(0, |_| ()));
                refused(stack, || _ = stack.protected_call(0, 0, 0));
                stack.pop(1);
                refused(stack, || _ = stack.keep());
                refused(stack, || _ = stack.raw_get(REGISTRY));
                refused(stack, || _ = stack.raw_set_at(REGISTRY, 1));
                stack.collect();
                assert_eq!(text, b"pinned");
            });
            stack.pop(1);
        });
    }

    #[test]
    fn a_panic_unpins() {
        with_state(|stack| {
            stack.push_bytes(b"text");
            refused(stack, || stack.with_pinned(1, |_| panic!("on purpose")));
            stack.pop(1);
        });
    }

    #[test]
    fn a_block_is_read_as_what_it_was_pushed_as() {
        with_state(|stack| {
            stack.push_value(7u64);
            assert_eq!((stack.value::<u64>(-1), stack.value::<i64>(-1), stack.value::<u8>(-1)), (Some(7), None, None));
            assert!(stack.set_value(-1, 8u64) && !stack.set_value(-1, 9i64));
            assert_eq!(stack.value::<u64>(-1), Some(8));
            stack.push_null();
            assert!(stack.is_null(-1) && stack.value::<u64>(-1).is_none());
        });
    }
}
