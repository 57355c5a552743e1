//! Commands of sessions. Only Holdfast has them.

mod attach;
mod called;
mod calls;
mod expiry;
mod hooks;
mod invariants;
mod keyspace;
mod limits;
mod model;
mod open;
mod payloads;
mod requests;
mod retry;
mod survival;
mod waits;

use std::panic::Location;

use wire::{Connection, Product, Reply, Session, skip};

/// An empty server; `None`, and the test is skipped, where it is not a holdfast.
#[track_caller]
fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has sessions");
        return None;
    }
    // FLUSHALL leaves them, and a test may have failed in between.
    let mut connection = session.connect();
    connection.run("SESSION.HOOK CREATED NONE");
    connection.run("SESSION.HOOK EXPIRED NONE");
    connection.run("FUNCTION FLUSH");
    Some(session)
}

/// Runs a transcript against such a server.
#[track_caller]
fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(transcript);
    }
}

/// Runs a transcript about the session `s`. Its rows `twice INCR n => :1` are calls that are sent twice, each under an id of its own: the
/// second one is a retry, and gets the same reply.
#[track_caller]
fn check_calls(transcript: &str) {
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let (caller, mut id) = (Location::caller(), 0);
    // rustfmt puts the text on the lines below the call.
    let lines =
        transcript.lines().zip(caller.line() + 1..).map(|(line, number)| match line.trim().strip_prefix("twice ") {
            Some(row) => {
                id += 1;
                let row = format!("SESSION.CALL s {id} LOW 1 {row}\n");
                format!("// {}:{number}\n{row}{row}", caller.file())
            }
            None => format!("{line}\n"),
        });
    session.check(&lines.collect::<String>());
}

/// What SESSION.INFO says under a name, in RESP2 and in RESP3.
#[track_caller]
fn info(connection: &mut Connection, sid: &str, name: &str) -> Reply {
    let map = connection.run(&format!("SESSION.INFO {sid}"));
    let is_it = |key: &Reply| *key == Reply::Bulk(name.as_bytes().to_vec());
    let found = match &map {
        Reply::Map(pairs) => pairs.iter().find(|(key, _)| is_it(key)).map(|(_, value)| value),
        flat => flat.items().chunks(2).find(|pair| is_it(&pair[0])).map(|pair| &pair[1]),
    };
    found.unwrap_or_else(|| panic!("{} has no {name}", map.excerpt())).clone()
}

/// A field of INFO.
#[track_caller]
fn server_info(connection: &mut Connection, name: &str) -> String {
    let reply = connection.run("INFO everything");
    let found = reply.text().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
    found.unwrap_or_else(|| panic!("INFO has no {name}"))
}

/// Runs a command that has to succeed.
#[track_caller]
fn must(connection: &mut Connection, line: &str) -> Reply {
    let reply = connection.run(line);
    assert!(!reply.is_error(), "{line}: {reply}");
    reply
}

/// Runs commands, divided by semicolons, that have to succeed.
#[track_caller]
fn must_all(connection: &mut Connection, lines: &str) {
    for line in lines.split("; ") {
        must(connection, line);
    }
}
