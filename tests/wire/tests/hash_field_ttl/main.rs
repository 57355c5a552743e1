//! Hash fields that expire on their own.

mod expire;
mod getex;
mod meaning;
