//! A disk that is full: writes are refused beforehand, with the reason, and have not happened; reads go on, nothing that was
//! acknowledged is lost, and when there is room writes are taken again. Needs the right to mount a small file system.

use std::fs;

use wire::{Connection, Reply, Server};

use crate::faults::SmallDisk;
use crate::support::{eventually, info, ok};

const POLICIES: [&str; 2] = ["everysec", "always"];

/// A small disk with a few MiB left.
fn mount() -> Option<SmallDisk> {
    let disk = SmallDisk::mount(8)?;
    disk.take_room(5 << 20);
    Some(disk)
}

fn value(number: usize) -> String {
    format!("{number}:").repeat(2000)
}

/// Writes until the disk is full. Returns how many were acknowledged.
fn fill(server: &Server) -> usize {
    let mut writer = server.connect();
    for number in 0..100_000 {
        let reply = writer.run(&format!("SET key:{number} {}", value(number))).to_string();
        if reply == "+OK" {
            continue;
        }
        assert!(reply.starts_with("-MISCONF Errors writing to the AOF file: "), "{reply}");
        // It was refused beforehand: it has not happened, and the client goes on.
        assert_eq!(writer.run("PING").to_string(), "+PONG");
        assert_eq!(writer.run(&format!("EXISTS key:{number}")).to_string(), ":0");
        return number;
    }
    panic!("the disk is never full");
}

#[track_caller]
fn assert_has(connection: &mut Connection, keys: usize) {
    for number in 0..keys {
        assert_eq!(
            connection.run(&format!("GET key:{number}")).to_string(),
            format!("\"{}\"", value(number)),
            "key:{number}"
        );
    }
}

#[track_caller]
fn assert_refuses_writes(connection: &mut Connection) {
    for line in ["SET other 1", "DEL key:0", "INCR counter", "FLUSHALL", "EXPIRE key:0 1", "REG.SNAPSHOT STORE blob"] {
        let reply = connection.run(line).to_string();
        assert!(reply.starts_with("-MISCONF Errors writing to the AOF file: "), "{line}: {reply}");
        assert!(reply.contains("No space left on device"), "{line}: {reply}");
    }
    // Some requests of a command that may write only read.
    for line in ["REG.SNAPSHOT", "REG.SNAPSHOT PREFIX STORE", "SESSION.HOOK"] {
        let reply = connection.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    assert_eq!(connection.run("PING").to_string(), "+PONG");
}

/// Waits until writes are refused beforehand: one that is under way when the disk fills up ends its connection.
fn connect_when_refused(server: &Server) -> Connection {
    let mut connection = server.connect();
    eventually("writes are refused beforehand", || {
        let reply = connection.run("SET other 1").to_string();
        assert!(reply.starts_with("-MISCONF "), "{reply}");
        let stays = connection.run("PING").to_string() == "+PONG";
        if !stays {
            connection = server.connect();
        }
        stays
    });
    connection
}

#[track_caller]
fn mend(disk: &SmallDisk, connection: &mut Connection) {
    disk.make_room();
    eventually("writes are taken again", || connection.run("SET mended 1").to_string() == "+OK");
    assert!(connection.run("INFO persistence").text().contains("aof_last_write_status:ok\r\n"));
}

/// Reads go on, also under `always`: what was acknowledged is durable, so there is no reason to hide it.
#[test]
fn it_fills_and_recovers() {
    for policy in POLICIES {
        let Some(disk) = mount() else { return };
        let server = disk.home.start(&["--appendfsync", policy]);
        let keys = fill(&server);
        assert!(keys > 50, "{keys}");
        let mut connection = connect_when_refused(&server);
        // It is what an operator looks at first.
        let told = connection.run("INFO").to_string();
        assert!(told.contains("aof_last_write_status:err\\r\\n") && told.contains("No space left on device"), "{told}");
        assert_has(&mut connection, keys);
        assert_refuses_writes(&mut connection);
        assert_has(&mut connection, keys);
        mend(&disk, &mut connection);
        assert_has(&mut connection, keys);
        ok(&mut connection, "SET later 1");
        let (_server, mut connection) = disk.home.serve_client_again(server, &["--appendfsync", policy]);
        assert_has(&mut connection, keys);
        assert_eq!(connection.run("MGET mended later").to_string(), "[\"1\", \"1\"]");
    }
}

/// A snapshot may make room by itself.
#[test]
fn a_rewrite_goes_on() {
    let Some(disk) = mount() else { return };
    let server = disk.home.start(&[]);
    let keys = fill(&server);
    let mut connection = connect_when_refused(&server);
    disk.make_room();
    assert!(!connection.run("BGREWRITEAOF").is_error());
    eventually("writes are taken again", || connection.run("SET mended 1").to_string() == "+OK");
    let (_server, mut connection) = disk.home.serve_client_again(server, &[]);
    assert_has(&mut connection, keys);
    assert_eq!(connection.run("GET mended").text(), "1");
}

/// A signal ends it in any case, and says what was not kept by how it ends.
#[test]
fn it_can_be_stopped() {
    for policy in POLICIES {
        let Some(disk) = mount() else { return };
        let mut server = disk.home.start(&["--appendfsync", policy]);
        let keys = fill(&server);
        server.signal("TERM");
        let status = server.wait_for_end();
        assert!(status.code().is_some(), "{status}: {}", disk.home.stderr());
        disk.make_room();
        let server = disk.home.start(&[]);
        assert_has(&mut server.connect(), keys);
    }
}

/// Started while there is still no room: it may refuse, but then it says why, and nothing is lost.
#[test]
fn a_start_without_room_loses_nothing() {
    let Some(disk) = mount() else { return };
    let server = disk.home.start(&[]);
    let keys = fill(&server);
    server.kill();
    let room = disk.home.data().join("rest");
    let mut rest = Vec::new();
    while fs::write(&room, &rest).is_ok() {
        rest.resize(rest.len() + 4096, 1);
    }
    let server = disk.home.start(&[]);
    let mut connection = server.connect();
    assert_has(&mut connection, keys);
    // What the last server had reserved is free again, so it may be able to take a little more.
    for number in 0..1000 {
        let reply = connection.run(&format!("SET rest:{number} {}", value(number))).to_string();
        if reply != "+OK" {
            assert!(reply.contains("No space left on device"), "{reply}");
            break;
        }
    }
    assert_refuses_writes(&mut connection);
    fs::remove_file(room).expect("cannot remove the rest");
    mend(&disk, &mut connection);
    assert_has(&mut connection, keys);
}

/// Trying again without room changes nothing, however often.
#[test]
fn trying_without_room_does_no_harm() {
    let Some(disk) = mount() else { return };
    let server = disk.home.start(&[]);
    let keys = fill(&server);
    let mut connection = connect_when_refused(&server);
    for _ in 0..3 {
        let before = info::<u64>(&mut connection, "aof_rewrites");
        // It is on, and stays on.
        ok(&mut connection, "CONFIG SET appendonly yes");
        connection.run("BGREWRITEAOF");
        eventually("it has tried", || info::<u64>(&mut connection, "aof_rewrites") > before);
        assert!(connection.run("INFO persistence").text().contains("aof_last_bgrewrite_status:err\r\n"));
        let reply = connection.run("SET other 1").to_string();
        assert!(reply.starts_with("-MISCONF "), "{reply}");
    }
    assert_has(&mut connection, keys);
    mend(&disk, &mut connection);
    let (_server, mut connection) = disk.home.serve_client_again(server, &[]);
    assert_has(&mut connection, keys);
    assert_eq!(connection.run("GET mended").text(), "1");
}

/// Those whose writes were under way when it happened are told and let go. Nobody mends it, and the server is killed: what was
/// acknowledged is there.
#[test]
fn many_writers_lose_nothing_that_was_acknowledged() {
    for policy in POLICIES {
        let Some(disk) = mount() else { return };
        let server = disk.home.start(&["--appendfsync", policy, "--threads", "2"]);
        let writers: Vec<_> = (0..8)
            .map(|number| {
                let mut writer = server.connect();
                std::thread::spawn(move || {
                    let padding = "v".repeat(3000);
                    let mut acknowledged = 0;
                    loop {
                        for count in 1..=10 {
                            writer.queue_line(&format!("SET writer:{number}:{} {padding}", acknowledged + count));
                        }
                        for _ in 0..10 {
                            match writer.read() {
                                Reply::Simple(_) => acknowledged += 1,
                                Reply::Error(text) if text.starts_with(b"MISCONF ") => return acknowledged,
                                other => panic!("received {other} after {acknowledged}"),
                            }
                        }
                    }
                })
            })
            .collect();
        let acknowledged: Vec<usize> =
            writers.into_iter().map(|writer| writer.join().expect("a writer failed")).collect();
        server.kill();
        disk.make_room();
        let server = disk.home.start(&[]);
        let mut connection = server.connect();
        for (number, acknowledged) in acknowledged.iter().enumerate() {
            for count in 1..=*acknowledged {
                let length = connection.run(&format!("STRLEN writer:{number}:{count}")).integer();
                assert_eq!(length, 3000, "{policy}: writer {number} was told of {acknowledged}, {count} is not there");
            }
        }
    }
}

/// A snapshot that does not fit fails alone: the journal goes on.
#[test]
fn a_snapshot_without_room_fails_alone() {
    let Some(disk) = mount() else { return };
    let server = disk.home.start(&["--auto-aof-rewrite-percentage", "0"]);
    let mut connection = server.connect();
    // More than half of what is left.
    for number in 0..20 {
        ok(&mut connection, &format!("SET large:{number} {}", "v".repeat(100_000)));
    }
    let reply = connection.run("SAVE").to_string();
    assert!(reply.starts_with("-ERR"), "{reply}");
    assert_eq!(disk.home.files_named(".snap"), Vec::<String>::new());
    eventually("what was half written is gone", || disk.home.files_named(".tmp").is_empty());
    ok(&mut connection, "SET small 1");
    let server = disk.home.serve_again(server, &[]);
    assert_eq!(server.connect().run("DBSIZE").integer(), 21);
}

/// Without a journal, a save point that fails stops writes, as `stop-writes-on-bgsave-error` says.
#[test]
fn without_a_journal_a_failed_save_stops_writes() {
    let Some(disk) = mount() else { return };
    let server = disk.home.start(&["--appendonly", "no", "--save", "3600 1"]);
    let mut connection = server.connect();
    for number in 0..40 {
        ok(&mut connection, &format!("SET large:{number} {}", "v".repeat(100_000)));
    }
    assert!(connection.run("SAVE").to_string().starts_with("-ERR"));
    eventually("writes are refused", || connection.run("SET a 1").to_string().starts_with("-MISCONF "));
    assert_eq!(connection.run("STRLEN large:0").integer(), 100_000);
    disk.make_room();
    ok(&mut connection, "SAVE");
    eventually("writes are taken", || connection.run("SET a 1").to_string() == "+OK");
    let server = disk.home.serve_again(server, &["--appendonly", "no", "--save", ""]);
    assert_eq!(server.connect().run("DBSIZE").integer(), 40);
}

/// A write that is refused has not happened, for any kind of command, before and after a kill.
#[test]
fn a_refused_write_is_not_visible() {
    for policy in POLICIES {
        let Some(disk) = mount() else { return };
        let server = disk.home.start(&["--appendfsync", policy]);
        let mut connection = server.connect();
        connection.run("HSET job state pending n 1");
        connection.run("ZADD z 1 a");
        fill(&server);
        let mut other = server.connect();
        for line in [
            "HCAS job state pending running",
            "HPUT job FIELDS 1 state running",
            "ZPOPMIN z",
            "EVAL \"return redis.call('HSET', KEYS[1], 'state', 'running')\" 1 job",
            "FCALL compare_and_swap 1 job state pending running",
            "SWEEP idx:updated_at BEFORE 5 SET 1 state running",
            "IDX.CREATE i PREFIX 1 x: FIELD n",
            "RENAME job other",
            "SWAPDB 0 1",
        ] {
            let reply = connection.run(line).to_string();
            assert!(reply.contains("MISCONF Errors writing to the AOF file"), "{line}: {reply}");
            assert_eq!(other.run("HGET job state").to_string(), "\"pending\"", "{line}");
            assert_eq!(other.run("ZCARD z").to_string(), ":1", "{line}");
        }
        for line in ["MULTI", "GET x"] {
            connection.run(line);
        }
        assert!(connection.run("HSET job state running").to_string().starts_with("-MISCONF"));
        assert!(connection.run("EXEC").to_string().starts_with("-EXECABORT"));
        server.kill();
        disk.make_room();
        let server = disk.home.start(&[]);
        assert_eq!(server.connect().run("HGETALL job").to_string(), "[\"state\", \"pending\", \"n\", \"1\"]");
    }
}
