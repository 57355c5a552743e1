//! The interface of exactly-once state. Knows no server: [`ExactlyOnceState`](crate::ExactlyOnceState) is one
//! implementation, [`MemoryState`](crate::MemoryState) another.

use crate::answer::Answer;
use crate::state_version::{Applied, OrderedVersion, Restored, StateVersion};

/// Keyed state that applies each update once. It is object-safe: a program takes an `Arc<dyn StateBackend<T>>`, and its
/// tests pass a [`MemoryState`](crate::MemoryState).
///
/// ```
/// use std::sync::Arc;
/// use holdfast_client::{Error, MemoryState, StateBackend};
///
/// async fn count(state: Arc<dyn StateBackend<i64>>, user: &str, offset: u64) -> Result<(), Error> {
///     state.add(user.as_bytes(), offset.into(), 1).await?;
///     Ok(())
/// }
///
/// let in_tests = count(Arc::new(MemoryState::new()), "user-1", 7);
/// # let _ = in_tests;
/// ```
pub trait StateBackend<T>: Send + Sync {
    /// Puts a value, unless this version or a newer one was applied.
    fn put<'a>(&'a self, key: &'a [u8], value: T, version: StateVersion) -> Answer<'a, Applied>
    where
        T: 'a;

    /// Puts a value in its order: numbers one by one from 1, pairs when they are sealed.
    fn put_ordered<'a>(&'a self, key: &'a [u8], value: T, version: OrderedVersion) -> Answer<'a, Applied>
    where
        T: 'a;

    /// The value of a key, and its version.
    fn get<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<(T, StateVersion)>>
    where
        T: 'a;

    /// Like [`get`](StateBackend::get), for several keys, in order.
    fn mget<'a>(&'a self, keys: &'a [&'a [u8]]) -> Answer<'a, Vec<Option<(T, StateVersion)>>>
    where
        T: 'a;

    /// Adds to a number, once for this version. A version that comes after a newer one is lost.
    fn add<'a>(&'a self, key: &'a [u8], version: StateVersion, number: i64) -> Answer<'a, Applied>;

    /// Adds to a number in its order, as [`put_ordered`](StateBackend::put_ordered).
    fn add_ordered<'a>(&'a self, key: &'a [u8], version: OrderedVersion, number: i64) -> Answer<'a, Applied>;

    /// Declares that no version below this one will arrive, and applies buffered updates. Returns how many.
    fn seal<'a>(&'a self, key: &'a [u8], version: OrderedVersion) -> Answer<'a, u64>;

    /// Returns the whole state as one blob, with the input position that it belongs to.
    fn snapshot<'a>(&'a self, position: Option<&'a [u8]>) -> Answer<'a, Vec<u8>>;

    /// Replaces the state by a snapshot, of this state or of another of the same kind. Returns the snapshot's position.
    fn restore<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>>;

    /// Takes from a snapshot what is newer than the current state. Returns the snapshot's position.
    fn merge<'a>(&'a self, snapshot: &'a [u8]) -> Answer<'a, Option<Vec<u8>>>;

    /// Stores a snapshot under a key. Returns how many keys of the state are in it.
    fn checkpoint<'a>(&'a self, key: &'a [u8], position: Option<&'a [u8]>) -> Answer<'a, u64>;

    /// Replaces the state by a checkpoint. `None` if there is none; then nothing is changed.
    fn restore_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>>;

    /// Takes from a checkpoint what is newer than the current state. `None` if there is none.
    fn merge_checkpoint<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Restored>>;
}
