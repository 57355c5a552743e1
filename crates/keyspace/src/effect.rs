//! The facts that change state. Knows what can change; refuses to know why, when or who asked.
//!
//! An effect says what is true afterwards, not what was asked for: deadlines are absolute, random choices and
//! sums are results. Applying the same effects to the same state gives the same state, today and on replay.

use super::hash::Form;
use super::key::Key;
use super::packed::Pair;
use super::scalar::Scalar;
use super::sorted_set::{self, Scored};
use smallvec::{SmallVec, smallvec};

/// One change of the state. Borrowed, so that recording it costs nothing.
#[derive(Clone, Copy)]
pub enum Effect<'a> {
    /// The key holds this string and expires then; whatever it held before is gone.
    StringSet { key: Key<'a>, value: Scalar<'a>, deadline: Option<u64> },
    /// The string (empty if the key is missing) has these bytes at `offset`; a gap is filled with zeros.
    StringWrite { key: Key<'a>, offset: usize, bytes: &'a [u8] },
    /// These fields of the hash have these values; a later pair beats an earlier one of the same name.
    HashSet { key: Key<'a>, fields: &'a [Pair<'a>], keep_deadlines: bool },
    /// These fields of the hash are gone; without a field left, so is the key.
    HashDelete { key: Key<'a>, fields: &'a [&'a [u8]], cause: Cause },
    /// The field expires then, or never.
    HashDeadline { key: Key<'a>, field: &'a [u8], deadline: Option<u64> },
    /// These members of the sorted set have these scores; of several with one name the last one counts.
    SortedSetAdd { key: Key<'a>, members: &'a [Scored<'a>] },
    /// These members of the sorted set are gone; without a member left, so is the key.
    SortedSetRemove { key: Key<'a>, members: &'a [&'a [u8]] },
    /// The key is gone.
    Delete { key: Key<'a>, cause: Cause },
    /// The key expires then, or never.
    Deadline { key: Key<'a>, deadline: Option<u64> },
    /// The value and deadline of `from` are now those of `to`, and `from` is gone.
    Rename { from: Key<'a>, to: Key<'a> },
    /// `to` in database `to_db` has a copy of the value and deadline of `from`.
    Copy { from: Key<'a>, to: Key<'a>, to_db: usize },
    /// The key with its deadline is in database `to_db` and no longer in this one.
    Move { key: Key<'a>, to_db: usize },
    /// The key holds this value and expires then; whatever it held before is gone. The whole of a key at once: how
    /// snapshots tell of it, and what a sorted set is stored by.
    Put { key: Key<'a>, value: Image<'a>, deadline: Option<u64> },
    /// The database is empty.
    FlushDb,
    /// All databases are empty.
    FlushAll,
    /// The two databases have changed places.
    SwapDb { a: usize, b: usize },
    /// There is a library of functions of that name, with this code.
    LibrarySet { name: &'a [u8], code: &'a [u8] },
    /// There is no library of that name.
    LibraryDelete { name: &'a [u8] },
    /// There is an index of that name, defined so (see [`Definition`](super::index::Definition)); with an empty definition
    /// there is none, whatever the configuration says.
    IndexSet { name: &'a [u8], definition: &'a [u8] },
    /// No client has decided about an index of that name.
    IndexDelete { name: &'a [u8] },
}

impl<'a> Effect<'a> {
    /// The keys that it changes; `None` when it changes whole databases.
    pub fn changed_keys(&self) -> Option<SmallVec<[Key<'a>; 2]>> {
        match *self {
            Effect::StringSet { key, .. }
            | Effect::StringWrite { key, .. }
            | Effect::HashSet { key, .. }
            | Effect::HashDelete { key, .. }
            | Effect::HashDeadline { key, .. }
            | Effect::SortedSetAdd { key, .. }
            | Effect::SortedSetRemove { key, .. }
            | Effect::Delete { key, .. }
            | Effect::Deadline { key, .. }
            | Effect::Move { key, .. }
            | Effect::Put { key, .. } => Some(smallvec![key]),
            Effect::Rename { from, to } => Some(smallvec![from, to]),
            Effect::Copy { to, .. } => Some(smallvec![to]),
            Effect::LibrarySet { .. }
            | Effect::LibraryDelete { .. }
            | Effect::IndexSet { .. }
            | Effect::IndexDelete { .. } => Some(SmallVec::new()),
            Effect::FlushDb | Effect::FlushAll | Effect::SwapDb { .. } => None,
        }
    }

    /// True when it is about what is defined beside the keys.
    pub fn is_definition(&self) -> bool {
        matches!(
            self,
            Effect::LibrarySet { .. }
                | Effect::LibraryDelete { .. }
                | Effect::IndexSet { .. }
                | Effect::IndexDelete { .. }
        )
    }

    /// True when it removes what is past its time.
    pub fn is_expiry(&self) -> bool {
        let (Effect::Delete { cause, .. } | Effect::HashDelete { cause, .. }) = self else { return false };
        *cause == Cause::Expired
    }
}

/// Why something is gone. It makes no difference to the state, but to those who are told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Deleted,
    Expired,
}

/// A whole value.
#[derive(Clone, Copy)]
pub enum Image<'a> {
    /// A string; `marked` when it was changed in place (OBJECT ENCODING tells).
    String { value: Scalar<'a>, marked: bool },
    /// A hash whose fields have different names; a table of that form, or packed. `deadlines` is empty or has an
    /// element for each field.
    Hash { fields: &'a [Pair<'a>], deadlines: &'a [Option<u64>], form: Option<Form> },
    /// A sorted set; a table of that form, or packed.
    SortedSet { members: &'a [Scored<'a>], form: Option<sorted_set::Form> },
}

/// What applying an effect came to, where the state alone can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Fields or members created or removed, keys removed, or the length of the string written.
    pub count: usize,
    /// The last field or member is gone, and the key with it.
    pub emptied: bool,
    /// The deadline of the value that a string replaced: it may have passed unnoticed.
    pub replaced_deadline: Option<u64>,
}
