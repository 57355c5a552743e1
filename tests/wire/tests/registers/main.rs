//! Commands of registers. Only Holdfast has them.

mod commands;
mod keyspace;
mod large_restores;
mod model;
mod snapshots;
mod survival;

use wire::{Product, Session, skip};

/// An empty server; `None`, and the test is skipped, where it is not a holdfast.
#[track_caller]
fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has registers");
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
