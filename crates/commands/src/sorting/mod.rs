//! SORT: the elements of a list, a set or a sorted set in another order.

mod elements;
mod patterns;
mod request;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "generic", category: "", commands: table::COMMANDS }];
