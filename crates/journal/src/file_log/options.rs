//! Options of a log in files. Plain values.

use std::time::Duration;

/// Options of a [`crate::FileLog`].
#[derive(Clone, Debug)]
pub struct FileLogOptions {
    /// The segment size at which the next segment begins. One write is never split, so a larger batch makes a larger
    /// segment; so does a failure to create the next segment.
    pub segment_bytes_max: u64,
    /// See [`crate::Maintenance::set_sync_every`].
    pub sync_every: Option<Duration>,
    /// See [`crate::Maintenance::set_zero_ahead`].
    pub zero_ahead: bool,
    /// How many zeros are written ahead of the data. On ext4 a sync without a new file length took 56 µs instead of 97
    /// µs.
    pub zero_ahead_bytes: usize,
    /// The least space reserved after the data of the current segment; see [`crate::Log::has_room`]. It is reserved in
    /// steps of twice this. 0: nothing is reserved, and a full disk is detected when a write fails.
    pub reserve_bytes: u64,
    /// The sync thread creates the file of the next segment and reserves its space ahead of time: nobody waits for it.
    pub prepare_next: bool,
}

impl Default for FileLogOptions {
    fn default() -> Self {
        FileLogOptions {
            segment_bytes_max: 64 * 1024 * 1024,
            sync_every: Some(Duration::from_secs(1)),
            zero_ahead: false,
            zero_ahead_bytes: 1024 * 1024,
            reserve_bytes: 8 * 1024 * 1024,
            prepare_next: true,
        }
    }
}
