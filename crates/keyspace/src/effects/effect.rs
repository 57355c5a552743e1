//! The facts that change state. Knows what can change; refuses to know why, when or for which client.
//!
//! An effect states the result, not the request: deadlines are absolute, random choices and sums are results. Applying
//! the same effects to the same state gives the same state, live and on replay.
//!
//! There are two levels. An [`Effect`] is about keys, databases and definitions; a change inside a value is its type's
//! [`Change`].

use crate::storage::Key;
use crate::types::{Cause, Change, Fate, ValueType};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;

/// How many databases there are, as in Redis.
pub const DATABASES: usize = 16;

/// One change of the state. Borrowed, so that recording it costs nothing.
#[derive(Clone, Copy)]
pub enum Effect<'a> {
    /// The value of the key changes.
    Change { key: Key<'a>, change: Change<'a> },
    /// A claim has used a rate up until this time, in unix nanoseconds. Not a key: the name is that of an index and a
    /// group ([`groups::encode_name`](crate::index::groups::encode_name)), and belongs to a shard as keys do. States that
    /// are over at `now_ns` are forgotten.
    Rate { key: Key<'a>, until_ns: u64, now_ns: u64 },
    /// The key is deleted.
    Delete { key: Key<'a>, cause: Cause },
    /// The key expires at this instant, or never.
    Deadline { key: Key<'a>, deadline: Option<u64> },
    /// `to` has the value and deadline of `from`, and `from` is deleted.
    Rename { from: Key<'a>, to: Key<'a> },
    /// `to` in database `to_db` has a copy of the value and deadline of `from`.
    Copy { from: Key<'a>, to: Key<'a>, to_db: usize },
    /// The key with its deadline is in database `to_db` and no longer in this one.
    Move { key: Key<'a>, to_db: usize },
    /// The key holds this value with this deadline; its old value is replaced. Used for keys in snapshots, and for
    /// values that are stored whole.
    Put { key: Key<'a>, value: Image<'a>, deadline: Option<u64> },
    /// The database is empty.
    FlushDb,
    /// All databases are empty.
    FlushAll,
    /// The two databases are swapped.
    SwapDb { a: usize, b: usize },
    /// Defines something that is not a key.
    Define { what: Definable, name: &'a [u8], definition: &'a [u8] },
    /// Removes a definition.
    Undefine { what: Definable, name: &'a [u8] },
}

/// A whole value: its type, and the bytes that [`ValueType::read_image`] reads.
#[derive(Clone, Copy)]
pub struct Image<'a> {
    pub value_type: &'static ValueType,
    pub bytes: &'a [u8],
}

/// Kinds of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definable {
    /// A library of functions; the definition is its code.
    Library,
    /// An index of records (see [`Definition`](crate::index::Definition)). An empty definition means that the index was
    /// dropped, even if it is configured.
    Index,
    /// An incomplete fork of cells. The name is the number of the database, a byte, and the destination prefix; the
    /// definition is empty. After a start, keys under the prefix are removed.
    Fork,
    /// The remaining work of a restore of registers. Under the number of the database, a byte, and a number of four
    /// bytes, big endian, the definition holds [`Step`](crate::types::register::plan::Step)s. Under the number of the
    /// database alone it is empty and says that all steps are there: they are applied after a start. Undefining a name
    /// removes all names that begin with it.
    Restore,
    /// The function that is called for an event of a session; the definition is its name.
    Hook,
    /// Limits of groups ([`Limits`](crate::index::groups::Limits)). The name is that of an index and of what the limits
    /// are for ([`groups::encode_name`](crate::index::groups::encode_name)).
    Limits,
}

/// What an effect touches.
#[derive(Clone, Debug)]
pub enum Touches<'a> {
    /// Some keys.
    Keys(SmallVec<[Touch<'a>; 2]>),
    /// All keys of these databases are deleted.
    Emptied(Range<usize>),
    /// The keys of these two databases are swapped.
    Swapped(usize, usize),
    /// A definition. For an index, with its name as a key, because that key now reads differently in every database.
    Definition(Option<Key<'a>>),
}

impl Touches<'_> {
    /// True for definitions (functions, indexes), which are not keys.
    pub fn is_definition(&self) -> bool {
        matches!(self, Touches::Definition(_))
    }
}

/// A key that an effect touches.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    pub db: usize,
    pub key: Key<'a>,
    /// What happens to the key.
    pub fate: Fate,
}

impl<'a> Effect<'a> {
    /// What the effect touches when it is applied in database `db`. Watchers, client-side caching, waiting clients,
    /// notifications and replay use only this function. IMPORTANT: no wildcard arm: a new effect must state what it
    /// touches.
    pub fn touches(&self, db: usize) -> Touches<'a> {
        let touch = |db: usize, key: Key<'a>, fate: Fate| Touch { db, key, fate };
        let replaced = Fate::Gains { replaces: true };
        Touches::Keys(match *self {
            Effect::Change { key, change } => smallvec![touch(db, key, change.fate())],
            Effect::Rate { key, .. } => smallvec![touch(db, key, Fate::Noted)],
            Effect::Delete { key, cause } => smallvec![touch(db, key, Fate::Gone(cause))],
            Effect::Deadline { key, deadline: _ } => smallvec![touch(db, key, Fate::Deadline)],
            Effect::Rename { from, to } => {
                smallvec![touch(db, from, Fate::Gone(Cause::Deleted)), touch(db, to, replaced)]
            }
            Effect::Copy { from, to, to_db } => smallvec![touch(db, from, Fate::Read), touch(to_db, to, replaced)],
            Effect::Move { key, to_db } => {
                smallvec![touch(db, key, Fate::Gone(Cause::Deleted)), touch(to_db, key, replaced)]
            }
            Effect::Put { key, value: _, deadline: _ } => {
                smallvec![touch(db, key, Fate::Gains { replaces: false })]
            }
            Effect::FlushDb => return Touches::Emptied(db..db + 1),
            Effect::FlushAll => return Touches::Emptied(0..DATABASES),
            Effect::SwapDb { a, b } => return Touches::Swapped(a, b),
            Effect::Define { what, name, .. } | Effect::Undefine { what, name } => {
                return Touches::Definition(match what {
                    Definable::Index => Some(Key::new(name)),
                    Definable::Library | Definable::Fork | Definable::Restore | Definable::Hook | Definable::Limits => {
                        None
                    }
                });
            }
        })
    }

    /// An effect that changes a key's value.
    #[inline]
    pub fn change(key: Key<'a>, change: impl Into<Change<'a>>) -> Effect<'a> {
        Effect::Change { key, change: change.into() }
    }
}
