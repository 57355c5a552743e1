//! IDX.RANGE: records of an index between two scores.

use crate::support::{check, start};

const RECORDS: &str = "
    > IDX.CREATE n PREFIX 1 r: FIELD n
    +OK
    > HSET r:1 n 1 state a x 1
    :3
    > HSET r:2 n 2 state b y 2
    :3
    > HSET r:3 n 3 state a
    :2
    > HSET r:5 n 5 state b
    :2
    > HSET r:4 n 5 state a
    :2
    > HSET r:55 n 5 state c
    :2
    > HSET r:6 n 6.5
    :1
";

fn check_with_records(transcript: &str) {
    if let Some(session) = start() {
        session.check(RECORDS);
        session.check(transcript);
    }
}

#[test]
fn records_come_in_the_order_of_their_scores_and_names() {
    check_with_records(
        r##"
        > IDX.RANGE n -inf +inf
        [["r:1", "1", ["n", "1", "state", "a", "x", "1"]], ["r:2", "2", ["n", "2", "state", "b", "y", "2"]],
         ["r:3", "3", ["n", "3", "state", "a"]], ["r:4", "5", ["n", "5", "state", "a"]],
         ["r:5", "5", ["n", "5", "state", "b"]], ["r:55", "5", ["n", "5", "state", "c"]], ["r:6", "6.5", ["n", "6.5"]]]
        > IDX.RANGE n -inf inf KEYS
        ["r:1", "r:2", "r:3", "r:4", "r:5", "r:55", "r:6"]
        > IDX.RANGE n 2 5 KEYS
        ["r:2", "r:3", "r:4", "r:5", "r:55"]
        > IDX.RANGE n (2 (5 KEYS
        ["r:3"]
        > IDX.RANGE n (2 5 KEYS
        ["r:3", "r:4", "r:5", "r:55"]
        > IDX.RANGE n 2 (5 KEYS
        ["r:2", "r:3"]
        > IDX.RANGE n (5 5 KEYS
        []
        > IDX.RANGE n 5e0 5.0 KEYS
        ["r:4", "r:5", "r:55"]
        > IDX.RANGE n 6.4 (+inf KEYS
        ["r:6"]
        > IDX.RANGE n 5 2 KEYS
        []
        > IDX.RANGE n 9 10 KEYS
        []
        // REV turns the order around, not the bounds.
        > IDX.RANGE n 2 5 REV KEYS
        ["r:55", "r:5", "r:4", "r:3", "r:2"]
        > IDX.RANGE n (2 (6.5 REV KEYS LIMIT 3
        ["r:55", "r:5", "r:4"]
        > IDX.RANGE n 5 2 REV KEYS
        []
        "##,
    );
}

#[test]
fn filters_and_options_in_every_order() {
    check_with_records(
        r##"
        > IDX.RANGE n 2 +inf LIMIT 2 KEYS
        ["r:2", "r:3"]
        > IDX.RANGE n 2 5 LIMIT 0 KEYS
        []
        > IDX.RANGE n -inf inf LIMIT 9223372036854775807 KEYS
        ["r:1", "r:2", "r:3", "r:4", "r:5", "r:55", "r:6"]
        // LIMIT counts what passes.
        > IDX.RANGE n -inf inf FILTER state eq c LIMIT 1 KEYS
        ["r:55"]
        > idx.range n -inf inf keys filter state EQ a limit 2 rev
        ["r:4", "r:3"]
        > IDX.RANGE n -inf inf LIMIT 1 FILTER state in 2 b c REV KEYS FILTER n lt 5
        ["r:2"]
        > IDX.RANGE n -inf inf FILTER state notin 2 b c FIELDS 2 state x
        [["r:1", "1", ["state", "a", "x", "1"]], ["r:3", "3", ["state", "a"]], ["r:4", "5", ["state", "a"]], ["r:6", "6.5", []]]
        > IDX.RANGE n -inf inf FIELDS 1 x FILTER state ne a LIMIT 2
        [["r:2", "2", []], ["r:5", "5", []]]
        > IDX.RANGE n 0 2 FIELDS 0
        [["r:1", "1", []], ["r:2", "2", []]]
        > HELLO 3
        *
        > IDX.RANGE n 5 6.5 FIELDS 1 state
        [["r:4", ,5, {"state" => "a"}], ["r:5", ,5, {"state" => "b"}], ["r:55", ,5, {"state" => "c"}], ["r:6", ,6.5, {}]]
        > IDX.RANGE n 0 1
        [["r:1", ,1, {"n" => "1", "state" => "a", "x" => "1"}]]
        > IDX.RANGE n 0 2 KEYS
        ["r:1", "r:2"]
        "##,
    );
}

#[test]
fn a_range_tells_how_long_records_live() {
    check(
        r##"
        # holdfast only
        > IDX.CREATE n PREFIX 1 r: FIELD n
        +OK
        > HPUT r:1 PX 600000 FIELDS 2 n 1 a x
        :2
        > HSET r:2 n 2
        :1
        > IDX.RANGE n -inf +inf WITHTTL
        [["r:1", "1", ["n", "1", "a", "x"], :1..600000], ["r:2", "2", ["n", "2"], :-1]]
        > IDX.RANGE n -inf +inf withttl FIELDS 1 a REV
        [["r:2", "2", [], :-1], ["r:1", "1", ["a", "x"], :1..600000]]
        > IDX.RANGE n -inf +inf WITHTTL KEYS
        [["r:1", :1..600000], ["r:2", :-1]]
        > IDX.RANGE n -inf +inf KEYS WITHTTL WITHTTL
        -ERR WITHTTL is given twice
        > MULTI
        +OK
        > IDX.RANGE n 2 2 KEYS WITHTTL
        +QUEUED
        > EXEC
        [[["r:2", :-1]]]
        > HELLO 3
        *
        > IDX.RANGE n 2 2 WITHTTL
        [["r:2", ,2, {"n" => "2"}, :-1]]
        "##,
    );
}

#[test]
fn bounds_may_be_the_time() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE due PREFIX 1 r: FIELD due");
    connection.run("HPUT r:past STAMP 1 due -60000 FIELDS 0");
    connection.run("HPUT r:soon STAMP 1 due 3600000 FIELDS 0");
    connection.run("HPUT r:late STAMP 1 due 7200000 FIELDS 0");
    for (bounds, expected) in [
        ("-inf NOW", r#"["r:past"]"#),
        ("NOW +inf", r#"["r:soon", "r:late"]"#),
        ("NOW-61000 NOW+3600000", r#"["r:past", "r:soon"]"#),
        ("(NOW (NOW+7200001", r#"["r:soon", "r:late"]"#),
        ("NOW+7300000 +inf", "[]"),
        ("+inf NOW", "[]"),
    ] {
        assert_eq!(connection.run(&format!("IDX.RANGE due {bounds} KEYS")).to_string(), expected, "{bounds}");
    }
    for bound in ["NOW+", "NOW-x", "NOW+9223372036854775807", "NOW-9223372036854775807", "NOW+1.5"] {
        let expected = format!("-ERR '{bound}' must be NOW, NOW+ms or NOW-ms, and a time from 0 to 2^63-1");
        for bounds in [format!("{bound} +inf"), format!("-inf {bound}"), format!("({bound} +inf")] {
            assert_eq!(connection.run(&format!("IDX.RANGE due {bounds}")).to_string(), expected, "{bounds}");
        }
    }
    for bound in ["now", "NOWHERE", "NOW 5"] {
        let reply = connection.run(&format!("IDX.RANGE due '{bound}' +inf")).to_string();
        assert!(reply.starts_with("-ERR min must be a score such as"), "{reply}");
    }
}

#[test]
fn a_range_that_is_wrong_is_refused() {
    check(
        r##"
        # holdfast only
        > IDX.CREATE n PREFIX 1 r: FIELD n
        +OK
        > HSET r:1 n 1
        :1
        > IDX.RANGE nosuch 0 1
        -ERR there is no index 'nosuch'
        > IDX.RANGE r:1 0 1
        -ERR there is no index 'r:1'
        > IDX.RANGE n x 2
        -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'x'
        > IDX.RANGE n 0 ""
        []
        > IDX.RANGE n 0 (x
        -ERR max must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not '(x'
        > IDX.RANGE n nan 5
        -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'nan'
        > IDX.RANGE n [0 5
        -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not '[0'
        > IDX.RANGE n 0 " 5"
        [["r:1", "1", ["n", "1"]]]
        > IDX.RANGE n 0 5 LIMIT
        ~-ERR missing: the number behind LIMIT. Usage: *
        > IDX.RANGE n 0 5 LIMIT -1
        -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        > IDX.RANGE n 0 5 LIMIT x
        -ERR the number behind LIMIT must be a whole number not below 0, not 'x'
        > IDX.RANGE n 0 5 LIMIT 1 LIMIT 2
        -ERR LIMIT is given twice
        > IDX.RANGE n 0 5 REV REV
        -ERR REV is given twice
        > IDX.RANGE n 0 5 KEYS FIELDS 1 a
        -ERR FIELDS or KEYS is given twice
        > IDX.RANGE n 0 5 KEYS KEYS
        -ERR FIELDS or KEYS is given twice
        > IDX.RANGE n 0 5 FIELDS 2 a
        ~-ERR FIELDS counts 2 items of 1, but 1 argument follows. Usage: *
        > IDX.RANGE n 0 5 FIELDS
        ~-ERR missing: the count behind FIELDS. Usage: *
        > IDX.RANGE n 0 5 FIELDS x a
        -ERR the count behind FIELDS must be a whole number not below 0, not 'x'
        > IDX.RANGE n 0 5 FILTER
        ~-ERR missing: the field behind FILTER. Usage: *
        > IDX.RANGE n 0 5 FILTER state
        ~-ERR missing: the operator behind FILTER and its field. Usage: *
        > IDX.RANGE n 0 5 FILTER state eq
        ~-ERR missing: the value behind FILTER, its field and operator. Usage: *
        > IDX.RANGE n 0 5 FILTER state like a
        -ERR the operator 'like' is none of eq ne lt le gt ge in notin
        > IDX.RANGE n 0 5 FILTER state in
        ~-ERR missing: the count behind 'in'. Usage: *
        > IDX.RANGE n 0 5 FILTER state in x
        -ERR the count behind 'in' must be a whole number not below 0, not 'x'
        > IDX.RANGE n 0 5 FILTER state in 2 a
        ~-ERR 'in' counts 2 items of 1, but 1 argument follows. Usage: *
        > IDX.RANGE n 0 5 WITHSCORES
        ~-ERR unknown option 'WITHSCORES'. *
        > IDX.RANGE n 0 5 "bad\r\nname"
        ~-ERR unknown option 'bad\r\nname'. *
        > IDX.RANGE n 0 5 KEYS
        ["r:1"]
        "##,
    );
}

/// More records than the server looks at in one go, most of which no filter lets pass.
#[test]
fn old_records_do_not_hide_young_ones() {
    const RECORDS: usize = 7000;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    connection.run("IDX.CREATE n PREFIX 1 r: FIELD n");
    let one_in = 1000;
    // Many have the same score: then it is the name that goes on.
    for number in 0..RECORDS {
        let state = if number % one_in == one_in - 1 { "young" } else { "old" };
        connection.queue_line(&format!("HSET r:{number:05} n {} state {state}", number / 3000));
    }
    (0..RECORDS).for_each(|_| assert_eq!(connection.read().integer(), 2));
    let mut young: Vec<String> = (0..RECORDS).skip(one_in - 1).step_by(one_in).map(|n| format!("r:{n:05}")).collect();
    let mut ask =
        |line: &str| -> Vec<String> { connection.run(line).items().iter().map(|key| key.text().to_owned()).collect() };
    assert_eq!(ask("IDX.RANGE n -inf inf FILTER state eq young KEYS"), young);
    assert_eq!(ask("IDX.RANGE n -inf inf FILTER state eq young KEYS LIMIT 3"), young[..3]);
    assert_eq!(ask("IDX.RANGE n (0 inf FILTER state eq young KEYS LIMIT 1"), young[3..4]);
    young.reverse();
    assert_eq!(ask("IDX.RANGE n -inf inf REV FILTER state eq young KEYS"), young);
    assert_eq!(ask("IDX.RANGE n -inf inf REV FILTER state ne old KEYS LIMIT 2"), young[..2]);
    let all: Vec<String> = (0..RECORDS).map(|number| format!("r:{number:05}")).collect();
    assert_eq!(ask("IDX.RANGE n 0 2 KEYS"), all);
    assert_eq!(ask("IDX.RANGE n 1 1 REV KEYS LIMIT 2999"), all[3001..6000].iter().rev().cloned().collect::<Vec<_>>());
}
