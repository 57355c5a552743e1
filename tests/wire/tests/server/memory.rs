//! MEMORY.

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
        > SET a 1
        +OK
        > MEMORY USAGE
        -ERR wrong number of arguments for 'memory|usage' command
        > MEMORY USAGE a SAMPLES
        -ERR syntax error
        > MEMORY USAGE a SAMPLES -1
        -ERR syntax error
        > MEMORY USAGE a SAMPLES x
        -ERR value is not an integer or out of range
        > MEMORY USAGE a b
        -ERR syntax error
        > MEMORY USAGE nosuch b
        -ERR syntax error
        "#,
    );
}

#[test]
fn memory_tells_about_itself() {
    check(
        r#"
        > MEMORY DOCTOR
        *
        > MEMORY PURGE
        +OK
        > MEMORY NOSUCH
        -ERR unknown subcommand 'NOSUCH'. Try MEMORY HELP.
        > MEMORY STATS x
        -ERR wrong number of arguments for 'memory|stats' command
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
