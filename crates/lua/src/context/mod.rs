//! What the functions of one Lua state share. Refuses to know what a function does with it.

mod nesting;
mod random;
mod registration;
mod shared;

pub(crate) use nesting::{Kind, Nesting};
pub(crate) use random::Random;
pub use registration::FunctionInfo;
pub(crate) use registration::Registration;
pub(crate) use shared::Context;
