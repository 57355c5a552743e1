//! Which shards' locks a thread holds: a check that no thread waits for a lock that it holds itself. Debug builds count
//! them and panic with a backtrace; release builds compile to nothing. Refuses to know what a lock guards.
//!
//! All shards that a command needs are locked in one call. Taking one more while holding some could wait for the thread
//! itself, or for another thread that holds it and waits for one of ours.

#[cfg(debug_assertions)]
thread_local! {
    static COUNT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Lives as long as the lock of one shard.
pub(super) struct Held(());

impl Held {
    #[inline]
    pub(super) fn new() -> Held {
        #[cfg(debug_assertions)]
        COUNT.with(|count| count.set(count.get() + 1));
        Held(())
    }

    /// Called before locks of shards are taken.
    #[inline]
    #[track_caller]
    pub(super) fn assert_none() {
        #[cfg(debug_assertions)]
        COUNT.with(|count| {
            assert_eq!(count.get(), 0, "a thread that holds locks of shards must not take another");
        });
    }
}

#[cfg(debug_assertions)]
impl Drop for Held {
    fn drop(&mut self) {
        let _ = COUNT.try_with(|count| count.set(count.get() - 1));
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::keyspace::{Key, Keyspace};

    #[test]
    #[should_panic(expected = "must not take another")]
    fn a_thread_that_holds_a_shard_cannot_lock_another() {
        let keyspace = Keyspace::new(4);
        let _held = keyspace.lock_shard(1);
        let _ = keyspace.lock_key_unless_busy(Key::new(b"k"));
    }

    #[test]
    fn locks_that_were_given_back_are_not_held() {
        let keyspace = Keyspace::new(4);
        drop(keyspace.lock_all());
        keyspace.lock_shard(2).release_fairly();
        drop(keyspace.lock_batch(0, &[Key::new(b"a"), Key::new(b"b")]));
        drop(keyspace.lock_all());
    }
}
