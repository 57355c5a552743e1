//! Commands that store or combine a whole index, of more records than are read at once: they run on a copy, which is made
//! while others go on. Their replies are those of the same command in a transaction, which reads the index itself.

use crate::support::{ok, start};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wire::{Connection, Session};

const RECORDS: usize = 3000;

/// A server with an index `i` over records `r:n` whose scores are their numbers, one `few` over some of them, and a sorted set.
fn filled() -> Option<Session> {
    let session = start()?;
    let mut connection = session.connect();
    ok(&mut connection, "IDX.CREATE i PREFIX 1 r: FIELD n");
    ok(&mut connection, "IDX.CREATE few PREFIX 1 r:1 FIELD n ONLY state 1 new");
    for number in 0..RECORDS {
        let state = if number % 100 == 0 { "new" } else { "old" };
        connection.run(&format!("HSET r:{number:04} n {number} state {state}"));
    }
    connection.run("ZADD z 5 r:0005 7 r:0007 1 other");
    Some(session)
}

fn in_transaction(connection: &mut Connection, command: &str) -> String {
    connection.run("MULTI");
    connection.run(command);
    format!("{:?}", connection.run("EXEC").items()[0])
}

#[test]
fn a_command_on_a_copy_replies_as_one_on_the_index() {
    let Some(session) = filled() else { return };
    let mut connection = session.connect();
    for command in [
        "ZUNION 2 i z WITHSCORES",
        "ZUNION 3 i few z WEIGHTS 2 3 0.5 AGGREGATE MAX WITHSCORES",
        "ZINTER 2 i i WITHSCORES",
        "ZINTER 2 few i WITHSCORES",
        "ZDIFF 2 i z",
        "ZDIFF 3 i few z WITHSCORES",
        "ZDIFF 2 z i",
        "ZINTERCARD 2 i i",
        "ZINTERCARD 2 i i LIMIT 7",
        "ZRANDMEMBER i 5000",
        "ZRANDMEMBER i 5000 WITHSCORES",
        "ZUNION 2 i r:0001",
        "ZUNION 2 i z WEIGHTS 1",
        "ZUNIONSTORE i 2 i z",
        "ZRANGESTORE few i 0 -1",
    ] {
        for version in [2, 3] {
            connection.run(&format!("HELLO {version}"));
            let expected = in_transaction(&mut connection, command);
            assert_eq!(format!("{:?}", connection.run(command)), expected, "{command}");
        }
    }
    connection.run("HELLO 2");
    for command in [
        "ZRANGESTORE to i 0 -1",
        "ZRANGESTORE to i 10 2000",
        "ZRANGESTORE to i (2500 (7 BYSCORE REV LIMIT 3 1500",
        "ZUNIONSTORE to 2 i z",
        "ZUNIONSTORE to 2 to i",
        "ZINTERSTORE to 2 i i AGGREGATE MIN",
        "ZDIFFSTORE to 2 i z",
    ] {
        for destination in ["z", "r:0001"] {
            connection.run("DEL to");
            connection.run(&format!("COPY {destination} to"));
            let before = connection.run("DUMP to");
            let expected = in_transaction(&mut connection, command);
            let members = format!("{:?}", connection.run("ZRANGE to 0 -1 WITHSCORES"));
            let restore: [&[u8]; 5] = [b"RESTORE", b"to", b"0", before.bytes(), b"REPLACE"];
            assert!(!connection.run_args(&restore).is_error());
            assert_eq!(format!("{:?}", connection.run(command)), expected, "{command}");
            assert_eq!(format!("{:?}", connection.run("ZRANGE to 0 -1 WITHSCORES")), members, "{command}");
        }
    }
}

#[test]
fn members_of_a_copy_are_chosen_at_random() {
    let Some(session) = filled() else { return };
    let mut connection = session.connect();
    for (count, distinct) in [("1000", 1000), ("2000", 2000), ("-1000", 500), ("-5000", 1500)] {
        let reply = connection.run(&format!("ZRANDMEMBER i {count}"));
        let names: BTreeSet<Vec<u8>> = reply.items().iter().map(|name| name.bytes().to_vec()).collect();
        assert_eq!(reply.items().len(), count.trim_start_matches('-').parse().expect("a number"), "{count}");
        assert!(
            names.len() >= distinct && names.iter().all(|name| name.starts_with(b"r:")),
            "{count}: {}",
            names.len()
        );
        if !count.starts_with('-') {
            assert_eq!(names.len(), distinct, "{count}");
        }
    }
}

#[test]
fn a_record_is_in_a_copy_once_while_others_move() {
    let Some(session) = filled() else { return };
    let (mut reader, stopped) = (session.connect(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut writer = session.connect();
            for number in 0.. {
                // To the end, from where a copy has been and from where it has not.
                writer.run(&format!("HSET r:{:04} n {}", number * 7 % RECORDS, RECORDS + number));
                if stopped.load(Relaxed) {
                    break;
                }
            }
        });
        let expected: Vec<String> = (0..RECORDS).map(|number| format!("r:{number:04}")).collect();
        for command in ["ZUNION 1 i", "ZDIFF 1 i"].repeat(5) {
            let reply = reader.run(command);
            let mut names: Vec<&str> = reply.items().iter().map(|name| name.text()).collect();
            names.sort_unstable();
            assert!(names == expected, "{command}");
        }
        stopped.store(true, Relaxed);
        writer.join().expect("it only writes");
    });
}
