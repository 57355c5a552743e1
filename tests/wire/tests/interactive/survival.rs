//! A restart keeps what was committed, and nothing else.

use wire::{Server, fresh_dir};

use crate::start;

#[test]
fn a_killed_server_has_whole_transactions_only() {
    if start().is_none() {
        return;
    }
    let dir = fresh_dir();
    let server = Server::start(&dir, &["--enable-debug-command", "yes"]);
    let (mut client, mut open) = (server.connect(), server.connect());
    client.run("SADD members x");
    for number in 0..50 {
        client.run("TXN.BEGIN");
        client.run(&format!("SET a {number}"));
        client.run(&format!("HSET h f {number}"));
        client.run("RENAME members elsewhere");
        client.run(&format!("SADD elsewhere {number}"));
        client.run("COPY elsewhere copy REPLACE");
        client.run("RENAME elsewhere members");
        client.run("PEXPIREAT copy 99999999999999");
        if number % 5 == 4 {
            client.run("TXN.ROLLBACK");
        } else {
            assert!(client.run("TXN.COMMIT").integer() > 0);
        }
        if number == 25 {
            // From here on, the journal is behind a snapshot.
            client.run("BGREWRITEAOF");
        }
    }
    open.run("TXN.BEGIN");
    open.run("SET a lost");
    let digest = client.run("DEBUG DIGEST");
    server.kill();
    let server = Server::start(&dir, &["--enable-debug-command", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.run("GET a").text(), "48");
    assert_eq!(client.run("HGET h f").text(), "48");
    assert_eq!(client.run("SCARD members").integer(), 41);
    assert_eq!(client.run("DEBUG DIGEST"), digest);
}

#[test]
fn a_journal_that_is_off_changes_nothing_for_a_transaction() {
    if start().is_none() {
        return;
    }
    let server = Server::start(&fresh_dir(), &["--appendonly", "no"]);
    let mut client = server.connect();
    client.run("TXN.BEGIN");
    client.run("SET a 1");
    client.run("HSET h f v");
    assert!(client.run("TXN.COMMIT").integer() >= 0);
    assert_eq!(client.run("GET a").text(), "1");
    assert_eq!(client.run("HGET h f").text(), "v");
}
