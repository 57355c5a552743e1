//! Registers as keys: TYPE, DUMP, RENAME and their kin, notifications, transactions, scripts.

use wire::own::{check, check_dump, check_own_events, start};

/// The binaries `types` and `replacing` have every command against every type.
#[test]
fn a_register_is_a_key_of_its_own_type() {
    check(
        r#"
        REG.PUT a 1 v                   => +APPLIED
        TYPE a                          => +register
        OBJECT ENCODING a               => "register"
        MEMORY USAGE a                  => :20..60
        SCAN 0 TYPE register COUNT 1000 => ["0", ["a"]]
        EXPIRE a 100                    => :1
        REG.PUT a 2 w                   => +APPLIED
        REG.PUT a 4 w ORDERED           => +BUFFERED
        TTL a                           => :99..100
        PEXPIRE a 1                     => :1
        # eventually
        > EXISTS a
        :0
        REG.PUT a 1 again               => +APPLIED
        REG.PUT "" 1 "no name"          => +APPLIED
        REG.GET ""                      => ["no name", "1"]
        "#,
    );
}

#[test]
fn versions_and_buffer_move_with_the_register() {
    check(
        r#"
        REG.INCRBY a 1 7 ORDERED    => +APPLIED
        REG.INCRBY a 3 30 ORDERED   => +BUFFERED
        EXPIRE a 100                => :1
        COPY a b                    => :1
        RENAME a c                  => +OK
        MOVE c 9                    => :1
        SELECT 9                    => +OK
        REG.INCRBY c 1 7 ORDERED    => +DUPLICATE
        REG.INCRBY c 1 8 ORDERED    => +MISMATCH
        REG.INCRBY c 2 1 ORDERED    => +APPLIED
        REG.GET c                   => ["38", "3"]
        TTL c                       => :99..100
        SELECT 0                    => +OK
        REG.GET b                   => ["7", "1"]
        REG.SEAL b 4                => :1
        REG.GET b                   => ["37", "3"]
        "#,
    );
}

#[test]
fn a_dump_holds_the_whole_register() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.pipeline(&[
        "REG.PUT plain 1.5 v",
        "REG.INCRBY sum 9 -4",
        "REG.PUT waits 3 c ORDERED",
        "REG.INCRBY waits 5 1 ORDERED",
        "REG.SEAL sealed 8",
        "REG.PUT sealed 9 i ORDERED",
    ]);
    for name in ["plain", "sum", "waits", "sealed"] {
        check_dump(&mut connection, name, &[format!("REG.GET {name}")]);
    }
}

#[test]
fn a_change_is_notified_and_nothing_else_is() {
    check_own_events(
        r#"
        REG.PUT a 2 b ORDERED => new a, reg.put a
        REG.PUT a 2 b ORDERED =>
        REG.PUT a 2 c ORDERED =>
        REG.PUT a 1 a ORDERED => reg.put a
        REG.PUT a 1 a =>
        REG.INCRBY n 1 5 => new n, reg.incrby n
        REG.INCRBY n 1 5 =>
        REG.SEAL a 3 =>
        REG.SEAL a 7 => reg.seal a
        REG.PUT a 8 h ORDERED => reg.put a
        REG.SEAL a 8 => reg.seal a
        REG.GET a =>
        REG.GET nosuch => keymiss nosuch
        REG.SNAPSHOT PREFIX a STORE check => new check, reg.snapshot check
        REG.PUT ab 1 v => new ab, reg.put ab
        REG.RESTORE FROM check => reg.restore ab, reg.restore a
        REG.RESTORE FROM check MERGE =>
        "#,
    );
}

#[test]
fn registers_work_in_transactions_and_scripts() {
    check(
        r#"
        MULTI                       => +OK
        REG.PUT a 2 b ORDERED       => +QUEUED
        REG.PUT a 1 a ORDERED       => +QUEUED
        REG.GET a                   => +QUEUED
        REG.SNAPSHOT PREFIX a POSITION p STORE check => +QUEUED
        REG.PUT a 3 c               => +QUEUED
        REG.RESTORE FROM check      => +QUEUED
        REG.GET a                   => +QUEUED
        EXEC                        => [+BUFFERED, +APPLIED, ["b", "2"], :1, +APPLIED, [:1, "p"], ["b", "2"]]
        > EVAL "return redis.call('REG.INCRBY', KEYS[1], '1', '5')" 1 n
        +APPLIED
        > EVAL "return redis.call('REG.GET', KEYS[1])" 1 n
        ["5", "1"]
        > EVAL "local blob = redis.call('REG.SNAPSHOT', 'KEYS', '1', 'a') redis.call('DEL', 'a') return redis.call('REG.RESTORE', blob)" 0
        [:1, (nil)]
        REG.GET a                   => ["b", "2"]
        TXN.BEGIN                   => +OK
        REG.INCRBY n 2 1            => +APPLIED
        REG.GET n                   => ["6", "2"]
        > REG.SNAPSHOT
        -ERR REG.SNAPSHOT cannot be part of an interactive transaction: its keys are not all arguments; send it outside of one
        TXN.ROLLBACK                => +OK
        REG.GET n                   => ["5", "1"]
        "#,
    );
}
