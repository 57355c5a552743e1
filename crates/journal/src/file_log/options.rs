//! How a log in files behaves. Plain values.

use std::time::Duration;

/// How a [`crate::FileLog`] behaves.
#[derive(Clone, Debug)]
pub struct FileLogOptions {
    /// A segment that would grow beyond this ends, and the next begins. What is written at once is never split, so a
    /// larger batch makes a larger segment; so does a next segment that cannot be made.
    pub segment_bytes_max: u64,
    /// See [`crate::LogFiles::set_sync_every`].
    pub sync_every: Option<Duration>,
    /// See [`crate::LogFiles::set_zero_ahead`].
    pub zero_ahead: bool,
    /// How far zeros are written ahead of the data. On ext4 a sync that has no new length to record took 56 µs
    /// instead of 97 µs.
    pub zero_ahead_bytes: usize,
    /// The space that is kept behind the data of the segment being written, at least; see [`crate::Log::has_room`]. It
    /// is taken in steps of twice this. 0: none is kept, and that the disk is full is known when a write fails.
    pub reserve_bytes: u64,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        FileLogOptions {
            segment_bytes_max: 64 * 1024 * 1024,
            sync_every: Some(Duration::from_secs(1)),
            zero_ahead: false,
            zero_ahead_bytes: 1024 * 1024,
            reserve_bytes: 8 * 1024 * 1024,
        }
    }
}
