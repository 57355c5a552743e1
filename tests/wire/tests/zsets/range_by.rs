//! The older forms of ranges: ZRANGEBYSCORE, ZREVRANGEBYSCORE, ZRANGEBYLEX, ZREVRANGEBYLEX.

use wire::check;

#[test]
fn zrangebyscore() {
    check(
        r#"
        ! ZADD z -inf a 1 b 2 c 3 d 4 e 5 f inf g
        ZRANGEBYSCORE z -inf 2 => ["a", "b", "c"]
        ZRANGEBYSCORE z 0 3 => ["b", "c", "d"]
        ZRANGEBYSCORE z 3 6 => ["d", "e", "f"]
        ZRANGEBYSCORE z 4 +inf => ["e", "f", "g"]
        ZRANGEBYSCORE z (-inf (2 => ["b"]
        ZRANGEBYSCORE z (0 (3 => ["b", "c"]
        ZRANGEBYSCORE z (3 (6 => ["e", "f"]
        ZRANGEBYSCORE z (4 (+inf => ["f"]
        ZRANGEBYSCORE z (2 (2 => []
        ZRANGEBYSCORE z 2 (2 => []
        ZRANGEBYSCORE z 2 2 => ["c"]
        ZRANGEBYSCORE z 3 2 => []
        ZRANGEBYSCORE z 2.4 2.6 => []
        ZRANGEBYSCORE z (5 (6 => []
        ZRANGEBYSCORE z -inf -inf => ["a"]
        ZRANGEBYSCORE z inf inf => ["g"]
        ZRANGEBYSCORE z 1 3 WITHSCORES => ["b", "1", "c", "2", "d", "3"]
        ZRANGEBYSCORE z 0 10 LIMIT 0 2 => ["b", "c"]
        ZRANGEBYSCORE z 0 10 LIMIT 2 3 => ["d", "e", "f"]
        ZRANGEBYSCORE z 0 10 LIMIT 2 10 => ["d", "e", "f"]
        ZRANGEBYSCORE z 0 10 LIMIT 20 10 => []
        ZRANGEBYSCORE z 0 10 LIMIT 0 0 => []
        ZRANGEBYSCORE z 0 10 LIMIT 2 -1 => ["d", "e", "f"]
        ZRANGEBYSCORE z 0 10 LIMIT -1 2 => []
        ZRANGEBYSCORE z 0 10 LIMIT 2 3 WITHSCORES => ["d", "3", "e", "4", "f", "5"]
        ZRANGEBYSCORE z 0 10 withscores limit 2 3 => ["d", "3", "e", "4", "f", "5"]
        ZRANGEBYSCORE nosuch 0 10 => []
        "#,
    );
}

#[test]
fn zrevrangebyscore() {
    check(
        r#"
        ! ZADD z -inf a 1 b 2 c 3 d 4 e 5 f inf g
        ZREVRANGEBYSCORE z 2 -inf => ["c", "b", "a"]
        ZREVRANGEBYSCORE z 3 0 => ["d", "c", "b"]
        ZREVRANGEBYSCORE z 6 3 => ["f", "e", "d"]
        ZREVRANGEBYSCORE z +inf 4 => ["g", "f", "e"]
        ZREVRANGEBYSCORE z (2 (-inf => ["b"]
        ZREVRANGEBYSCORE z (3 (0 => ["c", "b"]
        ZREVRANGEBYSCORE z 2 3 => []
        ZREVRANGEBYSCORE z 3 1 WITHSCORES => ["d", "3", "c", "2", "b", "1"]
        ZREVRANGEBYSCORE z 10 0 LIMIT 0 2 => ["f", "e"]
        ZREVRANGEBYSCORE z 10 0 LIMIT 2 10 => ["d", "c", "b"]
        ZREVRANGEBYSCORE z 10 0 LIMIT 2 2 WITHSCORES => ["d", "3", "c", "2"]
        ZREVRANGEBYSCORE z 10 0 LIMIT 20 10 => []
        ZREVRANGEBYSCORE z 10 0 LIMIT 3 -1 => ["c", "b"]
        ZREVRANGEBYSCORE nosuch 10 0 => []
        "#,
    );
}

#[test]
fn ranges_by_score_refuse_bad_arguments() {
    check(
        r#"
        ! ZADD z 1 a
        -ERR min or max is not a float
            ZRANGEBYSCORE z x 1
            ZRANGEBYSCORE z 1 x
            ZRANGEBYSCORE z nan 1
        ZRANGEBYSCORE z ( 1 => ["a"]
        ZRANGEBYSCORE z 1 ( => []
        ZRANGEBYSCORE z - + => -ERR min or max is not a float
        -ERR syntax error
            ZRANGEBYSCORE z 0 2 NOSUCH
            ZRANGEBYSCORE z 0 2 LIMIT
            ZRANGEBYSCORE z 0 2 LIMIT 0
            ZRANGEBYSCORE z 0 2 REV
            ZRANGEBYSCORE z 0 2 BYSCORE
            ZRANGEBYSCORE z 0 2 BYLEX
        -ERR value is not an integer or out of range
            ZRANGEBYSCORE z 0 2 LIMIT x 1
            ZRANGEBYSCORE z 0 2 LIMIT 0 x
        ZRANGEBYSCORE z 0 2 WITHSCORES WITHSCORES => ["a", "1"]
        -ERR min or max is not a float
            ZREVRANGEBYSCORE z x 1
            ZREVRANGEBYSCORE z 1 x
            ZRANGEBYSCORE nosuch x 1
        -ERR syntax error
            ZREVRANGEBYSCORE z 2 0 NOSUCH
            ZREVRANGEBYSCORE z 2 0 REV
            ZREVRANGEBYSCORE z 2 0 LIMIT 1
        ! SET s x
        > ZRANGEBYSCORE s x 1
        -ERR min or max is not a float
        "#,
    );
}

#[test]
fn zrangebylex() {
    check(
        r#"
        ! ZADD z 0 alpha 0 bar 0 cool 0 down 0 elephant 0 foo 0 great 0 hill 0 omega
        ZRANGEBYLEX z - [cool => ["alpha", "bar", "cool"]
        ZRANGEBYLEX z [bar [down => ["bar", "cool", "down"]
        ZRANGEBYLEX z [g + => ["great", "hill", "omega"]
        ZRANGEBYLEX z - (cool => ["alpha", "bar"]
        ZRANGEBYLEX z (bar (down => ["cool"]
        ZRANGEBYLEX z (great + => ["hill", "omega"]
        ZRANGEBYLEX z (az (b => []
        ZRANGEBYLEX z (z + => []
        ZRANGEBYLEX z - [aaaa => []
        ZRANGEBYLEX z - + => ["alpha", "bar", "cool", "down", "elephant", "foo", "great", "hill", "omega"]
        ZRANGEBYLEX z + - => []
        ZRANGEBYLEX z - [cool LIMIT 0 2 => ["alpha", "bar"]
        ZRANGEBYLEX z - [cool LIMIT 1 2 => ["bar", "cool"]
        ZRANGEBYLEX z - [cool LIMIT 1 -1 => ["bar", "cool"]
        ZRANGEBYLEX z - [cool LIMIT -1 1 => []
        ZRANGEBYLEX z - + limit 8 5 => ["omega"]
        ZRANGEBYLEX z [ [ => []
        ZRANGEBYLEX z ( + => ["alpha", "bar", "cool", "down", "elephant", "foo", "great", "hill", "omega"]
        ZRANGEBYLEX nosuch - + => []
        ! ZADD empty 0 "" 0 "\x00" 0 "\x00\x00" 0 "\xfe" 0 "\xff" 0 "\xff\x00"
        ZRANGEBYLEX empty [ [ => [""]
        ZRANGEBYLEX empty ( "(\xff" => ["\x00", "\x00\x00", "\xfe"]
        ZRANGEBYLEX empty "[\x00" "[\xfe" => ["\x00", "\x00\x00", "\xfe"]
        ZRANGEBYLEX empty "[\xff" + => ["\xff", "\xff\x00"]
        "#,
    );
}

#[test]
fn zrevrangebylex() {
    check(
        r#"
        ! ZADD z 0 alpha 0 bar 0 cool 0 down 0 elephant 0 foo 0 great 0 hill 0 omega
        ZREVRANGEBYLEX z [cool - => ["cool", "bar", "alpha"]
        ZREVRANGEBYLEX z [down [bar => ["down", "cool", "bar"]
        ZREVRANGEBYLEX z + [d => ["omega", "hill", "great", "foo", "elephant", "down"]
        ZREVRANGEBYLEX z (cool - => ["bar", "alpha"]
        ZREVRANGEBYLEX z (down (bar => ["cool"]
        ZREVRANGEBYLEX z - + => []
        ZREVRANGEBYLEX z + - LIMIT 2 3 => ["great", "foo", "elephant"]
        ZREVRANGEBYLEX z + - LIMIT 7 -1 => ["bar", "alpha"]
        ZREVRANGEBYLEX z [bar [down => []
        ZREVRANGEBYLEX nosuch + - => []
        "#,
    );
}

#[test]
fn ranges_by_bytes_refuse_bad_arguments() {
    check(
        r#"
        ! ZADD z 0 a
        -ERR min or max not valid string range item
            ZRANGEBYLEX z a b
            ZRANGEBYLEX z - b
            ZRANGEBYLEX z "" +
            ZRANGEBYLEX z -inf +inf
            ZREVRANGEBYLEX z a b
            ZRANGEBYLEX nosuch a b
        -ERR syntax error, WITHSCORES not supported in combination with BYLEX
            ZRANGEBYLEX z - + WITHSCORES
            ZREVRANGEBYLEX z + - WITHSCORES
        -ERR syntax error
            ZRANGEBYLEX z - + NOSUCH
            ZRANGEBYLEX z - + LIMIT 0
            ZRANGEBYLEX z - + REV
            ZRANGEBYLEX z - + BYLEX
            ZRANGEBYLEX z - + BYSCORE
        -ERR value is not an integer or out of range
            ZRANGEBYLEX z - + LIMIT x 0
            ZREVRANGEBYLEX z + - LIMIT 0 x
        ! SET s x
        > ZRANGEBYLEX s a b
        -ERR min or max not valid string range item
        "#,
    );
}
