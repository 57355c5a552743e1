//! The port that answers as a Sentinel: the replies of a real one, what clients are told when the writer changes, who may ask,
//! and clients that ask badly. Every test starts servers of its own; aimed at any other server they do nothing.

mod access;
mod agreement;
mod changes;
mod group;
mod hostile;
mod links;

#[allow(dead_code, reason = "shared with the tests of the process, which use all of it")]
#[path = "../process/support.rs"]
mod process;
#[allow(dead_code, unused_imports, reason = "shared with the tests of persistence, which use all of it")]
#[path = "../persistence/support.rs"]
mod support;
