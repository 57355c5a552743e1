//! Strings as rows of bits.

mod bit;
mod bitfield;
mod bitop;
