//! What the functions of one Lua state share: its memory, the host of the running script, the buffers. Refuses to know what a
//! function does with them.
//!
//! A `Context` is reached from any `lua_State` of the same state (coroutines included) through the allocator's user data,
//! which costs one load. It is shared, so every field is a cell; the buffers are lent out as `&mut` for stretches in
//! which neither Lua code nor another borrower can run.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};

use mlua_sys as ffi;

use crate::Host;
use crate::functions::Registration;
use crate::heap::Heap;
use crate::nesting::Nesting;
use crate::random::Random;
use crate::reply::Open;
use crate::stack::{Raise, Stack};

pub(crate) struct Context {
    heap: UnsafeCell<Heap>,
    memory_bytes_max: Cell<usize>,
    /// The host of the running script; its lifetime is that of the call that set it (see [`Context::with_host`]).
    host: Cell<Option<*mut dyn Host>>,
    /// The reply of the command the script called last.
    reply: UnsafeCell<Vec<u8>>,
    /// The arguments of a call that has many of them. Empty between calls; the lifetime is that of the call.
    many: UnsafeCell<Vec<&'static [u8]>>,
    /// What a library builds before it becomes a Lua string.
    scratch: UnsafeCell<Vec<u8>>,
    /// Tables that are being written to a reply.
    open: UnsafeCell<Vec<Open>>,
    /// Tables that are being written or read as JSON.
    nesting: UnsafeCell<Vec<Nesting>>,
    pub(crate) random: Cell<Random>,
    /// `redis.setresp(3)` was called in this run.
    pub(crate) resp3: Cell<bool>,
    /// The host said stop: no `pcall` may catch it.
    pub(crate) killed: Cell<bool>,
    pub(crate) kill_message: UnsafeCell<Vec<u8>>,
    /// The script changed the collector's settings, which outlive it.
    pub(crate) collector_touched: Cell<bool>,
    /// The script called a function that changes the settings of a `cjson` table.
    pub(crate) settings_touched: Cell<bool>,
    /// Functions registered by the library that is being loaded.
    pub(crate) loading: UnsafeCell<Option<Vec<Registration>>>,
    panic: UnsafeCell<Option<Box<dyn Any + Send>>>,
    /// What to do inside the protected call that is about to start.
    task: Cell<Option<*mut Task<'static>>>,
}

/// Something to do inside a protected call.
pub(crate) type Task<'t> = dyn FnMut(Stack<'_>) -> Result<(), Raise> + 't;

impl Context {
    pub(crate) fn new(memory_bytes_max: usize) -> Box<Self> {
        Box::new(Context {
            heap: UnsafeCell::new(Heap::new(memory_bytes_max)),
            memory_bytes_max: Cell::new(memory_bytes_max),
            host: Cell::new(None),
            reply: UnsafeCell::default(),
            many: UnsafeCell::default(),
            scratch: UnsafeCell::default(),
            open: UnsafeCell::default(),
            nesting: UnsafeCell::default(),
            random: Cell::default(),
            resp3: Cell::new(false),
            killed: Cell::new(false),
            kill_message: UnsafeCell::default(),
            collector_touched: Cell::new(false),
            settings_touched: Cell::new(false),
            loading: UnsafeCell::default(),
            panic: UnsafeCell::default(),
            task: Cell::new(None),
        })
    }

    /// A new Lua state whose memory is this context's.
    pub(crate) fn open_lua(&self) -> *mut ffi::lua_State {
        let this: *const Context = self;
        // SAFETY: the context is boxed and outlives the state (the owner closes the state first).
        unsafe { ffi::lua_newstate(allocate, this.cast_mut().cast()) }
    }

    #[inline]
    pub(crate) fn of<'s>(stack: Stack<'s>) -> &'s Context {
        let mut user = std::ptr::null_mut();
        // SAFETY: every state was made by `open_lua`, so its user data is a live context.
        unsafe {
            ffi::lua_getallocf(stack.raw(), &mut user);
            &*user.cast::<Context>()
        }
    }

    pub(crate) fn used_bytes(&self) -> usize {
        // SAFETY: the heap is borrowed for one load.
        unsafe { (*self.heap.get()).used_bytes() }
    }

    pub(crate) fn footprint_bytes(&self) -> usize {
        // SAFETY: the heap is borrowed for one load.
        unsafe { (*self.heap.get()).footprint_bytes() }
    }

    pub(crate) fn set_memory_bytes_max(&self, bytes_max: usize) {
        self.memory_bytes_max.set(bytes_max);
        // SAFETY: the heap is borrowed for one store.
        unsafe { (*self.heap.get()).set_bytes_max(bytes_max) }
    }

    /// Lends a task to [`Context::do_task`], which `enter` will lead to.
    pub(crate) fn with_task<R>(&self, task: &mut Task<'_>, enter: impl FnOnce() -> R) -> R {
        let task: *mut Task<'_> = task;
        // SAFETY: only the lifetime is erased; the pointer is taken back before the borrow ends.
        self.task.set(Some(unsafe { std::mem::transmute::<*mut Task<'_>, *mut Task<'static>>(task) }));
        let result = enter();
        self.task.set(None);
        result
    }

    pub(crate) fn do_task(&self, stack: Stack<'_>) -> Result<(), Raise> {
        match self.task.take() {
            // SAFETY: `with_task` holds the exclusive borrow this pointer came from, and it is taken only once.
            Some(task) => unsafe { (*task)(stack) },
            None => Ok(()),
        }
    }

    /// Lends the host to the script for the length of `run`.
    pub(crate) fn with_host<R>(&self, host: &mut dyn Host, run: impl FnOnce() -> R) -> R {
        // SAFETY: only the lifetime is erased; the pointer is taken back before the borrow ends.
        let erased: *mut (dyn Host + 'static) = unsafe { std::mem::transmute::<*mut dyn Host, *mut dyn Host>(host) };
        self.host.set(Some(erased));
        let result = run();
        self.host.set(None);
        if let Some(payload) = self.take_panic() {
            std::panic::resume_unwind(payload);
        }
        result
    }

    /// Asks the host, if a script is running. A panic of the host must not unwind through Lua's C frames: it ends the
    /// script and goes on from [`Context::with_host`].
    #[inline]
    pub(crate) fn host<R>(&self, ask: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        let host = self.host.get()?;
        // SAFETY: `with_host` holds the exclusive borrow this pointer came from, and the host cannot reach the state
        // (which is mutably borrowed), so no second `&mut` to it exists.
        let host = unsafe { &mut *host };
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ask(host))) {
            Ok(answer) => Some(answer),
            Err(payload) => {
                self.killed.set(true);
                // SAFETY: the cell is borrowed for one store.
                unsafe { *self.panic.get() = Some(payload) };
                None
            }
        }
    }

    #[inline]
    pub(crate) fn has_host(&self) -> bool {
        self.host.get().is_some()
    }

    fn take_panic(&self) -> Option<Box<dyn Any + Send>> {
        // SAFETY: the cell is borrowed for one swap.
        unsafe { (*self.panic.get()).take() }
    }

    /// The buffer for a command's reply. One borrower at a time: `redis.call`, from the command to the converted value.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a cell; the doc says who may hold it")]
    pub(crate) fn reply(&self) -> &mut Vec<u8> {
        // SAFETY: the conversion runs no Lua code, so there is no second borrower.
        unsafe { &mut *self.reply.get() }
    }

    /// Lends an empty list for arguments.
    pub(crate) fn with_many_arguments<'a, R>(&'a self, fill: impl FnOnce(&mut Vec<&'a [u8]>) -> R) -> R {
        // SAFETY: only the slices' lifetime differs, and the list is emptied before it ends; `redis.call` does not
        // nest, so there is no second borrower.
        let many: &mut Vec<&'a [u8]> = unsafe { &mut *self.many.get().cast() };
        let result = fill(many);
        many.clear();
        result
    }

    /// The buffer of the libraries. One borrower at a time: a function that encodes or decodes without running Lua code.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a cell; the doc says who may hold it")]
    pub(crate) fn scratch(&self) -> &mut Vec<u8> {
        // SAFETY: see above; a function that was left by an error is no borrower any more.
        let scratch = unsafe { &mut *self.scratch.get() };
        scratch.clear();
        scratch
    }

    /// What a library builds counts as the script's memory.
    #[inline]
    pub(crate) fn check_scratch(&self, stack: Stack<'_>) -> Result<(), Raise> {
        // SAFETY: the length is read between two uses by the only borrower.
        let len = unsafe { (*self.scratch.get()).len() };
        if len <= self.memory_bytes_max.get() {
            return Ok(());
        }
        stack.push_bytes(b"not enough memory");
        Err(stack.raise())
    }

    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a cell; the doc says who may hold it")]
    pub(crate) fn open(&self) -> &mut Vec<Open> {
        // SAFETY: borrowed only while a result is written, which runs no Lua code.
        let open = unsafe { &mut *self.open.get() };
        open.clear();
        open
    }

    #[inline]
    #[expect(clippy::mut_from_ref, reason = "a cell; the doc says who may hold it")]
    pub(crate) fn nesting(&self) -> &mut Vec<Nesting> {
        // SAFETY: borrowed only while JSON is read, which runs no Lua code.
        let nesting = unsafe { &mut *self.nesting.get() };
        nesting.clear();
        nesting
    }

    /// Gives back what an unusual script made the buffers grow to.
    pub(crate) fn shrink_buffers(&self) {
        const KEPT_BYTES: usize = 64 * 1024;
        // SAFETY: called between scripts, when nobody borrows the buffers.
        unsafe {
            (*self.reply.get()).shrink_to(KEPT_BYTES);
            (*self.scratch.get()).clear();
            (*self.scratch.get()).shrink_to(KEPT_BYTES);
        }
    }
}

unsafe extern "C" fn allocate(user: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    // SAFETY: the user data is the context given to `lua_newstate`; Lua passes blocks it got from us with their size.
    unsafe { (*(*user.cast::<Context>()).heap.get()).resize(block.cast(), old, new).cast() }
}

/// How many instructions pass between two ticks of the host.
pub(crate) const TICK_INSTRUCTIONS: c_int = 100_000;
