//! Lists.

mod elements;
mod ends;
mod moves;
mod table;

use crate::args::is_word;
use crate::error::CommandError;
use crate::execution::command::Table;
use crate::execution::view::View;
use keyspace::types::list::{ListRef, Side};
use keyspace::{Key, Value};

pub(super) const TABLES: &[Table] = &[Table { group: "list", category: "list", commands: table::COMMANDS }];

/// The list at a key.
#[inline]
fn list<'v>(keys: &'v View<'_>, key: Key<'_>) -> Result<Option<ListRef<'v>>, CommandError> {
    match keys.get(key) {
        None => Ok(None),
        Some(Value::List(list)) => Ok(Some(list)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The end of a list that an argument names.
fn side(word: &[u8]) -> Result<Side, CommandError> {
    if is_word(word, "LEFT") {
        Ok(Side::Left)
    } else if is_word(word, "RIGHT") {
        Ok(Side::Right)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The event of a push.
fn push_event(side: Side) -> &'static str {
    match side {
        Side::Left => "lpush",
        Side::Right => "rpush",
    }
}

/// The event of a pop.
fn pop_event(side: Side) -> &'static str {
    match side {
        Side::Left => "lpop",
        Side::Right => "rpop",
    }
}
