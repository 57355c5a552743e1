//! What wakes those who wait for a sorted set, and what they then get.

use wire::check;

#[test]
fn zadd_serves_who_waits() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        2> EXISTS z
        :0
        > BZPOPMAX z 0
        # until blocked_clients:1
        2> ZADD z 1 a 2 b
        :2
        1< ["z", "b", "2"]
        2> ZRANGE z 0 -1
        ["a"]
        2> DEL z
        :1
        > BZMPOP 0 1 z MIN COUNT 2
        # until blocked_clients:1
        2> ZADD z 1 a 2 b 3 c
        :3
        1< ["z", [["a", "1"], ["b", "2"]]]
        2> ZRANGE z 0 -1
        ["c"]
        2> DEL z
        :1
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZINCRBY z 2.5 a
        "2.5"
        1< ["z", "a", "2.5"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z INCR 2.5 a
        "2.5"
        1< ["z", "a", "2.5"]
        > PING
        +PONG
        "#,
    );
}

#[test]
fn the_one_who_added_sees_it_gone() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z 1 a
        2> EXISTS z
        2> ZCARD z
        2< :1
        2< :0
        2< :0
        1< ["z", "a", "1"]
        "#,
    );
}

#[test]
fn one_of_several_keys() {
    check(
        r#"
        > BZPOPMIN a b c 0
        # until blocked_clients:1
        2> ZADD d 1 x
        :1
        2> ZADD c 1 x
        :1
        1< ["c", "x", "1"]
        > BZPOPMIN a b c 0
        # until blocked_clients:1
        2> ZADD b 2 x
        :1
        1< ["b", "x", "2"]
        // No longer asked for.
        2> ZADD a 3 x
        :1
        2> EXISTS a
        :1
        > DEL a d
        :2
        // Of several that get members at once: the first that got one, since Redis 7.2 the first that was named.
        > BZPOPMIN a b c 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> ZADD c 1 x
        +QUEUED
        2> ZADD b 2 y
        +QUEUED
        2> ZADD a 3 z
        +QUEUED
        2> EXEC
        [:1, :1, :1]
        1< ["c", "x", "1"] | ["a", "z", "3"]
        > DBSIZE
        :2
        > FLUSHALL
        +OK
        > BZMPOP 0 2 a b MAX COUNT 5
        # until blocked_clients:1
        2> MULTI
        +OK
        2> ZADD b 1 x 2 y
        +QUEUED
        2> EXEC
        [:2]
        1< ["b", [["y", "2"], ["x", "1"]]]
        > BZPOPMIN a a b a 0
        # until blocked_clients:1
        2> ZADD a 1 x 2 y
        :2
        1< ["a", "x", "1"]
        > ZRANGE a 0 -1
        ["y"]
        "#,
    );
}

#[test]
fn a_transaction_is_seen_as_a_whole() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> ZADD z 3 c
        +QUEUED
        2> ZADD z 1 a
        +QUEUED
        2> ZADD z 2 b
        +QUEUED
        2> ZCARD z
        +QUEUED
        2> EXEC
        [:1, :1, :1, :3]
        1< ["z", "a", "1"]
        2> ZRANGE z 0 -1
        ["b", "c"]
        2> DEL z
        :1
        > BZPOPMAX z 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> ZADD z 1 gone
        +QUEUED
        2> DEL z
        +QUEUED
        2> EXEC
        [:1, :1]
        2> MULTI
        +OK
        2> ZADD z 1 gone
        +QUEUED
        2> ZREM z gone
        +QUEUED
        2> EXEC
        [:1, :1]
        2> MULTI
        +OK
        2> ZADD z 1 gone
        +QUEUED
        2> SET z string
        +QUEUED
        2> EXEC
        [:1, +OK]
        2> MULTI
        +OK
        2> DEL z
        +QUEUED
        2> ZADD z 1 a 2 b
        +QUEUED
        2> EXEC
        [:1, :2]
        1< ["z", "b", "2"]
        "#,
    );
}

#[test]
fn a_script_is_seen_as_a_whole() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> EVAL "redis.call('ZADD', KEYS[1], 1, 'gone'); redis.call('DEL', KEYS[1]); return redis.call('ZCARD', KEYS[1])" 1 z
        :0
        2> EVAL "redis.call('ZADD', KEYS[1], 3, 'c'); redis.call('ZADD', KEYS[1], 1, 'a'); return redis.call('ZCARD', KEYS[1])" 1 z
        :2
        1< ["z", "a", "1"]
        2> ZRANGE z 0 -1
        ["c"]
        2> DEL z
        :1
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> EVAL "redis.call('ZADD', KEYS[1], 1, 'a'); error('too late')" 1 z
        ~-*too late*
        1< ["z", "a", "1"]
        "#,
    );
}

#[test]
fn every_way_to_make_a_sorted_set() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD y 1 a
        :1
        2> RENAME y z
        +OK
        1< ["z", "a", "1"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD y 2 b
        :1
        2> RENAMENX y z
        :1
        1< ["z", "b", "2"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD y 3 c
        :1
        2> COPY y z
        :1
        1< ["z", "c", "3"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZUNIONSTORE z 1 y
        :1
        1< ["z", "c", "3"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZINTERSTORE z 2 y y
        :1
        1< ["z", "c", "6"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZDIFFSTORE z 2 y nosuch
        :1
        1< ["z", "c", "3"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZRANGESTORE z y 0 -1
        :1
        1< ["z", "c", "3"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> RESTORE z 0 "\x11,,\x00\x00\x00\n\x00\x81c\x02\xdf\xfd\x02\x81a\x02\x01\x01\x81b\x02\x02\x01\x81d\x02\xf2\xa0\x86\x01\x04\x81e\x02\xf4\x00\x00\x00\x00\x00\x00 \x00\t\xff\n\x00\xf6\a\xd5\xe4\xb9\x06\xc3\xed"
        +OK
        1< ["z", "c", "-3"]
        2> DEL z
        :1
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> SELECT 1
        +OK
        2> ZADD z 4 d
        :1
        2> MOVE z 0
        :1
        1< ["z", "d", "4"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD y 5 e
        :1
        2> COPY y z DB 0
        :1
        1< ["z", "e", "5"]
        > EXISTS z
        :0
        "#,
    );
}

#[test]
fn swapping_databases_wakes() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> SELECT 1
        +OK
        2> ZADD z 1 a
        :1
        2> SWAPDB 0 1
        +OK
        1< ["z", "a", "1"]
        2> EXISTS z
        :0
        > SELECT 9
        +OK
        > BZMPOP 0 1 z MAX
        # until blocked_clients:1
        2> SELECT 1
        +OK
        2> ZADD z 1 a
        :1
        2> SWAPDB 1 9
        +OK
        1< ["z", [["a", "1"]]]
        "#,
    );
}

#[test]
fn another_database_is_another_key() {
    check(
        r#"
        > SELECT 3
        +OK
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z 1 other
        :1
        2> SELECT 3
        +OK
        2> ZADD z 2 own
        :1
        1< ["z", "own", "2"]
        2> SELECT 0
        +OK
        2> ZRANGE z 0 -1
        ["other"]
        "#,
    );
}

#[test]
fn another_type_wakes_nobody() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> SET z string
        +OK
        2> DEL z
        :1
        2> HSET z f v
        :1
        # until blocked_clients:1
        2> DEL z
        :1
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> SET y string
        +OK
        2> RENAME y z
        +OK
        2> ZADD y 1 b
        :1
        2> RENAME y z
        +OK
        1< ["z", "b", "1"]
        "#,
    );
}

#[test]
fn flushing_wakes_nobody() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> FLUSHALL
        +OK
        2> FLUSHDB
        +OK
        # until blocked_clients:1
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        "#,
    );
}

#[test]
fn what_is_told_of_it() {
    check(
        r#"
        # config notify-keyspace-events EA
        3> PSUBSCRIBE *
        ["psubscribe", "*", :1]
        > BZPOPMIN z 0
        # until blocked_clients:1
        2> ZADD z 1 a
        :1
        3< ["pmessage", "*", "__keyevent@0__:zadd", "z"]
        3< ["pmessage", "*", "__keyevent@0__:zpopmin", "z"]
        3< ["pmessage", "*", "__keyevent@0__:del", "z"]
        1< ["z", "a", "1"]
        > BZMPOP 0 1 z MAX COUNT 2
        # until blocked_clients:1
        2> ZADD z 1 a 2 b 3 c
        :3
        3< ["pmessage", "*", "__keyevent@0__:zadd", "z"]
        3< ["pmessage", "*", "__keyevent@0__:zpopmax", "z"]
        1< ["z", [["c", "3"], ["b", "2"]]]
        > BZPOPMAX z 0
        ["z", "a", "1"]
        3< ["pmessage", "*", "__keyevent@0__:zpopmax", "z"]
        3< ["pmessage", "*", "__keyevent@0__:del", "z"]
        "#,
    );
}

#[test]
fn caching_clients_are_told() {
    check(
        r#"
        > BZPOPMIN z 0
        # until blocked_clients:1
        3> HELLO 3
        *
        3> CLIENT TRACKING ON
        +OK
        3> ZCARD z
        :0
        2> ZADD z 1 a
        :1
        1< ["z", "a", "1"]
        3< push["invalidate", ["z"]]
        3> ZCARD z
        :0
        3> ZADD z 1 a
        :1
        3< push["invalidate", ["z"]]
        3> ZCARD z
        :1
        2> BZPOPMIN z 0
        ["z", "a", "1"]
        3< push["invalidate", ["z"]]
        "#,
    );
}

#[test]
fn watch_sees_that_somebody_was_served() {
    check(
        r#"
        2> BZPOPMIN z 0
        # until blocked_clients:1
        > WATCH z
        +OK
        3> ZADD z 1 a
        :1
        2< ["z", "a", "1"]
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        (nil array)
        > ZADD z 1 a
        :1
        > WATCH z
        +OK
        2> BZPOPMIN z 0
        ["z", "a", "1"]
        > MULTI
        +OK
        > ZCARD z
        +QUEUED
        > EXEC
        (nil array)
        "#,
    );
}
