//! CELL.INIT, CELL.GET, CELL.GETV, CELL.MGET, CELL.SET, CELL.CAS, CELL.DEL and CELL.LIST: what they do and reply, and what they refuse.

use wire::own::{check, pages, run_all, start};

#[test]
fn init_is_idempotent() {
    check(
        r#"
        CELL.INIT a first               => :1
        CELL.INIT a second              => :1
        CELL.GET a                      => "first"
        CELL.SET a third                => :2
        CELL.INIT a fourth EX 100       => :2
        CELL.GETV a                     => ["third", :2, :1700000000000000..]
        TTL a                           => :-1
        CELL.INIT b x PX 100000         => :1
        PTTL b                          => :1..100000
        CELL.INIT e ""                  => :1
        CELL.GET e                      => ""
        "#,
    );
}

#[test]
fn set_always_succeeds_and_counts() {
    check(
        r#"
        CELL.GET a                      => (nil)
        CELL.GETV a                     => (nil)
        CELL.SET a v                    => :1
        CELL.SET a v                    => :2
        CELL.SET a w EX 100             => :3
        TTL a                           => :99..100
        CELL.SET a x                    => :4
        TTL a                           => :99..100
        CELL.SET a y PX 50000           => :5
        PTTL a                          => :1..50000
        CELL.SET a z persist            => :6
        TTL a                           => :-1
        CELL.SET a z PERSIST            => :7
        > cell.get a
        "z"
        "#,
    );
}

#[test]
fn mget_reads_several_cells() {
    check(
        r#"
        CELL.SET a 1                    => :1
        CELL.SET a 2                    => :2
        CELL.SET b "" EX 100            => :1
        > CELL.MGET a nosuch b a
        [["2", :2, :1700000000000000..], (nil), ["", :1, :1700000000000000..], ["2", :2, :1700000000000000..]]
        SET s x                         => +OK
        CELL.MGET a s                   => ~-WRONGTYPE * wrong kind of value: the key's type is *
        CELL.MGET a ""                  => -ERR the name of a cell must have 1 to 1024 bytes
        PEXPIRE b 1                     => :1
        # eventually
        > CELL.MGET b
        [(nil)]
        MULTI                           => +OK
        CELL.SET a 3                    => +QUEUED
        CELL.MGET a c                   => +QUEUED
        EXEC                            => [:3, [["3", :3, *], (nil)]]
        > EVAL "return redis.call('CELL.MGET', KEYS[1], KEYS[2])[1][1]" 2 a c
        "3"
        TXN.BEGIN                       => +OK
        CELL.SET c new                  => :1
        CELL.MGET a c                   => [["3", :3, *], ["new", :1, *]]
        TXN.COMMIT                      => :1..
        HELLO 3                         => *
        CELL.MGET a nosuch              => [["3", :3, *], _]
        "#,
    );
}

#[test]
fn cas_writes_when_the_version_is_the_expected_one() {
    check(
        r#"
        CELL.CAS a 1 v                  => (nil)
        EXISTS a                        => :0
        CELL.CAS a NONE v1              => :1
        CELL.CAS a none other           => (nil)
        CELL.CAS a 0 other              => (nil)
        CELL.CAS a 1 v2                 => :2
        CELL.CAS a 1 late               => (nil)
        CELL.CAS a 3 early              => (nil)
        CELL.GETV a                     => ["v2", :2, *]
        CELL.CAS a 2 v3 EX 100          => :3
        CELL.CAS a 2 v4 PERSIST         => (nil)
        TTL a                           => :99..100
        CELL.CAS a 3 v4 PERSIST         => :4
        TTL a                           => :-1
        CELL.CAS b 0 v1 PX 100000       => :1
        PTTL b                          => :1..100000
        "#,
    );
}

#[test]
fn cas_tells_the_current_state() {
    check(
        r#"
        CELL.CAS a 3 v WITHCURRENT              => [(nil), (nil), (nil)]
        CELL.CAS a NONE v1 WITHCURRENT          => [:1, "v1", :1]
        CELL.CAS a NONE other WITHCURRENT       => [(nil), "v1", :1]
        CELL.CAS a 1 v2 withcurrent EX 100      => [:2, "v2", :2]
        CELL.CAS a 1 v3 PERSIST WITHCURRENT     => [(nil), "v2", :2]
        HELLO 3                                 => *
        CELL.CAS a 9 v WITHCURRENT              => [_, "v2", :2]
        CELL.CAS nosuch 9 v WITHCURRENT         => [_, _, _]
        CELL.CAS nosuch 9 v                     => _
        CELL.GET nosuch                         => _
        CELL.GETV nosuch                        => _
        "#,
    );
}

#[test]
fn a_removed_cell_begins_anew() {
    check(
        r#"
        CELL.DEL a                      => :0
        CELL.SET a v1                   => :1
        CELL.SET a v2                   => :2
        CELL.DEL a IF 1                 => :0
        CELL.DEL a IF 3                 => :0
        CELL.DEL a if 2                 => :1
        EXISTS a                        => :0
        CELL.HISTORY a                  => []
        CELL.SET a v                    => :1
        CELL.HISTORY a                  => [["v", :1, *]]
        CELL.DEL a                      => :1
        CELL.INIT a x PX 1              => :1
        # eventually
        > CELL.GET a
        (nil)
        CELL.CAS a 1 y                  => (nil)
        CELL.CAS a NONE y               => :1
        TTL a                           => :-1
        "#,
    );
}

#[test]
fn any_bytes_are_a_value() {
    check(
        r#"
        CELL.SET "k\r\n\xff" "a\x00b\r\n"   => :1
        CELL.GETV "k\r\n\xff"               => ["a\x00b\r\n", :1, *]
        CELL.SET n 12                       => :1
        CELL.GET n                          => "12"
        CELL.SET n 012                      => :2
        CELL.GET n                          => "012"
        "#,
    );
}

#[test]
fn wrong_arguments_are_named() {
    const NO_VERSION: &str = "-ERR the expected version must be NONE or a whole number not below 0, not";
    const NO_BLOCK: &str = "-ERR BLOCK needs AFTER, which says what to wait for: send AFTER version BLOCK ms";
    check(&format!(
        r#"
        CELL.SET a v                                => :1
        CELL.CAS a x v                              => {NO_VERSION} 'x'
        CELL.CAS a -1 v                             => {NO_VERSION} '-1'
        CELL.CAS a 9223372036854775808 v            => {NO_VERSION} '9223372036854775808'
        CELL.CAS a 1 v WITHCURRENT WITHCURRENT      => -ERR WITHCURRENT is given twice
        CELL.SET a v EX                             => ~-ERR missing: the time behind EX. Usage: *
        CELL.SET a v EX 0                           => -ERR the time behind EX must be a positive number that fits in 63 bits of ms
        CELL.SET a v PX x                           => -ERR the time behind PX must be a positive number that fits in 63 bits of ms
        CELL.SET a v EX 9223372036854775807         => -ERR the time behind EX must be a positive number that fits in 63 bits of ms
        CELL.SET a v EX 5 PX 5                      => -ERR the lifetime is given twice
        CELL.SET a v EX 5 PERSIST                   => -ERR the lifetime is given twice
        CELL.SET a v EXAT 99999999999               => ~-ERR unknown option 'EXAT'. *
        CELL.SET a v WITHCURRENT                    => ~-ERR unknown option 'WITHCURRENT'. *
        CELL.INIT a v PERSIST                       => ~-ERR unknown option 'PERSIST'. *
        CELL.DEL a 1                                => ~-ERR unknown option '1'. *
        CELL.DEL a IF                               => ~-ERR missing: the version behind IF. Usage: *
        CELL.DEL a IF 0                             => -ERR the version behind IF must be a whole number not below 1, not '0'
        CELL.GETV a VERSION 0                       => -ERR the version behind VERSION must be a whole number not below 1, not '0'
        CELL.GETV a VERSION 1 AFTER 1               => -ERR the version is given twice
        CELL.GETV a ASOF -1                         => -ERR the time behind ASOF must be a whole number not below 0, not '-1'
        CELL.GETV a AFTER                           => ~-ERR missing: the version behind AFTER. Usage: *
        CELL.GETV a BLOCK 5                         => {NO_BLOCK}
        CELL.GETV a VERSION 1 BLOCK 5               => {NO_BLOCK}
        CELL.GETV a AFTER 1 BLOCK -1                => -ERR the time behind BLOCK must be a whole number not below 0, not '-1'
        CELL.HISTORY a LIMIT -1                     => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        CELL.HISTORY a BEFORE 0                     => -ERR the version behind BEFORE must be a whole number not below 1, not '0'
        CELL.HISTORY a LIMIT 1 LIMIT 1              => -ERR LIMIT is given twice
        CELL.LIST CURSOR x                          => -ERR the cursor 'x' is none of ours: begin with 0
        CELL.LIST LIMIT -1                          => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        CELL.LIST dev/                              => ~-ERR unknown option 'dev/'. *
        CELL.LIST PREFIX a PREFIX b                 => -ERR PREFIX is given twice
        CELL.LIST PREFIX                            => ~-ERR missing: the prefix. Usage: *
        CELL.GETV a                                 => ["v", :1, *]
        "#
    ));
}

#[test]
fn names_have_limits() {
    const LEN: &str = "-ERR the name of a cell must have 1 to 1024 bytes";
    const NUL: &str = "-ERR the name of a cell must not contain a NUL byte: choose another name";
    const RESERVED: &str =
        "-ERR the name of a cell must not begin with '_strata/', which is reserved: choose another name";
    check(&format!(
        r#"
        CELL.SET "" v               => {LEN}
        CELL.SET {long} v           => {LEN}
        CELL.SET {longest} v        => :1
        CELL.SET "a\x00b" v         => {NUL}
        CELL.SET _strata/x v        => {RESERVED}
        CELL.SET _strata v          => :1
        CELL.INIT "" v              => {LEN}
        CELL.CAS "" NONE v          => {LEN}
        CELL.GET _strata/x          => {RESERVED}
        CELL.GETV "a\x00b"          => {NUL}
        CELL.MGET a _strata/x       => {RESERVED}
        CELL.HISTORY ""             => {LEN}
        CELL.DEL ""                 => {LEN}
        CELL.SET a v                => :1
        RENAME a ""                 => {LEN}
        RENAMENX a _strata/a        => {RESERVED}
        COPY a "a\x00"              => {NUL}
        COPY a {long} REPLACE       => {LEN}
        DBSIZE                      => :3
        SET s v                     => +OK
        RENAME s _strata/s          => +OK
        COPY _strata/s ""           => :1
        "#,
        long = "x".repeat(1025),
        longest = "x".repeat(1024)
    ));
}

#[test]
fn cells_alone_are_listed() {
    check(
        r#"
        CELL.LIST                           => ["0", []]
        CELL.SET dev/a v                    => :1
        CELL.SET dev/b v                    => :1
        CELL.SET prod/a v PX 1              => :1
        SET dev/s x                         => +OK
        HSET dev/h f v                      => :1
        CELL.LIST PREFIX dev/               => ["0", ~["dev/a", "dev/b"]]
        CELL.LIST prefix dev/a limit 10     => ["0", ["dev/a"]]
        CELL.LIST PREFIX nosuch             => ["0", []]
        CELL.LIST LIMIT 0                   => ["0", []]
        # eventually
        > CELL.LIST CURSOR 0
        ["0", ~["dev/a", "dev/b"]]
        "#,
    );
}

#[test]
fn pages_have_each_cell_once_whatever_comes_and_goes() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    run_all(&mut connection, (0..1_000).map(|number| format!("CELL.SET cell:{number} v")));
    for limit in [10, 77, 1_000_000] {
        let mut turn = 0;
        let found = pages(&mut connection, "CELL.LIST PREFIX cell:", limit, |connection| {
            turn += 1;
            connection.pipeline(&[format!("CELL.SET other:{turn} v"), format!("CELL.DEL other:{}", turn / 2)]);
        });
        assert_eq!(found, 1_000, "in pages of {limit}");
    }
}
