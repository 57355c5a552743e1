//! HGETEX, HSETEX, HGETDEL.

use wire::check;

#[test]
fn hgetex_without_options_is_hmget() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2
        > HEXPIREAT h 33177117420 FIELDS 1 a
        [:1]
        > HGETEX h FIELDS 3 a nosuch b
        ["1", (nil), "2"]
        > HEXPIRETIME h FIELDS 2 a b
        [:33177117420, :-1]
        > HGETEX nosuch FIELDS 2 a b
        [(nil), (nil)]
        "#,
    );
}

#[test]
fn hgetex_sets_and_removes_deadlines() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2 c 3
        > HGETEX h EX 100 FIELDS 2 a b
        ["1", "2"]
        > HTTL h FIELDS 3 a b c
        [:90..100, :90..100, :-1]
        > HGETEX h PX 100000 FIELDS 1 c
        ["3"]
        > HPTTL h FIELDS 1 c
        [:90000..100000]
        > HGETEX h EXAT 33177117420 FIELDS 1 a
        ["1"]
        > HEXPIRETIME h FIELDS 1 a
        [:33177117420]
        > HGETEX h PXAT 33177117420123 FIELDS 1 a
        ["1"]
        > HPEXPIRETIME h FIELDS 1 a
        [:33177117420123]
        > HGETEX h PERSIST FIELDS 2 a b
        ["1", "2"]
        > HTTL h FIELDS 2 a b
        [:-1, :-1]
        > HGETEX h exat 33177117420 fields 1 a
        ["1"]
        > HGETEX nosuch EX 100 FIELDS 1 a
        [(nil)]
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn hgetex_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2
        > HGETEX h EXAT 1 FIELDS 1 a
        ["1"]
        > HGETALL h
        ["b", "2"]
        > HGETEX h PXAT 1 FIELDS 2 a b
        [(nil), "2"]
        > EXISTS h
        :0
        ! HSET h a 1 b 2 c 3 d 4
        > HGETEX h EX 0 FIELDS 1 a
        ["1"]
        > HGETEX h PX 0 FIELDS 1 b
        ["2"]
        > HGETEX h EXAT 0 FIELDS 1 c
        ["3"]
        > HGETALL h
        ["d", "4"]
        "#,
    );
}

#[test]
fn hgetex_refuses_bad_arguments() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1
        -ERR The `numfields` parameter must match the number of arguments
            HGETEX h FIELDS 2 a
            HGETEX h FIELDS 1 a b
        -ERR Number of fields must be a positive integer
            HGETEX h FIELDS 0 a
            HGETEX h FIELDS -1 a
            HGETEX h FIELDS abc a
        -ERR Mandatory argument FIELDS is missing or not at the right position
            HGETEX h NOSUCH FIELDS 1 a
            HGETEX h EX 100 PX 100 FIELDS 1 a
            HGETEX h EX 100 PERSIST FIELDS 1 a
            HGETEX h PERSIST EX 100 FIELDS 1 a
            HGETEX h KEEPTTL FIELDS 1 a
            HGETEX h a b c
        -ERR value is not an integer or out of range
            HGETEX h EX FIELDS 1 a
            HGETEX h EX abc FIELDS 1 a
        -ERR invalid expire time, must be >= 0
            HGETEX h EX -1 FIELDS 1 a
            HGETEX h PXAT -1 FIELDS 1 a
        -ERR invalid expire time in 'hgetex' command
            HGETEX h EX 9223372036854775807 FIELDS 1 a
            HGETEX h EXAT 9223372036854775807 FIELDS 1 a
        HTTL h FIELDS 1 a => [:-1]
        "#,
    );
}

#[test]
fn hsetex_sets_fields() {
    check(
        r#"
        # needs redis >= 8.0
        > HSETEX h FIELDS 2 a 1 b 2
        :1
        > HGETALL h
        ~["a", "1", "b", "2"]
        > HTTL h FIELDS 2 a b
        [:-1, :-1]
        > HSETEX h EX 100 FIELDS 2 a 3 c 4
        :1
        > HMGET h a b c
        ["3", "2", "4"]
        > HTTL h FIELDS 3 a b c
        [:90..100, :-1, :90..100]
        > HSETEX h PX 100000 FIELDS 1 b 5
        :1
        > HPTTL h FIELDS 1 b
        [:90000..100000]
        > HSETEX h EXAT 33177117420 FIELDS 1 a 6
        :1
        > HEXPIRETIME h FIELDS 1 a
        [:33177117420]
        > HSETEX h PXAT 33177117420123 FIELDS 1 a 7
        :1
        > HPEXPIRETIME h FIELDS 1 a
        [:33177117420123]
        > hsetex h exat 33177117421 fields 1 a 8
        :1
        > HSETEX h FIELDS 1 a 9
        :1
        > HTTL h FIELDS 1 a
        [:-1]
        > HSETEX h FIELDS 2 a 1 a 2
        :1
        > HGET h a
        "2"
        "#,
    );
}

#[test]
fn hsetex_keepttl() {
    check(
        r#"
        # needs redis >= 8.0
        > HSETEX h EXAT 33177117420 FIELDS 1 a 1
        :1
        > HSETEX h KEEPTTL FIELDS 2 a 2 b 3
        :1
        > HMGET h a b
        ["2", "3"]
        > HEXPIRETIME h FIELDS 2 a b
        [:33177117420, :-1]
        "#,
    );
}

#[test]
fn hsetex_fnx_only_if_none_exists() {
    check(
        r#"
        # needs redis >= 8.0
        > HSETEX h FNX FIELDS 2 a 1 b 2
        :1
        > HSETEX h FNX FIELDS 2 b 3 c 4
        :0
        > HMGET h a b c
        ["1", "2", (nil)]
        > HSETEX h FNX EX 100 FIELDS 1 c 5
        :1
        > HTTL h FIELDS 1 c
        [:90..100]
        > HSETEX h EX 100 fnx FIELDS 1 d 5
        :1
        "#,
    );
}

#[test]
fn hsetex_fxx_only_if_all_exist() {
    check(
        r#"
        # needs redis >= 8.0
        > HSETEX h FXX FIELDS 1 a 1
        :0
        > EXISTS h
        :0
        ! HSET h a 1 b 2
        > HSETEX h FXX FIELDS 2 a 3 c 4
        :0
        > HMGET h a b c
        ["1", "2", (nil)]
        > HSETEX h FXX EXAT 33177117420 FIELDS 2 a 5 b 6
        :1
        > HMGET h a b
        ["5", "6"]
        > HEXPIRETIME h FIELDS 2 a b
        [:33177117420, :33177117420]
        > HSETEX h FXX KEEPTTL FIELDS 1 a 7
        :1
        > HEXPIRETIME h FIELDS 1 a
        [:33177117420]
        "#,
    );
}

#[test]
fn hsetex_with_an_instant_in_the_past_deletes() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2
        > HSETEX h EXAT 1 FIELDS 1 a 3
        :1
        > HGETALL h
        ["b", "2"]
        > HSETEX h PXAT 1 FIELDS 2 b 3 c 4
        :1
        > EXISTS h
        :0
        > HSETEX nosuch PXAT 1 FIELDS 1 a 1
        :1
        > HSETEX nosuch EX 0 FIELDS 1 a 1
        :1
        > EXISTS nosuch
        :0
        "#,
    );
}

#[test]
fn hsetex_refuses_bad_arguments() {
    check(
        r#"
        # needs redis >= 8.0
        -ERR wrong number of arguments for 'hsetex' command
            HSETEX h FIELDS 2 a 1
            HSETEX h FIELDS 1 a 1 b
            HSETEX h FIELDS 1 a 1 b 2
        -ERR invalid number of fields
            HSETEX h FIELDS 0 a 1
            HSETEX h FIELDS -1 a 1
            HSETEX h FIELDS abc a 1
        HSETEX h NOSUCH FIELDS 1 a 1 => -ERR unknown argument: NOSUCH
        HSETEX h NX FIELDS 1 a 1 => -ERR unknown argument: NX
        -ERR Only one of FXX or FNX arguments can be specified
            HSETEX h FNX FXX FIELDS 1 a 1
            HSETEX h FNX FNX FIELDS 1 a 1
        -ERR value is not an integer or out of range
            HSETEX h EX FIELDS 1 a 1
            HSETEX h EX abc FIELDS 1 a 1
        -ERR invalid expire time, must be >= 0
            HSETEX h EX -1 FIELDS 1 a 1
            HSETEX h EXAT -1 FIELDS 1 a 1
        HSETEX h EX 9223372036854775807 FIELDS 1 a 1 => -ERR invalid expire time in 'hsetex' command
        -ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified
            HSETEX h EX 100 KEEPTTL FIELDS 1 a 1
            HSETEX h EX 100 PX 100 FIELDS 1 a 1
        HSETEX h PERSIST FIELDS 1 a 1 => -ERR unknown argument: PERSIST
        HSETEX h a 1 b 2 => -ERR unknown argument: a
        EXISTS h => :0
        ! SET s x
        > HSETEX s FXX FIELDS 1 a 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn hgetdel() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2 c 3
        > HGETDEL h FIELDS 2 a nosuch
        ["1", (nil)]
        > HEXISTS h a
        :0
        > HGETDEL h FIELDS 2 b b
        ["2", (nil)]
        > HGETDEL h fields 1 c
        ["3"]
        > EXISTS h
        :0
        > HGETDEL h FIELDS 1 a
        [(nil)]
        > HGETDEL nosuch FIELDS 2 a b
        [(nil), (nil)]
        "#,
    );
}

#[test]
fn hgetdel_refuses_bad_arguments() {
    check(
        r#"
        # needs redis >= 8.0
        ! HSET h a 1 b 2
        -ERR The `numfields` parameter must match the number of arguments
            HGETDEL h FIELDS 2 a
            HGETDEL h FIELDS 1 a b
        -ERR Number of fields must be a positive integer
            HGETDEL h FIELDS 0 a
            HGETDEL h FIELDS -1 a
            HGETDEL h FIELDS abc a
        -ERR Mandatory argument FIELDS is missing or not at the right position
            HGETDEL h NOSUCH 1 a
            HGETDEL h a b c
        HLEN h => :2
        "#,
    );
}

#[test]
fn expired_fields_and_these_commands() {
    check(
        r#"
        # needs redis >= 8.0
        > HSETEX h PX 20 FIELDS 2 a 1 b 2
        :1
        ! HSET h keep 3
        # eventually
        > HGETEX h FIELDS 2 a b
        [(nil), (nil)]
        > HSETEX h FXX FIELDS 1 a 5
        :0
        > HSETEX h FNX FIELDS 1 a 5
        :1
        > HTTL h FIELDS 1 a
        [:-1]
        > HGETDEL h FIELDS 2 b keep
        [(nil), "3"]
        > HGETALL h
        ["a", "5"]
        "#,
    );
}
