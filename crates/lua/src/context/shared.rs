//! The context of a state: the host of the running script, buffers, what a script has changed. Refuses to know
//! what a function does with them.
//!
//! A `Context` is reached from any `lua_State` of the same state (coroutines included) through the allocator's user
//! data, which costs one load. It is shared, so every field is a cell. Buffers are kept from call to call, so that most
//! calls allocate nothing.

use std::cell::{Cell, RefCell, RefMut};
use std::ffi::c_void;
use std::time::Instant;

use super::nesting::Nesting;
use super::random::Random;
use super::registration::Registration;
use crate::host::Host;
use crate::vm::{self, Interpreter, Raise, Stack};

// IMPORTANT: the interpreter is the first field, see `vm::open`.
#[repr(C)]
pub(crate) struct Context {
    interpreter: Interpreter,
    /// The host of the running script; its lifetime is that of the call that set it (see [`Context::with_host`]).
    host: Cell<Option<*mut dyn Host>>,
    /// The reply of the command the script called last. Borrowed by `redis.call`, from the command to the converted
    /// value.
    reply: RefCell<Vec<u8>>,
    /// The arguments of a call that has many of them. Empty between calls; the lifetime is that of the call.
    many: Cell<Vec<&'static [u8]>>,
    /// What a library builds before it becomes a Lua string.
    scratch: RefCell<Vec<u8>>,
    /// Tables that are being written or read.
    nesting: RefCell<Vec<Nesting>>,
    /// Goes on from script to script, as in Redis.
    pub(crate) random: Cell<Random>,
    /// `redis.setresp(3)` was called in this run.
    pub(crate) resp3: Cell<bool>,
    /// The host said stop: no `pcall` may catch it.
    pub(crate) killed: Cell<bool>,
    pub(crate) kill_message: RefCell<Vec<u8>>,
    /// The script changed the collector's settings, which outlive it.
    pub(crate) collector_changed: Cell<bool>,
    /// The script called a function that changes the settings of a `cjson` table.
    pub(crate) cjson_changed: Cell<bool>,
    /// Functions registered by the library that is being loaded.
    pub(crate) loading: RefCell<Option<Vec<Registration>>>,
    /// When the library that is being loaded must be done.
    pub(crate) load_deadline: Cell<Option<Instant>>,
}

impl Context {
    /// Without a limit on memory.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Context {
            interpreter: Interpreter::new(),
            host: Cell::new(None),
            reply: RefCell::default(),
            many: Cell::default(),
            scratch: RefCell::default(),
            nesting: RefCell::default(),
            random: Cell::new(Random::anywhere()),
            resp3: Cell::new(false),
            killed: Cell::new(false),
            kill_message: RefCell::default(),
            collector_changed: Cell::new(false),
            cjson_changed: Cell::new(false),
            loading: RefCell::default(),
            load_deadline: Cell::new(None),
        })
    }

    /// A new Lua state whose memory is this context's. Null if the system has none.
    ///
    /// # Safety
    /// The context is neither moved nor dropped before the state is closed.
    pub(crate) unsafe fn open_lua(&self) -> *mut vm::lua_State {
        let this: *const Context = self;
        // SAFETY: the caller's promise; the interpreter is the first field.
        unsafe { vm::open(this.cast::<c_void>()) }
    }

    #[inline]
    pub(crate) fn of<'s>(stack: Stack<'s>) -> &'s Context {
        // SAFETY: `open_lua` makes every state, so its user data is a context that outlives it. (Tests in `vm` open
        // states of their own, without anything of this crate that asks for a context.)
        unsafe { &*stack.user().cast::<Context>() }
    }

    pub(crate) fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    /// Lends the host to the script for the length of `run`.
    pub(crate) fn with_host<R>(&self, host: &mut dyn Host, run: impl FnOnce() -> R) -> R {
        // SAFETY: only the lifetime is erased; the pointer is taken back before the borrow ends, by `TakeBack`.
        let erased: *mut (dyn Host + 'static) = unsafe { std::mem::transmute::<*mut dyn Host, *mut dyn Host>(host) };
        self.host.set(Some(erased));
        // Also when `run` panics.
        let _taken_back = TakeBack(&self.host);
        run()
    }

    /// Asks the host, if a script is running.
    #[inline]
    pub(crate) fn host<R>(&self, ask: impl FnOnce(&mut dyn Host) -> R) -> Option<R> {
        // Taken for as long as it is asked, so that there is never a second `&mut` to it.
        let pointer = self.host.take()?;
        // SAFETY: `with_host` holds the exclusive borrow this pointer came from.
        let host = unsafe { &mut *pointer };
        let answer = ask(host);
        self.host.set(Some(pointer));
        Some(answer)
    }

    #[inline]
    pub(crate) fn has_host(&self) -> bool {
        self.host.get().is_some()
    }

    /// The buffer for a command's reply, empty.
    #[inline]
    pub(crate) fn reply(&self) -> RefMut<'_, Vec<u8>> {
        let mut reply = self.reply.borrow_mut();
        reply.clear();
        reply
    }

    /// Lends an empty list for arguments.
    pub(crate) fn with_many_arguments<'a, R>(&self, fill: impl FnOnce(&mut Vec<&'a [u8]>) -> R) -> R {
        let mut many: Vec<&'a [u8]> = self.many.take();
        let result = fill(&mut many);
        many.clear();
        // SAFETY: the list is empty, so that the lifetime of its elements does not matter.
        self.many.set(unsafe { std::mem::transmute::<Vec<&'a [u8]>, Vec<&'static [u8]>>(many) });
        result
    }

    /// The buffer of the libraries, empty. For a function that encodes or decodes without running Lua code.
    #[inline]
    pub(crate) fn scratch(&self) -> RefMut<'_, Vec<u8>> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.clear();
        scratch
    }

    /// What a library builds counts as the script's memory.
    #[inline]
    pub(crate) fn check_scratch(&self, scratch: &[u8]) -> Result<(), Raise> {
        if scratch.len() <= self.interpreter.bytes_max() { Ok(()) } else { Err(Raise::Memory) }
    }

    /// The list of open tables, empty.
    #[inline]
    pub(crate) fn nesting(&self) -> RefMut<'_, Vec<Nesting>> {
        let mut nesting = self.nesting.borrow_mut();
        nesting.clear();
        nesting
    }

    /// Gives back what an unusual script made the buffers grow to.
    #[inline]
    pub(crate) fn shrink_buffers(&self) {
        const KEPT_BYTES: usize = 64 * 1024;
        for buffer in [&self.reply, &self.scratch] {
            let mut buffer = buffer.borrow_mut();
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

/// Takes the host back from the script.
struct TakeBack<'c>(&'c Cell<Option<*mut dyn Host>>);

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}
