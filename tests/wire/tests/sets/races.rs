//! Many clients on the same sets at once: each member is added, popped and moved once.

use std::collections::BTreeSet;
use std::thread;

use wire::{Connection, Session};

const CLIENTS: usize = 4;
const MEMBERS: usize = 2000;

#[test]
fn each_member_is_added_by_one_client_and_popped_by_one() {
    let session = Session::start();
    let added: usize = at_once(&session, |mut connection, _| {
        let members: Vec<String> = (0..MEMBERS).map(|i| format!("SADD s m{i}")).collect();
        connection.pipeline(&members).iter().map(|reply| reply.integer() as usize).sum::<usize>()
    })
    .into_iter()
    .sum();
    assert_eq!(added, MEMBERS);
    let popped = at_once(&session, |mut connection, client| {
        let mut popped = Vec::new();
        loop {
            let reply = connection.run(&format!("SPOP s {}", 1 + client));
            if reply.items().is_empty() {
                return popped;
            }
            popped.extend(reply.items().iter().map(|member| member.text().to_owned()));
        }
    })
    .concat();
    assert_eq!(popped.len(), MEMBERS, "a member was popped twice or never");
    assert_eq!(popped.iter().collect::<BTreeSet<_>>().len(), MEMBERS);
    assert_eq!(session.connect().run("EXISTS s").integer(), 0);
}

/// Members move back and forth between two sets. A command that reads both finds each member in one of them.
#[test]
fn a_move_is_one_step() {
    let session = Session::start();
    let mut connection = session.connect();
    let all: Vec<String> = (0..100).map(|i| format!("m{i}")).collect();
    connection.run(&format!("SADD left {}", all.join(" ")));
    let moved: i64 = at_once(&session, |mut connection, client| {
        let mut moved = 0;
        for round in 0..40 {
            let (from, to) = if (round + client) % 2 == 0 { ("left", "right") } else { ("right", "left") };
            let moves: Vec<String> = (0..100).map(|i| format!("SMOVE {from} {to} m{i}")).collect();
            moved += connection.pipeline(&moves).iter().map(|reply| reply.integer()).sum::<i64>();
            assert_eq!(connection.run("SINTERCARD 2 left right").integer(), 0);
            assert_eq!(connection.run("SUNION left right").items().len(), 100);
            assert_eq!(connection.run(&format!("SUNIONSTORE both{client} right left")).integer(), 100);
        }
        moved
    })
    .into_iter()
    .sum();
    assert!(moved >= 100, "nothing has moved");
    let sizes = ["SCARD left", "SCARD right"].map(|question| connection.run(question).integer());
    assert_eq!(sizes[0] + sizes[1], 100);
}

/// Runs a task on as many connections at once, each with its number, and returns what they made.
fn at_once<T: Send>(session: &Session, task: impl Fn(Connection, usize) -> T + Sync) -> Vec<T> {
    let connections: Vec<Connection> = (0..CLIENTS).map(|_| session.connect()).collect();
    thread::scope(|scope| {
        let tasks: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(client, connection)| {
                let task = &task;
                scope.spawn(move || task(connection, client))
            })
            .collect();
        tasks.into_iter().map(|task| task.join().expect("a client has failed")).collect()
    })
}
