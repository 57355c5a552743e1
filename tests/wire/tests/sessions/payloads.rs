//! Sessions that are dumped and restored: whole, under any absent name, with a lifetime that begins anew.

use crate::{info, must, must_all, start};
use wire::{Connection, Reply};

/// A session with capabilities, kept replies of both protocols, dropped ones, and pending requests out of order.
fn furnished(connection: &mut Connection) {
    for line in [
        "SESSION.OPEN ID s TTL 50000 CAP 2 kind worker region eu",
        "SESSION.CALL s 1 LOW 1 SET k v",
        "SESSION.CALL s 2 LOW 2 INCR n",
        "SESSION.CALL s 3 LOW 2 EVAL \"return {1, {'a', false}, {ok='fine'}}\" 0",
        "SESSION.CALL s 5 LOW 2 MGET k nosuch",
        "SESSION.PUSH s one",
        "SESSION.PUSH s two",
        "SESSION.PUSH s three",
        "SESSION.ACK s 1",
    ] {
        must(connection, line);
    }
    // An error is kept, too.
    assert!(connection.run("SESSION.CALL s 4 LOW 2 INCR k").is_error());
    must(connection, "HELLO 3");
    must(connection, "SESSION.CALL s 6 LOW 2 ZADD z INCR 1.5 m");
    must(connection, "SESSION.CALL s 7 LOW 2 HGETALL nosuch");
    must(connection, "HELLO 2");
}

/// What a session answers to retries, and all that is known of it.
fn seen(connection: &mut Connection, sid: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for call in [
        "1 LOW 1 SET k v",
        "2 LOW 2 INCR n",
        "2 LOW 2 INCR other",
        "3 LOW 2 EVAL \"return {1, {'a', false}, {ok='fine'}}\" 0",
        "4 LOW 2 INCR k",
        "5 LOW 2 MGET k nosuch",
        "7 LOW 2 HGETALL nosuch",
    ] {
        seen.push(connection.run(&format!("SESSION.CALL {sid} {call}")).to_string());
    }
    seen.push(connection.run(&format!("SESSION.PENDING {sid}")).to_string());
    for name in ["created_at", "ttl_ms", "low", "replies", "reply_bytes", "pending", "last_id", "capabilities"] {
        seen.push(format!("{name} {}", info(connection, sid, name)));
    }
    seen
}

#[test]
fn a_session_is_restored_whole() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    furnished(&mut connection);
    let expected = seen(&mut connection, "s");
    assert!(expected[0].starts_with("-EVICTED") && expected[1] == ":1" && expected[2].starts_with("-MISMATCH"));
    let payload = must(&mut connection, "DUMP s").bytes().to_vec();
    assert_eq!(connection.run_with("RESTORE t 0", &[&payload]).to_string(), "+OK");
    assert_eq!(seen(&mut connection, "t"), expected);
    must(&mut connection, "DEL s");
    assert_eq!(connection.run_with("RESTORE s 0", &[&payload, b"REPLACE"]).to_string(), "+OK");
    assert_eq!(seen(&mut connection, "s"), expected);
    assert_eq!(must(&mut connection, "DUMP s").bytes(), payload);
    // The next request has the next number, and a new call runs.
    assert_eq!(must(&mut connection, "SESSION.PUSH s four").integer(), 4);
    assert_eq!(must(&mut connection, "SESSION.CALL s 8 LOW 8 INCR n").integer(), 2);
    let ttl = must(&mut connection, "PTTL s").integer();
    assert!((1..=50_000).contains(&ttl), "{ttl}");
    // The session that was dumped is not attached to another client, and goes its own way.
    assert_eq!(must(&mut connection, "SESSION.PUSH t other").integer(), 4);
    assert_eq!(must(&mut connection, "SESSION.CLOSE t").integer(), 1);
    assert_eq!(must(&mut connection, "SESSION.ALIVE s").integer(), 1);
}

#[test]
fn it_is_restored_only_to_an_absent_key_and_with_its_own_ttl() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    furnished(&mut connection);
    let payload = must(&mut connection, "DUMP s").bytes().to_vec();
    let before = must(&mut connection, "DEBUG DIGEST").to_string();
    for (line, more, refusal) in [
        ("RESTORE s 0", None, "-BUSYKEY Target key name already exists."),
        ("RESTORE s 0", Some("REPLACE"), "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("RESTORE t 1000", None, "-ERR a session has its TTL in the payload: send 0 as the ttl"),
        ("RESTORE t 99999999999999", Some("ABSTTL"), "-ERR a session has its TTL in the payload: send 0 as the ttl"),
    ] {
        let mut args: Vec<&[u8]> = vec![&payload];
        args.extend(more.map(str::as_bytes));
        assert_eq!(connection.run_with(line, &args).to_string(), refusal, "{line} {more:?}");
    }
    assert_eq!(must(&mut connection, "DEBUG DIGEST").to_string(), before);
    // In a transaction and from a script as well.
    must(&mut connection, "MULTI");
    connection.run_with("RESTORE t 0", &[&payload]);
    assert_eq!(connection.run("EXEC").to_string(), "[+OK]");
    let script = "EVAL \"return redis.call('RESTORE', KEYS[1], 0, ARGV[1])\" 1 u";
    assert_eq!(connection.run_with(script, &[&payload]).to_string(), "+OK");
    assert_eq!(seen(&mut connection, "t"), seen(&mut connection, "u"));
}

#[test]
fn a_restored_session_expires() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "SESSION.OPEN ID s TTL 150; SESSION.CALL s 1 LOW 1 SET k v");
    let payload = must(&mut connection, "DUMP s").bytes().to_vec();
    session.check("> EXISTS nosuch\n:0\n# eventually\n> EXISTS s\n:0\n");
    assert_eq!(connection.run_with("RESTORE s 0", &[&payload]).to_string(), "+OK");
    assert_eq!(must(&mut connection, "SESSION.CALL s 1 LOW 1 SET k v").to_string(), "+OK");
    session.check("# eventually\n> EXISTS s\n:0\n");
}

/// Bytes are changed and the checksum is corrected. The payload is refused, and nothing has changed; or it is a session.
#[test]
fn a_damaged_payload_is_refused_or_a_session() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), wire::Random::from_env());
    furnished(&mut connection);
    let payload = must(&mut connection, "DUMP s").bytes().to_vec();
    let before = must(&mut connection, "DEBUG DIGEST").to_string();
    let (mut refused, mut restored) = (0, 0);
    for _ in 0..3_000 {
        let mut body = payload[..payload.len() - 10].to_vec();
        for _ in 0..random.below(3) + 1 {
            let at = random.below(body.len());
            match random.below(4) {
                0 => body[at] ^= 1 << random.below(8),
                1 => body[at] = random.below(256) as u8,
                2 => body.insert(at, random.below(256) as u8),
                _ => drop(body.remove(at)),
            }
        }
        body.extend_from_slice(&payload[payload.len() - 10..payload.len() - 8]);
        let checksum = crc64(&body).to_le_bytes();
        body.extend_from_slice(&checksum);
        let reply = connection.run_with("RESTORE t 0", &[&body]);
        if reply.is_error() {
            refused += 1;
            assert_eq!(connection.run("EXISTS t").integer(), 0, "{reply}");
        } else {
            restored += 1;
            if connection.run("TYPE t") == Reply::Simple("session".into()) {
                // Every reply that it has kept is one reply: the connection stays in step.
                for id in 0..9 {
                    connection.run(&format!("SESSION.CALL t {id} LOW 0 INCR n"));
                }
                assert!(!connection.run("SESSION.PENDING t").is_error());
                must_all(&mut connection, "SESSION.INFO t; DUMP t");
                assert_eq!(connection.run("ECHO in-step").to_string(), "\"in-step\"");
            }
            connection.run("DEL t n");
            must_all(&mut connection, "SET n 1; SET k v");
        }
    }
    assert!(refused > 500 && restored > 10, "{refused} refused, {restored} restored");
    assert_eq!(must(&mut connection, "DEBUG DIGEST").to_string(), before);
}

/// Redis's CRC-64, bit by bit.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ u64::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0x95ac_9329_ac4b_c9b5 } else { crc >> 1 },
        )
    })
}
