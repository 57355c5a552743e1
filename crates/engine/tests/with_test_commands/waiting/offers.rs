//! What a command may touch when it is served: the key that has changed, and keys that it did not wait for; nothing
//! else.

use crate::common::peer::{Peer, names_apart};
use crate::place;
use execution::panics;

#[test]
fn a_waiter_sees_only_the_key_that_it_is_offered() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    // Both have a member when it is served; the second got it first.
    let mut taker = Peer::waiting(&place, "BZPOPMIN {x}a {x}b 0");
    for request in ["MULTI", "ZADD {x}b 2 n", "ZADD {x}a 1 m", "EXEC"] {
        giver.ask(request);
    }
    assert_eq!(taker.served().as_deref(), Some("{x}b n 2"));
    assert_eq!(giver.ask("ZRANGE {x}a 0 -1"), "m");
}

#[test]
fn a_waiter_cannot_change_a_key_that_it_is_not_offered() {
    let place = place(64, 1, &[]);
    let apart = names_apart(&place, 2);
    // In one shard, where it would do harm; and in two, where it is not even locked.
    for (first, second) in [("{x}a", "{x}b"), (&*apart[0], &*apart[1])] {
        let mut giver = Peer::new(&place, 0);
        let mut grabber = Peer::waiting(&place, &format!("TEST.GRAB {first} {second} 0"));
        let caught = panics::caught();
        for request in ["MULTI".to_owned(), format!("SET {second} 1"), format!("SET {first} 1"), "EXEC".to_owned()] {
            giver.ask(&request);
        }
        let reply = grabber.served().expect("it was served");
        assert!(reply.starts_with("-ERR "), "{reply}");
        assert!(panics::caught() > caught);
        assert_eq!(giver.ask(&format!("MGET {first} {second}")), "1 1", "nothing has changed");
        // Outside a wait it may.
        assert_eq!(giver.ask(&format!("TEST.GRAB {first} {second} 0")), "OK");
    }
}

/// A destination may hold another type by the time it is written: the waiter gets the error, and the source is
/// unchanged.
#[test]
fn an_error_is_the_reply_of_the_waiter_alone() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut first = Peer::waiting(&place, "TEST.MOVE a b 0");
    let mut second = Peer::waiting(&place, "BZPOPMIN a 0");
    giver.ask("SET b 1");
    assert_eq!(giver.ask("ZADD a 1 m"), "1");
    assert!(first.served().expect("it was served").starts_with("-WRONGTYPE "));
    assert_eq!(second.served().as_deref(), Some("a m 1"));
}

/// A waiter whose condition is wider than needed keeps waiting, and does not block the waiters behind it.
#[test]
fn a_waiter_without_a_result_keeps_its_place() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut first = Peer::waiting(&place, "TEST.MOVE a b 0");
    let mut second = Peer::waiting(&place, "TEST.GRAB a a 0");
    let mut third = Peer::waiting(&place, "TEST.MOVE a c 0");
    giver.ask("SET a string");
    assert_eq!(first.served(), None);
    assert_eq!(second.served().as_deref(), Some("OK"));
    assert_eq!(third.served(), None);
    giver.ask("ZADD a 1 m");
    assert_eq!((first.served().as_deref(), third.served()), (Some("m"), None));
}

/// No key has the name of an index: a waiter must not make one either.
#[test]
fn an_index_that_was_made_meanwhile_is_no_destination() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut mover = Peer::waiting(&place, "TEST.MOVE a idx 0");
    assert_eq!(giver.ask("IDX.CREATE idx PREFIX 1 job: FIELD at"), "OK");
    giver.ask("ZADD a 1 m");
    let reply = mover.served().expect("it was served");
    assert!(reply.starts_with("-ERR 'idx' is an index"), "{reply}");
    assert_eq!(
        (giver.ask("ZRANGE a 0 -1"), giver.ask("DBSIZE"), giver.ask("ZCARD idx")),
        ("m".into(), "1".into(), "0".into())
    );
}

/// Effects do not name indexes: commands do not wait for one. Nor does the next command that finds what it needs.
#[test]
fn commands_do_not_wait_for_an_index() {
    let place = place(8, 1, &[]);
    let mut client = Peer::new(&place, 0);
    assert_eq!(client.ask("IDX.CREATE idx PREFIX 1 job: FIELD at"), "OK");
    assert_eq!(client.ask("TEST.READ idx 5 0"), "nil");
    client.ask("HSET job:1 at 7");
    assert_eq!(client.ask("TEST.READ idx 5 0"), "job:1 7");
    assert_eq!(client.ask("TEST.READ idx 9 0"), "nil");
    client.ask("ZADD z 1 m");
    assert_eq!(client.ask("BZPOPMIN z 0"), "z m 1");
}

/// Commands that take their locks themselves serve waiters as well: SWEEP, and those that read an index.
#[test]
fn commands_about_indexes_serve_waiters_too() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    giver.say("HSET job:1 state running updated_at 5");
    giver.say("IDX.CREATE idx PREFIX 1 job: FIELD updated_at");
    // One waits for a record to become a sorted set, which a sweep does not make of it.
    giver.say("RENAME job:1 elsewhere");
    let mut waiting = Peer::waiting(&place, "BZPOPMIN job:1 z 0");
    giver.say("RENAME elsewhere job:1");
    giver.say("SWEEP idx BEFORE 10 WHERE state 1 running RETRY retries 3 ELSE 1 state failed SET 1 state pending");
    assert_eq!(giver.ask("HGET job:1 state"), "pending");
    assert_eq!(waiting.served(), None);
    assert_eq!(giver.ask("ZUNIONSTORE z 1 idx"), "1");
    assert_eq!(waiting.served().as_deref(), Some("z job:1 5"));
}

/// The reply to a served client has the number of the batch that took the member: it waits for the journal.
#[test]
fn a_reply_depends_on_the_batch_that_took_the_member() {
    let place = place(4, 1, &[]);
    let (mut giver, mut waiting) = (Peer::new(&place, 0), Peer::waiting(&place, "BZPOPMIN a b 0"));
    assert_eq!(waiting.served(), None);
    assert_eq!(giver.ask("ZADD b 1 m"), "1");
    assert_eq!(waiting.served().as_deref(), Some("b m 1"));
    assert_eq!((giver.client.last_batch, waiting.client.last_batch, waiting.client.depends_on), (1, 2, 2));
    assert_eq!(place.kept.batches().len(), 2);
}
