//! Eviction: what goes when more than `maxmemory` is in use, for each `maxmemory-policy`, and who hears of it.

use std::time::{Duration, Instant};
use wire::{Connection, Product, Reply, Session, skip};

const VALUE_BYTES: usize = 1000;
/// How far beyond the limit memory in use may be between two commands: buffers of connections come and go.
const SLACK_BYTES: i64 = 256 * 1024;

/// A server with a limit, which ends with the test.
struct Limited {
    session: Session,
    client: Connection,
}

impl Limited {
    fn start() -> Limited {
        let session = Session::start();
        let mut client = session.connect();
        // No snapshot that takes memory for a while.
        must(&mut client, "CONFIG SET auto-aof-rewrite-percentage 0");
        Limited { session, client }
    }

    /// Sets the policy, and a limit so many bytes above what is in use.
    fn limit(&mut self, policy: &str, bytes: i64) -> i64 {
        // What was removed before may still be being freed.
        let (mut used, mut steady) = (self.used(), 0);
        while steady < 3 {
            std::thread::sleep(Duration::from_millis(20));
            let before = std::mem::replace(&mut used, self.used());
            steady = if before.abs_diff(used) < 1000 { steady + 1 } else { 0 };
        }
        let limit = used + bytes;
        // However slow the server is.
        let tenacity = "maxmemory-eviction-tenacity 100";
        must(&mut self.client, &format!("CONFIG SET maxmemory-policy {policy} maxmemory {limit} {tenacity}"));
        limit
    }

    fn info(&mut self, field: &str) -> i64 {
        info(&mut self.client, field)
    }

    /// What is compared with the limit: Redis's figure is without what scripts use, Holdfast's is of all.
    fn used(&mut self) -> i64 {
        match self.session.product() {
            Product::Holdfast => {
                self.info("used_memory") - self.info("used_memory_lua") - self.info("mem_not_counted_for_evict")
            }
            _ => self.info("used_memory"),
        }
    }

    /// Sets keys with values of a kilobyte; how many were refused.
    fn fill(&mut self, prefix: &str, numbers: std::ops::Range<usize>, suffix: &str) -> usize {
        let value = "v".repeat(VALUE_BYTES);
        let lines: Vec<String> = numbers.map(|number| format!("SET {prefix}{number} {value} {suffix}")).collect();
        let mut refused = 0;
        for lines in lines.chunks(50) {
            for reply in self.client.pipeline(lines) {
                if reply.is_error() {
                    assert_eq!(reply, Reply::Error("OOM command not allowed when used memory > 'maxmemory'.".into()));
                    refused += 1;
                }
            }
        }
        refused
    }

    /// How many of these keys there are.
    fn count(&mut self, prefix: &str, numbers: std::ops::Range<usize>) -> usize {
        let keys: Vec<String> = numbers.map(|number| format!("{prefix}{number}")).collect();
        self.client.run(&format!("EXISTS {}", keys.join(" "))).integer() as usize
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let mut client = self.session.connect();
        client.run("CONFIG SET auto-aof-rewrite-percentage 100");
        client.run("CONFIG SET maxmemory 0 maxmemory-policy noeviction maxmemory-samples 5 maxmemory-eviction-tenacity 10 notify-keyspace-events ''");
        client.run("FLUSHALL SYNC");
    }
}

fn info(client: &mut Connection, field: &str) -> i64 {
    let text = client.run("INFO everything");
    let line =
        text.text().lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("a field of INFO");
    line.trim().parse().expect("a number")
}

#[track_caller]
fn must(client: &mut Connection, line: &str) -> Reply {
    let reply = client.run(line);
    assert!(!reply.is_error(), "{line}: {reply:?}");
    reply
}

fn eventually(mut holds: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

#[test]
fn the_limit_is_kept_whatever_the_policy() {
    for policy in [
        "allkeys-random",
        "allkeys-lru",
        "allkeys-lfu",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let mut server = Limited::start();
        let evicted = server.info("evicted_keys");
        let limit = server.limit(policy, 1_000_000);
        assert_eq!(server.fill("key:", 0..2000, "EX 10000"), 0, "{policy}");
        let used = server.used();
        assert!(used < limit + SLACK_BYTES, "{policy}: {used} of {limit}");
        // The requests themselves may need room.
        let mut left = 0;
        assert!(eventually(|| {
            left = server.count("key:", 0..2000);
            left as i64 + server.info("evicted_keys") - evicted == 2000
        }));
        assert!((250..1500).contains(&left), "{policy}: {left} are left");
    }
}

#[test]
fn only_keys_with_a_deadline_go_where_the_policy_says_so() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let mut server = Limited::start();
        server.limit(policy, 1_500_000);
        assert_eq!(server.fill("stays:", 0..500, ""), 0);
        assert_eq!(server.fill("goes:", 0..2000, "EX 10000"), 0);
        assert_eq!(server.count("stays:", 0..500), 500, "{policy}");
        let left = server.count("goes:", 0..2000);
        assert!(left < 1500, "{policy}: {left}");
        // Until there is none left.
        let refused = server.fill("stays:", 500..2500, "");
        assert!((250..2000).contains(&refused), "{policy}: {refused} were refused");
        assert_eq!(server.count("goes:", 0..2000), 0, "{policy}");
        assert_eq!(server.count("stays:", 0..2500), 2500 - refused, "{policy}");
        // What needs no memory is not refused.
        assert_eq!(server.client.run("DEL stays:0").integer(), 1);
        assert_eq!(server.client.run("EXPIRE stays:1 1000").integer(), 1);
    }
}

#[test]
fn without_eviction_writes_are_refused() {
    let mut server = Limited::start();
    server.limit("noeviction", 1_000_000);
    let refused = server.fill("key:", 0..3000, "EX 1000");
    assert!(refused > 1000, "{refused}");
    assert_eq!(server.count("key:", 0..3000), 3000 - refused);
}

#[test]
fn keys_that_were_not_used_for_long_go_first() {
    for policy in ["allkeys-lru", "volatile-lru"] {
        let mut server = Limited::start();
        must(&mut server.client, "CONFIG SET maxmemory-samples 10");
        server.fill("key:", 0..2000, "EX 10000");
        std::thread::sleep(Duration::from_millis(2100));
        let gets: Vec<String> = (0..1000).map(|number| format!("GET key:{number}")).collect();
        server.client.pipeline(&gets);
        server.limit(policy, 0);
        server.fill("new:", 0..700, "EX 10000");
        let (used, unused) = (server.count("key:", 0..1000), server.count("key:", 1000..2000));
        assert!(
            used > 900 && unused < 600,
            "{policy}: {used} of those that were used are left, {unused} of the others"
        );
    }
}

#[test]
fn keys_that_are_used_often_stay() {
    for policy in ["allkeys-lfu", "volatile-lfu"] {
        let mut server = Limited::start();
        // The counters begin with the policy.
        must(&mut server.client, &format!("CONFIG SET maxmemory-policy {policy} maxmemory-samples 10"));
        server.fill("key:", 0..2000, "EX 10000");
        let gets: Vec<String> = (0..1000).map(|number| format!("GET key:{number}")).collect();
        for _ in 0..30 {
            server.client.pipeline(&gets);
        }
        server.limit(policy, 0);
        server.fill("new:", 0..700, "EX 10000");
        let (used, unused) = (server.count("key:", 0..1000), server.count("key:", 1000..2000));
        assert!(
            used > 900 && unused < 900,
            "{policy}: {used} of those that were used are left, {unused} of the others"
        );
    }
}

#[test]
fn keys_that_expire_soonest_go_first() {
    let mut server = Limited::start();
    must(&mut server.client, "CONFIG SET maxmemory-samples 10");
    server.fill("soon:", 0..1000, "EX 1000");
    server.fill("late:", 0..1000, "EX 100000");
    server.limit("volatile-ttl", 0);
    server.fill("key:", 0..700, "EX 200000");
    let (soon, late) = (server.count("soon:", 0..1000), server.count("late:", 0..1000));
    assert!(soon < 700 && late > 950, "{soon} of those that expire soon are left, {late} of the others");
}

#[test]
fn all_databases_make_room() {
    let mut server = Limited::start();
    for db in [0, 5, 15] {
        must(&mut server.client, &format!("SELECT {db}"));
        server.fill("key:", 0..1000, "");
    }
    must(&mut server.client, "SELECT 0");
    // What was removed before may still be being freed.
    assert!(eventually(|| {
        server.limit("allkeys-random", -300_000);
        let keys: i64 = server
            .client
            .run("INFO keyspace")
            .text()
            .lines()
            .filter_map(|line| line.split_once("keys="))
            .map(|(_, rest)| rest.split(',').next().unwrap_or("0").parse::<i64>().unwrap_or(0))
            .sum();
        keys < 2600
    }));
    for db in [0, 5, 15] {
        must(&mut server.client, &format!("SELECT {db}"));
        let left = server.count("key:", 0..1000);
        assert!((200..950).contains(&left), "{left} are left in database {db}");
    }
}

/// A lower limit is reached without any command that asks for memory.
#[test]
fn a_lower_limit_is_reached_by_itself() {
    let mut server = Limited::start();
    server.fill("key:", 0..5000, "");
    let limit = server.limit("allkeys-lru", -3_000_000);
    assert!(eventually(|| server.used() < limit + SLACK_BYTES));
    assert!(server.count("key:", 0..5000) > 500);
}

#[test]
fn everybody_hears_of_it() {
    let mut server = Limited::start();
    server.fill("key:", 0..1000, "");
    let mut listener = server.session.connect();
    must(&mut server.client, "CONFIG SET notify-keyspace-events Ee");
    listener.run("SUBSCRIBE __keyevent@0__:evicted");
    let mut reader = server.session.connect();
    must(&mut reader, "HELLO 3");
    must(&mut reader, "CLIENT TRACKING ON");
    let keys: Vec<String> = (0..1000).map(|number| format!("key:{number}")).collect();
    must(&mut reader, &format!("MGET {}", keys.join(" ")));
    let mut watcher = server.session.connect();
    must(&mut watcher, &format!("WATCH {}", keys.join(" ")));
    let evicted = server.info("evicted_keys");
    assert!(eventually(|| {
        server.limit("allkeys-random", -100_000);
        server.info("evicted_keys") > evicted + 100
    }));
    let gone = (0..3).map(|_| listener.read().items()[2].text().to_owned()).collect::<Vec<_>>();
    for key in &gone {
        assert_eq!(server.client.run(&format!("EXISTS {key}")).integer(), 0, "{key}");
    }
    let stale = reader.read();
    let Reply::Push(parts) = stale else { panic!("{stale:?}") };
    assert_eq!(parts[0].text(), "invalidate");
    must(&mut watcher, "MULTI");
    must(&mut watcher, "PING");
    assert!(watcher.run("EXEC").is_nil());
}

/// What other threads still free is counted as free: no more keys go than have to.
#[test]
fn a_few_large_values_are_enough() {
    let mut server = Limited::start();
    for number in 0..20 {
        let script = "for i = 1, 6000 do redis.call('HSET', KEYS[1], 'field-number-' .. i, 'some value ' .. i) end";
        must(&mut server.client, &format!("EVAL \"{script}\" 1 large:{number}"));
    }
    let of_one = server.client.run("MEMORY USAGE large:0 SAMPLES 0").integer();
    let limit = server.limit("allkeys-random", -2 * of_one);
    server.fill("key:", 0..20, "");
    assert!(eventually(|| server.used() < limit + SLACK_BYTES));
    let left = server.count("large:", 0..20);
    assert!((14..=18).contains(&left), "{left} are left");
}

#[test]
fn what_is_gone_stays_gone_and_our_own_types_stay() {
    let mut server = Limited::start();
    if server.session.product() != Product::Holdfast {
        return skip("only Holdfast has sessions");
    }
    for number in 0..300 {
        must(&mut server.client, &format!("CELL.SET cell:{number} x"));
        must(&mut server.client, &format!("REG.PUT register:{number} 1 x"));
        must(&mut server.client, &format!("EXPIRE cell:{number} 1000"));
    }
    must(&mut server.client, "SESSION.OPEN ID s TTL 1000000");
    must(&mut server.client, "SESSION.CALL s 1 LOW 1 INCR n");
    server.limit("allkeys-lru", 500_000);
    assert_eq!(server.fill("key:", 0..3000, ""), 0);
    assert_eq!(server.client.run("SESSION.CALL s 1 LOW 1 INCR n").integer(), 1, "it is not run again");
    assert_eq!((server.count("cell:", 0..300), server.count("register:", 0..300)), (300, 300));
    must(&mut server.client, "CONFIG SET maxmemory 0");
    let left = server.count("key:", 0..3000);
    let digest = server.client.run("DEBUG DIGEST");
    must(&mut server.client, "DEBUG RELOAD");
    assert_eq!(server.count("key:", 0..3000), left);
    assert_eq!(server.client.run("DEBUG DIGEST"), digest);
    // One key among many that stay is found, and then there is none.
    server.client.pipeline(&(0..3000).map(|number| format!("DEL key:{number}")).collect::<Vec<_>>());
    must(&mut server.client, "DEL n");
    must(&mut server.client, "SET goes x EX 1000");
    for policy in ["allkeys-random", "volatile-lfu"] {
        must(&mut server.client, "SET goes x EX 1000");
        must(&mut server.client, &format!("CONFIG SET maxmemory-policy {policy} maxmemory 1"));
        assert!(eventually(|| server.client.run("SET more x").is_error()), "{policy}");
        must(&mut server.client, "CONFIG SET maxmemory 0");
        assert_eq!(server.client.run("EXISTS goes").integer(), 0, "{policy}");
        must(&mut server.client, "DEL more");
    }
    assert_eq!((server.count("cell:", 0..300), server.count("register:", 0..300)), (300, 300));
}

/// What is sent to clients about removed keys takes memory too. It goes when they have been served, and no key goes for it.
#[test]
fn messages_about_removed_keys_remove_no_more_keys() {
    const KEYS: usize = 300;
    let mut limited = Limited::start();
    let mut readers: Vec<Connection> = (0..10).map(|_| limited.session.connect()).collect();
    for reader in &mut readers {
        must(reader, "HELLO 3");
        must(reader, "CLIENT TRACKING ON");
    }
    for number in 0..KEYS {
        let key = format!("{number}{}", "x".repeat(1000));
        must(&mut limited.client, &format!("SET {key} x"));
        readers.iter_mut().for_each(|reader| assert_eq!(reader.run(&format!("GET {key}")).text(), "x"));
    }
    // Buffers may be given back instead, which is as good once.
    for _ in 0..5 {
        limited.limit("allkeys-lru", -40_000);
        if limited.info("evicted_keys") > 0 {
            break;
        }
    }
    let left = limited.client.run("DBSIZE").integer();
    assert!((KEYS as i64 / 3..KEYS as i64).contains(&left), "{left} keys are left");
}

/// However long it is written to, and whatever the size of a key is estimated to be; also while a client caches keys.
#[test]
fn small_keys_one_after_the_other_stay_within_the_limit() {
    let mut limited = Limited::start();
    let mut reader = limited.session.connect();
    for tracking in ["OFF", "ON"] {
        must(&mut reader, "HELLO 3");
        must(&mut reader, &format!("CLIENT TRACKING {tracking}"));
        let limit = limited.limit("allkeys-random", 100_000);
        for number in 0..5_000 {
            must(&mut limited.client, &format!("SET small:{tracking}:{number} x"));
        }
        let used = limited.used();
        assert!(used < limit + 32 * 1024, "tracking {tracking}: {used} of {limit}");
        // What the journal has not written yet is no reason to remove keys.
        let left = limited.client.run("DBSIZE").integer();
        assert!(left > 500, "tracking {tracking}: {left} keys are left");
    }
}
