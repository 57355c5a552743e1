//! A log with its snapshots in memory, for tests: several processes of a simulation share it, and it loses, delays and
//! repeats acknowledgements, refuses, fences and vanishes, by seed. Knows nothing of files.

mod faults;
mod follower;
mod log;
mod place;
mod snapshots;
mod state;

pub use faults::Faults;
pub use log::MemoryLog;
pub use place::MemoryPlace;
