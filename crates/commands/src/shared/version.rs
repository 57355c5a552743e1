//! The versions that the server reports.

/// The version of Redis that clients see.
pub const REDIS_VERSION: &str = "7.4.0";
pub const HOLDFAST_VERSION: &str = env!("CARGO_PKG_VERSION");
