//! Counters. Each worker thread has its own set, written without contention and summed on read. Knows sums and rates;
//! refuses to know time.

use locks::{Mutex, rank};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter with one writer and many readers.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds to the counter. Only the thread that owns the set may call it: a plain load and store is several times
    /// cheaper than an atomic addition.
    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    fn reset(&self) {
        self.0.store(0, Relaxed);
    }
}

/// A worker's counters of one command.
#[derive(Default)]
pub struct CommandCounters {
    pub calls: Counter,
    pub ns: Counter,
    pub rejected: Counter,
    pub failed: Counter,
}

/// One worker's counters.
pub struct WorkerStats {
    /// By index of the command's row.
    pub commands: Box<[CommandCounters]>,
    pub keyspace_hits: Counter,
    pub keyspace_misses: Counter,
    pub expired_keys: Counter,
    pub evicted_keys: Counter,
    pub expired_fields: Counter,
    pub changes: Counter,
    pub bytes_in: Counter,
    pub bytes_out: Counter,
    pub reads: Counter,
    pub writes: Counter,
    pub error_replies: Counter,
    /// Interactive transactions.
    pub transactions_committed: Counter,
    /// Records that CLAIM has returned, and those to which it gave the values behind ELSE.
    pub records_claimed: Counter,
    pub records_set_aside: Counter,
    /// Records that SWEEP has changed, and those of them that have no try left.
    pub records_requeued: Counter,
    pub records_exhausted: Counter,
    /// Time spent in the active expiry cycle, and how often it ran out of time before it ran out of work.
    pub expiry_ns: Counter,
    pub expiry_cut_short: Counter,
    errors: Mutex<BTreeMap<String, u64>, { rank::ERRORS }>,
}

/// The most error codes that are counted separately; others are counted together, so that hostile input cannot fill
/// memory.
const ERROR_CODES_MAX: usize = 128;
/// Bytes kept of one code.
const ERROR_CODE_BYTES_MAX: usize = 32;
/// The name under which codes beyond the limit are counted, as in Redis.
const OTHER_CODES: &str = "ERRORSTATS_OVERFLOW";

impl WorkerStats {
    /// Zeroes for a table of `commands` rows.
    pub fn new(commands: usize) -> WorkerStats {
        WorkerStats {
            commands: (0..commands).map(|_| CommandCounters::default()).collect(),
            keyspace_hits: Counter::default(),
            keyspace_misses: Counter::default(),
            expired_keys: Counter::default(),
            evicted_keys: Counter::default(),
            expired_fields: Counter::default(),
            changes: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            error_replies: Counter::default(),
            transactions_committed: Counter::default(),
            records_claimed: Counter::default(),
            records_set_aside: Counter::default(),
            records_requeued: Counter::default(),
            records_exhausted: Counter::default(),
            expiry_ns: Counter::default(),
            expiry_cut_short: Counter::default(),
            errors: Mutex::default(),
        }
    }

    /// Counts an error reply by its code, the first word of `text`.
    pub fn count_error(&self, text: &str) {
        self.error_replies.add(1);
        // The code ends at the first byte that would break a line of INFO.
        let ends = |c: char| c.is_whitespace() || c.is_control() || matches!(c, ':' | ',' | '=' | '#');
        let code = text.split(ends).next().unwrap_or_default();
        let code = &code[..code.floor_char_boundary(ERROR_CODE_BYTES_MAX)];
        let mut errors = self.errors.lock();
        let known = errors.contains_key(code) || errors.len() < ERROR_CODES_MAX;
        *errors.entry(if known { code } else { OTHER_CODES }.to_owned()).or_default() += 1;
    }

    /// Adds this worker's error codes to `sum`.
    pub fn add_errors(&self, sum: &mut BTreeMap<String, u64>) {
        for (code, count) in self.errors.lock().iter() {
            *sum.entry(code.clone()).or_default() += count;
        }
    }

    /// Resets all counters (CONFIG RESETSTAT). A count that the worker adds at the same instant may be lost.
    pub fn reset(&self) {
        for command in &self.commands {
            for counter in [&command.calls, &command.ns, &command.rejected, &command.failed] {
                counter.reset();
            }
        }
        for counter in [
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.expired_keys,
            &self.evicted_keys,
            &self.expired_fields,
            &self.bytes_in,
            &self.bytes_out,
            &self.reads,
            &self.writes,
            &self.error_replies,
            &self.transactions_committed,
            &self.records_claimed,
            &self.records_set_aside,
            &self.records_requeued,
            &self.records_exhausted,
            &self.expiry_ns,
            &self.expiry_cut_short,
        ] {
            counter.reset();
        }
        self.errors.lock().clear();
    }
}

/// Counters of all workers together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub commands: u64,
    pub keyspace_hits: u64,
    pub keyspace_misses: u64,
    pub expired_keys: u64,
    pub evicted_keys: u64,
    pub expired_fields: u64,
    pub changes: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub reads: u64,
    pub writes: u64,
    pub error_replies: u64,
    pub transactions_committed: u64,
    pub records_claimed: u64,
    pub records_set_aside: u64,
    pub records_requeued: u64,
    pub records_exhausted: u64,
    pub expiry_ns: u64,
    pub expiry_cut_short: u64,
}

impl Totals {
    /// The sum over all workers.
    pub fn of<'a>(workers: impl Iterator<Item = &'a WorkerStats>) -> Totals {
        workers.fold(Totals::default(), |sum, stats| Totals {
            commands: sum.commands + stats.commands.iter().map(|command| command.calls.get()).sum::<u64>(),
            keyspace_hits: sum.keyspace_hits + stats.keyspace_hits.get(),
            keyspace_misses: sum.keyspace_misses + stats.keyspace_misses.get(),
            expired_keys: sum.expired_keys + stats.expired_keys.get(),
            evicted_keys: sum.evicted_keys + stats.evicted_keys.get(),
            expired_fields: sum.expired_fields + stats.expired_fields.get(),
            changes: sum.changes + stats.changes.get(),
            bytes_in: sum.bytes_in + stats.bytes_in.get(),
            bytes_out: sum.bytes_out + stats.bytes_out.get(),
            reads: sum.reads + stats.reads.get(),
            writes: sum.writes + stats.writes.get(),
            error_replies: sum.error_replies + stats.error_replies.get(),
            transactions_committed: sum.transactions_committed + stats.transactions_committed.get(),
            records_claimed: sum.records_claimed + stats.records_claimed.get(),
            records_set_aside: sum.records_set_aside + stats.records_set_aside.get(),
            records_requeued: sum.records_requeued + stats.records_requeued.get(),
            records_exhausted: sum.records_exhausted + stats.records_exhausted.get(),
            expiry_ns: sum.expiry_ns + stats.expiry_ns.get(),
            expiry_cut_short: sum.expiry_cut_short + stats.expiry_cut_short.get(),
        })
    }
}

/// Samples of the totals, from which current rates are computed.
#[derive(Default)]
pub struct Sampler {
    points: Mutex<VecDeque<Point>, { rank::SAMPLES }>,
}

#[derive(Clone, Copy)]
struct Point {
    at_ns: u64,
    commands: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Rates per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    pub commands: f64,
    pub bytes_in: f64,
    pub bytes_out: f64,
}

/// The window of a rate: 1.6 seconds, as in Redis.
const RATE_WINDOW_NS: u64 = 1_600_000_000;
/// Samples closer together than this are dropped.
const POINT_DISTANCE_NS: u64 = 50_000_000;

impl Sampler {
    /// Notes the totals at an instant of the monotonic clock.
    pub fn note(&self, at_ns: u64, totals: &Totals) {
        let mut points = self.points.lock();
        if points.back().is_some_and(|last| at_ns.saturating_sub(last.at_ns) < POINT_DISTANCE_NS) {
            return;
        }
        let Totals { commands, bytes_in, bytes_out, .. } = *totals;
        points.push_back(Point { at_ns, commands, bytes_in, bytes_out });
        // Keep at least two points, however old: then the rate is the one since the last sample.
        while points.len() > 2 && at_ns - points[0].at_ns > RATE_WINDOW_NS {
            points.pop_front();
        }
    }

    /// The rates over the window; zero until there are two points.
    pub fn rates(&self) -> Rates {
        let points = self.points.lock();
        let (Some(first), Some(last)) = (points.front(), points.back()) else { return Rates::default() };
        let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
        if seconds == 0.0 {
            return Rates::default();
        }
        let rate = |first: u64, last: u64| last.saturating_sub(first) as f64 / seconds;
        Rates {
            commands: rate(first.commands, last.commands),
            bytes_in: rate(first.bytes_in, last.bytes_in),
            bytes_out: rate(first.bytes_out, last.bytes_out),
        }
    }

    /// Starts over after the totals were reset.
    pub fn reset(&self) {
        self.points.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn rates_look_at_the_last_moments() {
        let sampler = Sampler::default();
        let note = |tenths: u64, commands: u64| {
            sampler.note(tenths * SECOND / 10, &Totals { commands, ..Totals::default() });
            sampler.rates().commands.round()
        };
        assert_eq!(note(0, 0), 0.0);
        assert_eq!(note(1, 100), 1000.0);
        (2..50).for_each(|tenth| assert_eq!(note(tenth, tenth * 100), 1000.0));
        // Half a second without a command, within the window of 1.6 seconds.
        let slower = note(54, 4900);
        assert!((600.0..1000.0).contains(&slower), "{slower}");
        // No samples for a while: the rate since the last one.
        assert_eq!(note(154, 4950), 5.0);
    }

    #[test]
    fn hostile_error_codes_are_cut_and_counted_together() {
        let stats = WorkerStats::new(0);
        stats.count_error("ERR no such key");
        stats.count_error("A:b=1 x");
        stats.count_error(&"x".repeat(1000));
        (0..1000).for_each(|i| stats.count_error(&format!("E{i} text")));
        let mut sum = BTreeMap::new();
        stats.add_errors(&mut sum);
        assert_eq!((sum["ERR"], sum["A"], sum[&"x".repeat(32)]), (1, 1, 1));
        assert_eq!(sum.len(), ERROR_CODES_MAX + 1);
        assert_eq!(sum.values().sum::<u64>(), 1003);
        assert_eq!(stats.error_replies.get(), 1003);
    }
}
