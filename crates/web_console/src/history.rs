//! The last hour of the server: figures that are read every few seconds and kept in a ring. Reads counters that workers write
//! anyway; refuses to know how they are shown.

use engine::Engine;
use engine::command::registry;
use engine::observability::latency::Durations;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How often figures are read.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// So many are an hour.
pub(crate) const SAMPLES_MAX: usize = 720;
/// How many samples are lately: five minutes for connections that were rejected, a quarter of an hour for dead letters.
const REJECTED_SAMPLES: usize = 60;
const DEAD_LETTER_SAMPLES: usize = 180;

/// The figures of one moment. Rates are of the time since the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    pub(crate) requests_per_second: f64,
    pub(crate) errors_per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) memory_bytes: f64,
    pub(crate) connections: f64,
    pub(crate) journal_bytes: f64,
    /// What is in the journal, and not on the disk yet.
    pub(crate) unsynced_batches: f64,
    /// Since the last sample: connections that were rejected, and records that had no try left.
    pub(crate) rejected: u64,
    pub(crate) dead_letters: u64,
}

/// The ring.
#[derive(Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    last: Option<Counters>,
}

/// Counters that only grow, at the time of the last sample.
struct Counters {
    at: Instant,
    requests: u64,
    errors: u64,
    rejected: u64,
    dead_letters: u64,
    durations: Durations,
}

impl History {
    /// Reads the figures of this moment. The first time only begins the rates.
    pub(crate) fn sample(&mut self, engine: &Engine, now: Instant) {
        let (totals, report) = (engine.statistics.totals(), engine.persistence.report());
        let mut durations = Durations::default();
        for metrics in engine.statistics.workers() {
            registry().rows().iter().for_each(|row| metrics.histograms.sum_into(row.index, &mut durations));
        }
        let next = Counters {
            at: now,
            requests: totals.commands,
            errors: totals.error_replies,
            rejected: engine.clients.totals().1,
            dead_letters: totals.records_set_aside + totals.records_exhausted,
            durations,
        };
        let Some(last) = self.last.replace(next) else { return };
        let next = self.last.as_ref().expect("it was just set");
        let seconds = now.duration_since(last.at).as_secs_f64().max(1e-3);
        // CONFIG RESETSTAT sets counters back.
        let rate = |next: u64, last: u64| next.saturating_sub(last) as f64 / seconds;
        let recent = next.durations.since(&last.durations);
        let sample = Sample {
            requests_per_second: rate(next.requests, last.requests),
            errors_per_second: rate(next.errors, last.errors),
            p50_us: recent.percentile_us(50.0),
            p99_us: recent.percentile_us(99.0),
            memory_bytes: engine.host.used_memory() as f64,
            connections: engine.clients.all().len() as f64,
            journal_bytes: report.journal_bytes as f64,
            unsynced_batches: report.sequence.saturating_sub(report.durable) as f64,
            rejected: next.rejected.saturating_sub(last.rejected),
            dead_letters: next.dead_letters.saturating_sub(last.dead_letters),
        };
        self.add(sample);
    }

    fn add(&mut self, sample: Sample) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Connections that were rejected within five minutes.
    pub(crate) fn rejected_lately(&self) -> u64 {
        self.samples.iter().rev().take(REJECTED_SAMPLES).map(|sample| sample.rejected).sum()
    }

    /// Records that had no try left within a quarter of an hour.
    pub(crate) fn dead_letters_lately(&self) -> u64 {
        self.samples.iter().rev().take(DEAD_LETTER_SAMPLES).map(|sample| sample.dead_letters).sum()
    }

    /// The samples, oldest first.
    pub(crate) fn samples(&self) -> impl ExactSizeIterator<Item = &Sample> {
        self.samples.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_is_kept() {
        let mut history = History::default();
        for number in 0..SAMPLES_MAX + 10 {
            history.add(Sample { connections: number as f64, ..Sample::default() });
        }
        assert_eq!(history.samples().len(), SAMPLES_MAX);
        assert_eq!(history.samples().next().unwrap().connections, 10.0);
        assert_eq!(SAMPLE_EVERY * SAMPLES_MAX as u32, Duration::from_secs(3600));
    }

    #[test]
    fn lately_is_not_the_whole_hour() {
        let mut history = History::default();
        history.add(Sample { rejected: 3, dead_letters: 2, ..Sample::default() });
        assert_eq!((history.rejected_lately(), history.dead_letters_lately()), (3, 2));
        (0..REJECTED_SAMPLES).for_each(|_| history.add(Sample::default()));
        assert_eq!((history.rejected_lately(), history.dead_letters_lately()), (0, 2));
        (0..DEAD_LETTER_SAMPLES).for_each(|_| history.add(Sample::default()));
        assert_eq!(history.dead_letters_lately(), 0);
    }
}
