//! Numbers in a hash: HINCRBY, HINCRBYFLOAT.

use wire::check;

#[test]
fn hincrby() {
    check(
        r#"
        > HINCRBY h f 1
        :1
        > HINCRBY h f 41
        :42
        > HGET h f
        "42"
        > HINCRBY h f -50
        :-8
        > HSET h g 10
        :1
        > HINCRBY h g 5
        :15
        > HINCRBY h f 0
        :-8
        > HLEN h
        :2
        > HINCRBY h f 9223372036854775807
        :9223372036854775799
        > HINCRBY h new -9223372036854775808
        :-9223372036854775808
        "#,
    );
}

#[test]
fn hincrby_stops_at_the_ends_of_64_bits() {
    check(
        r#"
        > HSET h f 9223372036854775807
        :1
        > HINCRBY h f 1
        -ERR increment or decrement would overflow
        > HINCRBY h f -1
        :9223372036854775806
        > HSET h f -9223372036854775808
        :0
        > HINCRBY h f -1
        -ERR increment or decrement would overflow
        > HINCRBY h f 9223372036854775807
        :-1
        > HSET h f -9223372036854775484
        :0
        > HINCRBY h f -10000
        -ERR increment or decrement would overflow
        > HGET h f
        "-9223372036854775484"
        "#,
    );
}

#[test]
fn hincrby_refuses_what_is_no_integer() {
    check(
        r#"
        > HSET h a abc b "" c " 1" d "1 " e 1.5 f 01 g +1 i 9223372036854775808 j "1\x00"
        :9
        -ERR hash value is not an integer
            HINCRBY h a 1
            HINCRBY h b 1
            HINCRBY h c 1
            HINCRBY h d 1
            HINCRBY h e 1
            HINCRBY h f 1
            HINCRBY h g 1
            HINCRBY h i 1
            HINCRBY h j 1
        -ERR value is not an integer or out of range
            HINCRBY h n abc
            HINCRBY h n ""
            HINCRBY h n 1.5
            HINCRBY h n 9223372036854775808
        HEXISTS h n => :0
        HINCRBY nosuch f abc => -ERR value is not an integer or out of range
        EXISTS nosuch => :0
        "#,
    );
}

#[test]
fn hincrbyfloat() {
    check(
        r#"
        > HINCRBYFLOAT h f 1.5
        "1.5"
        > HINCRBYFLOAT h f 1.5
        "3"
        > HGET h f
        "3"
        > HINCRBYFLOAT h f -0.25
        "2.75"
        > HSET h g 10.50
        :1
        > HINCRBYFLOAT h g 0.1
        "10.6"
        > HINCRBYFLOAT h g -5
        "5.6"
        > HSET h g 5.0e3
        :0
        > HINCRBYFLOAT h g 2.0e2
        "5200"
        > HSET h g 0.1
        :0
        > HINCRBYFLOAT h g 0.2
        "0.3"
        > HSET h g 1
        :0
        > HINCRBYFLOAT h g 0
        "1"
        > HSET h g 3.0
        :0
        > HINCRBYFLOAT h g 1
        "4"
        > HINCRBYFLOAT h z -0.5
        "-0.5"
        > HINCRBYFLOAT h z 0.5
        "0"
        > HINCRBY h z 1
        :1
        "#,
    );
}

#[test]
fn hincrbyfloat_refuses_what_is_no_number() {
    check(
        r#"
        > HSET h a abc b "" c " 1" d "1 " e "1\x00"
        :5
        -ERR hash value is not a float
            HINCRBYFLOAT h a 1
            HINCRBYFLOAT h b 1
            HINCRBYFLOAT h c 1
            HINCRBYFLOAT h d 1
            HINCRBYFLOAT h e 1
        -ERR value is not a valid float
            HINCRBYFLOAT h n abc
            HINCRBYFLOAT h n ""
            HINCRBYFLOAT h n nan
            HINCRBYFLOAT h n " 1"
        HEXISTS h n => :0
        HINCRBYFLOAT nosuch f abc => -ERR value is not a valid float
        EXISTS nosuch => :0
        ! SET s x
        > HINCRBYFLOAT s f abc
        -ERR value is not a valid float
        "#,
    );
}

#[test]
fn hincrbyfloat_refuses_infinity() {
    check(
        r#"
        > HSET h f 1
        :1
        -ERR value is NaN or Infinity
            HINCRBYFLOAT h f inf
            HINCRBYFLOAT h f +inf
            HINCRBYFLOAT h f -inf
        HGET h f => "1"
        > HSET h f inf
        :0
        > HINCRBYFLOAT h f 1
        -ERR increment would produce NaN or Infinity
        "#,
    );
}
