//! Snapshots in the object store, and the log that is purged behind them.

use wire::Connection;

use crate::nats::{Nats, same_digest};
use crate::process::{eventually, info, ok};
use crate::support::furnish;

/// Takes a snapshot and waits for it.
fn save(connection: &mut Connection) {
    ok(connection, "SAVE");
}

#[test]
fn a_new_follower_loads_the_snapshot_when_the_log_before_it_is_purged() {
    let Some((nats, writer, mut at_writer)) = Nats::with_writer() else { return };
    furnish(&mut at_writer, true);
    save(&mut at_writer);
    assert_eq!(nats.state("first_seq"), 1, "the log is kept from the older of two snapshots on");
    ok(&mut at_writer, "SET between 1");
    assert!(at_writer.run("BGSAVE").to_string().contains("started"));
    eventually("the log is purged", || nats.state("first_seq") > 1);
    ok(&mut at_writer, "SET after 1");
    let follower = nats.follower(&writer, &[]);
    let mut at_follower = follower.connect();
    let digest = same_digest(&mut at_writer, &mut at_follower);
    assert_eq!(at_follower.run("MGET between after").to_string(), "[\"1\", \"1\"]");
    // Both are gone; what is read then is the snapshot and the rest of the log.
    drop(follower);
    drop(writer);
    let again = nats.writer(&[]);
    let mut at_writer = again.connect();
    assert_eq!(at_writer.run("DEBUG DIGEST").to_string(), digest);
    assert_eq!(info::<u32>(&mut at_writer, "epoch"), 2);
    // The two newest are kept, whoever made them.
    for number in 0..3 {
        ok(&mut at_writer, &format!("SET number {number}"));
        save(&mut at_writer);
    }
    let kept = nats.ask("$JS.API.STREAM.INFO.OBJ_HOLDFAST_orders", "{\"subjects_filter\":\"$O.HOLDFAST_orders.M.>\"}");
    let snapshots = kept.matches("$O.HOLDFAST_orders.M.").count();
    // Two manifests, a block each, and the id of the log; what was deleted leaves a mark.
    assert!(snapshots >= 5, "{kept}");
}

/// A follower that was stopped for so long that what it needs next is purged loads everything anew.
#[test]
fn a_follower_that_is_overtaken_by_a_purge_loads_anew() {
    let Some((nats, writer, follower)) = Nats::with_pair() else { return };
    let mut at_writer = writer.connect();
    follower.signal("STOP");
    for number in 0..20 {
        ok(&mut at_writer, &format!("SET key:{number} 1"));
    }
    save(&mut at_writer);
    ok(&mut at_writer, "SET between 1");
    save(&mut at_writer);
    eventually("the log is purged", || nats.state("first_seq") > 20);
    assert_eq!(at_writer.run("DEL key:3").integer(), 1);
    follower.signal("CONT");
    eventually("it has the rest", || {
        Connection::open(follower.address())
            .is_ok_and(|mut fresh| fresh.run("EXISTS between key:3").to_string() == ":1")
    });
    same_digest(&mut at_writer, &mut follower.connect());
}

/// Regression: it hid all that came behind it, and no server could start.
#[test]
fn a_message_in_the_bucket_that_is_no_object_is_passed_over() {
    let Some((nats, writer, mut at_writer)) = Nats::with_writer() else { return };
    furnish(&mut at_writer, true);
    let stored = nats.ask("$O.HOLDFAST_orders.M.bm9uZQ==", "hello");
    assert!(stored.contains("\"seq\":"), "{stored}");
    save(&mut at_writer);
    save(&mut at_writer);
    eventually("the log is purged", || nats.state("first_seq") > 1);
    let follower = nats.follower(&writer, &[]);
    same_digest(&mut at_writer, &mut follower.connect());
    assert!(follower.stderr().contains("a message that tells of no object"), "{}", follower.stderr());
}

/// The only snapshot has lost a block, and nothing of the log is purged yet.
#[test]
fn without_a_whole_snapshot_the_whole_log_is_read() {
    let Some((nats, writer, mut at_writer)) = Nats::with_writer() else { return };
    furnish(&mut at_writer, true);
    save(&mut at_writer);
    ok(&mut at_writer, "SET after 1");
    let bucket = "$JS.API.STREAM.INFO.OBJ_HOLDFAST_orders";
    let names = nats.ask(bucket, "{\"subjects_filter\":\"$O.HOLDFAST_orders.M.>\"}");
    // What "blocks/" is in base64.
    let block = names.split('"').find(|name| name.starts_with("$O.HOLDFAST_orders.M.YmxvY2tzL"));
    let block = block.unwrap_or_else(|| panic!("no block in {names}"));
    let purged = nats.ask("$JS.API.STREAM.PURGE.OBJ_HOLDFAST_orders", &format!("{{\"filter\":\"{block}\"}}"));
    assert!(purged.contains("\"purged\":1"), "{purged}");
    let follower = nats.follower(&writer, &[]);
    same_digest(&mut at_writer, &mut follower.connect());
    assert!(follower.stderr().contains("the whole log is read instead"), "{}", follower.stderr());
}
