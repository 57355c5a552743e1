//! Connections: greeting, passwords, CLIENT and COMMAND.

mod auth;
mod client;
mod command;
mod command_agreement;
mod filters;
mod greeting;
mod kill;
mod pause;
mod replies;

use std::thread;
use std::time::{Duration, Instant};
use wire::{Reply, Session};

/// Whether the server has the filters of Valkey 9; says that the test is skipped if not.
fn has_filters_of_valkey(session: &Session) -> bool {
    let has = !matches!(session.connect().run("CLIENT LIST NAME nosuch"), Reply::Error(_));
    if !has {
        wire::skip(&format!("{} has no such filters", session.product()));
    }
    has
}

/// Asks again and again, until it is so or far too long has passed.
#[track_caller]
fn eventually(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never was so");
        thread::sleep(Duration::from_millis(2));
    }
}
