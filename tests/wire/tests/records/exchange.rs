//! HCAS and HPUT: records that change only if they hold what is expected. Holdfast's own commands; Redis has none like them.

use crate::support::{Home, check, start, unix_ms};

#[test]
fn stamps_are_the_servers_time_plus_an_offset() {
    const HOUR_MS: u64 = 3_600_000;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("HSET job attempt 3");
    let before = unix_ms(&mut connection);
    assert_eq!(connection.run("HCAS job IF 1 attempt 3 STAMP 2 run_at 3600000 seen -3600000").integer(), 1);
    let after = unix_ms(&mut connection);
    let times = connection.run("HMGET job run_at seen");
    let time = |at: usize| -> u64 { times.items()[at].text().parse().expect("a number") };
    assert!((before + HOUR_MS..=after + HOUR_MS).contains(&time(0)), "{before} {times} {after}");
    assert_eq!(time(0) - time(1), 2 * HOUR_MS, "one command has one time");
    // A condition that does not hold stamps nothing.
    assert_eq!(connection.run("HCAS job IF 1 attempt 2 STAMP 1 run_at 0").integer(), 0);
    assert_eq!(connection.run("HMGET job run_at seen"), times);
}

/// The journal has the time itself.
#[test]
fn a_stamp_is_the_same_after_a_restart() {
    let Some(home) = Home::fresh() else { return };
    let server = home.start();
    let mut connection = server.connect();
    connection.run("HPUT put STAMP 1 at 0 FIELDS 1 a b");
    connection.run("HCAS put IF 1 a b STAMP 1 due 5000");
    let times = connection.run("HMGET put at due");
    assert!(times.items().iter().all(|time| time.text().parse::<i64>().is_ok()), "{times}");
    // It is killed.
    drop(server);
    assert_eq!(home.start().connect().run("HMGET put at due"), times);
}

#[test]
fn stamped_fields_count_as_named_and_as_new() {
    check(
        r##"
        ! HPUT job STAMP 2 at 0 due 5000 FIELDS 2 state new tries 0
        > HPUT job FIELDS 1 state old STAMP 1 at 0
        :0
        ! HPUT job stamp 1 seen 0 PX 600000 fields 1 state old
        HPUT job REPLACE STAMP 1 at 0 FIELDS 1 state last => :0
        > HKEYS job
        ~["at", "state"]
        ! HPUT job REPLACE FIELDS 0 STAMP 1 only 0
        HKEYS job => ["only"]
        PTTL job => :1..600000
        HCAS job ABSENT 1 at STAMP 1 at 0 DEL 1 only WITHCURRENT => [:1, []]
        HKEYS job => ["at"]
        HCAS job IF 1 at x STAMP 1 at 0 WITHCURRENT => [:0, [~"1*"]]
        // A stamp alone makes a record.
        HCAS new STAMP 1 at 0 => :1
        HLEN new => :1
        HCAS none STAMP 0 => :1
        HCAS none STAMP 0 PERSIST DEL 0 => :1
        > EXISTS none
        :0
        ! MULTI
        ! HCAS new STAMP 1 at 0
        EXEC => [:1]
        EVAL "return redis.call('HPUT', KEYS[1], 'STAMP', 1, 'at', 0, 'FIELDS', 1, 'a', 'b')" 1 new => :1
        "##,
    );
}

#[test]
fn a_stamp_that_is_wrong_changes_nothing() {
    check(
        r##"
        ! HSET job state pending
        HCAS job STAMP 1 at x => -ERR an offset behind STAMP must be a whole number of 64 bits, not 'x'
        > HCAS job STAMP 1 at 9223372036854775808
        -ERR an offset behind STAMP must be a whole number of 64 bits, not '9223372036854775808'
        HCAS job STAMP 1 at 9223372036854775807 => -ERR STAMP of the field 'at' must be a time from 0 to 2^63-1
        HCAS job STAMP 1 at -9223372036854775808 => -ERR STAMP of the field 'at' must be a time from 0 to 2^63-1
        > HPUT job STAMP 1 at -99999999999999 FIELDS 1 state x
        -ERR STAMP of the field 'at' must be a time from 0 to 2^63-1
        HCAS job STAMP 2 at 0 at 0 => -ERR STAMP names the field 'at' twice
        HPUT job STAMP 3 at 0 b 0 at 5 FIELDS 1 state x => -ERR STAMP names the field 'at' twice
        HCAS job STAMP 1 at 0 SET 2 b 1 at 1 => -ERR the field 'at' is in STAMP, and cannot be set or deleted too
        HCAS job DEL 1 at STAMP 1 at 0 => -ERR the field 'at' is in STAMP, and cannot be set or deleted too
        > HPUT job FIELDS 2 state x at 1 STAMP 1 at 0
        -ERR the field 'at' is in STAMP, and cannot be set or deleted too
        HPUT job STAMP 1 at 0 => ~-ERR missing: FIELDS, the fields to write. Usage: *
        HPUT job STAMP 0 FIELDS 0 => -ERR FIELDS must name at least one field: a record has some
        HGETALL job => ["state", "pending"]
        // A refused one also does not go where its condition does not hold.
        HCAS job IF 1 state x STAMP 1 at x => -ERR an offset behind STAMP must be a whole number of 64 bits, not 'x'
        "##,
    );
}

#[test]
fn a_field_is_swapped_if_it_holds_what_is_expected() {
    check(
        r##"
        ! HSET job:1 state pending worker none
        HCAS job:1 state pending running => :1
        HCAS job:1 state pending running => :0
        HCAS job:1 nosuch pending running => :0
        HCAS nosuch state pending running => :0
        HCAS job:1 IF running SET => :0
        HGETALL job:1 => ["state", "running", "worker", "none"]
        > EXISTS nosuch
        :0
        ! SET text x
        HCAS text state a b => ~-WRONGTYPE * wrong kind of value: the key's type is *
        "##,
    );
}

#[test]
fn all_conditions_and_all_changes_are_one_step() {
    check(
        r##"
        ! HSET job:1 state pending tries 0 lease x
        > HCAS job:1 IF 2 state pending tries 0 ABSENT 1 worker SET 3 state running worker w1 tries 1 DEL 1 lease PX 60000
        :1
        HGETALL job:1 => ["state", "running", "tries", "1", "worker", "w1"]
        PTTL job:1 => :1..60000
        HCAS job:1 ABSENT 1 worker SET 1 worker w2 => :0
        HCAS job:1 IF 1 state pending SET 1 worker w2 WITHCURRENT => [:0, ["running"]]
        > hcas job:1 withcurrent set 1 state done if 3 state running worker w1 nosuch x
        [:0, ["running", "w1", (nil)]]
        > HCAS job:1 IF 2 state running worker w1 SET 1 state done DEL 1 worker PERSIST WITHCURRENT
        [:1, ["done", (nil)]]
        PTTL job:1 => :-1
        // Without a condition it is a write.
        HCAS job:2 SET 1 state new => :1
        HCAS job:3 IF 0 ABSENT 1 state SET 0 DEL 0 => :1
        EXISTS job:3 => :0
        // Set and deleted is deleted, and a record without fields is gone.
        HCAS job:2 SET 1 state x DEL 1 state => :1
        > EXISTS job:2
        :0
        ! HSET job:4 a 1
        HCAS job:4 IF 1 a 1 EXAT 1 => :1
        EXISTS job:4 => :0
        "##,
    );
}

#[test]
fn an_exchange_that_is_wrong_changes_nothing() {
    check(
        r##"
        ! HSET job state pending
        HCAS job IF 1 state pending NX => ~-ERR unknown option 'NX'. *
        > HCAS job DEL 9223372036854775807 state running
        ~-ERR DEL counts 9223372036854775807 items of 1, but 2 arguments follow. Usage: *
        HCAS job SET 1 state a PX 0 => -ERR the time behind PX must be a positive number that fits in 63 bits of ms
        > HCAS job SET 1 state a EX 9223372036854775807
        -ERR the time behind EX must be a positive number that fits in 63 bits of ms
        HCAS job SET 1 state a EX 10 PERSIST => -ERR the lifetime is given twice
        HCAS job SET 1 state a EX => ~-ERR missing: the time behind EX. Usage: *
        HCAS job state => ~-ERR wrong number of arguments for 'hcas' command. Usage: HCAS*
        HGETALL job => ["state", "pending"]
        PTTL job => :-1
        "##,
    );
}

#[test]
fn fields_and_deadline_are_written_at_once() {
    check(
        r##"
        ! HPUT job PX 60000 FIELDS 2 state pending tries 0
        > PTTL job
        :1..60000
        ! HPUT job FIELDS 2 state running worker w1
        PTTL job => :1..60000
        > HPUT job REPLACE FIELDS 2 state done worker w1
        :0
        HGETALL job => ["state", "done", "worker", "w1"]
        PTTL job => :1..60000
        HPUT job KEEPTTL EXAT 1 FIELDS 1 a b => -ERR the lifetime is given twice
        HPUT job FIELDS 0 => ~-ERR wrong number of arguments for 'hput' command. Usage: HPUT*
        HPUT job REPLACE FIELDS 0 a b => ~-ERR unknown option 'a'. *
        HPUT job FIELDS 1 a b c => ~-ERR unknown option 'c'. *
        HPUT job REPLACE EX 10 state done => ~-ERR unknown option 'state'. *
        HPUT job REPLACE EX 10 KEEPTTL => -ERR the lifetime is given twice
        ! HPUT job EXAT 1 FIELDS 1 a b
        > EXISTS job
        :0
        ! SET text x
        HPUT text FIELDS 1 a b => ~-WRONGTYPE * wrong kind of value: the key's type is *
        "##,
    );
}

#[test]
fn changes_of_records_are_told() {
    check(
        r##"
        # config notify-keyspace-events Eghx
        2> PSUBSCRIBE __keyevent@*
        ["psubscribe", "__keyevent@*", :1]
        ! HPUT job PX 60000 FIELDS 1 state pending
        2< ["pmessage", "__keyevent@*", "__keyevent@0__:hset", "job"]
        2< ["pmessage", "__keyevent@*", "__keyevent@0__:expire", "job"]
        > HCAS job state pending running
        :1
        2< ["pmessage", "__keyevent@*", "__keyevent@0__:hset", "job"]
        > HCAS job IF 1 state running DEL 1 state
        :1
        2< ["pmessage", "__keyevent@*", "__keyevent@0__:hdel", "job"]
        2< ["pmessage", "__keyevent@*", "__keyevent@0__:del", "job"]
        "##,
    );
}
