//! Runs survive a kill and a restart, also through a snapshot: every part of every event, what they come to, and deadlines.

use crate::events::PARTS;
use crate::{get, run_seq};
use wire::own::{OwnServer, SURVIVES, survives_kills};
use wire::{Connection, Random, Reply};

const RUNS: usize = 10;

#[test]
fn a_run_goes_on_after_a_restart() {
    let Some(own) = OwnServer::start(SURVIVES) else { return };
    let mut connection = own.connect();
    for number in 1..=4 {
        assert_eq!(run_seq(&connection.run(&format!("RUN.APPEND r k{number} StepStarted d STEP s{number}"))), number);
    }
    let first = connection.run("RUN.APPEND r k2 StepStarted d");
    let state = |connection: &mut Connection| -> Vec<Reply> { connection.pipeline(&readings("r")) };
    let expected = state(&mut connection);
    own.kill_and_start();
    let mut connection = own.connect();
    assert_eq!(state(&mut connection), expected);
    // The same event as before, to the millisecond.
    assert_eq!(connection.run("RUN.APPEND r k2 StepStarted d"), first);
    assert_eq!(get(&connection.run("RUN.APPEND r k5 t d IFLAST 3"), "persisted").integer(), 0);
    assert_eq!(run_seq(&connection.run("RUN.APPEND r k5 t d IFLAST 4")), 5);
    assert!(connection.run("RUN.EVENTS r AFTER 6").is_error());
}

#[test]
fn random_changes_survive_a_kill() {
    let readings: Vec<String> = (0..RUNS).flat_map(|run| readings(&format!("r{run}"))).collect();
    let mut number = 0;
    survives_kills(
        |connection, random| {
            number += 1;
            queue_some_write(connection, random, number);
        },
        &readings,
    );
}

/// All that is told of a run.
pub(crate) fn readings(run: &str) -> Vec<String> {
    let commands = ["RUN.EVENTS # LIMIT 100000", "RUN.SNAPSHOT #", "RUN.PROJECT #", "RUN.INFO #", "PEXPIRETIME #"];
    commands.iter().map(|command| command.replace('#', run)).collect()
}

fn queue_some_write(connection: &mut Connection, random: &mut Random, number: usize) {
    let (run, other) = (format!("r{}", random.below(RUNS)), format!("r{}", random.below(RUNS)));
    match random.below(80) {
        0 => return connection.queue(&["DEL", &run]),
        1 => return connection.queue(&["RENAME", &run, &other]),
        2 => return connection.queue(&["COPY", &run, &other, "REPLACE"]),
        3 => return connection.queue(&["EXPIRE", &run, "10000"]),
        4 => return connection.queue(&["PERSIST", &run]),
        _ => {}
    }
    let key = match random.below(3) {
        0 => format!("{number:064x}"),
        1 => format!("key-{number}"),
        _ => format!("key-{}", random.below(number + 1)),
    };
    let event_type =
        random.pick(&["RunStarted", "RunPaused", "StepStarted", "StepCompleted", "StepCorrected", "custom", ""]);
    let data: Vec<u8> = (0..random.pick(&[0, 5, 40, 40, 300, 9_000])).map(|_| random.next_u64() as u8).collect();
    let mut command =
        vec![b"RUN.APPEND".to_vec(), run.into_bytes(), key.into_bytes(), event_type.as_bytes().to_vec(), data];
    for (option, _) in PARTS {
        if random.one_in(4) {
            command.extend([option.as_bytes().to_vec(), format!("{option}-{}", random.below(40)).into_bytes()]);
        }
    }
    connection.queue(&command);
}
