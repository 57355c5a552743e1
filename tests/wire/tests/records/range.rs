//! IDX.RANGE: records of an index between two scores.

use crate::support::{check, start};

const RECORDS: &str = "
    ! IDX.CREATE n PREFIX 1 r: FIELD n
    ! HSET r:1 n 1 state a x 1
    ! HSET r:2 n 2 state b y 2
    ! HSET r:3 n 3 state a
    ! HSET r:5 n 5 state b
    ! HSET r:4 n 5 state a
    ! HSET r:55 n 5 state c
    ! HSET r:6 n 6.5
";

#[track_caller]
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
        IDX.RANGE n -inf inf KEYS => ["r:1", "r:2", "r:3", "r:4", "r:5", "r:55", "r:6"]
        IDX.RANGE n 2 5 KEYS => ["r:2", "r:3", "r:4", "r:5", "r:55"]
        IDX.RANGE n (2 (5 KEYS => ["r:3"]
        IDX.RANGE n (2 5 KEYS => ["r:3", "r:4", "r:5", "r:55"]
        IDX.RANGE n 2 (5 KEYS => ["r:2", "r:3"]
        IDX.RANGE n (5 5 KEYS => []
        IDX.RANGE n 5e0 5.0 KEYS => ["r:4", "r:5", "r:55"]
        IDX.RANGE n 6.4 (+inf KEYS => ["r:6"]
        IDX.RANGE n 5 2 KEYS => []
        IDX.RANGE n 9 10 KEYS => []
        // REV turns the order around, not the bounds.
        IDX.RANGE n 2 5 REV KEYS => ["r:55", "r:5", "r:4", "r:3", "r:2"]
        IDX.RANGE n (2 (6.5 REV KEYS LIMIT 3 => ["r:55", "r:5", "r:4"]
        IDX.RANGE n 5 2 REV KEYS => []
        "##,
    );
}

#[test]
fn filters_and_options_in_every_order() {
    check_with_records(
        r##"
        IDX.RANGE n 2 +inf LIMIT 2 KEYS => ["r:2", "r:3"]
        IDX.RANGE n 2 5 LIMIT 0 KEYS => []
        IDX.RANGE n -inf inf LIMIT 9223372036854775807 KEYS => ["r:1", "r:2", "r:3", "r:4", "r:5", "r:55", "r:6"]
        // LIMIT counts what passes.
        IDX.RANGE n -inf inf FILTER state eq c LIMIT 1 KEYS => ["r:55"]
        > idx.range n -inf inf keys filter state EQ a limit 2 rev
        ["r:4", "r:3"]
        IDX.RANGE n -inf inf LIMIT 1 FILTER state in 2 b c REV KEYS FILTER n lt 5 => ["r:2"]
        > IDX.RANGE n -inf inf FILTER state notin 2 b c FIELDS 2 state x
        [["r:1", "1", ["state", "a", "x", "1"]], ["r:3", "3", ["state", "a"]], ["r:4", "5", ["state", "a"]], ["r:6", "6.5", []]]
        IDX.RANGE n -inf inf FIELDS 1 x FILTER state ne a LIMIT 2 => [["r:2", "2", []], ["r:5", "5", []]]
        > IDX.RANGE n 0 2 FIELDS 0
        [["r:1", "1", []], ["r:2", "2", []]]
        ! HELLO 3
        > IDX.RANGE n 5 6.5 FIELDS 1 state
        [["r:4", ,5, {"state" => "a"}], ["r:5", ,5, {"state" => "b"}], ["r:55", ,5, {"state" => "c"}], ["r:6", ,6.5, {}]]
        IDX.RANGE n 0 1 => [["r:1", ,1, {"n" => "1", "state" => "a", "x" => "1"}]]
        IDX.RANGE n 0 2 KEYS => ["r:1", "r:2"]
        "##,
    );
}

#[test]
fn a_range_tells_how_long_records_live() {
    check(
        r##"
        ! IDX.CREATE n PREFIX 1 r: FIELD n
        ! HPUT r:1 PX 600000 FIELDS 2 n 1 a x
        ! HSET r:2 n 2
        > IDX.RANGE n -inf +inf WITHTTL
        [["r:1", "1", ["n", "1", "a", "x"], :1..600000], ["r:2", "2", ["n", "2"], :-1]]
        IDX.RANGE n -inf +inf withttl FIELDS 1 a REV => [["r:2", "2", [], :-1], ["r:1", "1", ["a", "x"], :1..600000]]
        IDX.RANGE n -inf +inf WITHTTL KEYS => [["r:1", :1..600000], ["r:2", :-1]]
        ! MULTI
        ! IDX.RANGE n 2 2 KEYS WITHTTL
        > EXEC
        [[["r:2", :-1]]]
        ! HELLO 3
        IDX.RANGE n 2 2 WITHTTL => [["r:2", ,2, {"n" => "2"}, :-1]]
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
}

#[test]
fn a_range_that_is_wrong_is_refused() {
    check(
        r##"
        ! IDX.CREATE n PREFIX 1 r: FIELD n
        ! HSET r:1 n 1
        IDX.RANGE nosuch 0 1 => -ERR there is no index 'nosuch'
        IDX.RANGE r:1 0 1 => -ERR there is no index 'r:1'
        IDX.RANGE n x 2 => -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'x'
        IDX.RANGE n 0 "" => []
        IDX.RANGE n 0 (x => -ERR max must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not '(x'
        IDX.RANGE n nan 5 => -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not 'nan'
        IDX.RANGE n [0 5 => -ERR min must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not '[0'
        IDX.RANGE n 0 " 5" => [["r:1", "1", ["n", "1"]]]
        IDX.RANGE n 0 5 FILTER state like a => -ERR the operator 'like' is none of eq ne lt le gt ge in notin
        IDX.RANGE n 0 5 FILTER state in => ~-ERR missing: the count behind 'in'. Usage: *
        IDX.RANGE n 0 5 WITHSCORES => ~-ERR unknown option 'WITHSCORES'. *
        IDX.RANGE n 0 5 KEYS => ["r:1"]
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
