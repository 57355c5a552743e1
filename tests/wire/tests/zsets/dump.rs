//! DUMP and RESTORE of sorted sets: payloads as Redis writes them, older ones, damaged ones.

use wire::check;

#[test]
fn restore_takes_what_redis_has_written() {
    check(
        r#"
        // Scores that are integers.
        > RESTORE z0 0 "\x11,,\x00\x00\x00\n\x00\x81c\x02\xdf\xfd\x02\x81a\x02\x01\x01\x81b\x02\x02\x01\x81d\x02\xf2\xa0\x86\x01\x04\x81e\x02\xf4\x00\x00\x00\x00\x00\x00 \x00\t\xff\n\x00\xf6\a\xd5\xe4\xb9\x06\xc3\xed"
        +OK
        > OBJECT ENCODING z0
        "listpack"
        > ZRANGE z0 0 -1 WITHSCORES
        ["c", "-3", "a", "1", "b", "2", "d", "100000", "e", "9007199254740992"]
        // Fractions and infinities; the payload is compressed.
        > RESTORE z1 0 "\x11\xc3@D@L\x1fL\x00\x00\x00\x0c\x00\x81d\x02\x84-inf\x05\x81f\x02\x85-2.25\x06\x81b\x02\x930.3\x000\xe0\x05\x00\x174\x14\x81a\x02\x830.5\x04\x81e\x02\x851e+21\x06\x81c\x02\x83 ;\x01\x04\xff\n\x00BQ\x1e\xbcP\x87\xad\x19"
        +OK
        > OBJECT ENCODING z1
        "listpack"
        > ZRANGE z1 0 -1 WITHSCORES
        ["d", "-inf", "f", "-2.25", "b", "0.30000000000000004", "a", "0.5", "e", "1e+21", "c", "inf"]
        // Members that are numbers, an empty one, one that is no text.
        > RESTORE z2 0 "\x11!!\x00\x00\x00\n\x00\x01\x01\x01\x01\xdf8\x02\x02\x01\xf2p\x11\x01\x04\x03\x01\x80\x01\x04\x01\x82\x00\xff\x03\x05\x01\xff\n\x00\xa3\xac_\x90\x00\xb3\xdb\x0c"
        +OK
        > OBJECT ENCODING z2
        "listpack"
        > ZRANGE z2 0 -1 WITHSCORES
        ["1", "1", "-200", "2", "70000", "3", "", "4", "\x00\xff", "5"]
        // A long member makes it a skiplist.
        > RESTORE z3 0 "\x05\x01\xc3\x12@F\n01234567890\xe00\t\x0189\x00\x00\x00\x00\x00\x00\xf0?\n\x00\xc0\xc8\x0bG\x0b\xccb\xcd"
        +OK
        > OBJECT ENCODING z3
        "skiplist"
        > ZRANGE z3 0 -1 WITHSCORES
        ["0123456789012345678901234567890123456789012345678901234567890123456789", "1"]
        // A skiplist by its settings, restored where it is small.
        > RESTORE z4 0 "\x05\x05\x01c\x00\x00\x00\x00\x00\x00\xf0\x7f\x01eP\xef\xe2\xd6\xe4\x1aKD\x01b\x00\x00\x00\x00\x00\x00\x00@\x01a\x00\x00\x00\x00\x00\x00\xe8?\x01d\x00\x00\x00\x00\x00\x00\xf0\xff\n\x00J~\xf75f\xb7\xfa\xd8"
        +OK
        > OBJECT ENCODING z4
        "listpack"
        > ZRANGE z4 0 -1 WITHSCORES
        ["d", "-inf", "a", "0.75", "b", "2", "e", "1e+21", "c", "inf"]
        // Much that repeats.
        > RESTORE z5 0 "\x11\xc3@hAK\rK\x01\x00\x00\x18\x00\x97member-\xe0\x05\x06\x0400\x18\x00\x01\xe0\x0e\x1a\x021\x18\x01\xe0\x0f\x1a\x022\x18\x02\xe0\x0f\x1a\x023\x18\x03\xe0\x0f\x1a\x024\x18\x04\xe0\x0f\x1a\x025\x18\x05\xe0\x0f\x1a\x026\x18\x06\xe0\x0f\x1a\x027\x18\a\xe0\x0f\x1a\x028\x18\b\xe0\x0f\x1a\x029\x18\t\xe0\x0e\x1a\x0310\x18\n\xe0\x0f\x1a\x041\x18\x0b\x01\xff\n\x00\xc7\xc3\xb3\x9dT\xc3N\xf3"
        +OK
        > OBJECT ENCODING z5
        "listpack"
        > ZRANGE z5 0 -1 WITHSCORES
        ["member-member-member-00", "0", "member-member-member-01", "1", "member-member-member-02", "2", "member-member-member-03", "3", "member-member-member-04", "4", "member-member-member-05", "5", "member-member-member-06", "6", "member-member-member-07", "7", "member-member-member-08", "8", "member-member-member-09", "9", "member-member-member-10", "10", "member-member-member-11", "11"]
        "#,
    );
}

#[test]
fn restore_takes_what_older_versions_have_written() {
    check(
        r#"
        // Redis 1: scores as text, infinities as a length of their own.
        > RESTORE first 0 "\x03\x03\x01a\x031.5\x01b\xfe\x01c\xff\t\x00\xd6$\xe4\x1dOVk\xfe"
        +OK
        > ZRANGE first 0 -1 WITHSCORES
        ["c", "-inf", "a", "1.5", "b", "inf"]
        > OBJECT ENCODING first
        "listpack"
        // Up to Redis 6: a ziplist.
        > RESTORE ziplist 0 "\x0c\x19\x19\x00\x00\x00\x13\x00\x00\x00\x04\x00\x00\x01a\x03\x011\x03\x01b\x03\x032.5\xff\t\x00e\xc4,\xa4Q\r\x93\xe0"
        +OK
        > ZRANGE ziplist 0 -1 WITHSCORES
        ["a", "1", "b", "2.5"]
        > OBJECT ENCODING ziplist
        "listpack"
        ! ZADD ziplist 2 c
        > ZRANGE ziplist 0 -1 WITHSCORES
        ["a", "1", "c", "2", "b", "2.5"]
        "#,
    );
}

#[test]
fn restore_sorts_what_is_not_sorted() {
    check(
        r#"
        > RESTORE z 0 "\x05\x03\x01a\x00\x00\x00\x00\x00\x00\xf0?\x01c\x00\x00\x00\x00\x00\x00\"@\x01b\x00\x00\x00\x00\x00\x00\x00@\n\x00\xe0b\xd3\x1e\xc1I?("
        +OK
        > ZRANGE z 0 -1 WITHSCORES
        ["a", "1", "b", "2", "c", "9"]
        > ZRANK z c
        :2
        > ZREMRANGEBYRANK z 1 1
        :1
        > ZRANGE z 0 -1
        ["a", "c"]
        "#,
    );
}

#[test]
fn restore_refuses_what_is_no_sorted_set() {
    check(
        r#"
        # config sanitize-dump-payload yes
        // Three entries: a member without a score.
        > RESTORE z 0 "\x11\x10\x10\x00\x00\x00\x03\x00\x81a\x02\x811\x02\x81b\x02\xff\n\x00\xb7\xfca<\x0f\x83\x94x"
        -ERR Bad data format
        // A member twice.
        > RESTORE z 0 "\x11\x13\x13\x00\x00\x00\x04\x00\x81a\x02\x811\x02\x81a\x02\x812\x02\xff\n\x00\x97j(\x1a\xdf\x04\x99\xdf"
        -ERR Bad data format
        // No member.
        -ERR Bad data format
            RESTORE z 0 "\x11\a\a\x00\x00\x00\x00\x00\xff\n\x00\xbc?\r\xa1\xd5C3\x19"
            RESTORE z 0 "\x05\x00\n\x00\x95R\xefLD\xfat3"
        // A member twice, a score that is no number, an end that is missing: of a skiplist.
        -ERR Bad data format
            RESTORE z 0 "\x05\x02\x01a\x00\x00\x00\x00\x00\x00\xf0?\x01a\x00\x00\x00\x00\x00\x00\x00@\n\x00\x86\xe6r\xe9\xa0o\xc4\xeb"
            RESTORE z 0 "\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8\x7f\n\x00\xf0\xf9)\xa9\x06TY'"
            RESTORE z 0 "\x05\x02\x01a\x00\x00\x00\x00\x00\x00\xf0?\n\x00\xe5\xc4\x1a)Y\xdb-\x80"
        EXISTS z => :0
        "#,
    );
}
