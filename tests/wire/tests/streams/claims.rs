//! XNACK, and XREADGROUP with CLAIM: entries that consumers could not process go to others. As Redis 8.4 and 8.8 document
//! them.

use wire::{Session, check};

#[test]
fn a_refused_claim_drops_nothing() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-0", ["f", "v"]]]]]
        XDEL s 1-0 => :1
        > XREADGROUP GROUP g bob CLAIM 0 STREAMS s missing > >
        -NOGROUP No such key 'missing' or consumer group 'g' in XREADGROUP with GROUP option
        XREADGROUP GROUP g bob CLAIM 0 STREAMS s $ => ~-ERR The $ ID is meaningless *
        XPENDING s g - + 10 => [["1-0", "alice", :0..60000, :1]]
        XREADGROUP GROUP g bob CLAIM 0 STREAMS s > => (nil array)
        XPENDING s g - + 10 => []
        "#,
    );
}

#[test]
fn xreadgroup_claims_what_is_idle() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice COUNT 1 STREAMS s > => [["s", [["1-0", ["f", "v"]]]]]
        // What is pending comes first, with how long it was and how often it was delivered.
        > XREADGROUP GROUP g bob CLAIM 0 STREAMS s >
        [["s", [["1-0", ["f", "v"], :0..60000, :1], ["2-0", ["f", "v"], :0, :0]]]]
        XPENDING s g - + 10 => [["1-0", "bob", :0..60000, :2], ["2-0", "bob", :0..60000, :1]]
        XREADGROUP GROUP g carol CLAIM 9223372036854775807 STREAMS s > => (nil array)
        XREADGROUP GROUP g carol CLAIM 100000 STREAMS s > => (nil array)
        // Where pending entries are read again, it means nothing.
        XREADGROUP GROUP g bob CLAIM 0 STREAMS s 0 => [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
        XACK s g 1-0 => :1
        XREADGROUP GROUP g carol CLAIM 0 STREAMS s > => [["s", [["2-0", ["f", "v"], :0..60000, :2]]]]
        XADD s 3-0 f v => "3-0"
        XREADGROUP GROUP g carol CLAIM 0 COUNT 1 STREAMS s > => [["s", [["2-0", ["f", "v"], :0..60000, :3]]]]
        > XREADGROUP CLAIM 100000 GROUP g carol CLAIM 0 COUNT 2 STREAMS s >
        [["s", [["2-0", ["f", "v"], :0..60000, :4], ["3-0", ["f", "v"], :0, :0]]]]
        // NOACK is about new entries.
        XADD s 4-0 f v => "4-0"
        > XREADGROUP GROUP g dave NOACK CLAIM 0 STREAMS s >
        [["s", [["2-0", ["f", "v"], :0..60000, :5], ["3-0", ["f", "v"], :0..60000, :1], ["4-0", ["f", "v"], :0, :0]]]]
        XPENDING s g => [:2, "2-0", "3-0", [["dave", "2"]]]
        // A group that goes back gets entries twice in one reply.
        XGROUP SETID s g 2-0 => +OK
        > XREADGROUP GROUP g erin CLAIM 0 STREAMS s >
        [["s", [["2-0", ["f", "v"], :0..60000, :6], ["3-0", ["f", "v"], :0..60000, :2], ["3-0", ["f", "v"], :0, :0], ["4-0", ["f", "v"], :0, :0]]]]
        > XPENDING s g - + 10
        [["2-0", "erin", :0..60000, :7], ["3-0", "erin", :0..60000, :1], ["4-0", "erin", :0..60000, :1]]
        HELLO 3 => *
        XREADGROUP GROUP g erin CLAIM 0 COUNT 1 STREAMS s > => {"s" => [["2-0", ["f", "v"], :0..60000, :7]]}
        "#,
    );
}

#[test]
fn the_longest_idle_is_claimed_first() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XADD s 3-0 f v => "3-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g c STREAMS s > => [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]], ["3-0", ["f", "v"]]]]]
        XCLAIM s g c 0 1-0 IDLE 200000 JUSTID => ["1-0"]
        XCLAIM s g c 0 3-0 IDLE 300000 JUSTID => ["3-0"]
        XREADGROUP GROUP g d CLAIM 100000 COUNT 1 STREAMS s > => [["s", [["3-0", ["f", "v"], :300000..400000, :1]]]]
        XREADGROUP GROUP g d CLAIM 100000 STREAMS s > => [["s", [["1-0", ["f", "v"], :200000..300000, :1]]]]
        XREADGROUP GROUP g d CLAIM 100000 STREAMS s > => (nil array)
        "#,
    );
}

#[test]
fn what_is_pending_of_deleted_entries_is_not_claimed() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g c STREAMS s > => [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
        XDEL s 1-0 => :1
        XREADGROUP GROUP g d CLAIM 0 STREAMS s > => [["s", [["2-0", ["f", "v"], :0..60000, :1]]]]
        XTRIM s MAXLEN 0 => :1
        XREADGROUP GROUP g d CLAIM 0 STREAMS s > => (nil array)
        XGROUP DELCONSUMER s g d => :0..1
        XREADGROUP GROUP g d CLAIM 0 BLOCK 1 STREAMS s > => (nil array)
        "#,
    );
}

#[test]
fn what_claim_refuses() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XGROUP CREATE s g 0 => +OK
        -ERR min-idle-time is not an integer
            XREADGROUP GROUP g c CLAIM test STREAMS s >
            XREADGROUP GROUP g c CLAIM 5.5 STREAMS s >
            XREADGROUP GROUP g c CLAIM -0 STREAMS s >
        XREADGROUP GROUP g c CLAIM -10 STREAMS s > => -ERR min-idle-time must be a positive integer
        XREADGROUP GROUP g c CLAIM STREAMS s > => -ERR min-idle-time is not an integer
        XREADGROUP GROUP g CLAIM 50 c STREAMS s > => -ERR syntax error
        > XREADGROUP GROUP nosuch c CLAIM 5 STREAMS s >
        -NOGROUP No such key 's' or consumer group 'nosuch' in XREADGROUP with GROUP option
        > XREAD COUNT 2 CLAIM 10 STREAMS s 0-0
        -ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.
        "#,
    );
}

#[test]
fn who_waits_gets_what_becomes_idle_meanwhile() {
    check(
        r#"
        # needs redis >= 8.4
        XADD s 1-0 f v => "1-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-0", ["f", "v"]]]]]
        > XREADGROUP GROUP g bob BLOCK 0 CLAIM 300 STREAMS s >
        // It is idle for long enough while the client waits, and nothing else happens.
        1< [["s", [["1-0", ["f", "v"], :300..60000, :1]]]]
        XREADGROUP GROUP g bob BLOCK 5 CLAIM 100000 STREAMS s > => (nil array)
        > XREADGROUP GROUP g bob BLOCK 0 CLAIM 100000 STREAMS s >
        # until blocked_clients:1
        2> XADD s 2-0 f v => "2-0"
        1< [["s", [["2-0", ["f", "v"], :0, :0]]]]
        // Two wait: one gets the entry, and the other gets it once it is idle.
        XACK s g 1-0 2-0 => :2
        > XREADGROUP GROUP g alice BLOCK 0 CLAIM 200 STREAMS s >
        # until blocked_clients:1
        2> XREADGROUP GROUP g bob BLOCK 0 CLAIM 200 STREAMS s >
        # until blocked_clients:2
        3> XADD s 3-0 f v => "3-0"
        1< [["s", [["3-0", ["f", "v"], :0, :0]]]]
        2< [["s", [["3-0", ["f", "v"], :200..60000, :1]]]]
        "#,
    );
}

#[test]
fn xnack_releases_entries() {
    check(
        r#"
        # needs redis >= 8.8
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XADD s 3-0 f v => "3-0"
        XADD s 4-0 f v => "4-0"
        XGROUP CREATE s g 0 => +OK
        > XREADGROUP GROUP g c STREAMS s >
        [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]], ["3-0", ["f", "v"]], ["4-0", ["f", "v"]]]]]
        XNACK s g SILENT IDS 1 1-0 => :1
        XNACK s g FAIL IDS 3 2-0 9-9 8-8 => :1
        XNACK s g FATAL IDS 1 3-0 => :1
        > XPENDING s g - + 10
        [["1-0", "", :-1, :0], ["2-0", "", :-1, :1], ["3-0", "", :-1, :9223372036854775807], ["4-0", "c", :0..60000, :1]]
        XPENDING s g => [:4, "1-0", "4-0", [["c", "1"]]]
        XPENDING s g - + 10 c => [["4-0", "c", :0..60000, :1]]
        XREADGROUP GROUP g c STREAMS s 0 => [["s", [["4-0", ["f", "v"]]]]]
        XINFO CONSUMERS s g => [["name", "c", "pending", :1, "idle", :0..60000, "inactive", :0..60000]]
        > XINFO STREAM s FULL
        ["length", :4, "radix-tree-keys", :1, "radix-tree-nodes", :2, "last-generated-id", "4-0", "max-deleted-entry-id", "0-0", "entries-added", :4, "recorded-first-entry-id", "1-0", "entries", *, "groups", [["name", "g", "last-delivered-id", "4-0", "entries-read", :4, "lag", :0, "pel-count", :4, "nacked-count", :3, "pending", [["1-0", "", :0, :0], ["2-0", "", :0, :1], ["3-0", "", :0, :9223372036854775807], ["4-0", "c", :1.., :2]], "consumers", *]]]
        // Twice is twice, and it ends behind the others.
        XNACK s g SILENT IDS 2 2-0 2-0 => :2
        XPENDING s g 2-0 2-0 1 => [["2-0", "", :-1, :0]]
        XREADGROUP GROUP g d CLAIM 100000 COUNT 1 STREAMS s > => [["s", [["1-0", ["f", "v"], :-1, :0]]]]
        > XREADGROUP GROUP g d CLAIM 100000 STREAMS s >
        [["s", [["3-0", ["f", "v"], :-1, :9223372036854775807], ["2-0", ["f", "v"], :-1, :0]]]]
        > XPENDING s g - + 10
        [["1-0", "d", :0..60000, :1], ["2-0", "d", :0..60000, :1], ["3-0", "d", :0..60000, :9223372036854775807], ["4-0", "c", :0..60000, :2]]
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT 7 => :1
        XCLAIM s g e 99999999999999 1-0 => [["1-0", ["f", "v"]]]
        XNACK s g FAIL IDS 2 1-0 4-0 => :2
        XAUTOCLAIM s g f 99999999999999 0 => ["0-0", [["1-0", ["f", "v"]], ["4-0", ["f", "v"]]], []]
        XNACK s g FAIL IDS 2 1-0 4-0 => :2
        XACK s g 1-0 => :1
        // A released entry outlives its consumer.
        XGROUP DELCONSUMER s g f => :0
        XPENDING s g 4-0 4-0 1 => [["4-0", "", :-1, :3]]
        XDEL s 4-0 => :1
        XPENDING s g 4-0 4-0 1 => [["4-0", "", :-1, :3]]
        XCLAIM s g g 0 4-0 => []
        XPENDING s g 4-0 4-0 1 => []
        "#,
    );
}

#[test]
fn xnack_makes_entries_pending_by_force() {
    check(
        r#"
        # needs redis >= 8.8
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XGROUP CREATE s g 0 => +OK
        XNACK s g FAIL IDS 1 1-0 => :0
        XNACK s g FAIL FORCE IDS 2 1-0 9-9 => :1
        XNACK s g FATAL RETRYCOUNT 5 IDS 1 2-0 FORCE => :1
        XPENDING s g - + 10 => [["1-0", "", :-1, :0], ["2-0", "", :-1, :5]]
        XACK s g 1-0 => :1
        XNACK s g FATAL IDS 1 1-0 FORCE => :1
        XPENDING s g - + 10 => [["1-0", "", :-1, :9223372036854775807], ["2-0", "", :-1, :5]]
        "#,
    );
}

#[test]
fn xnack_refuses() {
    check(
        r#"
        # needs redis >= 8.8
        XNACK s g SILENT IDS 1 1-0 => -NOGROUP No such key 's' or consumer group 'g'
        XADD s 1-0 f v => "1-0"
        XNACK s g SILENT IDS 1 1-0 => -NOGROUP No such key 's' or consumer group 'g'
        XGROUP CREATE s g 0 => +OK
        XNACK s g BADMODE IDS 1 1-0 => -ERR mode must be SILENT, FAIL, or FATAL
        XNACK s g FAIL FATAL IDS 1 1-0 => -ERR Unrecognized XNACK option 'FATAL'
        XNACK s g FAIL IDS 1 1-0 BADOPT => -ERR Unrecognized XNACK option 'BADOPT'
        XNACK s g SILENT FORCE RETRYCOUNT 5 => -ERR syntax error, expected IDS keyword
        XNACK s g SILENT IDS abc 1-0 => -ERR numids must be a positive integer
        XNACK s g SILENT IDS 0 1-0 => -ERR numids must be a positive integer
        XNACK s g SILENT IDS 2 1-0 => -ERR number of IDs doesn't match numids
        XNACK s g FAIL IDS 1 not-a-valid-id => -ERR Invalid stream ID specified as stream command argument
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT abc => -ERR value is not an integer or out of range
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT -1 => -ERR Invalid RETRYCOUNT value, must be >= 0
        XNACK s g FAIL IDS 1 1-0 RETRYCOUNT => -ERR Unrecognized XNACK option 'RETRYCOUNT'
        XNACK s g FAIL IDS 1 1-0 2-0 => -ERR Unrecognized XNACK option '2-0'
        "#,
    );
}

#[test]
fn who_waits_gets_what_is_released() {
    check(
        r#"
        # needs redis >= 8.8
        XADD s 1-0 f v => "1-0"
        XADD s 2-0 f v => "2-0"
        XGROUP CREATE s g 0 => +OK
        XREADGROUP GROUP g alice STREAMS s > => [["s", [["1-0", ["f", "v"]], ["2-0", ["f", "v"]]]]]
        > XREADGROUP GROUP g bob BLOCK 0 CLAIM 100000 STREAMS s >
        # until blocked_clients:1
        2> XNACK s g FAIL IDS 2 1-0 2-0 => :2
        1< [["s", [["1-0", ["f", "v"], :-1, :1], ["2-0", ["f", "v"], :-1, :1]]]]
        XPENDING s g => [:2, "1-0", "2-0", [["bob", "2"]]]
        "#,
    );
}

#[test]
fn released_entries_are_kept() {
    let session = Session::start();
    if !session.has_redis("8.8") {
        return wire::skip("# needs redis >= 8.8, this is Redis 7.0.* or another that is older");
    }
    let mut connection = session.connect();
    for line in [
        "XADD s 1-0 f v",
        "XADD s 2-0 f v",
        "XADD s 3-0 f v",
        "XGROUP CREATE s g 0",
        "XREADGROUP GROUP g c STREAMS s >",
        "XNACK s g FATAL IDS 2 3-0 1-0",
    ] {
        connection.run(line);
    }
    let wire::Reply::Bulk(dump) = connection.run("DUMP s") else { panic!("a stream can be dumped") };
    assert_eq!(connection.run_with("RESTORE restored 0", &[&dump]).to_string(), "+OK");
    connection.run("COPY s copied");
    connection.run("DEBUG RELOAD");
    for key in ["s", "restored", "copied"] {
        let claimed = connection.run(&format!("XREADGROUP GROUP g d CLAIM 100000 STREAMS {key} >")).to_string();
        let expected = r#"[["s", [["3-0", ["f", "v"], :-1, :9223372036854775807], ["1-0", ["f", "v"], :-1, :9223372036854775807]]]]"#;
        assert_eq!(claimed, expected.replace("\"s\"", &format!("\"{key}\"")));
        assert_eq!(
            connection.run(&format!("XPENDING {key} g")).to_string(),
            r#"[:3, "1-0", "3-0", [["c", "1"], ["d", "2"]]]"#
        );
    }
}
