//! HOTKEYS, as in Redis 8.6.

use wire::{Connection, Product, Reply, Session, check};

/// A session, if its server has HOTKEYS; without one that counts.
fn fresh() -> Option<(Session, Connection)> {
    let session = Session::start();
    if !session.has_redis("8.6") {
        return None;
    }
    let mut connection = session.connect();
    connection.run("HOTKEYS STOP");
    assert_eq!(connection.run("HOTKEYS RESET").to_string(), "+OK");
    Some((session, connection))
}

/// The report as a map by names.
fn report(connection: &mut Connection) -> Vec<(String, Reply)> {
    let reply = connection.run("HOTKEYS GET");
    let [map] = reply.items() else { panic!("{reply}") };
    map.items().chunks(2).map(|pair| (pair[0].text().to_owned(), pair[1].clone())).collect()
}

fn field(report: &[(String, Reply)], name: &str) -> Reply {
    let found = report.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no {name} in {report:?}")).1.clone()
}

/// A list of a report: names with numbers.
fn keys(report: &[(String, Reply)], name: &str) -> Vec<(String, i64)> {
    let list = field(report, name);
    list.items().chunks(2).map(|pair| (pair[0].text().to_owned(), pair[1].integer())).collect()
}

#[test]
fn a_session_has_a_beginning_and_an_end() {
    check(
        r#"
        # needs redis >= 8.6
        > HOTKEYS STOP
        *
        > HOTKEYS RESET
        +OK
        > HOTKEYS GET
        (nil)
        > HOTKEYS STOP
        (nil)
        > HOTKEYS START METRICS 2 CPU NET
        +OK
        > HOTKEYS START METRICS 1 CPU
        -ERR hotkey tracking session already in progress
        > HOTKEYS START
        -ERR hotkey tracking session already in progress
        > HOTKEYS RESET
        -ERR hotkey tracking session in progress, stop tracking first
        > HOTKEYS STOP
        +OK
        > HOTKEYS STOP
        (nil)
        > HOTKEYS GET
        [["tracking-active", :0, "sample-ratio", :1, "selected-slots", [[:0, :16383]],
          "all-commands-all-slots-us", :0, "net-bytes-all-commands-all-slots", :0,
          "collection-start-time-unix-ms", :1600000000000.., "collection-duration-ms", :0..,
          "total-cpu-time-user-ms", :0.., "total-cpu-time-sys-ms", :0.., "total-net-bytes", :0,
          "by-cpu-time-us", [], "by-net-bytes", []]]
        > HOTKEYS RESET
        +OK
        > HOTKEYS GET
        (nil)
        > HELLO 3
        *
        > HOTKEYS GET
        _
        > HOTKEYS START METRICS 1 NET SAMPLE 7
        +OK
        > HOTKEYS STOP
        +OK
        > HOTKEYS GET
        [{"tracking-active" => :0, "sample-ratio" => :7, "selected-slots" => [[:0, :16383]],
          "all-commands-all-slots-us" => :0, "net-bytes-all-commands-all-slots" => :0,
          "collection-start-time-unix-ms" => :1600000000000.., "collection-duration-ms" => :0..,
          "total-net-bytes" => :0, "by-net-bytes" => []}]
        > HOTKEYS RESET
        +OK
        "#,
    );
}

#[test]
fn arguments_that_are_refused() {
    check(
        r#"
        # needs redis >= 8.6
        HOTKEYS STOP => *
        HOTKEYS START => -ERR METRICS parameter is required
        HOTKEYS START METRICS => -ERR METRICS parameter is required
        HOTKEYS START COUNT 1 => -ERR METRICS parameter is required
        HOTKEYS START METRICS 0 => -ERR METRICS count must be > 0 and <= 2
        HOTKEYS START METRICS 3 CPU NET => -ERR METRICS count must be > 0 and <= 2
        HOTKEYS START METRICS x CPU => -ERR METRICS count must be > 0 and <= 2
        HOTKEYS START METRICS 2 CPU => -ERR METRICS count does not match number of metric types provided
        HOTKEYS START METRICS 1 CPU NET => -ERR syntax error
        HOTKEYS START METRICS 1 GPU => -ERR METRICS no valid metrics passed. Supported: CPU|NET
        HOTKEYS START METRICS 2 CPU CPU => -ERR METRICS CPU defined more than once!
        HOTKEYS START METRICS 2 NET NET => -ERR METRICS NET defined more than once!
        HOTKEYS START METRICS 1 CPU COUNT 0 => -ERR COUNT must be between 1 and 64
        HOTKEYS START METRICS 1 CPU COUNT 65 => -ERR COUNT must be between 1 and 64
        HOTKEYS START METRICS 1 CPU COUNT => -ERR syntax error
        HOTKEYS START METRICS 1 CPU DURATION 0 => -ERR DURATION must be between 1 and 1000000
        HOTKEYS START METRICS 1 CPU DURATION 1000001 => -ERR DURATION must be between 1 and 1000000
        HOTKEYS START METRICS 1 CPU SAMPLE 0 => -ERR SAMPLE ratio must be positive
        HOTKEYS START METRICS 1 CPU SAMPLE 2147483648 => -ERR SAMPLE ratio must be positive
        HOTKEYS START METRICS 1 CPU SLOTS 1 0 => -ERR SLOTS parameter cannot be used in non-cluster mode
        HOTKEYS START METRICS 1 CPU COUNT 5 nonsense 1 => -ERR syntax error
        HOTKEYS STOP => (nil)
        // A metric that a later version may have.
        HOTKEYS START METRICS 2 GPU CPU => +OK
        HOTKEYS STOP => +OK
        HOTKEYS RESET => +OK
        "#,
    );
}

#[test]
fn the_keys_that_take_most_come_first() {
    let Some((_session, mut client)) = fresh() else { return };
    assert_eq!(client.run("HOTKEYS START METRICS 2 CPU NET COUNT 2").to_string(), "+OK");
    let large = "x".repeat(10_000);
    client.run(&format!("SET large {large}"));
    for _ in 0..20 {
        client.run("GET large");
        client.run("GET middle");
        client.run("GET middle");
    }
    client.run("GET small");
    assert_eq!(client.run("HOTKEYS STOP").to_string(), "+OK");
    client.run("GET large");
    let report = report(&mut client);
    let by_net = keys(&report, "by-net-bytes");
    let names: Vec<&str> = by_net.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["large", "middle"]);
    // 20 replies and a request of ten thousand bytes, and what frames them.
    assert!((210_000..212_000).contains(&by_net[0].1), "{by_net:?}");
    assert!((900..2000).contains(&by_net[1].1), "{by_net:?}");
    assert!(field(&report, "total-net-bytes").integer() > by_net[0].1 + by_net[1].1);
    assert_eq!(field(&report, "net-bytes-all-commands-all-slots"), field(&report, "total-net-bytes"));
    let by_cpu = keys(&report, "by-cpu-time-us");
    assert!(by_cpu.len() <= 2 && by_cpu.is_sorted_by_key(|(_, us)| std::cmp::Reverse(*us)), "{by_cpu:?}");
}

/// Commands of a transaction count for themselves; what a script calls counts for the keys that it declares; a command of several keys is
/// shared out; one that waits counts when it is served.
#[test]
fn every_path_counts_once() {
    let Some((session, mut client)) = fresh() else { return };
    assert_eq!(client.run("HOTKEYS START METRICS 1 NET COUNT 64").to_string(), "+OK");
    let script = "EVAL \"return redis.call('SET', KEYS[1], ARGV[1])\" 1 by-script 1";
    for line in ["MULTI", "SET in-multi 1", "EXEC", "MSET one 1 two 2", script] {
        assert!(!client.run(line).is_error(), "{line}");
    }
    let mut waiting = session.connect();
    waiting.queue_line("BLPOP list 0");
    waiting.flush();
    session.check("# until blocked_clients:1\n> RPUSH list value\n:1");
    assert!(!waiting.read().is_error());
    client.run("PUBLISH channel message");
    client.run("PING");
    let report = report(&mut client);
    let found = keys(&report, "by-net-bytes");
    let mut names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["by-script", "in-multi", "list", "one", "two"]);
    let of = |name: &str| found.iter().find(|(known, _)| known == name).unwrap().1;
    // *3 $3 SET $8 in-multi $1 1, and +OK.
    assert_eq!(of("in-multi"), 34 + 5);
    assert_eq!(of("one"), of("two"));
    // RPUSH and its reply, BLPOP and its reply.
    assert_eq!(of("list"), 36 + 4 + 32 + 25);
    assert_eq!(field(&report, "tracking-active").integer(), 1);
    assert_eq!(client.run("HOTKEYS STOP").to_string(), "+OK");
    client.run("HOTKEYS RESET");
}

#[test]
fn a_duration_ends_by_itself() {
    check(
        r#"
        # needs redis >= 8.6
        > HOTKEYS STOP
        *
        > HOTKEYS START METRICS 1 CPU DURATION 1
        +OK
        # eventually
        > HOTKEYS GET
        [["tracking-active", :0, ...]]
        > HOTKEYS STOP
        (nil)
        > HOTKEYS RESET
        +OK
        "#,
    );
}

/// Redis shows all names to whoever may run HOTKEYS.
#[test]
fn names_of_keys_that_a_user_may_not_read_are_not_shown() {
    let Some((session, mut client)) = fresh() else { return };
    if session.product() != Product::Holdfast {
        return;
    }
    for rules in ["mine ~mine:*", "writer ~mine:* %W~secret:*", "elsewhere ~* db=1", "all ~*"] {
        assert_eq!(client.run(&format!("ACL SETUSER {rules} on nopass +@all")).to_string(), "+OK");
    }
    assert_eq!(client.run("HOTKEYS START METRICS 2 CPU NET").to_string(), "+OK");
    client.run("SET mine:1 a");
    client.run("SET secret:1 a");
    client.run("HOTKEYS STOP");
    for (user, expected) in
        [("mine", &["mine:1"][..]), ("writer", &["mine:1"]), ("elsewhere", &[]), ("all", &["mine:1", "secret:1"])]
    {
        let mut other = session.connect();
        assert_eq!(other.run(&format!("AUTH {user} any")).to_string(), "+OK");
        let report = report(&mut other);
        for list in ["by-net-bytes", "by-cpu-time-us"] {
            let mut names: Vec<String> = keys(&report, list).into_iter().map(|(name, _)| name).collect();
            names.sort();
            assert_eq!(names, expected, "{user}");
        }
    }
    client.run("ACL DELUSER mine writer elsewhere all");
    assert_eq!(client.run("HOTKEYS RESET").to_string(), "+OK");
}
