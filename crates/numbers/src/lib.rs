//! Numbers as Redis reads and writes them, to the bit: integers, doubles, and the long doubles of INCRBYFLOAT. Knows
//! nothing of keys, replies or commands; the caller decides what a number means.

#![forbid(unsafe_code)]

mod decimal;
mod float_text;
mod grisu;
pub mod long_double;
mod natural;

pub use decimal::*;
