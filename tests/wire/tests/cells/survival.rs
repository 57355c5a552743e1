//! Versions survive a kill and a restart, also through a snapshot.

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
fn a_version_counts_on_after_a_restart() {
    if cannot_start() {
        return;
    }
    let dir = fresh_dir();
    let server = start(&dir);
    let mut connection = server.connect();
    for number in 1..=4 {
        assert_eq!(connection.run(&format!("CELL.SET a v{number}")).integer(), number);
    }
    connection.run("CELL.CAS b NONE x PX 10000000");
    let expected = connection.run("CELL.HISTORY a");
    server.kill();
    let server = start(&dir);
    let mut connection = server.connect();
    assert_eq!(connection.run("CELL.HISTORY a"), expected);
    assert_eq!(connection.run("CELL.CAS a 4 v5").integer(), 5);
    assert!(connection.run("CELL.CAS a 4 again").is_nil());
    assert!(connection.run("CELL.CAS b NONE y").is_nil());
    assert!(connection.run("PTTL b").integer() > 0);
    server.kill();
    std::fs::remove_dir_all(&dir).expect("cannot remove the data directory");
}

/// With limits that change, and snapshots in between. The setting at the restart is another.
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
    let (name, other) = (random.below(12), random.below(12));
    let value = "v".repeat(random.pick(&[0, 5, 32, 32, 300, 6_000]));
    match random.below(14) {
        0 => format!("CELL.DEL c{name}"),
        1 => format!("RENAME c{name} c{other}"),
        2 => format!("COPY c{name} c{other} REPLACE"),
        3 => format!("CELL.CAS c{name} NONE '{value}'"),
        4 => format!("CELL.CAS c{name} {} '{value}'", random.below(60)),
        5 => format!("CONFIG SET cell-max-versions {}", random.pick(&[0, 1, 2, 40, 128])),
        6 => format!("CELL.SET c{name} '{value}' EX 10000"),
        _ => format!("CELL.SET c{name} '{value}'"),
    }
}

/// The signature of everything, and each history, which makes a failure readable.
fn state(connection: &mut Connection) -> Vec<String> {
    let mut state = vec![connection.run("DEBUG DIGEST").to_string()];
    for name in 0..12 {
        state.push(connection.run(&format!("CELL.HISTORY c{name} LIMIT 10000")).to_string());
        state.push(connection.run(&format!("PEXPIRETIME c{name}")).to_string());
    }
    state
}
