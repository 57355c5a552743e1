//! ZRANK, ZREVRANK and the counts ZCOUNT and ZLEXCOUNT.

use crate::check_as_redis_7_0;
use wire::check;

#[test]
fn zrank_and_zrevrank() {
    check(
        r#"
        ! ZADD z 1 a 2 b 2 c 3 d
        ZRANK z a => :0
        ZRANK z b => :1
        ZRANK z c => :2
        ZRANK z d => :3
        ZREVRANK z a => :3
        ZREVRANK z b => :2
        ZREVRANK z c => :1
        ZREVRANK z d => :0
        ZRANK z nosuch => (nil)
        ZREVRANK z nosuch => (nil)
        ZRANK nosuch a => (nil)
        ZREVRANK nosuch a => (nil)
        > ZADD z 9 a
        :0
        > ZRANK z a
        :3
        ! HELLO 3
        ZRANK z d => :2
        ZRANK z nosuch => _
        ZREVRANK nosuch a => _
        "#,
    );
}

#[test]
fn zrank_with_score() {
    check(
        r#"
        # needs redis >= 7.2
        ! ZADD z 1 a 2.5 b inf c
        ZRANK z b WITHSCORE => [:1, "2.5"]
        ZREVRANK z b WITHSCORE => [:1, "2.5"]
        ZRANK z c withscore => [:2, "inf"]
        ZRANK z nosuch WITHSCORE => (nil array)
        ZREVRANK nosuch a WITHSCORE => (nil array)
        -ERR syntax error
            ZRANK z a NOSUCH
            ZRANK z a WITHSCORES
            ZRANK nosuch a NOSUCH
        ZRANK z a WITHSCORE more => -ERR wrong number of arguments for 'zrank' command
        ! SET s x
        > ZRANK s a WITHSCORE
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZRANK s a NOSUCH
        -ERR syntax error
        ! HELLO 3
        ZRANK z b WITHSCORE => [:1, ,2.5]
        ZREVRANK z c WITHSCORE => [:0, ,inf]
        ZRANK z nosuch WITHSCORE => _
        ZRANK nosuch a WITHSCORE => _
        "#,
    );
}

#[test]
fn zcount() {
    check(
        r#"
        ! ZADD z 1 a 2 b 2.5 c 3 d -inf min inf max
        ZCOUNT z -inf +inf => :6
        ZCOUNT z -inf inf => :6
        ZCOUNT z (-inf (+inf => :4
        ZCOUNT z 1 3 => :4
        ZCOUNT z (1 3 => :3
        ZCOUNT z 1 (3 => :3
        ZCOUNT z (1 (3 => :2
        ZCOUNT z 2 2 => :1
        ZCOUNT z (2 2 => :0
        ZCOUNT z 2 (2 => :0
        ZCOUNT z 3 1 => :0
        ZCOUNT z 4 100 => :0
        ZCOUNT z inf inf => :1
        ZCOUNT z -inf -inf => :1
        ZCOUNT z inf -inf => :0
        ZCOUNT z 2.25 1e3 => :2
        ZCOUNT z -5 .5 => :0
        ZCOUNT nosuch 1 2 => :0
        "#,
    );
}

#[test]
fn zcount_refuses_what_is_no_bound() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR min or max is not a float
            ZCOUNT z x 1
            ZCOUNT z 1 x
        ZCOUNT z ( 1 => :1
        -ERR min or max is not a float
            ZCOUNT z ((1 2
            ZCOUNT z [1 2
            ZCOUNT z nan 1
            ZCOUNT z 1 nan
            ZCOUNT z (nan 1
        ZCOUNT z "" 1 => :1
        ZCOUNT z "1 " 2 => -ERR min or max is not a float
        ZCOUNT z 1e400 2 => :0
        ZCOUNT z 0 1e400 => :1
        ZCOUNT z -1e400 1e400 => :1
        -ERR min or max is not a float
            ZCOUNT z - +
            ZCOUNT nosuch x 1
        ZCOUNT nosuch ( 1 => :0
        ! SET s x
        > ZCOUNT s x 1
        -ERR min or max is not a float
        "#,
    );
}

/// Redis 8 reads bounds more strictly.
#[test]
fn zcount_reads_bounds_loosely() {
    check_as_redis_7_0(
        r#"
        > ZADD z 1 a
        :1
        > ZCOUNT z " 0" 2
        :1
        > ZCOUNT z "( 0" 2
        :1
        > ZCOUNT z 0 "\t2"
        :1
        > ZCOUNT z 0 "2 "
        -ERR min or max is not a float
        > ZCOUNT z 0x1 0x2
        :1
        > ZCOUNT z -0x1p-1 1
        :1
        > ZCOUNT z " " 2
        -ERR min or max is not a float
        > ZCOUNT z "1\x002" 1
        :1
        "#,
    );
}

#[test]
fn zlexcount() {
    check(
        r#"
        ! ZADD z 0 a 0 b 0 c 0 d 0 e
        ZLEXCOUNT z - + => :5
        ZLEXCOUNT z + - => :0
        ZLEXCOUNT z - - => :0
        ZLEXCOUNT z + + => :0
        ZLEXCOUNT z [b [d => :3
        ZLEXCOUNT z (b [d => :2
        ZLEXCOUNT z [b (d => :2
        ZLEXCOUNT z (b (d => :1
        ZLEXCOUNT z (b (b => :0
        ZLEXCOUNT z [b [b => :1
        ZLEXCOUNT z [b (b => :0
        ZLEXCOUNT z [d [b => :0
        ZLEXCOUNT z - (c => :2
        ZLEXCOUNT z (c + => :2
        ZLEXCOUNT z [bb [dd => :2
        ZLEXCOUNT z [ + => :5
        ZLEXCOUNT z ( + => :5
        ZLEXCOUNT z - [ => :0
        ZLEXCOUNT z [A [Z => :0
        ZLEXCOUNT z "[\xff" + => :0
        ZLEXCOUNT z - "[\xff" => :5
        ZLEXCOUNT nosuch - + => :0
        "#,
    );
}

#[test]
fn zlexcount_refuses_what_is_no_bound() {
    check(
        r#"
        ! ZADD z 0 a
        -ERR min or max not valid string range item
            ZLEXCOUNT z a b
            ZLEXCOUNT z - b
            ZLEXCOUNT z b +
            ZLEXCOUNT z "" +
            ZLEXCOUNT z - ""
            ZLEXCOUNT z -x +
            ZLEXCOUNT z -inf +inf
            ZLEXCOUNT z - +x
            ZLEXCOUNT nosuch a b
        ! SET s x
        > ZLEXCOUNT s a b
        -ERR min or max not valid string range item
        "#,
    );
}
