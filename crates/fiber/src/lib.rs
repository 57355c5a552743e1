//! A stack that can be paused and resumed. The work on it can pause at any depth; the owner of the [`Fiber`] resumes
//! it, on any thread. Refuses to know what the work is.
//!
//! A safe interface to `corosensei` for one purpose: a script runs on its worker's thread until it turns out to be
//! long, and then continues on another thread, with its C frames.

#![allow(unsafe_code, reason = "it keeps a stack alive across threads, which the compiler cannot check")]

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::ptr;

/// The memory of a fiber's stack. It can be reused when the fiber has ended.
pub struct Stack(DefaultStack);

impl Stack {
    /// Reserves address space. The kernel provides memory when it is touched; a guard page lies below the stack.
    pub fn new(bytes: usize) -> io::Result<Stack> {
        DefaultStack::new(bytes).map(Stack)
    }
}

/// Work that has not ended. IMPORTANT: a paused fiber that is dropped is leaked, because unwinding it would unwind C
/// frames.
pub struct Fiber<R: 'static> {
    coroutine: ManuallyDrop<Coroutine<(), (), R, DefaultStack>>,
}

/// The result of [`Fiber::resume`].
pub enum FiberState<R: 'static> {
    /// The work has ended with this result. Its stack can be reused.
    Done(R, Stack),
    /// The work has called [`pause`].
    Paused(Fiber<R>),
}

thread_local! {
    /// The yielder of the fiber that runs on this thread; null while none runs.
    static CURRENT: Cell<*const Yielder<(), ()>> = const { Cell::new(ptr::null()) };
}

impl<R: 'static> Fiber<R> {
    /// Creates a fiber. Its work begins with the first [`resume`](Fiber::resume).
    ///
    /// # Safety
    /// The work may continue on another thread after each [`pause`]. Everything that it keeps on its stack across a
    /// pause must allow that: no guard that belongs to a thread, no reference into a thread-local. A function that has
    /// a thread-local's address before a pause must not use it after the pause: access thread-locals in separate
    /// functions that are not inlined.
    pub unsafe fn new(stack: Stack, work: impl FnOnce() -> R + Send + 'static) -> Fiber<R> {
        let body = move |yielder: &Yielder<(), ()>, ()| {
            enter(yielder);
            // Runs also when the work panics.
            let _left = Left;
            work()
        };
        Fiber { coroutine: ManuallyDrop::new(Coroutine::with_stack(stack.0, body)) }
    }

    /// Runs the work until it ends or pauses. A panic of the work is propagated.
    pub fn resume(mut self) -> FiberState<R> {
        assert!(CURRENT.get().is_null(), "a fiber must not resume another");
        match self.coroutine.resume(()) {
            CoroutineResult::Yield(()) => FiberState::Paused(self),
            CoroutineResult::Return(result) => {
                // SAFETY: taken once: `self` is forgotten right after, so it is not dropped again.
                let coroutine = unsafe { ManuallyDrop::take(&mut self.coroutine) };
                FiberState::Done(result, Stack(coroutine.into_stack()))
            }
        }
    }
}

// SAFETY: the caller of `new` promises that everything on the stack may move to another thread, and the result is
// `Send`.
unsafe impl<R: Send + 'static> Send for Fiber<R> {}

/// Clears [`CURRENT`] when the work ends.
struct Left;

impl Drop for Left {
    fn drop(&mut self) {
        leave();
    }
}

/// Pauses the fiber that runs on this thread, and returns true when it is resumed, possibly on another thread. Returns
/// false at once if no fiber runs.
pub fn pause() -> bool {
    let current = leave();
    if current.is_null() {
        return false;
    }
    // SAFETY: `enter` set it from a reference that lives as long as the work runs, and the work is running: it called
    // this function.
    let yielder = unsafe { &*current };
    yielder.suspend(());
    enter(yielder);
    true
}

/// True when a fiber runs on this thread.
pub fn is_running() -> bool {
    !CURRENT.get().is_null()
}

/// IMPORTANT: not inlined, nor is `leave`: the calling function may have moved to another thread in between.
#[inline(never)]
fn enter(yielder: &Yielder<(), ()>) {
    CURRENT.set(yielder);
}

#[inline(never)]
fn leave() -> *const Yielder<(), ()> {
    CURRENT.replace(ptr::null())
}
