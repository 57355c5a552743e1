//! Scores: which spellings are read, how they are printed, ZINCRBY.

use crate::check_as_redis_7_0;
use wire::check;

#[test]
fn zadd_refuses_what_is_no_number() {
    check(
        r#"
        -ERR value is not a valid float
            ZADD z x a
            ZADD z "" a
            ZADD z " 1" a
            ZADD z "1 " a
            ZADD z 1x a
            ZADD z 1,5 a
            ZADD z 1_000 a
            ZADD z nan a
            ZADD z NaN a
            ZADD z -nan a
            ZADD z nan(0x1) a
            ZADD z -- a
            ZADD z + a
            ZADD z . a
            ZADD z e5 a
            ZADD z 1e a
            ZADD z 1e+ a
            ZADD z 0x a
            ZADD z "1\x00" a
            ZADD z "\x00" a
            ZADD z "1\n" a
            ZADD z "\t1" a
            ZADD z infi a
            ZADD z infinityx a
            ZADD z 1e400 a
            ZADD z -1e400 a
            ZADD z 1e309 a
            ZADD z 1e-400 a
            ZADD z INCR x a
            ZINCRBY z x a
            ZINCRBY z nan a
            ZINCRBY z "" a
            ZINCRBY z " 1" a
            ZINCRBY z 1e400 a
        EXISTS z => :0
        "#,
    );
}

#[test]
fn zadd_takes_every_spelling_of_a_number() {
    check(
        r#"
        > ZADD z +1 a
        :1
        > ZSCORE z a
        "1"
        > ZADD z .5 a
        :0
        > ZSCORE z a
        "0.5"
        > ZADD z 5. a
        :0
        > ZSCORE z a
        "5"
        > ZADD z 1e3 a
        :0
        > ZSCORE z a
        "1000"
        > ZADD z 1E+3 a
        :0
        > ZSCORE z a
        "1000"
        > ZADD z 25e-2 a
        :0
        > ZSCORE z a
        "0.25"
        > ZADD z 0x10 a
        :0
        > ZSCORE z a
        "16"
        > ZADD z 0X1p-1 a
        :0
        > ZSCORE z a
        "0.5"
        > ZADD z -0x1.8p1 a
        :0
        > ZSCORE z a
        "-3"
        > ZADD z 007 a
        :0
        > ZSCORE z a
        "7"
        > ZADD z inf a
        :0
        > ZSCORE z a
        "inf"
        > ZADD z +inf a
        :0
        > ZSCORE z a
        "inf"
        > ZADD z -inf a
        :0
        > ZSCORE z a
        "-inf"
        > ZADD z INF a
        :0
        > ZSCORE z a
        "inf"
        > ZADD z -InFiNiTy a
        :0
        > ZSCORE z a
        "-inf"
        > ZADD z infinity a
        :0
        > ZSCORE z a
        "inf"
        > ZADD z +Infinity a
        :0
        > ZSCORE z a
        "inf"
        > ZADD z 00000000000000000000000000000000000000000000000000000000000000000000000000000001 a
        :0
        > ZSCORE z a
        "1"
        > ZADD z 1.00000000000000000000000000000000000000000000000000000000000000000000000000000 a
        :0
        > ZSCORE z a
        "1"
        "#,
    );
}

#[test]
fn zincrby() {
    check(
        r#"
        > ZINCRBY z 1 a
        "1"
        > ZINCRBY z 1 a
        "2"
        > ZINCRBY z -5 a
        "-3"
        > ZINCRBY z 1.25 b
        "1.25"
        > ZINCRBY z 0 b
        "1.25"
        > ZINCRBY z 0 c
        "0"
        > ZINCRBY z -0 c
        "0"
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "-3", "c", "0", "b", "1.25"]
        > ZINCRBY z inf a
        "inf"
        > ZINCRBY z inf a
        "inf"
        > ZINCRBY z -inf a
        -ERR resulting score is not a number (NaN)
        > ZINCRBY z 1 a
        "inf"
        > ZINCRBY z -inf b
        "-inf"
        ZINCRBY z +inf b => -ERR resulting score is not a number (NaN)
        ZRANGE z 0 -1 WITHSCORES => ["b", "-inf", "c", "0", "a", "inf"]
        ZINCRBY z a 1 => -ERR value is not a valid float
        ZINCRBY z GT 1 => -ERR syntax error
        > ZINCRBY z 1 GT
        "1"
        ! SET s x
        > ZINCRBY s x a
        -ERR value is not a valid float
        "#,
    );
}

#[test]
fn an_increment_to_no_number_changes_nothing() {
    check(
        r#"
        > ZADD z INCR nan a
        -ERR value is not a valid float
        > ZADD z 1 other
        :1
        > ZADD z INCR inf a
        "inf"
        -ERR resulting score is not a number (NaN)
            ZADD z INCR -inf a
            ZINCRBY z -inf a
        ZRANGE z 0 -1 WITHSCORES => ["other", "1", "a", "inf"]
        "#,
    );
}

#[test]
fn the_largest_numbers() {
    check(
        r#"
        > ZADD z 1.7976931348623157e308 a
        :1
        > ZINCRBY z 1.7976931348623157e308 a
        "inf"
        > ZADD z -1.7976931348623157e308 b
        :1
        > ZINCRBY z -1.7976931348623157e308 b
        "-inf"
        > ZADD z 9007199254740992 c
        :1
        > ZINCRBY z 1 c
        "9007199254740992"
        > ZINCRBY z 2 c
        "9007199254740994"
        > ZADD z 1.7976931348623157e308 d 5e-324 e -5e-324 f
        :3
        > ZRANGE z 0 -1
        ["b", "f", "e", "c", "d", "a"]
        "#,
    );
}

#[test]
fn scores_are_printed_as_they_are() {
    check(
        r#"
        > ZADD z 0 a 1 b -1 c 3.5 d -0.25 e 1000000 f 0.5e1 g 16777216 h
        :8
        > ZRANGE z 0 -1 WITHSCORES
        ["c", "-1", "e", "-0.25", "a", "0", "b", "1", "d", "3.5", "g", "5", "f", "1000000", "h", "16777216"]
        > ZADD big 1e16 b 9007199254740993 d 12345678901234567 e 1e21 i 1e22 j 1e100 k 1.7976931348623157e308 l
        :7
        > ZRANGE big 0 -1 WITHSCORES
        ["d", "9007199254740992", "b", "10000000000000000", "e", "12345678901234568", "i", "1e+21", "j", "1e+22", "k", "1e+100", "l", "1.7976931348623157e+308"]
        > ZADD digits 3.14159265358979 b 123.456 e 0.123456789012345678 g 1.7 h 0.001 i
        :5
        > ZRANGE digits 0 -1 WITHSCORES
        ["i", "0.001", "g", "0.12345678901234568", "h", "1.7", "b", "3.14159265358979", "e", "123.456"]
        ! HELLO 3
        > ZRANGE z 0 -1 WITHSCORES
        [["c", ,-1], ["e", ,-0.25], ["a", ,0], ["b", ,1], ["d", ,3.5], ["g", ,5], ["f", ,1000000], ["h", ,16777216]]
        > ZRANGE big 0 -1 WITHSCORES
        [["d", ,9007199254740992], ["b", ,10000000000000000], ["e", ,12345678901234568], ["i", ,1e+21], ["j", ,1e+22], ["k", ,1e+100], ["l", ,1.7976931348623157e+308]]
        > ZRANGE digits 0 -1 WITHSCORES
        [["i", ,0.001], ["g", ,0.12345678901234568], ["h", ,1.7], ["b", ,3.14159265358979], ["e", ,123.456]]
        "#,
    );
}

#[test]
fn sums_are_printed_as_they_are() {
    check(
        r#"
        > ZADD z 0.1 a
        :1
        > ZINCRBY z 0.2 a
        "0.30000000000000004"
        > ZSCORE z a
        "0.30000000000000004"
        > ZADD z INCR 0.7 a
        "1"
        > ZINCRBY z -1 a
        "0"
        > ZADD z 1.1 b
        :1
        > ZINCRBY z 2.2 b
        "3.3000000000000003"
        > ZINCRBY z 1e16 b
        "10000000000000004"
        > ZINCRBY z 1 b
        "10000000000000004"
        > ZADD z 1e21 c
        :1
        > ZINCRBY z 1 c
        "1e+21"
        > ZADD z 4.5e15 d
        :1
        > ZINCRBY z 0.5 d
        "4500000000000000.5"
        > ZMSCORE z a b c d
        ["0", "10000000000000004", "1e+21", "4500000000000000.5"]
        ! HELLO 3
        > ZADD z 0.1 e
        :1
        > ZINCRBY z 0.2 e
        ,0.30000000000000004
        > ZSCORE z c
        ,1e+21
        "#,
    );
}

#[test]
fn scores_are_printed_with_17_digits() {
    check_as_redis_7_0(
        r#"
        > ZADD z 100000000000000000 a 1e17 b 99999999999999999 c 1e18 d 1e19 e 1e20 f 123456789012345678901 g
        :7
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "1e+17", "b", "1e+17", "c", "1e+17", "d", "1e+18", "e", "1e+19", "f", "1e+20", "g", "1.2345678901234568e+20"]
        > ZADD long 9223372036854775807 a -9223372036854775808 b 9223372036854775808 c 4611686018427387904 d 1234567890123456789 e 123456789012345678 f 1152921504606846976 g
        :7
        > ZRANGE long 0 -1 WITHSCORES
        ["b", "-9.2233720368547758e+18", "f", "1.2345678901234568e+17", "g", "1.152921504606847e+18", "e", "1.2345678901234568e+18", "d", "4.6116860184273879e+18", "a", "9.2233720368547758e+18", "c", "9.2233720368547758e+18"]
        > ZADD small 0.1 a 0.01 b 0.0001 d 0.00001 e 0.000001 f 3.0e-7 g 1e-10 h 5e-324 i 2.2250738585072014e-308 j 1.5e-5 k 0.000030517578125 l 0.00012345 m -9.9998886718268301e-321 n
        :13
        > ZRANGE small 0 -1 WITHSCORES
        ["n", "-9.9998886718268301e-321", "i", "4.9406564584124654e-324", "j", "2.2250738585072014e-308", "h", "1e-10", "g", "2.9999999999999999e-07", "f", "9.9999999999999995e-07", "e", "1.0000000000000001e-05", "k", "1.5e-05", "l", "3.0517578125e-05", "d", "0.0001", "m", "0.00012344999999999999", "b", "0.01", "a", "0.10000000000000001"]
        > ZADD digits 0.3 a 1.1 c 2.3 d 1234567.891 f 4.35 i 99.99 j -0.7 k 0.3178709260122419 l 3.33 m
        :9
        > ZRANGE digits 0 -1 WITHSCORES
        ["k", "-0.69999999999999996", "a", "0.29999999999999999", "l", "0.31787092601224187", "c", "1.1000000000000001", "d", "2.2999999999999998", "m", "3.3300000000000001", "i", "4.3499999999999996", "j", "99.989999999999995", "f", "1234567.8910000001"]
        > ZINCRBY digits 1 a
        "1.3"
        > ZADD digits INCR 0.1 c
        "1.2000000000000002"
        > ZINCRBY z 4.5e15 a
        "1.045e+17"
        > HELLO 3
        *
        > ZRANGE z 0 -1 WITHSCORES
        [["b", ,1e+17], ["c", ,1e+17], ["a", ,1.045e+17], ["d", ,1e+18], ["e", ,1e+19], ["f", ,1e+20], ["g", ,1.2345678901234568e+20]]
        > ZRANGE small 0 -1 WITHSCORES
        [["n", ,-9.9998886718268301e-321], ["i", ,4.9406564584124654e-324], ["j", ,2.2250738585072014e-308], ["h", ,1e-10], ["g", ,2.9999999999999999e-07], ["f", ,9.9999999999999995e-07], ["e", ,1.0000000000000001e-05], ["k", ,1.5e-05], ["l", ,3.0517578125e-05], ["d", ,0.0001], ["m", ,0.00012344999999999999], ["b", ,0.01], ["a", ,0.10000000000000001]]
        > ZRANGE digits 0 -1 WITHSCORES
        [["k", ,-0.69999999999999996], ["l", ,0.31787092601224187], ["c", ,1.2000000000000002], ["a", ,1.3], ["d", ,2.2999999999999998], ["m", ,3.3300000000000001], ["i", ,4.3499999999999996], ["j", ,99.989999999999995], ["f", ,1234567.8910000001]]
        > ZSCORE small g
        ,2.9999999999999999e-07
        > ZMSCORE small a b i
        [,0.10000000000000001, ,0.01, ,4.9406564584124654e-324]
        > ZINCRBY small 0.01 b
        ,0.02
        "#,
    );
}

#[test]
fn infinities_in_resp3() {
    check(
        r#"
        ! HELLO 3
        > ZADD z inf inf -inf minus -0 zero 3 h
        :4
        > ZMSCORE z inf minus h
        [,inf, ,-inf, ,3]
        > ZRANGE z 0 -1 WITHSCORES
        [["minus", ,-inf], ["zero", ,0 | ,-0], ["h", ,3], ["inf", ,inf]]
        "#,
    );
}

#[test]
fn minus_zero_equals_zero() {
    check(
        r#"
        > ZADD z -0 a 0 b -0.0 c
        :3
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "0", "b", "0", "c", "0"]
        > ZSCORE z a
        "0"
        > ZADD z CH 0 a
        :0
        > ZSCORE z a
        "0"
        > ZINCRBY z 0 a
        "0"
        > ZINCRBY z -0 c
        "0"
        > ZINCRBY z 0 c
        "0"
        > ZADD z -0.5 d
        :1
        ZSCORE z d => "-0.5"
        ZRANGEBYSCORE z -0 0 => ["a", "b", "c"]
        ZRANGEBYSCORE z 0 -0 WITHSCORES => ["a", "0", "b", "0", "c", "0"]
        ZCOUNT z (-0 0 => :0
        // Whether the sign is printed depends on the encoding.
        > ZINCRBY z -0 new
        "0" | "-0"
        > ZADD z -1 c
        :0
        > ZINCRBY z 1 c
        "0"
        "#,
    );
}
