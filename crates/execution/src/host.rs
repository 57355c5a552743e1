//! What the engine needs from its environment. The server provides it; tests provide fakes.

/// Time, passed in so that the engine never reads a clock by itself. Unix time may jump: it is for points in time (a
/// deadline, the time of a snapshot). Lengths of time (idle, paused, running) are measured with the monotonic clock.
pub trait Clock: Send + Sync {
    /// Unix time in microseconds.
    fn unix_us(&self) -> u64;
    /// A clock that never goes back, in nanoseconds from an arbitrary start.
    fn monotonic_ns(&self) -> u64;
    /// The monotonic clock in milliseconds.
    fn monotonic_ms(&self) -> u64 {
        self.monotonic_ns() / 1_000_000
    }
    /// Both at once: unix microseconds and monotonic nanoseconds.
    fn both(&self) -> (u64, u64) {
        (self.unix_us(), self.monotonic_ns())
    }
    /// True while unix time stands still: a log that several machines write says no later time yet.
    fn stands(&self) -> bool {
        false
    }
    /// Called about ten times a second. A clock that derives one time from the other compares them then.
    fn adjust(&self) {}
}

/// CPU time used by the process, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    pub user: f64,
    pub system: f64,
    pub main_thread_user: f64,
    pub main_thread_system: f64,
}

/// What the allocator reports, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryUse {
    /// Handed out by the allocator, size classes included.
    pub used: u64,
    /// Resident in memory as the operating system counts.
    pub resident: u64,
    /// The allocator's own bookkeeping.
    pub allocated: u64,
    pub active: u64,
    pub allocator_resident: u64,
}

/// How the server is to be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    /// Finish requests in flight first.
    pub graceful: bool,
    pub save: SaveOnExit,
    /// Stop even if saving fails.
    pub force: bool,
}

/// Whether a snapshot is written before the server exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveOnExit {
    /// If the data would be lost otherwise: there are save points and no journal.
    AsSet,
    Always,
    Never,
}

/// The process around the engine.
pub trait Host: Send + Sync {
    /// Bytes allocated now. Must be cheap: called before every write when there is a limit.
    fn used_memory(&self) -> u64;
    /// All figures, for INFO and MEMORY.
    fn memory(&self) -> MemoryUse;
    /// Returns free memory to the operating system.
    fn purge_memory(&self);
    /// Physical memory of the machine.
    fn total_memory(&self) -> u64;
    fn cpu(&self) -> CpuTime;
    fn process_id(&self) -> u32;
    /// The executable's path.
    fn executable(&self) -> String;
    /// The configuration file's path, empty when there is none.
    fn config_file(&self) -> String;
    /// Operating system and release, such as `Linux 6.1.0 x86_64`.
    fn os(&self) -> String;
    /// How many worker threads there are.
    fn threads(&self) -> usize;
    /// Stops the server.
    fn shutdown(&self, how: Shutdown);
    /// True when the last shutdown was cancelled because saving failed.
    fn shutdown_failed(&self) -> bool {
        false
    }
    /// Updates the configuration file to the given settings, which are all there are. Lines that are still true stay as
    /// they are.
    /// `users` are those that it defines, with their rules.
    fn rewrite_config(&self, settings: &[(&'static str, String)], users: &[(String, String)]) -> Result<(), String>;
    /// Applies settings that were just changed, where that may fail (port, open files), in the given order. An error
    /// names the setting and the reason; then nothing has changed, and the settings get their old values back.
    fn follow_settings(&self, _names: &[&'static str]) -> Result<(), (&'static str, String)> {
        Ok(())
    }
    /// The contents of the file of users (aclfile).
    fn read_users(&self) -> Result<Vec<u8>, String> {
        Err("there is none".to_owned())
    }
    /// Replaces the contents of the file of users.
    fn write_users(&self, _text: &[u8]) -> Result<(), String> {
        Err("there is none".to_owned())
    }
    /// Notes that a setting with an effect inside the server (log level, journal) was set.
    fn setting_changed(&self, name: &str);
    /// Drops something large outside the request path, if the host has a thread for it.
    fn discard(&self, garbage: Box<dyn std::any::Any + Send>) {
        drop(garbage);
    }
}
