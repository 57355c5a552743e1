//! Lists.

mod elements;
mod ends;
mod moves;
mod table;

use execution::args::is_word;
use execution::command::Table;
use execution::error::CommandError;
use keyspace::types::list::Side;

pub(super) const TABLES: &[Table] = &[Table { group: "list", category: "list", commands: table::COMMANDS }];

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
