//! Scenarios of the five designs that no test of a family has: operations, races and crashes as a design tells them.
//! `docs/designs.toml` names, for each requirement, the test that shows it, here or elsewhere.

mod cells;
mod records;
mod registers;
mod runs;
mod sessions;

#[path = "../runs/own_server.rs"]
#[allow(dead_code, reason = "no test here has clients that go on while the server is killed")]
mod own_server;

use std::thread;
use wire::{Connection, Product, Session, skip};

const CLIENTS: usize = 6;

/// An empty server; `None`, and the test is skipped, where it is not a holdfast.
#[track_caller]
fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has these commands");
        return None;
    }
    Some(session)
}

/// Runs a transcript against such a server.
#[track_caller]
fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(transcript);
    }
}

/// Runs a task on several connections at once, each with its number, and returns the results.
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
