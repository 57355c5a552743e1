//! A source that takes no replica: its keys are copied one by one, twice.

use crate::compare::assert_equal;
use crate::load::Load;
use crate::moves::{start, url};
use crate::servers::Product;
use crate::tool::{Tool, promote};

#[test]
fn a_source_that_takes_no_replica_is_copied() {
    for product in [Product::Redis, Product::Valkey] {
        let Some((source, server)) = start(product, &[]) else { continue };
        let mut client = source.connect();
        client.run("ACL SETUSER mover on >secret ~* &* +@all -psync -sync");
        let load = Load::start(source.address, product == Product::Valkey);
        load.wait_for(400);
        let from = format!("redis://mover:secret@{}", source.address);
        let mut tool = Tool::follow(&from, &url(&server), &[]);
        tool.wait_to_say("its keys are copied one by one");
        tool.wait_to_say("a copy of a moment that has passed");
        load.wait_for(400);
        load.stop();
        client.run("DEL list:0 hash:0 set:1");
        client.run("SELECT 9");
        client.run("SET late 1");
        client.run("SELECT 0");
        let done = promote(&url(&server), &["--pause-source", "30"]);
        assert!(done.status.success(), "{} {}", String::from_utf8_lossy(&done.stderr), tool.stderr());
        assert_eq!(tool.wait_for_end().code(), Some(0), "{} {}", tool.stdout(), tool.stderr());
        // Deadlines are set in the time that is left, so they differ by moments.
        let mut target = server.connect();
        for connection in [&mut client, &mut target] {
            connection.run("CLIENT UNPAUSE");
            persist_all(connection);
        }
        assert_equal(&mut client, &mut target);
    }
}

/// Takes all deadlines away.
fn persist_all(connection: &mut wire::Connection) {
    for db in 0..16 {
        connection.run(&format!("SELECT {db}"));
        for name in connection.run("KEYS *").items() {
            connection.run_args(&[b"PERSIST", name.text().as_bytes()]);
        }
        for hash in 0..12 {
            for field in 0..50 {
                connection.run(&format!("HPERSIST hash:{hash} FIELDS 1 f{field}"));
            }
        }
    }
    connection.run("SELECT 0");
}
