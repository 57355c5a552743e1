//! Redis's file formats: RDB, AOF, listpack, ziplist, zipmap, LZF. Bytes in, values out, and back. Refuses to know paths,
//! clocks, and what becomes of the values.

mod aof_commands;
pub mod aof_file;
mod input;
mod packed;
pub mod rdb;
pub mod rdb_file;
mod value;

pub use aof_commands::commands_for;
pub use value::{HashEntry, Kind, Noun, SortedSetEntry, Value};
