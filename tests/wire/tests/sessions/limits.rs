//! How much a session may keep, and what happens when memory or the journal has no room.

use crate::{check, info, must, must_all, start};
use wire::Connection;

/// Kept replies up to the limit; one may pass it, and then LOW has to move.
#[test]
fn kept_replies_have_a_limit() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    session.check(
        r#"
        # config session-cache-max-bytes 1000
        ! SET big 0
        > SETRANGE big 1999 x
        :2000
        ! SESSION.OPEN ID s
        SESSION.CALL s 1 LOW 1 INCR n => :1
        // Passes the limit.
        SESSION.CALL s 2 LOW 1 GET big => *
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :1, "replies", :2, "reply_bytes", :2000.., ...]
        SESSION.CALL s 3 LOW 1 INCR n => ~-ERR *
        GET n => "1"
        // Retries work, and leave what is there.
        SESSION.CALL s 1 LOW 1 INCR n => :1
        SESSION.CALL s 2 LOW 1 GET big => *
        SESSION.CALL s 3 LOW 2 INCR n => ~-ERR *
        // The id stayed free, and with LOW there is room.
        SESSION.CALL s 3 LOW 3 INCR n => :2
        SESSION.CALL s 3 LOW 3 INCR n => :2
        SESSION.CALL s 2 LOW 1 GET big => ~-EVICTED *
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :3, "replies", :1, ...]
        ! SESSION.OPEN ID other
        ! SESSION.CALL other 1 LOW 1 GET big
        ! SESSION.CALL other 2 LOW 2 GET big
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
    check(
        r#"
        ! SESSION.OPEN ID s
        ! SESSION.CALL s 1 LOW 1 SET k v
        ! RPUSH l a b
        # config maxmemory 1
        SESSION.CALL s 2 LOW 1 SET k w => ~-OOM *
        // A retry needs nothing.
        SESSION.CALL s 1 LOW 1 SET k v => +OK
        SESSION.OPEN ID t => ~-OOM *
        SESSION.PUSH s x => ~-OOM *
        SESSION.ALIVE s => :1
        SESSION.CALL s 3 LOW 1 EVAL "return redis.call('set', KEYS[1], 'x')" 1 k => ~-OOM *
        // A reply is kept, so a read needs memory too.
        SESSION.CALL s 4 LOW 1 GET k => ~-OOM *
        SESSION.CALL s 5 LOW 1 LPOP l => "a"
        ! CONFIG SET maxmemory 0
        GET k => "v"
        SESSION.CALL s 2 LOW 1 SET k w => +OK
        SESSION.CALL s 3 LOW 1 EVAL "return redis.call('set', KEYS[1], 'x')" 1 k => +OK
        SESSION.CALL s 4 LOW 1 GET k => "x"
        // It has run once.
        SESSION.CALL s 5 LOW 1 LPOP l => "a"
        "#,
    );
}

/// A script that has begun and finds no memory for its first write was refused, as if it had not begun.
#[test]
fn a_script_that_meets_the_memory_limit_before_its_first_write_leaves_no_trace() {
    const MIB: u64 = 1 << 20;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "SESSION.OPEN ID s; SET old x PX 1");
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
    must_all(&mut connection, "CONFIG SET maxmemory 0; CONFIG SET maxmemory-policy noeviction");
    for number in 0..500 {
        assert_eq!(connection.run(&format!("SESSION.ALIVE s{number}")).integer(), 1);
    }
}

/// While writes are paused a call waits, as any write.
#[test]
fn a_pause_of_writes_holds_calls_back() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2! CLIENT PAUSE 100000 WRITE
        > SESSION.CALL s 1 LOW 1 INCR n
        # until blocked_clients:1
        2> SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :0, "replies", :0, ...]
        2! CLIENT UNPAUSE
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
    must_all(&mut attached, "HELLO 3; SESSION.ATTACH s");
    let wire::Reply::Push(parts) = attached.read() else { panic!("not a push frame") };
    assert_eq!(parts[3].bytes().len(), big.len());
    must(&mut connection, "SESSION.CLOSE s");
}

/// The room for replies grows by doubling, so sixteen short ones fill it.
#[test]
fn a_session_takes_a_few_hundred_bytes_and_a_short_reply_less_than_a_hundred() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let sid = "session:0123456789abcdef0123456789abcdef";
    connection.run(&format!("SESSION.OPEN ID {sid}"));
    let empty = connection.run(&format!("MEMORY USAGE {sid}")).integer();
    assert!((1..400).contains(&empty), "{empty}");
    for id in 1..=16 {
        connection.run(&format!("SESSION.CALL {sid} {id} LOW 1 INCR n"));
    }
    let full = connection.run(&format!("MEMORY USAGE {sid}")).integer();
    assert!(full - empty < 16 * 100, "{empty} {full}");
}
