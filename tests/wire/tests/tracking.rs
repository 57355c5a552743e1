//! CLIENT TRACKING: messages to clients about keys that they have read.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use wire::{Connection, Random, Reply, Session, check};

#[test]
fn a_key_that_was_read_is_told_once() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        GET a => _
        2! SET a 1
        1< push["invalidate", ["a"]]
        2! SET a 2
        MGET a b => ["2", _]
        2> DEL a => :1
        1< push["invalidate", ["a"]]
        2! SET b 1
        1< push["invalidate", ["b"]]
        2! MSET a 1 b 2 c 3
        PING => +PONG
        "#,
    );
}

#[test]
fn ones_own_changes_are_told_after_the_reply() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        GET a => _
        SET a 1 => +OK
        push["invalidate", ["a"]]
        GET a => "1"
        FLUSHALL => +OK
        push["invalidate", _]
        CLIENT TRACKING ON NOLOOP => +OK
        GET a => _
        SET a 1 => +OK
        2! SET a 1
        GET a => "1"
        2! SET a 1
        1< push["invalidate", ["a"]]
        FLUSHDB => +OK
        push["invalidate", _]
        "#,
    );
}

#[test]
fn every_change_is_told() {
    check(
        r#"
        HELLO 3 => *
        2! MSET x 2 y 1
        CLIENT TRACKING ON => +OK
        GET x => "2"
        2> EXPIRE x 100 => :1
        1< push["invalidate", ["x"]]
        TTL x => :1..
        2> PERSIST x => :1
        1< push["invalidate", ["x"]]
        STRLEN x => :1
        2> GETEX x => "2"
        2> PERSIST x => :0
        2> SET x 3 NX => (nil)
        2! RENAME x z
        1< push["invalidate", ["x"]]
        MGET x z => [_, "2"]
        2! RENAME z x
        1< push["invalidate", ["z"]]
        1< push["invalidate", ["x"]]
        EXISTS x q => :1
        2> COPY x q => :1
        1< push["invalidate", ["q"]]
        2> MOVE x 1 => :1
        1< push["invalidate", ["x"]]
        HGET h f => _
        2> HSET h f v => :1
        1< push["invalidate", ["h"]]
        HGETALL h => {"f" => "v"}
        2> HDEL h f => :1
        1< push["invalidate", ["h"]]
        TYPE q => +string
        2> APPEND q 1 => :2
        1< push["invalidate", ["q"]]
        OBJECT ENCODING q => *
        2> SETRANGE q 0 x => :2
        1< push["invalidate", ["q"]]
        HGET q f => -WRONGTYPE Operation against a key holding the wrong kind of value
        2! SET q 1
        1< push["invalidate", ["q"]]
        GETEX q => "1"
        2! SET q 1
        PING => +PONG
        "#,
    );
}

#[test]
fn the_database_makes_no_difference() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        GET a => _
        2! SELECT 1
        2! SET a 1
        1< push["invalidate", ["a"]]
        GET a => _
        2! FLUSHDB
        1< push["invalidate", _]
        2! SET a 1
        PING => +PONG
        // Redis tells nothing when databases change places, though all that was read may be wrong then.
        # holdfast only
        GET a => _
        2! SWAPDB 0 1
        1< push["invalidate", _]
        "#,
    );
}

#[test]
fn what_expires_is_told() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        SET e 1 PX 30 => +OK
        GET e => "1"
        1< push["invalidate", ["e"]]
        // Fields that expire too.
        # needs redis >= 7.4
        2> HSET h a 1 b 2 => :2
        HGET h b => "2"
        2> HPEXPIRE h 30 FIELDS 1 a => [:1]
        1< push["invalidate", ["h"]]
        HGET h b => "2"
        1< push["invalidate", ["h"]]
        "#,
    );
}

#[test]
fn a_transaction_reads_and_changes() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        MULTI => +OK
        GET x => +QUEUED
        GET y => +QUEUED
        EXEC => [_, _]
        2! MSET x 1 y 2
        1< push["invalidate", ["x"]]
        1< push["invalidate", ["y"]]
        MULTI => +OK
        GET x => +QUEUED
        SET x 2 => +QUEUED
        GET x => +QUEUED
        EXEC => ["1", +OK, "2"]
        push["invalidate", ["x"]]
        2! SET x 3
        1< push["invalidate", ["x"]]
        "#,
    );
}

#[test]
fn a_script_reads_and_changes() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        EVAL "return redis.call('GET', KEYS[1])" 1 a => _
        2> EVAL "return redis.call('SET', KEYS[1], 1)" 1 a => +OK
        1< push["invalidate", ["a"]]
        // Redis 7.0 remembers the keys that a script declares, whatever it reads.
        # needs redis >= 7.2
        EVAL "for i = 1, 1000 do redis.call('GET', 'b') end return redis.call('GET', 'a')" 0 => "1"
        2! MSET a 2 b 2
        1< push["invalidate", ["a"]]
        1< push["invalidate", ["b"]]
        EVAL "for i = 1, 1000 do redis.call('GET', 'b') end redis.call('SET', 'b', 3) return 1" 0 => :1
        push["invalidate", ["b"]]
        "#,
    );
}

#[test]
fn opting_in_or_out_is_for_one_command() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON OPTIN => +OK
        GET a => _
        2! SET a 1
        CLIENT CACHING YES => +OK
        CLIENT TRACKINGINFO => {"flags" => set["on", "optin", "caching-yes"], "redirect" => :0, "prefixes" => []}
        GET a => "1"
        CLIENT TRACKINGINFO => {"flags" => set["on", "optin"], "redirect" => :0, "prefixes" => []}
        GET b => _
        2! MSET a 1 b 1
        1< push["invalidate", ["a"]]
        CLIENT CACHING YES => +OK
        MULTI => +OK
        GET a => +QUEUED
        GET b => +QUEUED
        EXEC => ["1", "1"]
        GET c => _
        2! MSET a 1 b 1 c 1
        1< push["invalidate", ["a"]]
        1< push["invalidate", ["b"]]
        CLIENT CACHING YES => +OK
        NOSUCHCOMMAND => ~-ERR unknown command*
        GET a => "1"
        2! SET a 1
        PING => +PONG
        // OPTOUT is the opposite.
        CLIENT TRACKING OFF => +OK
        CLIENT TRACKING ON OPTOUT => +OK
        CLIENT CACHING NO => +OK
        CLIENT TRACKINGINFO => {"flags" => set["on", "optout", "caching-no"], "redirect" => :0, "prefixes" => []}
        GET a => "1"
        GET b => "1"
        2! MSET a 1 b 1
        1< push["invalidate", ["b"]]
        "#,
    );
}

#[test]
fn prefixes_hear_of_everything_below_them() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON BCAST PREFIX a PREFIX b => +OK
        2! MSET a2 1 b1 2 a1 3 c 4 a1 5
        1< push["invalidate", ["a1", "a2"]]
        1< push["invalidate", ["b1"]]
        GET c => "4"
        2! SET c 1
        SET a1 2 => +OK
        push["invalidate", ["a1"]]
        2! MULTI
        2> DEL a1 => +QUEUED
        2> EXPIRE a2 100 => +QUEUED
        2> EXEC => [:1, :1]
        1< push["invalidate", ["a1", "a2"]]
        2! FLUSHALL
        1< push["invalidate", _]
        CLIENT TRACKING OFF => +OK
        CLIENT TRACKING ON BCAST NOLOOP => +OK
        SET a 1 => +OK
        2! SET b 1
        1< push["invalidate", ["b"]]
        SET e 1 PX 30 => +OK
        // Nobody's change.
        1< push["invalidate", ["e"]]
        "#,
    );
}

/// Redis drops what it has not sent by then.
#[test]
fn nothing_is_told_after_the_end_of_tracking() {
    let session = Session::start();
    for end in ["CLIENT TRACKING OFF", "HELLO 2", "RESET"] {
        let mut client = session.connect();
        client.run("HELLO 3");
        client.run("CLIENT TRACKING ON BCAST");
        client.queue_line("SET key value");
        client.queue_line(end);
        client.queue_line("ECHO end");
        while client.read().to_string() != r#""end""# {}
        assert_eq!(client.run("PING").to_string(), "+PONG", "{end}");
    }
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    check(
        r#"
        -ERR syntax error
            CLIENT TRACKING maybe
            CLIENT TRACKING ON FOO
            CLIENT TRACKING ON REDIRECT
            CLIENT TRACKING ON PREFIX
        CLIENT TRACKING ON REDIRECT x => -ERR value is not an integer or out of range
        -ERR The client ID you want redirect to does not exist
            CLIENT TRACKING ON REDIRECT 999999999
            CLIENT TRACKING ON REDIRECT 0
            CLIENT TRACKING ON REDIRECT -1
        CLIENT TRACKING ON PREFIX a => -ERR PREFIX option requires BCAST mode to be enabled
        CLIENT TRACKING ON BCAST OPTIN => -ERR OPTIN and OPTOUT are not compatible with BCAST
        CLIENT TRACKING ON OPTIN OPTOUT => -ERR You can't specify both OPTIN mode and OPTOUT mode
        > CLIENT TRACKING ON BCAST PREFIX a PREFIX ab
        -ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.
        > CLIENT TRACKING ON BCAST PREFIX a PREFIX a
        -ERR Prefix 'a' overlaps with another provided prefix 'a'. Prefixes for a single client must not overlap.
        > CLIENT CACHING YES
        -ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
        CLIENT TRACKING OFF PREFIX a => +OK
        CLIENT TRACKINGINFO => ["flags", ["off"], "redirect", :-1, "prefixes", []]
        CLIENT TRACKING ON => +OK
        CLIENT CACHING YES => -ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.
        CLIENT CACHING NO => -ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.
        CLIENT CACHING maybe => -ERR syntax error
        > CLIENT TRACKING ON BCAST
        -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT TRACKING ON OPTIN => +OK
        > CLIENT TRACKING ON OPTOUT
        -ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.
        CLIENT TRACKING ON => +OK
        CLIENT TRACKING OFF => +OK
        CLIENT TRACKING ON BCAST PREFIX b PREFIX a => +OK
        > CLIENT TRACKING ON BCAST PREFIX ab
        -ERR Prefix 'ab' overlaps with an existing prefix 'a'. Prefixes for a single client must not overlap.
        CLIENT TRACKING ON BCAST PREFIX c NOLOOP => +OK
        CLIENT TRACKINGINFO => ["flags", ["on", "bcast", "noloop"], "redirect", :0, "prefixes", ["a", "b", "c"]]
        CLIENT TRACKING ON BCAST => +OK
        CLIENT TRACKINGINFO => ["flags", ["on", "bcast"], "redirect", :0, "prefixes", ["", "a", "b", "c"]]
        > CLIENT TRACKING ON
        -ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.
        RESET => +RESET
        CLIENT TRACKINGINFO => ["flags", ["off"], "redirect", :-1, "prefixes", []]
        CLIENT GETREDIR => :-1
        "#,
    );
}

/// RESP2 has no pushes: another client listens.
#[test]
fn another_client_is_told_instead() {
    let session = Session::start();
    let [mut reader, mut writer, mut listener] = [(); 3].map(|()| session.connect());
    let id = listener.run("CLIENT ID").integer();
    assert_eq!(reader.run(&format!("CLIENT TRACKING ON REDIRECT {id}")).to_string(), "+OK");
    assert_eq!(reader.run("CLIENT GETREDIR").integer(), id);
    // It does not listen yet, and hears nothing.
    reader.run("GET a");
    writer.run("SET a 1");
    assert_eq!(listener.run("SUBSCRIBE __redis__:invalidate").items().len(), 3);
    reader.run("GET a");
    writer.run("SET a 2");
    assert_eq!(listener.read().to_string(), r#"["message", "__redis__:invalidate", ["a"]]"#);
    reader.run("GET a");
    writer.run("FLUSHALL");
    assert_eq!(listener.read().to_string(), r#"["message", "__redis__:invalidate", (nil)]"#);
    let line = writer.run(&format!("CLIENT LIST ID {}", reader.run("CLIENT ID").integer()));
    assert!(line.text().contains(" flags=t ") && line.text().contains(&format!(" redir={id} ")), "{line}");
    // In RESP3 it is told by pushes, whatever the protocol of the reader.
    listener.run("UNSUBSCRIBE");
    listener.run("HELLO 3");
    reader.run("GET a");
    writer.run("SET a 3");
    assert_eq!(listener.read().to_string(), r#"push["invalidate", ["a"]]"#);
}

#[test]
fn a_listener_that_is_gone_is_told_to_the_reader() {
    let session = Session::start();
    let [mut reader, mut writer, mut listener] = [(); 3].map(|()| session.connect());
    let id = listener.run("CLIENT ID").integer();
    reader.run("HELLO 3");
    reader.run(&format!("CLIENT TRACKING ON REDIRECT {id}"));
    reader.run("GET a");
    assert_eq!(writer.run(&format!("CLIENT KILL ID {id}")).integer(), 1);
    writer.run("SET a 1");
    assert_eq!(reader.read().to_string(), format!(r#"push["tracking-redir-broken", :{id}]"#));
    let expected = format!(r#"{{"flags" => set["on", "broken_redirect"], "redirect" => :{id}, "prefixes" => []}}"#);
    assert_eq!(reader.run("CLIENT TRACKINGINFO").to_string(), expected);
    let own = reader.run("CLIENT ID").integer();
    let line = writer.run(&format!("CLIENT LIST ID {own}"));
    assert!(line.text().contains(" flags=tR "), "{line}");
    // Tracking anew mends it.
    reader.run("CLIENT TRACKING ON");
    reader.run("GET a");
    writer.run("SET a 1");
    assert_eq!(reader.read().to_string(), r#"push["invalidate", ["a"]]"#);
    reader.run("CLIENT TRACKING OFF");
    reader.run("CLIENT TRACKING ON BCAST");
    let line = writer.run(&format!("CLIENT LIST ID {own}"));
    assert!(line.text().contains(" flags=tB ") && line.text().contains(" redir=0 "), "{line}");
}

#[test]
fn info_counts_what_is_tracked() {
    check(
        r#"
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        MGET a b => [_, _]
        2> HELLO 3 => *
        2! CLIENT TRACKING ON
        2> GET a => _
        3! CLIENT TRACKING ON BCAST PREFIX x PREFIX y
        # until tracking_clients:3
        # until tracking_total_keys:2
        # until tracking_total_items:3
        # until tracking_total_prefixes:2
        4! SET a 1
        1< push["invalidate", ["a"]]
        2< push["invalidate", ["a"]]
        # until tracking_total_items:1
        3! CLIENT TRACKING OFF
        # until tracking_clients:2
        # until tracking_total_prefixes:0
        2> RESET => +RESET
        # until tracking_clients:1
        "#,
    );
}

#[test]
fn no_more_keys_are_remembered_than_allowed() {
    let session = Session::start();
    let [mut reader, mut admin] = [(); 2].map(|()| session.connect());
    reader.run("HELLO 3");
    reader.run("CLIENT TRACKING ON");
    admin.run("CONFIG SET tracking-table-max-keys 2");
    for key in 0..10 {
        reader.queue_line(&format!("GET key:{key}"));
    }
    reader.queue_line("PING");
    reader.queue_line("PING");
    // Eight of them are told to be stale, each once.
    let mut told = Vec::new();
    let mut replies = 0;
    while replies < 12 || told.len() < 8 {
        match reader.read() {
            Reply::Push(parts) => told.push(parts[1].to_string()),
            _ => replies += 1,
        }
    }
    admin.run("CONFIG SET tracking-table-max-keys 1000000");
    assert_eq!(told.len(), 8);
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 8);
}

/// Keys that the table has no room for are forgotten before the next command, whoever sends it.
#[test]
fn a_full_table_is_cut_back_before_a_command() {
    let session = Session::start();
    let [mut reader, mut other] = [(); 2].map(|()| session.connect());
    reader.run("HELLO 3");
    reader.run("CLIENT TRACKING ON");
    other.run("CONFIG SET tracking-table-max-keys 1");
    let is_push = |reply: &Reply| matches!(reply, Reply::Push(_));
    for key in ["a", "b", "c", "d"] {
        reader.queue_line(&format!("GET {key}"));
    }
    reader.queue_line("PING");
    // The reply of the second key comes before the message about the first two.
    let replies: Vec<Reply> = (0..8).map(|_| reader.read()).collect();
    let pushes: Vec<bool> = replies.iter().map(is_push).collect();
    assert_eq!(pushes, [false, false, true, false, true, false, true, false], "{replies:?}");
    reader.run("GET e");
    other.run("PING");
    assert!(is_push(&reader.read()));
    other.run("CONFIG SET tracking-table-max-keys 1000000");
    assert_eq!(reader.run("PING").to_string(), "+PONG");
}

/// Room is made before a command runs: its reply comes after the messages about the keys that had to go.
#[test]
fn keys_that_are_evicted_are_told_before_the_reply() {
    const KEYS: usize = 20;
    const VALUE_BYTES: usize = 100_000;
    let session = Session::start();
    let [mut reader, mut admin] = [(); 2].map(|()| session.connect());
    reader.run("HELLO 3");
    reader.run("CLIENT TRACKING ON");
    for key in 0..KEYS {
        reader.run_with(&format!("SET key:{key}"), &[&vec![b'x'; VALUE_BYTES]]);
        reader.run(&format!("STRLEN key:{key}"));
    }
    let info = admin.run("INFO memory");
    let used = info.text().lines().find_map(|line| line.strip_prefix("used_memory:")).expect("INFO has it");
    let limit = used.parse::<usize>().expect("a number") - KEYS * VALUE_BYTES / 2;
    let settings = [("maxmemory-policy", "allkeys-random"), ("maxmemory", &limit.to_string())];
    for (name, value) in settings {
        assert_eq!(reader.run(&format!("CONFIG SET {name} {value}")).to_string(), "+OK");
    }
    reader.queue_line("PING");
    let first = reader.read();
    admin.run("CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    assert!(matches!(first, Reply::Push(_)), "{first}");
    while matches!(reader.read(), Reply::Push(_)) {}
}

/// A client that keeps what it reads until it is told otherwise has, once all is quiet, nothing that is not so.
#[test]
fn a_cache_is_never_wrong_for_long() {
    const KEYS: usize = 20;
    let session = Session::start();
    let mut random = Random::from_env();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let mut connection = session.connect();
            std::thread::spawn(move || {
                for round in 0..500 {
                    let key = (round * 7 + writer * 3) % KEYS;
                    match round % 5 {
                        0 => connection.run(&format!("DEL key:{key}")),
                        1 => connection
                            .run(&format!("MSET key:{key} {writer}-{round} key:{} x{round}", (key + 1) % KEYS)),
                        2 => connection.run(&format!("SET key:{key} {writer}-{round} PX 5")),
                        _ => connection.run(&format!("SET key:{key} {writer}-{round}")),
                    };
                }
            })
        })
        .collect();
    let mut reader = session.connect();
    reader.run("HELLO 3");
    reader.run("CLIENT TRACKING ON");
    let mut cache = HashMap::new();
    while writers.iter().any(|writer| !writer.is_finished()) {
        let key = format!("key:{}", random.below(KEYS));
        read_into(&mut cache, &mut reader, &key);
    }
    writers.into_iter().for_each(|writer| writer.join().expect("a writer failed"));
    let mut other = session.connect();
    other.run("HELLO 3");
    // The last messages may be on their way, and the last keys about to expire.
    let began = Instant::now();
    loop {
        read_into(&mut cache, &mut reader, "nothing");
        let wrong: Vec<_> = cache.iter().filter(|(key, value)| other.run(&format!("GET {key}")) != **value).collect();
        if wrong.is_empty() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{wrong:?}");
    }
}

/// Reads a key; whatever is told meanwhile is dropped from the cache.
fn read_into(cache: &mut HashMap<String, Reply>, reader: &mut Connection, key: &str) {
    reader.queue_line(&format!("GET {key}"));
    loop {
        match reader.read() {
            Reply::Push(parts) => {
                for stale in parts[1].items() {
                    cache.remove(stale.text());
                }
            }
            value => {
                cache.insert(key.to_owned(), value);
                return;
            }
        }
    }
}

/// Nobody hears when an index changes: what was read of one is never kept for long.
#[test]
fn what_was_read_of_an_index_is_stale_at_once() {
    check(
        r##"
        # holdfast only
        IDX.CREATE jobs PREFIX 1 job: FIELD at => +OK
        HSET job:1 at 5 => :1
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        ZCARD jobs => :1
        push["invalidate", ["jobs"]]
        IDX.DROP jobs => :1
        "##,
    );
}

/// A name that a client has read as missing is no longer so when it becomes an index.
#[test]
fn an_index_that_comes_or_goes_makes_its_name_stale() {
    check(
        r##"
        # holdfast only
        HELLO 3 => *
        CLIENT TRACKING ON => +OK
        2> HELLO 3 => *
        2! CLIENT TRACKING ON BCAST PREFIX job
        ZRANGE jobs 0 -1 => []
        SELECT 1 => +OK
        GET other => _
        ZCARD more => :0
        3> IDX.CREATE jobs PREFIX 1 job: FIELD at => +OK
        1< push["invalidate", ["jobs"]]
        2< push["invalidate", ["jobs"]]
        3! MULTI
        3> IDX.CREATE other PREFIX 1 job: FIELD at => +QUEUED
        3> IDX.CREATE more PREFIX 1 job: FIELD at => +QUEUED
        3> EXEC => [+OK, +OK]
        1< push["invalidate", ["other"]]
        1< push["invalidate", ["more"]]
        3> IDX.DROP jobs => :1
        2< push["invalidate", ["jobs"]]
        3! MULTI
        3> IDX.DROP other => +QUEUED
        3> IDX.DROP more => +QUEUED
        3> EXEC => [:1, :1]
        PING => +PONG
        2> PING => +PONG
        "##,
    );
}
