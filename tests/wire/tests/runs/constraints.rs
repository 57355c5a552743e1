//! The constraints that the design of runs calls normative and that no random test searches: nothing edits an event, and a run that is gone
//! begins anew. `model` searches uniqueness, order and idempotency.

use crate::events::append;
use wire::own::{check, start};

/// Whatever a client sends, an event that is there stays as it is, at its place. Only the whole run can go.
#[test]
fn no_command_edits_or_removes_a_single_event() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    append(&mut connection, "r", 1, 20);
    let before = connection.run("RUN.EVENTS r");
    // What is meant for other types is refused by all of `types`.
    for command in [
        "RUN.APPEND r k1 t other",
        "RUN.APPEND r new t d IFLAST 3",
        "RUN.APPEND r '' t d",
        "RUN.APPEND r * t d STEP '|'",
        "RUN.DEL r 1",
        "RUN.TRIM r 1",
        "RUN.SET r 1 x",
        "HCAS r f a b",
        "CELL.CAS r 20 x",
        "MSETNX r x other x",
        "SET r x NX",
        "SETEX r 0 x",
        "RENAMENX r r",
        "COPY nosuch r",
    ] {
        connection.run(command);
        assert_eq!(connection.run("RUN.EVENTS r"), before, "{command}");
    }
    // Every command of the server that is about runs is known here: a new one that edits would have to be judged.
    let listed = connection.run("COMMAND LIST FILTERBY PATTERN run.*");
    let mut commands: Vec<&str> = listed.items().iter().map(|name| name.text()).collect();
    commands.sort();
    assert_eq!(commands, ["run.append", "run.events", "run.info", "run.list", "run.project", "run.snapshot"]);
}

#[test]
fn a_whole_run_can_go_and_begins_anew_at_1() {
    for gone in ["DEL r", "UNLINK r", "PEXPIRE r 0", "RENAME r x", "MOVE r 1", "FLUSHDB", "FLUSHALL", "SWAPDB 0 1"] {
        check(&format!(
            r#"
            RUN.APPEND r k1 t d => *
            RUN.APPEND r k2 t d => *
            > {gone}
            *
            RUN.EVENTS r         => []
            RUN.EVENTS r AFTER 2 => []
            RUN.SNAPSHOT r       => (nil)
            RUN.INFO r           => (nil)
            RUN.APPEND r k2 t d  => ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
            > RUN.EVENTS r AFTER 2
            -ERR the run has been made anew: its last runSeq is 1, and AFTER is 2; read it again from AFTER 0
            > RUN.EVENTS r
            [["runId", "r", "runSeq", :1, *, *, *, *, *, *, "idempotencyKey", "k2", ...]]
            "#
        ));
    }
}
