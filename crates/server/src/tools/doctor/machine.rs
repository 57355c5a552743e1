//! The machine: limits of open files, huge pages, overcommit, queues of connections, memory, swap, cores. Knows the files of
//! /proc and /sys; refuses to know directories and servers.

use super::findings::{Findings, bytes};
use crate::platform::descriptors;
use engine::Settings;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};

/// What the server asks for when it listens.
const BACKLOG: u64 = 511;
/// The share of the memory that data may take: connections, snapshots and the rest of the machine need some.
const MEMORY_PERCENT_MAX: u64 = 80;
/// From here on the kernel moves memory that is used to the swap only in need.
const SWAPPINESS_MAX: u64 = 10;

/// A machine, and the limits of this process. Tests pass a directory with files of their own.
pub(super) struct Machine {
    root: PathBuf,
    /// The most open files that this process may ask for.
    files_max: Option<u64>,
    cores: usize,
}

/// The memory of a machine or of a container.
struct Memory {
    bytes: u64,
    /// A cgroup ends what takes more.
    is_limited: bool,
}

impl Machine {
    pub(super) fn this() -> Machine {
        Machine {
            root: "/".into(),
            files_max: getrlimit(Resource::Nofile).maximum,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    pub(super) fn check(&self, settings: &Settings, findings: &mut Findings) {
        self.check_files(settings, findings);
        self.check_huge_pages(settings, findings);
        self.check_overcommit(findings);
        self.check_backlog(findings);
        self.check_memory(settings, findings);
        self.check_swap(findings);
        self.check_cores(settings, findings);
    }

    fn check_files(&self, settings: &Settings, findings: &mut Findings) {
        let clients = settings.maxclients();
        let threads = if settings.threads() == 0 { self.cores } else { settings.threads() };
        let needed = clients.saturating_add(descriptors::reserved(threads, 0));
        match self.files_max {
            Some(max) if max < needed => findings.act(
                "open-files",
                format!("this session may open {max} files, and {clients} clients need {needed}"),
                format!(
                    "raise the limit (LimitNOFILE={needed} in the unit, ulimit -n {needed} in a shell), or lower maxclients; \
                     the server lowers it by itself otherwise"
                ),
            ),
            Some(max) => findings.good("open-files", format!("{max}, and {clients} clients need {needed}")),
            None => findings.good("open-files", "no limit"),
        }
    }

    fn check_huge_pages(&self, settings: &Settings, findings: &mut Findings) {
        let check = "huge-pages";
        let modes = self.read("sys/kernel/mm/transparent_hugepage/enabled");
        let mode = modes.as_deref().and_then(|modes| modes.split(['[', ']']).nth(1));
        match mode {
            _ if settings.disable_thp() => findings.good(check, "turned off by disable-thp"),
            Some("never") => findings.note(
                check,
                "the system has turned them off: large data is slower",
                "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled; the server chooses where it uses them",
            ),
            Some(mode) => {
                findings.good(check, format!("the system allows them ({mode}), and the server chooses where"))
            }
            None => findings.unknown(check, "the system does not say whether it has them"),
        }
    }

    fn check_overcommit(&self, findings: &mut Findings) {
        let check = "overcommit";
        match self.number("proc/sys/vm/overcommit_memory") {
            Some(2) => findings.act(
                check,
                "vm.overcommit_memory is 2: memory is refused although some is free, and the server ends",
                "sysctl vm.overcommit_memory=1 (or 0), and the same in /etc/sysctl.d",
            ),
            Some(mode) => findings.good(check, format!("vm.overcommit_memory is {mode}; snapshots do not fork")),
            None => findings.unknown(check, "vm.overcommit_memory cannot be read"),
        }
    }

    fn check_backlog(&self, findings: &mut Findings) {
        let check = "connection-queue";
        match self.number("proc/sys/net/core/somaxconn") {
            Some(max) if max < BACKLOG => findings.act(
                check,
                format!("net.core.somaxconn is {max}: many clients that connect at once are refused"),
                format!("sysctl net.core.somaxconn={BACKLOG} or more, and the same in /etc/sysctl.d"),
            ),
            Some(max) => findings.good(check, format!("net.core.somaxconn is {max}")),
            None => findings.unknown(check, "net.core.somaxconn cannot be read"),
        }
    }

    fn check_memory(&self, settings: &Settings, findings: &mut Findings) {
        let check = "memory";
        let Some(memory) = self.memory() else {
            return findings.unknown(check, "the system does not say how much it has");
        };
        let (have, max) = (bytes(memory.bytes), settings.maxmemory());
        let whose = if memory.is_limited { "its cgroup may take" } else { "the machine has" };
        let most = memory.bytes / 100 * MEMORY_PERCENT_MAX;
        let advice = format!("set maxmemory to {} or less", bytes(most));
        match max {
            0 if memory.is_limited => findings.act(
                check,
                format!("maxmemory is 0, no limit, and {whose} {have}: the server is killed when it takes more"),
                advice,
            ),
            0 => findings.note(check, format!("{whose} {have}, and maxmemory is 0, no limit"), advice),
            max if max > most => findings.act(
                check,
                format!("maxmemory is {}, and {whose} {have}: connections and the system need some, too", bytes(max)),
                advice,
            ),
            max => findings.good(check, format!("{whose} {have}, and maxmemory is {}", bytes(max))),
        }
    }

    fn check_swap(&self, findings: &mut Findings) {
        let check = "swap";
        let (Some(total), Some(free)) = (self.meminfo("SwapTotal"), self.meminfo("SwapFree")) else {
            return findings.unknown(check, "the system does not say whether it has any");
        };
        let used = total.saturating_sub(free);
        match self.number("proc/sys/vm/swappiness") {
            _ if total == 0 => findings.good(check, "none"),
            _ if used > total / 10 => findings.act(
                check,
                format!(
                    "{} of {} are used: this machine is short of memory, and what is swapped out is slow",
                    bytes(used),
                    bytes(total)
                ),
                "give the machine more memory, or lower maxmemory",
            ),
            Some(swappiness) if swappiness > SWAPPINESS_MAX => findings.note(
                check,
                format!("{}, of which {} are used, with vm.swappiness {swappiness}", bytes(total), bytes(used)),
                "sysctl vm.swappiness=1 keeps data in memory until there is need",
            ),
            _ => findings.good(check, format!("{}, of which {} are used", bytes(total), bytes(used))),
        }
    }

    fn check_cores(&self, settings: &Settings, findings: &mut Findings) {
        let check = "threads";
        match (settings.threads(), self.cores) {
            (0, cores) => findings.good(check, format!("one for each of {cores} cores")),
            (threads, cores) if threads > cores => findings.act(
                check,
                format!("{threads} worker threads on {cores} cores wait for each other"),
                "set threads to 0, which is one for each core",
            ),
            (threads, cores) => findings.good(check, format!("{threads} on {cores} cores")),
        }
    }

    /// The least of what the machine has and what the cgroups of this process allow.
    fn memory(&self) -> Option<Memory> {
        let machine = self.meminfo("MemTotal")?;
        let limit = self.cgroup_limits().into_iter().min().filter(|limit| *limit < machine);
        Some(Memory { bytes: limit.unwrap_or(machine), is_limited: limit.is_some() })
    }

    /// The limits of the cgroup of this process and of those above it, in version 2 and in version 1.
    fn cgroup_limits(&self) -> Vec<u64> {
        let groups = self.read("proc/self/cgroup").unwrap_or_default();
        let mut limits = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
            let (tree, file) = match controllers {
                "" => ("sys/fs/cgroup", "memory.max"),
                names if names.split(',').any(|name| name == "memory") => {
                    ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
                }
                _ => continue,
            };
            for above in Path::new(path.trim_start_matches('/')).ancestors() {
                limits.extend(self.number(Path::new(tree).join(above).join(file)));
            }
        }
        limits
    }

    /// A line of /proc/meminfo, in bytes.
    fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.read("proc/meminfo")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kilobytes * 1024)
    }

    fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.read(path)?.trim().parse().ok()
    }

    fn read(&self, path: impl AsRef<Path>) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::*;

    const GOOD: &[(&str, &str)] = &[
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("proc/sys/vm/overcommit_memory", "0\n"),
        ("proc/sys/vm/swappiness", "60\n"),
        ("proc/sys/net/core/somaxconn", "4096\n"),
        ("proc/self/cgroup", "0::/system.slice/holdfast.service\n"),
        ("sys/fs/cgroup/system.slice/holdfast.service/memory.max", "max\n"),
        ("proc/meminfo", "MemTotal:       8388608 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"),
    ];

    /// What is found on a machine with these files beside the good ones.
    fn check(files: &[(&str, &str)], files_max: Option<u64>, settings: &[(&str, &str)]) -> Findings {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in GOOD.iter().chain(files) {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let given = Settings::new();
        settings.iter().for_each(|(name, value)| given.load(name.as_bytes(), value.as_bytes()).unwrap());
        let mut findings = Findings::default();
        Machine { root: root.path().to_owned(), files_max, cores: 4 }.check(&given, &mut findings);
        findings
    }

    fn verdict(check: &str, findings: &Findings) -> Verdict {
        let found = findings.of(check);
        assert_eq!(found.len(), 1, "{check}: {found:?}");
        found[0].0
    }

    #[test]
    fn a_good_machine_has_nothing_to_act_upon() {
        let findings = check(&[], Some(1 << 20), &[("maxmemory", "4gb")]);
        assert!(!findings.ask_for_action(), "{}", findings.shown());
        for name in ["open-files", "huge-pages", "overcommit", "connection-queue", "memory", "swap", "threads"] {
            assert_eq!(verdict(name, &findings), Verdict::Good, "{name}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        let found = |name, files: &[(&str, &str)], settings: &[(&str, &str)]| {
            verdict(name, &check(files, Some(1 << 20), settings))
        };
        assert_eq!(verdict("open-files", &check(&[], Some(4096), &[])), Verdict::Act);
        assert_eq!(verdict("open-files", &check(&[], Some(4096), &[("maxclients", "1000")])), Verdict::Good);
        let never = [("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n")];
        assert_eq!(found("huge-pages", &never, &[]), Verdict::Note);
        assert_eq!(found("huge-pages", &never, &[("disable-thp", "yes")]), Verdict::Good);
        assert_eq!(found("overcommit", &[("proc/sys/vm/overcommit_memory", "2\n")], &[]), Verdict::Act);
        assert_eq!(found("overcommit", &[("proc/sys/vm/overcommit_memory", "?\n")], &[]), Verdict::Unknown);
        assert_eq!(found("connection-queue", &[("proc/sys/net/core/somaxconn", "128\n")], &[]), Verdict::Act);
        assert_eq!(found("threads", &[], &[("threads", "8")]), Verdict::Act);
    }

    #[test]
    fn memory_is_what_the_machine_has_or_what_a_cgroup_allows() {
        let found = |files: &[(&str, &str)], max| verdict("memory", &check(files, None, &[("maxmemory", max)]));
        assert_eq!(found(&[], "0"), Verdict::Note);
        assert_eq!(found(&[], "7gb"), Verdict::Act);
        let above = [("sys/fs/cgroup/system.slice/memory.max", "2147483648\n")];
        assert_eq!(found(&above, "0"), Verdict::Act);
        assert_eq!(found(&above, "2gb"), Verdict::Act);
        assert_eq!(found(&above, "1gb"), Verdict::Good);
        let first_version = [
            ("proc/self/cgroup", "12:cpu,cpuacct:/\n4:memory:/docker/7\n"),
            ("sys/fs/cgroup/memory/docker/7/memory.limit_in_bytes", "2147483648\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(found(&first_version, "2gb"), Verdict::Act);
        assert_eq!(found(&first_version, "1gb"), Verdict::Good);
    }

    #[test]
    fn swap_that_is_used_is_a_lack_of_memory() {
        let found = |swap: &str, swappiness: &str| {
            let meminfo = format!("MemTotal: 8388608 kB\n{swap}\n");
            verdict("swap", &check(&[("proc/meminfo", &meminfo), ("proc/sys/vm/swappiness", swappiness)], None, &[]))
        };
        assert_eq!(found("SwapTotal: 1000 kB\nSwapFree: 1000 kB", "60"), Verdict::Note);
        assert_eq!(found("SwapTotal: 1000 kB\nSwapFree: 1000 kB", "1"), Verdict::Good);
        assert_eq!(found("SwapTotal: 1000 kB\nSwapFree: 500 kB", "1"), Verdict::Act);
        assert_eq!(found("", "1"), Verdict::Unknown);
    }
}
