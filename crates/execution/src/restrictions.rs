//! Conditions of the whole server under which commands are refused. Knows which conditions hold; refuses to know which
//! commands they concern (`gates`).

use crate::error::{CommandError, CommandResult};
use bitflags::bitflags;
use locks::{Mutex, rank};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

/// How long requests wait for the data after reading has begun: short enough that clients hardly notice, and many times
/// what a small directory takes.
const HELD_WHILE_READING_MS: u64 = 300;

bitflags! {
    #[derive(Clone, Copy)]
    struct Restriction: u8 {
        /// The data is loading: only commands that do not need it pass.
        const LOADING = 1;
        /// A change could not be persisted.
        const NO_WRITES = 1 << 1;
        /// A script has been running for long.
        const BUSY = 1 << 2;
        /// This server is a follower: only the leader's batches change its state.
        const FOLLOWING = 1 << 3;
        /// The time of the log stands still, because nothing can be stored: what needs the time waits.
        const STANDING = 1 << 4;
    }
}

/// The restrictions in force.
#[derive(Default)]
pub struct Restrictions {
    /// Bits of [`Restriction`].
    in_force: AtomicU8,
    /// Until when requests wait for the data that is loading, on the monotonic clock.
    held_until_ms: AtomicU64,
    /// Why writes are refused, if they are.
    refusal: Mutex<String, { rank::REFUSAL }>,
}

impl Restrictions {
    /// True while any restriction is in force.
    #[inline]
    pub fn any(&self) -> bool {
        self.in_force.load(Relaxed) != 0
    }

    /// Begins or ends the load at the start.
    pub fn set_loading(&self, loading: bool) {
        self.held_until_ms.store(u64::MAX, Relaxed);
        self.set(Restriction::LOADING, loading);
    }

    pub fn is_loading(&self) -> bool {
        self.is_set(Restriction::LOADING)
    }

    /// Sets since when data is being read, which may take long; `None` when all data is read.
    pub fn set_reading(&self, since_ms: Option<u64>) {
        let until_ms = since_ms.map_or(u64::MAX, |since_ms| since_ms + HELD_WHILE_READING_MS);
        self.held_until_ms.store(until_ms, Relaxed);
    }

    /// True while requests wait for the data instead of being refused.
    pub fn holds_for_load(&self, now_ms: u64) -> bool {
        self.is_loading() && now_ms < self.held_until_ms()
    }

    pub fn held_until_ms(&self) -> u64 {
        self.held_until_ms.load(Relaxed)
    }

    /// Refuses writes with this error text, or lets them pass again.
    pub fn refuse_writes(&self, reason: Option<String>) {
        let is_refused = reason.is_some();
        if let Some(reason) = reason {
            *self.refusal.lock() = reason;
        }
        self.set(Restriction::NO_WRITES, is_refused);
    }

    /// True while writes are refused.
    pub fn refuses_writes(&self) -> bool {
        self.is_set(Restriction::NO_WRITES)
    }

    /// The error for a write that is refused because it could not be persisted.
    pub fn refusal(&self) -> CommandError {
        CommandError::said(format!("MISCONF {}", self.refusal.lock()))
    }

    /// Starts or stops following another server. A follower answers reads, and changes nothing by itself: expired keys
    /// read as absent and stay until the leader records their removal; the leader may have extended their deadlines
    /// before.
    pub fn set_following(&self, follows: bool) {
        self.set(Restriction::FOLLOWING, follows);
    }

    /// True while this server follows another one.
    #[inline]
    pub fn is_following(&self) -> bool {
        self.is_set(Restriction::FOLLOWING)
    }

    /// Notes whether the time of the log stands still.
    pub fn set_standing(&self, stands: bool) {
        self.set(Restriction::STANDING, stands);
    }

    /// True while the time of the log stands still.
    pub fn is_standing(&self) -> bool {
        self.is_set(Restriction::STANDING)
    }

    /// Notes whether a script has run for `busy-reply-threshold`.
    pub fn set_busy(&self, is_busy: bool) {
        self.set(Restriction::BUSY, is_busy);
    }

    /// True while clients get -BUSY because a script has run for `busy-reply-threshold`.
    pub fn is_busy(&self) -> bool {
        self.is_set(Restriction::BUSY)
    }

    /// Refuses writes while they could not be persisted, or on a follower.
    pub fn pass_write(&self) -> CommandResult {
        if self.is_following() {
            return Err(CommandError::fixed("READONLY You can't write against a read only replica."));
        }
        if self.refuses_writes() { Err(self.refusal()) } else { Ok(()) }
    }

    fn set(&self, restriction: Restriction, is_on: bool) {
        match is_on {
            true => self.in_force.fetch_or(restriction.bits(), Relaxed),
            false => self.in_force.fetch_and(!restriction.bits(), Relaxed),
        };
    }

    fn is_set(&self, restriction: Restriction) -> bool {
        Restriction::from_bits_retain(self.in_force.load(Relaxed)).contains(restriction)
    }
}
