//! The atomics of the files that `tests/interleavings` checks. That crate includes these files beside a module of this
//! name with loom's atomics, so the files use no others.

pub(crate) use std::sync::atomic;
