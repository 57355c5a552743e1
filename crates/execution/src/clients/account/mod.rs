//! What a user takes of the server, and what it may take: its connections, operations, bytes and memory. Knows numbers;
//! refuses to know users, rules and what is done at a limit.
//!
//! | file | has |
//! | --- | --- |
//! | `limits` | the limits, and their names in rules |
//! | `bucket` | how much of something is left in this second |
//! | `usage` | the totals, counted by each worker for itself |

pub mod bucket;
pub mod limits;
pub mod usage;

use bucket::Bucket;
use limits::{Limit, Limits};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use usage::{Counts, Usage, UsageCounters};

/// What a user takes and may take. Clients of the user have it, on any thread.
#[derive(Default)]
pub struct Account {
    /// 0 = no limit.
    limits: [AtomicU64; Limit::ALL.len()],
    /// A limit by the second is set: the buckets are in use.
    has_rates: AtomicBool,
    operations: Bucket,
    bytes_in: Bucket,
    bytes_out: Bucket,
    /// About how much memory its clients hold, not less: what was seen, and what was added since. Only while there is a limit.
    memory: AtomicU64,
    /// Connections that are this user.
    clients: AtomicU64,
    /// Those of them whose next request is delayed now.
    delayed_clients: AtomicU64,
    pub counters: UsageCounters,
}

/// Clients that are delayed by bytes come back one after the other, at this distance: what the next request of each will
/// take is not known.
const DISTANCE_NS: u64 = 100_000;
/// They come back within this time after the first: a bucket holds no more than a second.
const SPREAD_NS_MAX: u64 = bucket::BURST_NS;

impl Account {
    /// A limit; 0 = none.
    #[inline]
    pub fn limit(&self, limit: Limit) -> u64 {
        self.limits[limit as usize].load(Relaxed)
    }

    /// The longest reply.
    #[inline]
    pub fn reply_bytes_max(&self) -> usize {
        match self.limit(Limit::Reply) {
            0 => usize::MAX,
            max => usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// Sets all limits. A bucket whose limit has changed is full. True when any limit has changed.
    pub fn set_limits(&self, limits: &Limits) -> bool {
        let mut has_changed = false;
        for limit in Limit::ALL {
            let (slot, value) = (&self.limits[limit as usize], limits.get(limit));
            if slot.swap(value, Relaxed) != value {
                has_changed = true;
                match limit {
                    Limit::Operations => self.operations.fill(),
                    Limit::BytesIn => self.bytes_in.fill(),
                    Limit::BytesOut => self.bytes_out.fill(),
                    // It has to be looked at first.
                    Limit::Memory => self.memory.store(u64::MAX, Relaxed),
                    Limit::Clients | Limit::Reply => {}
                }
            }
        }
        let rates = [Limit::Operations, Limit::BytesIn, Limit::BytesOut];
        self.has_rates.store(rates.into_iter().any(|limit| limits.get(limit) > 0), Relaxed);
        has_changed
    }

    // Connections.

    /// Counts one more connection. False when there are as many as there may be.
    pub fn enter(&self) -> bool {
        let max = self.limit(Limit::Clients);
        let enter = |clients: u64| (max == 0 || clients < max).then_some(clients + 1);
        let has_entered = self.clients.fetch_update(Relaxed, Relaxed, enter).is_ok();
        if !has_entered {
            self.counters.count_refused(Limit::Clients);
        }
        has_entered
    }

    /// Counts one more connection, whatever the limit is.
    pub fn enter_anyway(&self) {
        self.clients.fetch_add(1, Relaxed);
    }

    /// Counts one connection less.
    pub fn leave(&self) {
        let before = self.clients.fetch_sub(1, Relaxed);
        assert!(before > 0, "only a connection that has entered leaves");
    }

    pub fn clients(&self) -> u64 {
        self.clients.load(Relaxed)
    }

    // Memory.

    /// Adds memory that a client is about to hold. False when there would be more than the limit; then nothing is added.
    /// `held_bytes` counts exactly what all its clients hold. It visits them all, so it is asked only when the limit seems
    /// to be reached: what was given back since it was last asked is not known otherwise.
    pub fn add_memory(&self, bytes: u64, held_bytes: impl FnOnce() -> u64) -> bool {
        let limit = self.limit(Limit::Memory);
        if limit == 0 {
            return true;
        }
        let add = |held: u64| held.checked_add(bytes).filter(|held| *held <= limit);
        if self.memory.fetch_update(Relaxed, Relaxed, add).is_ok() {
            return true;
        }
        self.see_memory(held_bytes());
        let fits = self.memory.fetch_update(Relaxed, Relaxed, add).is_ok();
        if !fits {
            self.counters.count_refused(Limit::Memory);
        }
        fits
    }

    /// Notes how much memory its clients hold.
    pub fn see_memory(&self, held_bytes: u64) {
        self.memory.store(held_bytes, Relaxed);
    }

    // Rates.

    /// True when a limit by the second is set.
    #[inline]
    pub fn has_rates(&self) -> bool {
        self.has_rates.load(Relaxed)
    }

    /// Takes from the buckets what was counted.
    #[cold]
    pub fn charge(&self, counts: &Counts, now_ns: u64) {
        self.operations.take(counts.operations, self.limit(Limit::Operations), now_ns);
        self.bytes_in.take(counts.bytes_in, self.limit(Limit::BytesIn), now_ns);
        self.bytes_out.take(counts.bytes_out, self.limit(Limit::BytesOut), now_ns);
    }

    /// How long the next request has to wait; 0 if it need not.
    #[cold]
    pub fn wait_ns(&self, now_ns: u64) -> u64 {
        let waits = [
            (&self.operations, Limit::Operations),
            (&self.bytes_in, Limit::BytesIn),
            (&self.bytes_out, Limit::BytesOut),
        ];
        let wait = |(bucket, limit): (&Bucket, Limit)| match self.limit(limit) {
            0 => 0,
            _ => bucket.wait_ns(now_ns),
        };
        waits.into_iter().map(wait).max().unwrap_or(0)
    }

    /// Begins to delay a client. Returns for how long: those that are delayed already come first, so that not all of
    /// them come back at once for what is enough for one.
    pub fn begin_delay(&self, now_ns: u64) -> u64 {
        let ahead = self.delayed_clients.fetch_add(1, Relaxed);
        let distance = match self.limit(Limit::Operations) {
            0 => DISTANCE_NS,
            rate => (bucket::SECOND_NS / rate).max(DISTANCE_NS),
        };
        self.counters.count_delay();
        self.wait_ns(now_ns).saturating_add(ahead.saturating_mul(distance).min(SPREAD_NS_MAX))
    }

    /// Ends the delay of a client.
    pub fn end_delay(&self, took_ns: u64) {
        self.delayed_clients.fetch_sub(1, Relaxed);
        self.counters.count_delayed_ns(took_ns);
    }

    /// The totals, with `memory` bytes of its clients.
    pub fn usage(&self, memory: u64) -> Usage {
        self.counters.usage(self.clients(), memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_up_to_the_limit() {
        let account = Account::default();
        assert!(account.enter() && account.enter());
        let mut limits = Limits::default();
        limits.set(Limit::Clients, 3);
        assert!(account.set_limits(&limits) && !account.set_limits(&limits));
        assert!(account.enter() && !account.enter());
        account.leave();
        assert!(account.enter() && !account.enter());
        account.enter_anyway();
        account.leave();
        assert_eq!((account.clients(), account.enter()), (3, false));
        assert_eq!(account.usage(0).refused[Limit::Clients as usize], 3);
    }

    #[test]
    fn delayed_clients_come_back_one_after_the_other() {
        let account = Account::default();
        let mut limits = Limits::default();
        limits.set(Limit::Operations, 10);
        account.set_limits(&limits);
        let now_ns = 5 * bucket::SECOND_NS;
        assert!(account.has_rates() && account.wait_ns(now_ns) == 0);
        account.charge(&Counts { operations: 11, ..Counts::default() }, now_ns);
        let tenth = bucket::SECOND_NS / 10;
        let waits = [account.begin_delay(now_ns), account.begin_delay(now_ns), account.begin_delay(now_ns)];
        assert_eq!(waits, [tenth, 2 * tenth, 3 * tenth]);
        (0..3).for_each(|_| account.end_delay(5_000_000));
        assert_eq!(account.begin_delay(now_ns), tenth);
        let usage = account.usage(0);
        assert_eq!((usage.delays, usage.delayed_ms), (4, 15));
        account.set_limits(&Limits::default());
        assert!(!account.has_rates() && account.wait_ns(now_ns) == 0);
    }

    #[test]
    fn a_debt_beyond_all_numbers_is_the_longest_delay() {
        let account = Account::default();
        let mut limits = Limits::default();
        limits.set(Limit::Operations, 1);
        account.set_limits(&limits);
        account.charge(&Counts { operations: u64::MAX, ..Counts::default() }, 0);
        assert_eq!([account.begin_delay(0), account.begin_delay(0)], [u64::MAX, u64::MAX]);
    }

    #[test]
    fn memory_is_looked_at_only_when_the_limit_seems_to_be_reached() {
        let (account, looks) = (Account::default(), std::cell::Cell::new(0));
        let look = |held| {
            let looks = &looks;
            move || {
                looks.set(looks.get() + 1);
                held
            }
        };
        assert!(account.add_memory(u64::MAX, look(0)), "without a limit");
        let mut limits = Limits::default();
        limits.set(Limit::Memory, 100);
        account.set_limits(&limits);
        assert!(account.add_memory(10, look(50)) && looks.get() == 1, "what was there before is counted");
        assert!(account.add_memory(40, look(0)) && looks.get() == 1);
        assert!(account.add_memory(1, look(20)) && looks.get() == 2, "some of it was given back");
        assert!(!account.add_memory(80, look(100)) && looks.get() == 3);
        assert!(!account.add_memory(101, look(0)));
        assert!(account.add_memory(100, look(0)));
        assert_eq!(account.usage(0).refused[Limit::Memory as usize], 2);
    }

    #[test]
    fn a_changed_limit_forgets_what_was_owed() {
        let account = Account::default();
        let mut limits = Limits::default();
        limits.set(Limit::BytesOut, 1);
        account.set_limits(&limits);
        account.charge(&Counts { bytes_out: 1_000_000, ..Counts::default() }, 0);
        assert!(account.wait_ns(0) > 0);
        limits.set(Limit::Operations, 5);
        account.set_limits(&limits);
        assert!(account.wait_ns(0) > 0, "another limit");
        limits.set(Limit::BytesOut, 2);
        account.set_limits(&limits);
        assert_eq!(account.wait_ns(0), 0);
    }
}
