//! A panic in a command costs its client an error, not all clients the server. Knows when a panic may be caught;
//! refuses to know which command it was.
//!
//! A handler that panics before it has recorded an effect has changed nothing: the panic is caught, and the client gets
//! an error. One that panics later leaves a partial change: memory can no longer be trusted, and the process ends. The
//! panic hook of the process decides which case it is ([`is_caught`]) before anything is unwound.

use crate::error::{CommandError, CommandResult};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

thread_local! {
    /// Effects recorded by this thread.
    static RECORDED: Cell<u64> = const { Cell::new(0) };
    /// How many effects were recorded when the innermost handler began whose panic would be caught.
    static CAUGHT_AT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Panics caught by all threads.
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// An effect is about to be applied.
#[inline]
pub(crate) fn note_effect() {
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

/// Runs a handler. If it panics before it has recorded an effect, that is an error of its command.
#[inline]
pub(crate) fn catch(handler: impl FnOnce() -> CommandResult) -> CommandResult {
    let began_at = RECORDED.get();
    let outer = CAUGHT_AT.replace(Some(began_at));
    let outcome = catch_unwind(AssertUnwindSafe(handler));
    CAUGHT_AT.set(outer);
    match outcome {
        Ok(result) => result,
        // Without a hook that ends the process, as in tests.
        Err(panic) if RECORDED.get() != began_at => resume_unwind(panic),
        Err(_) => {
            CAUGHT.fetch_add(1, Relaxed);
            Err(CommandError::Internal)
        }
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
    fn a_panic_behind_an_effect_goes_on() {
        let outcome = catch_unwind(|| {
            catch(|| {
                note_effect();
                assert!(!is_caught());
                // A command of a transaction that has changed something.
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
