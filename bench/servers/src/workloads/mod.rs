//! The table of what is measured and what we promise. Knows no server's name, pid or speed.
//!
//! To add a workload, add a row to the table at the end of its family's file. A command that redis-benchmark can send needs
//! nothing else; load that it cannot send is a `Driver::Clients`, and anything more involved one of the others: functions
//! that drive one running server and return its figures. A new family is a file with such a table, and a line in `FAMILIES`.

mod beside_etcd;
mod cells;
mod coordination;
mod data_sets;
pub(crate) mod durability;
mod groups;
mod in_turns;
mod job_records;
mod lists;
mod memory;
mod records;
mod registers;
mod runs;
mod saturation;
mod sessions;
mod sets;
mod sorted_sets;
mod stalls;
mod streams;
mod strings_and_hashes;
mod workload;

use anyhow::{Result, bail};

pub(crate) use workload::{Driver, Length, Needs, OwnFigures, RowFigures, Setup, Workload};

/// The tables of all families, in the order in which they are measured.
const FAMILIES: &[&[Workload]] = &[
    strings_and_hashes::WORKLOADS,
    coordination::WORKLOADS,
    records::WORKLOADS,
    groups::WORKLOADS,
    sorted_sets::WORKLOADS,
    sets::WORKLOADS,
    streams::WORKLOADS,
    lists::WORKLOADS,
    cells::WORKLOADS,
    runs::WORKLOADS,
    registers::WORKLOADS,
    sessions::WORKLOADS,
    memory::WORKLOADS,
    stalls::WORKLOADS,
    saturation::WORKLOADS,
    durability::WORKLOADS,
];

fn all() -> impl Iterator<Item = &'static Workload> {
    FAMILIES.iter().copied().flatten()
}

/// All workloads, or those the patterns name. A pattern that is a whole name means only that one, so that `hget`
/// does not drag `hgetall` along; the beginning of names, up to a `-`, means that group; otherwise it matches any part
/// of a name.
pub(crate) fn select(patterns: &[String]) -> Result<Vec<&'static Workload>> {
    for pattern in patterns {
        if !all().any(|workload| matches(pattern, workload.name)) {
            let names: Vec<_> = all().map(|workload| workload.name).collect();
            bail!("no workload matches `{pattern}`; there are: {}", names.join(", "));
        }
    }
    let wanted = |name| patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, name));
    Ok(all().filter(|workload| wanted(workload.name)).collect())
}

fn matches(pattern: &str, name: &str) -> bool {
    let in_group = |name: &str| name.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('-'));
    if all().any(|workload| workload.name == pattern) {
        name == pattern
    } else if all().any(|workload| in_group(workload.name)) {
        in_group(name)
    } else {
        name.contains(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Persistence;

    fn selected(patterns: &[&str]) -> Vec<&'static str> {
        let patterns: Vec<_> = patterns.iter().map(|pattern| pattern.to_string()).collect();
        select(&patterns).unwrap().iter().map(|workload| workload.name).collect()
    }

    #[test]
    fn names_are_unique() {
        for workload in all() {
            assert_eq!(all().filter(|other| other.name == workload.name).count(), 1, "{}", workload.name);
        }
    }

    #[test]
    fn request_counts_start_at_depth_one_and_rise_by_depth() {
        for workload in all() {
            if let Driver::RedisBenchmark { requests, .. } | Driver::Clients { amounts: requests, .. } = workload.driver
            {
                assert_eq!(requests[0].0, 1, "{}", workload.name);
                assert!(requests.is_sorted_by(|a, b| a.0 < b.0), "{}", workload.name);
            }
        }
    }

    #[test]
    fn the_amount_follows_depth_and_quickness() {
        let get = all().find(|workload| workload.name == "get").unwrap();
        assert_eq!(get.amount(Some(1), Length::Full), 300_000);
        assert_eq!(get.amount(Some(7), Length::Full), 300_000);
        assert_eq!(get.amount(Some(16), Length::Full), 1_500_000);
        assert_eq!(get.amount(Some(16), Length::Third), 500_000);
        assert_eq!(get.amount(Some(200), Length::Quick), 2_000_000 / 6);
    }

    #[test]
    fn a_whole_name_selects_one_and_a_part_selects_many() {
        assert_eq!(selected(&["hget"]), ["hget"]);
        assert_eq!(selected(&["memory"]), ["memory-records", "memory-idle"]);
        assert_eq!(selected(&["-idle"]), ["memory-idle"]);
        assert!(selected(&["records"]).iter().all(|name| name.starts_with("records-")));
        assert_eq!(selected(&["hget", "set"]), ["set", "hget"]);
        assert_eq!(selected(&[]).len(), all().count());
    }

    #[test]
    fn the_workloads_that_keep_a_journal_are_the_durability_group_the_stalls_indexed_writes_groups_and_etcd() {
        let journaled: Vec<_> = all().filter(|workload| workload.persistence != Persistence::Off).collect();
        assert_eq!(
            selected(&[
                "hset-indexed",
                "coordination-etcd",
                "durability",
                "stalls",
                "stalls-cells",
                "stalls-registers",
                "stalls-sequences",
                "stalls-saturation",
                "records-index",
                "groups-writes",
                "groups-other-writes",
                "groups-claim",
                "groups-blocked",
                "groups-life",
                "groups-neighbour",
            ]),
            journaled.iter().map(|workload| workload.name).collect::<Vec<_>>()
        );
    }

    #[test]
    fn the_workloads_with_clients_of_our_own_are_in_groups() {
        let ours = all().filter(|workload| matches!(workload.driver, Driver::Clients { .. }));
        let groups = selected(&[
            "coordination",
            "records",
            "sorted-sets",
            "sets",
            "lists",
            "streams",
            "cells",
            "runs",
            "sessions",
        ]);
        assert!(ours.into_iter().all(|workload| groups.contains(&workload.name)));
    }

    #[test]
    fn an_unknown_pattern_is_refused() {
        let error = select(&["zset".to_string()]).err().unwrap().to_string();
        assert!(error.starts_with("no workload matches `zset`; there are: set, get,"), "{error}");
    }
}
