//! SWEEP: records that nobody has touched for long are changed in the step in which they are judged.

use crate::support::{check, start, unix_ms};

#[test]
fn old_records_are_changed() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HSET j:1 at 1 state running
        ! HSET j:2 at 2 state done
        ! HSET j:3 at -5 state claimed
        ! HSET j:4 at 100 state running
        ! HSET other at 1 state running
        ! SET j:text 1
        // Below BEFORE, not at it.
        SWEEP at BEFORE 1 SET 1 seen 1 => [["j:3", "requeued"]]
        SWEEP at BEFORE 0 SET 1 seen 2 => [["j:3", "requeued"]]
        > SWEEP at BEFORE 100 WHERE state 2 running claimed SET 2 state pending at 100
        [["j:3", "requeued"], ["j:1", "requeued"]]
        > SWEEP at BEFORE 100 WHERE state 2 running claimed SET 2 state pending at 100
        []
        HGETALL j:1 => ["at", "100", "state", "pending"]
        HGETALL j:2 => ["at", "2", "state", "done"]
        HGETALL j:3 => ["at", "100", "state", "pending", "seen", "2"]
        HGETALL j:4 => ["at", "100", "state", "running"]
        HGETALL other => ["at", "1", "state", "running"]
        GET j:text => "1"
        // What stays old is found again, once a sweep.
        SWEEP at BEFORE 100 SET 1 seen 3 => [["j:2", "requeued"]]
        SWEEP at BEFORE 100 SET 1 at 3 => [["j:2", "requeued"]]
        SWEEP at BEFORE 100 SET 1 at 99 => [["j:2", "requeued"]]
        // No value, and none of no values.
        SWEEP at BEFORE 100 WHERE nosuch 1 x SET 1 seen 4 => []
        SWEEP at BEFORE 100 WHERE state 0 SET 1 seen 4 => []
        // All that there is, in the future as well; in small letters and in any order.
        > sweep at set 1 seen 5 limit 2 before 9223372036854775807
        [["j:2", "requeued"], ["j:1", "requeued"]]
        > SWEEP at LIMIT 9223372036854775807 SET 1 seen 5 WHERE state 1 done BEFORE 9223372036854775807
        [["j:2", "requeued"]]
        HGETALL j:2 => ["at", "99", "state", "done", "seen", "5"]
        // A sweep that takes a record out of the index.
        SWEEP at BEFORE 100 SET 1 at never => [["j:2", "requeued"]]
        > ZRANGE at 0 -1
        ["j:1", "j:3", "j:4"]
        ! SELECT 1
        > SWEEP at BEFORE 1000 SET 1 seen 6
        []
        ! SELECT 0
        ! HELLO 3
        SWEEP at BEFORE 101 LIMIT 1 SET 1 seen 7 => [["j:1", "requeued"]]
        SWEEP at BEFORE 0 SET 1 seen 7 => []
        "##,
    );
}

#[test]
fn a_record_is_tried_again_so_many_times() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HSET j:1 at 1 tries 0
        ! HSET j:2 at 2 tries 1
        ! HSET j:3 at 3 tries 2
        ! HSET j:4 at 4 tries 3
        ! HSET j:missing at 5
        ! HSET j:negative at 6 tries -5
        ! HSET j:float at 7 tries 1.0
        ! HSET j:text at 8 tries x
        ! HSET j:empty at 9 tries ""
        ! HSET j:large at 10 tries 9223372036854775808
        > SWEEP at BEFORE 50 RETRY tries 2 ELSE 2 state failed at 100 SET 2 state pending at 60
        [["j:1", "requeued"], ["j:2", "requeued"], ["j:3", "exhausted"], ["j:4", "exhausted"],
         ["j:missing", "requeued"], ["j:negative", "requeued"], ["j:float", "exhausted"], ["j:text", "exhausted"],
         ["j:empty", "exhausted"], ["j:large", "exhausted"]]
        HGETALL j:1 => ["at", "60", "tries", "1", "state", "pending"]
        HGETALL j:2 => ["at", "60", "tries", "2", "state", "pending"]
        HGETALL j:3 => ["at", "100", "tries", "2", "state", "failed"]
        HGETALL j:4 => ["at", "100", "tries", "3", "state", "failed"]
        HGETALL j:missing => ["at", "60", "tries", "1", "state", "pending"]
        HGETALL j:negative => ["at", "60", "tries", "-4", "state", "pending"]
        HGETALL j:float => ["at", "100", "tries", "1.0", "state", "failed"]
        HGETALL j:text => ["at", "100", "tries", "x", "state", "failed"]
        HGETALL j:empty => ["at", "100", "tries", "", "state", "failed"]
        HGETALL j:large => ["at", "100", "tries", "9223372036854775808", "state", "failed"]
        > SWEEP at BEFORE 61 ELSE 2 state failed at 100 SET 2 state pending at 60 RETRY tries 2 LIMIT 3
        [["j:1", "requeued"], ["j:2", "exhausted"], ["j:missing", "requeued"]]
        > SWEEP at BEFORE 61 SET 2 state pending at 60 RETRY tries 2 ELSE 2 state failed at 100
        [["j:1", "exhausted"], ["j:missing", "exhausted"], ["j:negative", "requeued"]]
        HMGET j:1 state tries => ["failed", "2"]
        HMGET j:negative state tries => ["pending", "-3"]
        // At the end of what can be counted.
        HSET j:1 at 1 tries 9223372036854775806 => :0
        SWEEP at BEFORE 2 SET 1 at 1 RETRY tries 9223372036854775807 ELSE 1 at 60 => [["j:1", "requeued"]]
        HMGET j:1 at tries => ["1", "9223372036854775807"]
        SWEEP at BEFORE 2 SET 1 at 1 RETRY tries 9223372036854775807 ELSE 1 at 60 => [["j:1", "exhausted"]]
        HMGET j:1 at tries => ["60", "9223372036854775807"]
        // Never.
        HSET j:1 at 1 tries 0 => :0
        SWEEP at BEFORE 2 SET 1 at 50 RETRY tries 0 ELSE 1 at 60 => [["j:1", "exhausted"]]
        HMGET j:1 at tries => ["60", "0"]
        // The counter is counted, then SET is applied: it may set it back.
        HSET j:1 at 1 tries 0 => :0
        SWEEP at BEFORE 2 SET 2 tries 7 at 50 RETRY tries 9 ELSE 1 at 60 => [["j:1", "requeued"]]
        HMGET j:1 at tries => ["50", "7"]
        "##,
    );
}

#[test]
fn a_sweep_that_is_wrong_changes_nothing() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HSET j:1 at 1 state running
        SWEEP nosuch BEFORE 5 SET 1 a b => -ERR there is no index 'nosuch'
        SWEEP j:1 BEFORE 5 SET 1 a b => -ERR there is no index 'j:1'
        SWEEP at BEFORE 9 SET 0 LIMIT 5 => ~-ERR missing: SET, which says what becomes of a record. Usage: *
        > SWEEP at BEFORE x SET 1 a b
        -ERR the time behind BEFORE must be a whole number not below 0, or a time such as NOW-ms, not 'x'
        > SWEEP at BEFORE -1 SET 1 a b
        -ERR the time behind BEFORE must be a whole number not below 0, or a time such as NOW-ms, not '-1'
        > SWEEP at BEFORE 1.5 SET 1 a b
        -ERR the time behind BEFORE must be a whole number not below 0, or a time such as NOW-ms, not '1.5'
        > SWEEP at BEFORE 9223372036854775808 SET 1 a b
        -ERR the time behind BEFORE must be a whole number not below 0, or a time such as NOW-ms, not '9223372036854775808'
        SWEEP at SET 1 a b LIMIT 5 => ~-ERR missing: BEFORE, which says which records are old. Usage: *
        SWEEP at BEFORE 9 LIMIT 5 WHERE a 0 => ~-ERR missing: SET, which says what becomes of a record. Usage: *
        > SWEEP at BEFORE 9 SET 1 a b RETRY tries 3
        ~-ERR missing: ELSE, which says what becomes of a record after the last RETRY. Usage: *
        > SWEEP at BEFORE 9 SET 1 a b ELSE 1 a b
        ~-ERR missing: RETRY, without which ELSE has no meaning. Usage: *
        > SWEEP at BEFORE 9 SET 1 a b RETRY tries 3 ELSE 0
        -ERR ELSE must set at least one field, or the record would be found again and again
        SWEEP at BEFORE 9 SET 1 a b STATE => ~-ERR unknown option 'STATE'. *
        HGETALL j:1 => ["at", "1", "state", "running"]
        ZRANGE at 0 -1 WITHSCORES => ["j:1", "1"]
        "##,
    );
}

#[test]
fn a_sweep_is_part_of_a_transaction_or_a_script() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HSET j:1 at 50
        ! MULTI
        ! HSET j:1 at 1
        ! SWEEP at BEFORE 2 SET 1 at 2
        ! SWEEP at BEFORE 3 SET 1 at 3
        ! SWEEP at BEFORE x SET 1 at 4
        ! ZRANGE at 0 -1 WITHSCORES
        > EXEC
        [:0, [["j:1", "requeued"]],
         [["j:1", "requeued"]],
         -"ERR the time behind BEFORE must be a whole number not below 0, or a time such as NOW-ms, not 'x'",
         ["j:1", "3"]]
        ! MULTI
        ! SWEEP at BEFORE 5 SET 1 at 5
        DISCARD => +OK
        HGET j:1 at => "3"
        EVAL "return redis.call('SWEEP', 'at', 'BEFORE', 5, 'SET', 1, 'at', 6)" 0 => [["j:1", "requeued"]]
        > EVAL "redis.call('HSET', KEYS[1], 'at', 1) return redis.call('SWEEP', 'at', 'BEFORE', 5, 'SET', 1, 'at', 7)" 1 j:1
        [["j:1", "requeued"]]
        HGET j:1 at => "7"
        > EVAL "return redis.pcall('SWEEP', 'at', 'BEFORE', 5).err" 0
        "ERR Wrong number of args calling Redis command from script"
        HGET j:1 at => "7"
        "##,
    );
}

#[test]
fn swept_records_are_told_of() {
    check(
        r##"
        # config notify-keyspace-events Kh
        2> SUBSCRIBE swept
        ["subscribe", "swept", :1]
        3> PSUBSCRIBE *
        ["psubscribe", "*", :1]
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HSET j:1 at 1
        3< ["pmessage", "*", "__keyspace@0__:j:1", "hset"]
        ! HSET j:2 at 2 tries 9
        3< ["pmessage", "*", "__keyspace@0__:j:2", "hset"]
        > SWEEP at BEFORE 9 SET 1 at 10 PUBLISH swept LIMIT 1
        [["j:1", "requeued"]]
        2< ["message", "swept", "j:1"]
        3< ["pmessage", "*", "__keyspace@0__:j:1", "hset"]
        3< ["pmessage", "*", "swept", "j:1"]
        > SWEEP at BEFORE 9 SET 1 at 10 RETRY tries 3 ELSE 1 at 11 PUBLISH swept
        [["j:2", "exhausted"]]
        2< ["message", "swept", "j:2"]
        3< ["pmessage", "*", "__keyspace@0__:j:2", "hset"]
        3< ["pmessage", "*", "swept", "j:2"]
        > SWEEP at BEFORE 9 SET 1 at 10 PUBLISH swept
        []
        3> PUNSUBSCRIBE *
        ["punsubscribe", "*", :0]
        ! MULTI
        ! SWEEP at BEFORE 11 SET 1 at 12 PUBLISH swept
        > EXEC
        [[["j:1", "requeued"]]]
        2< ["message", "swept", "j:1"]
        "##,
    );
}

#[test]
fn values_may_be_the_time() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE at PREFIX 1 j: FIELD at");
    connection.run("HSET j:1 at 1 NOW NOW");
    let before = unix_ms(&mut connection);
    let swept =
        connection.run("SWEEP at BEFORE 9 SET 6 at NOW later NOW+60000 same NOW+0 small now less NOW-5 NOW NOWHERE");
    let after = unix_ms(&mut connection);
    assert_eq!(swept.to_string(), "[[\"j:1\", \"requeued\"]]");
    let number = |field: &str, connection: &mut wire::Connection| -> u64 {
        connection.run(&format!("HGET j:1 {field}")).text().parse().expect("a number")
    };
    let now = number("at", &mut connection);
    assert!((before..=after).contains(&now), "{before} {now} {after}");
    assert_eq!(number("later", &mut connection), now + 60_000);
    assert_eq!(number("same", &mut connection), now);
    assert_eq!(number("less", &mut connection), now - 5);
    let others = connection.run("HMGET j:1 small NOW");
    assert_eq!(others.to_string(), "[\"now\", \"NOWHERE\"]");
    assert_eq!(connection.run("ZSCORE at j:1").text(), now.to_string());
    // ELSE knows the time as well, RETRY's field is no value.
    connection.run("HSET j:1 at 1 tries 9");
    connection.run("SWEEP at BEFORE 9 RETRY tries 3 ELSE 2 at NOW+5 late NOW SET 1 at 5");
    assert_eq!(number("at", &mut connection), number("late", &mut connection) + 5);
}

#[test]
fn records_are_old_before_a_time() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! HPUT j:old STAMP 1 at -60000 FIELDS 0
        ! HPUT j:new STAMP 1 at 3600000 FIELDS 0
        SWEEP at BEFORE NOW-3600000 SET 1 a b => []
        SWEEP at BEFORE NOW SET 1 a b => [["j:old", "requeued"]]
        > sweep at before NOW+7200000 set 1 a b
        [["j:old", "requeued"], ["j:new", "requeued"]]
        "##,
    );
}

/// Zero is nothing, and without a limit there is none.
#[test]
fn a_sweep_changes_as_many_as_its_limit_says() {
    check(
        r##"
        ! IDX.CREATE at PREFIX 1 j: FIELD at
        ! EVAL "for i = 1, 300 do redis.call('HSET', 'j:' .. i, 'at', 1) end" 0
        SWEEP at BEFORE 5 SET 1 at 9 LIMIT 0 => []
        SWEEP nosuch BEFORE 5 SET 1 at 9 LIMIT 0 => -ERR there is no index 'nosuch'
        ZCOUNT at 9 9 => :0
        ! SWEEP at BEFORE 5 SET 1 at 9 LIMIT 100
        ZCOUNT at 9 9 => :100
        ! SWEEP at BEFORE 5 SET 1 at 9
        ZCOUNT at 9 9 => :300
        "##,
    );
}

/// A sweep looks at a few thousand records at a time; each has one turn, and those that it passes over do not stop it.
#[test]
fn a_limit_starves_nobody() {
    const OLD: usize = 5000;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE at PREFIX 1 j: FIELD at");
    (0..OLD).for_each(|number| connection.queue_line(&format!("HSET j:{number:05} at 1 state done")));
    (0..OLD).for_each(|_| assert_eq!(connection.read().integer(), 2));
    for number in 0..3 {
        connection.run(&format!("HSET j:young:{number} at {} state running", 2 + number));
    }
    for number in 0..3 {
        let swept = connection.run("SWEEP at BEFORE 50 WHERE state 1 running SET 2 state pending at 50 LIMIT 1");
        assert_eq!(swept.to_string(), format!("[[\"j:young:{number}\", \"requeued\"]]"));
    }
    // All that are swept stay old: each is swept once all the same, in the order in which it was found.
    let swept = connection.run("SWEEP at BEFORE 50 RETRY tries 100 ELSE 1 x x SET 1 at 49 LIMIT 1000000");
    let expected: Vec<String> = (0..OLD).map(|number| format!("[\"j:{number:05}\", \"requeued\"]")).collect();
    assert!(swept.to_string() == format!("[{}]", expected.join(", ")), "{}", swept.excerpt());
    assert_eq!(connection.run("ZCOUNT at 49 49").integer(), OLD as i64);
    for number in (0..OLD).step_by(7) {
        assert_eq!(connection.run(&format!("HGET j:{number:05} tries")).text(), "1");
    }
    // Without a word there is no limit.
    assert_eq!(connection.run("SWEEP at BEFORE 50 SET 1 at 60").items().len(), OLD);
}
