//! String commands.

mod get;
mod numbers;
mod ranges;
mod set;
mod set_if;
