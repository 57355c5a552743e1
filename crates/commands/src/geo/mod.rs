//! Points on earth, as members of sorted sets: the score of each is its geohash.

mod members;
mod search;
mod table;

use execution::command::Table;

pub(super) const TABLES: &[Table] = &[Table { group: "geo", category: "geo", commands: table::COMMANDS }];
