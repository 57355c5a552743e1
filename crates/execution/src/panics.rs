//! Catches panics of commands: the client gets an error, and the server goes on. Knows when a panic may be caught;
//! refuses to know which command it was.
//!
//! A handler that panics before it has recorded an effect has changed nothing: the panic is caught, and the client gets
//! an error. A handler that panics later leaves a partial change: memory can no longer be trusted, and the process
//! ends. The panic hook of the process decides which case it is ([`is_caught`]) before anything is unwound.

use crate::error::{CommandError, CommandResult};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    /// Effects recorded by this thread.
    static RECORDED: Cell<u64> = const { Cell::new(0) };
    /// The value of `RECORDED` when the innermost handler began whose panics are caught.
    static CAUGHT_AT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Panics caught by all threads.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Notes that an effect is about to be applied.
#[inline]
pub fn note_effect() {
    RECORDED.with(|recorded| recorded.set(recorded.get() + 1));
}

/// True when a panic of this thread, at this moment, is caught and answered with an error.
pub fn is_caught() -> bool {
    CAUGHT_AT.get() == Some(RECORDED.get())
}

/// How many panics were caught since the process began.
pub fn caught() -> u64 {
    CAUGHT.load(Relaxed)
}

/// Runs a handler. A panic before it has recorded an effect becomes an error of its command.
#[inline]
pub fn catch(handler: impl FnOnce() -> CommandResult) -> CommandResult {
    let began_at = RECORDED.get();
    let outer = CAUGHT_AT.replace(Some(began_at));
    let outcome = catch_unwind(AssertUnwindSafe(handler));
    CAUGHT_AT.set(outer);
    match outcome {
        Ok(result) => result,
        // The process has no hook that ends it, as in tests.
        Err(panic) if RECORDED.get() != began_at => resume_unwind(panic),
        Err(_) => {
            CAUGHT.fetch_add(1, Relaxed);
            Err(CommandError::Internal)
        }
    }
}

/// Like [`catch`], for a handler that may move to another thread: see `execution::scripts::detached`. IMPORTANT: this
/// function itself accesses no thread-local. The compiler may keep its address, which would be that of the first
/// thread.
#[inline(never)]
pub fn catch_across_threads<T>(handler: impl FnOnce() -> Result<T, CommandError>) -> Result<T, CommandError> {
    let (began_at, outer) = begin_catching();
    let outcome = catch_unwind(AssertUnwindSafe(handler));
    let recorded = end_catching(outer);
    match outcome {
        Ok(result) => result,
        Err(panic) if recorded != began_at => resume_unwind(panic),
        Err(_) => {
            CAUGHT.fetch_add(1, Relaxed);
            Err(CommandError::Internal)
        }
    }
}

#[inline(never)]
fn begin_catching() -> (u64, Option<u64>) {
    let began_at = RECORDED.get();
    (began_at, CAUGHT_AT.replace(Some(began_at)))
}

#[inline(never)]
fn end_catching(outer: Option<u64>) -> u64 {
    CAUGHT_AT.set(outer);
    RECORDED.get()
}

/// The panic state of a request that moves to another thread.
pub struct MovedPanicState {
    recorded: u64,
    caught_at: Option<u64>,
}

/// Takes the panic state of this thread's request, which continues on another thread. From now on no panic is caught
/// here.
#[inline(never)]
pub fn hand_over() -> MovedPanicState {
    MovedPanicState { recorded: RECORDED.get(), caught_at: CAUGHT_AT.take() }
}

impl MovedPanicState {
    /// Continues the request on this thread.
    #[inline(never)]
    pub fn take_over(self) {
        RECORDED.set(self.recorded);
        CAUGHT_AT.set(self.caught_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_without_an_effect_is_an_error() {
        let before = caught();
        assert!(!is_caught());
        assert_eq!(
            catch(|| {
                assert!(is_caught());
                panic!("on purpose")
            }),
            Err(CommandError::Internal)
        );
        assert!(caught() > before && !is_caught());
        assert_eq!(catch(|| Ok(())), Ok(()));
    }

    #[test]
    fn a_panic_is_caught_on_the_thread_to_which_its_request_moved() {
        let outcome = catch_across_threads::<()>(|| {
            let handed_over = hand_over();
            assert!(!is_caught());
            let elsewhere = std::thread::spawn(move || {
                note_effect();
                handed_over.take_over();
                is_caught()
            });
            assert!(elsewhere.join().unwrap(), "what that thread recorded before does not count");
            Err(CommandError::NotInteger)
        });
        assert_eq!(outcome, Err(CommandError::NotInteger));
    }

    #[test]
    fn a_panic_after_an_effect_is_not_caught() {
        let outcome = catch_unwind(|| {
            catch(|| {
                note_effect();
                assert!(!is_caught());
                // A command of a transaction that has changed something already.
                catch(|| {
                    assert!(is_caught());
                    Ok(())
                })?;
                assert!(!is_caught());
                panic!("on purpose")
            })
        });
        assert!(outcome.is_err());
    }
}
