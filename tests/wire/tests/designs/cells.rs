//! Cells: what writes nothing, racing creations and writes, branches, and every operation in a transaction.

use crate::{CLIENTS, at_once, check, start};
use std::collections::BTreeSet;
use wire::own::OwnServer;

/// Value, version, time, history and deadline stay as they are.
#[test]
fn what_is_refused_or_already_there_writes_nothing() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("CELL.SET a one PX 1000000");
    connection.run("CELL.SET a two");
    let reads = ["CELL.GETV a", "CELL.HISTORY a", "PEXPIRETIME a"];
    let before = connection.pipeline(&reads);
    for (command, reply) in [
        ("CELL.INIT a other", ":2"),
        ("CELL.INIT a other PX 5", ":2"),
        ("CELL.CAS a NONE other", "(nil)"),
        ("CELL.CAS a 1 other", "(nil)"),
        ("CELL.CAS a 3 other PERSIST", "(nil)"),
        ("CELL.DEL a IF 1", ":0"),
    ] {
        assert_eq!(connection.run(command).to_string(), reply, "{command}");
        assert_eq!(connection.pipeline(&reads), before, "{command}");
    }
}

/// An empty transaction tells the number of the last batch.
#[test]
fn a_write_is_one_batch_and_a_read_or_a_refusal_none() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for (command, batches) in [
        ("CELL.INIT a v", 1),
        ("CELL.INIT a w", 0),
        ("CELL.CAS a 1 w", 1),
        ("CELL.CAS a 1 x", 0),
        ("CELL.CAS nosuch 1 x", 0),
        ("CELL.SET a w", 1),
        ("CELL.SET a x PX 1000000", 1),
        ("CELL.GET a", 0),
        ("CELL.GETV a", 0),
        ("CELL.HISTORY a", 0),
        ("CELL.SET _strata/a v", 0),
    ] {
        let replies = connection.pipeline(&["TXN.BEGIN", "TXN.COMMIT", command, "TXN.BEGIN", "TXN.COMMIT"]);
        assert_eq!(replies[4].integer() - replies[1].integer(), batches, "{command}");
    }
}

/// All get version 1, and the value is that of one of them.
#[test]
fn clients_that_init_at_once_agree_on_one_cell() {
    const CELLS: usize = 300;
    let Some(session) = start() else { return };
    let seen = at_once(&session, |mut connection, client| {
        let mut seen = Vec::new();
        for cell in 0..CELLS {
            assert_eq!(connection.run(&format!("CELL.INIT cell:{cell} c{client}")).integer(), 1);
            seen.push(connection.run(&format!("CELL.GET cell:{cell}")).text().to_owned());
        }
        seen
    });
    let mut connection = session.connect();
    for cell in 0..CELLS {
        let values: BTreeSet<&str> = seen.iter().map(|values| &*values[cell]).collect();
        assert_eq!(values.len(), 1, "cell {cell}: {values:?}");
        assert_eq!(connection.run(&format!("CELL.HISTORY cell:{cell}")).items().len(), 1);
    }
}

/// No unconditional write fails, and each has a version of its own.
#[test]
fn racing_sets_have_all_versions_once() {
    const EACH: usize = 200;
    let Some(session) = start() else { return };
    session.connect().run("CONFIG SET cell-max-versions 0");
    let versions = at_once(&session, |mut connection, client| {
        let lines: Vec<String> = (0..EACH).map(|number| format!("CELL.SET a {client}-{number}")).collect();
        let replies: Vec<i64> = lines.iter().map(|line| connection.run(line).integer()).collect();
        assert!(replies.is_sorted());
        replies.into_iter().zip(lines).collect::<Vec<_>>()
    });
    let mut versions = versions.concat();
    versions.sort();
    let mut connection = session.connect();
    connection.run("CONFIG SET cell-max-versions 128");
    assert!(versions.iter().map(|(version, _)| *version).eq(1..=(CLIENTS * EACH) as i64));
    for (version, line) in &versions {
        let found = connection.run(&format!("CELL.GETV a VERSION {version}"));
        assert_eq!(Some(found.items()[0].text()), line.strip_prefix("CELL.SET a "));
    }
}

#[test]
fn every_operation_reads_the_writes_of_its_transaction() {
    check(
        r#"
        ! CELL.SET old 1
        ! TXN.BEGIN
        CELL.INIT new a => :1
        CELL.INIT new b => :1
        CELL.GET new => "a"
        CELL.CAS new NONE c => (nil)
        CELL.CAS new 1 c => :2
        > CELL.CAS new 1 d
        (nil)
        ! CELL.SET old 2
        CELL.GETV old => ["2", :2, :1700000000000000..]
        CELL.GETV old VERSION 1 => ["1", :1, *]
        CELL.HISTORY new => [["c", :2, *], ["a", :1, *]]
        CELL.MGET old new => [["2", :2, *], ["c", :2, *]]
        // Nothing of it is there for others before its end.
        2> CELL.GETV old
        ["1", :1, *]
        2> CELL.GET new
        (nil)
        > CELL.DEL new IF 2
        :1
        > CELL.GET new
        (nil)
        ! CELL.SET new e
        ! TXN.COMMIT
        2> CELL.MGET old new
        [["2", :2, *], ["e", :1, *]]
        "#,
    );
}

/// One attempt: it fails as a whole, and neither cell changes.
#[test]
fn a_transaction_of_two_cells_that_meets_another_write_changes_neither() {
    check(
        r#"
        ! CELL.SET a 1
        ! CELL.SET b 1
        ! TXN.BEGIN
        CELL.GET a => "1"
        CELL.CAS b 1 mine => :2
        2> CELL.CAS a 1 theirs
        :2
        > TXN.COMMIT
        ~-CONFLICT *
        > CELL.MGET a b
        [["theirs", :2, *], ["1", :1, *]]
        ! TXN.BEGIN
        > CELL.GET a
        "theirs"
        > CELL.CAS b 1 mine
        :2
        ! TXN.COMMIT
        > CELL.MGET a b
        [["theirs", :2, *], ["mine", :2, *]]
        "#,
    );
}

/// A branch is what is before the first `/`, and the rules for names hold behind it.
#[test]
fn a_name_is_another_cell_in_another_branch() {
    check(&format!(
        r#"
        > CELL.SET main/x a
        > CELL.SET main/x b
        > CELL.INIT dev/x c
        > CELL.SET x d
        :1
        :2
        :1
        :1
        CELL.MGET main/x dev/x x => [["b", :2, *], ["c", :1, *], ["d", :1, *]]
        CELL.CAS dev/x 2 e => (nil)
        CELL.CAS dev/x 1 e => :2
        CELL.GET main/x => "b"
        CELL.DROP dev/ => :1
        > CELL.MGET main/x dev/x x
        [["b", :2, *], (nil), ["d", :1, *]]
        ! CELL.SET main/{longest} v
        CELL.SET main/{longest}x v => -ERR the name of a cell must have 1 to 1024 bytes
        CELL.SET main/_strata/x v => ~-ERR the name of a cell must not begin with '_strata/'*
        CELL.SET "main/a\x00b" v => ~-ERR the name of a cell must not contain a NUL byte*
        "#,
        longest = "x".repeat(1024)
    ));
}

/// What was answered is there after a kill: each version with its value, and a creation is not made twice.
#[test]
fn a_creation_that_is_repeated_after_a_kill_is_the_first_one() {
    let Some(own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "always"]) else { return };
    let mut connection = own.connect();
    assert_eq!(connection.run("CELL.INIT a first").integer(), 1);
    assert_eq!(connection.run("CELL.CAS a 1 second").integer(), 2);
    let before = connection.pipeline(&["CELL.GETV a", "CELL.HISTORY a"]);
    own.kill_and_start();
    let mut connection = own.connect();
    assert_eq!(connection.run("CELL.INIT a again").integer(), 2);
    assert!(connection.run("CELL.CAS a 1 second").is_nil());
    assert_eq!(connection.pipeline(&["CELL.GETV a", "CELL.HISTORY a"]), before);
}
