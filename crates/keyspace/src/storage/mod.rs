//! How names and values lie in memory: entries, tables, ordered sequences, packed items. Knows bytes and hashes;
//! refuses to know value types, databases and shards.

#[allow(unsafe_code, reason = "it packs a name and its value into one allocation")]
pub mod entry;
pub mod ids;
pub(crate) mod item;
pub mod key;
#[allow(unsafe_code, reason = "there is no safe way to ask for it")]
pub(crate) mod prefetch;
pub mod ranked;
pub mod scalar;
pub mod segmented;
pub mod shapes;
pub mod size_class;
pub mod table;

pub use entry::Kind;
pub use ids::NameId;
pub use key::{Key, KeyHashes};
pub use scalar::Scalar;
pub use table::{NameHash, NameHasher};
