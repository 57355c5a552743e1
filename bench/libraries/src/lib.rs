//! What comparisons of libraries share: what an operation costs, the scripts that bindings of Lua run, and the table that is
//! printed. Knows no library.

mod cost;
pub mod scripts;
mod table;

pub use cost::{Cost, CountingAllocator, Meter, median};
pub use table::{Row, print};
