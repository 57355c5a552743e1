//! Commands in slices while another client exchanges databases as fast as it can: each command finds and changes the data of one
//! database, whole. The steps one by one, and other commands beside them, are in `crates/engine/tests/databases.rs`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use wire::Connection;

use crate::support::start;

/// Enough for many slices.
const MANY: usize = 6000;

/// Fills both databases, each with data that tells where it comes from.
fn fill(connection: &mut Connection) {
    connection.run("FLUSHALL");
    for db in 0..2 {
        connection.run(&format!("SELECT {db}"));
        let lines = (0..MANY).flat_map(|number| {
            [
                format!("HSET r:{number} n {number} state old home home-{db}"),
                format!("CELL.SET c/{number} home-{db}"),
                format!("REG.PUT g:{number} 1 home-{db}"),
            ]
        });
        let lines: Vec<String> = lines.collect();
        lines.chunks(1000).for_each(|some| assert!(connection.pipeline(some).iter().all(|reply| !reply.is_error())));
    }
    connection.run("SELECT 0");
}

/// The homes of all records, of both databases, that were changed.
fn homes_of_changed(connection: &mut Connection) -> Vec<String> {
    let mut homes = Vec::new();
    for db in 0..2 {
        connection.run(&format!("SELECT {db}"));
        let found = connection.run("IDX.RANGE i -inf +inf FILTER state eq new FIELDS 1 home");
        homes.extend(found.items().iter().map(|row| row.items()[2].items()[1].text().to_owned()));
    }
    connection.run("SELECT 0");
    homes
}

/// How many cells each database has.
fn cells(connection: &mut Connection) -> Vec<usize> {
    let count = |db| {
        connection.run(&format!("SELECT {db}"));
        let (mut cursor, mut count) = ("0".to_owned(), 0);
        loop {
            let page = connection.run(&format!("CELL.LIST PREFIX c/ CURSOR {cursor} LIMIT 100000"));
            count += page.items()[1].items().len();
            cursor = page.items()[0].text().to_owned();
            if cursor == "0" {
                return count;
            }
        }
    };
    let counts = [0, 1].map(count).to_vec();
    connection.run("SELECT 0");
    counts
}

/// Asserts that all of them come from one database, and that there are as many as it has.
#[track_caller]
fn assert_one_home(homes: &[String], what: &str) {
    assert_eq!(homes.len(), MANY, "{what}");
    assert!(homes.iter().all(|home| *home == homes[0]), "{what} has found data of both databases");
}

#[test]
fn a_command_keeps_to_the_database_in_which_it_began() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE i PREFIX 1 r: FIELD n");
    for command in [
        "SWEEP i BEFORE 1000000 WHERE state 1 old SET 1 state new",
        "CLAIM 1 i WHERE state 1 old SET 1 state new COUNT 1000000 KEYS",
        "IDX.RANGE i -inf +inf FIELDS 1 home",
        "CELL.DROP c/",
        "REG.SNAPSHOT PREFIX g:",
    ] {
        fill(&mut connection);
        let is_over = AtomicBool::new(false);
        let reply = thread::scope(|scope| {
            let mut swapper = session.connect();
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Relaxed) {
                    let reply = swapper.run("SWAPDB 0 1").to_string();
                    assert!(reply == "+OK" || reply.starts_with("-BUSY a command works in slices"), "{reply}");
                }
            });
            let reply = connection.run(command);
            is_over.store(true, Relaxed);
            reply
        });
        match command.split(' ').next() {
            Some("SWEEP" | "CLAIM") => {
                assert_eq!(reply.items().len(), MANY, "{command}");
                assert_one_home(&homes_of_changed(&mut connection), command);
            }
            Some("IDX.RANGE") => {
                let homes: Vec<String> =
                    reply.items().iter().map(|row| row.items()[2].items()[1].text().to_owned()).collect();
                assert_one_home(&homes, command);
            }
            Some("CELL.DROP") => {
                assert_eq!(reply.integer() as usize, MANY);
                let mut counts = cells(&mut connection);
                counts.sort_unstable();
                assert_eq!(counts, [0, MANY], "{command}");
            }
            _ => {
                let blob = reply.bytes();
                let has = |home: &[u8]| blob.windows(home.len()).any(|bytes| bytes == home);
                assert!(has(b"home-0") != has(b"home-1"), "{command} has registers of both databases");
            }
        }
        // Nothing is left that would refuse it.
        assert_eq!(connection.run("SWAPDB 0 1").to_string(), "+OK", "{command}");
    }
}
