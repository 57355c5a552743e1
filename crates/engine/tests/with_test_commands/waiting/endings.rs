//! How waits end: keys that are created and deleted in every way, in every database, by all kinds of commands;
//! timeouts, CLIENT UNBLOCK, CLIENT KILL, the end of a connection.

use crate::common::peer::{Peer, flat};
use crate::place;
use execution::clients::Unblock;
use execution::departure;
use execution::expiry;

/// Commands on a key `a` that holds a sorted set with the member `m`, and whether they delete it. `b` holds another.
const FATES: &[(&[&str], bool)] = &[
    (&["DEL a"], true),
    (&["UNLINK b a"], true),
    (&["ZREM a m"], true),
    (&["ZREM a other"], false),
    (&["ZPOPMIN a"], true),
    (&["ZREMRANGEBYRANK a 0 -1"], true),
    (&["BZPOPMIN a 0"], true),
    (&["TEST.MOVE a b 0"], true),
    (&["TEST.MOVE b a 0"], false),
    (&["RENAME a c"], true),
    (&["RENAME b a"], false),
    (&["MOVE a 5"], true),
    (&["COPY a c"], false),
    (&["FLUSHDB"], true),
    (&["FLUSHALL"], true),
    (&["SWAPDB 0 7"], true),
    (&["SWAPDB 7 8"], false),
    (&["EXPIRE a -1"], true),
    (&["EXPIRE a 100"], false),
    (&["SET a 1"], false),
    (&["ZUNIONSTORE a 1 nothing"], true),
    (&["ZADD a 5 n"], false),
    (&["MULTI", "DEL a", "EXEC"], true),
    (&["MULTI", "DEL a", "SET a 1", "EXEC"], false),
    (&["MULTI", "ZREM a m", "ZADD a 1 m", "EXEC"], false),
    (&["EVAL \"redis.call('del', KEYS[1])\" 1 a"], true),
    (&["EVAL \"redis.call('del', 'a') redis.call('set', 'a', 1)\" 0"], false),
    (&["EVAL \"redis.call('rename', 'a', 'c')\" 0"], true),
];

#[test]
fn every_way_of_removing_a_key_serves_its_waiters() {
    for (requests, is_gone) in FATES {
        for shards in [1, 64] {
            let place = place(shards, 1, &[]);
            let mut giver = Peer::new(&place, 0);
            giver.ask("ZADD a 1 m");
            giver.ask("ZADD b 1 x 2 y");
            let mut waiting: Vec<_> = (0..2).map(|_| Peer::waiting(&place, "TEST.GONE a 0")).collect();
            requests.iter().for_each(|request| drop(giver.ask(request)));
            let expected = is_gone.then(|| "OK".to_owned());
            for waiter in &mut waiting {
                assert_eq!(waiter.served(), expected, "{requests:?}, {shards} shards");
            }
        }
    }
}

#[test]
fn an_expired_key_serves_its_waiters() {
    // By the expiry cycle, by a read, by a write, by a read of an index.
    type Act = fn(&mut Peer<'_>);
    let acts: [Act; 5] = [
        |peer| assert!(!expiry::expire_cycle(&peer.place.engine, &mut peer.worker, 0, 1, u64::MAX / 2)),
        |peer| assert_eq!(peer.ask("HGETALL a"), ""),
        |peer| assert_eq!(peer.ask("HDEL a f"), "0"),
        |peer| assert_eq!(peer.ask("ZCARD index:all"), "0"),
        |peer| assert_eq!(peer.ask("TEST.GONE a 0"), "OK"),
    ];
    for deadline in ["PEXPIRE a 100", "HPEXPIRE a 100 FIELDS 1 f"] {
        for act in acts {
            let place = place(8, 1, &[]);
            let mut giver = Peer::new(&place, 0);
            giver.ask("HSET a f v");
            giver.ask(deadline);
            let mut waiting = Peer::waiting(&place, "TEST.GONE a 0");
            place.pass_ms(50);
            giver.ask("HGETALL a");
            assert_eq!(waiting.served(), None);
            place.pass_ms(100);
            assert_eq!(waiting.served(), None, "no command has come by");
            act(&mut giver);
            assert_eq!(waiting.served().as_deref(), Some("OK"), "{deadline}");
        }
    }
}

/// Ways to give `a` of database 0 a member, beginning with one in `b` of databases 0 and 7 and `a` of database 7.
const GIFTS: &[(&[&str], bool)] = &[
    (&["ZADD a 1 m"], true),
    (&["ZINCRBY a 1 m"], true),
    (&["RENAME b a"], true),
    (&["COPY b a"], true),
    (&["ZUNIONSTORE a 1 b"], true),
    (&["ZRANGESTORE a b 0 -1"], true),
    (&["TEST.MOVE b a 0"], true),
    (&["SWAPDB 0 7"], true),
    (&["SELECT 7", "MOVE a 0"], true),
    (&["SELECT 7", "COPY b a DB 0"], true),
    (&["SELECT 7", "ZADD a 5 m"], false),
    (&["SWAPDB 7 8"], false),
    (&["SET a 1"], false),
    (&["MULTI", "ZADD a 1 m", "EXEC"], true),
    (&["MULTI", "SELECT 7", "MOVE a 0", "EXEC"], true),
    (&["MULTI", "ZADD a 1 m", "ZREM a m", "EXEC"], false),
    (&["MULTI", "ZADD a 1 m", "FLUSHALL", "EXEC"], false),
    (&["EVAL \"redis.call('zadd', KEYS[1], 1, 'm')\" 1 a"], true),
    (&["EVAL \"redis.call('zadd', 'a', 1, 'm')\" 0"], true),
    (&["EVAL \"redis.call('zadd', 'a', 1, 'm') return redis.call('zcard', 'a')\" 0"], true),
    (&["EVAL \"redis.call('zadd', 'a', 1, 'm') redis.call('del', 'a')\" 0"], false),
];

#[test]
fn every_way_of_adding_a_member_serves_a_waiter() {
    for (requests, is_given) in GIFTS {
        let place = place(8, 1, &[]);
        let mut giver = Peer::new(&place, 0);
        for request in ["ZADD b 1 m", "SELECT 7", "ZADD a 1 m", "ZADD b 1 m", "SELECT 0"] {
            giver.ask(request);
        }
        let mut waiting = [
            Peer::waiting(&place, "TEST.READ a 0 0"),
            Peer::waiting(&place, "TEST.MOVE a {a}to 0"),
            Peer::waiting(&place, "BZPOPMIN nothing a 0"),
        ];
        requests.iter().for_each(|request| assert!(!giver.ask(request).starts_with('-'), "{request}"));
        let served = waiting.each_mut().map(|peer| peer.served().is_some());
        assert_eq!(served, [*is_given, *is_given, false], "{requests:?}");
    }
}

/// One name in several databases is several keys.
#[test]
fn waits_in_several_databases() {
    let place = place(8, 1, &[]);
    let mut giver = Peer::new(&place, 0);
    let mut waiting: Vec<_> = (0..4)
        .map(|db| {
            let mut peer = Peer::new(&place, 0);
            peer.ask(&format!("SELECT {db}"));
            peer.wait("TEST.MOVE a b 0");
            peer
        })
        .collect();
    let mut served = || -> Vec<usize> {
        let waiting = waiting.iter_mut().enumerate().filter(|(_, peer)| peer.blocked.is_some());
        waiting.filter_map(|(db, peer)| peer.served().map(|_| db)).collect()
    };
    giver.ask("SELECT 1");
    giver.ask("ZADD a 1 m");
    assert_eq!(served(), [1]);
    giver.ask("SELECT 9");
    giver.ask("ZADD a 1 m");
    assert_eq!(served(), [0; 0]);
    giver.ask("SWAPDB 9 3");
    assert_eq!(served(), [3]);
    giver.ask("ZADD a 1 m");
    giver.ask("MOVE a 0");
    assert_eq!(served(), [0]);
    giver.ask("SELECT 2");
    giver.ask("EVAL \"redis.call('select', 2) redis.call('zadd', 'a', 1, 'm')\" 0");
    assert_eq!(served(), [2]);
    // The moved member is in the database of the waiter.
    for db in 0..4 {
        giver.ask(&format!("SELECT {db}"));
        assert_eq!(giver.ask("EXISTS a b"), "1", "database {db}");
    }
}

#[test]
fn a_client_whose_wait_has_ended_takes_nothing() {
    type End = fn(&mut Peer<'_>) -> Option<String>;
    let ends: [(End, Option<&str>); 5] = [
        (|peer| peer.outcome(true).map(flat), Some("nil")),
        (
            |peer| {
                assert!(peer.client.handle.unblock(Unblock::Timeout));
                peer.served()
            },
            Some("nil"),
        ),
        (
            |peer| {
                assert!(peer.client.handle.unblock(Unblock::Error));
                peer.served()
            },
            Some("-UNBLOCKED client unblocked via CLIENT UNBLOCK"),
        ),
        (
            |peer| {
                peer.place.engine.clients.kill(&peer.client.handle);
                None
            },
            None,
        ),
        (
            |peer| {
                departure::forget(&peer.place.engine, &mut peer.client);
                None
            },
            None,
        ),
    ];
    for (end, reply) in ends {
        for command in ["TEST.MOVE a b 0", "TEST.READ a 0 0", "BZPOPMIN x a y 0"] {
            let place = place(8, 1, &[]);
            let mut giver = Peer::new(&place, 0);
            let mut first = Peer::waiting(&place, command);
            let mut second = Peer::waiting(&place, "BZPOPMIN a 0");
            assert_eq!(end(&mut first).as_deref(), reply, "{command}");
            giver.ask("ZADD a 1 m");
            assert_eq!(second.served().as_deref(), Some("a m 1"), "{command}");
            assert!(!first.client.handle.is_waiting());
            assert_eq!(giver.ask("EXISTS a b"), "0", "{command}");
            departure::forget(&place.engine, &mut first.client);
            departure::forget(&place.engine, &mut second.client);
            let info = giver.ask("INFO clients");
            assert!(info.contains("blocked_clients:0") && info.contains("total_blocking_keys:0"), "{info}");
        }
    }
}

/// CLIENT UNBLOCK and CLIENT KILL end a wait, and reply whether they did.
#[test]
fn commands_end_the_waits_of_other_clients() {
    let place = place(8, 1, &[]);
    let mut other = Peer::new(&place, 0);
    let mut reader = Peer::waiting(&place, "TEST.READ a 0 0");
    let id = reader.client.id();
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} TIMEOUT")), "1");
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} ERROR")), "0", "it waits no longer");
    assert_eq!(reader.served().as_deref(), Some("nil"));
    reader.wait("TEST.READ a 0 0");
    assert_eq!(other.ask(&format!("CLIENT UNBLOCK {id} ERROR")), "1");
    assert_eq!(reader.served().as_deref(), Some("-UNBLOCKED client unblocked via CLIENT UNBLOCK"));
    reader.wait("TEST.READ a 0 0");
    assert_eq!(other.ask(&format!("CLIENT KILL ID {id}")), "1");
    assert!(reader.client.handle.is_killed());
    other.ask("ZADD a 1 m");
    assert_eq!(reader.client.depends_on, 0, "it was not served");
}

/// In a transaction and in a script commands do not wait: the client gets the timeout reply, and continues.
#[test]
fn commands_do_not_wait_in_a_transaction() {
    let place = place(8, 1, &[]);
    let mut client = Peer::new(&place, 0);
    client.ask("SET here 1");
    for request in ["MULTI", "TEST.MOVE a b 0", "TEST.READ a 0 0", "TEST.GONE here 0"] {
        client.ask(request);
    }
    assert_eq!(client.ask("EXEC"), "nil nil nil");
    client.ask("ZADD a 1 m");
    assert_eq!(client.ask("BZPOPMIN a 0"), "a m 1", "none of them is left over");
}
