//! DUMP and RESTORE of any type. Payloads as Redis writes them, and malformed ones, are in each family's own `dump`.

use wire::Session;

#[test]
fn dump_and_restore_make_a_copy() {
    let session = Session::start();
    let mut connection = session.connect();
    // Repetitions are compressed.
    let long = "a-long-element-".repeat(20);
    let many = |command: &str, len: i64, element: &dyn Fn(i64) -> String| {
        format!("{command} k {}", (0..len).map(element).collect::<Vec<_>>().join(" "))
    };
    for command in [
        "SADD k a b c '' 1 -1 01 \"\\x00\\xff\" 5000000000".to_owned(),
        format!("SADD k a {long}"),
        many("SADD", 1000, &|i| format!("member{i}")),
        many("SADD", 500, &|i| ((i - 250) * 1_000_003).to_string()),
        many("SADD", 1000, &|i| i.to_string()),
        "ZADD k 1 a 2.5 b inf c -inf d 0.1 e 1e21 f 3.0e-7 g -0 h 4 '' 5 \"\\x00\\xff\" 6 12345 7 -1".to_owned(),
        format!("ZADD k 1 a 2 {long}"),
        many("ZADD", 1000, &|i| format!("{} member{i}", i as f64 / 8.0)),
        "RPUSH k a".to_owned(),
        many("RPUSH", 3, &|i| format!("{i}{long}")),
        many("LPUSH", 2_000, &|i| format!("{i}{}", "x".repeat(40))),
        many("RPUSH", 3, &|i| format!("{i}{}", "x".repeat(20_000))),
        many("RPUSH", 20_000, &|i| format!("{i}xxxxxxxxx")),
        "HSET k a 1 b '' '' 2 \"\\x00\\xff\" 5000000000".to_owned(),
        format!("HSET k a {long}"),
        many("HSET", 1000, &|i| format!("field{i} {i}")),
    ] {
        let shown = &command[..command.len().min(60)];
        connection.run("FLUSHALL");
        assert!(!connection.run(&command).is_error(), "{shown}");
        let dump = connection.run("DUMP k");
        assert_eq!(connection.run_with("RESTORE copy 0", &[dump.bytes()]).to_string(), "+OK", "{shown}");
        for question in ["TYPE #", "OBJECT ENCODING #", "DEBUG DIGEST-VALUE #", "TTL #"] {
            let [original, copy] = ["k", "copy"].map(|key| connection.run(&question.replace('#', key)));
            assert_eq!(original, copy, "{question} after {shown}");
        }
        let again = connection.run_with("RESTORE copy 0", &[dump.bytes()]).to_string();
        assert_eq!(again, "-BUSYKEY Target key name already exists.");
    }
}

#[test]
fn restore_refuses_a_damaged_dump() {
    let session = Session::start();
    let mut connection = session.connect();
    for command in ["SADD k 1 2 3", "SADD k a b c", "ZADD k 1 a 2.5 b", "RPUSH k a b", "HSET k a 1 b 2"] {
        connection.run("FLUSHALL");
        connection.run(command);
        let dump = connection.run("DUMP k").bytes().to_vec();
        for at in 0..dump.len() {
            let mut damaged = dump.clone();
            damaged[at] ^= 0x40;
            for payload in [&damaged[..], &dump[..at]] {
                let reply = connection.run_with("RESTORE copy 0", &[payload]);
                let expected = "-ERR DUMP payload version or checksum are wrong";
                assert_eq!(reply.to_string(), expected, "{command}: {payload:?}");
            }
        }
        assert_eq!(connection.run("EXISTS copy").integer(), 0);
    }
}
