//! Which versions the server says it is.

/// The Redis whose commands these are, for programs that ask.
pub(crate) const REDIS_VERSION: &str = "7.4.0";
pub(crate) const HOLDFAST_VERSION: &str = env!("CARGO_PKG_VERSION");
