//! CPU time, memory and disk writes of a process, as the kernel counts them. Knows nothing of what the process does.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::ClockId;
use nix::unistd::Pid;

/// CPU time, user and system, that all threads of a process have used so far. From its clock, since /proc counts in
/// hundredths of a second, which is several percent of a short run.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(pid.try_into()?))
        .with_context(|| format!("process {pid} has no CPU clock"))?;
    Ok(clock.now().context("cannot read a process's CPU clock")?.into())
}

/// CPU time of those of our own children that have ended and been waited for.
pub(crate) fn ended_children_cpu_time() -> Result<Duration> {
    let path = "/proc/self/stat";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    ended_children(&text).with_context(|| format!("cannot make sense of {path}: {text}"))
}

/// Memory of a process that is in RAM now.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmRSS")
}

/// The most memory that a process has had in RAM since `forget_peak`. The kernel keeps it, so no peak is too short.
pub(crate) fn peak_resident_bytes(pid: u32) -> Result<u64> {
    status_bytes(pid, "VmHWM")
}

/// Makes the peak of a process what it has in RAM now.
pub(crate) fn forget_peak(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").with_context(|| format!("cannot write {path}"))
}

/// What a process has written towards a disk so far, in pages made dirty; not what it wrote to sockets.
pub(crate) fn disk_bytes_written(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    let value = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    value.and_then(|text| text.parse().ok()).with_context(|| format!("{path} has no write_bytes"))
}

/// How long the threads of a server, and the calling thread, have waited for a core so far.
pub(crate) struct RunQueues {
    files: Vec<fs::File>,
}

impl RunQueues {
    /// Of all threads that the process has now.
    pub(crate) fn of(pid: u32) -> Result<RunQueues> {
        let own = PathBuf::from(format!("/proc/self/task/{}/schedstat", nix::unistd::gettid()));
        let threads = format!("/proc/{pid}/task");
        let threads = fs::read_dir(&threads).with_context(|| format!("cannot read {threads}"))?;
        let paths = threads.filter_map(|thread| Some(thread.ok()?.path().join("schedstat"))).chain([own]);
        let open = |path: PathBuf| fs::File::open(&path).with_context(|| format!("cannot open {}", path.display()));
        Ok(RunQueues { files: paths.map(open).collect::<Result<_>>()? })
    }

    /// The waits of all threads. One that has ended has waited for nothing.
    pub(crate) fn waits(&self) -> Vec<Duration> {
        let wait = |file: &fs::File| {
            let mut text = [0; 64];
            let len = file.read_at(&mut text, 0).ok()?;
            schedstat_wait(std::str::from_utf8(&text[..len]).ok()?)
        };
        self.files.iter().map(|file| wait(file).unwrap_or_default()).collect()
    }
}

/// Time on a core, time waiting for one, turns.
fn schedstat_wait(text: &str) -> Option<Duration> {
    Some(Duration::from_nanos(text.split_whitespace().nth(1)?.parse().ok()?))
}

fn status_bytes(pid: u32, name: &str) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    kib_field(&text, name).with_context(|| format!("{path} has no {name}"))
}

/// The kernel reports to user space in hundredths of a second, whatever its own tick is.
const TICK: Duration = Duration::from_millis(10);

fn ended_children(stat: &str) -> Option<Duration> {
    // The second field, the name, is in parentheses and may itself hold spaces and parentheses.
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    // Numbered as in proc(5), where the first field after the name is the third.
    let ticks = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
    Some(TICK * (ticks(16)? + ticks(17)?))
}

/// The value, in bytes, of the line `name: value kB`.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_a_core_are_read() {
        assert_eq!(schedstat_wait("3100 2500 7\n"), Some(Duration::from_nanos(2500)));
        assert_eq!(schedstat_wait(""), None);
        assert!(RunQueues::of(std::process::id()).unwrap().waits().len() > 1);
    }

    #[test]
    fn cpu_times_are_found_behind_an_awkward_name() {
        let text = "5858 (redis (x) 1) S 5856 5856 2795 0 -1 4194368 88 0 0 0 120 35 7 3 20 0 4 0 66515 4595712 398";
        assert_eq!(ended_children(text), Some(Duration::from_millis(100)));
    }

    #[test]
    fn a_short_or_strange_stat_is_refused() {
        assert_eq!(ended_children("5858 (redis) S 1 2 3"), None);
        assert_eq!(ended_children("5858 (redis) S 1 2 3 0 -1 4194368 88 0 0 0 120 35 x 3"), None);
        assert_eq!(ended_children(""), None);
    }

    #[test]
    fn cpu_time_passes_while_there_is_work() {
        let pid = std::process::id();
        let before = cpu_time(pid).unwrap();
        assert_eq!((0..1_000_000u64).map(std::hint::black_box).max(), Some(999_999));
        assert!(cpu_time(pid).unwrap() > before);
    }

    #[test]
    fn resident_memory_is_in_bytes() {
        let text = "Name:\tredis-server\nVmHWM:\t   12000 kB\nVmRSS:\t   11828 kB\nThreads:\t5\n";
        assert_eq!(kib_field(text, "VmRSS"), Some(11828 * 1024));
        assert_eq!(kib_field(text, "VmHWM"), Some(12000 * 1024));
        assert_eq!(kib_field(text, "Vm"), None);
        assert_eq!(kib_field("Name:\tkthreadd\n", "VmRSS"), None);
    }

    #[test]
    fn our_own_process_has_figures() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).unwrap() > 0);
        ended_children_cpu_time().unwrap();
        disk_bytes_written(pid).unwrap();
    }

    #[test]
    fn a_peak_is_remembered_until_it_is_forgotten() {
        let pid = std::process::id();
        let before = resident_bytes(pid).unwrap();
        drop(std::hint::black_box(vec![1u8; PEAK as usize]));
        assert!(peak_resident_bytes(pid).unwrap() >= before + PEAK / 2);
        forget_peak(pid).unwrap();
        assert!(peak_resident_bytes(pid).unwrap() < before + PEAK / 2);
    }

    /// More than the other tests of this process use at the same time.
    const PEAK: u64 = 256 << 20;
}
