//! The clock: whether something keeps it right, whether it jumps, whether it is behind the data. Deadlines of keys and leases
//! of jobs are points in its time. Knows clocks; refuses to know what they are for.

use super::findings::Findings;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// A clock that is adjusted gently is off by less than this while a machine is looked at.
const JUMP_MIN: Duration = Duration::from_millis(100);
/// What files may be ahead of the clock: file systems note the time in steps.
const AHEAD_MAX: Duration = Duration::from_secs(2);
/// Programs that keep a clock right, by their names in /proc.
const KEEPERS: &[&str] = &["systemd-timesyn", "chronyd", "ntpd", "ntpd-rs", "openntpd", "ptp4l", "phc2sys"];
/// Clocks of the kernel that are read without a system call, on their kinds of machines.
const QUICK_SOURCES: &[&str] =
    &["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "riscv_clocksource"];

/// Watches the clock while other things are looked at.
pub(super) struct Watch {
    began: Instant,
    time: SystemTime,
}

impl Watch {
    pub(super) fn begin() -> Watch {
        Watch { began: Instant::now(), time: SystemTime::now() }
    }

    pub(super) fn check(&self, dir: &Path, findings: &mut Findings) {
        self.check_jump(self.began.elapsed(), SystemTime::now(), findings);
        check_files(dir, SystemTime::now(), findings);
        let keeper = processes().find(|name| KEEPERS.contains(&name.as_str()));
        let is_synchronised = Path::new("/run/systemd/timesync/synchronized").exists();
        match (keeper, is_synchronised) {
            (Some(keeper), _) => findings.good("clock-keeper", keeper),
            (None, true) => findings.good("clock-keeper", "systemd has synchronised it"),
            (None, false) => findings.note(
                "clock-keeper",
                "no program that keeps the clock right is seen here; that of a container's host is not",
                "run chrony or systemd-timesyncd",
            ),
        }
        let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        check_source(source.ok().as_deref().map(str::trim), findings);
    }

    fn check_jump(&self, passed: Duration, now: SystemTime, findings: &mut Findings) {
        let expected = self.time + passed;
        let off = now.duration_since(expected).unwrap_or_else(|behind| behind.duration());
        match off > JUMP_MIN {
            true => findings.act(
                "clock-jump",
                format!(
                    "the clock was set by {:.3} s within {:.1} s: keys expire and leases end at the wrong time",
                    off.as_secs_f64(),
                    passed.as_secs_f64()
                ),
                "let chrony or systemd-timesyncd adjust it gently, and nothing else set it",
            ),
            false => findings.good("clock-jump", "none while this ran"),
        }
    }
}

/// Files that were written later than now: the clock was set back.
fn check_files(dir: &Path, now: SystemTime, findings: &mut Findings) {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let newest = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max();
    let ahead = newest.and_then(|newest| newest.duration_since(now).ok()).filter(|ahead| *ahead > AHEAD_MAX);
    match ahead {
        Some(ahead) => findings.act(
            "clock-and-data",
            format!(
                "a file in {} was written {:.0} s from now: the clock is behind",
                dir.display(),
                ahead.as_secs_f64()
            ),
            "set the clock right before the server starts",
        ),
        None => findings.good("clock-and-data", "no file is from the future"),
    }
}

fn check_source(source: Option<&str>, findings: &mut Findings) {
    match source {
        Some(quick) if QUICK_SOURCES.contains(&quick) => findings.good("clock-source", quick),
        Some(slow) => findings.note(
            "clock-source",
            format!("{slow} takes a system call for each look at the clock"),
            "see /sys/devices/system/clocksource/clocksource0/available_clocksource for a quicker one, such as tsc",
        ),
        None => findings.unknown("clock-source", "the system does not say"),
    }
}

/// The names of all processes that this one sees.
fn processes() -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit());
    processes.filter_map(|entry| Some(std::fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::*;

    fn verdict(check: &str, look: impl FnOnce(&mut Findings)) -> Verdict {
        let mut findings = Findings::default();
        look(&mut findings);
        findings.of(check)[0].0
    }

    #[test]
    fn a_clock_that_is_set_has_jumped() {
        let watch = Watch::begin();
        let after = |ms: i64| {
            let second = Duration::from_secs(1);
            let right = watch.time + second;
            let now = if ms < 0 {
                right - Duration::from_millis(ms.unsigned_abs())
            } else {
                right + Duration::from_millis(ms as u64)
            };
            verdict("clock-jump", |findings| watch.check_jump(second, now, findings))
        };
        assert_eq!(
            [-5000, -20, 0, 20, 5000].map(after),
            [Verdict::Act, Verdict::Good, Verdict::Good, Verdict::Good, Verdict::Act]
        );
    }

    #[test]
    fn data_from_the_future_shows_a_clock_that_was_set_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "x").unwrap();
        let now = SystemTime::now();
        let found = |now| verdict("clock-and-data", |findings| check_files(dir.path(), now, findings));
        assert_eq!(found(now), Verdict::Good);
        assert_eq!(found(now - Duration::from_secs(60)), Verdict::Act);
    }

    #[test]
    fn some_clocks_are_slow_to_read() {
        let found = |source| verdict("clock-source", |findings| check_source(source, findings));
        assert_eq!([Some("tsc"), Some("hpet"), None].map(found), [Verdict::Good, Verdict::Note, Verdict::Unknown]);
    }
}
