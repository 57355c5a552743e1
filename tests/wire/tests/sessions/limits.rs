//! How much a session may keep, and what happens when memory or the journal has no room.

use crate::{check, info, must, start};
use wire::Connection;

/// Kept replies up to the limit; one may pass it, and then LOW has to move.
#[test]
fn kept_replies_have_a_limit() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    session.check(
        r#"
        # config session-cache-max-bytes 1000
        > SET big 0
        +OK
        > SETRANGE big 1999 x
        :2000
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        // Passes the limit.
        > SESSION.CALL s 2 LOW 1 GET big
        *
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :1, "replies", :2, "reply_bytes", :2000.., ...]
        > SESSION.CALL s 3 LOW 1 INCR n
        ~-ERR *
        > GET n
        "1"
        // Retries work, and leave what is there.
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        > SESSION.CALL s 2 LOW 1 GET big
        *
        > SESSION.CALL s 3 LOW 2 INCR n
        ~-ERR *
        // The id stayed free, and with LOW there is room.
        > SESSION.CALL s 3 LOW 3 INCR n
        :2
        > SESSION.CALL s 3 LOW 3 INCR n
        :2
        > SESSION.CALL s 2 LOW 1 GET big
        ~-EVICTED *
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :3, "replies", :1, ...]
        > SESSION.OPEN ID other
        "other"
        > SESSION.CALL other 1 LOW 1 GET big
        *
        > SESSION.CALL other 2 LOW 2 GET big
        *
        "#,
    );
    // The sum is that of what is kept.
    must(&mut connection, "SESSION.OPEN ID t");
    for id in 1..200 {
        must(&mut connection, &format!("SESSION.CALL t {id} LOW {} ECHO {}", (id - 5).max(1), "x".repeat(id as usize)));
    }
    let bytes = info(&mut connection, "t", "reply_bytes").integer();
    must(&mut connection, "SESSION.CALL t 200 LOW 200 ECHO x");
    assert!(info(&mut connection, "t", "reply_bytes").integer() < bytes);
    assert_eq!(info(&mut connection, "t", "replies").integer(), 1);
}

/// Without memory a call is refused and its id stays free; only commands that take away run.
#[test]
fn without_memory_a_call_leaves_no_trace() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    must(&mut connection, "SESSION.CALL s 1 LOW 1 SET k v");
    must(&mut connection, "RPUSH l a b");
    must(&mut connection, "CONFIG SET maxmemory 1");
    let replies: Vec<String> = [
        "SESSION.CALL s 2 LOW 1 SET k w",
        "SESSION.CALL s 1 LOW 1 SET k v",
        "SESSION.OPEN ID t",
        "SESSION.PUSH s x",
        "SESSION.ALIVE s",
        "SESSION.CALL s 3 LOW 1 EVAL \"return redis.call('set', KEYS[1], 'x')\" 1 k",
        "SESSION.CALL s 4 LOW 1 GET k",
        "SESSION.CALL s 5 LOW 1 LPOP l",
    ]
    .iter()
    .map(|line| connection.run(line).to_string())
    .collect();
    must(&mut connection, "CONFIG SET maxmemory 0");
    assert!(replies[0].starts_with("-OOM"), "{replies:?}");
    assert!(replies[2].starts_with("-OOM"), "{replies:?}");
    assert!(replies[3].starts_with("-OOM"), "{replies:?}");
    assert_eq!(replies[4], ":1");
    assert!(replies[5].starts_with("-OOM"), "{replies:?}");
    // A retry needs nothing.
    assert_eq!(replies[1], "+OK");
    assert_eq!(connection.run("GET k").text(), "v");
    assert_eq!(connection.run("SESSION.CALL s 2 LOW 1 SET k w").to_string(), "+OK");
    let again = connection.run("SESSION.CALL s 3 LOW 1 EVAL \"return redis.call('set', KEYS[1], 'x')\" 1 k");
    assert_eq!(again.to_string(), "+OK");
    // A reply is kept, so a read needs memory too.
    assert!(replies[6].starts_with("-OOM"), "{replies:?}");
    assert_eq!(connection.run("SESSION.CALL s 4 LOW 1 GET k").text(), "x");
    assert_eq!(replies[7], "\"a\"");
    assert_eq!(connection.run("SESSION.CALL s 5 LOW 1 LPOP l").text(), "a", "it has run once");
}

/// A script that has begun and finds no memory for its first write was refused, as if it had not begun.
#[test]
fn a_script_that_meets_the_memory_limit_before_its_first_write_leaves_no_trace() {
    const MIB: u64 = 1 << 20;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    must(&mut connection, "SET old x PX 1");
    assert_eq!(connection.run_with("SET big", &[&[b'x'; 20 << 20]]).to_string(), "+OK");
    // What it reads takes memory as long as it runs.
    let script = |id: u8, end: &str| {
        let body = format!("redis.call('exists', KEYS[2]) redis.call('get', KEYS[3]) {end}");
        format!("SESSION.CALL s {id} LOW 1 EVAL \"{body}\" 3 k old big")
    };
    let set = script(1, "return redis.call('set', KEYS[1], 'v')");
    let used: u64 = crate::server_info(&mut connection, "used_memory").parse().expect("a number");
    must(&mut connection, &format!("CONFIG SET maxmemory {}", used + 10 * MIB));
    let refused = [connection.run(&set).to_string(), connection.run(&set).to_string()];
    let handled = script(2, "return {redis.pcall('set', KEYS[1], 'v').err}");
    let handled = [connection.run(&handled).to_string(), connection.run(&handled).to_string()];
    must(&mut connection, "CONFIG SET maxmemory 0");
    assert!(refused.iter().all(|reply| reply.starts_with("-OOM ")), "{refused:?}");
    // The same id, and the same request.
    assert_eq!(connection.run(&set).to_string(), "+OK");
    assert_eq!(connection.run(&set).to_string(), "+OK");
    // A script that goes on in spite of it has its own answer, which is kept.
    assert!(handled[0].starts_with("[\"OOM ") && handled[0] == handled[1], "{handled:?}");
}

/// Sessions are never evicted.
#[test]
fn sessions_are_not_evicted() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let used =
        |connection: &mut Connection| crate::server_info(connection, "used_memory").parse::<u64>().expect("a number");
    for number in 0..500 {
        must(&mut connection, &format!("SESSION.OPEN ID s{number} TTL 600000"));
        must(&mut connection, &format!("SET k{number} {}", "x".repeat(2_000)));
    }
    must(&mut connection, "CONFIG SET maxmemory-policy allkeys-random");
    let limit = used(&mut connection) - 400_000;
    must(&mut connection, &format!("CONFIG SET maxmemory {limit}"));
    for _ in 0..200 {
        connection.run("SET other x");
    }
    must(&mut connection, "CONFIG SET maxmemory 0");
    must(&mut connection, "CONFIG SET maxmemory-policy noeviction");
    for number in 0..500 {
        assert_eq!(connection.run(&format!("SESSION.ALIVE s{number}")).integer(), 1);
    }
}

/// While writes are paused a call waits, as any write.
#[test]
fn a_pause_of_writes_holds_calls_back() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> CLIENT PAUSE 100000 WRITE
        +OK
        > SESSION.CALL s 1 LOW 1 INCR n
        # until blocked_clients:1
        2> SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, ...]
        2> CLIENT UNPAUSE
        +OK
        1< :1
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        "#,
    );
}

#[test]
fn large_requests_and_replies() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    let big = vec![b'x'; 20 << 20];
    assert_eq!(connection.run_with("SESSION.CALL s 1 LOW 1 SET big", &[&big]).to_string(), "+OK");
    assert_eq!(connection.run_with("SESSION.CALL s 1 LOW 1 SET big", &[&big]).to_string(), "+OK");
    let first = connection.run("SESSION.CALL s 2 LOW 1 GET big");
    assert_eq!(first.bytes().len(), big.len());
    assert!(connection.run("SESSION.CALL s 2 LOW 1 GET big") == first);
    assert!(connection.run("SESSION.CALL s 3 LOW 1 GET big").is_error());
    assert_eq!(connection.run("SESSION.CALL s 3 LOW 3 STRLEN big").integer(), 20 << 20);
    assert_eq!(connection.run_with("SESSION.PUSH s", &[&big]).integer(), 1);
    assert_eq!(connection.run("SESSION.PENDING s").items()[0].items()[1].bytes().len(), big.len());
    assert_eq!(connection.run("SESSION.RETRY 99999999999999").items()[0].items()[2].bytes().len(), big.len());
    let mut attached = session.connect();
    must(&mut attached, "HELLO 3");
    must(&mut attached, "SESSION.ATTACH s");
    let wire::Reply::Push(parts) = attached.read() else { panic!("not a push frame") };
    assert_eq!(parts[3].bytes().len(), big.len());
    must(&mut connection, "SESSION.CLOSE s");
}
