//! Everything about a command but its code: the shape of its row, where its keys are, and the table that finds rows.
//! COMMAND, locking, ACL categories, the gates and the documentation all read it here; no code compares command names.
//! Knows nothing of what any command does.

mod flags;
mod key_spec;
mod registry;
mod row;

pub use flags::Flags;
pub use key_spec::{
    Find, FoundKeys, KeyFlags, KeyRange, KeySpec, Keys, KeysBegin, Locks, counted, counted_pairs, key, keys, keys_after,
};
pub use registry::list;
pub use registry::{ACL_CATEGORIES, CommandRow, Registry, registry};
pub use row::{
    Access, Arity, Channels, Command, DatabasesUsed, Declared, Handler, Searched, Table, at_least, catalogue,
    container, definition, definition_on, exactly, overview, read, script, server, write,
};
