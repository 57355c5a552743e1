//! HCAS and HPUT: records that change only if they hold what is expected. Holdfast's own commands; Redis has none like them.

use crate::support::check;

#[test]
fn a_field_is_swapped_if_it_holds_what_is_expected() {
    check(
        r##"
        # holdfast only
        > HSET job:1 state pending worker none
        :2
        > HCAS job:1 state pending running
        :1
        > HCAS job:1 state pending running
        :0
        > HCAS job:1 nosuch pending running
        :0
        > HCAS nosuch state pending running
        :0
        > HCAS job:1 IF running SET
        :0
        > HGETALL job:1
        ["state", "running", "worker", "none"]
        > EXISTS nosuch
        :0
        > SET text x
        +OK
        > HCAS text state a b
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "##,
    );
}

#[test]
fn all_conditions_and_all_changes_are_one_step() {
    check(
        r##"
        # holdfast only
        > HSET job:1 state pending tries 0 lease x
        :3
        > HCAS job:1 IF 2 state pending tries 0 ABSENT 1 worker SET 3 state running worker w1 tries 1 DEL 1 lease PX 60000
        :1
        > HGETALL job:1
        ["state", "running", "tries", "1", "worker", "w1"]
        > PTTL job:1
        :1..60000
        > HCAS job:1 ABSENT 1 worker SET 1 worker w2
        :0
        > HCAS job:1 IF 1 state pending SET 1 worker w2 WITHCURRENT
        [:0, ["running"]]
        > hcas job:1 withcurrent set 1 state done if 3 state running worker w1 nosuch x
        [:0, ["running", "w1", (nil)]]
        > HCAS job:1 IF 2 state running worker w1 SET 1 state done DEL 1 worker PERSIST WITHCURRENT
        [:1, ["done", (nil)]]
        > PTTL job:1
        :-1
        // Without a condition it is a write.
        > HCAS job:2 SET 1 state new
        :1
        > HCAS job:3 IF 0 ABSENT 1 state SET 0 DEL 0
        :1
        > EXISTS job:3
        :0
        // Set and deleted is deleted, and a record without fields is gone.
        > HCAS job:2 SET 1 state x DEL 1 state
        :1
        > EXISTS job:2
        :0
        > HSET job:4 a 1
        :1
        > HCAS job:4 IF 1 a 1 EXAT 1
        :1
        > EXISTS job:4
        :0
        "##,
    );
}

#[test]
fn an_exchange_that_is_wrong_changes_nothing() {
    check(
        r##"
        # holdfast only
        > HSET job state pending
        :1
        > HCAS job IF 1 state pending NX
        -ERR unknown option 'NX'
        > HCAS job IF x state pending
        -ERR the count behind IF must be a whole number not below 0, not 'x'
        > HCAS job SET -1 state pending
        -ERR the count behind SET must be a whole number not below 0, not '-1'
        > HCAS job SET 2 state running worker
        -ERR SET counts 2 items of 2, but 3 arguments follow
        > HCAS job DEL 9223372036854775807 state running
        -ERR DEL counts 9223372036854775807 items of 1, but 2 arguments follow
        > HCAS job PERSIST SET
        -ERR the count behind SET is missing
        > HCAS job SET 1 state a SET 1 state b
        -ERR SET is given twice
        > HCAS job SET 1 state a PX 0
        -ERR the time behind PX must be a positive number that fits in 63 bits of ms
        > HCAS job SET 1 state a EX 9223372036854775807
        -ERR the time behind EX must be a positive number that fits in 63 bits of ms
        > HCAS job SET 1 state a EX 10 PERSIST
        -ERR the lifetime is given twice
        > HCAS job SET 1 state a EX
        -ERR the time behind EX is missing
        > HCAS job state
        -ERR wrong number of arguments for 'hcas' command
        > HGETALL job
        ["state", "pending"]
        > PTTL job
        :-1
        "##,
    );
}

#[test]
fn fields_and_deadline_are_written_at_once() {
    check(
        r##"
        # holdfast only
        > HPUT job PX 60000 FIELDS 2 state pending tries 0
        :2
        > PTTL job
        :1..60000
        > HPUT job FIELDS 2 state running worker w1
        :1
        > PTTL job
        :1..60000
        > HPUT job REPLACE FIELDS 2 state done worker w1
        :0
        > HGETALL job
        ["state", "done", "worker", "w1"]
        > PTTL job
        :1..60000
        > HPUT job KEEPTTL EXAT 1 FIELDS 1 a b
        -ERR the lifetime is given twice
        > HPUT job FIELDS 0
        -ERR wrong number of arguments for 'hput' command
        > HPUT job REPLACE FIELDS 0 a b
        -ERR unknown option 'a'
        > HPUT job FIELDS 1 a b c
        -ERR unknown option 'c'
        > HPUT job REPLACE EX 10 state done
        -ERR unknown option 'state'
        > HPUT job REPLACE EX 10 KEEPTTL
        -ERR the lifetime is given twice
        > HPUT job REPLACE EX 10 REPLACE
        -ERR REPLACE is given twice
        > HPUT job EXAT 1 FIELDS 1 a b
        :1
        > EXISTS job
        :0
        > SET text x
        +OK
        > HPUT text FIELDS 1 a b
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "##,
    );
}

#[test]
fn changes_of_records_are_told() {
    check(
        r##"
        # holdfast only
        # config notify-keyspace-events Eghx
        2> PSUBSCRIBE __keyevent@*
        ["psubscribe", "__keyevent@*", :1]
        > HPUT job PX 60000 FIELDS 1 state pending
        :1
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
