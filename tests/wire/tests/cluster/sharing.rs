//! One writes, others follow and answer reads; each tells the truth about it.

use wire::Reply;

use crate::nats::{Nats, position, role, same_digest};
use crate::process::{eventually, info, ok};
use crate::support::furnish;

const READ_ONLY: &str = "-READONLY You can't write against a read only replica.";

#[test]
fn a_follower_has_what_the_writer_has_and_writes_nothing() {
    let Some((nats, writer, mut at_writer)) = Nats::with_writer() else { return };
    furnish(&mut at_writer, true);
    ok(&mut at_writer, "SET before 1");
    let follower = nats.follower(&writer, &[]);
    let mut at_follower = follower.connect();
    same_digest(&mut at_writer, &mut at_follower);
    assert_eq!(at_follower.run("GET before").text(), "1");
    ok(&mut at_writer, "SET after 2");
    eventually("the follower has the change", || at_follower.run("GET after") == Reply::Bulk(b"2".to_vec()));
    for command in ["FUNCTION FLUSH", "SAVE", "SET later 3", "BGREWRITEAOF", "FLUSHDB", "SET last 4"] {
        let reply = at_writer.run(command);
        assert!(!reply.is_error(), "{command}: {reply}");
        same_digest(&mut at_writer, &mut at_follower);
    }
    for refused in [
        "SET x 1",
        "BLPOP list 0",
        "FLUSHALL",
        "CLIENT DURABILITY always",
        "EVAL \"return redis.call('SET', 'x', 1)\" 0",
    ] {
        let reply = at_follower.run(refused).to_string();
        assert!(reply.starts_with("-READONLY "), "{refused}: {reply}");
    }
    at_follower.run("MULTI");
    assert_eq!(at_follower.run("SET x 1").to_string(), READ_ONLY);
    assert!(at_follower.run("EXEC").to_string().starts_with("-EXECABORT"));
    for refused in ["SAVE", "BGSAVE", "BGREWRITEAOF"] {
        let reply = at_follower.run(refused).to_string();
        assert!(reply.starts_with("-ERR a follower writes no snapshots"), "{refused}: {reply}");
    }
    // A reader that must not see old data is sent away.
    ok(&mut at_follower, "CONFIG SET follower-reads no");
    let reply = at_follower.run("GET last").to_string();
    assert!(reply.starts_with("-MASTERDOWN "), "{reply}");
    assert_eq!(role(&mut at_follower), "slave", "it still says what it is");
    ok(&mut at_follower, "CONFIG SET follower-reads yes");
    assert_eq!(at_follower.run("GET last").text(), "4");
}

#[test]
fn both_sides_tell_of_each_other_and_of_the_log() {
    let Some((nats, writer, follower)) = Nats::with_pair() else { return };
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    let ports = (writer.address().port(), follower.address().port());
    ok(&mut at_writer, "SET a 1");
    assert_eq!(at_writer.run("WAIT 1 0").integer(), 1);
    assert_eq!(at_writer.run("WAIT 2 20").integer(), 1, "there is one");
    assert_eq!(at_writer.run("WAITAOF 1 1 0").to_string(), "[:1, :1]");
    // All that is acknowledged is durable: at once, whatever a client asks for.
    for policy in ["always", "everysec", "no", "default"] {
        ok(&mut at_writer, &format!("CLIENT DURABILITY {policy}"));
        ok(&mut at_writer, "SET a 2");
        assert_eq!(at_writer.run("WAITAOF 1 0 0").items()[0].integer(), 1, "{policy}");
    }
    let line: String = info(&mut at_writer, "slave0");
    assert!(line.starts_with(&format!("ip=127.0.0.1,port={},state=online,offset=", ports.1)), "{line}");
    for (name, value) in [("role", "slave"), ("master_port", &ports.0.to_string()), ("lag_batches", "0")] {
        eventually(name, || info::<String>(&mut at_follower, name) == value);
    }
    assert!(at_follower.run("WAIT 0 0").to_string().starts_with("-ERR WAIT cannot be used with replica instances"));
    assert_eq!(at_follower.run("FAILOVER").to_string(), "-ERR FAILOVER is not valid when server is a replica.");
    for connection in [&mut at_writer, &mut at_follower] {
        assert_eq!(info::<String>(connection, "log"), nats.url());
        assert_eq!(info::<u32>(connection, "epoch"), 1);
        assert_eq!(info::<u32>(connection, "members"), 2);
        assert_eq!(info::<u32>(connection, "log_connected"), 1);
        let findings: String = info(connection, "log_findings");
        assert!(findings.contains("log-replicas is 1"), "{findings}");
    }
    assert!(info::<u64>(&mut at_writer, "lease_ms_left") <= 3000);
    assert!(!at_follower.run("INFO replication").text().contains("lease_ms_left"), "a follower has none");
    assert_eq!(at_writer.run("CONFIG SET appendonly no").to_string().split(' ').next(), Some("-ERR"));
}

/// A batch may be longer than a message of the stream. It is there as a whole, on both sides and after a restart.
#[test]
fn values_larger_than_a_message() {
    let Some((nats, writer, follower)) = Nats::with_pair() else { return };
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    let value: Vec<u8> = (0..5_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    at_writer.queue(&[b"SET".as_slice(), b"large", &value]);
    at_writer.queue(&[b"SET".as_slice(), b"small", b"1"]);
    at_writer.queue(&[b"SET".as_slice(), b"larger", &[&value[..], &value].concat()]);
    (0..3).for_each(|_| assert_eq!(at_writer.read().to_string(), "+OK"));
    assert!(nats.state("last_seq") > 15, "it takes many messages of a mebibyte");
    let digest = same_digest(&mut at_writer, &mut at_follower);
    assert!(at_follower.run("GET large").bytes() == value, "the value is whole");
    drop(writer);
    drop(follower);
    let again = nats.writer(&[]);
    assert_eq!(again.connect().run("DEBUG DIGEST").to_string(), digest);
}

/// Regression: marks are batches that followers pass over, and they seemed to be ever further behind.
#[test]
fn confirmed_reads_leave_no_follower_behind() {
    let Some(nats) = Nats::start() else { return };
    let writer = nats.writer(&["--reads", "confirmed"]);
    let follower = nats.follower(&writer, &[]);
    let (mut at_writer, mut at_follower) = (writer.connect(), follower.connect());
    ok(&mut at_writer, "SET a 1");
    for _ in 0..50 {
        assert_eq!(at_writer.run("GET a").to_string(), "\"1\"");
    }
    let wanted = position(&mut at_writer);
    eventually("the follower is there, too", || position(&mut at_follower) >= wanted);
}
