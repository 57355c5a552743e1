//! REG.SNAPSHOT and REG.RESTORE: what they keep and set, what they refuse; and that nothing is lost between them.

use crate::survival::some_write;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wire::own::{SetOnDrop, check, run_all, start};
use wire::{Connection, Random, Reply};

#[test]
fn a_snapshot_is_stored_and_restored_with_its_position() {
    check(
        r#"
        REG.PUT a 5 five                    => +APPLIED
        REG.INCRBY n 1.7 12                 => +APPLIED
        REG.PUT w 3 later ORDERED           => +BUFFERED
        EXPIRE n 1000                       => :1
        SET s "a string"                    => +OK
        REG.SNAPSHOT POSITION "offset 17" STORE check => :3
        TYPE check                          => +string
        REG.PUT a 6 six                     => +APPLIED
        REG.PUT b 1 new                     => +APPLIED
        DEL n                               => :1
        REG.RESTORE FROM check              => [:3, "offset 17"]
        REG.MGET a b n w                    => [["five", "5"], (nil), ["12", "1.7"], (nil)]
        REG.INCRBY n 1.7 12                 => +DUPLICATE
        REG.SEAL w 3                        => :1
        REG.GET w                           => ["later", "3"]
        TTL n                               => :990..1000
        TTL a                               => :-1
        GET s                               => "a string"
        EXISTS b                            => :0
        REG.SNAPSHOT STORE check            => :3
        REG.RESTORE FROM check MERGE        => [:0, (nil)]
        "#,
    );
}

#[test]
fn a_scope_says_which_registers_are_meant() {
    check(
        r#"
        REG.PUT a/1 1 one                       => +APPLIED
        REG.PUT a/2 1 two                       => +APPLIED
        REG.PUT b/1 1 other                     => +APPLIED
        REG.SNAPSHOT PREFIX a/ STORE check      => :2
        REG.PUT a/1 2 x                         => +APPLIED
        REG.PUT a/3 2 x                         => +APPLIED
        REG.PUT b/1 2 x                         => +APPLIED
        REG.RESTORE FROM check REPLACE          => [:2, (nil)]
        REG.MGET a/1 a/2 a/3 b/1                => [["one", "1"], ["two", "1"], (nil), ["x", "2"]]
        REG.SNAPSHOT keys 4 b/1 a/1 nosuch a/1 position "" STORE check => :2
        REG.PUT a/1 9 y                         => +APPLIED
        REG.PUT a/2 9 y                         => +APPLIED
        REG.PUT nosuch 9 y                      => +APPLIED
        REG.RESTORE FROM check                  => [:2, ""]
        REG.MGET a/1 a/2 b/1 nosuch             => [["one", "1"], ["y", "9"], ["x", "2"], (nil)]
        REG.SNAPSHOT KEYS 0 STORE check         => :0
        REG.RESTORE FROM check                  => [:0, (nil)]
        REG.SNAPSHOT PREFIX nothing STORE check => :0
        "#,
    );
}

#[test]
fn into_sets_registers_under_another_prefix() {
    check(
        r#"
        REG.PUT a/1 1 one                       => +APPLIED
        REG.PUT a/2 5 two                       => +APPLIED
        REG.PUT a/w 3 later ORDERED             => +BUFFERED
        REG.PUT a/ 1 itself                     => +APPLIED
        EXPIRE a/2 1000                         => :1
        REG.SNAPSHOT PREFIX a/ POSITION p STORE check => :4
        REG.PUT a/1 2 changed                   => +APPLIED
        REG.PUT a/3 1 new                       => +APPLIED
        REG.PUT b/3 1 dropped                   => +APPLIED
        REG.PUT bb/3 1 kept                     => +APPLIED
        REG.RESTORE FROM check INTO b/          => [:4, "p"]
        REG.MGET b/1 b/2 b/3 b/ bb/3            => [["one", "1"], ["two", "5"], (nil), ["itself", "1"], ["kept", "1"]]
        REG.SEAL b/w 3                          => :1
        TTL b/2                                 => :990..1000
        // The registers of the snapshot's own prefix stay.
        REG.MGET a/1 a/2 a/3 a/w                => [["changed", "2"], ["two", "5"], ["new", "1"], (nil)]
        // The version decides, key by key.
        REG.PUT b/1 9 newer                     => +APPLIED
        DEL b/2                                 => :1
        REG.PUT b/3 1 stays                     => +APPLIED
        REG.RESTORE FROM check into b/ merge    => [:1, "p"]
        REG.MGET b/1 b/2 b/3                    => [["newer", "9"], ["two", "5"], ["stays", "1"]]
        // The empty prefix is one too, and a shorter or longer one.
        REG.RESTORE FROM check INTO "" MERGE    => [:4, "p"]
        REG.MGET 1 2 ""                         => [["one", "1"], ["two", "5"], ["itself", "1"]]
        REG.RESTORE FROM check INTO a/b/c/      => [:4, "p"]
        REG.MGET a/b/c/1 a/1                    => [["one", "1"], ["changed", "2"]]
        REG.RESTORE FROM check INTO a/          => [:4, "p"]
        REG.MGET a/1 a/3 a/b/c/1                => [["one", "1"], (nil), (nil)]
        MULTI                                   => +OK
        REG.RESTORE FROM check INTO t/          => +QUEUED
        EXEC                                    => [[:4, "p"]]
        REG.GET t/1                             => ["one", "1"]
        "#,
    );
}

#[test]
fn into_needs_a_snapshot_of_a_prefix_and_a_free_name() {
    check(
        r#"
        REG.PUT a/1 1 one                       => +APPLIED
        REG.PUT a/2 1 two                       => +APPLIED
        REG.SNAPSHOT STORE all                  => :2
        REG.SNAPSHOT KEYS 1 a/1 STORE keys      => :1
        REG.SNAPSHOT PREFIX a/ STORE prefix     => :2
        > REG.RESTORE FROM all INTO b/
        -ERR INTO needs a snapshot of a prefix, and this one is of all registers or of keys: leave INTO out
        > REG.RESTORE FROM keys MERGE INTO b/
        -ERR INTO needs a snapshot of a prefix, and this one is of all registers or of keys: leave INTO out
        REG.RESTORE FROM prefix INTO            => ~-ERR missing: the prefix behind INTO. Usage: *
        REG.RESTORE FROM prefix INTO b/ INTO c/ => -ERR INTO is given twice
        CELL.SET b/2 "in the way"               => :1
        REG.PUT b/3 1 three                     => +APPLIED
        REG.RESTORE FROM prefix INTO b/         => ~-WRONGTYPE * wrong kind of value: the key's type is *
        REG.MGET b/1 b/3                        => [(nil), ["three", "1"]]
        CELL.GET b/2                            => "in the way"
        "#,
    );
}

#[test]
fn merge_keeps_the_newer_version_key_by_key() {
    check(
        r#"
        REG.PUT older 5 saved           => +APPLIED
        REG.PUT newer 5 saved           => +APPLIED
        REG.PUT same 5 saved            => +APPLIED
        REG.PUT gone 5 saved            => +APPLIED
        REG.PUT waits 3 saved ORDERED   => +BUFFERED
        REG.SNAPSHOT STORE check        => :5
        DEL older gone                  => :2
        REG.PUT older 4 x               => +APPLIED
        REG.PUT newer 1.0 x             => +APPLIED
        REG.PUT waits 1 x ORDERED       => +APPLIED
        REG.PUT other 1 x               => +APPLIED
        EXPIRE same 1000                => :1
        REG.RESTORE FROM check MERGE    => [:2, (nil)]
        > REG.MGET older newer same gone waits other
        [["saved", "5"], ["x", "1.0"], ["saved", "5"], ["saved", "5"], ["x", "1"], ["x", "1"]]
        TTL same                        => :990..1000
        "#,
    );
}

#[test]
fn what_cannot_be_restored_changes_nothing() {
    const WRONG_TYPE: &str = "~-WRONGTYPE * wrong kind of value: the key's type is *";
    const NO_SNAPSHOT: &str = "-ERR these bytes are no snapshot of registers: send what REG.SNAPSHOT has returned";
    check(&format!(
        r#"
        REG.PUT a 1 v                           => +APPLIED
        REG.PUT b 1 v                           => +APPLIED
        REG.SNAPSHOT STORE check                => :2
        DEL a b                                 => :2
        SADD b member                           => :1
        SET t text                              => +OK
        REG.RESTORE FROM check                  => {WRONG_TYPE}
        REG.RESTORE FROM check MERGE            => {WRONG_TYPE}
        REG.RESTORE FROM b                      => {WRONG_TYPE}
        REG.RESTORE FROM nosuch                 => -ERR there is no key of that name to restore from: REG.SNAPSHOT … STORE makes one
        REG.RESTORE FROM t                      => {NO_SNAPSHOT}
        REG.RESTORE ""                          => {NO_SNAPSHOT}
        REG.RESTORE "HFREGS\x00\x07"            => -ERR the snapshot has format 7: was it written by a newer version?
        SETRANGE check 12 "?"                   => :1..1000
        REG.RESTORE FROM check                  => -ERR the snapshot is damaged or cut short: send it again, or an older one
        EXISTS a                                => :0
        REG.RESTORE FROM                        => ~-ERR missing: the key behind FROM. Usage: *
        REG.RESTORE FROM check KEEP             => ~-ERR unknown option 'KEEP'. *
        REG.RESTORE FROM check MERGE REPLACE    => -ERR the policy is given twice
        REG.SNAPSHOT PREFIX                     => ~-ERR missing: the prefix. Usage: *
        REG.SNAPSHOT PREFIX a KEYS 1 a          => -ERR the scope is given twice
        REG.SNAPSHOT KEYS 2 a                   => ~-ERR KEYS counts 2 items of 1, but 1 argument follows. Usage: *
        REG.SNAPSHOT KEYS 1 b                   => {WRONG_TYPE}
        REG.SNAPSHOT STORE                      => ~-ERR missing: the key behind STORE. Usage: *
        REG.SNAPSHOT POSITION a POSITION b      => -ERR POSITION is given twice
        REG.SNAPSHOT ALL                        => ~-ERR unknown option 'ALL'. *
        IDX.CREATE i PREFIX 1 x FIELD f         => +OK
        REG.SNAPSHOT STORE i                    => -ERR 'i' is an index: it changes with its records, and no command changes or watches it
        IDX.DROP i                              => :1
        "#
    ));
}

#[test]
fn a_snapshot_longer_than_a_string_is_refused() {
    check(
        r#"
        # config proto-max-bulk-len 1048576
        > EVAL "for i=1,20 do redis.call('REG.PUT', 'r' .. i, '1', string.rep('x', 60000)) end return redis.status_reply('OK')" 0
        +OK
        > REG.SNAPSHOT STORE check
        -ERR the snapshot would be longer than a string can be (proto-max-bulk-len): take it by PREFIX or KEYS, in parts
        EXISTS check                            => :0
        REG.SNAPSHOT PREFIX r1 STORE check      => :11
        "#,
    );
}

/// Every register with its value, its buffer and its deadline.
fn registers(connection: &mut Connection) -> BTreeMap<String, (Reply, Reply)> {
    let names = connection.run("KEYS r*");
    let names: Vec<String> = names.items().iter().map(|name| name.text().to_owned()).collect();
    let mut state = BTreeMap::new();
    for name in names {
        let whole = (connection.run(&format!("DUMP {name}")), connection.run(&format!("PEXPIRETIME {name}")));
        state.insert(name, whole);
    }
    state
}

fn scramble(connection: &mut Connection, random: &mut Random, count: usize) {
    run_all(connection, (0..count).map(|_| some_write(random, 40)));
}

/// The parsed version of each register, if it has one.
fn versions(connection: &mut Connection) -> BTreeMap<usize, (u64, u64)> {
    let mut versions = BTreeMap::new();
    for name in 0..40 {
        let reply = connection.run(&format!("REG.GET r{name}"));
        if !reply.is_nil() {
            let text = reply.items()[1].text().to_owned();
            let (epoch, round) = text.split_once('.').unwrap_or(("0", &text));
            versions.insert(name, (epoch.parse().expect("a number"), round.parse().expect("a number")));
        }
    }
    versions
}

#[test]
fn a_restore_brings_back_what_a_snapshot_has_seen() {
    let Some(session) = start() else { return };
    let (mut connection, mut random) = (session.connect(), Random::from_env());
    for _ in 0..12 {
        scramble(&mut connection, &mut random, 200);
        let expected = registers(&mut connection);
        let blob = connection.run("REG.SNAPSHOT PREFIX r POSITION here");
        let blob = blob.bytes();
        scramble(&mut connection, &mut random, 100);
        let restored = connection.run_with("REG.RESTORE", &[blob]);
        assert_eq!(restored.to_string(), format!("[:{}, \"here\"]", expected.len()));
        assert_eq!(registers(&mut connection), expected);
        // A blob that is not whole changes nothing.
        let cut = random.below(blob.len());
        assert!(connection.run_with("REG.RESTORE", &[&blob[..cut]]).is_error());
        let mut damaged = blob.to_vec();
        damaged[cut] ^= 1 << random.below(8);
        assert!(connection.run_with("REG.RESTORE", &[&damaged, b"MERGE"]).is_error());
        assert_eq!(registers(&mut connection), expected);
        // No version goes back.
        scramble(&mut connection, &mut random, 60);
        let (before, saved) = (versions(&mut connection), expected.len());
        connection.run_with("REG.RESTORE", &[blob, b"MERGE"]);
        let after = versions(&mut connection);
        assert!(before.iter().all(|(name, version)| after.get(name) >= Some(version)), "{before:?} {after:?}");
        assert!(registers(&mut connection).len() >= saved);
    }
}

/// A put that was answered before the snapshot is in it, while others go on.
#[test]
fn a_snapshot_has_every_put_that_was_answered_before() {
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    run_all(&mut connection, (0..20_000).map(|number| format!("REG.PUT r{number} 1 first")));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        scope.spawn(|| {
            let (mut connection, mut version) = (session.connect(), 1_000_000);
            while !stop.load(Relaxed) {
                version += 1;
                let lines: Vec<String> = (0..50).map(|n| format!("REG.PUT r{} {version} w", n * 397)).collect();
                connection.pipeline(&lines);
            }
        });
        for version in 2..4 {
            let lines: Vec<String> = (0..300).map(|n| format!("REG.PUT r{} {version} v", n * 61 + 1)).collect();
            connection.pipeline(&lines);
            let blob = connection.run("REG.SNAPSHOT");
            let mut copy = session.connect();
            copy.run("SELECT 9");
            assert_eq!(copy.run_with("REG.RESTORE", &[blob.bytes()]).items()[0].integer(), 20_000);
            for n in 0..300 {
                let held = copy.run(&format!("REG.GET r{}", n * 61 + 1));
                let held: u64 = held.items()[1].text().parse().expect("a number");
                assert!(held >= version, "r{}: {held}", n * 61 + 1);
            }
        }
    });
}
