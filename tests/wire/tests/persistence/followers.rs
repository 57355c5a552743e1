//! A second process that follows a data directory: it has what the writer has, writes nothing, and takes over.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use wire::{Connection, Reply, Server};

use crate::faults::SmallDisk;
use crate::support::{Home, eventually, furnish, info, ok, position, role, same_digest};

const READ_ONLY: &str = "-READONLY You can't write against a read only replica.";

impl Home {
    /// Starts a follower of the server that writes here.
    fn follow(&self, args: &[&str]) -> Server {
        let data = self.data().to_str().expect("a plain path").to_owned();
        let args: Vec<&str> = ["--follow", &data].into_iter().chain(args.iter().copied()).collect();
        self.start(&args)
    }
}

/// A line of INFO.
fn said(connection: &mut Connection, name: &str) -> String {
    info(connection, name)
}

const DEBUG: &[&str] = &["--enable-debug-command", "yes"];

/// A writer and its follower.
fn pair() -> Option<(Home, Server, Server)> {
    let (home, writer) = Home::serve(DEBUG)?;
    let follower = home.follow(DEBUG);
    Some((home, writer, follower))
}

#[test]
fn a_follower_has_what_the_writer_has_and_writes_nothing() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(DEBUG);
    let mut at_writer = writer.connect();
    furnish(&mut at_writer, true);
    ok(&mut at_writer, "SET before 1");
    let before: Vec<String> = home.files().into_keys().collect();
    let follower = home.follow(DEBUG);
    let mut at_follower = follower.connect();
    same_digest(&mut at_writer, &mut at_follower);
    assert_eq!(at_follower.run("GET before").text(), "1");
    assert_eq!(home.files().into_keys().collect::<Vec<_>>(), before, "a follower makes no file");
    // What comes later, and what replaces the journal.
    ok(&mut at_writer, "SET after 2");
    eventually("the follower has the change", || at_follower.run("GET after") == Reply::Bulk(b"2".to_vec()));
    for command in ["FUNCTION FLUSH", "SAVE", "SET later 3", "BGREWRITEAOF", "FLUSHDB", "SET last 4"] {
        let reply = at_writer.run(command);
        assert!(!reply.is_error(), "{command}: {reply}");
        same_digest(&mut at_writer, &mut at_follower);
    }
    for refused in [
        "SET x 1",
        "DEL last",
        "BLPOP list 0",
        "FLUSHALL",
        "FUNCTION FLUSH",
        "CELL.SET c 1",
        "CLIENT DURABILITY always",
        "EVAL \"return redis.call('SET', 'x', 1)\" 0",
    ] {
        let reply = at_follower.run(refused).to_string();
        assert!(reply.starts_with("-READONLY "), "{refused}: {reply}");
    }
    at_follower.run("MULTI");
    assert_eq!(at_follower.run("SET x 1").to_string(), READ_ONLY);
    assert!(at_follower.run("EXEC").to_string().starts_with("-EXECABORT"));
    for refused in ["SAVE", "BGSAVE", "BGSAVE SCHEDULE", "BGREWRITEAOF"] {
        let reply = at_follower.run(refused).to_string();
        assert!(reply.starts_with("-ERR a follower writes no snapshots"), "{refused}: {reply}");
    }
}

#[test]
fn both_sides_tell_of_each_other() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(&[]);
    let mut at_writer = writer.connect();
    ok(&mut at_writer, "SET a 1");
    let follower = home.follow(&[]);
    let mut at_follower = follower.connect();
    let ports = (writer.address().port(), follower.address().port());
    eventually("the writer knows of it", || said(&mut at_writer, "connected_slaves") == "1");
    assert_eq!(at_writer.run("WAIT 1 0").integer(), 1);
    assert_eq!(at_writer.run("WAIT 2 20").integer(), 1);
    assert_eq!(at_writer.run("WAITAOF 1 1 0").to_string(), "[:1, :1]");
    let line = said(&mut at_writer, "slave0");
    assert!(line.starts_with(&format!("ip=127.0.0.1,port={},state=online,offset=", ports.1)), "{line}");
    let at = position(&mut at_writer).to_string();
    eventually("it has said how far it is", || {
        let role = at_writer.run("ROLE");
        let followers = role.items()[2].items();
        followers[0].items().iter().map(Reply::text).eq(["127.0.0.1", &ports.1.to_string(), &at])
    });
    eventually("the link is up", || said(&mut at_follower, "master_link_status") == "up");
    for (name, value) in [
        ("role", "slave"),
        ("master_port", &ports.0.to_string()),
        ("slave_repl_offset", &at),
        ("lag_batches", "0"),
        ("lag_ms", "0"),
    ] {
        eventually(name, || said(&mut at_follower, name) == value);
    }
    let role = at_follower.run("ROLE");
    assert_eq!(
        (role.items()[0].text(), role.items()[2].integer(), role.items()[3].text()),
        ("slave", ports.0.into(), "connected")
    );
    for (connection, role) in [(&mut at_writer, "master"), (&mut at_follower, "replica")] {
        let hello = connection.run("HELLO");
        let at = hello.items().iter().position(|item| matches!(item, Reply::Bulk(_)) && item.text() == "role");
        assert_eq!(hello.items()[at.unwrap() + 1].text(), role);
    }
    assert!(at_follower.run("WAIT 0 0").to_string().starts_with("-ERR WAIT cannot be used with replica instances"));
    assert_eq!(at_follower.run("FAILOVER").to_string(), "-ERR FAILOVER is not valid when server is a replica.");
    assert_eq!(
        at_writer.run("FAILOVER TO 127.0.0.1 1").to_string(),
        "-ERR FAILOVER target HOST and PORT is not a replica."
    );
    assert_eq!(at_writer.run("FAILOVER ABORT").to_string(), "-ERR No failover in progress.");
    // As servers, not as clients.
    let listed =
        |connection: &mut Connection, kind: &str| connection.run(&format!("CLIENT LIST TYPE {kind}")).text().to_owned();
    let (replica, primary) = (listed(&mut at_writer, "replica"), listed(&mut at_follower, "master"));
    for (line, port, flag) in [(&replica, ports.1, 'S'), (&primary, ports.0, 'M')] {
        assert!(
            line.contains(&format!(" addr=127.0.0.1:{port} ")) && line.contains(&format!(" flags={flag} ")),
            "{line}"
        );
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    assert_eq!(
        (said(&mut at_writer, "connected_clients"), said(&mut at_follower, "connected_clients")),
        ("1".into(), "1".into())
    );
    // The follower connects again.
    assert_eq!(at_writer.run("CLIENT KILL TYPE replica").integer(), 1);
    eventually("it is back", || {
        let again = listed(&mut at_writer, "replica");
        again.contains(" flags=S ") && again != replica
    });
    // A writer that wants one gets one.
    eventually("it has said how far it is", || at_writer.run("WAIT 1 1").integer() == 1);
    ok(&mut at_writer, "CONFIG SET min-replicas-to-write 1");
    ok(&mut at_writer, "SET b 1");
    follower.kill();
    eventually("the writer knows that it is gone", || said(&mut at_writer, "connected_slaves") == "0");
    assert_eq!(at_writer.run("SET b 2").to_string(), "-NOREPLICAS Not enough good replicas to write.");
}

/// A log has a URL, for the one that writes it and for the one that follows. There is nothing that a follower would save.
#[test]
fn a_log_is_named_by_its_url() {
    let Some(home) = Home::fresh() else { return };
    let elsewhere = home.data().join("else where");
    let url = format!("file:{}", elsewhere.display());
    let writer = home.start(&["--log", &url]);
    let mut at_writer = writer.connect();
    ok(&mut at_writer, "SET a 1");
    assert_eq!(at_writer.run("CONFIG GET dir").items()[1].text(), elsewhere.to_str().expect("a plain path"));
    assert!(std::fs::read_dir(&elsewhere).expect("it was made").count() > 2);
    let mut follower = home.start(&["--follow", &url]);
    let mut at_follower = follower.connect();
    eventually("it follows", || at_follower.run("GET a") == Reply::Bulk(b"1".to_vec()));
    at_follower.queue_line("SHUTDOWN SAVE");
    at_follower.flush();
    assert_eq!(follower.wait_for_end().code(), Some(0));
    for wrong in ["redis://localhost/orders", "memory:", "file:"] {
        let refused =
            Command::new(wire::binary()).args(["--log", wrong, "--port", "0"]).output().expect("it can be run");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("file:DIR"), "{wrong}: {said}");
    }
}

/// An abort may come before, while, or after the follower takes over. Whichever it is, one server writes in the end, and
/// nothing that was acknowledged is lost.
#[test]
fn an_aborted_failover_leaves_one_writer() {
    let Some(home) = Home::fresh() else { return };
    let (mut writer, mut follower) = (home.start(DEBUG), home.follow(DEBUG));
    for round in 0..12 {
        let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
        eventually("the writer knows of it", || said(&mut at_writer, "connected_slaves") == "1");
        ok(&mut at_writer, &format!("SET round {round}"));
        // In every other round the follower cannot be in time.
        let is_stopped = round % 2 == 1;
        if is_stopped {
            follower.signal("STOP");
        }
        ok(&mut at_writer, "FAILOVER");
        if !is_stopped {
            std::thread::sleep(std::time::Duration::from_millis(round * round / 3));
        }
        let reply = at_writer.run("FAILOVER ABORT").to_string();
        if is_stopped {
            assert_eq!(reply, "+OK");
            follower.signal("CONT");
        }
        let was_late = ["-ERR No failover in progress.", "-ERR FAILOVER is not valid when server is a replica."];
        assert!(reply == "+OK" || was_late.contains(&reply.as_str()), "{reply}");
        eventually("one writes, and the other follows", || {
            (role(&mut at_writer) == "master") != (role(&mut at_follower) == "master")
        });
        // It stays so.
        std::thread::sleep(std::time::Duration::from_millis(50));
        let now = (role(&mut at_writer), role(&mut at_follower));
        assert!(reply != "+OK" || now.0 == "master", "it has taken over although it was told not to");
        if reply != "+OK" {
            eventually("the follower writes", || role(&mut at_follower) == "master");
            std::mem::swap(&mut writer, &mut follower);
            std::mem::swap(&mut at_writer, &mut at_follower);
        }
        assert_eq!(at_writer.run("GET round").text(), round.to_string());
        ok(&mut at_writer, &format!("SET after {round}"));
        same_digest(&mut at_writer, &mut at_follower);
    }
}

#[test]
fn a_follower_takes_over_from_a_dead_writer() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(DEBUG);
    let mut at_writer = writer.connect();
    furnish(&mut at_writer, true);
    let follower = home.follow(DEBUG);
    let mut at_follower = follower.connect();
    for number in 0..1000 {
        at_writer.queue_line(&format!("SET last {number}"));
    }
    at_writer.flush();
    (0..1000).for_each(|_| assert_eq!(at_writer.read(), Reply::Simple(b"OK".to_vec())));
    writer.kill();
    ok(&mut at_follower, "REPLICAOF NO ONE");
    assert_eq!(at_follower.run("GET last").text(), "999");
    assert_eq!(role(&mut at_follower), "master");
    ok(&mut at_follower, "SET new 1");
    ok(&mut at_follower, "REPLICAOF NO ONE");
    // The directory is in use: an ordinary start is refused, a follower is not.
    let refused = home.fail_to_start(&[]);
    assert!(refused.contains(&format!("is in use by process {}", follower.process_id())), "{refused}");
    let next = home.follow(DEBUG);
    let digest = same_digest(&mut at_follower, &mut next.connect());
    ok(&mut at_follower, "SAVE");
    follower.kill();
    drop(next);
    let again = home.start(DEBUG);
    assert_eq!(again.connect().run("DEBUG DIGEST").to_string(), digest);
}

#[test]
fn a_writer_hands_over_and_its_clients_stay() {
    let Some(home) = Home::fresh() else { return };
    let (mut writer, mut follower) = (home.start(DEBUG), home.follow(DEBUG));
    let mut blocked = writer.connect();
    let mut subscribed = writer.connect();
    for round in 0..4 {
        let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
        ok(&mut at_writer, &format!("SET round {round}"));
        if round == 0 {
            blocked.queue_line("BLPOP list 0");
            blocked.flush();
            subscribed.run("SUBSCRIBE channel");
            eventually("it is blocked", || said(&mut at_writer, "blocked_clients") == "1");
        }
        match round % 2 {
            0 => ok(&mut at_follower, "REPLICAOF NO ONE"),
            _ => {
                eventually("the writer knows of it", || said(&mut at_writer, "connected_slaves") == "1");
                ok(&mut at_writer, "FAILOVER");
                eventually("it has taken over", || role(&mut at_follower) == "master");
            }
        }
        assert_eq!(at_follower.run("GET round").text(), round.to_string());
        // The same connection: it is told where writes belong.
        eventually("the old writer follows", || role(&mut at_writer) == "slave");
        assert_eq!(at_writer.run("SET round x").to_string(), READ_ONLY);
        assert_eq!(at_writer.run("GET round").text(), round.to_string());
        if round == 0 {
            let reply = blocked.read().to_string();
            assert!(reply.starts_with("-UNBLOCKED force unblock from blocking operation"), "{reply}");
        }
        ok(&mut at_follower, &format!("SET by {round}"));
        same_digest(&mut at_follower, &mut at_writer);
        std::mem::swap(&mut writer, &mut follower);
    }
    assert_eq!(subscribed.run("PING").items().len(), 2, "a subscriber is still there");
}

/// The writer does not answer: it is fenced, and follows when it wakes.
#[test]
fn a_stopped_writer_is_fenced_and_follows_when_it_wakes() {
    for policy in ["everysec", "always", "no"] {
        let Some(home) = Home::fresh() else { return };
        let args = &["--enable-debug-command", "yes", "--appendfsync", policy];
        let writer = home.start(args);
        let follower = home.follow(args);
        let (mut at_writer, mut at_follower, mut waiting) = (writer.connect(), follower.connect(), writer.connect());
        ok(&mut at_writer, "SET a 1");
        ok(&mut waiting, "SET b 1");
        writer.signal("STOP");
        // It is written, or not: nobody may be told that it is.
        at_writer.queue_line("SET lost 1");
        at_writer.queue_line("GET a");
        at_writer.flush();
        ok(&mut at_follower, "REPLICAOF NO ONE");
        ok(&mut at_follower, "SET a 2");
        writer.signal("CONT");
        let replies = [at_writer.read().to_string(), at_writer.read().to_string()];
        assert!(replies[0].starts_with("-FENCED ") || replies[0].starts_with('('), "{policy}: {replies:?}");
        assert!(
            waiting.run("GET b").to_string().starts_with("-FENCED ") || waiting.read() == Reply::Closed,
            "{policy}"
        );
        eventually("it follows", || role(&mut writer.connect()) == "slave");
        let mut at_old = writer.connect();
        eventually("it has loaded", || at_old.run("GET a") == Reply::Bulk(b"2".to_vec()));
        same_digest(&mut at_follower, &mut at_old);
        assert!(at_old.run("GET lost").is_nil(), "{policy}");
        assert_eq!(at_old.run("SET a 3").to_string(), READ_ONLY, "{policy}");
        // And back.
        ok(&mut at_old, "REPLICAOF NO ONE");
        ok(&mut at_old, "SET a 4");
        same_digest(&mut at_old, &mut at_follower);
    }
}

#[test]
fn a_follower_may_be_there_first() {
    let Some(home) = Home::fresh() else { return };
    std::fs::create_dir_all(home.data()).expect("cannot make a directory");
    let follower = home.follow(&[]);
    let mut at_follower = follower.connect();
    assert_eq!(role(&mut at_follower), "slave");
    assert_eq!(at_follower.run("DBSIZE").integer(), 0);
    let writer = home.start(&[]);
    ok(&mut writer.connect(), "SET a 1");
    eventually("it follows", || at_follower.run("GET a") == Reply::Bulk(b"1".to_vec()));
    // The writer restarts; its follower goes on.
    drop(writer);
    let writer = home.start(&[]);
    ok(&mut writer.connect(), "SET a 2");
    eventually("it follows the next writer", || at_follower.run("GET a") == Reply::Bulk(b"2".to_vec()));
}

/// Claims, sessions, runs, cells and waits behave as over a restart.
#[test]
fn each_family_goes_on_after_a_promotion() {
    let Some((_home, writer, follower)) = pair() else { return };
    let mut at_writer = writer.connect();
    for line in [
        "CELL.SET cell one",
        "CELL.SET cell two",
        "RUN.APPEND run 1 started {}",
        "REG.PUT registers/a 1 value",
        "HSET job state waiting updated_at 5",
        "XADD stream 1-1 a 1",
        "XGROUP CREATE stream group 0",
        "XREADGROUP GROUP group me STREAMS stream >",
        "SET expires soon PX 100",
    ] {
        let reply = at_writer.run(line);
        assert!(!reply.is_error(), "{line}: {reply}");
    }
    let mut at_follower = follower.connect();
    same_digest(&mut at_writer, &mut at_follower);
    writer.kill();
    ok(&mut at_follower, "REPLICAOF NO ONE");
    assert!(at_follower.run("CELL.GET cell").to_string().contains("two"));
    let pending = at_follower.run("XPENDING stream group");
    assert_eq!(pending.items()[0].integer(), 1, "{pending}");
    // What the writer would have removed, this one removes.
    eventually("it expires", || at_follower.run("EXISTS expires").integer() == 0);
    eventually("it is removed, not only hidden", || said(&mut at_follower, "expired_keys") == "1");
}

/// What a writer without a journal has acknowledged is in no log. It is not fenced while it says so, and followers do not
/// count.
#[test]
fn a_writer_without_a_journal_is_not_taken_over_from() {
    let Some((_home, writer, follower)) = pair() else { return };
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    ok(&mut at_writer, "SET a 1");
    eventually("the follower has it", || at_writer.run("WAIT 1 5").integer() == 1);
    ok(&mut at_writer, "CONFIG SET appendonly no");
    ok(&mut at_writer, "SET a 2");
    assert_eq!(at_writer.run("WAIT 1 5").integer(), 0);
    ok(&mut at_writer, "CONFIG SET min-replicas-to-write 1");
    assert!(at_writer.run("SET a 3").to_string().starts_with("-NOREPLICAS"));
    let reply = at_follower.run("REPLICAOF NO ONE").to_string();
    assert!(reply.starts_with("-ERR the journal is off"), "{reply}");
    assert_eq!((role(&mut at_writer), role(&mut at_follower)), ("master".to_owned(), "slave".to_owned()));
    assert_eq!(at_writer.run("GET a").text(), "2");
    ok(&mut at_writer, "CONFIG SET min-replicas-to-write 0");
    ok(&mut at_writer, "CONFIG SET appendonly yes");
    // A follower that begins anew, because the journal does, closes its connections.
    eventually("it takes over", || {
        at_follower = follower.connect();
        at_follower.run("REPLICAOF NO ONE").to_string() == "+OK"
    });
    assert_eq!(at_follower.run("GET a").text(), "2");
}

/// A session that is renewed at the writer lives, although the server that wrote before hears nothing of it.
#[test]
fn a_session_outlives_a_hand_over_and_back() {
    let Some(home) = Home::fresh() else { return };
    let (one, other) = (home.start(DEBUG), home.follow(DEBUG));
    let (mut at_one, mut at_other) = (one.connect(), other.connect());
    at_one.run("SESSION.OPEN ID s TTL 400");
    ok(&mut at_other, "REPLICAOF NO ONE");
    for _ in 0..12 {
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(at_other.run("SESSION.ALIVE s").integer(), 1);
    }
    assert_eq!(at_one.run("EXISTS s").integer(), 1);
    same_digest(&mut at_other, &mut at_one);
    ok(&mut at_one, "REPLICAOF NO ONE");
    assert_eq!(at_one.run("SESSION.CALL s 1 LOW 1 INCR n").integer(), 1);
    eventually("without renewal it ends", || {
        at_one.run("SESSION.ALIVE none").integer() == 0 && {
            std::thread::sleep(std::time::Duration::from_millis(50));
            at_one.run("EXISTS s").integer() == 0
        }
    });
}

#[test]
fn who_waits_for_followers_is_told_of_a_hand_over() {
    let Some((_home, writer, follower)) = pair() else { return };
    let mut waiting = [writer.connect(), writer.connect()];
    let mut at_follower = follower.connect();
    for (connection, line) in waiting.iter_mut().zip(["WAIT 2 0", "WAITAOF 1 2 0"]) {
        ok(connection, "SET a 1");
        connection.queue_line(line);
        connection.flush();
    }
    eventually("both wait", || said(&mut writer.connect(), "blocked_clients") == "2");
    ok(&mut at_follower, "REPLICAOF NO ONE");
    for connection in &mut waiting {
        let reply = connection.read().to_string();
        assert!(reply.starts_with("-UNBLOCKED force unblock from blocking operation"), "{reply}");
    }
}

/// A directory that is gone for a while: clients get an error, not silence, and the follower goes on when it is back.
#[test]
fn a_follower_whose_directory_is_gone_says_so() {
    let Some((home, writer, follower)) = pair() else { return };
    let (data, aside) = (home.data(), home.data().with_file_name("aside"));
    ok(&mut writer.connect(), "SET a 1");
    let mut at_follower = follower.connect();
    eventually("it follows", || at_follower.run("GET a") == Reply::Bulk(b"1".to_vec()));
    std::fs::rename(&data, &aside).expect("cannot rename the directory");
    eventually("it is loading", || follower.connect().run("GET a").to_string().starts_with("-LOADING"));
    let reply = follower.connect().run("REPLICAOF NO ONE").to_string();
    assert!(reply.starts_with("-ERR") || reply.starts_with("-LOADING"), "{reply}");
    std::fs::rename(&aside, &data).expect("cannot rename the directory");
    eventually("it follows again", || follower.connect().run("GET a") == Reply::Bulk(b"1".to_vec()));
}

/// A client that sends its last request to the new writer gets the old one's reply; what was pending still is.
#[test]
fn a_session_goes_on_after_a_promotion() {
    let Some((_home, writer, follower)) = pair() else { return };
    let mut at_writer = writer.connect();
    for (line, reply) in [
        ("SESSION.OPEN ID s TTL 600000 CAP 1 kind worker", "\"s\""),
        ("SESSION.CALL s 1 LOW 1 INCRBY n 5", ":5"),
        ("SESSION.CALL s 2 LOW 2 HSET n a b", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SESSION.PUSH s one", ":1"),
        ("SESSION.PUSH s two", ":2"),
        ("SESSION.ACK s 1", ":1"),
    ] {
        assert_eq!(at_writer.run(line).to_string(), reply, "{line}");
    }
    let session = at_writer.run("SESSION.INFO s");
    let mut at_follower = follower.connect();
    same_digest(&mut at_writer, &mut at_follower);
    writer.kill();
    ok(&mut at_follower, "REPLICAOF NO ONE");
    assert_eq!(at_follower.run("SESSION.INFO s"), session);
    for (line, reply) in [
        ("SESSION.CALL s 2 LOW 2 HSET n a b", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SESSION.CALL s 3 LOW 2 INCRBY n 5", ":10"),
        ("SESSION.CALL s 3 LOW 2 INCRBY n 5", ":10"),
        ("SESSION.PUSH s three", ":3"),
        ("SESSION.ACK s 3", ":2"),
    ] {
        assert_eq!(at_follower.run(line).to_string(), reply, "{line}");
    }
    assert!(at_follower.run("SESSION.CALL s 1 LOW 1 INCRBY n 5").to_string().starts_with("-EVICTED"));
}

/// A full disk: whether the log is handed over, taken by force, or taken from a dead writer, what was acknowledged is
/// there, and as soon as there is space somebody can be made to write.
#[test]
fn a_full_disk_loses_nothing_whoever_takes_over() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Way {
        HandOver,
        Stopped,
        Killed,
    }
    for way in [Way::HandOver, Way::Stopped, Way::Killed] {
        let Some(disk) = SmallDisk::mount(8) else { return };
        let home = &disk.home;
        let (mut writer, follower) = (home.start(DEBUG), home.follow(DEBUG));
        let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
        disk.fill();
        let value = "v".repeat(5000);
        let mut acknowledged = 0;
        for number in 0..2000 {
            match at_writer.run(&format!("SET key:{number} {value}")).to_string() {
                reply if reply == "+OK" => acknowledged += 1,
                reply => {
                    assert!(reply.starts_with("-MISCONF "), "{reply}");
                    break;
                }
            }
        }
        match way {
            Way::HandOver => {}
            Way::Stopped => {
                writer.signal("STOP");
            }
            Way::Killed => {
                writer.signal("KILL");
                writer.wait_for_end();
            }
        }
        // There may be enough space for an empty segment, or not.
        let first = at_follower.run("REPLICAOF NO ONE").to_string();
        disk.make_room();
        // A server that begins anew closes its connections.
        eventually("it writes", || {
            at_follower = follower.connect();
            at_follower.run("REPLICAOF NO ONE").to_string() == "+OK" && role(&mut at_follower) == "master"
        });
        if way == Way::Stopped {
            writer.signal("CONT");
        }
        eventually("it has all that was acknowledged", || {
            at_follower.run("DBSIZE").to_string() == format!(":{acknowledged}")
        });
        eventually("it takes writes", || at_follower.run("SET more 1").to_string() == "+OK");
        if way != Way::Killed {
            eventually("the other follows", || role(&mut writer.connect()) == "slave");
            let mut at_old = writer.connect();
            eventually("it has the same", || at_old.run("GET more").to_string() == "\"1\"");
            same_digest(&mut at_follower, &mut at_old);
        }
        drop((writer, follower));
        let again = home.start(DEBUG);
        assert_eq!(again.connect().run("DBSIZE").integer(), acknowledged + 1, "{way:?}: {first}");
    }
}

/// Starts a process that takes the place of the one that writes. Returns it with the line that says where it listens.
fn upgrade(home: &Home, args: &[&str]) -> (Child, String) {
    let mut next = Command::new(wire::binary());
    next.args(["upgrade", "--dir"]).arg(home.data()).args(args).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut next = next.spawn().expect("cannot start the server's binary");
    let mut line = String::new();
    BufReader::new(next.stdout.take().expect("it is piped")).read_line(&mut line).expect("it says where it listens");
    (next, line)
}

/// A new process takes the place of the old one: at the same address, without a refused connection.
#[test]
fn an_upgrade_keeps_the_address_and_the_data() {
    let Some((home, mut server)) = Home::serve(DEBUG) else { return };
    let address = server.address();
    ok(&mut server.connect(), "SET counter 0");
    let stop = AtomicBool::new(false);
    let counted = std::thread::scope(|scope| {
        let counter = scope.spawn(|| {
            let mut counted = 0;
            while !stop.load(Relaxed) {
                // Not refused, ever.
                let mut connection = Connection::open(address).expect("somebody listens");
                while !stop.load(Relaxed) {
                    match connection.run("INCR counter") {
                        Reply::Integer(_) => counted += 1,
                        Reply::Closed => break,
                        other => panic!("{other}"),
                    }
                }
            }
            counted
        });
        for _ in 0..2 {
            let before = server.process_id();
            let (next, line) = upgrade(&home, DEBUG);
            assert!(line.contains(&format!("listens on {address}")), "{line}");
            assert_eq!(server.wait_for_end().code(), Some(0));
            let mut connection = Connection::open(address).expect("somebody listens");
            assert_ne!(info::<u32>(&mut connection, "process_id"), before);
            assert_eq!(role(&mut connection), "master");
            server = Server::adopt(next, address);
        }
        stop.store(true, Relaxed);
        counter.join().expect("each request was answered, or its connection closed")
    });
    let stored: i64 = server.connect().run("GET counter").text().parse().expect("a number");
    // The last request of a connection that was closed may have been executed.
    assert!((counted..=counted + 2).contains(&stored), "{counted} were answered, {stored} are stored");
}

/// Nothing is promised without a journal, but a server that has lost its directory answers nobody.
#[test]
fn a_writer_without_a_journal_is_fenced_too() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(&["--appendonly", "no"]);
    let (mut at_writer, mut at_follower) = (writer.connect(), home.follow(&[]));
    ok(&mut at_writer, "SET a 1");
    writer.signal("STOP");
    ok(&mut at_follower.connect(), "REPLICAOF NO ONE");
    ok(&mut at_follower.connect(), "SET a 2");
    writer.signal("CONT");
    let reply = at_writer.run("GET a");
    assert!(reply == Reply::Closed || reply.to_string().starts_with("-FENCED "), "{reply}");
    eventually("it follows", || role(&mut writer.connect()) == "slave");
    at_follower.signal("TERM");
    assert_eq!(at_follower.wait_for_end().code(), Some(0));
}

/// The old process writes a last snapshot, which a follower has to load from the beginning.
#[test]
fn an_upgrade_without_a_journal_keeps_what_the_last_snapshot_has() {
    let Some((home, mut server)) = Home::serve(&["--appendonly", "no", "--save", "3600 1"]) else { return };
    let address = server.address();
    ok(&mut server.connect(), "SET a 1");
    let (next, line) = upgrade(&home, &["--appendonly", "no"]);
    assert_eq!(server.wait_for_end().code(), Some(0));
    let server = Server::adopt(next, address);
    assert_eq!(server.connect().run("GET a").text(), "1", "{line}");
    ok(&mut server.connect(), "SET a 2");
    assert_eq!(role(&mut server.connect()), "master");
}

/// A read-only transaction stays at its instant while the follower applies batches, and when it is promoted.
#[test]
fn a_follower_reads_cells_at_an_instant() {
    let Some(home) = Home::fresh() else { return };
    let writer = home.start(DEBUG);
    let mut at_writer = writer.connect();
    for line in ["CELL.SET a 1", "CELL.SET b 1", "SAVE"] {
        assert!(!at_writer.run(line).is_error());
    }
    let follower = home.follow(DEBUG);
    let (mut reader, mut other) = (follower.connect(), follower.connect());
    same_digest(&mut at_writer, &mut other);
    let begun = position(&mut other);
    ok(&mut reader, "TXN.BEGIN READONLY");
    for line in ["CELL.SET a 2", "CELL.DEL b", "CELL.SET c 1", "FLUSHALL", "CELL.SET a 7"] {
        assert!(!at_writer.run(line).is_error());
        same_digest(&mut at_writer, &mut other);
        let seen = reader.run("CELL.MGET a b c");
        let values: Vec<String> = seen.items()[..2].iter().map(|cell| cell.items()[0].text().to_owned()).collect();
        assert!(values == ["1", "1"] && seen.items()[2].is_nil(), "after {line}: {seen}");
    }
    writer.kill();
    ok(&mut other, "REPLICAOF NO ONE");
    eventually("the follower writes", || !other.run("CELL.SET a 8").is_error());
    assert_eq!(reader.run("CELL.GET a").text(), "1");
    assert_eq!(reader.run("TXN.COMMIT").integer(), begun);
    assert_eq!(reader.run("CELL.GET a").text(), "8");
}
