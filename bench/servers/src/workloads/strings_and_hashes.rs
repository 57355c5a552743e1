//! Single commands on strings and hashes, sent by redis-benchmark. Knows nothing of how they are sent.

use super::data_sets::{JOB_KEY, JOB_RECORDS, PAIR_KEY, PAIRS, STRING_KEY, STRINGS};
use super::workload::{Driver, HEAVY, LIGHT, MEDIUM, RequestCounts, Workload};
use crate::measure::{Bound, Metric, Target};
use crate::servers::Persistence;

pub(crate) const fn redis_benchmark(command: &'static [&'static str], requests: RequestCounts) -> Driver {
    Driver::RedisBenchmark { command, requests }
}

const LOAD_TARGETS: &[Target] = &[
    Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
    Target { pipeline: Some(1), metric: Metric::ServerCpu, bound: Bound::AtMost(0.8) },
    Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.7) },
    Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.3) },
];

/// Changes both fields of a pair, one of which is indexed by default.
pub(crate) const HSET: &[&str] = &["HSET", PAIR_KEY, "state", "running", "updated_at", "__rand_int__"];

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "set",
        about: "SET, 32 bytes",
        persistence: Persistence::Off,
        setup: &STRINGS,
        driver: redis_benchmark(&["SET", STRING_KEY, "0123456789abcdef0123456789abcdef"], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "get",
        about: "GET, 32 bytes",
        persistence: Persistence::Off,
        setup: &STRINGS,
        driver: redis_benchmark(&["GET", STRING_KEY], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hset",
        about: "HSET, 2 fields",
        persistence: Persistence::Off,
        setup: &PAIRS,
        driver: redis_benchmark(HSET, MEDIUM),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hset-indexed",
        about: "HSET, indexed",
        persistence: Persistence::AgainstNone,
        setup: &PAIRS,
        driver: redis_benchmark(HSET, MEDIUM),
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.0) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) },
            Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) },
        ],
    },
    Workload {
        name: "hget",
        about: "HGET, 1 of 12 fields",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: redis_benchmark(&["HGET", JOB_KEY, "updated_at"], LIGHT),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hmget",
        about: "HMGET, 4 of 12 fields",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: redis_benchmark(&["HMGET", JOB_KEY, "state", "worker", "current_step", "updated_at"], MEDIUM),
        targets: LOAD_TARGETS,
    },
    Workload {
        name: "hgetall",
        about: "HGETALL, 12 fields",
        persistence: Persistence::Off,
        setup: &JOB_RECORDS,
        driver: redis_benchmark(&["HGETALL", JOB_KEY], HEAVY),
        targets: LOAD_TARGETS,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_reads_the_keys_its_setup_loads() {
        for workload in WORKLOADS {
            let Driver::RedisBenchmark { command, .. } = workload.driver else { panic!("{}", workload.name) };
            let loaded = [(&STRINGS, STRING_KEY), (&PAIRS, PAIR_KEY), (&JOB_RECORDS, JOB_KEY)];
            let (_, key) = loaded.iter().find(|(setup, _)| std::ptr::eq(*setup, workload.setup)).unwrap();
            assert_eq!(command[1], *key, "{}", workload.name);
        }
    }
}
