//! Cells as keys: TYPE, DUMP, RENAME and their kin, notifications, transactions, scripts, limits of the counter.

use wire::own::{check, check_dump, check_own_events, payload, start};

/// The binaries `types` and `replacing` have every command against every type.
#[test]
fn a_cell_is_a_key_of_its_own_type() {
    check(
        r#"
        CELL.SET a v                => :1
        CELL.SET a w                => :2
        TYPE a                      => +cell
        OBJECT ENCODING a           => "cell"
        OBJECT REFCOUNT a           => :1
        MEMORY USAGE a              => :40..2000
        SCAN 0 TYPE cell COUNT 1000 => ["0", ["a"]]
        KEYS *                      => ["a"]
        DEL a                       => :1
        CELL.INIT a v               => :1
        EXPIRE a 100                => :1
        CELL.CAS a 1 w              => :2
        TTL a                       => :99..100
        PERSIST a                   => :1
        "#,
    );
}

#[test]
fn versions_and_history_move_with_the_cell() {
    check(
        r#"
        CELL.SET a 1                => :1
        CELL.SET a 2                => :2
        CELL.SET a 3 EX 100         => :3
        RENAME a b                  => +OK
        CELL.HISTORY b              => [["3", :3, *], ["2", :2, *], ["1", :1, *]]
        TTL b                       => :99..100
        COPY b c                    => :1
        CELL.CAS c 3 4              => :4
        CELL.HISTORY c LIMIT 2      => [["4", :4, *], ["3", :3, *]]
        CELL.HISTORY b LIMIT 1      => [["3", :3, *]]
        MOVE b 3                    => :1
        SELECT 3                    => +OK
        CELL.CAS b 3 x              => :4
        TTL b                       => :99..100
        "#,
    );
}

#[test]
fn a_dump_restores_everything() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for (name, writes, len) in [("short", 1, 5), ("several", 3, 40), ("long", 200, 100), ("wide", 2, 100_000)] {
        for number in 0..writes {
            let value = number.to_string().repeat(len).into_bytes();
            connection.run_args(&[b"CELL.SET", name.as_bytes(), &value]);
        }
        check_dump(&mut connection, name, &[format!("CELL.HISTORY {name}")]);
        let payload = connection.run_args(&["DUMP", name]);
        for refused in ["", "_strata/x"] {
            let reply = connection.run_args(&[b"RESTORE", refused.as_bytes(), b"0", payload.bytes()]);
            assert!(reply.to_string().starts_with("-ERR the name of a cell"), "{reply}");
        }
        assert_eq!(connection.run(&format!("CELL.CAS {name} {writes} next")).integer(), writes + 1);
    }
}

/// Payloads whose checksum is right and whose image is not, with a counter at its end, or of a type that is not ours. They
/// were made by hand.
#[test]
fn payloads_are_not_trusted() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let mut restore =
        |payload: &[u8]| connection.run_args(&[b"RESTORE" as &[u8], b"a", b"0", payload, b"REPLACE"]).to_string();
    const MAX: [u8; 9] = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let full = [&[0, 1][..], &MAX, &[5, 1, b'v']].concat();
    let last = [&[0, 1, 0][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &[1, b'v']].concat();
    for (tag, image) in [
        (5, &b""[..]),
        (5, b"\x00"),
        (5, b"\x00\x00\x00"),
        (5, b"\x01\x01\x00\x05\x01v"),
        (5, b"\x00\x01\x00\x05\x01v!"),
        (5, b"\x00\x02\x00\x05\x01v"),
        (5, b"\x00\x02\x00\x05\x01v\x00\x01v"),
        (5, b"\x00\x01\x00\x05\xff\xff\xff\xff\x0fv"),
        (5, b"\x00\x02\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x05\x01v\x05\x01v"),
        (1, b"\x00\x01v"),
        (6, b"\x00\x01\x00\x05\x01v"),
        (255, b""),
    ] {
        assert_eq!(restore(&payload(tag, image)), "-ERR Bad data format", "{tag} {}", image.escape_ascii());
    }
    assert_eq!(restore(&payload(5, &full)), "+OK");
    let mut connection = session.connect();
    assert_eq!(connection.run("CELL.GETV a").to_string(), "[\"v\", :9223372036854775807, :5]");
    for command in ["CELL.SET a w", "CELL.CAS a 9223372036854775807 w"] {
        let refused = "-ERR the version of the cell is at its maximum: CELL.DEL it to begin anew at 1";
        assert_eq!(connection.run(command).to_string(), refused);
    }
    assert_eq!(connection.run("CELL.HISTORY a").to_string(), "[[\"v\", :9223372036854775807, :5]]");
    assert_eq!(connection.run("CELL.GETV a AFTER 9223372036854775807 BLOCK 5").to_string(), "(nil)");
    connection.run("DEL a");
    let reply = connection.run_args(&[b"RESTORE" as &[u8], b"a", b"0", &payload(5, &last)]);
    assert_eq!(reply.to_string(), "+OK");
    let refused = "-ERR the time of the cell is at its maximum: CELL.DEL it to begin anew";
    assert_eq!(connection.run("CELL.SET a w").to_string(), refused);
}

#[test]
fn changes_are_told_and_nothing_else() {
    check_own_events(
        r#"
        CELL.INIT a v => new a, cell.init a
        CELL.INIT a v =>
        CELL.SET a v => cell.set a
        CELL.SET a v EX 100 => cell.set a, expire a
        CELL.CAS a 1 v =>
        CELL.CAS a 3 v PERSIST => cell.cas a, persist a
        CELL.CAS b NONE v PX 100000 => new b, cell.cas b, expire b
        CELL.GET a =>
        CELL.GET nosuch => keymiss nosuch
        CELL.DEL a IF 1 =>
        CELL.DEL a => cell.del a
        CELL.DEL a =>
        "#,
    );
}

#[test]
fn cells_work_in_transactions_and_scripts() {
    check(
        r#"
        MULTI                                        => +OK
        CELL.INIT a 1                                => +QUEUED
        CELL.CAS a 1 2                               => +QUEUED
        CELL.CAS a 1 3                               => +QUEUED
        CELL.GETV a AFTER 2 BLOCK 0                  => +QUEUED
        CELL.GETV a VERSION 1                        => +QUEUED
        CELL.LIST                                    => +QUEUED
        EXEC                                         => [:1, :2, (nil), (nil), ["1", :1, *], ["0", ["a"]]]
        EVAL "return redis.call('cell.cas', KEYS[1], 2, ARGV[1])" 1 a x => :3
        EVAL "return redis.call('cell.getv', KEYS[1], 'AFTER', 3, 'BLOCK', 0)" 1 a => (nil)
        EVAL "return redis.call('cell.getv', KEYS[1])[1]" 1 a => "x"
        WATCH a                                      => +OK
        2> CELL.SET a y
        :4
        MULTI        => +OK
        CELL.SET a z => +QUEUED
        > EXEC
        (nil array)
        "#,
    );
}

#[test]
fn a_tracking_client_learns_of_a_new_version() {
    check(
        r#"
        HELLO 3            => *
        CLIENT TRACKING on => +OK
        CELL.SET a v       => :1
        CELL.GETV a        => ["v", :1, *]
        2> CELL.SET a w
        :2
        1< push["invalidate", ["a"]]
        "#,
    );
}
