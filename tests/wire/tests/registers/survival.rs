//! Versions, buffers and snapshots survive a kill and a restart.

use wire::Random;
use wire::own::{OwnServer, SURVIVES, survives_kills};

#[test]
fn a_version_counts_once_across_a_restart() {
    let Some(own) = OwnServer::start(SURVIVES) else { return };
    let mut connection = own.connect();
    for line in [
        "REG.INCRBY n 1 5 ORDERED",
        "REG.INCRBY n 3 7 ORDERED",
        "REG.PUT p 1.4 v",
        "REG.SEAL s 9",
        "REG.PUT d 0.7 a ORDERED",
        "REG.PUT d 2.1 b ORDERED",
        "REG.SEAL d 1.0",
        "REG.SEAL e 3.0",
        "REG.PUT o 1 v ORDERED",
        "REG.SNAPSHOT PREFIX p POSITION 400 STORE check",
        "REG.PUT p 1.5 later",
    ] {
        assert!(!connection.run(line).is_error(), "{line}");
    }
    own.kill_and_start();
    let mut connection = own.connect();
    for (line, reply) in [
        ("REG.INCRBY n 1 5 ORDERED", "+DUPLICATE"),
        ("REG.INCRBY n 1 6 ORDERED", "+MISMATCH"),
        ("REG.INCRBY n 3 7 ORDERED", "+BUFFERED"),
        ("REG.INCRBY n 3 8 ORDERED", "+MISMATCH"),
        ("REG.INCRBY n 2 1 ORDERED", "+APPLIED"),
        ("REG.GET n", "[\"13\", \"3\"]"),
        ("REG.PUT p 1.5 later", "+DUPLICATE"),
        ("REG.PUT p 900 v", "+STALE"),
        ("REG.PUT s 8 v", "+STALE"),
        ("REG.PUT s 9 v ORDERED", "+APPLIED"),
        ("REG.GET d", "[\"a\", \"7\"]"),
        ("REG.PUT d 0.9 v", "+STALE"),
        ("REG.PUT d 2.1 c ORDERED", "+MISMATCH"),
        ("REG.SEAL d 2.2", ":1"),
        ("REG.PUT e 2.9 v", "+STALE"),
        (
            "REG.SEAL o 0.5",
            "-ERR the register takes plain versions one by one (1, 2, 3): send the version without a dot, or use another key",
        ),
        // A stored snapshot is a string like any other.
        ("REG.RESTORE FROM check", "[:1, \"400\"]"),
        ("REG.GET p", "[\"v\", \"1.4\"]"),
    ] {
        assert_eq!(connection.run(line).to_string(), reply, "{line}");
    }
    own.kill_and_start();
    assert_eq!(own.connect().run("REG.GET p").to_string(), "[\"v\", \"1.4\"]", "a restore survives, too");
}

/// The same operations are sent again and again, in any order, between kills: each counts once.
#[test]
fn replayed_additions_count_once_whatever_happens_in_between() {
    const COUNT: usize = 300;
    let Some(own) = OwnServer::start(SURVIVES) else { return };
    let mut random = Random::from_env();
    let add = |number: usize| format!("REG.INCRBY n {number} {number} ORDERED");
    for round in 0..2 {
        let mut connection = own.connect();
        connection.pipeline(&(0..400).map(|_| add(random.below(COUNT) + 1)).collect::<Vec<_>>());
        if round == 1 {
            connection.run("BGSAVE");
        }
        own.kill_and_start();
    }
    let mut connection = own.connect();
    connection.pipeline(&(1..=COUNT).rev().map(add).collect::<Vec<_>>());
    let expected = format!("[\"{}\", \"{COUNT}\"]", COUNT * (COUNT + 1) / 2);
    assert_eq!(connection.run("REG.GET n").to_string(), expected);
}

#[test]
fn random_changes_survive_a_kill() {
    let readings = |name| [format!("REG.GET r{name}"), format!("DUMP r{name}"), format!("PEXPIRETIME r{name}")];
    let readings: Vec<String> = (0..12).flat_map(readings).collect();
    survives_kills(|connection, random| connection.queue_line(&some_write(random, 12)), &readings);
}

/// A change of one of so many registers, which are called `r0`, `r1` and so on.
pub(crate) fn some_write(random: &mut Random, registers: usize) -> String {
    let (name, other, version) = (random.below(registers), random.below(registers), random.below(60));
    let value = "v".repeat(random.pick(&[1, 5, 32, 32, 300, 6_000]));
    let ordered = if version > 0 && random.below(3) > 0 { " ORDERED" } else { "" };
    match random.below(14) {
        0 => format!("DEL r{name}"),
        1 => format!("RENAME r{name} r{other}"),
        2 => format!("COPY r{name} r{other} REPLACE"),
        3 => format!("PEXPIRE r{name} {}", 1_000_000 + random.below(1_000_000)),
        4 => format!("REG.SEAL r{name} {}", version + 1),
        5..9 => format!("REG.INCRBY r{name} {version} {}{ordered}", random.below(100)),
        9 if name % 3 == 0 => format!("REG.SEAL r{name} {}.{version}", random.below(2)),
        9 => format!("REG.PUT r{name} {}.{version} {value}{ordered}", random.below(2)),
        _ => format!("REG.PUT r{name} {version} {value}{ordered}"),
    }
}
