//! What wakes clients who wait to move an element, and commands that only lists have. What wakes clients in general is in `collections`.

use wire::check;

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
        > BLPOP {l} 0
        # until blocked_clients:1
        2> LPUSH {l} c d
        :2
        1< ["{l}", "d"]
        2> DEL {l}
        :1
        2> DBSIZE
        :0
        "#,
    );
}
