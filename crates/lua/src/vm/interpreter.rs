//! What a Lua state has on the side of Rust: memory with a limit, and a panic that is kept. Knows nothing of what runs.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::hash::{BuildHasher, RandomState};
use std::sync::Once;

use mlua_sys as ffi;

use super::heap::Heap;

/// The first field of what the state's allocator has as user data, so it is one load away from every `lua_State`.
///
/// The limit on memory holds while Lua runs: the allocator refuses, and Lua raises an error. It is lifted while Rust
/// runs, because that error must not pass through frames of Rust.
pub(crate) struct Interpreter {
    heap: UnsafeCell<Heap>,
    /// A panic must not unwind through Lua's frames, which would leave the state as it was in the middle of a call. It
    /// is kept here while Lua unwinds by a Lua error.
    panic: Cell<Option<Box<dyn Any + Send>>>,
    /// How many values at the bottom of the running function's frame may not be removed: see `borrowed`.
    pinned: Cell<c_int>,
}

impl Interpreter {
    /// Without a limit, and with that lifted: Rust runs first.
    pub(crate) fn new() -> Self {
        Interpreter { heap: UnsafeCell::new(Heap::new()), panic: Cell::new(None), pinned: Cell::new(0) }
    }

    pub(crate) fn used_bytes(&self) -> usize {
        self.heap().used_bytes()
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        self.heap().footprint_bytes()
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.heap().bytes_max()
    }

    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        // SAFETY: borrowed for one store; the allocator does not run now.
        unsafe { (*self.heap.get()).set_bytes_max(bytes_max) }
    }

    /// May so many bytes more be used by what Rust does?
    #[inline]
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        self.heap().has_room(bytes)
    }

    /// Rust runs from here on.
    #[inline]
    pub(super) fn lift_limit(&self) {
        // SAFETY: borrowed for one store; the allocator does not run now.
        unsafe { (*self.heap.get()).lift_limit() }
    }

    /// Lua runs from here on. False: more is in use than it may have.
    #[inline]
    pub(super) fn enforce_limit(&self) -> bool {
        // SAFETY: borrowed for a few loads and a store; the allocator does not run now.
        unsafe { (*self.heap.get()).enforce_limit() }
    }

    #[inline]
    pub(super) fn pinned(&self) -> c_int {
        self.pinned.get()
    }

    pub(super) fn set_pinned(&self, count: c_int) {
        self.pinned.set(count);
    }

    pub(super) fn keep_panic(&self, payload: Box<dyn Any + Send>) {
        self.panic.set(Some(payload));
    }

    /// Continues the panic that was kept, if there is one.
    #[inline]
    pub(super) fn resume_panic(&self) {
        // SAFETY: borrowed for one load.
        if unsafe { (*self.panic.as_ptr()).is_some() }
            && let Some(payload) = self.panic.take()
        {
            std::panic::resume_unwind(payload);
        }
    }

    fn heap(&self) -> &Heap {
        // SAFETY: only read, and the allocator, which changes it, does not run while the borrow lasts: the borrow does
        // not leave this file.
        unsafe { &*self.heap.get() }
    }
}

/// Opens a Lua state. Null if the system has no memory.
///
/// # Safety
/// `user` points to a `#[repr(C)]` struct whose first field is an [`Interpreter`] and which is neither moved nor
/// dropped before the state is closed.
pub(crate) unsafe fn open(user: *const c_void) -> *mut ffi::lua_State {
    seed_hashes();
    // SAFETY: the caller's promise is what `allocate` asks for.
    unsafe {
        let lua = ffi::lua_newstate(allocate, user.cast_mut());
        if !lua.is_null() {
            ffi::lua_atpanic(lua, panicked);
        }
        lua
    }
}

unsafe extern "C" {
    fn holdfast_seed(one: u64, other: u64);
}

/// Makes the hashes of strings secret, so that a client cannot choose strings that share one.
fn seed_hashes() {
    static SEEDED: Once = Once::new();
    SEEDED.call_once(|| {
        let random = RandomState::new();
        // SAFETY: it changes two numbers that states read; there is no state yet, and `call_once` lets none be made
        // meanwhile.
        unsafe { holdfast_seed(random.hash_one(1), random.hash_one(2)) };
    });
}

/// # Safety
/// The state was made by [`open`] and is not used again.
pub(crate) unsafe fn close(lua: *mut ffi::lua_State) {
    // SAFETY: the caller's promise. Nothing has a finalizer, so no Lua code runs.
    unsafe { ffi::lua_close(lua) }
}

unsafe extern "C" fn allocate(user: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    // SAFETY: by `open`, the user data begins with a live `Interpreter`; Lua passes blocks it got from here with their
    // size, and nothing else borrows the heap while Lua allocates.
    unsafe { (*(*user.cast::<Interpreter>()).heap.get()).resize(block.cast(), old, new).cast() }
}

/// An error outside of every protected call: this crate's mistake, and the state is beyond repair.
unsafe extern "C-unwind" fn panicked(_: *mut ffi::lua_State) -> c_int {
    eprintln!("a Lua error outside of a protected call");
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" {
        fn holdfast_longestchain(lua: *mut ffi::lua_State) -> usize;
    }

    /// The longest chain of strings that share a slot, after so many were made.
    fn longest_chain(strings: impl Iterator<Item = String>) -> usize {
        let interpreter = Interpreter::new();
        let user: *const Interpreter = &interpreter;
        // SAFETY: the interpreter outlives the state; the strings are in a table, so that they stay.
        unsafe {
            let lua = open(user.cast());
            ffi::lua_createtable(lua, 0, 0);
            for (string, at) in strings.zip(1..) {
                ffi::lua_pushlstring(lua, string.as_ptr().cast(), string.len());
                ffi::lua_rawseti(lua, -2, at);
            }
            let longest = holdfast_longestchain(lua);
            close(lua);
            longest
        }
    }

    /// Stock Lua looks at every so many bytes of a long string.
    #[test]
    fn strings_that_differ_in_few_bytes_do_not_share_a_slot() {
        const COUNT: usize = 20_000;
        let front = longest_chain((0..COUNT).map(|number| format!("{number:08}{}", "x".repeat(1000))));
        let back = longest_chain((0..COUNT).map(|number| format!("{}{number}", "x".repeat(1000))));
        let between = longest_chain((0..COUNT).map(|number| format!("{}{number:08}{0}", "x".repeat(20))));
        let spread = longest_chain((0..COUNT).map(|number| {
            // At even places only.
            (0..40).map(|at| if at % 2 == 0 && number >> (at / 2) & 1 == 1 { 'a' } else { 'b' }).collect()
        }));
        let short = longest_chain((0..COUNT).map(|number| number.to_string()));
        for (longest, what) in
            [(front, "front"), (back, "back"), (between, "between"), (spread, "spread"), (short, "short")]
        {
            assert!(longest < 20, "{what}: {longest} strings in one slot");
        }
    }
}
