//! Records that a thread holds shard locks. Debug builds check that it locks no shard while it holds one, or a lock of
//! a higher rank (`locks::rank`); release builds compile to nothing.
//!
//! All shards that a command needs are locked in one call. Locking one more while holding some could deadlock, with the
//! thread itself or with another one.

use locks::rank;

/// Lives as long as the lock of one shard.
pub(super) struct Held(#[allow(dead_code, reason = "kept for its drop")] locks::Held);

impl Held {
    #[inline]
    pub(super) fn new() -> Held {
        Held(locks::Held::unchecked(rank::SHARDS))
    }

    /// Must be called before shards are locked.
    #[inline]
    #[track_caller]
    pub(super) fn assert_none() {
        locks::Held::check(rank::SHARDS);
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use crate::{Key, Keyspace};

    #[test]
    #[should_panic(expected = "must not take SHARDS")]
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
        drop(keyspace.lock_ahead(0, &[Key::new(b"a"), Key::new(b"b")], true));
        drop(keyspace.lock_all());
    }
}
