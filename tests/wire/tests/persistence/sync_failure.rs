//! A disk that takes writes and fails to sync them. Needs strace, and the right to use it, to make it fail.

use wire::{Connection, Reply, Server};

use crate::faults::Injected;
use crate::support::{Home, eventually, ok};

/// While it lives, every sync of a server fails.
fn break_syncs(home: &Home, server: &Server) -> Option<Injected> {
    Injected::into(home, server, "fdatasync", "error=EIO")
}

const MISCONF: &str = "-MISCONF Errors writing to the AOF file: syncing ";

/// Nobody who waits for the disk is left without an answer, and nobody is told that it is safe.
#[test]
fn who_waits_is_told_and_let_go() {
    for (policy, lines) in [
        (&["--appendfsync", "always"][..], &["SET a 1"][..]),
        (&["--appendfsync", "everysec"], &["CLIENT DURABILITY always", "SET a 1"]),
    ] {
        let Some((home, server, mut safe)) = Home::serve_client(policy) else { return };
        ok(&mut safe, "MSET safe 1 safe:2 1 safe:3 1");
        assert_eq!(safe.run("WAITAOF 1 0 0").to_string(), "[:1, :0]");
        let Some(disk) = break_syncs(&home, &server) else { return };
        let mut client = server.connect();
        let (last, before) = lines.split_last().expect("there are some");
        before.iter().for_each(|line| ok(&mut client, line));
        let reply = client.run(last).to_string();
        assert!(reply.starts_with(MISCONF), "{policy:?}: {reply}");
        assert_eq!(client.read(), Reply::Closed, "{policy:?}");
        let mut client = server.connect();
        eventually("writes are refused", || client.run("SET b 2").to_string().starts_with(MISCONF));
        // What was kept can be read, unless it shares a shard with what was not: three keys do not all do so.
        let is_readable =
            |name: &str, client: &mut Connection| client.run(&format!("GET {name}")).to_string() == "\"1\"";
        assert!(["safe", "safe:2", "safe:3"].iter().any(|name| is_readable(name, &mut client)), "{policy:?}");
        assert!(client.run("INFO persistence").text().contains("journal_state:failed\r\n"), "{policy:?}");
        if policy[1] == "always" {
            let reply = client.run("GET a").to_string();
            assert!(reply.starts_with(MISCONF), "nobody reads what was not kept: {reply}");
            assert_eq!(client.run("PING").to_string(), "+PONG");
        }
        disk.mend();
        assert!(!client.run("BGREWRITEAOF").is_error());
        eventually("writes are taken", || client.run("SET c 3").to_string() == "+OK");
        let server = home.serve_again(server, policy);
        assert_eq!(server.connect().run("MGET safe c").to_string(), "[\"1\", \"3\"]", "{policy:?}");
    }
}

/// A transaction that was open when the disk failed is refused as a whole, now and after a start.
#[test]
fn an_open_transaction_cannot_be_committed() {
    let Some((home, server, mut client)) = Home::serve_client(&["--appendfsync", "always"]) else { return };
    ok(&mut client, "SET a 1");
    ["TXN.BEGIN", "SET a 2", "SET b 2"].iter().for_each(|line| ok(&mut client, line));
    let Some(disk) = break_syncs(&home, &server) else { return };
    let mut other = server.connect();
    assert!(other.run("SET unkept 1").to_string().starts_with(MISCONF));
    let mut other = server.connect();
    eventually("writes are refused", || other.run("SET unkept 1").to_string().starts_with(MISCONF));
    let reply = client.run("TXN.COMMIT").to_string();
    assert!(reply.starts_with(MISCONF), "{reply}");
    disk.mend();
    assert!(!other.run("BGREWRITEAOF").is_error());
    eventually("writes are taken", || other.run("SET c 3").to_string() == "+OK");
    assert_eq!(other.run("MGET a b").to_string(), "[\"1\", (nil)]");
    assert_eq!(client.run("TXN.COMMIT").to_string(), "-ERR TXN.COMMIT without TXN.BEGIN: no transaction is open");
    let server = home.serve_again(server, &["--appendfsync", "always"]);
    assert_eq!(server.connect().run("MGET a b").to_string(), "[\"1\", (nil)]");
}

/// WAITAOF never says that it is safe.
#[test]
fn waitaof_does_not_lie() {
    let Some((home, server)) = Home::serve(&["--appendfsync", "no"]) else { return };
    let Some(_disk) = break_syncs(&home, &server) else { return };
    let mut client = server.connect();
    ok(&mut client, "SET a 1");
    let reply = client.run("WAITAOF 1 0 5000").to_string();
    assert!(reply == "[:0, :0]" || reply.starts_with("-MISCONF "), "{reply}");
}
