//! SAVE, BGSAVE, LASTSAVE and BGREWRITEAOF, and what they say to each other.

use wire::{Connection, Session, check};

use crate::support::{eventually, unix_ms};

#[test]
fn saving_says_when_it_is_done() {
    check(
        r#"
        # until rdb_bgsave_in_progress:0
        > SET a 1
        +OK
        # eventually
        > SAVE
        +OK
        > LASTSAVE
        :1700000000..
        # eventually
        > BGSAVE
        +Background saving started
        # until rdb_bgsave_in_progress:0
        > INFO persistence
        ~"*rdb_last_bgsave_status:ok\r\n*"
        > GET a
        "1"
        "#,
    );
}

#[test]
fn lastsave_is_the_time_of_the_last_good_one() {
    let session = Session::start();
    let mut connection = session.connect();
    let began_s = (unix_ms(&mut connection) / 1000) as i64;
    eventually("saved", || connection.run("SAVE").to_string() == "+OK");
    let saved_s = connection.run("LASTSAVE").integer();
    let now_s = (unix_ms(&mut connection) / 1000) as i64;
    // Redis reads another clock here, which may be a tick behind.
    assert!((began_s - 1..=now_s).contains(&saved_s), "{saved_s} is not from {began_s} to {now_s}");
    session.check(&format!("> INFO persistence\n~\"*rdb_last_save_time:{saved_s}\\r\\n*\""));
}

#[test]
fn a_save_resets_the_count_of_changes() {
    check(
        r#"
        > MSET a 1 b 2
        +OK
        # eventually
        > SAVE
        +OK
        > INFO persistence
        ~"*rdb_changes_since_last_save:0\r\n*"
        > SET c 3
        +OK
        > INFO persistence
        ~"*rdb_changes_since_last_save:1\r\n*"
        "#,
    );
}

#[test]
fn bgsave_takes_one_word_at_most() {
    check(
        r#"
        > BGSAVE NOSUCH
        -ERR syntax error
        > BGSAVE SCHEDULE NOW
        -ERR syntax error
        # eventually
        > BGSAVE schedule
        +Background saving started
        # until rdb_bgsave_in_progress:0
        "#,
    );
}

#[test]
fn rewriting_keeps_the_data() {
    check(
        r#"
        > MSET a 1 b 2
        +OK
        # until rdb_bgsave_in_progress:0
        # eventually
        > BGREWRITEAOF
        +Background append only file rewriting started
        # until aof_rewrite_in_progress:0
        > INFO persistence
        ~"*aof_last_bgrewrite_status:ok\r\n*"
        > MGET a b
        ["1", "2"]
        "#,
    );
}

/// What a transaction asks for happens after it.
#[test]
fn in_a_transaction_both_are_scheduled() {
    let session = Session::start();
    let mut connection = session.connect();
    let scheduled = r#"[+"Background append only file rewriting scheduled", +OK, +"Background saving scheduled"]"#;
    eventually("none is at work", || {
        let replies = connection.pipeline(&["MULTI", "BGREWRITEAOF", "SET a 1", "BGSAVE", "EXEC"]);
        replies[4].to_string() == scheduled
    });
}

/// Whoever comes second while the first is at work. It may be done before the second is looked at, so they ask again.
#[test]
fn one_at_a_time() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("DEBUG POPULATE 50000");
    let started = "+Background saving started";
    let rewriting = "+Background append only file rewriting started";
    let saving = "-ERR Background save already in progress";
    meets(&mut connection, ["BGSAVE", "BGSAVE"], [started, saving]);
    meets(&mut connection, ["BGSAVE", "BGSAVE SCHEDULE"], [started, saving]);
    meets(&mut connection, ["BGSAVE", "SAVE"], [started, saving]);
    let scheduled = "+Background append only file rewriting scheduled";
    meets(&mut connection, ["BGSAVE", "BGREWRITEAOF"], [started, scheduled]);
    let already = "-ERR Background append only file rewriting already in progress";
    meets(&mut connection, ["BGREWRITEAOF", "BGREWRITEAOF"], [rewriting, already]);
    let refused = "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
        schedule a BGSAVE whenever possible.";
    meets(&mut connection, ["BGREWRITEAOF", "BGSAVE"], [rewriting, refused]);
    meets(&mut connection, ["BGREWRITEAOF", "BGSAVE SCHEDULE"], [rewriting, "+Background saving scheduled"]);
}

#[track_caller]
fn meets(connection: &mut Connection, lines: [&str; 2], expected: [&str; 2]) {
    let mut last = Vec::new();
    eventually(&format!("{lines:?} gives {expected:?}"), || {
        // From rest: otherwise what one attempt has scheduled is in the way of the next, for ever.
        let busy = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "aof_rewrite_scheduled"];
        if busy.iter().any(|name| crate::support::info::<u64>(connection, name) > 0) {
            return false;
        }
        last = connection.pipeline(&lines).iter().map(ToString::to_string).collect();
        last == expected
    });
}

/// What was scheduled is done, without anybody asking again.
#[test]
fn what_is_scheduled_happens() {
    let session = Session::start();
    let mut connection = session.connect();
    let count = |connection: &mut Connection, name: &str| -> u64 { crate::support::info(connection, name) };
    connection.run("DEBUG POPULATE 50000");
    let (mut saves, mut rewrites) = (0, 0);
    eventually("a save is scheduled", || {
        (saves, rewrites) = (count(&mut connection, "rdb_saves"), count(&mut connection, "aof_rewrites"));
        let replies = connection.pipeline(&["BGREWRITEAOF", "BGSAVE SCHEDULE"]);
        replies[1].to_string() == "+Background saving scheduled"
    });
    eventually("both are done", || {
        count(&mut connection, "rdb_saves") > saves && count(&mut connection, "aof_rewrites") > rewrites
    });
}

/// A stop that meets a snapshot, or the moment before one, is a good end all the same.
#[test]
fn a_stop_may_come_at_any_moment_of_a_snapshot() {
    let Some(home) = crate::support::Home::fresh() else { return };
    for round in 0..10 {
        let server = home.start(&["--auto-aof-rewrite-min-size", "1", "--auto-aof-rewrite-percentage", "1"]);
        let mut connection = server.connect();
        connection.run(&format!("SET key:{round} {}", "v".repeat(1000)));
        connection.pipeline(&["BGREWRITEAOF", "BGSAVE", "BGREWRITEAOF"]);
        crate::support::End::Term.of(server);
    }
    let server = home.start(&[]);
    assert_eq!(server.connect().run("DBSIZE").integer(), 10);
}

/// What asks how far a snapshot is, while it holds keys that the snapshot wants.
#[test]
fn transactions_may_ask_about_a_snapshot() {
    let session = Session::start();
    let (mut saver, mut asker) = (session.connect(), session.connect());
    saver.run("DEBUG POPULATE 2000");
    for _ in 0..300 {
        saver.queue(&["BGSAVE"]);
        saver.flush();
        let replies = asker.pipeline(&["MULTI", "DBSIZE", "LASTSAVE", "INFO persistence", "EXEC"]);
        assert_eq!(replies[4].items().len(), 3);
        saver.read();
    }
}
