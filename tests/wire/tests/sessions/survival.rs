//! Sessions survive a kill: replies byte for byte, errors too, LOW, ids, pending requests. Also through a snapshot.

use crate::retry::next_ms;
use crate::{info, must, must_all};
use wire::own::OwnServer;
use wire::{Connection, Random, Reply};

const ARGS: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "yes"];

#[test]
fn replies_are_the_same_after_a_kill() {
    let Some(own) = OwnServer::start(ARGS) else { return };
    let mut connection = own.connect();
    let lines = [
        "INCR n",
        "HSET n a b",
        "GET n",
        "GET nosuch",
        "EVAL \"redis.call('incr', KEYS[1]) return {1, 'a', {2}, {err='MY error'}}\" 1 n",
        "EVAL \"redis.call('incr', KEYS[1]) error('boom')\" 1 n",
        "EVALSHA ffffffffffffffffffffffffffffffffffffffff 0",
        "FCALL compare_and_swap 1 h a b c",
        "HSET h a b c d",
        "HGETALL h",
        "HCAS h a b e",
        "CELL.CAS c NONE v",
        "REG.PUT r 1 v",
        "RUN.APPEND run k t d",
        "CELL.GETV c",
        "SESSION.PUSH s hello",
        "SPOP nosuch",
        "TIME",
    ];
    for (sid, protocol) in [("s", "2"), ("t", "3")] {
        must(&mut connection, &format!("SESSION.OPEN ID {sid} TTL 600000 CAP 1 a b"));
        must(&mut connection, &format!("HELLO {protocol}"));
        for (at, line) in lines.iter().enumerate() {
            connection.run(&format!("SESSION.CALL {sid} {} LOW 1 {line}", at + 1));
        }
    }
    let all = |connection: &mut Connection| {
        let mut replies = Vec::new();
        for (sid, protocol) in [("s", "2"), ("t", "3")] {
            must(connection, &format!("HELLO {protocol}"));
            for (at, line) in lines.iter().enumerate() {
                replies.push(connection.run(&format!("SESSION.CALL {sid} {} LOW 1 {line}", at + 1)));
            }
            replies.push(connection.run(&format!("SESSION.CALL {sid} 1 LOW 1 INCR m")));
            replies.push(connection.run(&format!("SESSION.PENDING {sid}")));
            replies.push(connection.run(&format!("SESSION.INFO {sid}")));
        }
        must(connection, "HELLO 2");
        replies
    };
    let expected = all(&mut connection);
    let n = connection.run("GET n");
    for save in [None, Some("BGREWRITEAOF"), Some("SAVE"), None] {
        if let Some(save) = save {
            must(&mut connection, save);
        }
        own.kill_and_start();
        connection = own.connect();
        assert_eq!(all(&mut connection), expected, "after {save:?}");
        assert_eq!(connection.run("GET n"), n);
    }
    // What was dropped stays dropped.
    must(&mut connection, "SESSION.CALL s 30 LOW 10 PING");
    own.kill_and_start();
    connection = own.connect();
    assert_eq!(info(&mut connection, "s", "low").integer(), 10);
    assert!(connection.run("SESSION.CALL s 1 LOW 1 INCR n").to_string().starts_with("-EVICTED"));
    assert!(connection.run("SESSION.CALL s 9 LOW 1 INCR n").to_string().starts_with("-EVICTED"));
    assert_eq!(connection.run("SESSION.CALL s 10 LOW 1 HGETALL h"), expected[9]);
}

#[test]
fn pending_requests_survive_a_kill() {
    let Some(own) = OwnServer::start(ARGS) else { return };
    let mut connection = own.connect();
    must(&mut connection, "SESSION.OPEN ID s TTL 600000");
    for number in 1..=7 {
        must(&mut connection, &format!("SESSION.PUSH s p{number}"));
    }
    must_all(&mut connection, "SESSION.ACK s 5; SESSION.RETRY 99999999999999 LIMIT 1");
    let mut attached = own.connect();
    must_all(&mut attached, "HELLO 3; SESSION.ATTACH s");
    let expected = connection.run("SESSION.PENDING s");
    assert_eq!(expected.items().len(), 2);
    for save in [false, true] {
        if save {
            must(&mut connection, "SAVE");
        }
        own.kill_and_start();
        connection = own.connect();
        assert_eq!(connection.run("SESSION.PENDING s"), expected);
        assert_eq!(info(&mut connection, "s", "attached").integer(), 0);
    }
    must(&mut connection, "SESSION.ACK s 9");
    own.kill_and_start();
    connection = own.connect();
    // Never again one of the former numbers.
    assert_eq!(connection.run("SESSION.PUSH s p").integer(), 8);
    let retried = connection.run("SESSION.RETRY 99999999999999").to_string();
    assert!(retried.starts_with("[[\"s\", :8, \"p\", :"), "{retried}");
    // A client that comes back gets it.
    must_all(&mut connection, "HELLO 3; SESSION.ATTACH s");
    assert_eq!(connection.read().to_string(), "push[\"session\", \"s\", :8, \"p\"]");
}

/// The journal has the reply in the batch of the effects: whatever was acknowledged is there as a whole, also from snapshots that
/// are made meanwhile.
#[test]
fn random_changes_survive_a_kill() {
    let Some(own) = OwnServer::start(ARGS) else { return };
    let mut random = Random::from_env();
    let mut ids = vec![0u64; 8];
    for round in 0..4 {
        let mut connection = own.connect();
        for _ in 0..40 {
            let lines: Vec<String> = (0..50).map(|_| some_write(&mut random, &mut ids)).collect();
            connection.pipeline(&lines);
            if random.one_in(10) {
                connection.run("BGSAVE");
            }
        }
        let expected = state(&mut connection);
        own.kill_and_start();
        assert_eq!(state(&mut own.connect()), expected, "after kill {round}");
    }
}

fn some_write(random: &mut Random, ids: &mut [u64]) -> String {
    let at = random.below(ids.len());
    let sid = format!("s{at}");
    ids[at] += 1;
    let id = ids[at];
    let low = if random.one_in(4) { id } else { 1 };
    let payload = "p".repeat(random.pick(&[0, 1, 5, 32, 300, 6_000]));
    match random.below(30) {
        0 => format!("SESSION.CLOSE {sid}"),
        1 => format!("DEL {sid}"),
        2..6 => format!("SESSION.OPEN ID {sid} TTL 600000 CAP 2 a b {payload} c"),
        6..12 => format!("SESSION.PUSH {sid} \"{payload}\""),
        12 => format!("SESSION.ACK {sid} {}", random.below(60)),
        13 => format!("SESSION.RETRY 99999999999999 LIMIT {}", random.below(20)),
        14 => format!("SESSION.CALL {sid} {id} LOW {low} GET k{at}"),
        15 => format!("SESSION.CALL {sid} {} LOW 1 INCR n{at}", random.below(id as usize) + 1),
        16 => format!("SESSION.CALL {sid} {id} LOW {low} SESSION.PUSH s{} \"{payload}\"", random.below(8)),
        17 => format!(
            "SESSION.CALL {sid} {id} LOW {low} EVAL \"redis.call('incr', 'n{at}') return redis.call('nosuch')\" 0"
        ),
        18 => format!("SESSION.CALL {sid} {id} LOW {low} SET k{at} \"{payload}\" GET"),
        19 => "SWAPDB 0 1".to_owned(),
        20 => format!("SESSION.CALL {sid} {id} LOW {low} SESSION.CLOSE s{}", random.below(8)),
        _ => format!("SESSION.CALL {sid} {id} LOW {low} INCR n{at}"),
    }
}

/// The signature of everything, and each session, which makes a failure readable.
fn state(connection: &mut Connection) -> Vec<Reply> {
    let mut state = Vec::new();
    for db in [0, 1] {
        must(connection, &format!("SELECT {db}"));
        for number in 0..8 {
            state.push(connection.run(&format!("SESSION.INFO s{number}")));
            state.push(connection.run(&format!("SESSION.PENDING s{number} LIMIT 100000")));
            state.push(connection.run(&format!("GET n{number}")));
        }
        // What a retry has just returned is found again from the next millisecond on.
        next_ms(connection);
        state.push(connection.run("SESSION.HASRETRY 99999999999999"));
        state.push(connection.run("DBSIZE"));
    }
    must(connection, "SELECT 0");
    state.push(connection.run("DEBUG DIGEST"));
    state
}
