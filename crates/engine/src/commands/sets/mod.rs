//! Sets.

mod algebra;
mod members;
mod random;
mod scan;
mod table;

use crate::error::CommandError;
use crate::execution::command::Table;
use crate::execution::recorder::Recorder;
use crate::execution::view::View;
use keyspace::types::set::SetRef;
use keyspace::{Key, Value};

pub(super) const TABLES: &[Table] = &[Table { group: "set", category: "set", commands: table::COMMANDS }];

/// The set at a key.
#[inline]
fn set<'v>(keys: &'v View<'_>, key: Key<'_>) -> Result<Option<SetRef<'v>>, CommandError> {
    expect_set(keys.get(key))
}

/// The set that a value is, if there is one.
#[inline]
fn expect_set(value: Option<Value<'_>>) -> Result<Option<SetRef<'_>>, CommandError> {
    match value {
        None => Ok(None),
        Some(Value::Set(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The set at a key, made ready to be changed.
#[inline]
fn set_to_change<'v>(keys: &'v mut Recorder<'_>, key: Key<'_>) -> Result<Option<SetRef<'v>>, CommandError> {
    keys.remove_if_expired(keys.db(), key);
    set(keys, key)
}
