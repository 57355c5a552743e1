//! Which fields are scores: finite numbers, however they are written, and nothing else.

use crate::support::check;

#[test]
fn a_score_is_a_finite_number() {
    check(
        r##"
        # holdfast only
        > IDX.CREATE n PREFIX 1 r: FIELD n
        +OK
        > HSET r:int n 7
        :1
        > HSET r:negative n -7
        :1
        > HSET r:float n 2.5
        :1
        > HSET r:exponent n 1e3
        :1
        > HSET r:point n .5
        :1
        > HSET r:trailing n 5.
        :1
        > HSET r:plus n +6
        :1
        > HSET r:zeros n 007
        :1
        > HSET r:minuszero n -0
        :1
        > HSET r:minuszerofloat n -0.0
        :1
        > HSET r:zero n 0
        :1
        > HSET r:huge n 1e308
        :1
        > HSET r:-huge n -1e308
        :1
        > HSET r:large n 9223372036854775807
        :1
        > HSET r:larger n 9223372036854775808
        :1
        > HSET r:tiny n 5e-324
        :1
        > HSET r:vanishing n 1e-400
        :1
        > ZRANGE n 0 -1 WITHSCORES
        ["r:-huge", "-1e+308", "r:negative", "-7", "r:minuszero", "0", "r:minuszerofloat", "0", "r:vanishing", "0",
         "r:zero", "0", "r:tiny", "4.9406564584124654e-324", "r:point", "0.5", "r:float", "2.5", "r:trailing", "5",
         "r:plus", "6", "r:int", "7", "r:zeros", "7", "r:exponent", "1000", "r:large", "9.2233720368547758e+18",
         "r:larger", "9.2233720368547758e+18", "r:huge", "1e+308"]
        > HELLO 3
        *
        > ZRANGE n 0 3 WITHSCORES
        [["r:-huge", ,-1e+308], ["r:negative", ,-7], ["r:minuszero", ,0], ["r:minuszerofloat", ,0]]
        > ZSCORE n r:float
        ,2.5
        > ZSCORE n r:minuszero
        ,0
        > IDX.RANGE n 0 3 FIELDS 1 n
        [["r:minuszero", ,0, {"n" => "-0"}], ["r:minuszerofloat", ,0, {"n" => "-0.0"}],
         ["r:vanishing", ,0, {"n" => "1e-400"}], ["r:zero", ,0, {"n" => "0"}],
         ["r:tiny", ,4.9406564584124654e-324, {"n" => "5e-324"}], ["r:point", ,0.5, {"n" => ".5"}],
         ["r:float", ,2.5, {"n" => "2.5"}]]
        "##,
    );
}

#[test]
fn what_is_no_finite_number_is_no_score() {
    check(
        r##"
        # holdfast only
        > IDX.CREATE n PREFIX 1 r: FIELD n
        +OK
        > HSET r:nan n nan
        :1
        > HSET r:+nan n +nan
        :1
        > HSET r:inf n inf
        :1
        > HSET r:-inf n -inf
        :1
        > HSET r:+infinity n +Infinity
        :1
        > HSET r:toohuge n 1e309
        :1
        > HSET r:toonegative n -1e309
        :1
        > HSET r:word n seven
        :1
        > HSET r:empty n ""
        :1
        > HSET r:space n " 7"
        :1
        > HSET r:spacebehind n "7 "
        :1
        > HSET r:newline n "7\n"
        :1
        > HSET r:nul n "7\x00"
        :1
        > HSET r:bytes n "\xff\xfe"
        :1
        > HSET r:hex n 0x10
        :1
        > HSET r:underscore n 1_000
        :1
        > HSET r:dot n .
        :1
        > HSET r:minus n -
        :1
        > HSET r:comma n 1,5
        :1
        > HSET r:missing m 7
        :1
        > ZRANGE n 0 -1 WITHSCORES
        []
        > IDX.RANGE n -inf inf KEYS
        []
        // One after the other, a record comes, moves and goes with what it holds.
        > HSET r:word n 7
        :0
        > ZRANGE n 0 -1 WITHSCORES
        ["r:word", "7"]
        > HSET r:word n 8.5
        :0
        > ZRANGE n 0 -1 WITHSCORES
        ["r:word", "8.5"]
        > HSET r:word n eight
        :0
        > ZRANGE n 0 -1 WITHSCORES
        []
        "##,
    );
}

#[test]
fn equal_scores_are_in_the_order_of_names() {
    check(
        r##"
        # holdfast only
        > IDX.CREATE n PREFIX 1 "" FIELD n
        +OK
        > HSET b n 1
        > HSET a n 1.0
        > HSET "" n 1e0
        > HSET "\xff" n 1
        > HSET B n 1
        > HSET aa n 1
        > HSET "a\x00" n 1
        > HSET zero n -0
        > HSET Zero n 0
        :1
        :1
        :1
        :1
        :1
        :1
        :1
        :1
        :1
        > ZRANGE n 0 -1
        ["Zero", "zero", "", "B", "a", "a\x00", "aa", "b", "\xff"]
        > ZREVRANGE n 0 -1
        ["\xff", "b", "aa", "a\x00", "a", "B", "", "zero", "Zero"]
        > IDX.RANGE n 1 1 KEYS
        ["", "B", "a", "a\x00", "aa", "b", "\xff"]
        > IDX.RANGE n 1 1 KEYS REV
        ["\xff", "b", "aa", "a\x00", "a", "B", ""]
        > ZRANK n aa
        :6
        > ZREVRANK n aa
        :2
        "##,
    );
}
