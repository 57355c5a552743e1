//! Versions and buffers survive a kill and a restart, also through a snapshot.

use std::path::Path;
use wire::{Connection, Random, Server, fresh_dir};

fn start(dir: &Path) -> Server {
    Server::start(dir, &["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"])
}

fn cannot_start() -> bool {
    let is_given = std::env::var_os("HOLDFAST_TEST_ADDR").is_some();
    if is_given {
        wire::skip("this test starts a server of its own");
    }
    is_given
}

#[test]
fn a_version_counts_once_across_a_restart() {
    if cannot_start() {
        return;
    }
    let dir = fresh_dir();
    let server = start(&dir);
    let mut connection = server.connect();
    for line in
        ["REG.INCRBY n 1 5 ORDERED", "REG.INCRBY n 3 7 ORDERED", "REG.PUT p 1.4 v", "REG.SEAL s 9"].into_iter().chain([
            "REG.PUT d 0.7 a ORDERED",
            "REG.PUT d 2.1 b ORDERED",
            "REG.SEAL d 1.0",
            "REG.SEAL e 3.0",
            "REG.PUT o 1 v ORDERED",
        ])
    {
        assert!(!connection.run(line).is_error());
    }
    server.kill();
    let server = start(&dir);
    let mut connection = server.connect();
    for (line, reply) in [
        ("REG.INCRBY n 1 5 ORDERED", "+DUPLICATE"),
        ("REG.INCRBY n 1 6 ORDERED", "+MISMATCH"),
        ("REG.INCRBY n 3 7 ORDERED", "+BUFFERED"),
        ("REG.INCRBY n 3 8 ORDERED", "+MISMATCH"),
        ("REG.INCRBY n 2 1 ORDERED", "+APPLIED"),
        ("REG.GET n", "[\"13\", \"3\"]"),
        ("REG.PUT p 1.4 v", "+DUPLICATE"),
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
    ] {
        assert_eq!(connection.run(line).to_string(), reply, "{line}");
    }
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}

/// The same operations are sent again and again, in any order, between kills: each counts once.
#[test]
fn replayed_additions_count_once_whatever_happens_in_between() {
    if cannot_start() {
        return;
    }
    const COUNT: usize = 300;
    let (dir, mut random) = (fresh_dir(), Random::from_env());
    let mut server = start(&dir);
    for round in 0..4 {
        let mut connection = server.connect();
        let lines: Vec<String> =
            (0..400).map(|_| random.below(COUNT) + 1).map(|n| format!("REG.INCRBY n {n} {n} ORDERED")).collect();
        connection.pipeline(&lines);
        if round == 1 {
            connection.run("BGSAVE");
        }
        server.kill();
        server = start(&dir);
    }
    let mut connection = server.connect();
    let lines: Vec<String> = (1..=COUNT).rev().map(|n| format!("REG.INCRBY n {n} {n} ORDERED")).collect();
    connection.pipeline(&lines);
    let expected = format!("[\"{}\", \"{COUNT}\"]", COUNT * (COUNT + 1) / 2);
    assert_eq!(connection.run("REG.GET n").to_string(), expected);
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}

#[test]
fn random_changes_survive_a_kill() {
    if cannot_start() {
        return;
    }
    let (dir, mut random) = (fresh_dir(), Random::from_env());
    let mut server = start(&dir);
    for round in 0..3 {
        let mut connection = server.connect();
        for _ in 0..40 {
            let lines: Vec<String> = (0..50).map(|_| some_write(&mut random)).collect();
            connection.pipeline(&lines);
            if random.one_in(20) {
                connection.run("BGSAVE");
            }
        }
        let expected = state(&mut connection);
        server.kill();
        server = start(&dir);
        assert_eq!(state(&mut server.connect()), expected, "after kill {round}");
    }
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}

fn some_write(random: &mut Random) -> String {
    let (name, other, version) = (random.below(12), random.below(12), random.below(60));
    let value = "v".repeat(random.pick(&[1, 5, 32, 32, 300, 6_000]));
    let ordered = if version > 0 && random.below(3) > 0 { " ORDERED" } else { "" };
    match random.below(14) {
        0 => format!("DEL r{name}"),
        1 => format!("RENAME r{name} r{other}"),
        2 => format!("COPY r{name} r{other} REPLACE"),
        3 => format!("EXPIRE r{name} 10000"),
        4 => format!("REG.SEAL r{name} {}", version + 1),
        5..9 => format!("REG.INCRBY r{name} {version} {}{ordered}", random.below(100)),
        9 if name % 3 == 0 => format!("REG.SEAL r{name} {}.{version}", random.below(2)),
        9 => format!("REG.PUT r{name} {}.{version} {value}{ordered}", random.below(2)),
        _ => format!("REG.PUT r{name} {version} {value}{ordered}"),
    }
}

/// The signature of everything, and each register, which makes a failure readable.
fn state(connection: &mut Connection) -> Vec<String> {
    let mut state = vec![connection.run("DEBUG DIGEST").to_string()];
    for name in 0..12 {
        state.push(connection.run(&format!("REG.GET r{name}")).to_string());
        state.push(connection.run(&format!("DUMP r{name}")).to_string());
        state.push(connection.run(&format!("PEXPIRETIME r{name}")).to_string());
    }
    state
}
