//! What a Lua state has on the side of Rust: memory with a limit, and a panic that is kept. Knows nothing of what runs.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;

use mlua_sys as ffi;

use super::heap::Heap;

/// The first field of what the state's allocator has as user data, so it is one load away from every `lua_State`.
///
/// The limit on memory holds while Lua runs: the allocator refuses, and Lua raises an error. It is lifted while Rust runs, because
/// that error must not pass through frames of Rust.
pub(crate) struct Interpreter {
    heap: UnsafeCell<Heap>,
    /// A panic must not unwind through Lua's frames, which would leave the state as it was in the middle of a call. It is
    /// kept here while Lua unwinds by an error of its own.
    panic: Cell<Option<Box<dyn Any + Send>>>,
}

impl Interpreter {
    /// Without a limit, and with that lifted: Rust runs first.
    pub(crate) fn new() -> Self {
        Interpreter { heap: UnsafeCell::new(Heap::new()), panic: Cell::new(None) }
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
        // SAFETY: only read, and the allocator, which changes it, does not run while the borrow lasts: the borrow does not
        // leave this file.
        unsafe { &*self.heap.get() }
    }
}

/// Opens a Lua state. Null if the system has no memory.
///
/// # Safety
/// `user` points to a `#[repr(C)]` struct whose first field is an [`Interpreter`] and which is neither moved nor dropped before
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
    // SAFETY: by `open`, the user data begins with a live `Interpreter`; Lua passes blocks it got from here with their size, and
    // nothing else borrows the heap while Lua allocates.
    unsafe { (*(*user.cast::<Interpreter>()).heap.get()).resize(block.cast(), old, new).cast() }
}

/// An error outside of every protected call: this crate's mistake, and the state is beyond repair.
unsafe extern "C-unwind" fn panicked(_: *mut ffi::lua_State) -> std::ffi::c_int {
    eprintln!("a Lua error outside of a protected call");
    std::process::abort()
}
