//! Scenarios of the five designs that no test of a family has: operations, races and crashes as a design tells them.
//! `docs/designs.toml` names, for each requirement, the test that shows it, here or elsewhere.

mod cells;
mod records;
mod registers;
mod runs;

use wire::own::{self, start};
use wire::{Connection, Session};

const CLIENTS: usize = 6;

/// Runs a transcript against such a server.
#[track_caller]
fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(transcript);
    }
}

/// Runs a task on several connections at once, each with its number, and returns the results.
fn at_once<T: Send>(session: &Session, task: impl Fn(Connection, usize) -> T + Sync) -> Vec<T> {
    own::at_once(session, CLIENTS, task)
}
