//! Runs survive a kill and a restart, also through a snapshot: every part of every event, what they come to, and deadlines.

use crate::own_server::OwnServer;
use crate::{get, run_seq};
use wire::{Connection, Random};

const ARGS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];
const RUNS: usize = 10;

#[test]
fn a_run_goes_on_after_a_restart() {
    let Some(mut own) = OwnServer::start(ARGS) else { return };
    let mut killer = own.killer();
    let mut connection = killer.own().connect();
    for number in 1..=4 {
        assert_eq!(run_seq(&connection.run(&format!("RUN.APPEND r k{number} StepStarted d STEP s{number}"))), number);
    }
    let first = connection.run("RUN.APPEND r k2 StepStarted d");
    let expected = state(&mut connection);
    killer.kill_and_start();
    let mut connection = killer.own().connect();
    assert_eq!(state(&mut connection), expected);
    // The same event as before, to the millisecond.
    assert_eq!(connection.run("RUN.APPEND r k2 StepStarted d"), first);
    assert_eq!(get(&connection.run("RUN.APPEND r k5 t d IFLAST 3"), "persisted").integer(), 0);
    assert_eq!(run_seq(&connection.run("RUN.APPEND r k5 t d IFLAST 4")), 5);
    assert!(connection.run("RUN.EVENTS r AFTER 6").is_error());
}

#[test]
fn random_changes_survive_a_kill() {
    let Some(mut own) = OwnServer::start(ARGS) else { return };
    let (mut killer, mut random) = (own.killer(), Random::from_env());
    for round in 0..3 {
        let mut connection = killer.own().connect();
        for step in 0..30 {
            for number in 0..50 {
                queue_some_write(&mut connection, &mut random, (round * 30 + step) * 50 + number);
            }
            (0..50).for_each(|_| drop(connection.read()));
            if random.one_in(15) {
                connection.run("BGSAVE");
            }
        }
        let expected = state(&mut connection);
        killer.kill_and_start();
        assert_eq!(state(&mut killer.own().connect()), expected, "after kill {round}");
    }
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
    for option in "EVENTID STEP ENGINEATTEMPT LOGICALATTEMPT EMITTEDAT ADAPTER REF SIGNAL PARENT PLANVERSION".split(' ')
    {
        if random.one_in(4) {
            command.extend([option.as_bytes().to_vec(), format!("{option}-{}", random.below(40)).into_bytes()]);
        }
    }
    connection.queue(&command);
}

/// The signature of everything, and all that is told of each run, which makes a failure readable.
fn state(connection: &mut Connection) -> Vec<String> {
    let mut state = vec![connection.run("DEBUG DIGEST").to_string()];
    for run in (0..RUNS).map(|run| format!("r{run}")).chain(["r".to_owned()]) {
        for command in ["RUN.EVENTS", "RUN.SNAPSHOT", "RUN.PROJECT", "RUN.INFO", "PEXPIRETIME"] {
            let limit: &[&str] = if command == "RUN.EVENTS" { &["LIMIT", "100000"] } else { &[] };
            state.push(connection.run_args(&[&[command, &run], limit].concat()).to_string());
        }
        let [.., snapshot, project, _, _] = state.as_slice() else { unreachable!("five were just pushed") };
        assert!(snapshot == project, "{run}");
    }
    state
}
