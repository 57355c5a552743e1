//! One test for each row of the table in `engine::journal_state`: what a write, a read, WAITAOF, CLIENT DURABILITY, INFO and a stop
//! say in that state.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use wire::{Connection, Random, Reply, Server};

use super::load::Load;
use crate::faults::{Injected, SmallDisk};
use crate::support::{Home, eventually, info, ok};

const POLICIES: [&str; 3] = ["everysec", "always", "no"];
const NO_JOURNAL: &str = "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";
const NOTHING_TO_WRITE_TO: &str = "-ERR there is no journal to write to: CONFIG SET appendonly yes first";

#[track_caller]
fn assert_info(connection: &mut Connection, state: &str, enabled: u8) {
    assert_eq!(info::<String>(connection, "journal_state"), state);
    assert_eq!(info::<u8>(connection, "aof_enabled"), enabled);
}

/// What is said of durability where there is no journal.
#[track_caller]
fn assert_promises_nothing(connection: &mut Connection) {
    assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), NO_JOURNAL);
    assert_eq!(connection.run("WAITAOF 0 0 0").to_string(), "[:0, :0]");
    assert_eq!(connection.run("CLIENT DURABILITY always").to_string(), NOTHING_TO_WRITE_TO);
}

fn start_off(home: &Home, policy: &str) -> Server {
    let more = ["--enable-debug-command", "yes", "--threads", "2"];
    home.start(&[&["--appendonly", "no", "--save", "", "--appendfsync", policy], &more[..]].concat())
}

#[test]
fn off() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        let mut server = start_off(&home, policy);
        let mut connection = server.connect();
        ok(&mut connection, "SET a 1");
        assert_eq!(connection.run("GET a").text(), "1");
        assert_info(&mut connection, "off", 0);
        assert_promises_nothing(&mut connection);
        server.signal("TERM");
        assert_eq!(server.wait_for_end().code(), Some(0), "{policy}");
    }
}

/// Enough keys that the snapshot takes a while.
fn fill(connection: &mut Connection) {
    ok(connection, "DEBUG POPULATE 60000 key 50");
}

/// CONFIG SET appendonly yes, on a connection that waits for the reply.
fn turn_on(server: &Server) -> Connection {
    let mut orderer = server.connect();
    orderer.queue_line("CONFIG SET appendonly yes");
    orderer.flush();
    orderer
}

/// Longer than any test: it ends when strace lets go.
const FOR_NOW: &str = "delay_enter=60000000";

/// Clients are served as without a journal while its first snapshot is written, those that wait for syncs too.
#[test]
fn starting() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        let server = start_off(&home, policy);
        let mut connection = server.connect();
        ok(&mut connection, "SET before 1");
        // The snapshot is written when its directory is synced.
        let Some(injected) = Injected::into(&home, &server, "fsync", FOR_NOW) else { return };
        let mut orderer = turn_on(&server);
        eventually("it starts", || info::<String>(&mut connection, "journal_state") == "starting");
        ok(&mut connection, "SET a 1");
        assert_eq!(connection.run("GET a").text(), "1");
        assert_promises_nothing(&mut connection);
        assert_info(&mut connection, "starting", 0);
        injected.mend();
        assert_eq!(orderer.read().to_string(), "+OK", "{policy}");
        assert_info(&mut connection, "sound", 1);
        let server = home.serve_again(server, &[]);
        assert_eq!(server.connect().run("MGET before a").to_string(), r#"["1", "1"]"#, "{policy}");
    }
}

/// A journal that fails to start before the order is even looked at again is not said to be on.
#[test]
fn a_failed_start_is_never_answered_with_ok() {
    let Some(home) = Home::fresh() else { return };
    let server = start_off(&home, "everysec");
    let mut connection = server.connect();
    ok(&mut connection, "SET a 1");
    let Some(_injected) = Injected::into(&home, &server, "openat", "error=EIO") else { return };
    for round in 0..50 {
        let reply = connection.run("CONFIG SET appendonly yes").to_string();
        assert!(reply.starts_with("-MISCONF "), "round {round}: {reply}");
        ok(&mut connection, "CONFIG SET appendonly no");
    }
}

/// What was answered before and while it starts is kept by the snapshot that it begins with.
#[test]
fn a_stop_while_it_starts_waits_until_it_has() {
    for end in ["TERM", "INT"] {
        let Some(home) = Home::fresh() else { return };
        let mut server = start_off(&home, "everysec");
        let mut connection = server.connect();
        fill(&mut connection);
        let _orderer = turn_on(&server);
        eventually("it starts", || info::<String>(&mut connection, "journal_state") != "off");
        ok(&mut connection, "SET a 1");
        server.signal(end);
        assert_eq!(server.wait_for_end().code(), Some(0), "SIG{end}");
        let server = home.start(&[]);
        assert_eq!(server.connect().run("GET a").text(), "1", "SIG{end}");
        assert_eq!(server.connect().run("DBSIZE").integer(), 60_001, "SIG{end}");
    }
}

/// Turned off and on again while the snapshot is written, in every order: what is said last counts, and every client hears.
#[test]
fn on_and_off_while_the_snapshot_is_written() {
    for (words, state) in [(&["no"][..], "off"), (&["no", "yes"], "sound"), (&["no", "yes", "no"], "off")] {
        let Some(home) = Home::fresh() else { return };
        let server = start_off(&home, "everysec");
        let mut connection = server.connect();
        fill(&mut connection);
        let mut orderers = vec![turn_on(&server)];
        eventually("it starts", || info::<String>(&mut connection, "journal_state") != "off");
        for word in words {
            ok(&mut connection, &format!("SET before:{word} 1"));
            let mut orderer = server.connect();
            match *word {
                "no" => ok(&mut orderer, "CONFIG SET appendonly no"),
                _ => {
                    orderer.queue_line("CONFIG SET appendonly yes");
                    orderer.flush();
                    orderers.push(orderer);
                }
            }
        }
        let told: Vec<String> = orderers.iter_mut().map(|orderer| orderer.read().to_string()).collect();
        for reply in &told {
            assert!(reply == "+OK" || reply.starts_with("-ERR appendonly was turned off"), "{words:?}: {reply}");
        }
        assert_info(&mut connection, state, u8::from(state == "sound"));
        ok(&mut connection, "SET last 1");
        let (_server, mut connection) = home.serve_client_again(server, &[]);
        if state == "sound" {
            assert_eq!(told.last().map(String::as_str), Some("+OK"));
            assert_eq!(connection.run("MGET before:no before:yes last").to_string(), r#"["1", "1", "1"]"#, "{words:?}");
            assert_eq!(connection.run("DBSIZE").integer(), 60_003, "{words:?}");
        }
    }
}

/// Turned off at any moment of a snapshot, the journal grows no more once that has ended.
#[test]
fn turned_off_it_grows_no_more() {
    let Some((home, _server, mut connection)) = Home::serve_client(&["--save", "", "--threads", "2"]) else { return };
    let mut random = Random::from_env();
    for round in 0..40 {
        connection.queue_line("BGREWRITEAOF");
        for number in 0..random.below(60) {
            connection.queue_line(&format!("SET {number} {round}"));
        }
        connection.queue_line("CONFIG SET appendonly no");
        connection.queue_line("ECHO done");
        while connection.read() != Reply::Bulk(b"done".to_vec()) {}
        eventually("the snapshot has ended", || info::<u8>(&mut connection, "aof_rewrite_in_progress") == 0);
        // Until the process looks around once more, what was recorded before may still be written.
        ok(&mut connection, "SET first 1");
        let bytes = || -> u64 {
            let files = home.files();
            files.iter().filter(|(name, _)| name.ends_with(".seg")).map(|(_, bytes)| data_bytes(bytes)).sum()
        };
        let before = bytes();
        for number in 0..20 {
            ok(&mut connection, &format!("SET grows:{number} {}", "v".repeat(500)));
        }
        assert_eq!(bytes(), before, "round {round}");
        ok(&mut connection, "CONFIG SET appendonly yes");
    }
}

/// The length without the zeros at the end.
fn data_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

#[test]
fn start_failed() {
    for policy in POLICIES {
        let Some(disk) = SmallDisk::mount(8) else { return };
        let mut server = start_off(&disk.home, policy);
        let mut connection = server.connect();
        ok(&mut connection, &format!("SET a {}", "v".repeat(100_000)));
        disk.fill();
        let reply = connection.run("CONFIG SET appendonly yes").to_string();
        assert!(reply.starts_with("-MISCONF ") && reply.contains("No space left on device"), "{policy}: {reply}");
        assert_info(&mut connection, "start-failed", 0);
        let reply = connection.run("SET refused 1").to_string();
        assert!(reply.starts_with("-MISCONF "), "{policy}: {reply}");
        assert_eq!(connection.run("EXISTS refused").integer(), 0, "{policy}");
        assert_eq!(connection.run("STRLEN a").integer(), 100_000, "{policy}");
        assert_eq!(connection.run("DBSIZE").integer(), 1, "{policy}");
        assert_promises_nothing(&mut connection);
        // It does not end as if all were well.
        server.signal("TERM");
        eventually("it says why it stays", || disk.home.stderr().contains("The server does not stop"));
        let reply = server.connect().run("SHUTDOWN").to_string();
        assert_eq!(reply, "-ERR Errors trying to SHUTDOWN. Check logs.", "{policy}");
        assert_eq!(connection.run("SHUTDOWN FORCE"), Reply::Closed, "{policy}");
        assert_eq!(server.wait_for_end().code(), Some(1), "{policy}");
    }
}

/// With room again, it starts by itself; or when it is told to, at once.
#[test]
fn start_failed_with_room_again() {
    for by_itself in [true, false] {
        let Some(disk) = SmallDisk::mount(8) else { return };
        let server = start_off(&disk.home, "everysec");
        let mut connection = server.connect();
        ok(&mut connection, "SET a 1");
        disk.fill();
        assert!(connection.run("CONFIG SET appendonly yes").is_error());
        disk.make_room();
        match by_itself {
            true => eventually("it starts", || info::<String>(&mut connection, "journal_state") == "sound"),
            false => ok(&mut connection, "CONFIG SET appendonly yes"),
        }
        ok(&mut connection, "SET b 1");
        let server = disk.home.serve_again(server, &[]);
        assert_eq!(server.connect().run("MGET a b").to_string(), r#"["1", "1"]"#);
    }
}

#[test]
fn sound() {
    for policy in POLICIES {
        let Some((home, mut server, mut connection)) = Home::serve_client(&["--appendfsync", policy]) else { return };
        ok(&mut connection, "SET a 1");
        assert_info(&mut connection, "sound", 1);
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
        ok(&mut connection, "CLIENT DURABILITY always");
        ok(&mut connection, "SET b 1");
        server.signal("TERM");
        assert_eq!(server.wait_for_end().code(), Some(0), "{policy}");
        let server = home.start(&[]);
        assert_eq!(server.connect().run("MGET a b").to_string(), r#"["1", "1"]"#);
    }
}

#[test]
fn sound_without_room() {
    for policy in POLICIES {
        let Some(disk) = SmallDisk::mount(8) else { return };
        let mut server = disk.home.start(&["--appendfsync", policy]);
        let mut connection = server.connect();
        disk.fill();
        let value = "v".repeat(5000);
        let mut keys = 0;
        eventually("there is no room", || {
            let reply = connection.run(&format!("SET key:{keys} {value}")).to_string();
            keys += i64::from(reply == "+OK");
            reply.starts_with("-MISCONF ")
        });
        assert_info(&mut connection, "sound", 1);
        assert_eq!(info::<u8>(&mut connection, "journal_has_room"), 0);
        assert_eq!(connection.run("DBSIZE").integer(), keys, "{policy}");
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]", "{policy}");
        ok(&mut connection, "CLIENT DURABILITY always");
        server.signal("TERM");
        assert_eq!(server.wait_for_end().code(), Some(0), "{policy}");
        disk.make_room();
        let server = disk.home.start(&[]);
        assert_eq!(server.connect().run("DBSIZE").integer(), keys, "{policy}");
    }
}

/// Failed: what was kept is shown, what was not is not, and INFO is there for the operator.
#[test]
fn failed() {
    for (policy, call) in [("everysec", "pwrite64"), ("always", "fdatasync"), ("no", "pwrite64")] {
        let Some((home, mut server)) = Home::serve(&["--appendfsync", policy]) else { return };
        let (mut connection, mut other) = (server.connect(), server.connect());
        ok(&mut connection, "MSET kept 1 kept2 1 kept3 1 kept4 1");
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
        let Some(injected) = Injected::into(&home, &server, call, "error=EIO") else { return };
        let reply = other.run("SET lost 1").to_string();
        assert!(reply.starts_with("-MISCONF "), "{policy}: {reply}");
        assert_eq!(other.read(), Reply::Closed, "{policy}: nobody knows what became of it");
        eventually("it is noticed", || info::<String>(&mut connection, "journal_state") == "failed");
        assert_info(&mut connection, "failed", 1);
        for line in ["SET refused 1", "GET lost", "CLIENT DURABILITY always", "CONFIG SET appendonly yes"] {
            let reply = connection.run(line).to_string();
            assert!(reply.starts_with("-MISCONF "), "{policy}, {line}: {reply}");
        }
        // One of them may lie beside what was lost, and is hidden with it.
        let mut is_shown = |name: &str| connection.run(&format!("GET {name}")).to_string() == "\"1\"";
        assert!(["kept", "kept2", "kept3", "kept4"].into_iter().any(&mut is_shown), "{policy}");
        // What this client wrote is durable.
        assert_eq!(connection.run("WAITAOF 1 0 0").to_string(), "[:1, :0]", "{policy}");
        injected.mend();
        server.signal("TERM");
        assert_eq!(server.wait_for_end().code(), Some(1), "{policy}");
        let server = home.start(&[]);
        assert_eq!(server.connect().run("MGET kept refused").to_string(), r#"["1", (nil)]"#, "{policy}");
    }
}

/// A client that waits for the disk does not wait for ever when the journal is turned off. Redis says the same.
#[test]
fn waitaof_ends_when_the_journal_is_turned_off() {
    let Some((home, server)) = Home::serve(&["--appendfsync", "no"]) else { return };
    let (mut connection, mut waiting) = (server.connect(), server.connect());
    let Some(injected) = Injected::into(&home, &server, "fdatasync", FOR_NOW) else { return };
    ok(&mut waiting, "SET a 1");
    waiting.queue_line("WAITAOF 1 0 0");
    waiting.flush();
    eventually("it waits", || info::<u64>(&mut connection, "blocked_clients") == 1);
    ok(&mut connection, "CONFIG SET appendonly no");
    assert_eq!(waiting.read().to_string(), NO_JOURNAL);
    assert_eq!(waiting.run("PING").to_string(), "+PONG");
    drop(injected);
}

/// Closing: nothing is answered that is not kept, however suddenly the server stops.
#[test]
fn closing() {
    let mut random = Random::from_env();
    for round in 0..9 {
        let policy = POLICIES[round % 3];
        let Some((home, mut server)) =
            Home::serve(&["--appendfsync", policy, "--shutdown-timeout", "0", "--threads", "2"])
        else {
            return;
        };
        let load = Load::start(&server, round, &mut random);
        load.flow(20 + random.below(60) as u64);
        load.end_is_near();
        match random.below(3) {
            0 => server.signal("TERM"),
            1 => server.signal("INT"),
            _ => assert_eq!(server.connect().run("SHUTDOWN NOW"), Reply::Closed),
        }
        assert_eq!(server.wait_for_end().code(), Some(0), "{policy}");
        let ledger = load.finish(Some(u64::MAX), format!("round {round}, {policy}"));
        let server = home.start(&[]);
        ledger.verify(&mut server.connect());
    }
}

/// CONFIG SET appendonly yes is answered when a kill loses nothing, in whatever state it was said.
#[test]
fn on_is_said_when_a_kill_loses_nothing() {
    for policy in POLICIES {
        let Some(home) = Home::fresh() else { return };
        let server = start_off(&home, policy);
        let is_over = AtomicBool::new(false);
        let answered = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut writer = server.connect();
                let mut answered = 0;
                while !is_over.load(Relaxed) && writer.run("INCR counter").integer() > 0 {
                    answered += 1;
                }
                answered
            });
            let mut connection = server.connect();
            eventually("it counts", || !connection.run("GET counter").is_nil());
            ok(&mut connection, "CONFIG SET appendonly yes");
            is_over.store(true, Relaxed);
            writer.join().expect("the writer failed")
        });
        let server = home.serve_again(server, &[]);
        assert_eq!(server.connect().run("GET counter").text(), answered.to_string(), "{policy}");
    }
}
