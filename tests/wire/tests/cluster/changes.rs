//! The writer changes: because it is asked to, because it stops, and because it is gone. Clients that wait are told.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use wire::{Connection, Reply};

use crate::nats::{Nats, role, same_digest};
use crate::process::{eventually, info, ok};
use crate::support::furnish;

const READ_ONLY: &str = "-READONLY You can't write against a read only replica.";

/// FAILOVER on the writer, and REPLICAOF NO ONE on the follower, in turns.
#[test]
fn a_writer_hands_over_and_its_clients_stay() {
    let Some((nats, mut writer, mut follower)) = Nats::with_pair() else { return };
    let mut blocked = writer.connect();
    let mut subscribed = writer.connect();
    for round in 0..4 {
        let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
        ok(&mut at_writer, &format!("SET round {round}"));
        if round == 0 {
            blocked.queue_line("BLPOP list 0");
            blocked.flush();
            subscribed.run("SUBSCRIBE channel");
            eventually("it is blocked", || info::<u64>(&mut at_writer, "blocked_clients") == 1);
        }
        // A transaction that was begun before: it is refused as a whole, or happens as a whole.
        let mut in_transaction = writer.connect();
        in_transaction.run("MULTI");
        in_transaction.run(&format!("SET left {round}"));
        in_transaction.run(&format!("SET right {round}"));
        match round % 2 {
            0 => ok(&mut at_follower, "REPLICAOF NO ONE"),
            _ => {
                ok(&mut at_writer, "FAILOVER");
                eventually("it has taken over", || role(&mut at_follower) == "master");
            }
        }
        assert_eq!(at_follower.run("GET round").text(), round.to_string());
        eventually("the old writer follows", || role(&mut at_writer) == "slave");
        assert_eq!(at_writer.run("SET round x").to_string(), READ_ONLY);
        assert_eq!(
            at_writer.run("EVAL \"return redis.call('SET', 'round', 'x')\" 0").to_string().split(' ').next(),
            Some("-READONLY")
        );
        let executed = in_transaction.run("EXEC").to_string();
        assert!(executed.starts_with("-EXECABORT") || executed.starts_with("-READONLY"), "{executed}");
        if round == 0 {
            let reply = blocked.read().to_string();
            assert!(reply.starts_with("-UNBLOCKED force unblock from blocking operation"), "{reply}");
        }
        ok(&mut at_follower, &format!("SET by {round}"));
        same_digest(&mut at_follower, &mut at_writer);
        assert_eq!(at_writer.run("GET round").text(), round.to_string());
        assert!(at_follower.run("EXISTS left right").integer() == 0, "nothing of it has happened");
        let epoch: u32 = info(&mut at_follower, "epoch");
        assert_eq!(epoch, round + 2, "each change is an epoch");
        std::mem::swap(&mut writer, &mut follower);
        let (mut at_writer, port) = (writer.connect(), follower.address().port().to_string());
        eventually("the new writer knows of the old one", || at_writer.run("ROLE").to_string().contains(&port));
    }
    assert_eq!(subscribed.run("PING").items().len(), 2, "a subscriber is still there");
    // Each was handed over in the log: nobody had to wait for a lease to end.
    let kinds = nats.kinds().replace('.', "");
    assert_eq!(kinds, "erererere");
}

/// While load goes on: what was acknowledged is there, what was refused is not.
#[test]
fn nothing_acknowledged_is_lost_in_hand_overs_under_load() {
    let Some((_nats, writer, follower)) = Nats::with_pair() else { return };
    let mut acknowledged = 0;
    for round in 0..6 {
        let (from, to) = if round % 2 == 0 { (&writer, &follower) } else { (&follower, &writer) };
        let mut load = from.connect();
        for _ in 0..500 {
            load.queue_line("EVAL \"redis.call('INCR', 'left') return redis.call('INCR', 'right')\" 0");
        }
        load.flush();
        let mut at_follower = to.connect();
        ok(&mut at_follower, "REPLICAOF NO ONE");
        let mut unknown = 500;
        while unknown > 0 {
            match load.read_until_killed() {
                Reply::Integer(count) => acknowledged = acknowledged.max(count),
                Reply::Closed => break,
                error => assert!(error.to_string().starts_with("-READONLY"), "{error}"),
            }
            unknown -= 1;
        }
        let (left, right) = (at_follower.run("GET left"), at_follower.run("GET right"));
        assert_eq!(left, right, "a script is one batch");
        let found: i64 = if left.is_nil() { 0 } else { left.text().parse().expect("a count") };
        assert!((acknowledged..=acknowledged + unknown).contains(&found), "{found}, not {acknowledged} (+ {unknown})");
        acknowledged = found;
        let port = from.address().port().to_string();
        eventually("the new writer knows of the old one", || at_follower.run("ROLE").to_string().contains(&port));
    }
    same_digest(&mut writer.connect(), &mut follower.connect());
}

/// SHUTDOWN and SIGTERM release the log: the last frame of the writer says so, and the follower's epoch comes right behind it.
#[test]
fn a_writer_that_stops_hands_over() {
    for by_signal in [false, true] {
        let Some((nats, mut writer, follower)) = Nats::with_pair() else { return };
        let mut blocked = writer.connect();
        blocked.queue_line("BLPOP list 0");
        blocked.flush();
        eventually("it is blocked", || info::<u64>(&mut writer.connect(), "blocked_clients") == 1);
        ok(&mut writer.connect(), "SET a 1");
        match by_signal {
            true => writer.signal("TERM"),
            false => assert_eq!(writer.connect().run("SHUTDOWN"), Reply::Closed),
        }
        assert_eq!(writer.wait_for_end().code(), Some(0));
        let told = blocked.read();
        assert!(told == Reply::Closed || told.to_string().starts_with("-UNBLOCKED"), "{told}");
        let mut at_follower = follower.connect();
        eventually("the follower writes", || role(&mut at_follower) == "master");
        assert_eq!(at_follower.run("GET a").text(), "1");
        ok(&mut at_follower, "SET a 2");
        let kinds = nats.kinds();
        assert!(kinds.contains("re") && kinds.matches('e').count() == 2, "{kinds}");
    }
}

#[test]
fn a_follower_takes_over_from_a_dead_writer_and_a_restart_finds_everything() {
    let Some((nats, writer, mut at_writer)) = Nats::with_writer() else { return };
    furnish(&mut at_writer, true);
    let follower = nats.follower(&writer, &[]);
    let mut at_follower = follower.connect();
    for number in 0..500 {
        at_writer.queue_line(&format!("SET last {number}"));
    }
    at_writer.flush();
    (0..500).for_each(|_| assert_eq!(at_writer.read().to_string(), "+OK"));
    drop(writer);
    eventually("the follower writes", || role(&mut at_follower) == "master");
    assert_eq!(at_follower.run("GET last").text(), "499");
    ok(&mut at_follower, "SET new 1");
    let digest = at_follower.run("DEBUG DIGEST").to_string();
    drop(follower);
    let again = nats.writer(&[]);
    assert_eq!(again.connect().run("DEBUG DIGEST").to_string(), digest);
}

/// The writer does not answer for longer than its lease: another writes, and it follows when it wakes. What it had not been
/// told was stored has not happened.
#[test]
fn a_stopped_writer_is_fenced_and_follows_when_it_wakes() {
    let Some((_nats, writer, follower)) = Nats::with_pair() else { return };
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    ok(&mut at_writer, "SET a 1");
    writer.signal("STOP");
    // They are executed when it wakes, by when it has lost the log.
    for _ in 0..3 {
        at_writer.queue_line("INCR a");
    }
    at_writer.flush();
    eventually("the follower writes", || role(&mut at_follower) == "master");
    assert_eq!(at_follower.run("INCR a").integer(), 2);
    writer.signal("CONT");
    let told = read_to_end(&mut at_writer);
    assert!(!told.iter().any(|reply| matches!(reply, Reply::Integer(_))), "{told:?}");
    let mut again = writer.connect();
    eventually("it follows", || {
        Connection::open(writer.address()).is_ok_and(|fresh| {
            again = fresh;
            role(&mut again) == "slave"
        })
    });
    same_digest(&mut at_follower, &mut again);
    assert_eq!(again.run("GET a").text(), "2");
}

/// NATS is gone for a while: writes wait, and go on.
#[test]
fn writes_wait_while_nats_is_gone() {
    let Some((mut nats, _writer, mut at_writer)) = Nats::with_writer() else { return };
    ok(&mut at_writer, "SET a 1");
    nats.restart();
    ok(&mut at_writer, "SET a 2");
    assert_eq!(at_writer.run("GET a").text(), "2");
    assert_eq!(nats.kinds().matches('e').count(), 1, "it is the same writer");
}

/// Regression: the time of the log stands still while nothing can be stored, and a TTL was counted from there.
#[test]
fn a_deadline_that_is_given_while_nats_is_gone_is_counted_from_then() {
    let Some((mut nats, _writer, mut at_writer)) = Nats::with_writer() else { return };
    ok(&mut at_writer, "SET a 1");
    nats.stop();
    // Its lease has ended.
    thread::sleep(Duration::from_secs(4));
    let sent = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_millis() as i64;
    for line in
        ["SET a 2 PX 60000", "MULTI", "SET b 2 PX 60000", "EXEC", "EVAL \"redis.call('SET', 'c', 1, 'PX', 60000)\" 1 c"]
    {
        at_writer.queue_line(line);
    }
    at_writer.flush();
    thread::sleep(Duration::from_secs(1));
    nats.restart();
    (0..5).for_each(|_| assert!(!at_writer.read().is_error()));
    for key in ["a", "b", "c"] {
        let until = at_writer.run(&format!("PEXPIRETIME {key}")).integer();
        assert!(until >= sent + 60_000, "{key} expires {} ms too early", sent + 60_000 - until);
    }
}

/// Regression: the second one waited for a writer that was none any more.
#[test]
fn two_followers_that_are_told_to_take_over_both_do() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.writer(&[]);
    let followers = [nats.follower(&writer, &[]), nats.follower(&writer, &[])];
    let mut connections = followers.each_ref().map(|follower| follower.connect());
    eventually("they know each other", || connections.iter_mut().all(|each| info::<u32>(each, "members") == 3));
    for connection in &mut connections {
        connection.queue_line("REPLICAOF NO ONE");
        connection.flush();
    }
    for connection in &mut connections {
        assert_eq!(connection.read().to_string(), "+OK");
    }
    assert_eq!(nats.kinds().matches('e').count(), 3, "one after the other");
    let writes = |connection: &mut Connection| role(connection) == "master";
    eventually("one writes", || connections.iter_mut().filter_map(|each| writes(each).then_some(())).count() == 1);
    assert_eq!(role(&mut writer.connect()), "slave");
}

/// Only a follower that the writer knows may ask for the log.
#[test]
fn a_stranger_does_not_get_the_log() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.writer(&[]);
    let _follower = nats.follower(&writer, &[]);
    for stranger in ["", "nobody", "\u{7f}", &"x".repeat(10_000)] {
        nats.tell("holdfast.orders.requests", stranger);
    }
    // A hand-over takes a hundredth of it.
    thread::sleep(Duration::from_secs(1));
    let mut at_writer = writer.connect();
    assert_eq!(role(&mut at_writer), "master");
    ok(&mut at_writer, "SET a 1");
    assert_eq!(nats.kinds().matches('e').count(), 1, "it is the same writer");
}

/// NATS has no room: it is said why nothing is stored.
#[test]
fn what_nats_refuses_is_told() {
    let Some(nats) = Nats::start_with("sync_interval: always, max_file_store: 4MB") else { return };
    let writer = nats.writer(&[]);
    let (mut at_writer, value) = (writer.connect(), vec![b'x'; 500_000]);
    for number in 0..20 {
        at_writer.queue(&[b"SET".as_slice(), format!("key:{number}").as_bytes(), &value]);
    }
    at_writer.flush();
    let told =
        |line: &str| line.contains("the log has not stored a frame: it is sent again") && line.contains("insufficient");
    eventually("it is told", || writer.stderr().lines().any(told));
}

fn read_to_end(connection: &mut Connection) -> Vec<Reply> {
    let mut replies = Vec::new();
    loop {
        match connection.read_until_killed() {
            Reply::Closed => return replies,
            reply => replies.push(reply),
        }
    }
}
