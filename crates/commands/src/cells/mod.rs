//! Cells: named values with a version counter and past versions. Holdfast's own commands.

mod drop;
mod fork;
mod list;
mod read;
mod table;
mod write;

use crate::shared::options::{argument, error, shown};
use execution::args::Args;
use execution::command::Table;
use execution::error::CommandError;
use keyspace::Key;
use keyspace::types::cell;

pub(super) const TABLES: &[Table] = &[Table { group: "cell", category: "cell", commands: table::COMMANDS }];

/// The next argument as the prefix of a branch. It ends in a separator: `main` would take `maintenance/` along.
fn branch<'a>(args: &mut Args<'a>, what: &str) -> Result<&'a [u8], CommandError> {
    let prefix = argument(args, what)?;
    match prefix.last() {
        Some(b'/' | b':') => Ok(prefix),
        _ => Err(error(format!("{what} must end in '/' or ':', not {}", shown(prefix)))),
    }
}

/// The next argument as the name of a cell.
#[inline]
fn name<'a>(args: &mut Args<'a>) -> Result<Key<'a>, CommandError> {
    let key = args.key()?;
    match cell::name_error(key.name) {
        None => Ok(key),
        Some(why) => Err(error(why.into())),
    }
}
