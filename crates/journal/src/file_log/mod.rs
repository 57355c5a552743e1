//! The log in segment files: a tail in memory, a writer, a thread that syncs, and readers that follow.

mod core;
mod follower;
mod log;
mod options;
mod sync_state;
mod sync_thread;
mod tail;
mod watermarks;
mod writer;

pub(crate) use core::StoredSegment;
pub use log::FileLog;
pub(crate) use log::{LogEnd, Resumed};
pub use options::FileLogOptions;
