//! The table of what is measured and what we promise. Knows no server's name, pid or speed.
//!
//! To add a workload, add a row. A command that redis-benchmark can send needs nothing else; load that it cannot send is
//! a `Driver::Clients`, and anything more involved one of the others: functions that drive one running server and
//! return its figures.

use anyhow::{Result, bail};

use crate::coordination;
use crate::durability;
use crate::figures::{Bound, Metric, Sample, Target};
use crate::index_cost;
use crate::lives;
use crate::memory;
use crate::servers::{Persistence, Server, ServerSpec};
use crate::sorted_sets;
use crate::stalls;
use crate::stuck;

/// Keys in the preloaded data sets, and the range of redis-benchmark's random numbers.
pub(crate) const KEYS: u64 = 100_000;

pub(crate) static WORKLOADS: &[Workload] = &[
    Workload {
        name: "set",
        about: "SET, 32 bytes",
        persistence: Persistence::Off,
        setup: Setup::Strings,
        driver: redis_benchmark(&["SET", STRING_KEY, "0123456789abcdef0123456789abcdef"], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "get",
        about: "GET, 32 bytes",
        persistence: Persistence::Off,
        setup: Setup::Strings,
        driver: redis_benchmark(&["GET", STRING_KEY], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hset",
        about: "HSET, 2 fields",
        persistence: Persistence::Off,
        setup: Setup::Pairs,
        driver: redis_benchmark(HSET, MEDIUM),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hget",
        about: "HGET, 1 of 12 fields",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: redis_benchmark(&["HGET", JOB_KEY, "updated_at"], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hmget",
        about: "HMGET, 4 of 12 fields",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: redis_benchmark(&["HMGET", JOB_KEY, "state", "worker", "current_step", "updated_at"], MEDIUM),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hgetall",
        about: "HGETALL, 12 fields",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: redis_benchmark(&["HGETALL", JOB_KEY], HEAVY),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "coordination-evalsha",
        about: "EVALSHA, CAS",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: Driver::Clients { run: coordination::evalsha, amounts: SCRIPTED, needs: "EVALSHA" },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.8) },
            Target { pipeline: Some(16), metric: Metric::ServerCpu, bound: Bound::AtMost(0.7) },
        ],
    },
    Workload {
        name: "coordination-fcall",
        about: "FCALL, CAS",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: Driver::Clients { run: coordination::fcall, amounts: SCRIPTED, needs: "FCALL" },
        targets: &[],
    },
    Workload {
        name: "coordination-multi",
        about: "MULTI, 4 HSET, EXEC",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: Driver::Clients { run: coordination::multi, amounts: TRANSACTIONS, needs: "EXEC" },
        targets: &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }],
    },
    Workload {
        name: "coordination-publish",
        about: "PUBLISH to 50 clients",
        persistence: Persistence::Off,
        setup: Setup::Nothing,
        driver: Driver::Clients { run: coordination::publish, amounts: PUBLISHED, needs: "PUBLISH" },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
        ],
    },
    Workload {
        name: "records-stuck-range",
        about: "IDX.RANGE, SCAN",
        persistence: Persistence::Off,
        setup: Setup::Backlog,
        driver: Driver::Search { run: stuck::range_or_scan },
        targets: &[Target { pipeline: None, metric: Metric::Throughput, bound: Bound::AtLeast(1_000.0) }],
    },
    Workload {
        name: "records-stuck-hfind",
        about: "HFIND, SCAN",
        persistence: Persistence::Off,
        setup: Setup::Backlog,
        driver: Driver::Search { run: stuck::find_or_scan },
        targets: &[],
    },
    Workload {
        name: "records-stuck-by-hand",
        about: "IDX.RANGE, own ZSET",
        persistence: Persistence::Off,
        setup: Setup::Backlog,
        driver: Driver::Search { run: stuck::range_or_by_hand },
        targets: &[Target { pipeline: None, metric: Metric::Throughput, bound: Bound::AtLeast(2.0) }],
    },
    Workload {
        name: "records-life",
        about: "A job's life, indexed",
        persistence: Persistence::Off,
        setup: Setup::Nothing,
        driver: Driver::Clients { run: lives::lives, amounts: LIVES, needs: "EVALSHA" },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
        ],
    },
    Workload {
        name: "records-claim",
        about: "HCAS, EVALSHA",
        persistence: Persistence::Off,
        setup: Setup::JobRecords,
        driver: Driver::Clients { run: coordination::claim, amounts: SCRIPTED, needs: "EVALSHA" },
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.1) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(3.0) },
        ],
    },
    Workload {
        name: "records-index",
        about: "HSET, cost of the index",
        persistence: Persistence::Off,
        setup: Setup::Nothing,
        driver: Driver::Own { run: index_cost::index_cost, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[
            Target { pipeline: None, metric: Metric::IndexLoss, bound: Bound::AtMost(0.2) },
            Target { pipeline: None, metric: Metric::IndexLossAtRandom, bound: Bound::AtMost(0.2) },
            Target { pipeline: None, metric: Metric::IndexRss, bound: Bound::AtMost(48.0) },
            Target { pipeline: None, metric: Metric::IndexUsedMemory, bound: Bound::AtMost(48.0) },
            Target { pipeline: None, metric: Metric::IndexBytes, bound: Bound::AtMost(48.0) },
        ],
    },
    Workload {
        name: "sorted-sets-zadd",
        about: "ZADD, new score",
        persistence: Persistence::Off,
        setup: Setup::Scores,
        driver: Driver::Clients { run: sorted_sets::zadd, amounts: MEDIUM, needs: "ZADD" },
        targets: SORTED_SET_TARGETS,
    },
    Workload {
        name: "sorted-sets-zrangebyscore",
        about: "ZRANGEBYSCORE, 10 of 1 M",
        persistence: Persistence::Off,
        setup: Setup::Scores,
        driver: Driver::Clients { run: sorted_sets::zrangebyscore, amounts: HEAVY, needs: "ZRANGEBYSCORE" },
        targets: SORTED_SET_TARGETS,
    },
    Workload {
        name: "sorted-sets-zincrby",
        about: "ZINCRBY",
        persistence: Persistence::Off,
        setup: Setup::Scores,
        driver: Driver::Clients { run: sorted_sets::zincrby, amounts: MEDIUM, needs: "ZINCRBY" },
        targets: SORTED_SET_TARGETS,
    },
    Workload {
        name: "memory-records",
        about: "Memory per job record",
        persistence: Persistence::Off,
        setup: Setup::Nothing,
        driver: Driver::Custom { run: memory::job_records, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.6) }],
    },
    Workload {
        name: "memory-idle",
        about: "Memory per idle connection",
        persistence: Persistence::Off,
        setup: Setup::Nothing,
        driver: Driver::Custom { run: memory::idle_connections, amount: 1_000, amount_quick: 1_000 },
        targets: &[Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.5) }],
    },
    Workload {
        name: "stalls",
        about: "Large commands",
        persistence: Persistence::EverySecond,
        setup: Setup::Nothing,
        driver: Driver::Rows { run: stalls::stalls, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[],
    },
    Workload {
        name: "durability-everysec",
        about: "HSET, everysec",
        persistence: Persistence::EverySecond,
        setup: Setup::Pairs,
        driver: redis_benchmark(HSET, JOURNALED),
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) },
            Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.5) },
        ],
    },
    Workload {
        name: "durability-always",
        about: "HSET, always",
        persistence: Persistence::Always,
        setup: Setup::Pairs,
        driver: redis_benchmark(HSET, SYNCED),
        targets: &[Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }],
    },
    Workload {
        name: "durability-start",
        about: "Start with job records",
        persistence: Persistence::EverySecond,
        setup: Setup::Nothing,
        driver: Driver::Custom { run: durability::start_with_data, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[Target { pipeline: None, metric: Metric::StartTime, bound: Bound::AtMost(0.5) }],
    },
    Workload {
        name: "durability-snapshot",
        about: "HGET during a snapshot",
        persistence: Persistence::EverySecond,
        setup: Setup::Nothing,
        driver: Driver::Custom { run: durability::reads_during_snapshot, amount: 1_000_000, amount_quick: 100_000 },
        targets: &[
            Target { pipeline: None, metric: Metric::LatencyP999, bound: Bound::AtMost(0.5) },
            Target { pipeline: None, metric: Metric::RssGrowth, bound: Bound::AtMost(0.1) },
        ],
    },
];

const HSET: &[&str] = &["HSET", PAIR_KEY, "state", "running", "updated_at", "__rand_int__"];

pub(crate) struct Workload {
    /// What `--only` and results.json call it.
    pub(crate) name: &'static str,
    /// What the tables and the chart call it.
    pub(crate) about: &'static str,
    pub(crate) persistence: Persistence,
    /// What each server holds before the first round.
    pub(crate) setup: Setup,
    pub(crate) driver: Driver,
    /// Promises, judged against the peer named `redis` or, where the metric makes no ratio, by themselves.
    pub(crate) targets: &'static [Target],
}

/// What is in a preloaded set, numbered as redis-benchmark numbers it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Setup {
    Nothing,
    /// `STRING_KEY`: strings of 32 bytes.
    Strings,
    /// `PAIR_KEY`: hashes of two fields.
    Pairs,
    /// `JOB_KEY`: job records of twelve fields.
    JobRecords,
    /// `JOB_KEY`: many job records, some of them stuck; and, for a server that keeps no index, one kept by hand.
    Backlog,
    /// A sorted set, of which these are the members.
    Scores,
}

pub(crate) enum Driver {
    /// redis-benchmark sends this command at each pipeline depth; the servers run side by side and take turns.
    RedisBenchmark { command: &'static [&'static str], requests: RequestCounts },
    /// Our own clients send `amounts` operations at each pipeline depth and check the answers; the servers take turns
    /// likewise. If one does not know the command `needs`, the workload is left out, with a note.
    Clients { run: fn(&Server, u32, u64) -> Result<Sample>, amounts: RequestCounts, needs: &'static str },
    /// Anything else. A fresh server for each round, alone on the machine; `run` receives the server and the amount
    /// of work (records, connections, messages), which is smaller with `--quick`.
    Custom { run: fn(&mut Server, u64) -> Result<Sample>, amount: u64, amount_quick: u64 },
    /// Reads from a large data set; the servers take turns. They are kept, with what they hold, for the next workload
    /// of this kind.
    Search { run: fn(&Server, u64) -> Result<Sample> },
    /// Many things one after the other on a server that `run` starts, alone on the machine. Each has a line of its own, in
    /// the same order for every server; one that a server does not know has no figures.
    Rows { run: fn(&ServerSpec, u64) -> Result<Vec<RowFigures>>, amount: u64, amount_quick: u64 },
    /// Compares the subject with itself, started otherwise; `run` starts it. Peers have no figures.
    Own { run: fn(&ServerSpec, u64) -> Result<Sample>, amount: u64, amount_quick: u64 },
}

/// What one row gave, if the server knows it, and its name.
pub(crate) type RowFigures = (&'static str, Option<Sample>);

/// Requests in a run, by the least pipeline depth they are meant for. Fixed work rather than fixed time: about three
/// seconds at the speed of Redis 7 on a small machine.
pub(crate) type RequestCounts = &'static [(u32, u64)];

const LIGHT: RequestCounts = &[(1, 300_000), (8, 1_500_000), (32, 2_000_000)];
const MEDIUM: RequestCounts = &[(1, 300_000), (8, 1_000_000), (32, 1_200_000)];
const HEAVY: RequestCounts = &[(1, 250_000), (8, 500_000), (32, 500_000)];
/// Long enough that even the faster server syncs several times.
const JOURNALED: RequestCounts = &[(1, 300_000), (8, 2_000_000), (32, 4_000_000)];
/// Each answer waits for the disk.
const SYNCED: RequestCounts = &[(1, 150_000), (8, 600_000), (32, 600_000)];
/// Each makes one or two calls.
const SCRIPTED: RequestCounts = &[(1, 250_000), (8, 600_000), (32, 600_000)];
/// Each is six requests.
const TRANSACTIONS: RequestCounts = &[(1, 180_000), (8, 250_000), (32, 250_000)];
/// Each is delivered fifty times.
const PUBLISHED: RequestCounts = &[(1, 70_000), (8, 200_000), (32, 200_000)];

/// Six of them are one job's life.
const LIVES: RequestCounts = &[(1, 240_000), (8, 480_000), (32, 480_000)];

const SORTED_SET_TARGETS: &[Target] =
    &[Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }];

const LOAD_TARGETS: &[Target] = &[
    Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
    Target { pipeline: Some(1), metric: Metric::ServerCpu, bound: Bound::AtMost(0.8) },
    Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.7) },
    Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.3) },
];

// redis-benchmark replaces each `__rand_int__` with twelve digits, zero-padded.
const STRING_KEY: &str = "gbe:state:cell:__rand_int__";
const PAIR_KEY: &str = "gbe:state:step:__rand_int__";
pub(crate) const JOB_KEY: &str = "gbe:state:tasks:email-send:job___rand_int__";

const fn redis_benchmark(command: &'static [&'static str], requests: RequestCounts) -> Driver {
    Driver::RedisBenchmark { command, requests }
}

impl Workload {
    /// Requests, operations, records or connections in one round.
    pub(crate) fn amount(&self, pipeline: Option<u32>, quick: bool) -> u64 {
        match self.driver {
            Driver::RedisBenchmark { requests, .. } | Driver::Clients { amounts: requests, .. } => {
                let depth = pipeline.unwrap_or(1);
                let (_, count) = requests.iter().rev().find(|(least, _)| *least <= depth).unwrap_or(&requests[0]);
                if quick { count / 6 } else { *count }
            }
            Driver::Search { .. } => self.setup.size(quick),
            Driver::Custom { amount, amount_quick, .. }
            | Driver::Rows { amount, amount_quick, .. }
            | Driver::Own { amount, amount_quick, .. } => {
                if quick {
                    amount_quick
                } else {
                    amount
                }
            }
        }
    }
}

impl Setup {
    /// The name of key `number` in this set.
    pub(crate) fn key(self, number: u64) -> String {
        let template = match self {
            Setup::Nothing => "",
            Setup::Strings => STRING_KEY,
            Setup::Pairs => PAIR_KEY,
            Setup::JobRecords | Setup::Backlog => JOB_KEY,
            Setup::Scores => sorted_sets::MEMBER,
        };
        template.replace("__rand_int__", &format!("{number:012}"))
    }

    /// How many there are in this set.
    pub(crate) fn size(self, quick: bool) -> u64 {
        match self {
            Setup::Nothing => 0,
            Setup::Strings | Setup::Pairs | Setup::JobRecords => KEYS,
            Setup::Backlog | Setup::Scores if quick => KEYS,
            Setup::Backlog | Setup::Scores => 1_000_000,
        }
    }
}

/// All workloads, or those the patterns name. A pattern that is a whole name means only that one, so that `hget`
/// does not drag `hgetall` along; the beginning of names, up to a `-`, means that group; otherwise it matches any part
/// of a name.
pub(crate) fn select(patterns: &[String]) -> Result<Vec<&'static Workload>> {
    for pattern in patterns {
        if !WORKLOADS.iter().any(|workload| matches(pattern, workload.name)) {
            let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
            bail!("no workload matches `{pattern}`; there are: {}", names.join(", "));
        }
    }
    let wanted = |name| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
    Ok(WORKLOADS.iter().filter(|workload| wanted(workload.name)).collect())
}

fn matches(pattern: &str, name: &str) -> bool {
    let in_group = |name: &str| name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('-'));
    if WORKLOADS.iter().any(|workload| workload.name == pattern) {
        name == pattern
    } else if WORKLOADS.iter().any(|workload| in_group(workload.name)) {
        in_group(name)
    } else {
        name.contains(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(patterns: &[&str]) -> Vec<&'static str> {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        select(&patterns).unwrap().iter().map(|workload| workload.name).collect()
    }

    #[test]
    fn names_are_unique() {
        for (i, workload) in WORKLOADS.iter().enumerate() {
            assert!(WORKLOADS[..i].iter().all(|other| other.name != workload.name), "{}", workload.name);
        }
    }

    #[test]
    fn every_command_reads_the_keys_its_setup_loads() {
        for workload in WORKLOADS {
            if let Driver::RedisBenchmark { command, .. } = workload.driver {
                let key = command[1].replace("__rand_int__", "000000000042");
                assert_eq!(workload.setup.key(42), key, "{}", workload.name);
            }
        }
    }

    #[test]
    fn request_counts_start_at_depth_one_and_rise_by_depth() {
        for workload in WORKLOADS {
            if let Driver::RedisBenchmark { requests, .. } | Driver::Clients { amounts: requests, .. } = workload.driver
            {
                assert_eq!(requests[0].0, 1, "{}", workload.name);
                assert!(requests.is_sorted_by(|a, b| a.0 < b.0), "{}", workload.name);
            }
        }
    }

    #[test]
    fn the_amount_follows_depth_and_quickness() {
        let get = WORKLOADS.iter().find(|workload| workload.name == "get").unwrap();
        assert_eq!(get.amount(Some(1), false), 300_000);
        assert_eq!(get.amount(Some(7), false), 300_000);
        assert_eq!(get.amount(Some(16), false), 1_500_000);
        assert_eq!(get.amount(Some(200), true), 2_000_000 / 6);
    }

    #[test]
    fn a_whole_name_selects_one_and_a_part_selects_many() {
        assert_eq!(selected(&["hget"]), ["hget"]);
        assert_eq!(selected(&["memory"]), ["memory-records", "memory-idle"]);
        assert_eq!(selected(&["-idle"]), ["memory-idle"]);
        assert!(selected(&["records"]).iter().all(|name| name.starts_with("records-")));
        assert_eq!(selected(&["hget", "set"]), ["set", "hget"]);
        assert_eq!(selected(&[]).len(), WORKLOADS.len());
    }

    #[test]
    fn the_workloads_that_keep_a_journal_are_the_durability_group_and_the_stalls() {
        let journaled: Vec<_> = WORKLOADS.iter().filter(|workload| workload.persistence != Persistence::Off).collect();
        assert_eq!(
            selected(&["durability", "stalls"]),
            journaled.iter().map(|workload| workload.name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_workloads_with_clients_of_our_own_are_in_groups() {
        let ours = WORKLOADS.iter().filter(|workload| matches!(workload.driver, Driver::Clients { .. }));
        let groups = selected(&["coordination", "records", "sorted-sets"]);
        assert!(ours.into_iter().all(|workload| groups.contains(&workload.name)));
    }

    #[test]
    fn an_unknown_pattern_is_refused() {
        let error = select(&["zset".to_string()]).err().unwrap().to_string();
        assert!(error.starts_with("no workload matches `zset`; there are: set, get,"), "{error}");
    }
}
