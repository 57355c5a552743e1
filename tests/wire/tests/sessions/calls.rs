//! SESSION.CALL: each (session, request) takes effect once, and every answer to it is the same.

use crate::{check, info, must, must_all, start};
use wire::Reply;
use wire::own::at_once;

#[test]
fn a_retry_gets_the_same_reply_and_runs_nothing() {
    check(
        r#"
        ! SESSION.OPEN ID s
        SESSION.CALL s 1 LOW 1 INCRBY n 5 => :5
        SESSION.CALL s 1 LOW 1 INCRBY n 5 => :5
        SESSION.CALL s 2 LOW 1 INCRBY n 5 => :10
        SESSION.CALL s 1 LOW 1 INCRBY n 5 => :5
        SESSION.CALL s 1 low 0 INCRBY n 5 => :5
        GET n => "10"
        // Another command under the same id.
        SESSION.CALL s 1 LOW 1 INCRBY n 6 => ~-MISMATCH *
        SESSION.CALL s 1 LOW 1 INCRBY m 5 => ~-MISMATCH *
        SESSION.CALL s 1 LOW 1 INCRBY n 5 5 => ~-ERR wrong number of arguments *
        SESSION.CALL s 1 LOW 1 DECRBY n 5 => ~-MISMATCH *
        SESSION.CALL s 1 LOW 1 GET n => ~-MISMATCH *
        GET n => "10"
        // Errors are replies too.
        SESSION.CALL s 3 LOW 1 HSET n a b => -WRONGTYPE Operation against a key holding the wrong kind of value
        ! DEL n
        SESSION.CALL s 3 LOW 1 HSET n a b => -WRONGTYPE Operation against a key holding the wrong kind of value
        EXISTS n => :0
        // Reads too: the answer is that of the first time.
        SESSION.CALL s 4 LOW 1 GET n => (nil)
        ! SET n 1
        SESSION.CALL s 4 LOW 1 GET n => (nil)
        // In any order, and up to the largest id.
        SESSION.CALL s 9223372036854775807 LOW 1 INCR n => :2
        SESSION.CALL s 9223372036854775807 LOW 1 INCR n => :2
        SESSION.CALL s 1000 LOW 1 INCR n => :3
        SESSION.CALL s 999 LOW 1 INCR n => :4
        SESSION.CALL s 1000 LOW 1 INCR n => :3
        "#,
    );
}

/// Arguments are compared as they are split, not as one text.
#[test]
fn arguments_are_told_apart() {
    check(
        r#"
        ! SESSION.OPEN ID s
        SESSION.CALL s 1 LOW 1 HSET h ab c => :1
        SESSION.CALL s 1 LOW 1 HSET h a bc => ~-MISMATCH *
        SESSION.CALL s 1 LOW 1 HSET ha b c => ~-MISMATCH *
        SESSION.CALL s 2 LOW 1 MSET a "" b c => +OK
        SESSION.CALL s 2 LOW 1 MSET a b "" c => ~-MISMATCH *
        SESSION.CALL s 3 LOW 1 SET a "x\x00y" => +OK
        SESSION.CALL s 3 LOW 1 SET a "x\x00z" => ~-MISMATCH *
        "#,
    );
}

#[test]
fn low_drops_replies_and_never_goes_back() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! SESSION.CALL s 1 LOW 1 INCR n
        ! SESSION.CALL s 2 LOW 1 INCR n
        SESSION.CALL s 3 LOW 1 INCR n => :3
        SESSION.CALL s 5 LOW 1 INCR n => :4
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :1, "replies", :4, "reply_bytes", :1.., ...]
        SESSION.CALL s 6 LOW 3 INCR n => :5
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :3, "replies", :3, "reply_bytes", :1.., ...]
        SESSION.CALL s 1 LOW 1 INCR n => ~-EVICTED *
        SESSION.CALL s 2 LOW 1 INCR n => ~-EVICTED *
        // What was dropped is dropped, whatever is asked.
        SESSION.CALL s 2 LOW 1 GET n => ~-EVICTED *
        SESSION.CALL s 3 LOW 1 INCR n => :3
        // Below LOW without ever having been run: it could have been, so it is not.
        SESSION.CALL s 4 LOW 4 INCR n => :6
        SESSION.CALL s 3 LOW 1 INCR n => ~-EVICTED *
        // A smaller one counts as the former.
        SESSION.CALL s 7 LOW 2 INCR n => :7
        SESSION.INFO s => ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :4, ...]
        // A retry can raise it too, as high as the request itself.
        SESSION.CALL s 7 LOW 7 INCR n => :7
        SESSION.INFO s => ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :7, "replies", :1, ...]
        SESSION.CALL s 8 LOW 9 INCR n => ~-ERR *send at most 8, not 9
        SESSION.CALL s 9223372036854775807 LOW 9223372036854775807 INCR n => :8
        SESSION.CALL s 9223372036854775807 LOW 1 INCR n => :8
        SESSION.CALL s 9223372036854775806 LOW 1 INCR n => ~-EVICTED *
        GET n => "8"
        "#,
    );
}

/// Whether a refused request may raise LOW is not said; that it leaves its id free is.
#[test]
fn what_is_refused_before_it_runs_leaves_its_id_free() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must_all(&mut connection, "SESSION.OPEN ID s; SET big 1");
    for refused in "nosuch; GET; GET a b; HSET h a; MULTI; EXEC; DISCARD; WATCH a; UNWATCH; SUBSCRIBE a; PSUBSCRIBE a; \
         SSUBSCRIBE a; UNSUBSCRIBE; HELLO 3; AUTH a; QUIT; RESET; MONITOR; CLIENT ID; CLIENT REPLY OFF; \
         CONFIG GET maxmemory; CONFIG SET maxmemory 1; CONFIG NOSUCH; DEBUG SLEEP 0; SHUTDOWN NOSAVE; BGSAVE; \
         SAVE; BGREWRITEAOF; SCRIPT LOAD 'return 1'; SCRIPT KILL; FUNCTION LIST; FUNCTION FLUSH; ACL WHOAMI; \
         TXN.BEGIN; TXN.COMMIT; TXN.ROLLBACK; SESSION.CALL s 1 LOW 1 SET a 1; SESSION.ATTACH s; \
         SESSION.DETACH s; SWAPDB 0 x y"
        .split("; ")
    {
        for _ in 0..2 {
            let reply = connection.run(&format!("SESSION.CALL s 1 LOW 1 {refused}"));
            assert!(reply.is_error(), "{refused}: {reply}");
            assert!(!reply.to_string().starts_with("-MISMATCH"), "{refused}: {reply}");
        }
        assert_eq!(info(&mut connection, "s", "replies").integer(), 0, "{refused}");
        assert_eq!(info(&mut connection, "s", "reply_bytes").integer(), 0, "{refused}");
    }
    for wrong in "SESSION.CALL s 0 LOW 0 INCR big; SESSION.CALL s -1 LOW 0 INCR big; SESSION.CALL s x LOW 0 INCR big; \
         SESSION.CALL s 9223372036854775808 LOW 0 INCR big; SESSION.CALL s 1 LOW -1 INCR big; \
         SESSION.CALL s 1 LOW x INCR big; SESSION.CALL s 1 LOW 2 INCR big; SESSION.CALL s 1 HIGH 1 INCR big; \
         SESSION.CALL s 1 INCR big LOW 1"
        .split("; ")
    {
        let reply = connection.run(wrong).to_string();
        assert!(reply.starts_with("-ERR"), "{wrong}: {reply}");
    }
    assert_eq!(
        connection.run("SESSION.CALL nosuch 1 LOW 1 INCR big").to_string().split(' ').next(),
        Some("-NOSESSION")
    );
    assert_eq!(connection.run("SESSION.CALL s 1 LOW 1 INCR big").to_string(), ":2");
    assert_eq!(connection.run("SESSION.CALL s 1 LOW 1 INCR big").to_string(), ":2");
    // The connection is as it was.
    assert_eq!(connection.run("PING").to_string(), "+PONG");
}

#[test]
fn calls_are_not_for_transactions_and_scripts() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! MULTI
        SESSION.CALL s 1 LOW 1 INCR n => ~-ERR *
        EXEC => ~-EXECABORT *
        ! TXN.BEGIN
        SESSION.CALL s 1 LOW 1 INCR n => ~-ERR *
        ! TXN.ROLLBACK
        EVAL "return redis.call('SESSION.CALL', KEYS[1], 1, 'LOW', 1, 'INCR', 'n')" 1 s => ~-ERR *
        EXISTS n => :0
        SESSION.CALL s 1 LOW 1 INCR n => :1
        "#,
    );
}

#[test]
fn a_retry_speaks_the_version_of_the_first_call() {
    check(
        r#"
        ! SESSION.OPEN ID s
        ! HSET h a 1
        > SESSION.CALL s 1 LOW 1 HGETALL h
        ["a", "1"]
        ! HELLO 3
        SESSION.CALL s 1 LOW 1 HGETALL h => ~-ERR *
        SESSION.CALL s 2 LOW 1 HGETALL h => {"a" => "1"}
        SESSION.CALL s 2 LOW 1 HGETALL h => {"a" => "1"}
        SESSION.CALL s 3 LOW 1 GET nosuch => _
        > SESSION.CALL s 3 LOW 1 GET nosuch
        _
        ! HELLO 2
        SESSION.CALL s 2 LOW 1 HGETALL h => ~-ERR *
        SESSION.CALL s 1 LOW 1 HGETALL h => ["a", "1"]
        "#,
    );
}

/// The bytes themselves, in both versions and with every kind of reply.
#[test]
fn replies_are_the_same_bytes() {
    let Some(session) = start() else { return };
    for version in ["2", "3"] {
        let mut connection = session.connect();
        must(&mut connection, &format!("HELLO {version}"));
        must(&mut connection, "FLUSHALL");
        must(&mut connection, "SESSION.OPEN ID s");
        must_all(&mut connection, "HSET h a 1 b 2; SADD set a b c; ZADD z 1.5 a 2 b; SET big \"\\x00\\r\\n$5\\r\\n\"");
        let lines = [
            "PING",
            "ECHO \"\\x00\\r\\n\"",
            "GET big",
            "GET nosuch",
            "HGETALL h",
            "SMEMBERS set",
            "ZRANGE z 0 -1 WITHSCORES",
            "ZSCORE z a",
            "HMGET h a nosuch",
            "INCR big",
            "EVAL \"return {1, 'two', {3, {ok='four'}}, {err='MY five'}, false, true, 6.5}\" 0",
            "EVAL \"redis.setresp(3) return {double=3.5}\" 0",
            "EVAL \"redis.setresp(3) return {map={a=1}}\" 0",
            "EVAL \"redis.setresp(3) return {set={a=true}}\" 0",
            "EVAL \"redis.setresp(3) return {big_number='123456789012345678901234567890'}\" 0",
            "EVAL \"redis.setresp(3) return {verbatim_string={format='txt', string='abc'}}\" 0",
            "SRANDMEMBER set 2",
            "SPOP set",
            "TIME",
            "RANDOMKEY",
            "OBJECT ENCODING h",
            "LOLWUT",
            "EXISTS nosuch",
        ];
        let mut first = Vec::new();
        for round in 0..3 {
            for (at, line) in lines.iter().enumerate() {
                connection.queue_line(&format!("SESSION.CALL s {} LOW 1 {line}", at + 1));
                // The ping behind it says where the reply ends.
                connection.queue_line("ECHO the-end-of-it");
                let mut bytes = Vec::new();
                while !bytes.ends_with(b"$13\r\nthe-end-of-it\r\n") {
                    let more = connection.read_raw(1);
                    assert!(!more.is_empty(), "{line}");
                    bytes.extend(more);
                }
                if round == 0 {
                    first.push(bytes);
                } else {
                    assert_eq!(String::from_utf8_lossy(&first[at]), String::from_utf8_lossy(&bytes), "{line}");
                }
            }
        }
    }
}

/// CLIENT REPLY OFF and SKIP are the connection's: the call runs and its reply is kept.
#[test]
fn a_reply_that_was_not_wanted_is_kept() {
    check(
        r#"
        ! SESSION.OPEN ID s
        > CLIENT REPLY SKIP
        > SESSION.CALL s 1 LOW 1 INCR n
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        GET n => "1"
        "#,
    );
}

/// Two connections send the same request at once: it runs once and both get its reply.
#[test]
fn racing_connections_share_one_effect() {
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let replies: Vec<Vec<Reply>> = at_once(&session, 8, |mut connection, _| {
        let call = |id: u64| match id % 3 {
            0 => format!("SESSION.CALL s {id} LOW 1 INCR n"),
            1 => format!("SESSION.CALL s {id} LOW 1 EVAL \"return redis.call('incr', KEYS[1])\" 1 n"),
            _ => format!("SESSION.CALL s {id} LOW 1 EVAL \"return redis.call('incr', 'n')\" 0"),
        };
        let lines: Vec<String> = (1..=400).map(call).collect();
        lines.chunks(7).flat_map(|lines| connection.pipeline(lines)).collect()
    });
    assert!(replies.iter().all(|of_one| *of_one == replies[0]));
    let mut numbers: Vec<i64> = replies[0].iter().map(Reply::integer).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
    assert_eq!(session.connect().run("GET n").text(), "400");
}
