//! What some commands compute and Redis defines to the byte: patterns, longest common subsequences, bit fields. Bytes in,
//! bytes out; knows nothing of keys, replies or clocks.

pub mod bits;
pub mod glob;
pub mod lcs;
