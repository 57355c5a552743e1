//! How far a process that follows is, in lines on stderr. Knows no connections.

use indicatif::{BinaryBytes, HumanCount};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

const LINE_EVERY: Duration = Duration::from_secs(5);

pub(super) struct Progress {
    last_line: Instant,
    /// What was shown last, for rates.
    shown: u64,
    /// Where the source was, and when; those that are applied are gone.
    samples: VecDeque<(Instant, u64)>,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress { last_line: Instant::now(), shown: 0, samples: VecDeque::new() }
    }

    /// Notes where the source is.
    pub(super) fn sample(&mut self, now: Instant, offset: u64) {
        self.samples.push_back((now, offset));
    }

    /// How far behind an offset is: in bytes, and since when something is missing.
    fn lag(&mut self, now: Instant, applied: u64) -> Option<(u64, Duration)> {
        let newest = self.samples.back()?.1;
        while self.samples.len() > 1 && self.samples.front().is_some_and(|(_, offset)| *offset <= applied) {
            self.samples.pop_front();
        }
        let (at, oldest) = *self.samples.front()?;
        let age = if oldest <= applied { Duration::ZERO } else { now.duration_since(at) };
        Some((newest.saturating_sub(applied), age))
    }

    /// A line about the load, now and then.
    pub(super) fn loading(&mut self, keys: u64, bytes: u64) {
        if self.last_line.elapsed() >= LINE_EVERY {
            let rate = self.rate(keys);
            eprintln!("loading: {} keys, {}, {rate} keys/s", HumanCount(keys), BinaryBytes(bytes));
        }
    }

    /// A line about the commands, now and then.
    pub(super) fn following(&mut self, commands: u64, applied: u64) {
        if self.last_line.elapsed() >= LINE_EVERY {
            let rate = self.rate(commands);
            let lag = match self.lag(Instant::now(), applied) {
                Some((bytes, age)) => format!("lag {}, {:.1} s", BinaryBytes(bytes), age.as_secs_f64()),
                None => "lag unknown: the source does not say where it is".to_owned(),
            };
            eprintln!("following: {} commands, {rate} commands/s, {lag}", HumanCount(commands));
        }
    }

    /// A line that says something new each time.
    pub(super) fn now_and_then(&mut self, line: impl FnOnce() -> String) {
        if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            eprintln!("{}", line());
        }
    }

    fn rate(&mut self, count: u64) -> HumanCount {
        let elapsed = self.last_line.elapsed().as_secs_f64().max(0.001);
        let rate = (count.saturating_sub(self.shown) as f64 / elapsed) as u64;
        (self.shown, self.last_line) = (count, Instant::now());
        HumanCount(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lag_is_measured_in_bytes_and_time() {
        let mut progress = Progress::new();
        let began = Instant::now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(progress.lag(began, 0), None);
        progress.sample(began, 100);
        progress.sample(at(1), 200);
        progress.sample(at(2), 300);
        assert_eq!(progress.lag(at(3), 50), Some((250, Duration::from_secs(3))));
        assert_eq!(progress.lag(at(3), 200), Some((100, Duration::from_secs(1))));
        assert_eq!(progress.lag(at(3), 300), Some((0, Duration::ZERO)));
        assert_eq!(progress.lag(at(9), 314), Some((0, Duration::ZERO)), "what came since the last look");
    }
}
