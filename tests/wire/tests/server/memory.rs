//! MEMORY.

use std::time::{Duration, Instant};

use wire::{Reply, Session, check};

#[test]
fn usage_grows_with_the_value() {
    let session = Session::start();
    let mut connection = session.connect();
    let mut usage = |line: &str| match connection.run(line) {
        Reply::Integer(bytes) => bytes,
        other => panic!("{line}: {other}"),
    };
    session.check(
        r#"
        > SET a 1
        +OK
        > SETRANGE long 9999 x
        :10000
        > HSET small f v
        :1
        > HSET large f v g 0123456789012345678901234567890123456789012345678901234567890123456789
        :2
        > MEMORY USAGE nosuch
        (nil)
        > MEMORY USAGE nosuch SAMPLES 5
        (nil)
        "#,
    );
    let small = usage("MEMORY USAGE a");
    assert!((16..200).contains(&small), "{small}");
    let long = usage("MEMORY USAGE long SAMPLES 0");
    assert!((10_000..24_000).contains(&long), "{long}");
    let (packed, table) = (usage("MEMORY USAGE small"), usage("MEMORY USAGE large SAMPLES 5 SAMPLES 2"));
    assert!(packed < table && table < 1500, "{packed} {table}");
}

#[test]
fn usage_refuses_what_it_does_not_know() {
    check(
        r#"
        SET a 1 => +OK
        MEMORY USAGE => -ERR wrong number of arguments for 'memory|usage' command
        MEMORY USAGE a SAMPLES => -ERR syntax error
        MEMORY USAGE a SAMPLES -1 => -ERR syntax error
        MEMORY USAGE a SAMPLES x => -ERR value is not an integer or out of range
        MEMORY USAGE a b => -ERR syntax error
        MEMORY USAGE nosuch b => -ERR syntax error
        "#,
    );
}

#[test]
fn memory_tells_about_itself() {
    check(
        r#"
        MEMORY DOCTOR => *
        MEMORY PURGE => +OK
        MEMORY NOSUCH => -ERR unknown subcommand 'NOSUCH'. Try MEMORY HELP.
        MEMORY STATS x => -ERR wrong number of arguments for 'memory|stats' command
        "#,
    );
}

#[test]
fn stats_are_a_map() {
    let session = Session::start();
    let mut connection = session.connect();
    connection.run("SELECT 3");
    connection.run("SET a 1 EX 100");
    let Reply::Array(stats) = connection.run("MEMORY STATS") else { panic!("no array") };
    let names: Vec<String> = stats.iter().step_by(2).map(Reply::to_string).collect();
    for name in [
        "peak.allocated",
        "total.allocated",
        "startup.allocated",
        "clients.normal",
        "overhead.total",
        "keys.count",
        "keys.bytes-per-key",
        "dataset.bytes",
        "dataset.percentage",
        "peak.percentage",
        "fragmentation",
        "db.3",
    ] {
        assert!(names.contains(&format!("{name:?}")), "{name} {names:?}");
    }
    let value =
        |name: &str| stats[names.iter().position(|found| *found == format!("{name:?}")).unwrap() * 2 + 1].to_string();
    assert_eq!(value("keys.count"), ":1");
    assert!(value("db.3").contains("overhead.hashtable.main"), "{}", value("db.3"));
}

#[test]
fn keys_and_their_memory_are_counted_by_prefix() {
    check(
        r#"
        # holdfast only
        > MEMORY PREFIXES
        ["keys", :0, "bytes", :0, "prefixes", [], "other", [:0, :0]]
        > MSET job:mail:1 a job:mail:2 b job:web:1 c user:1 dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd plain e
        +OK
        > SETRANGE job:web:2 99999 x
        :100000
        > SET job:gone 1 PX 1
        +OK
        # eventually
        > GET job:gone
        (nil)
        > MEMORY PREFIXES
        ["keys", :6, "bytes", :100000..130000,
         "prefixes", [["job:", :4, :100000..130000], ["user:", :1, :20..200], ["", :1, :20..200]], "other", [:0, :0]]
        > MEMORY PREFIXES 2
        ["keys", :6, "bytes", :100000..130000,
         "prefixes", [["job:web:", :2, :100000..], ["user:", :1, *], ["job:mail:", :2, :40..300], ["", :1, *]],
         "other", [:0, :0]]
        > MEMORY PREFIXES 1 PREFIX job:
        ["keys", :4, "bytes", *, "prefixes", [["job:web:", :2, *], ["job:mail:", :2, *]], "other", [:0, :0]]
        > MEMORY PREFIXES PREFIX job: LIMIT 1
        ["keys", :4, "bytes", *, "prefixes", [["job:web:", :2, *]], "other", [:2, :40..300]]
        > MEMORY PREFIXES SEPARATOR b: LIMIT 0
        ["keys", :6, "bytes", *, "prefixes", [], "other", [:6, *]]
        > MEMORY PREFIXES separator b:
        ["keys", :6, "bytes", *, "prefixes", [["job:", :4, *], ["", :2, *]], "other", [:0, :0]]
        > SELECT 3
        +OK
        > MEMORY PREFIXES
        ["keys", :0, "bytes", :0, "prefixes", [], "other", [:0, :0]]
        > HELLO 3
        *
        > MEMORY PREFIXES
        {"keys" => :0, "bytes" => :0, "prefixes" => [], "other" => [:0, :0]}
        "#,
    );
}

#[test]
fn prefixes_refuse_what_they_do_not_know() {
    check(
        r#"
        # holdfast only
        MEMORY PREFIXES 0 => -ERR the depth must be a whole number from 1 to 16, not '0'
        MEMORY PREFIXES 17 => -ERR the depth must be a whole number from 1 to 16, not '17'
        MEMORY PREFIXES x => ~-ERR unknown option 'x'. *
        MEMORY PREFIXES 1 2 => ~-ERR unknown option '2'. *
        MEMORY PREFIXES PREFIX => ~-ERR missing: the prefix. Usage: *
        MEMORY PREFIXES PREFIX a PREFIX b => -ERR PREFIX is given twice
        MEMORY PREFIXES SEPARATOR "" => -ERR the separator must have 1 to 16 bytes, not ''
        MEMORY PREFIXES SEPARATOR 12345678901234567 => -ERR the separator must have 1 to 16 bytes, not '12345678901234567'
        MEMORY PREFIXES LIMIT -1 => -ERR the number behind LIMIT must be a whole number not below 0, not '-1'
        MULTI => +OK
        MEMORY PREFIXES => -ERR Command not allowed inside a transaction
        DISCARD => +OK
        TXN.BEGIN => +OK
        MEMORY PREFIXES => ~-ERR *
        TXN.ROLLBACK => +OK
        EVAL "return redis.call('MEMORY', 'PREFIXES')" 0 => ~-ERR *not allowed from script*
        "#,
    );
}

/// A user counts what it may read, and no value of an option passes for the option.
#[test]
fn prefixes_need_the_right_to_all_that_they_search() {
    check(
        r#"
        # holdfast only
        > MSET mine:a:1 a mine:b:1 b secret:1 s
        +OK
        > ACL SETUSER tenant on nopass ~mine:* ~LIMIT* +@all
        +OK
        > ACL SETUSER writer on nopass %W~* +@all
        +OK
        2> AUTH tenant any
        +OK
        2> MEMORY PREFIXES
        ~-NOPERM *
        2> MEMORY PREFIXES 2
        ~-NOPERM *
        2> MEMORY PREFIXES PREFIX secret:
        ~-NOPERM *
        2> MEMORY PREFIXES 1 SEPARATOR PREFIX LIMIT 3
        ~-NOPERM *
        2> MEMORY PREFIXES 1 PREFIX mine: PREFIX secret:
        ~-NOPERM *
        2> MEMORY PREFIXES 1 PREFIX mine:
        ["keys", :2, "bytes", *, "prefixes", ~[["mine:a:", :1, *], ["mine:b:", :1, *]], "other", [:0, :0]]
        3> AUTH writer any
        +OK
        3> MEMORY PREFIXES PREFIX mine:
        ~-NOPERM *
        > ACL DELUSER tenant writer
        :2
        "#,
    );
}

/// The walk goes in slices: keys that are there throughout are counted once, others are served meanwhile, SWAPDB waits and FLUSHDB ends
/// it.
#[test]
fn prefixes_are_counted_in_slices() {
    let session = Session::start();
    if session.product() != wire::Product::Holdfast {
        return;
    }
    let mut connection = session.connect();
    for chunk in 0..100 {
        let pairs: String = (0..1000).map(|number| format!(" p{}:{chunk}:{number} v", number % 10)).collect();
        assert_eq!(connection.run(&format!("MSET{pairs}")).to_string(), "+OK");
    }
    let count = |reply: &Reply| {
        assert_eq!(reply.items()[1].integer(), 100_000, "{reply}");
        let prefixes = reply.items()[5].items();
        assert_eq!(prefixes.len(), 10);
        prefixes.iter().for_each(|prefix| assert_eq!(prefix.items()[1].integer(), 10_000));
    };
    count(&connection.run("MEMORY PREFIXES"));
    // Another client writes beside it.
    let mut walking = session.connect();
    walking.queue_line("MEMORY PREFIXES");
    walking.flush();
    (0..100).for_each(|number| assert_eq!(connection.run(&format!("SET p{}:0:0 w", number % 10)).to_string(), "+OK"));
    let reply = walking.read();
    let keys = reply.items()[1].integer();
    assert!((100_000..=100_009).contains(&keys), "{reply}");
    // Whatever comes first, a flush never shows half of the keys as all.
    walking.queue_line("MEMORY PREFIXES");
    walking.flush();
    assert_eq!(connection.run("FLUSHDB").to_string(), "+OK");
    let reply = walking.read();
    assert!(reply.is_error() || [0, keys].contains(&reply.items()[1].integer()), "{reply}");
}

/// A client that closes leaves no walk behind.
#[test]
fn a_walk_over_prefixes_ends_with_its_client() {
    let session = Session::start();
    if session.product() != wire::Product::Holdfast {
        return;
    }
    let mut connection = session.connect();
    for chunk in 0..100 {
        let pairs: String = (0..1000).map(|number| format!(" p{number}:{chunk} v")).collect();
        assert_eq!(connection.run(&format!("MSET{pairs}")).to_string(), "+OK");
    }
    // A script holds a lock that the walk needs, so that it is not over before its client counts as gone.
    let mut scripting = session.connect();
    scripting.queue_line("EVAL \"while true do end\" 1 p1:1");
    scripting.flush();
    let until = Instant::now() + Duration::from_secs(60);
    while !connection.run("CLIENT LIST").text().contains("cmd=eval") {
        assert!(Instant::now() < until, "the script does not begin");
    }
    let mut walking = session.connect();
    walking.queue_line("MEMORY PREFIXES");
    walking.flush();
    drop(walking);
    // The client counts as gone after two seconds, which nothing shows from outside.
    std::thread::sleep(Duration::from_secs(4));
    while connection.run("SCRIPT KILL").is_error() {
        assert!(Instant::now() < until, "the script goes on");
    }
    assert!(scripting.read().is_error());
    let mut stats = || connection.run("INFO commandstats").text().to_owned();
    while !stats().contains("cmdstat_memory|prefixes") {
        assert!(Instant::now() < until, "the walk has no end");
    }
    let stats = stats();
    let line = stats.lines().find(|line| line.contains("cmdstat_memory|prefixes")).unwrap();
    assert!(line.contains("failed_calls=1"), "the walk went on without its client: {line}");
    assert_eq!(connection.run("SWAPDB 0 1").to_string(), "+OK");
}
