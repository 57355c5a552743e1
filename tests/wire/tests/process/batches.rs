//! Changes that are too large for one batch of the journal: what makes them is refused, with nothing changed, and nobody else
//! is affected. The limit is set low here; as it is, gigabytes would be needed.

use crate::support::{Holdfast, ok};

const TOO_LARGE: &str = "its changes would be larger than one batch of the journal can be";

#[test]
fn what_is_too_large_for_a_batch_is_refused_alone() {
    let Some(server) = Holdfast::start(&["--enable-debug-command", "yes", "--appendfsync", "always"]) else { return };
    let (mut connection, mut other) = (server.connect(), server.connect());
    ok(&mut connection, "DEBUG SET-BATCH-BYTES-MAX 100000");
    assert_eq!(connection.run("SETRANGE src 59999 x").to_string(), ":60000");
    // One fits, two do not: the transaction is refused as a whole.
    for line in ["MULTI", "SET before 1", "BITOP NOT d1 src", "BITOP NOT d2 src"] {
        connection.run(line);
    }
    let expected = format!("-EXECABORT Transaction discarded because of: {TOO_LARGE}");
    assert_eq!(connection.run("EXEC").to_string(), expected);
    assert_eq!(other.run("EXISTS before d1 d2").to_string(), ":0");
    assert_eq!(connection.run("BITOP NOT d1 src").to_string(), ":60000");
    // What could not be foreseen is refused alone: the source is made by the transaction itself.
    for line in ["MULTI", "SETRANGE new 59999 x", "BITOP NOT d3 new", "BITOP NOT d4 new", "SET after 1"] {
        connection.run(line);
    }
    let expected = format!("[:60000, :60000, -\"ERR {TOO_LARGE}\", +OK]");
    assert_eq!(connection.run("EXEC").to_string(), expected);
    assert_eq!(other.run("EXISTS d3 d4 after").to_string(), ":2");
    // The same in a script.
    let script = "redis.call('BITOP', 'NOT', 'd5', 'src') return redis.pcall('BITOP', 'NOT', 'd6', 'src')";
    let reply = connection.run_args(&["EVAL", script, "0"]).to_string();
    assert!(reply.starts_with(&format!("-ERR {TOO_LARGE}")), "{reply}");
    assert_eq!(other.run("EXISTS d5 d6").to_string(), ":1");
    // Sorted sets that are stored, by themselves.
    for number in 0..3000 {
        connection.queue_line(&format!("ZADD z {number} member-with-a-long-name-{number}"));
    }
    (0..3000).for_each(|_| assert_eq!(connection.read().integer(), 1));
    assert_eq!(connection.run("ZUNIONSTORE u 1 z").to_string(), format!("-ERR {TOO_LARGE}"));
    assert_eq!(connection.run("ZRANGESTORE u z 0 -1").to_string(), format!("-ERR {TOO_LARGE}"));
    assert_eq!(other.run("EXISTS u").to_string(), ":0");
    // Nobody else has noticed anything.
    assert_eq!(other.run("SET k v").to_string(), "+OK");
    assert!(other.run("INFO persistence").text().contains("journal_state:sound\r\n"));
}

#[test]
fn a_sweep_is_as_many_batches_as_it_needs() {
    let Some((_server, mut connection)) = Holdfast::start_with_client(&["--enable-debug-command", "yes"]) else {
        return;
    };
    ok(&mut connection, "DEBUG SET-BATCH-BYTES-MAX 100000");
    ok(&mut connection, "IDX.CREATE jobs PREFIX 1 job: FIELD at");
    for number in 0..50 {
        connection.run(&format!("HSET job:{number:02} at 1"));
    }
    let large = "v".repeat(30_000);
    let swept = connection.run(&format!("SWEEP jobs BEFORE 5 SET 2 at 9 v {large}"));
    assert_eq!(swept.items().len(), 50);
    assert_eq!(connection.run("ZCOUNT jobs 9 9").integer(), 50);
    // In a transaction it is one batch, and ends where that is full.
    for line in ["MULTI", &format!("SWEEP jobs BEFORE 10 SET 2 at 19 v {large}"), "SET k v"] {
        connection.run(line);
    }
    let replies = connection.run("EXEC");
    assert_eq!(replies.items()[0].items().len(), 3);
    assert_eq!(replies.items()[1].to_string(), "+OK");
    assert_eq!(connection.run("ZCOUNT jobs 19 19").integer(), 3);
    let larger = "v".repeat(130_000);
    let reply = connection.run(&format!("SWEEP jobs BEFORE 10 SET 2 at 29 v {larger}")).to_string();
    assert_eq!(reply, "-ERR its changes would be larger than one batch of the journal can be");
    assert_eq!(connection.run("ZCOUNT jobs 29 29").integer(), 0);
}
