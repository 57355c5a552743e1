//! Notifications on a follower: clients that watch keys, cache them, subscribe to their events. Definitions of the
//! leader can be used.

use crate::Follower;
use crate::common::peer::tokens;
use crate::common::place::{Asker, Place};

/// Settings of a follower that publishes all events.
const TELLS_ALL: &[(&str, &str)] = &[("notify-keyspace-events", "KEA")];

/// Commands of a leader that has made `a`, `b` and, in database 3, `a`, and whether they change `a` of database 0.
const CHANGES: &[(&str, bool)] = &[
    ("SET a 2", true),
    ("SET b 2", false),
    ("SET a 1", true),
    ("HSET a f v", false),
    ("DEL a", true),
    ("DEL c", false),
    ("EXPIRE a 100", true),
    ("EXPIRE a -1", true),
    ("RENAME b a", true),
    ("RENAME a c", true),
    ("RENAME b c", false),
    ("COPY a c", false),
    ("COPY b a REPLACE", true),
    ("MOVE a 5", true),
    ("MOVE b 5", false),
    ("SWAPDB 0 3", true),
    ("SWAPDB 3 4", false),
    ("FLUSHDB", true),
    ("FLUSHALL", true),
    ("APPEND a x", true),
    ("GET a", false),
];

#[test]
fn a_key_that_expires_on_the_leader_ends_the_transaction() {
    let (leader, place) = prepared(&[]);
    let mut follower = Follower::new(&leader, &place);
    let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
    writer.say("PEXPIRE a 100");
    follower.catch_up();
    reader.say("WATCH a");
    leader.pass_ms(200);
    writer.expire();
    assert_eq!(follower.catch_up(), 1);
    reader.say("MULTI");
    reader.say("GET b");
    assert_eq!(reader.say("EXEC"), b"*-1\r\n");
}

#[test]
fn those_who_watch_or_cache_a_key_learn_of_changes_of_the_leader() {
    for (change, is_changed) in CHANGES {
        let (leader, place) = prepared(&[]);
        let mut follower = Follower::new(&leader, &place);
        follower.catch_up();
        let (mut watcher, mut reader, mut broadcast) = (place.asker(1), place.asker(1), place.asker(1));
        watcher.say("WATCH a");
        for (asker, how) in [(&mut reader, "CLIENT TRACKING ON"), (&mut broadcast, "CLIENT TRACKING ON BCAST PREFIX a")]
        {
            asker.say("HELLO 3");
            assert_eq!(asker.say(how), b"+OK\r\n");
        }
        reader.say("GET a");
        leader.asker(0).say(change);
        follower.catch_up();
        watcher.say("MULTI");
        watcher.say("GET b");
        let reply = watcher.say("EXEC");
        assert_eq!(reply == b"*-1\r\n", *is_changed, "{change}: {}", reply.escape_ascii());
        let told = heard(&mut reader);
        // The database makes no difference to a cache, as in Redis.
        let of_whole = change.starts_with("FLUSH") || change.starts_with("SWAPDB");
        let expected: &[&str] = match (of_whole, is_changed) {
            (true, _) => &["invalidate", ""],
            (false, true) => &["invalidate", "a"],
            (false, false) => &[],
        };
        assert_eq!(told, expected, "{change}");
        assert_eq!(heard(&mut broadcast), expected, "{change}, told to all below a prefix");
        // Once: a key that was not read again causes no further invalidation.
        leader.asker(0).say("SET a 3");
        follower.catch_up();
        let is_told_again = !is_changed && !of_whole;
        assert_eq!(heard(&mut reader).is_empty(), !is_told_again, "{change}, and then another");
    }
}

#[test]
fn keyspace_events_are_published_on_the_follower() {
    let (leader, place) = prepared(TELLS_ALL);
    let mut follower = Follower::new(&leader, &place);
    follower.catch_up();
    let (mut writer, mut listener) = (leader.asker(0), place.asker(1));
    listener.say("PSUBSCRIBE __keyevent@*");
    heard(&mut listener);
    // A batch does not say which command it was: the events are those of the simplest command with that effect.
    for (request, events) in [
        ("SET a 2", "0:set a"),
        ("INCR a", "0:set a"),
        ("HSET h f v g w", "0:hset h"),
        ("HDEL h f", "0:hdel h"),
        ("HDEL h g", "0:hdel h, 0:del h"),
        ("ZADD z 1 m", "0:zadd z"),
        ("ZREM z m", "0:zrem z, 0:del z"),
        ("XADD s 1-1 f v", "0:xadd s"),
        ("XGROUP CREATE s g 0", "0:xgroup-create s"),
        ("XREADGROUP GROUP g c STREAMS s >", "0:xgroup-createconsumer s"),
        ("XACK s g 1-1", ""),
        ("XDEL s 1-1", "0:xdel s"),
        ("XADD s MAXLEN 0 2-1 f v", "0:xadd s, 0:xtrim s"),
        ("XGROUP DESTROY s g", "0:xgroup-destroy s"),
        ("EXPIRE a 100", "0:expire a"),
        ("PERSIST a", "0:persist a"),
        ("RENAME a c", "0:rename_from a, 0:rename_to c"),
        ("COPY c d DB 4", "4:copy_to d"),
        ("MOVE c 7", "0:move_from c, 7:move_to c"),
        ("DEL b", "0:del b"),
        ("FLUSHALL", ""),
        ("SWAPDB 0 1", ""),
    ] {
        assert_ne!(writer.say(request)[0], b'-', "{request}");
        follower.catch_up();
        assert_eq!(events_heard(&mut listener), events, "{request}");
    }
    writer.say("SET e 1 PX 100");
    writer.say("HSET h f v g w");
    writer.say("HPEXPIRE h 100 FIELDS 1 f");
    follower.catch_up();
    heard(&mut listener);
    for place in [&leader, &place] {
        place.pass_ms(200);
    }
    place.asker(1).say("GET e");
    assert_eq!(events_heard(&mut listener), "", "what expires is told of when the leader removes it");
    writer.expire();
    follower.catch_up();
    let events = events_heard(&mut listener);
    let mut events: Vec<&str> = events.split(", ").collect();
    events.sort_unstable();
    assert_eq!(events, ["0:expired e", "0:hexpired h"]);
}

#[test]
fn an_index_of_the_leader_can_be_read_at_once_and_is_exact() {
    let (leader, place) = (Place::new(8, 1, &[]), Place::new(4, 2, &[]));
    let mut follower = Follower::new(&leader, &place);
    let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
    for number in 0..500 {
        writer.say(&format!("HSET job:{number} at {} state s{}", (number * 37) % 500, number % 3));
    }
    follower.catch_up();
    assert_eq!(reader.say("ZCARD idx"), b":0\r\n");
    const READS: &[&str] = &[
        "ZRANGE idx 0 -1 WITHSCORES",
        "ZRANGEBYSCORE idx 100 (200",
        "ZRANK idx job:7",
        "ZCOUNT idx -inf 250",
        "IDX.RANGE idx 10 60",
        "IDX.RANGE idx 10 60 WHERE state 1 s1",
        "EXISTS idx",
    ];
    let steps: &[&[&str]] = &[
        &["IDX.CREATE idx PREFIX 1 job: FIELD at EXCLUDE state 1 s2"],
        &["HSET job:7 at 1000", "HSET job:8 state s2", "HDEL job:9 at", "DEL job:10", "HSET job:new at 3"],
        &["RENAME job:11 elsewhere", "RENAME elsewhere job:77", "MOVE job:12 2", "COPY job:13 job:copy"],
        &["IDX.DROP idx", "IDX.CREATE idx PREFIX 1 job:1 FIELD at"],
        &["SWEEP idx BEFORE 30 SET 1 at 2000"],
        &["SWAPDB 0 2"],
        &["FLUSHDB"],
        &["IDX.DROP idx"],
    ];
    for step in steps {
        for request in *step {
            assert_ne!(writer.say(request)[0], b'-', "{request}");
        }
        follower.catch_up();
        for request in READS {
            let (expected, found) = (writer.say(request), reader.say(request));
            assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{request}, {step:?}");
        }
    }
    assert_eq!(reader.say("EXISTS idx"), b":0\r\n");
}

#[test]
fn functions_of_the_leader_can_be_called() {
    let (leader, place) = (Place::new(4, 1, &[]), Place::new(4, 2, &[]));
    let mut follower = Follower::new(&leader, &place);
    let (mut writer, mut reader) = (leader.asker(0), place.asker(1));
    let load = |writer: &mut Asker<'_>, value: &str| {
        let code = format!(
            "#!lua name=l\nredis.register_function{{function_name='f', flags={{'no-writes'}}, \
             callback=function(keys) return {{{value}, redis.call('get', keys[1])}} end}}"
        );
        let reply = writer.ask(&["function", "load", "replace", &code].map(|word| word.as_bytes().to_vec()));
        assert_ne!(reply[0], b'-', "{}", reply.escape_ascii());
    };
    const ABSENT: &[u8] = b"-ERR Function not found\r\n";
    assert_eq!(reader.say("FCALL_RO f 1 a"), ABSENT);
    writer.say("SET a 5");
    load(&mut writer, "1");
    follower.catch_up();
    assert_eq!(tokens(&reader.say("FCALL_RO f 1 a")), ["1", "5"]);
    assert_eq!(tokens(&reader.say("FCALL f 1 a")), ["1", "5"], "it does not write");
    load(&mut writer, "2");
    follower.catch_up();
    assert_eq!(tokens(&reader.say("FCALL_RO f 1 a")), ["2", "5"]);
    writer.say("FUNCTION DELETE l");
    follower.catch_up();
    assert_eq!(reader.say("FCALL_RO f 1 a"), ABSENT);
    load(&mut writer, "3");
    writer.say("FUNCTION FLUSH");
    follower.catch_up();
    assert_eq!(reader.say("FCALL_RO f 1 a"), ABSENT);
}

/// A leader that has created a few keys, and a follower that has applied nothing yet.
fn prepared(settings: &[(&str, &str)]) -> (Place, Place) {
    let (leader, place) = (Place::new(8, 1, &[]), Place::new(4, 2, settings));
    let mut writer = leader.asker(0);
    for request in ["SET a 1", "SET b 1", "SELECT 3", "SET a 1"] {
        writer.say(request);
    }
    (leader, place)
}

/// The pushes and messages that a client was sent.
fn heard(asker: &mut Asker<'_>) -> Vec<String> {
    let mut bytes = Vec::new();
    asker.client.handle.drain_outbox(&mut bytes);
    let messages = String::from_utf8_lossy(&bytes).into_owned();
    let lines = messages.split("\r\n").filter(|line| !line.is_empty() && !line.starts_with(['*', '$', '>']));
    lines.map(|line| if line == "_" { String::new() } else { line.to_owned() }).collect()
}

/// Events as `database:event key`.
fn events_heard(asker: &mut Asker<'_>) -> String {
    let lines = heard(asker);
    let events = lines.chunks(4).map(|message| {
        let [_, _, channel, key] = message else { panic!("{message:?} is no message") };
        let (db, event) = channel.trim_start_matches("__keyevent@").split_once("__:").expect("a channel of events");
        format!("{db}:{event} {key}")
    });
    events.collect::<Vec<_>>().join(", ")
}
