//! What readers see: values of keys, and indexes as sorted sets. Knows shards and types; refuses to know commands.

pub mod index_ref;
pub mod sorted_set_ref;
pub mod value;

pub use index_ref::IndexRef;
pub use sorted_set_ref::{Members, SortedSetRef};
pub use value::{Typed, Value};
