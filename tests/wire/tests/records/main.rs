//! Records: hashes that change if they hold what is expected, that are found by what they hold, and that are kept in
//! indexes. Holdfast's own commands; Redis has none like them, and there these tests do nothing.

mod claim;
mod claim_waits;
mod copies;
mod exact;
mod exchange;
mod filling;
mod find;
mod groups;
mod groups_races;
mod indexes;
mod keys;
mod mistakes;
mod numbers;
mod random;
mod range;
mod support;
mod sweep;
mod sweep_races;
mod tables;

#[path = "../process/support.rs"]
#[allow(dead_code, reason = "the tests of the process use all of it, these some")]
mod process;
