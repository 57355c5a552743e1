//! The keys that take most of the server's time and of its network, while HOTKEYS counts them. Knows names and weights; refuses to know
//! commands and who may see a name.
//!
//! Each worker counts in a table of its own, behind a lock that nothing else takes on the path of requests; a report merges them.
//! Whether anything is counted is part of the word that MONITOR is asked by, so that a server that does not count pays nothing.

use super::key_counts::KeyCounts;
pub use super::key_counts::Wanted;
use super::monitor::Monitors;
use super::statistics::WorkerMetrics;
use locks::{Mutex, rank};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An instant, and the processor time of the process until then.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub unix_ms: u64,
    pub monotonic_ms: u64,
    pub cpu_user_ms: u64,
    pub cpu_system_ms: u64,
}

struct Session {
    wanted: Wanted,
    begun: Moment,
    /// Set when it is over.
    ended: Option<Moment>,
}

impl Session {
    fn end_if_over(&mut self, now: impl FnOnce() -> Moment) {
        let Some(duration_ms) = self.wanted.duration_ms.filter(|_| self.ended.is_none()) else { return };
        let (now, until_ms) = (now(), self.begun.monotonic_ms.saturating_add(duration_ms));
        if now.monotonic_ms >= until_ms {
            self.ended = Some(Moment { monotonic_ms: until_ms, ..now });
        }
    }
}

/// What was counted in a session.
#[derive(Debug)]
pub struct HotKeysReport {
    pub is_active: bool,
    pub wanted: Wanted,
    pub begun_unix_ms: u64,
    pub took_ms: u64,
    /// Processor time that the process has used meanwhile.
    pub cpu_user_ms: u64,
    pub cpu_system_ms: u64,
    /// All commands with keys.
    pub all_ns: u64,
    pub all_bytes: u64,
    /// Commands that were sampled.
    pub counted_bytes: u64,
    /// Names with nanoseconds and with bytes, largest first. Keys of the same name in different databases are one.
    pub by_cpu_ns: Vec<(Vec<u8>, u64)>,
    pub by_net_bytes: Vec<(Vec<u8>, u64)>,
}

/// The session that counts or has counted last. All workers' counts begin with it.
#[derive(Default)]
pub struct HotKeys {
    session: Mutex<Option<Session>, { rank::HOT_KEYS }>,
}

impl HotKeys {
    /// Begins to count. Returns false if a session is active.
    pub fn start(
        &self,
        workers: &[Arc<WorkerMetrics>],
        monitors: &Monitors,
        wanted: Wanted,
        now: impl Fn() -> Moment,
    ) -> bool {
        let mut session = self.session.lock();
        if let Some(session) = &mut *session {
            session.end_if_over(&now);
            if session.ended.is_none() {
                return false;
            }
        }
        for metrics in workers {
            *metrics.hot_keys.lock() = Some(Box::new(KeyCounts::new(&wanted)));
        }
        *session = Some(Session { wanted, begun: now(), ended: None });
        monitors.set_counts_keys(true);
        true
    }

    /// Ends the session and keeps what it has counted. Returns false if none is active.
    pub fn stop(&self, monitors: &Monitors, now: impl Fn() -> Moment) -> bool {
        let mut session = self.session.lock();
        monitors.set_counts_keys(false);
        let Some(session) = &mut *session else { return false };
        session.end_if_over(&now);
        if session.ended.is_some() {
            return false;
        }
        session.ended = Some(now());
        true
    }

    /// Ends a session whose time is over. Called about ten times a second.
    pub fn end_if_over(&self, monitors: &Monitors, now: impl FnOnce() -> Moment) {
        if let Some(session) = &mut *self.session.lock() {
            session.end_if_over(now);
            if session.ended.is_some() {
                monitors.set_counts_keys(false);
            }
        }
    }

    /// Forgets what was counted. Returns false, and does nothing, while a session is active.
    pub fn reset(&self, workers: &[Arc<WorkerMetrics>], now: impl FnOnce() -> Moment) -> bool {
        let mut session = self.session.lock();
        if let Some(session) = &mut *session {
            session.end_if_over(now);
            if session.ended.is_none() {
                return false;
            }
        }
        *session = None;
        workers.iter().for_each(|metrics| *metrics.hot_keys.lock() = None);
        true
    }

    /// What was counted, with those keys that `may_see` lets through. `None` if nothing was.
    pub fn report(
        &self,
        workers: &[Arc<WorkerMetrics>],
        may_see: impl Fn(usize, &[u8]) -> bool,
        now: impl Fn() -> Moment,
    ) -> Option<HotKeysReport> {
        let mut session = self.session.lock();
        let session = session.as_mut()?;
        session.end_if_over(&now);
        let until = session.ended.unwrap_or_else(now);
        let (wanted, begun) = (session.wanted, session.begun);
        let mut report = HotKeysReport {
            is_active: session.ended.is_none(),
            wanted,
            begun_unix_ms: begun.unix_ms,
            took_ms: until.monotonic_ms.saturating_sub(begun.monotonic_ms),
            cpu_user_ms: until.cpu_user_ms.saturating_sub(begun.cpu_user_ms),
            cpu_system_ms: until.cpu_system_ms.saturating_sub(begun.cpu_system_ms),
            all_ns: 0,
            all_bytes: 0,
            counted_bytes: 0,
            by_cpu_ns: Vec::new(),
            by_net_bytes: Vec::new(),
        };
        let (mut by_cpu, mut by_net) = (BTreeMap::new(), BTreeMap::new());
        for metrics in workers {
            let counts = metrics.hot_keys.lock();
            let Some(counts) = &*counts else { continue };
            report.all_ns += counts.all_ns;
            report.all_bytes += counts.all_bytes;
            report.counted_bytes += counts.counted_bytes();
            for (known, sums) in counts.sums().into_iter().zip([&mut by_cpu, &mut by_net]) {
                for (_, name, sum) in known.filter(|(db, name, _)| may_see(*db, name)) {
                    *sums.entry(name.to_vec()).or_default() += sum;
                }
            }
        }
        report.by_cpu_ns = largest(by_cpu, wanted.count);
        report.by_net_bytes = largest(by_net, wanted.count);
        Some(report)
    }
}

/// The largest sums first; by name, where they are equal.
fn largest(sums: BTreeMap<Vec<u8>, u64>, count: usize) -> Vec<(Vec<u8>, u64)> {
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
    sums.truncate(count);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observability::statistics::Statistics;
    use std::cell::Cell;

    const WANTED: Wanted = Wanted { cpu: true, net: true, count: 2, duration_ms: None, sample: 1, seed: 1 };

    struct Fixture {
        statistics: Statistics,
        monitors: Monitors,
        hot_keys: HotKeys,
        now_ms: Cell<u64>,
    }

    impl Fixture {
        fn new() -> Fixture {
            Fixture {
                statistics: Statistics::new(0, 2, 0),
                monitors: Monitors::default(),
                hot_keys: HotKeys::default(),
                now_ms: Cell::new(5000),
            }
        }

        fn now(&self) -> Moment {
            let now_ms = self.now_ms.get();
            let (cpu_user_ms, cpu_system_ms) = (now_ms / 2, now_ms / 4);
            Moment { unix_ms: now_ms + 1_000_000, monotonic_ms: now_ms, cpu_user_ms, cpu_system_ms }
        }

        fn start(&self, wanted: Wanted) -> bool {
            self.hot_keys.start(self.statistics.workers(), &self.monitors, wanted, || self.now())
        }

        fn stop(&self) -> bool {
            self.hot_keys.stop(&self.monitors, || self.now())
        }

        fn reset(&self) -> bool {
            self.hot_keys.reset(self.statistics.workers(), || self.now())
        }

        fn add(&self, worker: usize, db: usize, names: &[&str], ns: u64, bytes: u64) {
            let mut counts = self.statistics.workers()[worker].hot_keys.lock();
            let names = names.iter().map(|name| name.as_bytes());
            counts.as_mut().unwrap().add(db, names.clone(), names.len(), ns, bytes);
        }

        fn report(&self) -> Option<HotKeysReport> {
            self.report_to(|_, _| true)
        }

        fn report_to(&self, may_see: impl Fn(usize, &[u8]) -> bool) -> Option<HotKeysReport> {
            self.hot_keys.report(self.statistics.workers(), may_see, || self.now())
        }
    }

    fn shown(sums: &[(Vec<u8>, u64)]) -> Vec<(&str, u64)> {
        sums.iter().map(|(name, sum)| (std::str::from_utf8(name).unwrap(), *sum)).collect()
    }

    #[test]
    fn workers_and_databases_are_added_up() {
        let fixture = Fixture::new();
        assert!(fixture.start(WANTED) && fixture.monitors.is_watched() && !fixture.monitors.any());
        fixture.add(0, 0, &["a"], 100, 10);
        fixture.add(1, 3, &["a"], 50, 10);
        fixture.add(1, 0, &["b", "c"], 61, 400);
        fixture.add(1, 0, &[], 1000, 1000);
        fixture.now_ms.set(7000);
        let report = fixture.report().unwrap();
        assert_eq!(shown(&report.by_cpu_ns), [("a", 150), ("b", 30)]);
        assert_eq!(shown(&report.by_net_bytes), [("b", 200), ("c", 200)]);
        assert_eq!((report.all_ns, report.all_bytes, report.counted_bytes), (211, 420, 420));
        assert_eq!((report.is_active, report.begun_unix_ms, report.took_ms), (true, 1_005_000, 2000));
        assert_eq!((report.cpu_user_ms, report.cpu_system_ms), (1000, 500));
    }

    #[test]
    fn a_name_is_shown_to_those_who_may_see_it() {
        let fixture = Fixture::new();
        fixture.start(WANTED);
        fixture.add(0, 0, &["secret"], 100, 10);
        fixture.add(0, 1, &["both"], 40, 10);
        fixture.add(0, 0, &["both"], 2, 10);
        let report = fixture.report_to(|db, name| db == 0 && name != b"secret").unwrap();
        assert_eq!(shown(&report.by_cpu_ns), [("both", 2)]);
        assert_eq!(report.all_ns, 142, "sums of all name no key");
    }

    #[test]
    fn a_session_stops_and_is_kept_until_it_is_reset() {
        let fixture = Fixture::new();
        assert!(!fixture.stop() && fixture.report().is_none() && fixture.reset());
        assert!(fixture.start(WANTED) && !fixture.start(WANTED) && !fixture.reset());
        fixture.add(0, 0, &["a"], 7, 7);
        fixture.now_ms.set(6000);
        assert!(fixture.stop() && !fixture.monitors.is_watched() && !fixture.stop());
        fixture.now_ms.set(9000);
        let report = fixture.report().unwrap();
        assert_eq!((report.is_active, report.took_ms, report.cpu_user_ms), (false, 1000, 500));
        assert_eq!(shown(&report.by_cpu_ns), [("a", 7)]);
        assert!(fixture.start(WANTED), "a stopped one gives way");
        assert!(fixture.report().unwrap().by_cpu_ns.is_empty());
        assert!(fixture.stop() && fixture.reset() && fixture.report().is_none());
        assert!(fixture.statistics.workers().iter().all(|metrics| metrics.hot_keys.lock().is_none()));
    }

    #[test]
    fn a_session_ends_when_its_time_is_over() {
        let fixture = Fixture::new();
        fixture.start(Wanted { duration_ms: Some(1000), ..WANTED });
        fixture.now_ms.set(5999);
        fixture.hot_keys.end_if_over(&fixture.monitors, || fixture.now());
        assert!(fixture.monitors.is_watched());
        fixture.now_ms.set(6050);
        fixture.hot_keys.end_if_over(&fixture.monitors, || fixture.now());
        assert!(!fixture.monitors.is_watched() && !fixture.stop());
        fixture.now_ms.set(9000);
        let report = fixture.report().unwrap();
        assert_eq!((report.is_active, report.took_ms), (false, 1000));
        assert!(fixture.start(WANTED));
    }

    #[test]
    fn a_sample_is_not_scaled_up() {
        let fixture = Fixture::new();
        fixture.start(Wanted { sample: 10, ..WANTED });
        (0..10_000).for_each(|_| fixture.add(0, 0, &["a"], 10, 1));
        let report = fixture.report().unwrap();
        assert_eq!((report.all_ns, report.all_bytes), (100_000, 10_000));
        let (sampled, counted) = (report.by_cpu_ns[0].1 / 10, report.counted_bytes);
        assert_eq!(sampled, counted);
        // Ten standard deviations.
        assert!((700..1300).contains(&sampled), "{sampled}");
    }
}
