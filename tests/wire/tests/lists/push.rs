//! LPUSH, RPUSH, LPUSHX, RPUSHX and LLEN.

use wire::check;

#[test]
fn pushes_to_both_ends() {
    check(
        r#"
        > LPUSH l a
        :1
        > LPUSH l b c
        :3
        > RPUSH l x
        :4
        > RPUSH l y z
        :6
        LRANGE l 0 -1 => ["c", "b", "a", "x", "y", "z"]
        LLEN l => :6
        TYPE l => +list
        OBJECT ENCODING l => "listpack" | "quicklist"
        LLEN nosuch => :0
        "#,
    );
}

#[test]
fn pushes_only_to_what_is_there() {
    check(
        r#"
        > LPUSHX l a
        :0
        > RPUSHX l a b
        :0
        > EXISTS l
        :0
        > RPUSH l m
        :1
        > LPUSHX l a b
        :3
        > RPUSHX l x y
        :5
        > LRANGE l 0 -1
        ["b", "a", "m", "x", "y"]
        "#,
    );
}

#[test]
fn elements_are_any_bytes_and_numbers_stay_as_they_were_written() {
    check(
        r#"
        > RPUSH l "" 0 00 -0 +1 1 -1 127 128 -129 65536 9223372036854775807 -9223372036854775808 9223372036854775808 1.0 " 1" "\x00\xff\r\n"
        :17
        > LRANGE l 0 -1
        ["", "0", "00", "-0", "+1", "1", "-1", "127", "128", "-129", "65536", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.0", " 1", "\x00\xff\r\n"]
        LLEN l => :17
        LINDEX l 11 => "9223372036854775807"
        LPOS l 00 => :2
        LPOS l 0 => :1
        LPOS l -0 => :3
        "#,
    );
}
