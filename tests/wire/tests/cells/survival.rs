//! Versions survive a kill and a restart, also through a snapshot.

use wire::Random;
use wire::own::{OwnServer, SURVIVES, survives_kills};

#[test]
fn a_version_counts_on_after_a_restart() {
    let Some(own) = OwnServer::start(SURVIVES) else { return };
    let mut connection = own.connect();
    for number in 1..=4 {
        assert_eq!(connection.run(&format!("CELL.SET a v{number}")).integer(), number);
    }
    connection.run("CELL.CAS b NONE x PX 10000000");
    let expected = connection.run("CELL.HISTORY a");
    own.kill_and_start();
    let mut connection = own.connect();
    assert_eq!(connection.run("CELL.HISTORY a"), expected);
    assert_eq!(connection.run("CELL.CAS a 4 v5").integer(), 5);
    assert!(connection.run("CELL.CAS a 4 again").is_nil());
    assert!(connection.run("CELL.CAS b NONE y").is_nil());
    assert!(connection.run("PTTL b").integer() > 0);
}

/// With limits that change, and snapshots in between. The setting at the restart is another.
#[test]
fn random_changes_survive_a_kill() {
    let readings = |name| [format!("CELL.HISTORY c{name} LIMIT 10000"), format!("PEXPIRETIME c{name}")];
    let readings: Vec<String> = (0..12).flat_map(readings).collect();
    survives_kills(|connection, random| connection.queue_line(&some_write(random)), &readings);
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
