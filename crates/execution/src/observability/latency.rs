//! How long commands take: a histogram for each, and the spikes that LATENCY reports. Refuses to know time.

use locks::{Mutex, rank};
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets per doubling; errors of a percentile stay below a sixteenth.
const SUB_BUCKETS: u64 = 16;
/// Buckets in all: up to 2^40 nanoseconds, 18 minutes.
const BUCKETS: usize = 16 * 37;

/// Counts of durations of one command on one worker. Logarithmic, in nanoseconds.
pub struct Histogram {
    counts: Box<[AtomicU64]>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Histogram {
    #[inline]
    fn add(&self, ns: u64) {
        let count = &self.counts[bucket_of(ns)];
        // One writer: see `stats::Counter`.
        count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

/// One worker's histograms, made when a command is first seen.
pub struct Histograms {
    by_command: Box<[OnceLock<Histogram>]>,
}

impl Histograms {
    /// Empty histograms for a table of `commands` rows.
    pub fn new(commands: usize) -> Histograms {
        Histograms { by_command: (0..commands).map(|_| OnceLock::new()).collect() }
    }

    /// Counts one call.
    #[inline]
    pub fn add(&self, command: usize, ns: u64) {
        self.by_command[command].get_or_init(Histogram::default).add(ns);
    }

    /// Adds the counts of `command` to `sum`.
    pub fn sum_into(&self, command: usize, sum: &mut Durations) {
        if let Some(histogram) = self.by_command[command].get() {
            for (total, count) in sum.counts.iter_mut().zip(&histogram.counts) {
                *total += count.load(Relaxed);
            }
        }
    }

    /// Resets the histogram of one command, or all.
    pub fn reset(&self, command: Option<usize>) {
        let all = self.by_command.iter().enumerate().filter(|(index, _)| command.is_none_or(|wanted| wanted == *index));
        for histogram in all.filter_map(|(_, slot)| slot.get()) {
            histogram.counts.iter().for_each(|count| count.store(0, Relaxed));
        }
    }
}

/// Durations of one command over all workers.
pub struct Durations {
    counts: Vec<u64>,
}

impl Default for Durations {
    fn default() -> Durations {
        Durations { counts: vec![0; BUCKETS] }
    }
}

impl Durations {
    /// The number of calls.
    pub fn calls(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The calls that were counted after `before` was. All of them if the counters were set back meanwhile.
    pub fn since(&self, before: &Durations) -> Durations {
        let is_reset = before.counts.iter().zip(&self.counts).any(|(before, now)| before > now);
        let count = |(now, before): (&u64, &u64)| if is_reset { *now } else { now - before };
        Durations { counts: self.counts.iter().zip(&before.counts).map(count).collect() }
    }

    /// The duration that `percent` of the calls did not exceed, in microseconds.
    pub fn percentile_us(&self, percent: f64) -> f64 {
        let wanted = (self.calls() as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return upper_ns(bucket) as f64 / 1000.0;
            }
        }
        0.0
    }

    /// How many calls took less than each of these times, which are powers of two and ascend.
    pub fn less_than_ns<const N: usize>(&self, bounds_ns: [u64; N]) -> [u64; N] {
        let (mut seen, mut bucket) = (0, 0);
        bounds_ns.map(|bound_ns| {
            while bucket < BUCKETS && upper_ns(bucket) < bound_ns {
                seen += self.counts[bucket];
                bucket += 1;
            }
            seen
        })
    }

    /// How many calls took at most so many microseconds, for bounds that double: the form of LATENCY HISTOGRAM. A bound
    /// without new calls is left out.
    pub fn doubling_us(&self) -> Vec<(u64, u64)> {
        let mut bounds: Vec<(u64, u64)> = Vec::new();
        let (mut seen, mut bucket) = (0, 0);
        for power in 10..=40 {
            let bound_ns = 1u64 << power;
            let before = seen;
            while bucket < BUCKETS && (upper_ns(bucket) <= bound_ns || power == 40) {
                seen += self.counts[bucket];
                bucket += 1;
            }
            if seen > before {
                bounds.push((shown_us(bound_ns), seen));
            }
        }
        bounds
    }
}

/// A bound as Redis shows it. Redis's histogram keeps two digits, so a bound stands for all durations that share its
/// first seven bits, and the longest of them is shown: 1, 2, 4, 8, 16, 33, 66, 132…
fn shown_us(bound_ns: u64) -> u64 {
    (bound_ns + (bound_ns >> 7) - 1) / 1000
}

#[inline]
fn bucket_of(ns: u64) -> usize {
    if ns < SUB_BUCKETS {
        return ns as usize;
    }
    let power = u64::from(63 - ns.leading_zeros());
    let within = (ns >> (power - 4)) - SUB_BUCKETS;
    (((power - 3) * SUB_BUCKETS + within) as usize).min(BUCKETS - 1)
}

fn upper_ns(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let (power, within) = (bucket / SUB_BUCKETS + 3, bucket % SUB_BUCKETS);
    ((SUB_BUCKETS + within + 1) << (power - 4)) - 1
}

/// Spikes kept for one event, as in Redis.
const SPIKES_MAX: usize = 160;

/// One event's spikes: unix seconds and milliseconds taken, oldest first, and the worst ever.
#[derive(Default, Clone)]
pub struct Spikes {
    pub samples: VecDeque<(u64, u64)>,
    pub worst_ms: u64,
}

/// Events that took longer than `latency-monitor-threshold`.
#[derive(Default)]
pub struct Monitor {
    events: Mutex<BTreeMap<&'static str, Spikes>, { rank::LATENCY }>,
}

impl Monitor {
    /// Notes a spike. Within one second the worst counts.
    pub fn add(&self, event: &'static str, time_s: u64, took_ms: u64) {
        let mut events = self.events.lock();
        let spikes = events.entry(event).or_default();
        spikes.worst_ms = spikes.worst_ms.max(took_ms);
        match spikes.samples.back_mut() {
            Some((last, worst)) if *last == time_s => *worst = (*worst).max(took_ms),
            _ => {
                spikes.samples.push_back((time_s, took_ms));
                if spikes.samples.len() > SPIKES_MAX {
                    spikes.samples.pop_front();
                }
            }
        }
    }

    /// All events with their spikes.
    pub fn events(&self) -> Vec<(&'static str, Spikes)> {
        self.events.lock().iter().map(|(event, spikes)| (*event, spikes.clone())).collect()
    }

    /// The spikes of one event.
    pub fn event(&self, name: &[u8]) -> Option<(&'static str, Spikes)> {
        self.events().into_iter().find(|(event, _)| event.as_bytes() == name)
    }

    /// Resets the named events, or all without names. Returns how many were reset.
    pub fn reset(&self, names: &[&[u8]]) -> usize {
        let mut events = self.events.lock();
        let before = events.len();
        events.retain(|event, _| !names.is_empty() && !names.contains(&event.as_bytes()));
        before - events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_all_durations_in_order() {
        let mut last = 0;
        for ns in (0..5_000).chain((13..50).map(|power| (1u64 << power) + 3)) {
            let bucket = bucket_of(ns);
            assert!(bucket >= last, "{ns}");
            assert!(upper_ns(bucket) >= ns || bucket == BUCKETS - 1, "{ns}");
            last = bucket;
        }
    }

    #[test]
    fn percentiles_and_doublings() {
        let histograms = Histograms::new(1);
        (1..=1000u64).for_each(|us| histograms.add(0, us * 1000));
        let mut durations = Durations::default();
        histograms.sum_into(0, &mut durations);
        let median = durations.percentile_us(50.0);
        assert!((480.0..540.0).contains(&median), "{median}");
        let doubling = durations.doubling_us();
        let bounds: Vec<u64> = doubling.iter().map(|(bound, _)| *bound).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056]);
        assert_eq!(doubling.last(), Some(&(1056, 1000)));
        assert!(doubling.is_sorted_by_key(|(_, count)| *count));
    }

    #[test]
    fn calls_since_an_earlier_time() {
        let histograms = Histograms::new(1);
        let now = || {
            let mut durations = Durations::default();
            histograms.sum_into(0, &mut durations);
            durations
        };
        histograms.add(0, 1_000);
        let before = now();
        histograms.add(0, 9_000_000);
        let since = now().since(&before);
        assert_eq!(since.calls(), 1);
        assert!(since.percentile_us(50.0) > 8_000.0);
        histograms.reset(None);
        histograms.add(0, 2_000_000);
        assert_eq!(now().since(&before).calls(), 1, "counters that were set back begin anew");
    }

    #[test]
    fn calls_below_a_power_of_two_are_exact() {
        let histograms = Histograms::new(1);
        [0, 1023, 1024, 1025, 4095, 4096, u64::MAX].into_iter().for_each(|ns| histograms.add(0, ns));
        let mut durations = Durations::default();
        histograms.sum_into(0, &mut durations);
        assert_eq!(durations.less_than_ns([512, 1024, 4096, 8192, 1 << 32]), [1, 2, 5, 6, 6]);
        assert_eq!(durations.calls(), 7);
    }

    #[test]
    fn bounds_without_calls_are_left_out() {
        let histograms = Histograms::new(1);
        [500, 3_000_000, u64::MAX].into_iter().for_each(|ns| histograms.add(0, ns));
        let mut durations = Durations::default();
        histograms.sum_into(0, &mut durations);
        let counts: Vec<u64> = durations.doubling_us().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 2, 3]);
    }
}
