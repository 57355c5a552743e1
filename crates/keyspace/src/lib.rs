//! The state of the server: names to values, with deadlines. Knows nothing of commands, clients, RESP or disks; an
//! instant is passed in.
//!
//! The folders, from the bottom up:
//! - `storage`: entries, tables and ordered sequences, which know nothing of types;
//! - `types`: one folder for each type of values, and the table that lists them ([`types::TYPES`]);
//! - `effects`: the facts that change state ([`Effect`]), and their bytes;
//! - `index`: indexes of records by a field;
//! - `interest`: watchers, tracking readers and waiters of keys;
//! - `shards`: a [`Keyspace`] is an array of locked shards, a shard has a [`db::Db`] for each database; only `apply`
//!   changes any of it;
//! - `views`: what readers see.

#![deny(unsafe_code)]

pub mod digest;
pub mod effects;
pub mod encoding;
pub mod footprint;
pub mod index;
pub mod interest;
pub mod shards;
pub mod storage;
mod sync;
pub mod types;
pub mod usage;
pub mod views;

pub use effects::{DATABASES, Definable, Effect, Image, Touch, Touches};
pub use encoding::BadEffect;
pub use shards::detached::KeyCopy;
pub use shards::locked::{Keyspace, Locked};
pub use shards::{db, definitions, garbage, locked, shard, snapshot};
pub use storage::{Key, KeyHashes, NameHash, NameHasher, Scalar};
pub use types::hash::HashRef;
pub use types::string::StringRef;
pub use types::{Applied, Cause, Change, Entry, Fate, Shapes, Thresholds, ValueType};
pub use usage::Usage;
pub use views::{IndexRef, SortedSetRef, Typed, Value};
