//! What some commands compute and Redis defines to the byte: patterns, longest common subsequences, bit fields, places
//! on earth, estimates of how many there are, the order of equal elements, digests of strings. Bytes in, bytes out; knows nothing of keys,
//! replies or clocks.

#![forbid(unsafe_code)]

pub mod bits;
pub mod content_digest;
pub mod geohash;
pub mod glob;
pub mod hyperloglog;
pub mod lcs;
pub mod nearest;
pub mod partial_sort;
