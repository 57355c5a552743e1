//! HRANDFIELD, SRANDMEMBER and ZRANDMEMBER.

use std::collections::{BTreeMap, BTreeSet};

use wire::{Connection, Reply, Session};

use crate::{Words, check_each};

const SETS: Words = Words(&[("PICK", "SRANDMEMBER # {@}"), ("MAKE", "SADD # a")]);

/// Those with values, which the option `WITH` adds to the reply.
const PAIRS: &[Words] = &[
    Words(&[
        ("PICK", "HRANDFIELD # {@}"),
        ("WITH_VALUES", "WITHVALUES"),
        ("MAKE", "HSET # a 1.5"),
        ("NUMBER", "\"1.5\""),
    ]),
    Words(&[
        ("PICK", "ZRANDMEMBER # {@}"),
        ("WITH_VALUES", "WITHSCORES"),
        ("MAKE", "ZADD # 1.5 a"),
        ("NUMBER", ",1.5"),
    ]),
];

#[test]
fn one_element_and_none() {
    check_each(
        &[PAIRS, &[SETS]].concat(),
        r#"
        > MAKE k
        :1
        PICK k => "a"
        PICK k 1 => ["a"]
        PICK k 5 => ["a"]
        PICK k -1 => ["a"]
        PICK k -3 => ["a", "a", "a"]
        PICK k 0 => []
        PICK k 9223372036854775807 => ["a"]
        PICK nosuch => (nil)
        PICK nosuch 5 => []
        PICK nosuch -5 => []
        PICK nosuch 0 => []
        > EXISTS nosuch
        :0
        // In RESP3 it is an array too, and no set.
        ! HELLO 3
        PICK k => "a"
        PICK k 10 => ["a"]
        PICK k -2 => ["a", "a"]
        PICK k 0 => []
        PICK nosuch => _
        PICK nosuch 1 => []
        PICK nosuch -1 => []
        "#,
    );
}

#[test]
fn with_values() {
    check_each(
        PAIRS,
        r#"
        > MAKE k
        :1
        PICK k 0 WITH_VALUES => []
        PICK k 1 WITH_VALUES => ["a", "1.5"]
        PICK k 5 WITH_VALUES => ["a", "1.5"]
        PICK k -2 WITH_VALUES => ["a", "1.5", "a", "1.5"]
        PICK nosuch 5 WITH_VALUES => []
        -ERR value is not an integer or out of range
            PICK k WITH_VALUES
        -ERR syntax error
            PICK k 1 WITH_VALUES more
        -ERR value is out of range
            PICK k -9223372036854775807 WITH_VALUES
            PICK k -4611686018427387904 WITH_VALUES
            PICK k 9223372036854775807 WITH_VALUES
        ! HELLO 3
        PICK k 1 WITH_VALUES => [["a", NUMBER]]
        PICK k -2 WITH_VALUES => [["a", NUMBER], ["a", NUMBER]]
        PICK k 0 WITH_VALUES => []
        PICK nosuch 1 WITH_VALUES => []
        "#,
    );
}

#[test]
fn bad_arguments() {
    check_each(
        &[PAIRS, &[SETS]].concat(),
        r#"
        > MAKE k
        :1
        > SET str x
        +OK
        -ERR value is not an integer or out of range
            PICK k abc
            PICK k 1.5
            PICK k ""
            PICK k +1
            PICK k -0
            PICK k 9223372036854775808
            PICK k -9223372036854775809
            PICK nosuch abc
            PICK str abc
        -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
            PICK k -9223372036854775808
            PICK nosuch -9223372036854775808
        -ERR syntax error
            PICK k 1 more
            PICK nosuch 1 more
        "#,
    );
}

/// A type from which elements are picked, as commands on `k`.
struct Picked {
    pick: &'static str,
    add: fn(usize) -> String,
    /// The option that adds values to the reply.
    with_values: &'static str,
}

const PICKED: &[Picked] = &[
    Picked { pick: "HRANDFIELD k", add: |i| format!("HSET k m{i} {}", i % 7), with_values: "WITHVALUES" },
    Picked { pick: "ZRANDMEMBER k", add: |i| format!("ZADD k {} m{i}", i % 7), with_values: "WITHSCORES" },
    Picked { pick: "SRANDMEMBER k", add: |i| format!("SADD k m{i}"), with_values: "" },
    // An intset.
    Picked { pick: "SRANDMEMBER k", add: |i| format!("SADD k {i}"), with_values: "" },
];

#[test]
fn a_large_value() {
    for_each(300, |kind, connection, elements| {
        let pick = kind.pick;
        // A positive count: different elements, never more than there are. The counts are on both sides of those at which
        // Redis changes its algorithm: a third of them, and all.
        for count in [1, 2, 5, 90, 99, 100, 101, 150, 299, 300, 301, 1000] {
            let reply = connection.run(&format!("{pick} {count}"));
            let picked = names(&reply);
            assert_eq!(picked.len(), reply.items().len(), "an element came twice with {pick} {count}");
            assert_eq!(picked.len(), count.min(300), "{pick} {count}");
            assert!(picked.iter().all(|name| elements.contains_key(name)), "{pick} {count}");
        }
        // A negative count: exactly as many.
        for count in [1, 2, 299, 300, 301, 1000] {
            let reply = connection.run(&format!("{pick} -{count}"));
            assert_eq!(reply.items().len(), count, "{pick} -{count}");
            assert!(names(&reply).iter().all(|name| elements.contains_key(name)), "{pick} -{count}");
        }
        // Values belong to their elements.
        for count in [20, -20, 290, 1000, -1000].iter().filter(|_| !kind.with_values.is_empty()) {
            let reply = connection.run(&format!("{pick} {count} {}", kind.with_values));
            assert_eq!(reply.items().len() % 2, 0);
            for pair in reply.items().chunks(2) {
                assert_eq!(elements.get(pair[0].text()).map(String::as_str), Some(pair[1].text()), "{pick} {count}");
            }
        }
    });
}

/// That one element is never picked in so many tries has a chance of less than 200 * (199/200)^20000, or 1 in 10^41.
#[test]
fn every_element_is_picked_sooner_or_later() {
    const TRIES_MAX: usize = 20_000;
    // Small, and too large to be kept as a small one is.
    for len in [20, 200] {
        for_each(len, |kind, connection, elements| {
            for count in ["", "1", "-1", "7", "-7"] {
                let mut seen = BTreeSet::new();
                for _ in 0..TRIES_MAX {
                    match connection.run(&format!("{} {count}", kind.pick)) {
                        Reply::Bulk(name) => seen.extend([String::from_utf8(name).expect("a plain name")]),
                        reply => seen.extend(names(&reply)),
                    }
                    if seen.len() == len {
                        break;
                    }
                }
                assert!(seen.iter().eq(elements.keys()), "{} {count} leaves some out", kind.pick);
            }
        });
    }
}

/// Runs a test for each type, with so many elements in `k`: names with their values.
fn for_each(len: usize, test: impl Fn(&Picked, &mut Connection, BTreeMap<String, String>)) {
    let session = Session::start();
    let mut connection = session.connect();
    for kind in PICKED {
        let commands: Vec<String> = (0..len).map(kind.add).collect();
        let name = |command: &String| {
            let mut words: Vec<&str> = command.split(' ').skip(2).collect();
            words.sort_unstable_by_key(|word| !word.starts_with('m'));
            (words[0].to_owned(), words.get(1).copied().unwrap_or_default().to_owned())
        };
        connection.run("DEL k");
        connection.pipeline(&commands);
        test(kind, &mut connection, commands.iter().map(name).collect());
    }
}

fn names(reply: &Reply) -> BTreeSet<String> {
    reply.items().iter().map(|item| item.text().to_owned()).collect()
}
