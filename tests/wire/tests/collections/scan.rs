//! HSCAN, SSCAN and ZSCAN. What an encoding adds is in each family's own `scan`.

use std::collections::BTreeMap;

use wire::{Connection, Session};

use crate::{Words, check_each};

const KINDS: &[Words] = &[
    Words(&[
        ("STEP", "HSCAN # {@}"),
        ("MAKE", "HSET # a 1 b 2 ab 3"),
        ("ALL", r#"["0", ~["a", "1", "b", "2", "ab", "3"]]"#),
        ("WITH_A", r#"["0", ~["a", "1", "ab", "3"]]"#),
        ("SHORT", r#"["0", ~["a", "1", "b", "2"]]"#),
        ("ONLY_B", r#"["0", ["b", "2"]]"#),
    ]),
    Words(&[
        ("STEP", "SSCAN # {@}"),
        ("MAKE", "SADD # a b ab"),
        ("ALL", r#"["0", ~["a", "b", "ab"]]"#),
        ("WITH_A", r#"["0", ~["a", "ab"]]"#),
        ("SHORT", r#"["0", ~["a", "b"]]"#),
        ("ONLY_B", r#"["0", ["b"]]"#),
    ]),
    Words(&[
        ("STEP", "ZSCAN # {@}"),
        ("MAKE", "ZADD # 1 a 2.5 b inf ab"),
        ("ALL", r#"["0", ~["a", "1", "b", "2.5", "ab", "inf"]]"#),
        ("WITH_A", r#"["0", ~["a", "1", "ab", "inf"]]"#),
        ("SHORT", r#"["0", ~["a", "1", "b", "2.5"]]"#),
        ("ONLY_B", r#"["0", ["b", "2.5"]]"#),
    ]),
];

/// COUNT is large for the sets of a Redis 7.0, which are no listpacks.
#[test]
fn a_small_value_is_one_step() {
    check_each(
        KINDS,
        r#"
        > MAKE k
        :3
        STEP k 0 COUNT 1000 => ALL
        STEP k 0 COUNT 1 COUNT 1000 MATCH * => ALL
        STEP k 0 COUNT 1000 MATCH a* => WITH_A
        STEP k 0 MATCH ? COUNT 1000 => SHORT
        STEP k 0 MATCH nosuch COUNT 1000 => ["0", []]
        STEP k 0 COUNT 1000 MATCH "" => ["0", []]
        STEP k 0 match b count 1000 => ONLY_B
        STEP k 0 COUNT 1000 MATCH a MATCH b => ONLY_B
        STEP nosuch 0 => ["0", []]
        STEP nosuch 5 => ["0", []]
        STEP nosuch 0 MATCH x COUNT 5 => ["0", []]
        ! HELLO 3
        STEP k 0 COUNT 1000 MATCH b => ONLY_B
        STEP nosuch 0 => ["0", []]
        "#,
    );
}

#[test]
fn bad_arguments() {
    check_each(
        KINDS,
        r#"
        > MAKE k
        :3
        > SET str x
        +OK
        // The cursor is read first, then the key's type, and options only if there is a key.
        -ERR invalid cursor
            STEP k abc
            STEP k 1.5
            STEP k 99999999999999999999999
            STEP nosuch abc
            STEP str abc
        -ERR syntax error
            STEP k 0 COUNT
            STEP k 0 COUNT 0
            STEP k 0 COUNT -5
            STEP k 0 MATCH
            STEP k 0 MATCH a COUNT
            STEP k 0 NOSUCH
            STEP k 0 NOSUCH x
            STEP k 0 TYPE zset
        -ERR value is not an integer or out of range
            STEP k 0 COUNT abc
            STEP k 0 COUNT 9223372036854775808
        STEP nosuch 0 COUNT 0 => ["0", []]
        STEP nosuch 0 NOSUCH => ["0", []]
        STEP str 0 COUNT 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
        # needs redis >= 8.0
        -ERR invalid cursor
            STEP k ""
            STEP k -1
            STEP k 18446744073709551616
        "#,
    );
}

/// A type of which elements are scanned, as commands on `k`.
struct Scanned {
    scan: &'static str,
    add: fn(&str, &str) -> String,
    remove: &'static str,
    /// Whether each element has a value.
    has_values: bool,
}

const SCANNED: &[Scanned] = &[
    Scanned { scan: "HSCAN", add: |name, value| format!("HSET k {name} {value}"), remove: "HDEL", has_values: true },
    Scanned { scan: "SSCAN", add: |name, _| format!("SADD k {name}"), remove: "SREM", has_values: false },
    Scanned { scan: "ZSCAN", add: |name, value| format!("ZADD k {value} {name}"), remove: "ZREM", has_values: true },
];

/// Names with their values, which are empty where a type has none.
type Elements = BTreeMap<String, String>;

#[test]
fn every_element_is_visited() {
    for_each(1000, |kind, connection, elements| {
        for options in ["", "COUNT 1", "COUNT 37", "COUNT 100000", "MATCH m*"] {
            assert_eq!(kind.scan(connection, options, |_, _| {}), elements, "{} with {options}", kind.scan);
        }
        let matching = kind.scan(connection, "MATCH m?5", |_, _| {});
        let expected: Elements =
            elements.into_iter().filter(|(name, _)| name.len() == 3 && name.ends_with('5')).collect();
        assert_eq!(matching, expected);
    });
}

#[test]
fn a_count_bounds_a_step() {
    for_each(10_000, |kind, connection, _| {
        let mut step = |options: &str| {
            let reply = connection.run(&format!("{} k 0 {options}", kind.scan));
            let parts = reply.items()[1].items().len() / (1 + usize::from(kind.has_values));
            (reply.items()[0].text() != "0", parts)
        };
        // Not exactly as many: a step ends between two chains of the table.
        let (goes_on, len) = step("COUNT 100");
        assert!(goes_on && (50..1000).contains(&len), "{len} elements with COUNT 100 of {}", kind.scan);
        let (goes_on, len) = step("");
        assert!(goes_on && len < 100, "{len} elements without a COUNT of {}", kind.scan);
        assert_eq!(step("COUNT 100000"), (false, 10_000));
    });
}

#[test]
fn what_stays_is_visited_while_others_come_and_go() {
    for_each(200, |kind, connection, elements| {
        let mut round = 0;
        let seen = kind.scan(connection, "COUNT 5", |connection, name| {
            // Grows the value to several times its size, then shrinks it again; in a sorted set all move from rank to rank.
            let mut changes: Vec<String> = (0..20)
                .map(|i| (kind.add)(&format!("other{round}:{i}"), &((round * 7 + i) % 500).to_string()))
                .collect();
            if round > 20 {
                changes.extend((0..20).map(|i| format!("{} k other{}:{i}", kind.remove, round - 20)));
            }
            if let Some(value) = elements.get(name) {
                changes.push((kind.add)(name, value));
            }
            connection.pipeline(&changes);
            round += 1;
        });
        for (name, value) in &elements {
            assert_eq!(seen.get(name), Some(value), "{} did not return {name}", kind.scan);
        }
    });
}

#[test]
fn a_value_that_shrinks_far_below_its_size_is_scanned_to_the_end() {
    for_each(5000, |kind, connection, elements| {
        let stays = |name: &String| name.ends_with("77");
        let gone: Vec<&[u8]> = elements.keys().filter(|name| !stays(name)).map(|name| name.as_bytes()).collect();
        let mut shrunk = false;
        let seen = kind.scan(connection, "COUNT 20", |connection, _| {
            if !shrunk {
                connection.run_with(&format!("{} k", kind.remove), &gone);
                shrunk = true;
            }
        });
        for name in elements.keys().filter(|name| stays(name)) {
            assert!(seen.contains_key(name), "{} did not return {name}", kind.scan);
        }
    });
}

/// In a sorted set they move from the front to the back, and from the back to the front.
#[test]
fn elements_whose_values_change_are_visited() {
    for_each(600, |kind, connection, elements| {
        let seen = kind.scan(connection, "COUNT 10", |connection, name| {
            connection.run(&(kind.add)(name, if name.ends_with('0') { "-5000" } else { "5000" }));
        });
        assert!(seen.keys().eq(elements.keys()), "{}", kind.scan);
    });
}

#[test]
fn what_is_visited_may_be_removed() {
    for_each(1000, |kind, connection, elements| {
        let seen = kind.scan(connection, "COUNT 10", |connection, name| {
            connection.run_args(&[kind.remove, "k", name]);
        });
        assert_eq!(seen, elements, "{}", kind.scan);
        assert_eq!(connection.run("EXISTS k").integer(), 0);
    });
}

/// Runs a test for each type, with so many elements in `k`.
fn for_each(len: usize, test: impl Fn(&Scanned, &mut Connection, Elements)) {
    let session = Session::start();
    let mut connection = session.connect();
    for kind in SCANNED {
        let value = |i: usize| if kind.has_values { (i * 31 % 500).to_string() } else { String::new() };
        let elements: Elements = (0..len).map(|i| (format!("m{i}"), value(i))).collect();
        let commands: Vec<String> = elements.iter().map(|(name, value)| (kind.add)(name, value)).collect();
        connection.run("DEL k");
        connection.pipeline(&commands);
        test(kind, &mut connection, elements);
    }
}

impl Scanned {
    /// Scans `k` from 0 to 0 and calls `visit` for every element on the way.
    fn scan(
        &self,
        connection: &mut Connection,
        options: &str,
        mut visit: impl FnMut(&mut Connection, &str),
    ) -> Elements {
        const STEPS_MAX: usize = 100_000;
        let mut found = Elements::new();
        let mut cursor = "0".to_owned();
        for _ in 0..STEPS_MAX {
            let step = connection.run(&format!("{} k {cursor} {options}", self.scan));
            let [next, elements] = step.items() else { panic!("{step}") };
            for element in elements.items().chunks(1 + usize::from(self.has_values)) {
                let name = element[0].text();
                visit(connection, name);
                found.insert(name.to_owned(), element.get(1).map_or(String::new(), |value| value.text().to_owned()));
            }
            cursor = next.text().to_owned();
            if cursor == "0" {
                return found;
            }
        }
        panic!("{} does not come to an end", self.scan);
    }
}
