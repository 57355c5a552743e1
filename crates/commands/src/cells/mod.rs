//! Cells: named values with a version counter and past versions. Holdfast's own commands.

mod drop;
mod fork;
mod list;
mod read;
mod table;
mod write;

use crate::shared::options::error;
use execution::args::Args;
use execution::command::Table;
use execution::error::CommandError;
use keyspace::Key;
use keyspace::types::cell;

pub(super) const TABLES: &[Table] = &[Table { group: "cell", category: "", commands: table::COMMANDS }];

/// The next argument as the name of a cell.
#[inline]
fn name<'a>(args: &mut Args<'a>) -> Result<Key<'a>, CommandError> {
    let key = args.key()?;
    match cell::name_error(key.name) {
        None => Ok(key),
        Some(why) => Err(error(why.into())),
    }
}
