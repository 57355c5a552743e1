//! Scripts and functions in a transaction: one step each, on the keys that they declare.

use crate::check;

#[test]
fn a_script_works_on_its_keys() {
    check(
        r#"
        ! MSET a 1 b 2
        ! TXN.BEGIN
        > INCR a
        :2
        > EVAL "redis.call('set', KEYS[2], redis.call('get', KEYS[1]) + 10); return redis.call('get', KEYS[2])" 2 a b
        "12"
        > GET b
        "12"
        2> MGET a b
        ["1", "2"]
        > EVAL "return 1" 0
        :1
        > EVAL_RO "return redis.call('get', KEYS[1])" 1 b
        "12"
        ! TXN.COMMIT
        2> MGET a b
        ["2", "12"]
        "#,
    );
}

#[test]
fn a_script_that_touches_another_key_leaves_nothing_behind() {
    for script in [
        "redis.call('set', KEYS[1], 'x'); redis.call('set', 'b', 'x')",
        "redis.call('hset', 'b', 'f', 'x')",
        "redis.call('set', KEYS[1], 'x'); redis.pcall('get', 'b'); return 'fine'",
        "redis.call('del', KEYS[1]); redis.pcall('mget', KEYS[1], 'b'); return 'fine'",
        "redis.call('set', KEYS[1], 'x'); local k = 'b'; redis.pcall('incr', k); return 'fine'",
    ] {
        let transcript = r#"
        ! MSET a 1 b 2
        ! TXN.BEGIN
        APPEND a 0 => :2
        > EVAL "SCRIPT" 1 a
        -ERR the script touched a key that it did not declare, which it may not in an interactive transaction; nothing of it was kept: declare the key in KEYS
        GET a => "10"
        ! TXN.COMMIT
        MGET a b => ["10", "2"]
        "#;
        check(&transcript.replace("SCRIPT", script));
    }
}

#[test]
fn a_function_works_on_its_keys() {
    check(
        r##"
        > FUNCTION LOAD REPLACE "#!lua name=txnlib\nredis.register_function('bump', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)"
        "txnlib"
        ! TXN.BEGIN
        FCALL bump 1 n 5 => :5
        FCALL bump 1 n 5 => :10
        2> GET n
        (nil)
        ! TXN.COMMIT
        2> GET n
        "10"
        ! FUNCTION DELETE txnlib
        "##,
    );
}

#[test]
fn an_error_of_a_script_is_its_reply_and_the_transaction_goes_on() {
    check(
        r#"
        ! TXN.BEGIN
        > EVAL "return redis.call('incr', KEYS[1])" 1 n
        :1
        EVAL "return redis.error_reply('ERR mine')" 0 => -ERR mine
        EVALSHA 0000000000000000000000000000000000000000 0 => -NOSCRIPT No matching script. Please use EVAL.
        EVAL "return 1" x => -ERR value is not an integer or out of range
        EVAL "return 1" 5 => -ERR Number of keys can't be greater than number of args
        ! TXN.COMMIT
        GET n => "1"
        "#,
    );
}

#[test]
fn a_script_that_is_killed_leaves_nothing() {
    check(
        r#"
        # config busy-reply-threshold 20
        ! MSET a 100 b 0
        ! TXN.BEGIN
        DECRBY a 1 => :99
        > EVAL "redis.call('decrby', KEYS[1], 30); while true do end" 2 a b
        # eventually
        2> PING
        -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL
        +OK
        1< ~-ERR Script killed by user with SCRIPT KILL*
        MGET a b => ["99", "0"]
        ! TXN.COMMIT
        MGET a b => ["99", "0"]
        "#,
    );
}
