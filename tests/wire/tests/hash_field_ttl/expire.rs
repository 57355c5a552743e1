//! Deadlines of single fields: HEXPIRE, HPEXPIRE, HEXPIREAT, HPEXPIREAT, and what they refuse.

use wire::check;

#[test]
fn hexpire_sets_deadlines() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2 c 3
        > HEXPIRE h 100 FIELDS 2 a b
        [:1, :1]
        > HTTL h FIELDS 3 a b c
        [:90..100, :90..100, :-1]
        > HPEXPIRE h 100000 FIELDS 1 a
        [:1]
        > HPTTL h FIELDS 1 a
        [:90000..100000]
        > HEXPIREAT h 33177117420 FIELDS 1 a
        [:1]
        > HEXPIRETIME h FIELDS 3 a b c
        [:33177117420, :1.., :-1]
        > HPEXPIREAT h 33177117420123 FIELDS 1 a
        [:1]
        HPEXPIRETIME h FIELDS 1 a => [:33177117420123]
        HEXPIRETIME h FIELDS 1 a => [:33177117421]
        HMGET h a b c => ["1", "2", "3"]
        TTL h => :-1
        > hexpire h 100 fields 1 a
        [:1]
        "#,
    );
}

#[test]
fn hexpire_answers_for_each_field() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIRE h 100 FIELDS 3 a nosuch b
        [:1, :-2, :1]
        > HEXPIRE nosuch 100 FIELDS 2 a b
        [:-2, :-2]
        > HPEXPIRE nosuch 100 FIELDS 1 a
        [:-2]
        > HEXPIREAT nosuch 33177117420 FIELDS 1 a
        [:-2]
        > HPEXPIREAT nosuch 33177117420123 FIELDS 1 a
        [:-2]
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn hexpire_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2 c 3 d 4 e 5
        > HEXPIRE h 0 FIELDS 2 a nosuch
        [:2, :-2]
        > HPEXPIRE h 0 FIELDS 1 b
        [:2]
        > HEXPIREAT h 1 FIELDS 1 c
        [:2]
        > HPEXPIREAT h 1 FIELDS 1 d
        [:2]
        > HGETALL h
        ["e", "5"]
        > HLEN h
        :1
        > HEXPIREAT h 0 FIELDS 1 e
        [:2]
        > EXISTS h
        :0
        "#,
    );
}

#[test]
fn hexpire_nx_xx_gt_lt() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIRE h 100 XX FIELDS 1 a
        [:0]
        > HEXPIRE h 100 GT FIELDS 1 a
        [:0]
        > HTTL h FIELDS 1 a
        [:-1]
        > HEXPIRE h 100 LT FIELDS 1 a
        [:1]
        > HEXPIRE h 100 NX FIELDS 2 a b
        [:0, :1]
        > HEXPIREAT h 33177117420 XX FIELDS 1 a
        [:1]
        > HEXPIREAT h 33177117419 GT FIELDS 1 a
        [:0]
        > HEXPIREAT h 33177117420 GT FIELDS 1 a
        [:0]
        > HEXPIREAT h 33177117421 GT FIELDS 1 a
        [:1]
        > HEXPIREAT h 33177117422 LT FIELDS 1 a
        [:0]
        > HEXPIREAT h 33177117421 LT FIELDS 1 a
        [:0]
        > HEXPIREAT h 33177117420 LT FIELDS 1 a
        [:1]
        > HEXPIRETIME h FIELDS 1 a
        [:33177117420]
        > HPEXPIREAT h 33177117420001 gt FIELDS 1 a
        [:1]
        > HPEXPIREAT h 33177117420000 lt FIELDS 1 a
        [:1]
        > HPEXPIRETIME h FIELDS 1 a
        [:33177117420000]
        > HEXPIRE h 100 NX FIELDS 1 nosuch
        [:-2]
        > HEXPIRE nosuch 100 XX FIELDS 1 a
        [:-2]
        "#,
    );
}

#[test]
fn hexpire_conditions_hold_for_deletion_too() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIREAT h 1 XX FIELDS 1 a
        [:0]
        > HEXPIREAT h 1 GT FIELDS 1 a
        [:0]
        > HEXISTS h a
        :1
        > HEXPIREAT h 1 NX FIELDS 1 a
        [:2]
        > HEXISTS h a
        :0
        > HEXPIREAT h 1 LT FIELDS 1 b
        [:2]
        > EXISTS h
        :0
        "#,
    );
}

#[test]
fn hexpire_refuses_a_bad_list_of_fields() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        -ERR The `numfields` parameter must match the number of arguments
            HEXPIRE h 100 FIELDS 1 a b
            HEXPIRE h 100 FIELDS 3 a b
            HEXPIRE h 100 FIELDS 2147483648 a
            HTTL h FIELDS 1 a b
            HTTL h FIELDS 2 a
            HPERSIST h FIELDS 2 a
        -ERR Parameter `numFields` should be greater than 0
            HEXPIRE h 100 FIELDS 0 a
            HEXPIRE h 100 FIELDS -1 a
            HEXPIRE h 100 FIELDS abc a
            HEXPIRE h 100 FIELDS 1.5 a
            HEXPIRE h 100 FIELDS 9223372036854775808 a
        -ERR Mandatory argument FIELDS is missing or not at the right position
            HEXPIRE h 100 NOSUCH 1 a
            HTTL h NOSUCH 1 a
            HPERSIST h NOSUCH 1 a
        -ERR Number of fields must be a positive integer
            HTTL h FIELDS 0 a
            HTTL h FIELDS abc a
            HPERSIST h FIELDS 0 a
        HTTL h FIELDS 2 a b => [:-1, :-1]
        "#,
    );
}

#[test]
fn hexpire_refuses_bad_conditions() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1
        -ERR Mandatory argument FIELDS is missing or not at the right position
            HEXPIRE h 100 NX XX FIELDS 1 a
            HEXPIRE h 100 NX NX FIELDS 1 a
            HEXPIRE h 100 NOSUCH FIELDS 1 a
            HEXPIRE h 100 GT LT FIELDS 1 a
        HTTL h FIELDS 1 a => [:-1]
        "#,
    );
}

#[test]
fn hexpire_refuses_a_bad_time() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1
        -ERR value is not an integer or out of range
            HEXPIRE h abc FIELDS 1 a
            HEXPIRE h 1.5 FIELDS 1 a
            HEXPIRE h 9223372036854775808 FIELDS 1 a
        -ERR invalid expire time, must be >= 0
            HEXPIRE h -1 FIELDS 1 a
            HPEXPIRE h -1 FIELDS 1 a
            HEXPIREAT h -1 FIELDS 1 a
            HPEXPIREAT h -1 FIELDS 1 a
        HEXPIRE h 9223372036854775807 FIELDS 1 a => -ERR invalid expire time in 'hexpire' command
        HPEXPIRE h 9223372036854775807 FIELDS 1 a => -ERR invalid expire time in 'hpexpire' command
        -ERR invalid expire time in 'hexpireat' command
            HEXPIREAT h 9223372036854775807 FIELDS 1 a
            HEXPIREAT h 70368744178 FIELDS 1 a
        -ERR invalid expire time in 'hpexpireat' command
            HPEXPIREAT h 9223372036854775807 FIELDS 1 a
            HPEXPIREAT h 70368744177665 FIELDS 1 a
        HTTL h FIELDS 1 a => [:-1]
        > HPEXPIREAT h 70368744177663 FIELDS 1 a
        [:1]
        HPEXPIRETIME h FIELDS 1 a => [:70368744177663]
        HEXPIRE nosuch abc FIELDS 1 a => -ERR value is not an integer or out of range
        HEXPIRE nosuch -1 FIELDS 1 a => -ERR invalid expire time, must be >= 0
        "#,
    );
}

#[test]
fn hexpire_refuses_other_types() {
    check(
        r#"
        # needs redis >= 7.4
        ! SET s x
        -WRONGTYPE Operation against a key holding the wrong kind of value
            HEXPIRE s abc FIELDS 1 a
            HEXPIRE s -1 FIELDS 1 a
            HEXPIRE s 100 NOSUCH 1 a
        "#,
    );
}

#[test]
fn hexpire_takes_a_field_twice() {
    check(
        r#"
        # needs redis >= 7.4
        ! HSET h a 1 b 2
        > HEXPIRE h 100 FIELDS 2 a a
        [:1, :1]
        > HEXPIRE h 100 NX FIELDS 2 b b
        [:1, :0]
        > HEXPIRE h 0 FIELDS 2 a a
        [:2, :-2]
        > HPERSIST h FIELDS 2 b b
        [:1, :-1]
        "#,
    );
}
