//! What SESSION.CALL can run, and what that means for the session and for others.

use crate::{check, check_calls, must, start};
use wire::Reply;

#[test]
fn records_claims_cells_runs_and_registers_are_changed_once() {
    check_calls(
        r#"
        ! HSET job:1 state pending at 5
        ! IDX.CREATE due PREFIX 1 job: FIELD at
        twice HCAS job:1 state pending running => :1
        twice HCAS job:1 state pending running => :0
        twice CLAIM 1 due SET 1 at 9 COUNTER attempt => [["job:1", "5", ~["state", "running", "at", "9", "attempt", "1"]]]
        HGET job:1 attempt => "1"
        twice RUN.APPEND r k t d => ["runSeq", :1, "idempotent", :0, "persisted", :1, ...]
        twice CELL.CAS c/x NONE v => :1
        twice CELL.CAS c/x NONE v => (nil)
        twice REG.PUT g 1 v => +APPLIED
        twice IDX.RANGE due -inf +inf KEYS => ["job:1"]
        twice ZRANGE due 0 -1 WITHSCORES => ["job:1", "9"]
        twice SWEEP due BEFORE 10 SET 1 at 11 => [["job:1", "requeued"]]
        twice HFIND job: FILTER at ge 10 KEYS => ["0", ["job:1"]]
        twice ZADD due 1 x => ~-ERR *
        twice REG.SNAPSHOT STORE check => :1
        twice REG.RESTORE FROM check => [:1, (nil)]
        twice CELL.FORK c/ d/ => :1
        twice CELL.DROP d/ => :1
        twice HPUT h FIELDS 1 a b => :1
        twice IDX.DROP due => :1
        "#,
    );
}

#[test]
fn scripts_and_functions_run_once() {
    check_calls(
        r##"
        twice EVAL "return {redis.call('incr', KEYS[1]), ARGV[1]}" 1 n x => [:1, "x"]
        // Errors, also one behind a write: what was done stays done, once.
        twice EVAL "redis.call('incr', KEYS[1]) error('my error')" 1 n => ~-ERR user_script:1: my error script: *
        twice EVAL "return redis.error_reply('MY refusal')" 0 => -MY refusal
        GET n => "2"
        twice EVAL "this is no lua" 0 => ~-ERR Error compiling script *
        twice EVALSHA ffffffffffffffffffffffffffffffffffffffff 0 => -NOSCRIPT No matching script. Please use EVAL.
        ! FUNCTION LOAD "#!lua name=lib\nredis.register_function('add', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)\nredis.register_function{function_name='look', callback=function(keys) return redis.call('get', keys[1]) end, flags={'no-writes'}}"
        twice FCALL add 1 n 10 => :12
        twice FCALL_RO look 1 n => "12"
        twice EVAL_RO "return redis.call('get', KEYS[1])" 1 n => "12"
        twice FCALL compare_and_swap 1 h a b c => *
        twice FCALL nosuch 0 => -ERR Function not found
        twice FCALL add 1 n x => ~-ERR value is not an integer *
        GET n => "12"
        // Keys that are not declared.
        twice EVAL "for i = 1, 100 do redis.call('incr', 'k' .. (i % 7)) end return redis.call('get', 'k1')" 0 => "15"
        GET k1 => "15"
        twice EVAL "return redis.call('session.call', KEYS[1], 13, 'LOW', 1, 'PING')" 1 s => ~-ERR *not allowed from script*
        "##,
    );
}

/// What a request writes and the requests that it makes to clients are one step, once: a retry makes none.
#[test]
fn a_request_and_the_requests_that_it_makes_take_effect_once() {
    check_calls(
        r#"
        ! SESSION.OPEN ID other
        twice EVAL "redis.call('session.push', KEYS[1], 'one') redis.call('session.push', KEYS[2], 'two') return redis.call('incr', KEYS[3])" 3 s other n => :1
        SESSION.PENDING s => [[:1, "one", *]]
        SESSION.PENDING other => [[:1, "two", *]]
        GET n => "1"
        "#,
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

/// A session that is gone and there again in one step is another one.
#[test]
fn a_script_can_end_its_session() {
    check_calls(
        r#"
        SESSION.CALL s 1 LOW 1 EVAL "redis.call('session.close', 's') redis.call('session.open', 'id', 's') return 1" 0 => :1
        SESSION.ALIVE s => :1
        SESSION.CALL s 1 LOW 1 INCR n => :1
        SESSION.CALL s 2 LOW 1 EVAL "redis.call('del', KEYS[1]) return 'gone'" 1 s => "gone"
        SESSION.CALL s 2 LOW 1 EVAL "redis.call('del', KEYS[1]) return 'gone'" 1 s => ~-NOSESSION *
        EXISTS s => :0
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
            ! SESSION.OPEN ID s
            ! SESSION.PUSH s x
            SESSION.CALL s 1 LOW 1 {gone} => {reply}
            SESSION.CALL s 1 LOW 1 {gone} => ~-NOSESSION *
            > DEL s
            *
            ! SESSION.OPEN ID s
            SESSION.CALL s 1 LOW 1 INCR n => :1
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
            ! SESSION.OPEN ID s
            ! SET k zero
            SESSION.CALL s 1 LOW 1 {swap} => +OK
            > SESSION.CALL s 1 LOW 1 {swap}
            ~-NOSESSION *
            ! SELECT 1
            SESSION.CALL s 1 LOW 1 {swap} => +OK
            GET k => "zero"
            "#
        ));
    }
}

#[test]
fn select_inside_is_that_of_a_script() {
    check_calls(
        r#"
        twice SELECT 5 => +OK
        ! SET where here
        SESSION.ALIVE s => :1
        twice EVAL "redis.call('select', 5) return redis.call('set', 'five', '1')" 0 => +OK
        EXISTS where five => :1
        ! SELECT 5
        EXISTS where five s => :1
        "#,
    );
}

#[test]
fn nothing_waits_inside() {
    check_calls(
        r#"
        twice BZPOPMIN z 0 => (nil array)
        ! ZADD z 1 a
        SESSION.CALL s 1 LOW 1 BZPOPMIN z 0 => (nil array)
        twice BZPOPMIN z 0 => ["z", "a", "1"]
        twice CELL.GETV c AFTER 0 BLOCK 0 => (nil)
        twice RUN.EVENTS r BLOCK 0 => []
        twice SESSION.PENDING s BLOCK 0 => []
        ! IDX.CREATE i PREFIX 1 h FIELD f
        twice CLAIM 1 i SET 1 a b BLOCK 0 => []
        ! IDX.DROP i
        # until blocked_clients:0
        "#,
    );
}

/// A call wakes those who wait for what it changed, once.
#[test]
fn a_call_wakes_waiters() {
    check(
        r#"
        ! SESSION.OPEN ID s
        2> BZPOPMIN z 0
        3> SESSION.PENDING s BLOCK 0
        4> CELL.GETV c AFTER 0 BLOCK 0
        # until blocked_clients:3
        > SESSION.CALL s 1 LOW 1 ZADD z 1 a
        :1
        2< ["z", "a", "1"]
        SESSION.CALL s 1 LOW 1 ZADD z 1 a => :1
        EXISTS z => :0
        SESSION.CALL s 2 LOW 1 SESSION.PUSH s x => :1
        3< [[:1, "x", *]]
        > SESSION.CALL s 3 LOW 1 CELL.SET c v
        :1
        4< ["v", :1, *]
        "#,
    );
}

/// Calls of a pipeline, for which locks are taken ahead, are answered as those that come alone: also of an index, of a session's own
/// name, of a wrong type, and with other sessions between them.
#[test]
fn a_pipeline_of_calls_is_answered_as_calls_alone() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    must(&mut connection, "IDX.CREATE jobs PREFIX 1 job: FIELD at");
    let keys = ["job:1", "job:2", "jobs", "s", "t", "text", "{s}a", "{s}b", "{t}a"];
    for (command, rest) in
        [("HSET", "at 7"), ("HGET", "at"), ("ZCARD", ""), ("TYPE", ""), ("HINCRBY", "at 1"), ("DEL", "")]
    {
        let call = |number: usize| {
            let (of, key) = (["s", "s", "s", "t"][number % 4], keys[number % keys.len()]);
            format!("SESSION.CALL {of} {} LOW 0 {command} {key} {rest}", number + 1)
        };
        let lines: Vec<String> = (0..4 * keys.len()).map(call).collect();
        let mut begin = || {
            for line in [
                "DEL s t job:1 job:2 text {s}a {s}b {t}a",
                "HSET job:1 at 5",
                "SESSION.OPEN ID s",
                "SESSION.OPEN ID t",
                "SET text x",
            ] {
                must(&mut connection, line);
            }
            session.connect()
        };
        let together = begin().pipeline(&lines);
        let mut connection = begin();
        let alone: Vec<Reply> = lines.iter().map(|line| connection.run(line)).collect();
        assert_eq!(together, alone, "{command}");
    }
}
