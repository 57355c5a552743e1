//! HFIND: records under a prefix that pass filters, a few at a time.

use std::collections::BTreeSet;

use wire::Connection;

use crate::support::{check, drop_indexes, ok, start, walk_with};

#[test]
fn options_in_every_order() {
    check(
        r##"
        ! HSET p:1 a 1 b 2
        ! SET p:text x
        ! ZADD p:sorted 1 a
        HFIND p: => ["0", [["p:1", ["a", "1", "b", "2"]]]]
        HFIND p: KEYS => ["0", ["p:1"]]
        HFIND p: FIELDS 1 b => ["0", [["p:1", ["b", "2"]]]]
        HFIND p: FIELDS 2 nosuch a => ["0", [["p:1", ["a", "1"]]]]
        HFIND p: FIELDS 0 => ["0", [["p:1", []]]]
        HFIND "" => ["0", [["p:1", ["a", "1", "b", "2"]]]]
        HFIND p:1 KEYS => ["0", ["p:1"]]
        HFIND p:11 KEYS => ["0", []]
        HFIND q: => ["0", []]
        HFIND p: CURSOR 0 LIMIT 5 FILTER a eq 1 FILTER b gt 1 KEYS => ["0", ["p:1"]]
        > hfind p: keys filter b gt 1 limit 9223372036854775807 filter a eq 1 cursor 0
        ["0", ["p:1"]]
        HFIND p: FILTER a eq 1 FILTER b gt 2 KEYS => ["0", []]
        > HFIND p: CURSOR 18446744073709551615
        ["0", []]
        ! HELLO 3
        HFIND p: => ["0", [["p:1", {"a" => "1", "b" => "2"}]]]
        HFIND p: FIELDS 1 b => ["0", [["p:1", {"b" => "2"}]]]
        HFIND p: FIELDS 0 => ["0", [["p:1", {}]]]
        HFIND p: KEYS => ["0", ["p:1"]]
        ! HELLO 2
        ! MULTI
        ! HFIND p: KEYS
        EXEC => [["0", ["p:1"]]]
        > EVAL_RO "return redis.call('HFIND', 'p:', 'KEYS')" 0
        ["0", ["p:1"]]
        ! SELECT 1
        HFIND p: => ["0", []]
        "##,
    );
}

#[test]
fn a_search_that_is_wrong_is_refused() {
    check(
        r##"
        ! HSET p:1 a 1 b 2
        HFIND p: CURSOR => ~-ERR missing: the cursor. Usage: *
        HFIND p: CURSOR x => -ERR the cursor 'x' is none of ours: begin with 0
        HFIND p: CURSOR -1 => -ERR the cursor '-1' is none of ours: begin with 0
        HFIND p: CURSOR 18446744073709551616 => -ERR the cursor '18446744073709551616' is none of ours: begin with 0
        HFIND p: WITHTTLS => ~-ERR unknown option 'WITHTTLS'. *
        HFIND p: KEYS FIELDS 1 a => -ERR FIELDS or KEYS is given twice
        HFIND p: FILTER => ~-ERR missing: the field behind FILTER. Usage: *
        HFIND p: FILTER a => ~-ERR missing: the operator behind FILTER and its field. Usage: *
        HFIND p: FILTER a eq => ~-ERR missing: the value behind FILTER, its field and operator. Usage: *
        HFIND p: FILTER a ~ 1 => -ERR the operator '~' is none of eq ne lt le gt ge in notin
        HFIND p: FILTER a notin 1 => ~-ERR 'notin' counts 1 items of 1, but 0 arguments follow. Usage: *
        HFIND p: FILTER a in -1 => -ERR the count behind 'in' must be a whole number not below 0, not '-1'
        HFIND p: COUNT 1 => ~-ERR unknown option 'COUNT'. *
        HFIND p: => ["0", [["p:1", ["a", "1", "b", "2"]]]]
        // A limit of zero asks for nothing: the search is over, wherever it was.
        HFIND p: LIMIT 0 => ["0", []]
        HFIND p: CURSOR 4294967297 LIMIT 0 => ["0", []]
        HFIND p: LIMIT 0 CURSOR x => -ERR the cursor 'x' is none of ours: begin with 0
        "##,
    );
}

#[test]
fn a_search_tells_how_long_records_live() {
    check(
        r##"
        ! HPUT p:1 PX 600000 FIELDS 2 a 1 b 2
        ! HSET p:2 a 2
        HFIND p: WITHTTL FILTER a eq 1 => ["0", [["p:1", ["a", "1", "b", "2"], :1..600000]]]
        HFIND p: FILTER a eq 2 withttl => ["0", [["p:2", ["a", "2"], :-1]]]
        HFIND p: FIELDS 2 b c WITHTTL FILTER a eq 1 => ["0", [["p:1", ["b", "2"], :1..600000]]]
        HFIND p: WITHTTL KEYS FILTER a eq 1 => ["0", [["p:1", :1..600000]]]
        HFIND p: KEYS WITHTTL FILTER a eq 2 => ["0", [["p:2", :-1]]]
        ! HELLO 3
        HFIND p: WITHTTL FILTER a eq 2 => ["0", [["p:2", {"a" => "2"}, :-1]]]
        "##,
    );
}

/// Every operator, and which of the records pass. Two numbers compare as numbers, anything else as bytes.
const OPERATORS: &[(&str, &[&str])] = &[
    ("eq abc", &["abc"]),
    ("eq 10", &["10", "10.0"]),
    ("eq 1e1", &["10", "10.0"]),
    ("eq +10", &["10", "10.0"]),
    ("eq ' 10'", &[]),
    ("eq nosuch", &[]),
    ("eq \"\"", &["empty"]),
    ("eq 0", &["zero", "-zero"]),
    ("ne abc", &["abd", "10", "9", "10.0", "missing", "empty", "-1", "zero", "-zero", "bytes"]),
    ("ne 10", &["abc", "abd", "9", "missing", "empty", "-1", "zero", "-zero", "bytes"]),
    ("lt abd", &["abc", "10", "9", "10.0", "empty", "-1", "zero", "-zero"]),
    ("le abd", &["abc", "abd", "10", "9", "10.0", "empty", "-1", "zero", "-zero"]),
    ("gt abc", &["abd", "bytes"]),
    ("ge abc", &["abc", "abd", "bytes"]),
    ("lt 10", &["9", "empty", "-1", "zero", "-zero"]),
    ("le 10", &["10", "9", "10.0", "empty", "-1", "zero", "-zero"]),
    ("gt 9", &["abc", "abd", "10", "10.0", "bytes"]),
    ("gt 9.5", &["abc", "abd", "10", "10.0", "bytes"]),
    ("ge 10", &["abc", "abd", "10", "10.0", "bytes"]),
    ("ge -1", &["abc", "abd", "10", "9", "10.0", "-1", "zero", "-zero", "bytes"]),
    ("lt 0", &["-1", "empty"]),
    ("gt \"\"", &["abc", "abd", "10", "9", "10.0", "-1", "zero", "-zero", "bytes"]),
    ("in 2 abc 9", &["abc", "9"]),
    ("IN 3 9 nosuch 1e1", &["9", "10", "10.0"]),
    ("in 0", &[]),
    ("in 1 \"\\xff\\x00\"", &["bytes"]),
    ("notin 2 abc 9", &["abd", "10", "10.0", "missing", "empty", "-1", "zero", "-zero", "bytes"]),
    ("NotIn 1 10.00", &["abc", "abd", "9", "missing", "empty", "-1", "zero", "-zero", "bytes"]),
    ("notin 0", &["abc", "abd", "10", "9", "10.0", "missing", "empty", "-1", "zero", "-zero", "bytes"]),
];

#[test]
fn operators_on_numbers_texts_and_nothing() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for (name, value) in [
        ("abc", "abc"),
        ("abd", "abd"),
        ("10", "10"),
        ("9", "9"),
        ("10.0", "10.0"),
        ("empty", "\"\""),
        ("-1", "-1"),
        ("zero", "0"),
        ("-zero", "-0"),
        ("bytes", "\"\\xff\\x00\""),
    ] {
        connection.run(&format!("HSET p:{name} v {value}"));
        connection.run(&format!("HSET q:{name} v {value}"));
    }
    connection.run("HSET p:missing other x");
    connection.run("SET p:text 10");
    connection.run("ZADD p:sorted 10 v");
    // The same with every index that may be of use, or may seem to be.
    for index in [
        "",
        "IDX.CREATE i PREFIX 1 p: FIELD v",
        "IDX.CREATE i PREFIX 1 \"\" FIELD v",
        "IDX.CREATE i PREFIX 1 p:1 FIELD v",
        "IDX.CREATE i PREFIX 1 p: FIELD other",
        "IDX.CREATE i PREFIX 1 p: FIELD v ONLY v 2 10 abc",
        "IDX.CREATE i PREFIX 1 p: FIELD v EXCLUDE v 2 10 abc",
        "IDX.CREATE i PREFIX 1 p: FIELD v EXCLUDE other 1 x",
    ] {
        drop_indexes(&mut connection);
        if !index.is_empty() {
            ok(&mut connection, index);
        }
        for (filter, expected) in OPERATORS {
            let expected: BTreeSet<String> = expected.iter().map(|name| format!("p:{name}")).collect();
            let found = walk(&mut connection, &format!("p: FILTER v {filter}"), 1000);
            assert_eq!(found, expected, "{filter}, {index}");
        }
    }
}

/// Whole numbers above 2^53 differ though as scores they are the same.
#[test]
fn an_index_misses_no_large_number() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    const LARGE: i64 = 1 << 53;
    for number in LARGE - 2..=LARGE + 3 {
        connection.run(&format!("HSET p:{number} n {number}"));
    }
    for index in ["PING", "IDX.CREATE i PREFIX 1 p: FIELD n"] {
        connection.run(index);
        for bound in LARGE - 2..=LARGE + 3 {
            for (op, test) in [
                ("lt", i64::lt as fn(&i64, &i64) -> bool),
                ("le", i64::le),
                ("eq", i64::eq),
                ("ge", i64::ge),
                ("gt", i64::gt),
            ] {
                let found = walk(&mut connection, &format!("p: FILTER n {op} {bound}"), 1000);
                let passing = (LARGE - 2..=LARGE + 3).filter(|number| test(number, &bound));
                assert_eq!(found, passing.map(|number| format!("p:{number}")).collect(), "{op} {bound}, {index}");
            }
        }
    }
}

#[test]
fn a_walk_meets_every_record_once() {
    const RECORDS: usize = 500;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    for number in 0..RECORDS {
        let state = ["new", "running", "done"][number % 3];
        // Every field that is no number makes an index useless for some records.
        let score = if number % 200 == 199 { "none".to_owned() } else { (number % 40).to_string() };
        connection.queue_line(&format!("HSET p:{number} n {score} state {state}"));
        connection.queue_line(&format!("HSET q:{number} n 1 state new"));
        connection.queue_line(&format!("SET p:text:{number} 1"));
    }
    (0..3 * RECORDS).for_each(|_| assert!(!connection.read().is_error()));
    let all = 0..RECORDS;
    let is_number = |number: &usize| number % 200 != 199;
    let keys = |numbers: &mut dyn Iterator<Item = usize>| numbers.map(|n| format!("p:{n}")).collect::<BTreeSet<_>>();
    let searches: [(&str, BTreeSet<String>); 6] = [
        ("p:", keys(&mut all.clone())),
        ("p: FILTER n eq 7", keys(&mut all.clone().filter(|n| is_number(n) && n % 40 == 7))),
        (
            "p: FILTER n gt 30 FILTER n le 35",
            keys(&mut all.clone().filter(|n| is_number(n) && (31..=35).contains(&(n % 40)))),
        ),
        (
            "p: FILTER n lt 7 FILTER state eq done",
            keys(&mut all.clone().filter(|n| is_number(n) && n % 40 < 7 && n % 3 == 2)),
        ),
        (
            "p: FILTER state in 2 new done FILTER n ge 39",
            keys(&mut all.clone().filter(|n| n % 3 != 1 && (n % 40 == 39 || !is_number(n)))),
        ),
        (
            "p:4 FILTER n lt 2",
            keys(&mut all.clone().filter(|n| is_number(n) && n % 40 < 2 && n.to_string().starts_with('4'))),
        ),
    ];
    for index in [
        "PING",
        "IDX.CREATE i PREFIX 1 p: FIELD n",
        "IDX.CREATE i PREFIX 1 p: FIELD n ONLY state 2 done new",
        "IDX.CREATE i PREFIX 1 p: FIELD n EXCLUDE state 1 running",
    ] {
        drop_indexes(&mut connection);
        connection.run(index);
        for (search, expected) in &searches {
            for limit in [1, 7, 1000] {
                assert_eq!(&walk(&mut connection, search, limit), expected, "{search}, LIMIT {limit}, {index}");
            }
        }
    }
    // Without what is no number, the index is of use.
    (0..RECORDS).filter(|number| !is_number(number)).for_each(|number| {
        connection.run(&format!("DEL p:{number}"));
    });
    for index in ["PING", "IDX.CREATE i PREFIX 1 p: FIELD n"] {
        drop_indexes(&mut connection);
        connection.run(index);
        for (search, expected) in &searches {
            let expected: BTreeSet<String> =
                expected.iter().filter(|key| is_number(&key[2..].parse().expect("a number"))).cloned().collect();
            for limit in [1, 7, 1000] {
                assert_eq!(walk(&mut connection, search, limit), expected, "{search}, LIMIT {limit}, {index}");
            }
        }
    }
}

/// Records that are there all the time are met, however many others come and go, and whatever index comes and goes.
#[test]
fn a_walk_meets_what_stays() {
    const STAY: usize = 500;
    let Some(session) = start() else { return };
    let (mut walker, mut writer) = (session.connect(), session.connect());
    let expected: BTreeSet<String> = (0..STAY).map(|number| format!("p:{number}")).collect();
    for key in &expected {
        walker.run(&format!("HSET {key} n 5"));
    }
    let mut found = BTreeSet::new();
    let (mut cursor, mut round) = ("0".to_owned(), 0);
    loop {
        let reply = walker.run(&format!("HFIND p: FILTER n eq 5 KEYS LIMIT 7 CURSOR {cursor}"));
        found.extend(reply.items()[1].items().iter().map(|key| key.text().to_owned()));
        cursor = reply.items()[0].text().to_owned();
        if cursor == "0" {
            break;
        }
        for number in 0..20 {
            writer.queue_line(&format!("HSET p:new:{round}:{number} n 5"));
            writer.queue_line(&format!("DEL p:new:{}:{number}", round - 3));
        }
        writer.queue_line(if round % 4 < 2 { "IDX.CREATE i PREFIX 1 p: FIELD n" } else { "IDX.DROP i" });
        (0..41).for_each(|_| drop(writer.read()));
        round += 1;
    }
    let missed: Vec<_> = expected.difference(&found).collect();
    assert!(missed.is_empty(), "missed: {missed:?}");
}

#[test]
fn what_has_expired_is_not_found() {
    check(
        r##"
        ! DEBUG SET-ACTIVE-EXPIRE 0
        ! HSET p:1 n 1
        ! HSET p:2 n 2 a 1
        ! HSET p:3 n 3
        ! PEXPIRE p:1 1
        ! HPEXPIRE p:2 1 FIELDS 1 n
        # sleep 5ms
        HFIND p: FILTER n ge 0 KEYS => ["0", ["p:3"]]
        > HFIND p: FILTER n ne 3
        ["0", [["p:2", ["a", "1"]]]]
        ! IDX.CREATE i PREFIX 1 p: FIELD n EXCLUDE a 1 1
        HFIND p: FILTER n ge 0 KEYS => ["0", ["p:3"]]
        > ZRANGE i 0 -1
        ["p:3"]
        ! HSET p:4 n 4 a 1
        ! HPEXPIRE p:4 1 FIELDS 1 a
        # sleep 5ms
        HFIND p: FILTER n ge 4 KEYS => ["0", ["p:4"]]
        > HFIND p: FILTER n ge 4 FILTER a eq 1 KEYS
        ["0", []]
        ! DEBUG SET-ACTIVE-EXPIRE 1
        "##,
    );
}

/// All keys that a search meets; none comes twice.
#[track_caller]
fn walk(connection: &mut Connection, search: &str, limit: usize) -> BTreeSet<String> {
    let search = format!("HFIND {search} LIMIT {limit} KEYS");
    let keys: Vec<String> = walk_with(connection, &search, |key| key.text().to_owned());
    let found: BTreeSet<String> = keys.iter().cloned().collect();
    assert_eq!(found.len(), keys.len(), "a key came twice: {search}");
    found
}
