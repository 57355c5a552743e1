//! HSCAN and HRANDFIELD.

use std::collections::{BTreeMap, BTreeSet};

use wire::{Connection, Reply, Session, check};

#[test]
fn hscan_of_a_small_hash_is_one_step() {
    check(
        r#"
        > HSET h a 1 b 2 ab 3
        :3
        > HSCAN h 0
        ["0", ~["a", "1", "b", "2", "ab", "3"]]
        > HSCAN h 0 COUNT 1
        ["0", ~["a", "1", "b", "2", "ab", "3"]]
        > HSCAN h 0 MATCH a*
        ["0", ~["a", "1", "ab", "3"]]
        > HSCAN h 0 MATCH ?
        ["0", ~["a", "1", "b", "2"]]
        > HSCAN h 0 MATCH nosuch
        ["0", []]
        > HSCAN h 0 match a count 100
        ["0", ["a", "1"]]
        > HSCAN h 0 MATCH a MATCH b
        ["0", ["b", "2"]]
        > HSCAN nosuch 0
        ["0", []]
        > HSCAN nosuch 5
        ["0", []]
        "#,
    );
}

#[test]
fn hscan_novalues() {
    check(
        r#"
        # needs redis >= 7.4
        > HSET h a 1 b 2
        :2
        > HSCAN h 0 NOVALUES
        ["0", ~["a", "b"]]
        > HSCAN h 0 MATCH a NOVALUES
        ["0", ["a"]]
        > HSCAN h 0 NOVALUES COUNT 10 MATCH b
        ["0", ["b"]]
        > HSCAN h 0 novalues
        ["0", ~["a", "b"]]
        > HSCAN nosuch 0 NOVALUES
        ["0", []]
        > SCAN 0 NOVALUES
        -ERR NOVALUES option can only be used in HSCAN
        "#,
    );
}

#[test]
fn hscan_refuses_bad_arguments() {
    check(
        r#"
        > HSET h a 1
        :1
        > HSCAN h abc
        -ERR invalid cursor
        > HSCAN h 1.5
        -ERR invalid cursor
        > HSCAN h 0 COUNT
        -ERR syntax error
        > HSCAN h 0 COUNT 0
        -ERR syntax error
        > HSCAN h 0 COUNT -5
        -ERR syntax error
        > HSCAN h 0 COUNT abc
        -ERR value is not an integer or out of range
        > HSCAN h 0 MATCH
        -ERR syntax error
        > HSCAN h 0 NOSUCH
        -ERR syntax error
        > HSCAN h 0 TYPE hash
        -ERR syntax error
        > HSCAN h
        -ERR wrong number of arguments for 'hscan' command
        > HSCAN
        -ERR wrong number of arguments for 'hscan' command
        > HSCAN nosuch 0 COUNT 0
        ["0", []]
        > HSCAN nosuch abc
        -ERR invalid cursor
        > HSCAN nosuch 0 NOSUCH
        ["0", []]
        > SET s x
        +OK
        > HSCAN s 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HSCAN s abc
        -ERR invalid cursor
        > HSCAN s 0 COUNT 0
        -WRONGTYPE Operation against a key holding the wrong kind of value
        "#,
    );
}

#[test]
fn hscan_refuses_a_cursor_that_is_no_number_at_all() {
    check(
        r#"
        # needs redis >= 8.0
        > HSET h a 1
        :1
        > HSCAN h ""
        -ERR invalid cursor
        > HSCAN h -1
        -ERR invalid cursor
        > HSCAN h " 0"
        ["0", ["a", "1"]]
        > HSCAN h 18446744073709551616
        -ERR invalid cursor
        "#,
    );
}

#[test]
fn hrandfield() {
    check(
        r#"
        > HSET h a 1
        :1
        > HRANDFIELD h
        "a"
        > HRANDFIELD h 1
        ["a"]
        > HRANDFIELD h 5
        ["a"]
        > HRANDFIELD h -3
        ["a", "a", "a"]
        > HRANDFIELD h 0
        []
        > HRANDFIELD h 0 WITHVALUES
        []
        > HRANDFIELD h 1 WITHVALUES
        ["a", "1"]
        > HRANDFIELD h 5 WITHVALUES
        ["a", "1"]
        > HRANDFIELD h -2 withvalues
        ["a", "1", "a", "1"]
        > HRANDFIELD nosuch
        (nil)
        > HRANDFIELD nosuch 5
        []
        > HRANDFIELD nosuch -5
        []
        > HRANDFIELD nosuch 5 WITHVALUES
        []
        > HRANDFIELD h 9223372036854775807
        ["a"]
        "#,
    );
}

#[test]
fn hrandfield_refuses_bad_arguments() {
    check(
        r#"
        > HSET h a 1
        :1
        > HRANDFIELD h abc
        -ERR value is not an integer or out of range
        > HRANDFIELD h 1.5
        -ERR value is not an integer or out of range
        > HRANDFIELD h ""
        -ERR value is not an integer or out of range
        > HRANDFIELD h 1 NOSUCH
        -ERR syntax error
        > HRANDFIELD h WITHVALUES
        -ERR value is not an integer or out of range
        > HRANDFIELD h 1 WITHVALUES more
        -ERR syntax error
        > HRANDFIELD h -9223372036854775808
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
        > HRANDFIELD h -9223372036854775807 WITHVALUES
        -ERR value is out of range
        > HRANDFIELD h -4611686018427387904 WITHVALUES
        -ERR value is out of range
        > HRANDFIELD h 9223372036854775808
        -ERR value is not an integer or out of range
        > HRANDFIELD h 9223372036854775807 WITHVALUES
        -ERR value is out of range
        > HRANDFIELD
        -ERR wrong number of arguments for 'hrandfield' command
        > HRANDFIELD nosuch abc
        -ERR value is not an integer or out of range
        > HRANDFIELD nosuch 1 NOSUCH
        -ERR syntax error
        > SET s x
        +OK
        > HRANDFIELD s 1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        > HRANDFIELD s abc
        -ERR value is not an integer or out of range
        "#,
    );
}

#[test]
fn hscan_visits_every_field_of_a_large_hash() {
    let session = Session::start();
    let mut connection = session.connect();
    let fields = fill(&mut connection, 1000);
    for options in ["", "COUNT 1", "COUNT 37", "COUNT 100000", "MATCH f*"] {
        assert_eq!(scan(&mut connection, options, |_, _| {}), fields, "HSCAN h 0 {options}");
    }
    let matching = scan(&mut connection, "MATCH f?5", |_, _| {});
    let expected = fields.into_iter().filter(|(field, _)| field.len() == 3 && field.ends_with('5')).collect();
    assert_eq!(matching, expected);
}

#[test]
fn hscan_visits_what_stays_while_other_fields_come_and_go() {
    let session = Session::start();
    let mut connection = session.connect();
    let fields = fill(&mut connection, 500);
    let mut round = 0;
    let seen = scan(&mut connection, "COUNT 5", |connection, _| {
        // Grows the hash to several times its size, then shrinks it again.
        for i in 0..20 {
            connection.run(&format!("HSET h other{round}:{i} x"));
            if round > 50 {
                connection.run(&format!("HDEL h other{}:{i}", round - 50));
            }
        }
        round += 1;
    });
    for (field, value) in &fields {
        assert_eq!(seen.get(field), Some(value), "{field} was there all the time and was not returned");
    }
}

#[test]
fn hscan_may_delete_what_it_visits() {
    let session = Session::start();
    let mut connection = session.connect();
    let fields = fill(&mut connection, 1000);
    let seen = scan(&mut connection, "COUNT 10", |connection, field| {
        connection.run_args(&["HDEL", "h", field]);
    });
    assert_eq!(seen, fields);
    assert_eq!(connection.run("EXISTS h").integer(), 0);
}

#[test]
fn hrandfield_of_a_large_hash() {
    let session = Session::start();
    let mut connection = session.connect();
    let fields = fill(&mut connection, 300);
    let names: BTreeSet<&String> = fields.keys().collect();

    // A positive count: different fields, never more than there are.
    for count in [1, 5, 100, 299, 300, 1000] {
        let reply = connection.run(&format!("HRANDFIELD h {count}"));
        let picked: BTreeSet<String> = reply.items().iter().map(|item| item.text().to_owned()).collect();
        assert_eq!(picked.len(), reply.items().len(), "a field came twice with count {count}");
        assert_eq!(picked.len(), count.min(300));
        assert!(picked.iter().all(|field| names.contains(field)));
    }
    // A negative count: exactly as many, the same one more than once.
    let reply = connection.run("HRANDFIELD h -1000");
    assert_eq!(reply.items().len(), 1000);
    assert!(reply.items().iter().all(|field| fields.contains_key(field.text())));
    // Values belong to their fields.
    for count in [20, -20, 1000] {
        let reply = connection.run(&format!("HRANDFIELD h {count} WITHVALUES"));
        assert_eq!(reply.items().len() % 2, 0);
        for pair in reply.items().chunks(2) {
            assert_eq!(fields.get(pair[0].text()).map(String::as_str), Some(pair[1].text()));
        }
    }
}

#[test]
fn hrandfield_picks_every_field_sooner_or_later() {
    const FIELDS: usize = 20;
    const TRIES_MAX: usize = 10_000;
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, FIELDS);
    for command in ["HRANDFIELD h", "HRANDFIELD h 1", "HRANDFIELD h -1", "HRANDFIELD h 7"] {
        let mut seen = BTreeSet::new();
        for _ in 0..TRIES_MAX {
            match connection.run(command) {
                Reply::Bulk(field) => seen.extend([field]),
                reply => seen.extend(reply.items().iter().map(|item| item.bytes().to_vec())),
            }
            if seen.len() == FIELDS {
                break;
            }
        }
        assert_eq!(seen.len(), FIELDS, "{command} leaves some out");
    }
}

/// Makes `h` a hash of this many fields.
fn fill(connection: &mut Connection, len: usize) -> BTreeMap<String, String> {
    let fields: BTreeMap<String, String> = (0..len).map(|i| (format!("f{i}"), format!("v{i}"))).collect();
    let commands: Vec<String> = fields.iter().map(|(field, value)| format!("HSET h {field} {value}")).collect();
    connection.pipeline(&commands);
    fields
}

/// Scans `h` from 0 to 0 and calls `visit` for every field on the way.
fn scan(
    connection: &mut Connection,
    options: &str,
    mut visit: impl FnMut(&mut Connection, &str),
) -> BTreeMap<String, String> {
    const STEPS_MAX: usize = 100_000;
    let mut found = BTreeMap::new();
    let mut cursor = "0".to_owned();
    for _ in 0..STEPS_MAX {
        let step = connection.run(&format!("HSCAN h {cursor} {options}"));
        let [next, fields] = step.items() else { panic!("{step}") };
        for pair in fields.items().chunks(2) {
            let (field, value) = (pair[0].text().to_owned(), pair[1].text().to_owned());
            visit(connection, &field);
            found.insert(field, value);
        }
        cursor = next.text().to_owned();
        if cursor == "0" {
            return found;
        }
    }
    panic!("HSCAN does not come to an end");
}
