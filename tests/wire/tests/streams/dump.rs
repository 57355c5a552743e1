//! DUMP and RESTORE of streams: payloads as Redis writes them, older ones, damaged ones.

use wire::{Reply, Session, check};

/// Of Redis 7.0.15: four entries, of which one is deleted, and two groups.
const FROM_REDIS: &str = r#""\x13\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01@\\\\\x00\x00\x00\x1f\x00\x03\x01\x01\x01\x02\x01\x81a\x02\x81b\x02\x00\x01\x02\x01\x00\x01\x00\x01\x01\x01\x84text\x05\x05\x01\x03\x01\x00\x01\x01\x01\x02\x01\x84more\x05\x05\x01\x00\x01\x04\x01\xdf\xff\x02\x01\x01\x81c\x02\xf2\x90\xee\xfe\x04\x06\x01\x02\x01\xf4\xc9fw\x83c\x01\x00\x00\x096\x01\x03\x01\x04\x01\x05\x01\xff\x03\x81\x00\x00\x01c\x83wf\xca7\x01\x01\x01\x02\x04\x02\x01g\x05\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\xe8\x03\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\xd0\x07\x00\x00\x00\x00\x00\x00\x07\x02\x05alice}\xf01\xe5\xa1\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x03bob}\xf01\xe5\xa1\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x01h\x01\x01\x01\x00\x00\x0a\x00\xa9\xa9\x9d\x85\xfd`\xc9\x8c""#;

/// The same stream as Redis 7.2 writes it: a consumer was last active when it was last seen.
const FROM_REDIS_7_2: &str = r#""\x15\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01@\\\\\x00\x00\x00\x1f\x00\x03\x01\x01\x01\x02\x01\x81a\x02\x81b\x02\x00\x01\x02\x01\x00\x01\x00\x01\x01\x01\x84text\x05\x05\x01\x03\x01\x00\x01\x01\x01\x02\x01\x84more\x05\x05\x01\x00\x01\x04\x01\xdf\xff\x02\x01\x01\x81c\x02\xf2\x90\xee\xfe\x04\x06\x01\x02\x01\xf4\xc9fw\x83c\x01\x00\x00\x096\x01\x03\x01\x04\x01\x05\x01\xff\x03\x81\x00\x00\x01c\x83wf\xca7\x01\x01\x01\x02\x04\x02\x01g\x05\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\xe8\x03\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\xd0\x07\x00\x00\x00\x00\x00\x00\x07\x02\x05alice}\xf01\xe5\xa1\x01\x00\x00}\xf01\xe5\xa1\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x03bob}\xf01\xe5\xa1\x01\x00\x00}\xf01\xe5\xa1\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x01h\x01\x01\x01\x00\x00\x0b\x00Z\x8b\x13\x87V0\x01\xf2""#;

#[test]
fn restore_takes_what_redis_has_written() {
    check(&format!(
        r#"
        > RESTORE s 0 {FROM_REDIS}
        +OK
        > XRANGE s - +
        [["1-1", ["a", "1", "b", "text"]], ["5-0", ["c", "-70000"]], ["1526919030474-55", ["a", "3", "b", "4"]]]
        > XPENDING s g
        [:2, "1-1", "5-0", [["alice", "1"], ["bob", "1"]]]
        > XINFO GROUPS s
        [["name", "g", "consumers", :2, "pending", :2, "last-delivered-id", "5-0", "entries-read", (nil), "lag", (nil)], ["name", "h", "consumers", :0, "pending", :0, "last-delivered-id", "1-1", "entries-read", :1, "lag", (nil)]]
        > XINFO STREAM s
        ["length", :3, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "1526919030474-55", "max-deleted-entry-id", "1-2", "entries-added", :4, "recorded-first-entry-id", "1-1", "groups", :2, "first-entry", ["1-1", ["a", "1", "b", "text"]], "last-entry", ["1526919030474-55", ["a", "3", "b", "4"]]]
        > RESTORE s 0 {FROM_REDIS}
        -BUSYKEY Target key name already exists.
        > XADD s * a 5 b 6
        ~"*-0"
        # needs redis >= 7.2
        > RESTORE t 0 {FROM_REDIS_7_2}
        +OK
        > XPENDING t g
        [:2, "1-1", "5-0", [["alice", "1"], ["bob", "1"]]]
        // Others write a later version of the format behind the same bytes.
        # holdfast only
        > DUMP t
        {FROM_REDIS_7_2}
        > RESTORE u 0 {FROM_REDIS}
        +OK
        > DUMP u
        {FROM_REDIS_7_2}
        "#
    ));
}

#[test]
fn the_times_of_consumers_are_kept() {
    let session = Session::start();
    let mut connection = session.connect();
    for line in [
        "XADD s 1-1 a 1",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g reader STREAMS s >",
        "XREADGROUP GROUP g reader STREAMS s >",
        "XREADGROUP GROUP g never STREAMS s >",
    ] {
        connection.run(line);
    }
    let before = connection.run("XINFO STREAM s FULL");
    let Reply::Bulk(dump) = connection.run("DUMP s") else { panic!("a stream can be dumped") };
    connection.run("DEL s");
    assert_eq!(connection.run_with("RESTORE s 0", &[&dump]).to_string(), "+OK");
    assert_eq!(connection.run("XINFO STREAM s FULL"), before);
    connection.run("DEBUG RELOAD");
    assert_eq!(connection.run("XINFO STREAM s FULL"), before);
}

#[test]
fn an_empty_stream_is_a_value() {
    check(
        r#"
        XADD s MAXLEN 0 5-1 a 1 => "5-1"
        XLEN s => :0
        DEBUG RELOAD => +OK
        XADD s 5-1 a 1 => -ERR The ID specified in XADD is equal or smaller than the target stream top item
        > XINFO STREAM s
        ["length", :0, "radix-tree-keys", :0, "radix-tree-nodes", :1, "last-generated-id", "5-1", "max-deleted-entry-id", "0-0", "entries-added", :1, "recorded-first-entry-id", "0-0", "groups", :0, "first-entry", (nil), "last-entry", (nil)]
        "#,
    );
}

#[test]
fn damaged_payloads_are_refused() {
    let session = Session::start();
    let mut connection = session.connect();
    for line in
        ["XADD s 1-1 a 1 b text", "XADD s 1-2 a 2 b more", "XGROUP CREATE s g 0", "XREADGROUP GROUP g c STREAMS s >"]
    {
        connection.run(line);
    }
    let Reply::Bulk(dump) = connection.run("DUMP s") else { panic!("a stream can be dumped") };
    for at in 0..dump.len() {
        let mut damaged = dump.clone();
        damaged[at] ^= 0x15;
        let reply = connection.run_with("RESTORE t 0", &[&damaged]).to_string();
        assert_eq!(reply, "-ERR DUMP payload version or checksum are wrong", "byte {at}");
    }
}
