//! How large a load is. Knows nothing of what it is made of.

/// Connections that send at once.
pub(crate) const CLIENTS: u32 = 50;

/// Keys in the preloaded data sets, and the range of redis-benchmark's random numbers.
pub(crate) const KEYS: u64 = 100_000;
