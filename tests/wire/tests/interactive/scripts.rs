//! Scripts and functions in a transaction: one step each, on the keys that they declare.

use wire::check;

#[test]
fn a_script_works_on_its_keys() {
    check(
        r#"
        # holdfast only
        > MSET a 1 b 2
        +OK
        > TXN.BEGIN
        +OK
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
        > TXN.COMMIT
        :1..
        2> MGET a b
        ["2", "12"]
        "#,
    );
}

#[test]
fn a_key_that_a_script_has_read_is_watched() {
    check(
        r#"
        # holdfast only
        > SET a 1
        +OK
        > TXN.BEGIN
        +OK
        > EVAL "return redis.call('get', KEYS[1])" 1 a
        "1"
        2> SET a 2
        +OK
        > TXN.COMMIT
        ~-CONFLICT *
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
        # holdfast only
        > MSET a 1 b 2
        +OK
        > TXN.BEGIN
        +OK
        > APPEND a 0
        :2
        > EVAL "SCRIPT" 1 a
        -ERR the script touched a key that it did not declare, which it may not in an interactive transaction; nothing of it was kept: declare the key in KEYS
        > GET a
        "10"
        > TXN.COMMIT
        :1..
        > MGET a b
        ["10", "2"]
        "#;
        check(&transcript.replace("SCRIPT", script));
    }
}

#[test]
fn a_script_may_call_what_a_transaction_may_contain() {
    for (call, error) in [
        (
            "redis.call('select', 1)",
            "SELECT cannot be part of an interactive transaction: it is not about data; send it outside of one",
        ),
        (
            "redis.call('publish', 'c', 'm')",
            "PUBLISH cannot be part of an interactive transaction: it is not about data; send it outside of one",
        ),
        (
            "redis.call('keys', '*')",
            "KEYS cannot be part of an interactive transaction: its keys are not all arguments; send it outside of one",
        ),
        (
            "redis.call('move', KEYS[1], 1)",
            "MOVE cannot be part of an interactive transaction: it touches another database; send it outside of one",
        ),
    ] {
        let transcript = r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > EVAL "return CALL" 1 a
        ~-ERR ERROR*
        > SET a 1
        +OK
        > TXN.COMMIT
        :1..
        "#;
        check(&transcript.replace("CALL", call).replace("ERROR", error));
    }
}

#[test]
fn a_function_works_on_its_keys() {
    check(
        r##"
        # holdfast only
        > FUNCTION LOAD REPLACE "#!lua name=txnlib\nredis.register_function('bump', function(keys, args) return redis.call('incrby', keys[1], args[1]) end)"
        "txnlib"
        > TXN.BEGIN
        +OK
        > FCALL bump 1 n 5
        :5
        > FCALL bump 1 n 5
        :10
        2> GET n
        (nil)
        > TXN.COMMIT
        :1..
        2> GET n
        "10"
        > FUNCTION DELETE txnlib
        +OK
        "##,
    );
}

#[test]
fn an_error_of_a_script_is_its_reply_and_the_transaction_goes_on() {
    check(
        r#"
        # holdfast only
        > TXN.BEGIN
        +OK
        > EVAL "return redis.call('incr', KEYS[1])" 1 n
        :1
        > EVAL "return redis.error_reply('ERR mine')" 0
        -ERR mine
        > EVALSHA 0000000000000000000000000000000000000000 0
        -NOSCRIPT No matching script. Please use EVAL.
        > EVAL "return 1" x
        -ERR value is not an integer or out of range
        > EVAL "return 1" 5
        -ERR Number of keys can't be greater than number of args
        > TXN.COMMIT
        :1..
        > GET n
        "1"
        "#,
    );
}

#[test]
fn a_script_that_is_killed_leaves_nothing() {
    check(
        r#"
        # holdfast only
        > CONFIG SET busy-reply-threshold 20
        +OK
        > MSET a 100 b 0
        +OK
        > TXN.BEGIN
        +OK
        > DECRBY a 1
        :99
        > EVAL "redis.call('decrby', KEYS[1], 30); while true do end" 2 a b
        # eventually
        2> PING
        -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        2> SCRIPT KILL
        +OK
        1< ~-ERR Script killed by user with SCRIPT KILL*
        > MGET a b
        ["99", "0"]
        > TXN.COMMIT
        :1..
        > MGET a b
        ["99", "0"]
        > CONFIG SET busy-reply-threshold 5000
        +OK
        "#,
    );
}
