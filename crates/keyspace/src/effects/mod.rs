//! The facts that change state, and their bytes. Knows types and keys; refuses to know where values are stored.

pub mod codec;
pub mod effect;

pub use effect::{DATABASES, Definable, Effect, Image, Touch, Touches};
