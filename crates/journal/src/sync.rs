//! The atomics of the parts that `tests/interleavings` checks. It includes their files in a crate where this module has
//! loom's atomics instead; so they name no others.

pub(crate) use std::sync::atomic;
