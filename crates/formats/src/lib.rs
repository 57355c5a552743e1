//! Redis's file formats: RDB, AOF, listpack, ziplist, zipmap, LZF. Bytes in, values out, and back. Refuses to know paths,
//! clocks, and what becomes of the values.

pub mod aof_file;
mod input;
mod listpack;
mod lzf;
mod packed;
pub mod rdb;
pub mod rdb_file;
mod ziplist;
mod zipmap;
