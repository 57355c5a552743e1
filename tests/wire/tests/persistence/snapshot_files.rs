//! What is in the data directory after snapshots: the newest, and no more journal than it needs.

use wire::Connection;

use crate::support::{End, Home, assert_same, contents, eventually, furnish, info, ok};

#[track_caller]
fn save(connection: &mut Connection) {
    eventually("it saves", || connection.run("SAVE").to_string() == "+OK");
}

#[test]
fn old_files_go() {
    let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
    for round in 0..10 {
        ok(&mut connection, &format!("SET round:{round} {}", "v".repeat(100_000)));
        save(&mut connection);
    }
    eventually("what was replaced is gone", || {
        home.files_named(".snap").len() == 1 && home.files_named(".seg").len() <= 2
    });
    assert_eq!(home.files_named(".tmp"), Vec::<String>::new());
    let bytes: usize = home.files().values().map(Vec::len).sum();
    assert!(bytes < 2_200_000, "1 MB of values takes {bytes} bytes");
    let server = home.serve_again(server, &[]);
    assert_eq!(server.connect().run("DBSIZE").integer(), 10);
}

/// Whole segments go, and one has 64 MiB.
#[test]
fn a_journal_that_grows_long_is_made_short() {
    let Some((home, server, mut connection)) =
        Home::serve_client(&["--appendfsync", "no", "--auto-aof-rewrite-min-size", "1mb"])
    else {
        return;
    };
    let value = vec![b'v'; 1 << 20];
    for _ in 0..150 {
        assert_eq!(connection.run_with("SET same", &[&value]).to_string(), "+OK");
    }
    eventually("it wrote a snapshot by itself", || info::<u64>(&mut connection, "aof_rewrites") > 0);
    let bytes = |name: &String| std::fs::metadata(home.data().join(name)).map_or(0, |data| data.len());
    eventually("and dropped most of the journal", || {
        let names = std::fs::read_dir(home.data()).expect("cannot list the data directory");
        let names = names.map(|entry| entry.expect("cannot list").file_name().into_string().expect("a plain name"));
        names.map(|name| bytes(&name)).sum::<u64>() < 80 << 20
    });
    let server = home.serve_again(server, &[]);
    assert!(server.connect().run("GET same").bytes() == value);
}

#[test]
fn writes_after_a_snapshot_survive() {
    for end in [End::Kill, End::Term] {
        let Some((home, server, mut connection)) = Home::serve_client(&[]) else { return };
        furnish(&mut connection, true);
        save(&mut connection);
        for line in ["SET int 43", "HSET small a 43", "DEL blob", "RENAME raw cooked", "FLUSHDB"] {
            if line == "FLUSHDB" {
                ok(&mut connection, "SELECT 9");
            }
            assert!(!connection.run(line).is_error(), "{line}");
        }
        let expected = contents(&mut connection, true);
        end.of(server);
        let server = home.start(&[]);
        assert_same(&contents(&mut server.connect(), true), &expected, &format!("after {end:?}"));
    }
}

/// Writers go on while snapshots are taken, and use what refers from key to key.
#[test]
fn writes_during_snapshots_survive() {
    let Some((home, server, mut saver)) = Home::serve_client(&["--enable-debug-command", "yes"]) else { return };
    ok(&mut saver, "DEBUG POPULATE 20000 old 50");
    let writers: Vec<_> = (0..4_u64)
        .map(|number| {
            let mut connection = server.connect();
            std::thread::spawn(move || {
                for round in 0..500_u64 {
                    let at = (round * 7919 + number * 104_729) % 20_000;
                    let to = (at * 31 + 17) % 20_000;
                    let commands = [
                        format!("SET old:{at} {round}"),
                        format!("RENAME old:{at} new:{number}:{round}"),
                        format!("COPY new:{number}:{round} old:{to} REPLACE"),
                        format!("HINCRBY hash:{} {round} {number}", round % 50),
                        format!("APPEND log:{} {round},", round % 20),
                        format!("MSET old:{to} a new:{at} b"),
                        format!("MOVE new:{at} 1"),
                        format!("DEL new:{number}:{}", round / 2),
                        if round % 500 == 499 {
                            "SWAPDB 1 2".to_owned()
                        } else {
                            format!("PEXPIREAT old:{to} 33177117420123")
                        },
                    ];
                    connection.pipeline(&commands);
                }
            })
        })
        .collect();
    let mut saves = 0;
    while !writers.iter().all(|writer| writer.is_finished()) {
        saves += u32::from(saver.run("SAVE").to_string() == "+OK");
    }
    for writer in writers {
        writer.join().expect("a writer failed");
    }
    let expected = contents(&mut saver, true);
    let server = home.serve_again(server, &["--shards", "64"]);
    assert_same(&contents(&mut server.connect(), true), &expected, &format!("after {saves} snapshots"));
}

#[test]
fn an_unfinished_snapshot_is_removed_and_strange_files_stay() {
    let Some((home, server)) = Home::serve(&[]) else { return };
    ok(&mut server.connect(), "SET a 1");
    server.kill();
    std::fs::write(home.data().join("snapshot-0000000009.tmp"), b"half a snapshot").expect("cannot write a file");
    std::fs::write(home.data().join("notes.txt"), b"mine").expect("cannot write a file");
    let server = home.start(&[]);
    assert_eq!(server.connect().run("GET a").text(), "1");
    assert_eq!(home.files_named(".tmp"), Vec::<String>::new());
    assert_eq!(home.files()["notes.txt"], b"mine");
}
