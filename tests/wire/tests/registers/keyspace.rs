//! Registers as keys: TYPE, DUMP, RENAME and their kin, notifications, transactions, scripts.

use crate::{check, start};
use wire::check_events;

#[test]
fn a_register_is_a_key_of_its_own_type() {
    check(
        r#"
        > REG.PUT a 1 v
        +APPLIED
        > TYPE a
        +register
        > OBJECT ENCODING a
        "register"
        > MEMORY USAGE a
        :20..60
        > SCAN 0 TYPE register COUNT 1000
        ["0", ["a"]]
        > GET a
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > CELL.SET a v
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > SET s x
        +OK
        > REG.PUT s 1 v
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > REG.MGET a s
        ~-WRONGTYPE * wrong kind of value: the key's type is *
        > EXPIRE a 100
        :1
        > REG.PUT a 2 w
        +APPLIED
        > REG.PUT a 4 w ORDERED
        +BUFFERED
        > TTL a
        :99..100
        > SET a x
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > DEL a
        :1
        > REG.PUT a 1 anew
        +APPLIED
        > PEXPIRE a 1
        :1
        # eventually
        > EXISTS a
        :0
        > REG.PUT a 1 again
        +APPLIED
        > REG.PUT "" 1 "no name"
        +APPLIED
        > REG.GET ""
        ["no name", "1"]
        "#,
    );
}

#[test]
fn versions_and_buffer_move_with_the_register() {
    check(
        r#"
        > REG.INCRBY a 1 7 ORDERED
        > REG.INCRBY a 3 30 ORDERED
        +APPLIED
        +BUFFERED
        > EXPIRE a 100
        :1
        > COPY a b
        :1
        > RENAME a c
        +OK
        > MOVE c 9
        :1
        > SELECT 9
        +OK
        > REG.INCRBY c 1 7 ORDERED
        +DUPLICATE
        > REG.INCRBY c 1 8 ORDERED
        +MISMATCH
        > REG.INCRBY c 2 1 ORDERED
        +APPLIED
        > REG.GET c
        ["38", "3"]
        > TTL c
        :99..100
        > SELECT 0
        +OK
        > REG.GET b
        ["7", "1"]
        > REG.SEAL b 4
        :1
        > REG.GET b
        ["37", "3"]
        "#,
    );
}

#[test]
fn a_dump_holds_the_whole_register() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for line in [
        "REG.PUT plain 1.5 v",
        "REG.INCRBY sum 9 -4",
        "REG.PUT waits 3 c ORDERED",
        "REG.INCRBY waits 5 1 ORDERED",
        "REG.SEAL sealed 8",
        "REG.PUT sealed 9 i ORDERED",
    ] {
        connection.run(line);
    }
    for name in ["plain", "sum", "waits", "sealed"] {
        let payload = connection.run(&format!("DUMP {name}"));
        connection.run("DEL copy");
        assert_eq!(connection.run_with("RESTORE copy 0", &[payload.bytes()]).to_string(), "+OK");
        assert_eq!(connection.run("DUMP copy"), payload, "{name}");
        assert_eq!(connection.run("REG.GET copy"), connection.run(&format!("REG.GET {name}")));
    }
}

#[test]
fn a_change_is_notified_and_nothing_else_is() {
    if start().is_none() {
        return;
    }
    check_events(
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
        "#,
    );
}

#[test]
fn registers_work_in_transactions_and_scripts() {
    check(
        r#"
        > MULTI
        +OK
        > REG.PUT a 2 b ORDERED
        +QUEUED
        > REG.PUT a 1 a ORDERED
        +QUEUED
        > REG.GET a
        +QUEUED
        > EXEC
        [+BUFFERED, +APPLIED, ["b", "2"]]
        > EVAL "return redis.call('REG.INCRBY', KEYS[1], '1', '5')" 1 n
        +APPLIED
        > EVAL "return redis.call('REG.GET', KEYS[1])" 1 n
        ["5", "1"]
        > TXN.BEGIN
        +OK
        > REG.INCRBY n 2 1
        +APPLIED
        > REG.GET n
        ["6", "2"]
        > TXN.ROLLBACK
        +OK
        > REG.GET n
        ["5", "1"]
        "#,
    );
}
