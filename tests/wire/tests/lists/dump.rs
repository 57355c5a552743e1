//! DUMP and RESTORE of lists: payloads as Redis writes them, older ones, damaged ones.

use wire::{Session, check};

#[test]
fn a_dump_has_the_bytes_of_redis_7_0() {
    let session = Session::start();
    if session.product() != wire::Product::Holdfast && session.has_redis("7.2") {
        return wire::skip("a newer Redis has another version in its payloads");
    }
    session.check(
        r#"
        > RPUSH a x 12 "" -70000
        :4
        > DUMP a
        "\x12\x01\x02\x13\x13\x00\x00\x00\x04\x00\x81x\x02\x0c\x01\x80\x01\xf2\x90\xee\xfe\x04\xff\n\x00\n\x16j\xee\xc8\xcc\xb7\xfb"
        > DUMP nosuch
        (nil)
        "#,
    );
}

#[test]
fn restore_takes_what_redis_has_written() {
    check(
        r#"
        > RESTORE l 0 "\x12\x01\x02\x13\x13\x00\x00\x00\x04\x00\x81x\x02\x0c\x01\x80\x01\xf2\x90\xee\xfe\x04\xff\n\x00\n\x16j\xee\xc8\xcc\xb7\xfb"
        +OK
        LRANGE l 0 -1 => ["x", "12", "", "-70000"]
        TYPE l => +list
        OBJECT ENCODING l => "listpack" | "quicklist"
        > RESTORE l 0 "\x12\x01\x02\x13\x13\x00\x00\x00\x04\x00\x81x\x02\x0c\x01\x80\x01\xf2\x90\xee\xfe\x04\xff\n\x00\n\x16j\xee\xc8\xcc\xb7\xfb"
        -BUSYKEY Target key name already exists.
        "#,
    );
}
