//! What this process and the machine use of CPU time and memory. Knows /proc; refuses to know what it is for.

/// Clock ticks since the machine was started.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ticks {
    /// Of all cores.
    pub(crate) all: u64,
    /// Of those, the ones in which a process or the kernel worked.
    pub(crate) busy: u64,
    /// Of those, this process's own.
    pub(crate) own: u64,
}

/// Clock ticks of the machine and of this process, from /proc.
pub(crate) fn ticks() -> Ticks {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let fields: Vec<u64> = fields.take(8).map(|field| field.parse().unwrap_or(0)).collect();
    let all: u64 = fields.iter().sum();
    // The fourth and fifth are those in which nothing was done.
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    let (user, system) = cpu_ticks("/proc/self/stat");
    Ticks { all, busy: all - idle, own: user + system }
}

/// Resident memory, from the second field of /proc/self/statm.
pub(crate) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// User and system seconds of a `stat` file.
pub(crate) fn cpu_seconds(path: &str) -> (f64, f64) {
    let (user, system) = cpu_ticks(path);
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    (user as f64 / per_second, system as f64 / per_second)
}

/// User and system clock ticks: fields 14 and 15 of a `stat` file.
fn cpu_ticks(path: &str) -> (u64, u64) {
    let stat = std::fs::read_to_string(path).unwrap_or_default();
    // The name, field 2, is in parentheses and may hold spaces: count from its end.
    let Some((_, fields)) = stat.rsplit_once(") ") else { return (0, 0) };
    let mut ticks = fields.split(' ').skip(11).map(|field| field.parse().unwrap_or(0));
    (ticks.next().unwrap_or(0), ticks.next().unwrap_or(0))
}
