//! SSCAN and the encodings of sets. What all scans have in common is in `collections`.

use std::collections::BTreeSet;

use wire::{Connection, Product, Session, check};

#[test]
fn an_intset_is_scanned_in_one_step() {
    check(
        r#"
        ! SADD n 5 1 -3 200 70000
        SSCAN n 0 => ["0", ~["1", "5", "-3", "200", "70000"]]
        SSCAN n 0 COUNT 1 => ["0", ~["1", "5", "-3", "200", "70000"]]
        SSCAN n 0 MATCH *0* => ["0", ~["200", "70000"]]
        SSCAN n 0 MATCH -* => ["0", ["-3"]]
        // Whatever the cursor is.
        > SSCAN n 17
        ["0", ~["1", "5", "-3", "200", "70000"]]
        "#,
    );
    let session = Session::start();
    let mut connection = session.connect();
    let members: Vec<String> = (0..512).map(|i| i.to_string()).collect();
    connection.run(&format!("SADD n {}", members.join(" ")));
    let reply = connection.run("SSCAN n 0 COUNT 1");
    assert_eq!(reply.items()[0].text(), "0");
    assert_eq!(reply.items()[1].items().len(), 512);
}

#[test]
fn a_listpack_is_scanned_in_one_step() {
    let session = Session::start();
    if session.product() != Product::Holdfast && !session.has_redis("7.2") {
        return wire::skip("older than Redis 7.2");
    }
    let mut connection = session.connect();
    let members = fill(&mut connection, 128);
    for cursor in [0, 17] {
        let reply = connection.run(&format!("SSCAN s {cursor} COUNT 1"));
        assert_eq!(reply.items()[0].text(), "0");
        let found: BTreeSet<String> = reply.items()[1].items().iter().map(|member| member.text().to_owned()).collect();
        assert_eq!(found, members);
    }
    connection.run("SADD s one-more");
    assert_ne!(connection.run("SSCAN s 0 COUNT 1").items()[0].text(), "0");
}

/// An intset becomes a table, and a table is replaced by an intset, between two steps.
#[test]
fn the_encoding_may_change_on_the_way() {
    let session = Session::start();
    let mut connection = session.connect();
    fill(&mut connection, 600);
    let first = connection.run("SSCAN s 0 COUNT 5");
    let cursor = first.items()[0].text().to_owned();
    assert_ne!(cursor, "0");
    connection.run("DEL s");
    connection.run("SADD s 1 2 3");
    let next = connection.run(&format!("SSCAN s {cursor}"));
    assert_eq!(next.to_string(), r#"["0", ["1", "2", "3"]]"#);
    connection.run("DEL s");
    let next = connection.run(&format!("SSCAN s {cursor}"));
    assert_eq!(next.to_string(), r#"["0", []]"#);
}

/// Makes `s` a set of this many members.
fn fill(connection: &mut Connection, len: usize) -> BTreeSet<String> {
    let members: BTreeSet<String> = (0..len).map(|i| format!("m{i}")).collect();
    connection.run_with("SADD s", &members.iter().map(String::as_bytes).collect::<Vec<_>>());
    members
}
