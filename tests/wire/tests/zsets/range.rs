//! ZRANGE in all its forms, and ZREVRANGE.

use wire::check;

#[test]
fn zrange_by_rank() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d
        ZRANGE z 0 -1 => ["a", "b", "c", "d"]
        ZRANGE z 0 0 => ["a"]
        ZRANGE z 1 2 => ["b", "c"]
        ZRANGE z -2 -1 => ["c", "d"]
        ZRANGE z -1 -2 => []
        ZRANGE z 2 1 => []
        ZRANGE z 4 10 => []
        ZRANGE z 3 10 => ["d"]
        ZRANGE z -100 1 => ["a", "b"]
        ZRANGE z -100 -100 => []
        ZRANGE z 0 -5 => []
        ZRANGE z -100 100 => ["a", "b", "c", "d"]
        ZRANGE z 0 -1 WITHSCORES => ["a", "1", "b", "2", "c", "3", "d", "4"]
        ZRANGE z 1 1 withscores => ["b", "2"]
        ZRANGE z 5 6 WITHSCORES => []
        ZRANGE z 9223372036854775807 9223372036854775807 => []
        ZRANGE z -9223372036854775808 9223372036854775807 => ["a", "b", "c", "d"]
        ZRANGE z -9223372036854775808 -9223372036854775808 => []
        ZRANGE nosuch 0 -1 => []
        ZRANGE nosuch 0 -1 WITHSCORES => []
        "#,
    );
}

#[test]
fn zrange_rev_by_rank() {
    check(
        r#"
        ! ZADD z 1 a 2 b 3 c 4 d
        ZRANGE z 0 -1 REV => ["d", "c", "b", "a"]
        ZRANGE z 0 1 REV => ["d", "c"]
        ZRANGE z -2 -1 REV => ["b", "a"]
        ZRANGE z 2 1 REV => []
        ZRANGE z 0 -1 REV WITHSCORES => ["d", "4", "c", "3", "b", "2", "a", "1"]
        ZRANGE z 0 -1 WITHSCORES rev => ["d", "4", "c", "3", "b", "2", "a", "1"]
        ZREVRANGE z 0 -1 => ["d", "c", "b", "a"]
        ZREVRANGE z 0 1 => ["d", "c"]
        ZREVRANGE z -2 -1 => ["b", "a"]
        ZREVRANGE z 2 1 => []
        ZREVRANGE z 4 5 => []
        ZREVRANGE z -100 0 => ["d"]
        ZREVRANGE z 0 -1 WITHSCORES => ["d", "4", "c", "3", "b", "2", "a", "1"]
        ZREVRANGE z 1 1 withscores => ["c", "3"]
        ZREVRANGE nosuch 0 -1 => []
        "#,
    );
}

#[test]
fn zrange_byscore() {
    check(
        r#"
        ! ZADD z 1 a 2 b 2 bb 3 c 4 d inf max -inf min
        ZRANGE z 1 3 BYSCORE => ["a", "b", "bb", "c"]
        ZRANGE z (1 3 BYSCORE => ["b", "bb", "c"]
        ZRANGE z 1 (3 BYSCORE => ["a", "b", "bb"]
        ZRANGE z (1 (3 BYSCORE => ["b", "bb"]
        ZRANGE z -inf +inf BYSCORE => ["min", "a", "b", "bb", "c", "d", "max"]
        ZRANGE z (-inf (inf BYSCORE => ["a", "b", "bb", "c", "d"]
        ZRANGE z 3 1 BYSCORE => []
        ZRANGE z 2 2 BYSCORE WITHSCORES => ["b", "2", "bb", "2"]
        ZRANGE z -inf inf BYSCORE LIMIT 1 2 => ["a", "b"]
        ZRANGE z -inf inf BYSCORE LIMIT 0 0 => []
        ZRANGE z -inf inf BYSCORE LIMIT 5 100 => ["d", "max"]
        ZRANGE z -inf inf BYSCORE LIMIT 100 1 => []
        ZRANGE z -inf inf BYSCORE LIMIT 2 -1 => ["b", "bb", "c", "d", "max"]
        ZRANGE z -inf inf BYSCORE LIMIT 2 -5 => ["b", "bb", "c", "d", "max"]
        ZRANGE z -inf inf BYSCORE LIMIT -1 2 => []
        ZRANGE z -inf inf BYSCORE LIMIT -1 -1 => []
        ZRANGE z -inf inf BYSCORE LIMIT 1 1 WITHSCORES => ["a", "1"]
        ZRANGE z 1 3 LIMIT 0 2 BYSCORE => ["a", "b"]
        ZRANGE z 1 3 WITHSCORES LIMIT 0 1 byscore => ["a", "1"]
        ZRANGE z 1 3 LIMIT 0 2 BYSCORE LIMIT 1 1 => ["b"]
        ZRANGE z 1 3 BYSCORE LIMIT 9223372036854775807 9223372036854775807 => []
        ZRANGE nosuch 1 3 BYSCORE => []
        "#,
    );
}

#[test]
fn zrange_byscore_rev() {
    check(
        r#"
        ! ZADD z 1 a 2 b 2 bb 3 c 4 d
        ZRANGE z 3 1 BYSCORE REV => ["c", "bb", "b", "a"]
        ZRANGE z 1 3 BYSCORE REV => []
        ZRANGE z (3 1 BYSCORE REV => ["bb", "b", "a"]
        ZRANGE z 3 (1 BYSCORE REV => ["c", "bb", "b"]
        ZRANGE z (3 (1 BYSCORE REV => ["bb", "b"]
        ZRANGE z +inf -inf BYSCORE REV => ["d", "c", "bb", "b", "a"]
        ZRANGE z +inf -inf REV BYSCORE LIMIT 1 2 => ["c", "bb"]
        ZRANGE z +inf -inf REV LIMIT 1 2 BYSCORE WITHSCORES => ["c", "3", "bb", "2"]
        ZRANGE z +inf -inf BYSCORE REV LIMIT 3 -1 => ["b", "a"]
        ZRANGE z +inf -inf BYSCORE REV LIMIT -1 1 => []
        "#,
    );
}

#[test]
fn zrange_bylex() {
    check(
        r#"
        ! ZADD z 0 a 0 b 0 bb 0 c 0 d
        ZRANGE z - + BYLEX => ["a", "b", "bb", "c", "d"]
        ZRANGE z [b [c BYLEX => ["b", "bb", "c"]
        ZRANGE z (b [c BYLEX => ["bb", "c"]
        ZRANGE z [b (c BYLEX => ["b", "bb"]
        ZRANGE z (b (c BYLEX => ["bb"]
        ZRANGE z [b + BYLEX => ["b", "bb", "c", "d"]
        ZRANGE z - (bb BYLEX => ["a", "b"]
        ZRANGE z + - BYLEX => []
        ZRANGE z - - BYLEX => []
        ZRANGE z + + BYLEX => []
        ZRANGE z [c [b BYLEX => []
        ZRANGE z - + BYLEX LIMIT 1 2 => ["b", "bb"]
        ZRANGE z - + LIMIT 1 -1 BYLEX => ["b", "bb", "c", "d"]
        ZRANGE z - + bylex limit 9 1 => []
        ZRANGE z - + BYLEX LIMIT -1 1 => []
        ZRANGE z + - BYLEX REV => ["d", "c", "bb", "b", "a"]
        ZRANGE z [c [b BYLEX REV => ["c", "bb", "b"]
        ZRANGE z (c (b REV BYLEX => ["bb"]
        ZRANGE z - + BYLEX REV => []
        ZRANGE z + - BYLEX REV LIMIT 1 2 => ["c", "bb"]
        ZRANGE nosuch - + BYLEX => []
        ! ZADD mixed 1 a 2 c 3 b
        > ZRANGE mixed - + BYLEX
        ["a", "c", "b"]
        "#,
    );
}

#[test]
fn zrange_refuses_options_that_contradict() {
    check(
        r#"
        ! ZADD z 1 a 2 b
        > ZRANGE z 0 -1 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        > ZRANGE z 0 -1 LIMIT 0 -1
        ["a", "b"]
        > ZRANGE z 0 -1 LIMIT 1 -1
        ["a", "b"]
        > ZRANGE z 0 -1 REV LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        ZRANGE z 0 -1 REV LIMIT 1 -1 => ["b", "a"]
        -ERR syntax error, WITHSCORES not supported in combination with BYLEX
            ZRANGE z - + BYLEX WITHSCORES
            ZRANGE z - + WITHSCORES BYLEX
            ZRANGE z 0 -1 BYLEX WITHSCORES
        -ERR syntax error
            ZRANGE z 1 2 BYSCORE BYLEX
            ZRANGE z - + BYLEX BYSCORE
            ZRANGE z 1 2 BYSCORE BYSCORE
            ZRANGE z 1 2 BYLEX BYLEX
            ZRANGE z 0 -1 REV REV
        ZRANGE z 0 -1 WITHSCORES WITHSCORES => ["a", "1", "b", "2"]
        -ERR syntax error
            ZRANGE z 1 2 BYSCORE LIMIT 0
            ZRANGE z 1 2 BYSCORE LIMIT
            ZRANGE z 1 2 NOSUCH
            ZRANGE z 1 2 BYSCORE NOSUCH
            ZRANGE z 1 2 BYSCORE 3
            ZRANGE z x y BYSCORE BYLEX WITHSCORES
        -ERR value is not an integer or out of range
            ZRANGE z 1 2 BYSCORE LIMIT x 1
            ZRANGE z 1 2 BYSCORE LIMIT 0 x
            ZRANGE z 1 2 BYSCORE LIMIT 0.5 1
            ZRANGE z 1 2 BYSCORE LIMIT "" 1
            ZRANGE z 1 2 BYSCORE LIMIT 9223372036854775808 1
        > ZRANGE z x 2 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        "#,
    );
}

#[test]
fn zrange_refuses_bad_bounds() {
    check(
        r#"
        ! ZADD z 1 a 2 b
        -ERR value is not an integer or out of range
            ZRANGE z x 1
            ZRANGE z 0 x
            ZRANGE z 0.5 1
            ZRANGE z (0 1
            ZRANGE z 0 inf
            ZRANGE z "" 1
            ZRANGE z 9223372036854775808 1
            ZRANGE z 0 -9223372036854775809
        -ERR min or max is not a float
            ZRANGE z x 1 BYSCORE
            ZRANGE z 1 x BYSCORE
            ZRANGE z - + BYSCORE
            ZRANGE z nan 1 BYSCORE
        ZRANGE z ( 1 BYSCORE => ["a"]
        -ERR min or max not valid string range item
            ZRANGE z 0 1 BYLEX
            ZRANGE z a b BYLEX
            ZRANGE z - b BYLEX
            ZRANGE z "" + BYLEX
            ZRANGE nosuch a b BYLEX
        ZRANGE nosuch x 1 => -ERR value is not an integer or out of range
        ZRANGE nosuch x 1 BYSCORE => -ERR min or max is not a float
        ! SET s x
        ZRANGE s x 1 => -ERR value is not an integer or out of range
        ZRANGE s x 1 BYSCORE => -ERR min or max is not a float
        ZRANGE s a b BYLEX => -ERR min or max not valid string range item
        ZRANGE s 0 1 NOSUCH => -ERR syntax error
        "#,
    );
}

#[test]
fn zrevrange_takes_only_withscores() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR syntax error
            ZREVRANGE z 0 -1 REV
            ZREVRANGE z 0 -1 BYSCORE
            ZREVRANGE z 0 -1 BYLEX
            ZREVRANGE z 0 -1 NOSUCH
        > ZREVRANGE z 0 -1 LIMIT 0 1
        -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
        -ERR value is not an integer or out of range
            ZREVRANGE z x 1
            ZREVRANGE z 0 x
        ZREVRANGE z 0 -1 WITHSCORES WITHSCORES => ["a", "1"]
        ! SET s x
        > ZREVRANGE s 0 -1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > ZREVRANGE s x 1
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn ranges_in_resp3() {
    check(
        r#"
        ! HELLO 3
        ! ZADD z 1 a 2.5 b inf c
        ZRANGE z 0 -1 => ["a", "b", "c"]
        ZRANGE z 0 -1 WITHSCORES => [["a", ,1], ["b", ,2.5], ["c", ,inf]]
        ZRANGE z 0 -1 REV WITHSCORES => [["c", ,inf], ["b", ,2.5], ["a", ,1]]
        ZRANGE z 1 2 BYSCORE WITHSCORES => [["a", ,1]]
        ZRANGE z 5 6 WITHSCORES => []
        ZRANGE z - + BYLEX => ["a", "b", "c"]
        ZRANGE nosuch 0 -1 WITHSCORES => []
        ZREVRANGE z 0 0 WITHSCORES => [["c", ,inf]]
        ZRANGEBYSCORE z 1 3 WITHSCORES => [["a", ,1], ["b", ,2.5]]
        ZREVRANGEBYSCORE z 3 1 WITHSCORES LIMIT 0 1 => [["b", ,2.5]]
        ZRANGEBYSCORE z 7 8 WITHSCORES => []
        ZRANGEBYLEX z - + => ["a", "b", "c"]
        ZREVRANGEBYLEX z + - => ["c", "b", "a"]
        "#,
    );
}
