//! Many clients on one cell: of those with the same expected version exactly one succeeds.

use std::collections::BTreeMap;
use std::sync::Barrier;
use wire::own::{at_once, start};

const CLIENTS: usize = 6;

#[test]
fn of_racers_with_the_same_expected_version_exactly_one_wins() {
    const ROUNDS: usize = 100;
    let Some(session) = start() else { return };
    session.connect().run("CONFIG SET cell-max-versions 0");
    let barrier = Barrier::new(CLIENTS);
    let won = at_once(&session, CLIENTS, |mut connection, client| {
        let mut won = Vec::new();
        for round in 0..ROUNDS {
            barrier.wait();
            // The first round races for NONE.
            let reply = connection.run(&format!("CELL.CAS a {round} c{client}"));
            if !reply.is_nil() {
                assert_eq!(reply.integer() as usize, round + 1);
                won.push((round, client));
            }
        }
        won
    });
    let winners: BTreeMap<usize, usize> = won.concat().into_iter().collect();
    assert_eq!((won.concat().len(), winners.len()), (ROUNDS, ROUNDS), "each round has one winner");
    let mut connection = session.connect();
    connection.run("CONFIG SET cell-max-versions 128");
    for version in connection.run("CELL.HISTORY a").items() {
        let (value, number) = (version.items()[0].text(), version.items()[1].integer() as usize);
        assert_eq!(value, format!("c{}", winners[&(number - 1)]), "version {number}");
    }
}

#[test]
fn of_racers_that_create_exactly_one_wins() {
    const CELLS: usize = 200;
    let Some(session) = start() else { return };
    let won = at_once(&session, CLIENTS, |mut connection, client| {
        let how = ["NONE", "0"][client % 2];
        let tries: Vec<String> = (0..CELLS).map(|cell| format!("CELL.CAS cell:{cell} {how} c{client}")).collect();
        let replies = connection.pipeline(&tries);
        replies.iter().map(|reply| !reply.is_nil()).collect::<Vec<bool>>()
    });
    let has_won = |client: usize, cell: usize| won[client][cell];
    let mut connection = session.connect();
    for cell in 0..CELLS {
        let winners: Vec<usize> = (0..CLIENTS).filter(|client| has_won(*client, cell)).collect();
        assert_eq!(winners.len(), 1, "cell {cell}");
        assert_eq!(connection.run(&format!("CELL.GET cell:{cell}")).text(), format!("c{}", winners[0]));
    }
}

/// A counter that every client increments with CAS loses no increment.
#[test]
fn a_counter_by_cas_loses_nothing() {
    const EACH: usize = 50;
    let Some(session) = start() else { return };
    session.connect().run("CELL.INIT counter 0");
    at_once(&session, CLIENTS, |mut connection, _| {
        for _ in 0..EACH {
            loop {
                let reply = connection.run("CELL.GETV counter");
                let (value, version) = (reply.items()[0].text().parse::<u64>().unwrap(), reply.items()[1].integer());
                let next = value + 1;
                if !connection.run(&format!("CELL.CAS counter {version} {next}")).is_nil() {
                    break;
                }
            }
        }
    });
    let all = CLIENTS * EACH;
    let reply = session.connect().run("CELL.GETV counter");
    assert_eq!((reply.items()[0].text(), reply.items()[1].integer()), (&*all.to_string(), all as i64 + 1));
}
