//! The state of the server: names to values, with deadlines. Knows nothing of commands, clients, RESP or disks.
//!
//! The way through: a [`Keyspace`] is a row of locked [`shard::Shard`]s, a shard has a [`db::Db`] for each
//! database, a database is a [`table::Table`] of [`entry::Entry`]s and the indexes that `apply` keeps beside
//! it. [`effect::Effect`] is the only way to change any of it.

#![deny(unsafe_code)]

pub mod apply;
pub mod awaited;
pub mod codec;
pub mod db;
pub mod definitions;
pub mod effect;
#[allow(unsafe_code, reason = "it packs a name and its value into one allocation")]
pub mod entry;
pub mod footprint;
pub mod hash;
mod held;
pub mod index;
mod index_parts;
pub mod index_set;
mod item;
pub mod key;
pub mod locked;
pub mod object;
pub mod packed;
#[allow(unsafe_code, reason = "there is no safe way to ask for it")]
mod prefetch;
pub mod ranked;
pub mod scalar;
pub mod segmented;
mod shapes;
pub mod shard;
pub mod snapshot;
pub mod sorted_set;
pub mod table;
pub mod tracked;
pub mod usage;
pub mod value;
pub mod watched;

pub use effect::{Applied, Cause, Effect, Image};
pub use hash::HashRef;
pub use key::Key;
pub use locked::{Keyspace, Locked};
pub use scalar::Scalar;
pub use sorted_set::SortedSetRef;
pub use usage::Usage;
pub use value::Value;
