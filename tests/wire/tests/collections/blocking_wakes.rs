//! What wakes clients that wait for elements, and what they then get. What only lists and only sorted sets do is in their
//! own `blocking_wakes`.

use crate::check_each;
use crate::waiting::KINDS;

#[test]
fn what_is_added_is_for_who_waits() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> GIVE k a
        2> EXISTS k
        2< :1
        2< :0
        1< GOT k a
        > LAST k 0
        # until blocked_clients:1
        2> GIVE k a b
        :2
        1< GOT k b
        2> SHOW k
        ["a"]
        2> DEL k
        :1
        > SEVERAL k COUNT 2
        # until blocked_clients:1
        2> GIVE k a b c
        :3
        1< GOT_ALL k a b
        2> SHOW k
        ["c"]
        ! HELLO 3
        > FIRST r 0
        # until blocked_clients:1
        2> GIVE r a
        :1
        1< GOT_RESP3 r a
        "#,
    );
}

#[test]
fn one_of_several_keys() {
    check_each(
        KINDS,
        r#"
        > FIRST a b c 0
        # until blocked_clients:1
        2> GIVE d x
        :1
        2> GIVE c x
        :1
        1< GOT c x
        > FIRST a b c 0
        # until blocked_clients:1
        2> GIVE b x
        :1
        1< GOT b x
        // No longer asked for.
        2> GIVE a x
        :1
        2> EXISTS a
        :1
        > DEL a d
        :2
        // Of several that get elements at once: the first that got one, since Redis 7.2 the first that was named.
        > FIRST a b c 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> GIVE c x
        +QUEUED
        2> GIVE b x
        +QUEUED
        2> GIVE a x
        +QUEUED
        2> EXEC
        [:1, :1, :1]
        1< ["c", ...] | ["a", ...]
        > DBSIZE
        :2
        > FLUSHALL
        +OK
        > SEVERAL_OF a b
        # until blocked_clients:1
        2> GIVE b x
        :1
        1< GOT_ALL b x
        > FIRST a a b a 0
        # until blocked_clients:1
        2> GIVE a x y
        :2
        1< GOT a x
        2> SHOW a
        ["y"]
        "#,
    );
}

#[test]
fn a_transaction_is_seen_as_a_whole() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> GIVE k a
        +QUEUED
        2> DEL k
        +QUEUED
        2> EXEC
        [:1, :1]
        2> MULTI
        +OK
        2> GIVE k a
        +QUEUED
        2> SET k v
        +QUEUED
        2> EXEC
        [:1, +OK]
        2> MULTI
        +OK
        2> DEL k
        +QUEUED
        2> GIVE k b
        +QUEUED
        2> GIVE k c
        +QUEUED
        2> SHOW k
        +QUEUED
        2> EXEC
        [:1, *, *, ["b", "c"]]
        1< GOT k b
        2> SHOW k
        ["c"]
        "#,
    );
}

#[test]
fn a_script_is_seen_as_a_whole() {
    check_each(
        KINDS,
        r#"
        > FIRST k 0
        # until blocked_clients:1
        2> EVAL "redis.call(LUA_GIVE, 'gone'); return redis.call('DEL', KEYS[1])" 1 k
        :1
        2> EVAL "redis.call(LUA_GIVE, 'a'); redis.call(LUA_GIVE, 'b'); return redis.call('EXISTS', KEYS[1])" 1 k
        :1
        1< GOT k a
        2> SHOW k
        ["b"]
        2> DEL k
        :1
        > FIRST k 0
        # until blocked_clients:1
        2> EVAL "redis.call(LUA_GIVE, 'a'); error('too late')" 1 k
        ~-*too late*
        1< GOT k a
        "#,
    );
}

#[test]
fn every_way_to_get_a_value() {
    check_each(
        KINDS,
        r#"
        > FIRST {k} 0
        # until blocked_clients:1
        2> GIVE {k}other a b
        :2
        2> RENAME {k}other {k}
        +OK
        1< GOT {k} a
        2> SHOW {k}
        ["b"]
        2> RENAME {k} {k}other
        +OK
        > LAST {k} 0
        # until blocked_clients:1
        2> COPY {k}other {k}
        :1
        1< GOT {k} b
        > FIRST {k} 0
        # until blocked_clients:1
        2> RENAMENX {k}other {k}
        :1
        1< GOT {k} b
        > FIRST {k} 0
        # until blocked_clients:1
        2> RESTORE {k} 0 PAYLOAD
        +OK
        1< RESTORED
        2> DEL {k}
        :1
        > FIRST {k} 0
        # until blocked_clients:1
        2> SELECT 1
        +OK
        2> GIVE {k} m
        :1
        2> MOVE {k} 0
        :1
        1< GOT {k} m
        > FIRST {k} 0
        # until blocked_clients:1
        2> GIVE {k} c
        :1
        2> COPY {k} {k} DB 0
        :1
        1< GOT {k} c
        > FIRST {k} 0
        # until blocked_clients:1
        2> SWAPDB 0 1
        +OK
        1< GOT {k} c
        > SELECT 9
        +OK
        > SEVERAL {k}
        # until blocked_clients:1
        2> GIVE {k} s
        :1
        2> SWAPDB 1 9
        +OK
        1< GOT_ALL {k} s
        "#,
    );
}

#[test]
fn what_wakes_nobody() {
    check_each(
        KINDS,
        r#"
        > SELECT 3
        +OK
        > FIRST k 0
        # until blocked_clients:1
        // The key of another database.
        2> GIVE k other
        :1
        2> SELECT 3
        +OK
        // A value of another type.
        2> SET k string
        +OK
        2> DEL k
        :1
        2> SADD k a
        :1
        2> RENAME k m
        +OK
        2> FLUSHDB
        +OK
        2> FLUSHALL
        +OK
        # until blocked_clients:1
        2> GIVE k own
        :1
        1< GOT k own
        > FIRST k 0
        # until blocked_clients:1
        2> SET y string
        +OK
        2> RENAME y k
        +OK
        2> GIVE y b
        :1
        2> RENAME y k
        +OK
        1< GOT k b
        "#,
    );
}

#[test]
fn who_is_told_of_it() {
    check_each(
        KINDS,
        r#"
        # config notify-keyspace-events EA
        3> PSUBSCRIBE *
        ["psubscribe", "*", :1]
        > FIRST k 0
        # until blocked_clients:1
        2> GIVE k a
        :1
        3< ["pmessage", "*", "__keyevent@0__:GIVEN", "k"]
        3< ["pmessage", "*", "__keyevent@0__:TAKEN", "k"]
        3< ["pmessage", "*", "__keyevent@0__:del", "k"]
        1< GOT k a
        > SEVERAL k COUNT 2
        # until blocked_clients:1
        2> GIVE k a b c
        :3
        3< ["pmessage", "*", "__keyevent@0__:GIVEN", "k"]
        3< ["pmessage", "*", "__keyevent@0__:TAKEN", "k"]
        1< GOT_ALL k a b
        > FIRST k 0
        GOT k c
        3< ["pmessage", "*", "__keyevent@0__:TAKEN", "k"]
        3< ["pmessage", "*", "__keyevent@0__:del", "k"]
        3> PUNSUBSCRIBE *
        ["punsubscribe", "*", :0]
        // Caching clients, and those who watch.
        4> HELLO 3
        *
        4> CLIENT TRACKING ON
        +OK
        > FIRST k 0
        # until blocked_clients:1
        4> SHOW k
        []
        5> WATCH k
        +OK
        2> GIVE k a
        :1
        1< GOT k a
        4< push["invalidate", ["k"]]
        4> SHOW k
        []
        4> GIVE k a
        :1
        4< push["invalidate", ["k"]]
        4> SHOW k
        ["a"]
        2> FIRST k 0
        GOT k a
        4< push["invalidate", ["k"]]
        5> MULTI
        +OK
        5> PING
        +QUEUED
        5> EXEC
        (nil array)
        5> GIVE w a
        :1
        5> WATCH w
        +OK
        2> FIRST w 0
        GOT w a
        5> MULTI
        +OK
        5> PING
        +QUEUED
        5> EXEC
        (nil array)
        "#,
    );
}
