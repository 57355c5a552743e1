//! `appendonly no`: snapshots alone, as in a Redis without AOF; and turning the journal on and off.

use wire::Reply;

use crate::support::{End, Home, assert_same, contents, eventually, furnish, info, ok};

const NEVER: &[&str] = &["--appendonly", "no", "--save", ""];
const SAVE_POINTS: &[&str] = &["--appendonly", "no", "--save", "3600 1"];

#[test]
fn a_kill_loses_what_was_not_saved() {
    let Some((home, server, mut connection)) = Home::serve_client(NEVER) else { return };
    furnish(&mut connection, true);
    let saved = contents(&mut connection, true);
    ok(&mut connection, "SAVE");
    ok(&mut connection, "SET later 1");
    ok(&mut connection, "FLUSHALL");
    let server = home.serve_again(server, NEVER);
    assert_same(&contents(&mut server.connect(), true), &saved, "after a kill");
    assert_eq!(server.connect().run("GET later"), Reply::NilBulk);
}

#[test]
fn the_end_saves_where_it_should() {
    let kept = |args: &[&str], end: End| -> Option<String> {
        let home = Home::fresh()?;
        let server = home.start(args);
        ok(&mut server.connect(), "SET a 1");
        end.of(server);
        let server = home.start(args);
        Some(server.connect().run("GET a").to_string())
    };
    for (args, end, expected) in [
        (SAVE_POINTS, End::Term, "\"1\""),
        (SAVE_POINTS, End::Shutdown(""), "\"1\""),
        (SAVE_POINTS, End::Shutdown("SAVE"), "\"1\""),
        (SAVE_POINTS, End::Shutdown("NOSAVE"), "(nil)"),
        (SAVE_POINTS, End::Kill, "(nil)"),
        (NEVER, End::Term, "(nil)"),
        (NEVER, End::Shutdown(""), "(nil)"),
        (NEVER, End::Shutdown("SAVE"), "\"1\""),
        (NEVER, End::Shutdown("NOSAVE"), "(nil)"),
    ] {
        let Some(found) = kept(args, end) else { return };
        assert_eq!(found, expected, "{args:?}, {end:?}");
    }
}

#[test]
fn save_points_save_by_themselves() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--appendonly", "no", "--save", "1 10"]) else {
        return;
    };
    for number in 0..10 {
        ok(&mut connection, &format!("SET key:{number} v"));
    }
    eventually("it saved", || info::<u64>(&mut connection, "rdb_saves") > 0);
    let server = home.serve_again(server, NEVER);
    assert_eq!(server.connect().run("DBSIZE").integer(), 10);
}

#[test]
fn turned_on_it_keeps_what_is_there_and_what_comes() {
    let Some((home, server, mut connection)) = Home::serve_client(NEVER) else { return };
    furnish(&mut connection, true);
    ok(&mut connection, "CONFIG SET appendonly yes");
    eventually("it is on", || info::<u64>(&mut connection, "aof_rewrites") > 0);
    ok(&mut connection, "SET later 1");
    let expected = contents(&mut connection, true);
    let server = home.serve_again(server, &[]);
    assert_same(&contents(&mut server.connect(), true), &expected, "after a kill");
}

/// WAITAOF speaks of the disk, and the disk has nothing before the first snapshot has.
#[test]
fn turned_on_waitaof_waits_for_what_is_there() {
    let Some((home, server, mut connection)) =
        Home::serve_client(&["--appendonly", "no", "--save", "", "--enable-debug-command", "yes"])
    else {
        return;
    };
    ok(&mut connection, "DEBUG POPULATE 100000 key 50");
    ok(&mut connection, "SET before 1");
    let replies = connection.pipeline(&["CONFIG SET appendonly yes", "WAITAOF 1 0 0"]);
    assert_eq!(replies[1].to_string(), "[:1, :0]");
    let server = home.serve_again(server, &[]);
    assert_eq!(server.connect().run("GET before").to_string(), "\"1\"");
    assert_eq!(server.connect().run("DBSIZE").integer(), 100_001);
}

/// The same for a connection that is promised durability.
#[test]
fn turned_on_a_durable_write_is_kept() {
    let Some((home, server, mut connection)) =
        Home::serve_client(&["--appendonly", "no", "--save", "", "--enable-debug-command", "yes"])
    else {
        return;
    };
    ok(&mut connection, "DEBUG POPULATE 100000 key 50");
    let replies = connection.pipeline(&["CONFIG SET appendonly yes", "CLIENT DURABILITY always", "SET promised 1"]);
    let granted = replies[1].to_string();
    let server = home.serve_again(server, &[]);
    // It may refuse the promise. It may not break it.
    if granted == "+OK" {
        assert_eq!(server.connect().run("GET promised").to_string(), "\"1\"");
    }
}

#[test]
fn turned_off_it_keeps_what_it_had() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--save", ""]) else { return };
    ok(&mut connection, "SET kept 1");
    ok(&mut connection, "CONFIG SET appendonly no");
    ok(&mut connection, "SET lost 1");
    let server = home.serve_again(server, NEVER);
    assert_eq!(server.connect().run("MGET kept lost").to_string(), "[\"1\", (nil)]");
}

/// What was changed in between is in the snapshot that begins the journal anew.
#[test]
fn off_and_on_again() {
    let Some((home, server, mut connection)) = Home::serve_client(&["--save", ""]) else { return };
    for round in 0..5_u64 {
        let before = info::<u64>(&mut connection, "aof_rewrites");
        ok(&mut connection, &format!("SET on:{round} 1"));
        ok(&mut connection, "CONFIG SET appendonly no");
        ok(&mut connection, &format!("SET off:{round} 1"));
        assert!(!connection.run(&format!("DEL on:{round}")).is_error());
        ok(&mut connection, "CONFIG SET appendonly yes");
        eventually("it is on", || {
            info::<u64>(&mut connection, "aof_rewrites") > before
                && info::<u64>(&mut connection, "aof_rewrite_in_progress") == 0
        });
    }
    ok(&mut connection, "SET last 1");
    let expected = contents(&mut connection, true);
    assert_eq!(expected.keys().filter(|name| name.starts_with("0 ")).count(), 6);
    let server = home.serve_again(server, &[]);
    assert_same(&contents(&mut server.connect(), true), &expected, "after a kill");
}

/// A server with the flag the other way round reads what is there.
#[test]
fn the_flag_may_change_between_starts() {
    let Some(home) = Home::fresh() else { return };
    let mut expected = 0;
    for (round, args) in [&[][..], NEVER, &[], SAVE_POINTS, &[]].into_iter().enumerate() {
        let server = home.start(args);
        let mut connection = server.connect();
        assert_eq!(connection.run("DBSIZE").integer(), expected, "round {round}");
        ok(&mut connection, &format!("SET round:{round} 1"));
        End::Shutdown("SAVE").of(server);
        expected += 1;
    }
    for (round, args) in [&[][..], NEVER, &[], NEVER, NEVER, &[]].into_iter().enumerate() {
        let server = home.start(args);
        let mut connection = server.connect();
        assert_eq!(connection.run("DBSIZE").integer(), expected, "round {round}");
        ok(&mut connection, &format!("SET killed:{round} 1"));
        server.kill();
        expected += i64::from(args.is_empty());
    }
}
