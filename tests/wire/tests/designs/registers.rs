//! Registers: a version that many clients put at once, and recovery from a checkpoint.

use crate::{CLIENTS, at_once, start};
use std::collections::BTreeMap;
use wire::own::OwnServer;
use wire::{Connection, Random};

/// Each version is applied by one client; the others are told that it was.
#[test]
fn of_clients_that_send_the_same_update_one_applies_it() {
    const VERSIONS: usize = 300;
    let Some(session) = start() else { return };
    let replies = at_once(&session, |mut connection, _| {
        let lines: Vec<String> = (1..=VERSIONS).map(|n| format!("REG.INCRBY n {n} {n} ORDERED")).collect();
        lines.iter().map(|line| connection.run(line).to_string()).collect::<Vec<_>>()
    });
    for version in 0..VERSIONS {
        let of_version: Vec<&str> = replies.iter().map(|replies| &*replies[version]).collect();
        assert_eq!(of_version.iter().filter(|reply| **reply == "+APPLIED").count(), 1, "{of_version:?}");
        let known = ["+APPLIED", "+DUPLICATE", "+STALE"];
        assert!(of_version.iter().all(|reply| known.contains(reply)), "{of_version:?}");
    }
    assert_eq!(replies.len(), CLIENTS);
    let sum = VERSIONS * (VERSIONS + 1) / 2;
    assert_eq!(session.connect().run("REG.GET n").to_string(), format!("[\"{sum}\", \"{VERSIONS}\"]"));
}

/// Updates of an input: the number of each is its version.
fn send(connection: &mut Connection, input: &[(usize, i64)], from: usize) {
    let lines: Vec<String> =
        (from..input.len()).map(|at| format!("REG.INCRBY count/{} {} {}", input[at].0, at + 1, input[at].1)).collect();
    connection.pipeline(&lines);
}

/// After a kill the state is that of the checkpoint or a newer one; the input from the checkpoint's position on leaves each
/// update applied once, whether the checkpoint replaces the state or is merged into it.
#[test]
fn input_that_is_replayed_from_a_checkpoint_counts_once() {
    let Some(own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut random = Random::from_env();
    for policy in ["REPLACE", "MERGE", ""] {
        let mut connection = own.connect();
        connection.run("FLUSHALL");
        let input: Vec<(usize, i64)> = (0..500).map(|_| (random.below(9), random.below(99) as i64)).collect();
        let position = 100 + random.below(200);
        send(&mut connection, &input[..position], 0);
        connection.run(&format!("REG.SNAPSHOT PREFIX count/ POSITION {position} STORE check"));
        send(&mut connection, &input[..position + random.below(200)], position);
        own.kill_and_start();
        let mut connection = own.connect();
        let restored = connection.run(&format!("REG.RESTORE FROM check {policy} INTO count/"));
        let from: usize = restored.items()[1].text().parse().expect("a number");
        assert_eq!(from, position);
        send(&mut connection, &input, from);
        // The source delivers at least once.
        send(&mut connection, &input, from + random.below(50));
        let mut expected = BTreeMap::new();
        for (at, (key, number)) in input.iter().enumerate() {
            let (sum, version) = expected.entry(*key).or_insert((0, 0));
            (*sum, *version) = (*sum + number, at + 1);
        }
        for (key, (sum, version)) in expected {
            let held = connection.run(&format!("REG.GET count/{key}"));
            assert_eq!(held.to_string(), format!("[\"{sum}\", \"{version}\"]"), "{policy} count/{key}");
        }
    }
}
