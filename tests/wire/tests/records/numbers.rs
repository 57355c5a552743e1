//! Which fields are scores: finite numbers, however they are written, and nothing else.

use crate::support::check;

#[test]
fn a_score_is_a_finite_number() {
    check(
        r##"
        ! IDX.CREATE n PREFIX 1 r: FIELD n
        ! EVAL "for _, n in ipairs(ARGV) do redis.call('HSET', 'r:' .. n, 'n', n) end" 0 7 -7 2.5 1e3 .5 5. +6 007 -0 -0.0 0 1e308 -1e308 9223372036854775807 9223372036854775808 5e-324 1e-400
        > ZRANGE n 0 -1 WITHSCORES
        ["r:-1e308", "-1e+308", "r:-7", "-7", "r:-0", "0", "r:-0.0", "0", "r:0", "0", "r:1e-400", "0",
         "r:5e-324", "4.9406564584124654e-324", "r:.5", "0.5", "r:2.5", "2.5", "r:5.", "5", "r:+6", "6", "r:007", "7",
         "r:7", "7", "r:1e3", "1000", "r:9223372036854775807", "9.2233720368547758e+18",
         "r:9223372036854775808", "9.2233720368547758e+18", "r:1e308", "1e+308"]
        ! HELLO 3
        ZRANGE n 0 3 WITHSCORES => [["r:-1e308", ,-1e+308], ["r:-7", ,-7], ["r:-0", ,0], ["r:-0.0", ,0]]
        ZSCORE n r:2.5 => ,2.5
        ZSCORE n r:-0 => ,0
        > IDX.RANGE n 0 1 FIELDS 1 n
        [["r:-0", ,0, {"n" => "-0"}], ["r:-0.0", ,0, {"n" => "-0.0"}], ["r:0", ,0, {"n" => "0"}],
         ["r:1e-400", ,0, {"n" => "1e-400"}], ["r:5e-324", ,4.9406564584124654e-324, {"n" => "5e-324"}],
         ["r:.5", ,0.5, {"n" => ".5"}]]
        "##,
    );
}

#[test]
fn what_is_no_finite_number_is_no_score() {
    check(
        r##"
        ! IDX.CREATE n PREFIX 1 r: FIELD n
        ! EVAL "for at, n in ipairs(ARGV) do redis.call('HSET', 'r:' .. at, 'n', n) end" 0 nan +nan inf -inf +Infinity 1e309 -1e309 seven "" " 7" "7 " "7\n" "7\x00" "\xff\xfe" 0x10 1_000 . - 1,5
        ! HSET r:missing m 7
        DBSIZE => :20
        ZRANGE n 0 -1 WITHSCORES => []
        IDX.RANGE n -inf inf KEYS => []
        // A record comes, moves and goes with what it holds.
        ! HSET r:1 n 7
        ZRANGE n 0 -1 WITHSCORES => ["r:1", "7"]
        ! HSET r:1 n 8.5
        ZRANGE n 0 -1 WITHSCORES => ["r:1", "8.5"]
        ! HSET r:1 n eight
        ZRANGE n 0 -1 WITHSCORES => []
        "##,
    );
}

#[test]
fn equal_scores_are_in_the_order_of_names() {
    check(
        r##"
        ! IDX.CREATE n PREFIX 1 "" FIELD n
        ! EVAL "for _, name in ipairs(ARGV) do redis.call('HSET', name, 'n', '1.0') end" 0 b a "" "\xff" B aa "a\x00"
        ZRANGE n [a (b BYLEX => ["a", "a\x00", "aa"]
        ZRANGEBYLEX n [a (b => ["a", "a\x00", "aa"]
        ZREVRANGEBYLEX n + (aa => ["\xff", "b"]
        ZLEXCOUNT n (a + => :4
        ! HSET zero n -0
        ! HSET Zero n 0
        ZRANGE n 0 -1 => ["Zero", "zero", "", "B", "a", "a\x00", "aa", "b", "\xff"]
        ZREVRANGE n 0 -1 => ["\xff", "b", "aa", "a\x00", "a", "B", "", "zero", "Zero"]
        IDX.RANGE n 1 1 KEYS => ["", "B", "a", "a\x00", "aa", "b", "\xff"]
        IDX.RANGE n 1 1 KEYS REV => ["\xff", "b", "aa", "a\x00", "a", "B", ""]
        ZRANK n aa => :6
        ZREVRANK n aa => :2
        "##,
    );
}
