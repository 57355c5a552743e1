//! What wakes those who wait for a list, and what they then get.

use wire::check;

#[test]
fn a_push_serves_who_waits() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> RPUSH l a
        :1
        1< ["l", "a"]
        2> EXISTS l
        :0
        > BRPOP l 0
        # until blocked_clients:1
        2> RPUSH l a b
        :2
        1< ["l", "b"]
        2> LRANGE l 0 -1
        ["a"]
        2> DEL l
        :1
        > BLMPOP 0 1 l LEFT COUNT 2
        # until blocked_clients:1
        2> LPUSH l a b c
        :3
        1< ["l", ["c", "b"]]
        2> LRANGE l 0 -1
        ["a"]
        2> DEL l
        :1
        > BLMOVE l m LEFT RIGHT 0
        # until blocked_clients:1
        2> RPUSH l x
        :1
        1< "x"
        2> LRANGE m 0 -1
        ["x"]
        > BRPOPLPUSH l m 0
        # until blocked_clients:1
        2> RPUSH l y
        :1
        1< "y"
        2> LRANGE m 0 -1
        ["y", "x"]
        2> EXISTS l
        :0
        > PING
        +PONG
        "#,
    );
}

#[test]
fn one_of_several_keys() {
    check(
        r#"
        > BLPOP a b c 0
        # until blocked_clients:1
        2> RPUSH d x
        :1
        2> RPUSH c x
        :1
        1< ["c", "x"]
        > BLPOP a b c 0
        # until blocked_clients:1
        2> RPUSH b x
        :1
        1< ["b", "x"]
        // No longer asked for.
        2> RPUSH a x
        :1
        2> EXISTS a
        :1
        > DEL a d
        :2
        // Of several that get elements at once: the first that got one, since Redis 7.2 the first that was named.
        > BLPOP a b c 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> RPUSH c x
        +QUEUED
        2> RPUSH b y
        +QUEUED
        2> RPUSH a z
        +QUEUED
        2> EXEC
        [:1, :1, :1]
        1< ["c", "x"] | ["a", "z"]
        > FLUSHALL
        +OK
        > BLPOP a a b a 0
        # until blocked_clients:1
        2> RPUSH a x y
        :2
        1< ["a", "x"]
        2> LRANGE a 0 -1
        ["y"]
        "#,
    );
}

/// FLUSHALL changes all lists at once, in no order: it does not decide which of them is looked at first.
#[test]
fn what_is_pushed_after_a_flush_is_served_in_order() {
    for (first, others) in [("a", "b c d e"), ("b", "c d e a"), ("c", "d e a b"), ("d", "e a b c"), ("e", "a b c d")] {
        let pushes: String = others.split(' ').map(|key| format!("2> RPUSH {key} y\n+QUEUED\n")).collect();
        // Since Redis 7.2 the first that was named.
        check(&format!(
            r#"
            > BLPOP {others} {first} 0
            # until blocked_clients:1
            2> MULTI
            +OK
            2> FLUSHALL
            +QUEUED
            2> RPUSH {first} x
            +QUEUED
            {pushes}
            2> EXEC
            [+OK, :1, :1, :1, :1, :1]
            1< ["{first}", "x"] | ["{named}", "y"]
            > FLUSHALL
            +OK
            "#,
            named = &others[..1],
        ));
    }
}

/// An element goes from list to list as long as a client waits to move it on.
#[test]
fn moves_wake_moves() {
    check(
        r#"
        > BLMOVE {a} {a}b LEFT RIGHT 0
        # until blocked_clients:1
        2> BLMOVE {a}b {a}c LEFT RIGHT 0
        # until blocked_clients:2
        3> BRPOPLPUSH {a}c {a}d 0
        # until blocked_clients:3
        4> BLPOP {a}d 0
        # until blocked_clients:4
        5> RPUSH {a} x
        :1
        1< "x"
        2< "x"
        3< "x"
        4< ["{a}d", "x"]
        5> DBSIZE
        :0
        "#,
    );
}

/// The lists are in different shards: whichever thread serves them, none is missed.
#[test]
fn moves_wake_moves_wherever_the_lists_are() {
    check(
        r#"
        > BLMOVE a b LEFT RIGHT 0
        # until blocked_clients:1
        2> BLMOVE b c LEFT RIGHT 0
        # until blocked_clients:2
        3> BLMOVE c d LEFT RIGHT 0
        # until blocked_clients:3
        4> BLMOVE d e LEFT RIGHT 0
        # until blocked_clients:4
        5> RPUSH a x y
        :2
        1< "x"
        2< "x"
        3< "x"
        4< "x"
        # eventually
        5> LRANGE e 0 -1
        ["x"]
        5> LRANGE a 0 -1
        ["y"]
        5> DBSIZE
        :2
        "#,
    );
}

#[test]
fn a_circle_of_moves_ends() {
    check(
        r#"
        > BLMOVE {a} {a}b LEFT RIGHT 0
        # until blocked_clients:1
        2> BLMOVE {a}b {a} LEFT RIGHT 0
        # until blocked_clients:2
        3> RPUSH {a} x
        :1
        1< "x"
        2< "x"
        3> LRANGE {a} 0 -1
        ["x"]
        3> EXISTS {a}b
        :0
        > BLMOVE self self LEFT RIGHT 0
        # until blocked_clients:1
        3> RPUSH self x y
        :2
        1< "x"
        3> LRANGE self 0 -1
        ["y", "x"]
        "#,
    );
}

#[test]
fn a_move_to_something_else_ends_with_an_error() {
    check(
        r#"
        > SET {s} v
        +OK
        > BLMOVE {s}l {s} LEFT RIGHT 0
        # until blocked_clients:1
        2> RPUSH {s}l a
        :1
        1< -WRONGTYPE Operation against a key holding the wrong kind of value
        2> LRANGE {s}l 0 -1
        ["a"]
        2> GET {s}
        "v"
        "#,
    );
}

/// The element that one could not take is for the next.
#[test]
fn who_comes_after_a_move_that_fails_is_served() {
    check(
        r#"
        > SET {s} v
        +OK
        > BRPOPLPUSH {s}l {s} 0
        # until blocked_clients:1
        2> BLPOP {s}l 0
        # until blocked_clients:2
        3> RPUSH {s}l a
        :1
        1< -WRONGTYPE Operation against a key holding the wrong kind of value
        2< ["{s}l", "a"]
        3> EXISTS {s}l
        :0
        "#,
    );
}

#[test]
fn other_types_wake_nobody() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> SET l v
        +OK
        2> DEL l
        :1
        2> ZADD l 1 a
        :1
        2> DEL l
        :1
        2> SADD l a
        :1
        2> RENAME l m
        +OK
        2> RPUSH l x
        :1
        1< ["l", "x"]
        "#,
    );
}

#[test]
fn a_transaction_serves_when_it_is_over() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> RPUSH l a
        +QUEUED
        2> DEL l
        +QUEUED
        2> EXEC
        [:1, :1]
        2> MULTI
        +OK
        2> RPUSH l a
        +QUEUED
        2> LPOP l
        +QUEUED
        2> RPUSH l b
        +QUEUED
        2> LPUSH l c
        +QUEUED
        2> LLEN l
        +QUEUED
        2> EXEC
        [:1, "a", :1, :2, :2]
        1< ["l", "c"]
        2> LRANGE l 0 -1
        ["b"]
        2> DEL l
        :1
        > BRPOP l 0
        # until blocked_clients:1
        2> MULTI
        +OK
        2> RPUSH l a
        +QUEUED
        2> SET l v
        +QUEUED
        2> EXEC
        [:1, +OK]
        2> DEL l
        :1
        2> RPUSH l z
        :1
        1< ["l", "z"]
        "#,
    );
}

#[test]
fn a_script_serves_when_it_is_over() {
    check(
        r#"
        > BLPOP l 0
        # until blocked_clients:1
        2> EVAL "redis.call('RPUSH', KEYS[1], 'a', 'b') redis.call('LPOP', KEYS[1]) return redis.call('LLEN', KEYS[1])" 1 l
        :1
        1< ["l", "b"]
        > BLPOP l 0
        # until blocked_clients:1
        2> EVAL "redis.call('RPUSH', KEYS[1], 'a') return redis.call('DEL', KEYS[1])" 1 l
        :1
        2> RPUSH l c
        :1
        1< ["l", "c"]
        "#,
    );
}

#[test]
fn keys_that_become_lists_in_other_ways() {
    check(
        r#"
        > BLPOP {l} 0
        # until blocked_clients:1
        2> RPUSH {l}other a b
        :2
        2> RENAME {l}other {l}
        +OK
        1< ["{l}", "a"]
        2> LRANGE {l} 0 -1
        ["b"]
        2> RENAME {l} {l}other
        +OK
        > BRPOP {l} 0
        # until blocked_clients:1
        2> COPY {l}other {l}
        :1
        1< ["{l}", "b"]
        > BLPOP {l} 0
        # until blocked_clients:1
        2> RESTORE {l} 0 "\x12\x01\x02\x13\x13\x00\x00\x00\x04\x00\x81x\x02\x0c\x01\x80\x01\xf2\x90\xee\xfe\x04\xff\n\x00\n\x16j\xee\xc8\xcc\xb7\xfb"
        +OK
        1< ["{l}", "x"]
        2> DEL {l}
        :1
        > BLPOP {l} 0
        # until blocked_clients:1
        2> SELECT 1
        +OK
        2> RPUSH {l} m
        :1
        2> MOVE {l} 0
        :1
        1< ["{l}", "m"]
        > BLPOP {l} 0
        # until blocked_clients:1
        2> RPUSH {l} s
        :1
        2> SWAPDB 0 1
        +OK
        1< ["{l}", "s"]
        "#,
    );
}

#[test]
fn moves_that_do_not_wait_serve() {
    check(
        r#"
        > BLPOP {l} 0
        # until blocked_clients:1
        2> RPUSH {l}other a b
        :2
        2> LMOVE {l}other {l} LEFT LEFT
        "a"
        1< ["{l}", "a"]
        > BLPOP {l} 0
        # until blocked_clients:1
        2> RPOPLPUSH {l}other {l}
        "b"
        1< ["{l}", "b"]
        2> DBSIZE
        :0
        "#,
    );
}
