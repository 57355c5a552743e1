//! CELL.FORK and CELL.DROP: what they copy and refuse, and that a fork is gone after a crash in the middle.
//! `crates/engine/tests/databases/long_writes.rs` has what others may do meanwhile, and that a fork is of one instant.

use std::thread;
use wire::own::{OwnServer, check, check_own_events, run_all};

#[test]
fn a_fork_has_versions_history_and_deadlines() {
    check(
        r#"
        CELL.SET dev/a 1                => :1
        CELL.SET dev/a 2                => :2
        CELL.SET dev/b x EX 1000        => :1
        CELL.SET dev y                  => :1
        SET dev/s string                => +OK
        CELL.FORK dev/ prod/            => :2
        CELL.HISTORY prod/a             => [["2", :2, *], ["1", :1, *]]
        TTL prod/b                      => :999..1000
        TTL prod/a                      => :-1
        EXISTS prod/s prod              => :0
        CELL.CAS prod/a 2 fork          => :3
        CELL.GET dev/a                  => "2"
        CELL.SET dev/a 3                => :3
        CELL.GET prod/a                 => "fork"
        CELL.DEL dev/b                  => :1
        CELL.GET prod/b                 => "x"
        CELL.FORK dev/ prod/            => -ERR there is a key under 'prod/' already: fork to another prefix, or CELL.DROP this one first
        CELL.FORK nosuch/ other/        => :0
        CELL.DROP prod/                 => :2
        CELL.DROP prod/                 => :0
        EXISTS dev/a dev dev/s          => :3
        CELL.DROP dev/                  => :1
        EXISTS dev dev/s                => :2
        "#,
    );
}

#[test]
fn what_cannot_be_forked() {
    const INSIDE: &str = "-ERR one prefix contains the other, and a fork would copy its own cells: choose another";
    check(&format!(
        r#"
        CELL.SET a/x v                  => :1
        CELL.FORK a/ a/b/               => {INSIDE} ('a/' and 'a/b/')
        CELL.FORK a/b/ a/               => {INSIDE} ('a/b/' and 'a/')
        CELL.FORK a/ a/                 => {INSIDE} ('a/' and 'a/')
        CELL.FORK a/ _strata/           => -ERR the name of a cell must not begin with '_strata/', which is reserved: choose another name
        CELL.FORK a/ "b\x00/"           => -ERR the name of a cell must not contain a NUL byte: choose another name
        CELL.FORK a/ {longest}xx/       => -ERR the branch of a cell, before the first '/', must have at most 1024 bytes
        DBSIZE                          => :1
        HSET c/h f v                    => :1
        CELL.FORK a/ c/                 => -ERR there is a key under 'c/' already: fork to another prefix, or CELL.DROP this one first
        CELL.FORK a/ d/                 => :1
        SELECT 3                        => +OK
        CELL.FORK a/ d/                 => :0
        "#,
        longest = "x".repeat(1023)
    ));
}

#[test]
fn a_prefix_ends_in_a_separator() {
    check(
        r#"
        CELL.SET main/x v               => :1
        CELL.SET main:x v               => :1
        CELL.SET maintenance/x v        => :1
        CELL.DROP main                  => -ERR the prefix must end in '/' or ':', not 'main'
        CELL.DROP ""                    => -ERR the prefix must end in '/' or ':', not ''
        CELL.FORK main trial/           => -ERR the prefix to copy from must end in '/' or ':', not 'main'
        CELL.FORK "" trial/             => -ERR the prefix to copy from must end in '/' or ':', not ''
        CELL.FORK main/ trial           => -ERR the prefix to copy to must end in '/' or ':', not 'trial'
        MULTI                           => +OK
        CELL.DROP main                  => +QUEUED
        CELL.FORK main trial            => +QUEUED
        > EXEC
        [-"ERR the prefix must end in '/' or ':', not 'main'",
         -"ERR the prefix to copy from must end in '/' or ':', not 'main'"]
        DBSIZE                          => :3
        CELL.FORK main: trial/          => :1
        CELL.GET trial/x                => "v"
        CELL.DROP main/                 => :1
        CELL.DROP main:                 => :1
        CELL.LIST                       => ["0", ~["maintenance/x", "trial/x"]]
        "#,
    );
}

#[test]
fn forks_and_drops_in_transactions_and_scripts() {
    check(
        r#"
        > MULTI
        > CELL.SET a/x 1
        > CELL.SET a/y 1
        > CELL.FORK a/ b/
        > CELL.SET a/x 2
        > CELL.FORK a/ b/
        > CELL.DROP a/
        > EXEC
        +OK
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        +QUEUED
        [:1, :1, :2, :2, -"ERR there is a key under 'b/' already: fork to another prefix, or CELL.DROP this one first", :2]
        CELL.GETV b/x => ["1", :1, *]
        > EVAL "redis.call('cell.set', 'b/x', 2) return redis.call('cell.fork', 'b/', 'c/') + redis.call('cell.drop', 'b/')" 0
        :4
        CELL.LIST => ["0", ~["c/x", "c/y"]]
        > CELL.GETV c/x
        ["2", :2, *]
        "#,
    );
}

#[test]
fn copies_and_drops_are_told() {
    check_own_events(
        r#"
        CELL.SET a/x 1 => new a/x, cell.set a/x
        CELL.FORK a/ b/ => new b/x, cell.fork b/x
        CELL.DROP b/ => cell.drop b/x
        CELL.DROP b/ =>
        "#,
    );
}

/// A watch on a name that a fork makes.
#[test]
fn a_fork_wakes_those_who_wait_for_its_cells() {
    check(
        r#"
        CELL.SET a/x 1 => :1
        2> CELL.GETV b/x AFTER 0 BLOCK 0
        # until blocked_clients:1
        CELL.FORK a/ b/ => :1
        2< ["1", :1, *]
        2> CELL.GETV b/x AFTER 1 BLOCK 0
        # until blocked_clients:1
        CELL.DROP b/ => :1
        2< (nil)
        "#,
    );
}

/// Enough that a fork takes a while.
const MANY: usize = 20_000;

/// In the middle of a fork the server is killed; a snapshot may lie between. After the start nothing of the fork is there.
#[test]
fn a_fork_that_has_not_ended_is_gone_after_a_kill() {
    let Some(own) = OwnServer::start(&["--appendonly", "yes", "--appendfsync", "everysec"]) else { return };
    let mut connection = own.connect();
    run_all(&mut connection, (0..MANY).map(|number| format!("CELL.SET a/{number} v")));
    for has_snapshot in [false, true] {
        let mut forker = own.connect();
        forker.queue_line("CELL.FORK a/ b/");
        forker.flush();
        while connection.run("CELL.LIST PREFIX b/ LIMIT 1").items()[1].items().is_empty() {
            thread::yield_now();
        }
        if has_snapshot {
            connection.run("BGSAVE");
            while connection.run("INFO persistence").text().contains("rdb_bgsave_in_progress:1") {
                thread::yield_now();
            }
        }
        own.kill_and_start();
        connection = own.connect();
        let found = connection.run("DBSIZE").integer() as usize;
        // On a busy machine the fork may end before the kill: then all of it is there.
        assert!([MANY, 2 * MANY].contains(&found), "{found} keys, has_snapshot: {has_snapshot}");
        connection.run("CELL.DROP b/");
        assert_eq!(connection.run("SET b/x v").to_string(), "+OK");
        own.kill_and_start();
        connection = own.connect();
        assert_eq!(connection.run("DEL b/x").integer(), 1, "what was written since stays");
    }
    assert_eq!(connection.run("CELL.FORK a/ b/").integer() as usize, MANY);
    own.kill_and_start();
    assert_eq!(own.connect().run("DBSIZE").integer() as usize, 2 * MANY, "a fork that has ended stays");
}
