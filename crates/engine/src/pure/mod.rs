//! Arithmetic and text that Redis defines to the bit and that needs nothing but its arguments: bytes in, bytes out.
//! Knows nothing of keys, replies, clocks, paths or memory policy; whoever calls decides what an answer means.

pub mod aof_file;
pub mod bits;
mod float_text;
pub mod glob;
mod grisu;
mod input;
pub mod lcs;
mod listpack;
pub mod long_double;
mod lzf;
mod natural;
pub mod numbers;
mod packed;
#[allow(unsafe_code, reason = "there is no safe way to ask for it")]
pub(crate) mod prefetch;
pub mod ranked;
pub mod rdb;
pub mod rdb_file;
#[cfg(test)]
mod test_random;
mod ziplist;
mod zipmap;
