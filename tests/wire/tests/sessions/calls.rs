//! SESSION.CALL: each (session, request) takes effect once, and every answer to it is the same.

use crate::{check, info, must, start};
use wire::Reply;

#[test]
fn a_retry_gets_the_same_reply_and_runs_nothing() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 INCRBY n 5
        :5
        > SESSION.CALL s 1 LOW 1 INCRBY n 5
        :5
        > SESSION.CALL s 2 LOW 1 INCRBY n 5
        :10
        > SESSION.CALL s 1 LOW 1 INCRBY n 5
        :5
        > SESSION.CALL s 1 low 0 INCRBY n 5
        :5
        > GET n
        "10"
        // Another command under the same id.
        > SESSION.CALL s 1 LOW 1 INCRBY n 6
        ~-MISMATCH *
        > SESSION.CALL s 1 LOW 1 INCRBY m 5
        ~-MISMATCH *
        > SESSION.CALL s 1 LOW 1 INCRBY n 5 5
        ~-ERR wrong number of arguments *
        > SESSION.CALL s 1 LOW 1 DECRBY n 5
        ~-MISMATCH *
        > SESSION.CALL s 1 LOW 1 GET n
        ~-MISMATCH *
        > GET n
        "10"
        // Errors are replies too.
        > SESSION.CALL s 3 LOW 1 HSET n a b
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > DEL n
        :1
        > SESSION.CALL s 3 LOW 1 HSET n a b
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > EXISTS n
        :0
        // Reads too: the answer is that of the first time.
        > SESSION.CALL s 4 LOW 1 GET n
        (nil)
        > SET n 1
        +OK
        > SESSION.CALL s 4 LOW 1 GET n
        (nil)
        // In any order, and up to the largest id.
        > SESSION.CALL s 9223372036854775807 LOW 1 INCR n
        :2
        > SESSION.CALL s 9223372036854775807 LOW 1 INCR n
        :2
        > SESSION.CALL s 1000 LOW 1 INCR n
        :3
        > SESSION.CALL s 999 LOW 1 INCR n
        :4
        > SESSION.CALL s 1000 LOW 1 INCR n
        :3
        "#,
    );
}

/// Arguments are compared as they are split, not as one text.
#[test]
fn arguments_are_told_apart() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 HSET h ab c
        :1
        > SESSION.CALL s 1 LOW 1 HSET h a bc
        ~-MISMATCH *
        > SESSION.CALL s 1 LOW 1 HSET ha b c
        ~-MISMATCH *
        > SESSION.CALL s 2 LOW 1 MSET a "" b c
        +OK
        > SESSION.CALL s 2 LOW 1 MSET a b "" c
        ~-MISMATCH *
        > SESSION.CALL s 3 LOW 1 SET a "x\x00y"
        +OK
        > SESSION.CALL s 3 LOW 1 SET a "x\x00z"
        ~-MISMATCH *
        "#,
    );
}

#[test]
fn low_drops_replies_and_never_goes_back() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 INCR n
        > SESSION.CALL s 2 LOW 1 INCR n
        > SESSION.CALL s 3 LOW 1 INCR n
        > SESSION.CALL s 5 LOW 1 INCR n
        :1
        :2
        :3
        :4
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :1, "replies", :4, "reply_bytes", :1.., ...]
        > SESSION.CALL s 6 LOW 3 INCR n
        :5
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :3, "replies", :3, "reply_bytes", :1.., ...]
        > SESSION.CALL s 1 LOW 1 INCR n
        ~-EVICTED *
        > SESSION.CALL s 2 LOW 1 INCR n
        ~-EVICTED *
        // What was dropped is dropped, whatever is asked.
        > SESSION.CALL s 2 LOW 1 GET n
        ~-EVICTED *
        > SESSION.CALL s 3 LOW 1 INCR n
        :3
        // Below LOW without ever having been run: it could have been, so it is not.
        > SESSION.CALL s 4 LOW 4 INCR n
        :6
        > SESSION.CALL s 3 LOW 1 INCR n
        ~-EVICTED *
        // A smaller one counts as the former.
        > SESSION.CALL s 7 LOW 2 INCR n
        :7
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :4, ...]
        // A retry can raise it too, as high as the request itself.
        > SESSION.CALL s 7 LOW 7 INCR n
        :7
        > SESSION.INFO s
        ["sid", "s", "created_at", :1.., "ttl_ms", :90000, "low", :7, "replies", :1, ...]
        > SESSION.CALL s 8 LOW 9 INCR n
        ~-ERR *9 is more than 8*
        > SESSION.CALL s 9223372036854775807 LOW 9223372036854775807 INCR n
        :8
        > SESSION.CALL s 9223372036854775807 LOW 1 INCR n
        :8
        > SESSION.CALL s 9223372036854775806 LOW 1 INCR n
        ~-EVICTED *
        > GET n
        "8"
        "#,
    );
}

/// Whether a refused request may raise LOW is not said; that it leaves its id free is.
#[test]
fn what_is_refused_before_it_runs_leaves_its_id_free() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    must(&mut connection, "SET big 1");
    for refused in [
        "nosuch",
        "GET",
        "GET a b",
        "HSET h a",
        "MULTI",
        "EXEC",
        "DISCARD",
        "WATCH a",
        "UNWATCH",
        "SUBSCRIBE a",
        "PSUBSCRIBE a",
        "SSUBSCRIBE a",
        "UNSUBSCRIBE",
        "HELLO 3",
        "AUTH a",
        "QUIT",
        "RESET",
        "MONITOR",
        "CLIENT ID",
        "CLIENT REPLY OFF",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory 1",
        "CONFIG NOSUCH",
        "DEBUG SLEEP 0",
        "SHUTDOWN NOSAVE",
        "BGSAVE",
        "SAVE",
        "BGREWRITEAOF",
        "SCRIPT LOAD 'return 1'",
        "SCRIPT KILL",
        "FUNCTION LIST",
        "FUNCTION FLUSH",
        "ACL WHOAMI",
        "TXN.BEGIN",
        "TXN.COMMIT",
        "TXN.ROLLBACK",
        "SESSION.CALL s 1 LOW 1 SET a 1",
        "SESSION.ATTACH s",
        "SESSION.DETACH s",
        "SWAPDB 0 x y",
    ] {
        for _ in 0..2 {
            let reply = connection.run(&format!("SESSION.CALL s 1 LOW 1 {refused}"));
            assert!(reply.is_error(), "{refused}: {reply}");
            assert!(!reply.to_string().starts_with("-MISMATCH"), "{refused}: {reply}");
        }
        assert_eq!(info(&mut connection, "s", "replies").integer(), 0, "{refused}");
        assert_eq!(info(&mut connection, "s", "reply_bytes").integer(), 0, "{refused}");
    }
    for wrong in [
        "SESSION.CALL s 0 LOW 0 INCR big",
        "SESSION.CALL s -1 LOW 0 INCR big",
        "SESSION.CALL s x LOW 0 INCR big",
        "SESSION.CALL s 9223372036854775808 LOW 0 INCR big",
        "SESSION.CALL s 1 LOW -1 INCR big",
        "SESSION.CALL s 1 LOW x INCR big",
        "SESSION.CALL s 1 LOW 2 INCR big",
        "SESSION.CALL s 1 HIGH 1 INCR big",
        "SESSION.CALL s 1 INCR big LOW 1",
    ] {
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
fn records_claims_cells_runs_and_registers_are_changed_once() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > HSET job:1 state pending at 5
        :2
        > IDX.CREATE due PREFIX 1 job: FIELD at
        +OK
        > SESSION.CALL s 1 LOW 1 HCAS job:1 state pending running
        :1
        > SESSION.CALL s 1 LOW 1 HCAS job:1 state pending running
        :1
        > SESSION.CALL s 2 LOW 1 HCAS job:1 state pending running
        :0
        > SESSION.CALL s 3 LOW 1 CLAIM 1 due SET 1 at 9 COUNTER attempt
        [["job:1", "5", ~["state", "running", "at", "9", "attempt", "1"]]]
        > SESSION.CALL s 3 LOW 1 CLAIM 1 due SET 1 at 9 COUNTER attempt
        [["job:1", "5", ~["state", "running", "at", "9", "attempt", "1"]]]
        > HGET job:1 attempt
        "1"
        > SESSION.CALL s 4 LOW 1 RUN.APPEND r k t d
        ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        > SESSION.CALL s 4 LOW 1 RUN.APPEND r k t d
        ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        > SESSION.CALL s 5 LOW 1 CELL.CAS c NONE v
        :1
        > SESSION.CALL s 5 LOW 1 CELL.CAS c NONE v
        :1
        > SESSION.CALL s 6 LOW 1 CELL.CAS c NONE v
        (nil)
        > SESSION.CALL s 7 LOW 1 REG.PUT g 1 v
        +APPLIED
        > SESSION.CALL s 7 LOW 1 REG.PUT g 1 v
        +APPLIED
        > SESSION.CALL s 8 LOW 1 IDX.RANGE due -inf +inf KEYS
        ["job:1"]
        > SESSION.CALL s 9 LOW 1 ZRANGE due 0 -1 WITHSCORES
        ["job:1", "9"]
        > SESSION.CALL s 10 LOW 1 SWEEP due BEFORE 10 SET 1 at 11
        [["job:1", "requeued"]]
        > SESSION.CALL s 10 LOW 1 SWEEP due BEFORE 10 SET 1 at 11
        [["job:1", "requeued"]]
        > SESSION.CALL s 11 LOW 1 HFIND job: FILTER at ge 10 KEYS
        ["0", ["job:1"]]
        > SESSION.CALL s 12 LOW 1 ZADD due 1 x
        ~-ERR *
        > SESSION.CALL s 13 LOW 1 REG.SNAPSHOT STORE check
        :1
        > SESSION.CALL s 14 LOW 1 REG.RESTORE FROM check
        [:1, (nil)]
        > SESSION.CALL s 15 LOW 1 CELL.FORK c d
        :1
        > SESSION.CALL s 15 LOW 1 CELL.FORK c d
        :1
        > SESSION.CALL s 16 LOW 1 CELL.DROP d
        :1
        > SESSION.CALL s 16 LOW 1 CELL.DROP d
        :1
        > SESSION.CALL s 17 LOW 1 HPUT h FIELDS 1 a b
        :1
        > SESSION.CALL s 17 LOW 1 HPUT h FIELDS 1 a b
        :1
        > SESSION.CALL s 18 LOW 1 IDX.DROP due
        :1
        > SESSION.CALL s 18 LOW 1 IDX.DROP due
        :1
        "#,
    );
}

#[test]
fn scripts_and_functions_run_once() {
    check(
        r##"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 EVAL "return {redis.call('incr', KEYS[1]), ARGV[1]}" 1 n x
        [:1, "x"]
        > SESSION.CALL s 1 LOW 1 EVAL "return {redis.call('incr', KEYS[1]), ARGV[1]}" 1 n x
        [:1, "x"]
        // Errors, also one behind a write: what was done stays done, once.
        > SESSION.CALL s 2 LOW 1 EVAL "redis.call('incr', KEYS[1]) error('my error')" 1 n
        ~-ERR user_script:1: my error script: *
        > SESSION.CALL s 2 LOW 1 EVAL "redis.call('incr', KEYS[1]) error('my error')" 1 n
        ~-ERR user_script:1: my error script: *
        > GET n
        "2"
        > SESSION.CALL s 3 LOW 1 EVAL "this is no lua" 0
        ~-ERR Error compiling script *
        > SESSION.CALL s 4 LOW 1 EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
        -NOSCRIPT No matching script. Please use EVAL.
        > FUNCTION LOAD "#!lua name=lib\nredis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)\nredis.register_function{function_name='look', callback=function(keys) return redis.call('get', keys[1]) end, flags={'no-writes'}}"
        "lib"
        > SESSION.CALL s 5 LOW 1 FCALL add 1 n 10
        :12
        > SESSION.CALL s 5 LOW 1 FCALL add 1 n 10
        :12
        > SESSION.CALL s 6 LOW 1 FCALL_RO look 1 n
        "12"
        > SESSION.CALL s 7 LOW 1 EVAL_RO "return redis.call('get', KEYS[1])" 1 n
        "12"
        > SESSION.CALL s 8 LOW 1 FCALL compare_and_swap 1 h a b c
        *
        > SESSION.CALL s 9 LOW 1 FCALL nosuch 0
        -ERR Function not found
        > SESSION.CALL s 10 LOW 1 FCALL add 1 n x
        ~-ERR value is not an integer *
        > GET n
        "12"
        // What a script pushes to its own session, and to itself as a call.
        > SESSION.CALL s 11 LOW 1 EVAL "return redis.call('session.push', KEYS[1], 'from a script')" 1 s
        :1
        > SESSION.CALL s 11 LOW 1 EVAL "return redis.call('session.push', KEYS[1], 'from a script')" 1 s
        :1
        > SESSION.CALL s 12 LOW 1 EVAL "return redis.call('session.call', KEYS[1], 13, 'LOW', 1, 'PING')" 1 s
        ~-ERR *not allowed from script*
        > SESSION.PENDING s
        [[:1, "from a script", *]]
        > SESSION.CALL s 14 LOW 1 EVAL "redis.call('del', KEYS[1]) return 'gone'" 1 s
        "gone"
        > SESSION.CALL s 14 LOW 1 EVAL "redis.call('del', KEYS[1]) return 'gone'" 1 s
        ~-NOSESSION *
        > EXISTS s
        :0
        "##,
    );
}

#[test]
fn evalsha_runs_once() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "SESSION.OPEN ID s");
    let sha = connection.run("SCRIPT LOAD \"return redis.call('incr', KEYS[1])\"").text().to_owned();
    for (id, expected) in [(1, ":1"), (1, ":1"), (2, ":2"), (1, ":1")] {
        let reply = connection.run(&format!("SESSION.CALL s {id} LOW 1 EVALSHA {sha} 1 n"));
        assert_eq!(reply.to_string(), expected);
    }
    // A retry needs no script any more.
    must(&mut connection, "SCRIPT FLUSH");
    assert_eq!(connection.run(&format!("SESSION.CALL s 2 LOW 1 EVALSHA {sha} 1 n")).to_string(), ":2");
}

/// A script that uses more keys than it names runs too, beside one that cannot be bounded beforehand.
#[test]
fn scripts_with_undeclared_keys_and_writes_to_the_session_run_once() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 EVAL "for i = 1, 100 do redis.call('incr', 'k' .. (i % 7)) end return redis.call('dbsize')" 0
        :8
        > SESSION.CALL s 1 LOW 1 EVAL "for i = 1, 100 do redis.call('incr', 'k' .. (i % 7)) end return redis.call('dbsize')" 0
        :8
        > GET k1
        "15"
        > SESSION.CALL s 2 LOW 1 EVAL "return redis.call('session.close', 's')" 0
        :1
        > SESSION.ALIVE s
        :0
        > SESSION.OPEN ID s
        "s"
        // Gone and there again in one step: the reply belongs to the one that was asked, which is gone.
        > SESSION.CALL s 1 LOW 1 EVAL "redis.call('session.close', 's') redis.call('session.open', 'id', 's') return 1" 0
        :1
        > SESSION.ALIVE s
        :1
        "#,
    );
}

#[test]
fn a_session_can_be_ended_by_its_own_call() {
    for (gone, reply) in
        [("DEL s", ":1"), ("UNLINK s", ":1"), ("SESSION.CLOSE s", ":1"), ("FLUSHALL", "+OK"), ("FLUSHDB", "+OK")]
    {
        check(&format!(
            r#"
            > SESSION.OPEN ID s
            "s"
            > SESSION.PUSH s x
            :1
            > SESSION.CALL s 1 LOW 1 {gone}
            {reply}
            > SESSION.CALL s 1 LOW 1 {gone}
            ~-NOSESSION *
            > DEL s
            *
            > SESSION.OPEN ID s
            "s"
            > SESSION.CALL s 1 LOW 1 INCR n
            :1
            "#
        ));
    }
}

/// A session moves with its database, and its replies with it.
#[test]
fn a_call_that_swaps_databases_is_kept() {
    for swap in ["SWAPDB 0 1", "EVAL \"return redis.call('swapdb', 0, 1)\" 0"] {
        check(&format!(
            r#"
            > SESSION.OPEN ID s
            "s"
            > SET k zero
            +OK
            > SESSION.CALL s 1 LOW 1 {swap}
            +OK
            > SESSION.CALL s 1 LOW 1 {swap}
            ~-NOSESSION *
            > SELECT 1
            +OK
            > SESSION.CALL s 1 LOW 1 {swap}
            +OK
            > GET k
            "zero"
            "#
        ));
    }
}

#[test]
fn select_inside_is_that_of_a_script() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 SELECT 5
        +OK
        > SET where here
        +OK
        > SESSION.ALIVE s
        :1
        > SESSION.CALL s 1 LOW 1 SELECT 5
        +OK
        > SESSION.CALL s 2 LOW 1 EVAL "redis.call('select', 5) return redis.call('set', 'five', '1')" 0
        +OK
        > SESSION.CALL s 2 LOW 1 EVAL "redis.call('select', 5) return redis.call('set', 'five', '1')" 0
        +OK
        > EXISTS where five
        :1
        > SELECT 5
        +OK
        > EXISTS where five s
        :1
        "#,
    );
}

#[test]
fn nothing_waits_inside() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > SESSION.CALL s 1 LOW 1 BZPOPMIN z 0
        (nil array)
        > ZADD z 1 a
        :1
        > SESSION.CALL s 1 LOW 1 BZPOPMIN z 0
        (nil array)
        > SESSION.CALL s 2 LOW 1 BZPOPMIN z 0
        ["z", "a", "1"]
        > SESSION.CALL s 2 LOW 1 BZPOPMIN z 0
        ["z", "a", "1"]
        > SESSION.CALL s 3 LOW 1 CELL.GETV c AFTER 0 BLOCK 0
        (nil)
        > SESSION.CALL s 4 LOW 1 RUN.EVENTS r BLOCK 0
        []
        > SESSION.CALL s 5 LOW 1 SESSION.PENDING s BLOCK 0
        []
        > IDX.CREATE i PREFIX 1 h FIELD f
        +OK
        > SESSION.CALL s 6 LOW 1 CLAIM 1 i SET 1 a b BLOCK 0
        []
        > IDX.DROP i
        :1
        # until blocked_clients:0
        "#,
    );
}

/// A call wakes those who wait for what it changed, once.
#[test]
fn a_call_wakes_waiters() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        2> BZPOPMIN z 0
        3> SESSION.PENDING s BLOCK 0
        4> CELL.GETV c AFTER 0 BLOCK 0
        # until blocked_clients:3
        > SESSION.CALL s 1 LOW 1 ZADD z 1 a
        :1
        2< ["z", "a", "1"]
        > SESSION.CALL s 1 LOW 1 ZADD z 1 a
        :1
        > EXISTS z
        :0
        > SESSION.CALL s 2 LOW 1 SESSION.PUSH s x
        :1
        3< [[:1, "x", *]]
        > SESSION.CALL s 3 LOW 1 CELL.SET c v
        :1
        4< ["v", :1, *]
        "#,
    );
}

#[test]
fn calls_are_not_for_transactions_and_scripts() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > MULTI
        +OK
        > SESSION.CALL s 1 LOW 1 INCR n
        ~-ERR *
        > EXEC
        ~-EXECABORT *
        > TXN.BEGIN
        +OK
        > SESSION.CALL s 1 LOW 1 INCR n
        ~-ERR *
        > TXN.ROLLBACK
        +OK
        > EVAL "return redis.call('SESSION.CALL', KEYS[1], 1, 'LOW', 1, 'INCR', 'n')" 1 s
        ~-ERR *
        > EXISTS n
        :0
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        "#,
    );
}

#[test]
fn a_retry_speaks_the_version_of_the_first_call() {
    check(
        r#"
        > SESSION.OPEN ID s
        "s"
        > HSET h a 1
        :1
        > SESSION.CALL s 1 LOW 1 HGETALL h
        ["a", "1"]
        > HELLO 3
        *
        > SESSION.CALL s 1 LOW 1 HGETALL h
        ~-ERR *
        > SESSION.CALL s 2 LOW 1 HGETALL h
        {"a" => "1"}
        > SESSION.CALL s 2 LOW 1 HGETALL h
        {"a" => "1"}
        > SESSION.CALL s 3 LOW 1 GET nosuch
        _
        > SESSION.CALL s 3 LOW 1 GET nosuch
        _
        > HELLO 2
        *
        > SESSION.CALL s 2 LOW 1 HGETALL h
        ~-ERR *
        > SESSION.CALL s 1 LOW 1 HGETALL h
        ["a", "1"]
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
        must(&mut connection, "HSET h a 1 b 2");
        must(&mut connection, "SADD set a b c");
        must(&mut connection, "ZADD z 1.5 a 2 b");
        must(&mut connection, "SET big \"\\x00\\r\\n$5\\r\\n\"");
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
        > SESSION.OPEN ID s
        "s"
        > CLIENT REPLY SKIP
        > SESSION.CALL s 1 LOW 1 INCR n
        > SESSION.CALL s 1 LOW 1 INCR n
        :1
        > GET n
        "1"
        "#,
    );
}

/// Two connections send the same request at once: it runs once and both get its reply.
#[test]
fn racing_connections_share_one_effect() {
    let Some(session) = start() else { return };
    must(&mut session.connect(), "SESSION.OPEN ID s");
    let replies: Vec<Vec<Reply>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = session.connect();
                    let lines: Vec<String> = (1..=400)
                        .map(|id| match id % 3 {
                            0 => format!("SESSION.CALL s {id} LOW 1 INCR n"),
                            1 => format!("SESSION.CALL s {id} LOW 1 EVAL \"return redis.call('incr', KEYS[1])\" 1 n"),
                            _ => format!("SESSION.CALL s {id} LOW 1 EVAL \"return redis.call('incr', 'n')\" 0"),
                        })
                        .collect();
                    lines.chunks(7).flat_map(|lines| connection.pipeline(lines)).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(replies.iter().all(|of_one| *of_one == replies[0]));
    let mut numbers: Vec<i64> = replies[0].iter().map(Reply::integer).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
    assert_eq!(session.connect().run("GET n").text(), "400");
}
