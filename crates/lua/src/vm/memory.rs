//! The memory of a state and its limit. Knows nothing of what is stored.

use std::cell::UnsafeCell;
use std::ffi::c_void;

use mlua_sys as ffi;

use super::heap::Heap;

/// The memory of one Lua state. It is the first field of what the state's allocator has as user data, so it is one
/// load away from every `lua_State`.
///
/// The limit holds while Lua runs: the allocator refuses, and Lua raises an error. It is lifted while Rust runs, because
/// that error must not pass through frames of Rust.
pub(crate) struct Memory {
    heap: UnsafeCell<Heap>,
}

impl Memory {
    /// Without a limit, and with that lifted: Rust runs first.
    pub(crate) fn new() -> Self {
        Memory { heap: UnsafeCell::new(Heap::new()) }
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

    fn heap(&self) -> &Heap {
        // SAFETY: only read, and the allocator, which changes it, does not run while the borrow lasts: the borrow does not
        // leave this file.
        unsafe { &*self.heap.get() }
    }
}

/// Opens a Lua state. Null if the system has no memory.
///
/// # Safety
/// `user` points to a `#[repr(C)]` struct whose first field is a [`Memory`] and which is neither moved nor dropped before
/// the state is closed.
pub(crate) unsafe fn open(user: *const c_void) -> *mut ffi::lua_State {
    // SAFETY: the caller's promise is what `allocate` asks for.
    unsafe {
        let lua = ffi::lua_newstate(allocate, user.cast_mut());
        if !lua.is_null() {
            ffi::lua_atpanic(lua, panicked);
        }
        lua
    }
}

/// # Safety
/// The state was made by [`open`] and is not used again.
pub(crate) unsafe fn close(lua: *mut ffi::lua_State) {
    // SAFETY: the caller's promise. Nothing has a finalizer, so no Lua code runs.
    unsafe { ffi::lua_close(lua) }
}

unsafe extern "C" fn allocate(user: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    // SAFETY: by `open`, the user data begins with a live `Memory`; Lua passes blocks it got from here with their size, and
    // nothing else borrows the heap while Lua allocates.
    unsafe { (*(*user.cast::<Memory>()).heap.get()).resize(block.cast(), old, new).cast() }
}

/// An error outside of every protected call: this crate's mistake, and the state is beyond repair.
unsafe extern "C-unwind" fn panicked(_: *mut ffi::lua_State) -> std::ffi::c_int {
    eprintln!("a Lua error outside of a protected call");
    std::process::abort()
}
