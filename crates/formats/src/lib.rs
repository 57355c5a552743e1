//! Redis's file formats: RDB, AOF, listpack, ziplist, zipmap, LZF. Bytes in, values out, and back. Refuses to know
//! paths, clocks, and what the values are used for.

#![forbid(unsafe_code)]

pub mod aof_file;
mod input;
mod packed;
pub mod payload;
mod rdb;
pub mod rdb_file;
pub mod replication;
mod values;

pub use values::{
    EntryId, NodeEntry, NodeField, NodeWriter, Stream, StreamConsumer, StreamCounts, StreamGroup, StreamNode,
    StreamPending,
};
pub use values::{HashEntry, Kind, Noun, OwnValue, SortedSetEntry, Texts, Value, whole};
