//! What the metrics say of the groups of indexes, and how many series they have at most.

use crate::exposition::{Metrics, Style};
use crate::http::{Watched, request};
use crate::support::{eventually, ok, unix_ms};

const JOBS: &str = "IDX.CREATE jobs PREFIX 1 job: FIELD due GROUP tenant HELD state 1 running";
const AT: [(&str, &str); 2] = [("index", "jobs"), ("db", "db0")];

fn of(group: &str) -> [(&str, &str); 3] {
    [AT[0], AT[1], ("group", group)]
}

fn blocked(metrics: &Metrics) -> [f64; 3] {
    let by = |limit| metrics.at("holdfast_index_blocked_groups", &[AT[0], AT[1], ("limit", limit)]);
    ["held", "rate", "pause"].map(by)
}

/// True if there is a sample with these labels, be it 0.
fn has(metrics: &Metrics, name: &str, labels: &[(&str, &str)]) -> bool {
    metrics.all(name).iter().any(|(found, _)| {
        found.len() == labels.len() && labels.iter().all(|(label, value)| found.get(*label).is_some_and(|v| v == value))
    })
}

#[test]
fn groups_tell_what_waits_what_is_held_and_what_limits_there_are() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, JOBS);
    let now_ms = unix_ms(&mut client);
    for (number, tenant, due, state) in [
        (1, "acme", now_ms - 90_000, "pending"),
        (2, "acme", now_ms + 3_600_000, "pending"),
        (3, "acme", now_ms + 3_600_000, "running"),
        (4, "bolt", now_ms + 3_600_000, "running"),
        (5, "cord", 7, "pending"),
        (6, "dune", now_ms - 1000, "pending"),
    ] {
        client.run(&format!("HSET job:{number} due {due} tenant {tenant} state {state}"));
    }
    // Held, and not in the index.
    client.run("HSET job:7 tenant bolt state running");
    for line in [
        "IDX.LIMIT jobs EACH HELD 5",
        "IDX.LIMIT jobs GROUP acme HELD 1 WEIGHT 2.5",
        "IDX.LIMIT jobs GROUP cord RATE 3 2000 HELD NONE",
        "IDX.LIMIT jobs GROUP dune PAUSE yes",
    ] {
        ok(&mut client, line);
    }
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_groups", &AT), 4.0);
    assert_eq!(metrics.at("holdfast_index_held_records", &AT), 3.0);
    eventually("all groups have their limits", || blocked(&server.metrics()) == [1.0, 0.0, 1.0]);
    for (group, records, held, may_give, held_max, weight, is_paused) in [
        ("acme", 3.0, 1.0, 0.0, Some(1.0), 2.5, 0.0),
        ("bolt", 1.0, 2.0, 1.0, Some(5.0), 1.0, 0.0),
        ("cord", 1.0, 0.0, 1.0, None, 1.0, 0.0),
        ("dune", 1.0, 0.0, 0.0, Some(5.0), 1.0, 1.0),
    ] {
        let at = |name: &str| metrics.at(name, &of(group));
        assert_eq!(at("holdfast_group_records"), records, "{group}");
        assert_eq!(at("holdfast_group_held_records"), held, "{group}");
        assert_eq!(at("holdfast_group_may_give"), may_give, "{group}");
        assert_eq!(at("holdfast_group_weight"), weight, "{group}");
        assert_eq!(at("holdfast_group_paused"), is_paused, "{group}");
        assert_eq!(at("holdfast_group_held_max"), held_max.unwrap_or_default(), "{group}");
        assert_eq!(has(&metrics, "holdfast_group_held_max", &of(group)), held_max.is_some(), "{group}");
        assert_eq!(has(&metrics, "holdfast_group_rate_per_second", &of(group)), group == "cord", "{group}");
    }
    assert_eq!(metrics.at("holdfast_group_rate_per_second", &of("cord")), 1.5);
    let age = |group| metrics.at("holdfast_group_oldest_due_seconds", &of(group));
    assert!((90.0..3000.0).contains(&age("acme")), "{}", age("acme"));
    assert_eq!([age("bolt"), age("cord")], [0.0, 0.0], "one has nothing due, one has no time");
    // Nothing is set for the index as a whole.
    assert!(has(&metrics, "holdfast_index_paused", &AT) && !has(&metrics, "holdfast_index_held_max", &AT));
    assert_eq!(metrics.all("holdfast_index_rate_per_second"), &[]);
    for line in ["IDX.LIMIT jobs ALL HELD 9 RATE 5 1000 PAUSE yes", "IDX.LIMIT jobs GROUP dune PAUSE no"] {
        ok(&mut client, line);
    }
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_held_max", &AT), 9.0);
    assert_eq!(metrics.at("holdfast_index_rate_per_second", &AT), 5.0);
    assert_eq!(metrics.at("holdfast_index_paused", &AT), 1.0);
    assert_eq!(metrics.at("holdfast_group_paused", &of("dune")), 0.0);
    assert!(metrics.all("holdfast_group_may_give").iter().all(|(_, may_give)| *may_give == 0.0), "all is paused");
}

#[test]
fn a_used_up_rate_is_told() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, JOBS);
    ok(&mut client, "IDX.LIMIT jobs GROUP acme RATE 1 1000000");
    (0..3).for_each(|number| drop(client.run(&format!("HSET job:{number} due 1 tenant acme state pending"))));
    assert_eq!(server.metrics().at("holdfast_group_may_give", &of("acme")), 1.0);
    assert_eq!(client.run("CLAIM 1 jobs MAX NOW SET 1 state running COUNT 9").items().len(), 1);
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_group_may_give", &of("acme")), 0.0);
    assert_eq!(blocked(&metrics), [0.0, 1.0, 0.0]);
    assert_eq!(metrics.at("holdfast_group_rate_per_second", &of("acme")), 0.001);
}

/// However many groups there are, the number of series is bounded, and no record is lost from the sums.
#[test]
fn many_groups_share_a_series() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, JOBS);
    for number in 0..3000 {
        client.queue_line(&format!("HSET job:{number} due 1 tenant tenant:{number} state pending"));
    }
    // One that is called as the rest is, and one with many that are held.
    for number in 0..50 {
        client.queue_line(&format!("HSET job:other:{number} due 1 tenant other state pending"));
        client.queue_line(&format!("HSET job:busy:{number} tenant busy state running"));
    }
    client.queue_line("ECHO done");
    while client.read().to_string() != "\"done\"" {}
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_groups", &AT), 3002.0);
    for (name, sum) in [("holdfast_group_records", 3050.0), ("holdfast_group_held_records", 50.0)] {
        let series = metrics.all(name);
        assert!(series.len() <= 33, "{name} has {}", series.len());
        assert_eq!(series.iter().map(|(_, value)| value).sum::<f64>(), sum, "{name}");
    }
    assert!(metrics.at("holdfast_group_records", &of("other")) >= 3000.0);
    assert_eq!(metrics.at("holdfast_group_held_records", &of("busy")), 50.0);
    assert!(metrics.all("holdfast_group_may_give").len() <= 32, "the rest has no such figure");
}

/// Those with the most records in groups are told one by one.
#[test]
fn many_indexes_with_groups_share_the_series() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    for number in 0..20 {
        ok(&mut client, &format!("IDX.CREATE index{number} PREFIX 1 job: FIELD due GROUP tenant"));
    }
    for db in 0..16 {
        ok(&mut client, &format!("SELECT {db}"));
        client.run("HSET job:1 due 1 tenant acme");
    }
    client.run("HSET job:2 due 1 tenant acme");
    let metrics = server.metrics();
    let records = metrics.all("holdfast_group_records");
    assert_eq!(records.iter().map(|(_, value)| value).sum::<f64>(), 340.0);
    assert!(records.len() <= 16 + 129, "{}", records.len());
    assert_eq!(metrics.all("holdfast_group_may_give").len(), 16);
    let largest = [("index", "index7"), ("db", "db15"), ("group", "acme")];
    assert_eq!(metrics.at("holdfast_group_records", &largest), 2.0);
    assert!(metrics.all("holdfast_index_groups").len() <= 129);
    assert_eq!(metrics.all("holdfast_index_groups").iter().map(|(_, value)| value).sum::<f64>(), 320.0);
    // That of indexes which are counted together has no limit.
    assert!(!has(&metrics, "holdfast_index_paused", &[("index", "other"), ("db", "other")]));
}

/// A group has any name that a user gives to it.
#[test]
fn names_of_groups_are_labels() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, JOBS);
    let long = vec![b'x'; 1024];
    let names: [&[u8]; 9] =
        [b"", b"\xff\xfe", b"\\xff\\xfe", b"a\"b\\c\nd\r", b"\0", "größe".as_bytes(), b"} 1\n# EOF", &long, b"other"];
    for (number, name) in names.into_iter().enumerate() {
        let key = format!("job:{number}");
        client.run_args(&[b"HSET", key.as_bytes(), b"due", b"1", b"tenant", name]);
    }
    for (accept, style) in [("text/plain", Style::Prometheus), ("application/openmetrics-text", Style::OpenMetrics)] {
        let answer = request(server.admin, "GET", "/metrics", &[&format!("Accept: {accept}")]);
        let metrics = Metrics::parse(&answer.body, style);
        let records = metrics.all("holdfast_group_records");
        assert_eq!(records.iter().map(|(_, value)| value).sum::<f64>(), 9.0);
        let at = |group: &str| metrics.at("holdfast_group_records", &of(group));
        assert_eq!(at("\\xff\\xfe"), 2.0, "no text, and the text that it is shown as");
        for group in ["", "a\"b\\c\nd\r", "\0", "größe", "} 1\n# EOF", "other"] {
            assert_eq!(at(group), 1.0, "{group:?}");
        }
        assert_eq!(at(&format!("{}…", "x".repeat(128))), 1.0);
    }
}

#[test]
fn an_index_without_groups_has_limits_too() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    ok(&mut client, "IDX.CREATE jobs PREFIX 1 job: FIELD due");
    ok(&mut client, "IDX.CREATE held PREFIX 1 job: FIELD due HELD state 1 running");
    assert!(!has(&server.metrics(), "holdfast_index_paused", &AT), "there is nothing to tell");
    ok(&mut client, "IDX.LIMIT jobs ALL PAUSE yes");
    client.run("HSET job:1 due 1 state running");
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_paused", &AT), 1.0);
    assert_eq!(metrics.at("holdfast_index_held_records", &[("index", "held"), ("db", "db0")]), 1.0);
    assert_eq!(metrics.all("holdfast_group_records"), &[], "they have no groups");
}

/// Groups are part of the memory of their index, wherever that is told.
#[test]
fn the_memory_of_groups_is_told() {
    let Some((server, mut client)) = Watched::start_with_client(&[]) else { return };
    let overhead = |client: &mut wire::Connection| -> i64 {
        let info = client.run("INFO memory");
        let line = info.text().lines().find_map(|line| line.strip_prefix("used_memory_overhead:"));
        line.expect("INFO has it").trim().parse().expect("it is a number")
    };
    for number in 0..2000 {
        client.run(&format!("HSET job:{number} due 1 tenant {number} state pending"));
    }
    let before = overhead(&mut client);
    ok(&mut client, JOBS);
    let bytes = client.run("MEMORY USAGE jobs").integer();
    assert!(bytes > 2000 * 100, "{bytes}");
    assert_eq!(client.run("IDX.INFO jobs").items().last().expect("it has bytes").integer(), bytes);
    let metrics = server.metrics();
    assert_eq!(metrics.at("holdfast_index_bytes", &AT), bytes as f64);
    let known = metrics.at("holdfast_memory_part_bytes", &[("part", "indexes")]);
    assert!(known >= bytes as f64, "{known}");
    let grown = overhead(&mut client) - before;
    assert!(grown > bytes / 2, "{grown} of {bytes}");
}
