//! Values under the commands that take a key of any type. What these do whatever the type is in `keys` and `types`.

use crate::{KINDS, check_each, check_events_of_each};

#[test]
fn a_copy_is_a_value_of_its_own() {
    check_each(
        KINDS,
        r#"
        > MAKE k
        *
        > COPY k copy
        :1
        > ADD k
        *
        > READ copy
        TWO
        > COPY k copy
        :0
        > COPY k copy REPLACE
        :1
        > READ copy
        THREE
        > REMOVE copy
        *
        > READ k
        THREE
        > RENAME copy other
        +OK
        > READ other
        TWO
        > READ copy
        []
        > RENAMENX other k
        :0
        > SET s x
        +OK
        > RENAME other s
        +OK
        > TYPE s
        +KIND
        > MOVE s 1
        :1
        > READ s
        []
        > SELECT 1
        +OK
        > READ s
        TWO
        > COPY s k DB 0
        :0
        > COPY s new DB 0
        :1
        > SWAPDB 0 1
        +OK
        > READ new
        TWO
        > READ k
        THREE
        > DEL k new nosuch
        :2
        > UNLINK k
        :0
        > DBSIZE
        :0
        > SELECT 0
        +OK
        > READ s
        TWO
        > FLUSHDB
        +OK
        > READ s
        []
        > MAKE s
        *
        > READ s
        TWO
        "#,
    );
}

#[test]
fn deadlines() {
    check_each(
        KINDS,
        r#"
        > MAKE k
        *
        > PEXPIREAT k 33177117420123
        :1
        > ADD k
        *
        > REMOVE k
        *
        > PEXPIRETIME k
        :33177117420123
        > COPY k copy
        :1
        > RENAME copy other
        +OK
        > PEXPIRETIME other
        :33177117420123
        > PERSIST k
        :1
        > TTL k
        :-1
        > PEXPIRE k 1
        :1
        # eventually
        > EXISTS k
        :0
        > READ k
        []
        > REMOVE k
        *
        > MAKE k
        *
        > READ k
        TWO
        > TTL k
        :-1
        > PEXPIREAT k 1
        :1
        > READ k
        []
        > TYPE k
        +none
        // The last element takes the deadline with it.
        > MAKE k
        *
        > EXPIRE k 1000
        :1
        > CLEAR k
        *
        > EXISTS k
        :0
        > MAKE k
        *
        > TTL k
        :-1
        "#,
    );
}

#[test]
fn facts_of_a_key() {
    check_each(
        KINDS,
        r#"
        > MAKE k
        *
        > TYPE k
        +KIND
        > EXISTS k k nosuch
        :2
        > TOUCH k
        :1
        > OBJECT REFCOUNT k
        :1
        > OBJECT IDLETIME k
        :0..
        > MEMORY USAGE k
        :1..
        > MEMORY USAGE k SAMPLES 0
        :1..
        > DEBUG OBJECT k
        ~+*encoding:*
        > SET str x
        +OK
        > SCAN 0 TYPE KIND COUNT 1000
        ["0", ["k"]]
        > SCAN 0 MATCH k* TYPE KIND COUNT 1000
        ["0", ["k"]]
        > SCAN 0 MATCH s* TYPE KIND COUNT 1000
        ["0", []]
        > SCAN 0 TYPE string COUNT 1000
        ["0", ["str"]]
        > DEBUG RELOAD
        +OK
        > READ k
        TWO
        > DEL str
        :1
        > KEYS *
        ["k"]
        > RANDOMKEY
        "k"
        > DBSIZE
        :1
        > SET k x
        +OK
        > TYPE k
        +string
        > SCAN 0 TYPE KIND COUNT 1000
        ["0", []]
        "#,
    );
}

#[test]
fn events_of_keys() {
    check_events_of_each(
        KINDS,
        r#"
        MAKE k => new k, EVENT k
        COPY k copy => new copy, copy_to copy
        RENAME copy other => new other, rename_from copy, rename_to other
        EXPIRE k 100 => expire k
        ADD k => EVENT k
        PERSIST k => persist k
        DEL other => del other
        MOVE k 1 => move_from k
        MAKE k => new k, EVENT k
        EXPIREAT k 1 => del k
        "#,
    );
}

/// A type's letter chooses the events of its own commands, and no others: that a key is deleted is none of them.
#[test]
fn the_letter_of_a_type() {
    check_each(
        KINDS,
        r#"
        # config notify-keyspace-events KELETTER
        2> PSUBSCRIBE __key*@0__:*
        ["psubscribe", "__key*@0__:*", :1]
        > MAKE k
        *
        2< ["pmessage", "__key*@0__:*", "__keyspace@0__:k", "EVENT"]
        2< ["pmessage", "__key*@0__:*", "__keyevent@0__:EVENT", "k"]
        > SET str x
        +OK
        > XADD stream * f v
        *
        > CLEAR k
        *
        2< ["pmessage", "__key*@0__:*", "__keyspace@0__:k", "REMOVAL"]
        2< ["pmessage", "__key*@0__:*", "__keyevent@0__:REMOVAL", "k"]
        # config notify-keyspace-events KgLETTER
        > MAKE k
        *
        2< ["pmessage", "__key*@0__:*", "__keyspace@0__:k", "EVENT"]
        > DEL k
        :1
        2< ["pmessage", "__key*@0__:*", "__keyspace@0__:k", "del"]
        # config notify-keyspace-events Ex
        > MAKE k
        *
        > PEXPIRE k 1
        :1
        # eventually
        > READ k
        []
        2< ["pmessage", "__key*@0__:*", "__keyevent@0__:expired", "k"]
        "#,
    );
}
