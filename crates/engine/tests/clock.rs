//! A wall clock that jumps: lengths of time stay what they are, points in time follow it.

#[path = "common/host.rs"]
mod host;

use engine::{Client, ClientHandle, Clock, Engine, Flow, Settings, Worker};
use host::IdleHost;
use resp::OwnedRequest;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

const HOUR_MS: u64 = 3_600_000;

#[test]
fn a_pause_lasts_as_long_as_it_was_asked_for() {
    for jump in [Jump::Back, Jump::Forward] {
        let mut world = World::new();
        assert_eq!(world.run("CLIENT PAUSE 2000 WRITE"), "+OK\r\n");
        world.clock.jump(jump);
        assert!(world.is_paused(), "after no time at all");
        world.clock.pass(1_900);
        assert!(world.is_paused(), "after 1.9 seconds");
        world.clock.pass(200);
        assert!(!world.is_paused(), "after 2.1 seconds");
    }
}

#[test]
fn a_client_is_idle_for_as_long_as_it_says_nothing() {
    for jump in [Jump::Back, Jump::Forward] {
        let mut world = World::new();
        world.run("PING");
        world.clock.jump(jump);
        world.clock.pass(3_000);
        let handle = world.client.handle.clone();
        assert_eq!(handle.idle_s(world.clock.monotonic_ns()), 3);
        assert!(world.run("CLIENT INFO").contains(" idle=0 "));
    }
}

#[test]
fn the_server_is_up_for_as_long_as_it_runs() {
    for jump in [Jump::Back, Jump::Forward] {
        let mut world = World::new();
        world.clock.jump(jump);
        world.clock.pass(7_000);
        let info = world.run("INFO server");
        assert!(info.contains("\r\nuptime_in_seconds:7\r\n"), "{info}");
    }
}

#[test]
fn a_wait_lasts_as_long_as_it_was_asked_for() {
    for jump in [Jump::Back, Jump::Forward] {
        let mut world = World::new();
        world.clock.jump(jump);
        let Flow::Block(blocked) = world.execute("BZPOPMIN a 2", &mut Vec::new()) else { panic!("there is nothing") };
        // The connection measures from the instant that the request has seen.
        assert_eq!(blocked.until_ms.map(|until_ms| until_ms - world.worker.now_ms), Some(2000));
    }
}

/// Regression: the thread that says that time stands still was late, and a TTL was counted from before it was given.
#[test]
fn what_needs_the_time_waits_while_it_stands() {
    let mut world = World::new();
    world.clock.stands.store(true, Relaxed);
    for line in ["SET a 1 EX 100", "GET a", "TTL a"] {
        let Flow::Paused(until_ms) = world.execute(line, &mut Vec::new()) else { panic!("{line} is executed") };
        let in_ms = until_ms - world.clock.monotonic_ms();
        assert!((1..=100).contains(&in_ms), "{line} is tried again in {in_ms} ms");
    }
    assert_eq!(world.run("CLIENT GETNAME"), "$-1\r\n");
    assert_eq!(world.run("MULTI"), "+OK\r\n");
    assert_eq!(world.run("DISCARD"), "+OK\r\n");
    world.engine.restrictions.refuse_writes(Some("the log has failed".into()));
    assert_eq!(world.run("SET a 1"), "-MISCONF the log has failed\r\n");
    world.engine.restrictions.refuse_writes(None);
    world.clock.stands.store(false, Relaxed);
    assert_eq!(world.run("GET a"), "$-1\r\n");
}

#[test]
fn a_deadline_is_a_point_in_time() {
    let mut world = World::new();
    world.run("SET a 1 EX 100");
    world.clock.jump(Jump::Back);
    let left: u64 = world.run("TTL a").trim_start_matches(':').trim().parse().unwrap();
    assert_eq!(left, 100 + 5 * HOUR_MS / 1000);
    world.clock.jump(Jump::Forward);
    world.clock.jump(Jump::Forward);
    assert_eq!(world.run("GET a"), "$-1\r\n");
}

/// A cell has a past that does not depend on the clock: each version is later than the one before, and as of its time
/// it is that version, whatever the clock does.
#[test]
fn the_versions_of_a_cell_never_go_back_in_time() {
    let mut world = World::new();
    let mut random = fastrand::Rng::with_seed(13);
    let (mut times, mut expected_us) = (Vec::new(), 0);
    for number in 1..=100 {
        match random.u8(..4) {
            0 => world.clock.jump(Jump::Back),
            1 => world.clock.jump(Jump::Forward),
            _ => world.clock.pass(random.u64(..3)),
        }
        expected_us = world.clock.unix_us().max(expected_us + 1);
        assert_eq!(world.run(&format!("CELL.SET a v{number}")), format!(":{number}\r\n"));
        let shown = world.run("CELL.GETV a");
        let time_us: u64 = shown.trim_end().rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(time_us, expected_us, "{shown}");
        times.push(time_us);
    }
    for (at, time_us) in times.iter().enumerate() {
        let found = world.run(&format!("CELL.GETV a ASOF {time_us}"));
        assert!(found.contains(&format!("v{}\r\n", at + 1)), "{found}");
    }
    assert_eq!(world.run(&format!("CELL.GETV a ASOF {}", times[0] - 1)), "$-1\r\n");
}

/// The same for the events of a run, of which two may have the same time.
#[test]
fn the_events_of_a_run_never_go_back_in_time() {
    let mut world = World::new();
    let mut random = fastrand::Rng::with_seed(14);
    let (mut expected_ms, mut times) = (0, Vec::new());
    for number in 1..=200 {
        match random.u8(..4) {
            0 => world.clock.jump(Jump::Back),
            1 => world.clock.jump(Jump::Forward),
            _ => world.clock.pass(random.u64(..3)),
        }
        expected_ms = (world.clock.unix_us() / 1000).max(expected_ms);
        let reply = world.run(&format!("RUN.APPEND r k{number} RunResumed d"));
        assert!(reply.contains(&format!("$11\r\npersistedAt\r\n:{expected_ms}\r\n")), "{reply}");
        // What is derived of it does not either.
        let snapshot = world.run("RUN.SNAPSHOT r");
        assert!(snapshot.contains(&format!("$9\r\nupdatedAt\r\n:{expected_ms}\r\n")), "{snapshot}");
        times.push(expected_ms);
    }
    assert!(times.windows(2).any(|pair| pair[0] == pair[1]) && times.windows(2).any(|pair| pair[0] < pair[1]));
    let events = world.run("RUN.EVENTS r");
    let shown: Vec<u64> = events
        .split("persistedAt\r\n:")
        .skip(1)
        .map(|rest| rest.split('\r').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(shown, times);
    // An event that is made before the time of a run that was brought from elsewhere is not earlier either.
    world.clock.jump(Jump::Back);
    world.clock.jump(Jump::Back);
    world.run("COPY r s");
    let reply = world.run("RUN.APPEND s next t d");
    assert!(reply.contains(&format!("persistedAt\r\n:{expected_ms}\r\n")), "{reply}");
}

/// Regression: what a script took at its end counted as taken at its beginning, and the next claim found the rate rested
/// since.
#[test]
fn a_rate_counts_a_take_when_it_is_made_also_where_time_stands() {
    const CLAIM: &str = "CLAIM 1 due SET 1 at 9";
    for limit in ["GROUP g", "EACH", "ALL"] {
        let mut world = World::new();
        world.run("IDX.CREATE due PREFIX 1 job: FIELD at GROUP tenant");
        world.run(&format!("IDX.LIMIT due {limit} RATE 1 1000"));
        for job in 0..5 {
            world.run(&format!("HSET job:{job} at {job} tenant g"));
        }
        world.engine.begin(&mut world.worker);
        world.clock.pass(5_000);
        let began_ms = world.worker.now_ms;
        let mut out = Vec::new();
        let mut request = OwnedRequest::default();
        CLAIM.split(' ').for_each(|word| request.push(word.as_bytes()));
        engine::execute(&world.engine, &mut world.worker, &mut world.client, request.as_request(), &mut out);
        assert!(out.starts_with(b"*1"), "{limit}: {}", String::from_utf8_lossy(&out));
        assert!(world.clock.unix_us() / 1000 - began_ms == 5_000, "it was late");
        world.clock.pass(900);
        assert_eq!(world.run(CLAIM), "*0\r\n", "{limit}: 0.9 seconds after the last");
        world.clock.pass(100);
        assert!(world.run(CLAIM).starts_with("*1"), "{limit}: a second after the last");
    }
}

/// Five hours.
#[derive(Clone, Copy)]
enum Jump {
    Back,
    Forward,
}

struct JumpingClock {
    stands: AtomicBool,
    unix_us: AtomicU64,
    monotonic_ns: AtomicU64,
}

impl JumpingClock {
    fn jump(&self, jump: Jump) {
        match jump {
            Jump::Back => self.unix_us.fetch_sub(5 * HOUR_MS * 1000, Relaxed),
            Jump::Forward => self.unix_us.fetch_add(5 * HOUR_MS * 1000, Relaxed),
        };
    }

    fn pass(&self, ms: u64) {
        self.unix_us.fetch_add(ms * 1000, Relaxed);
        self.monotonic_ns.fetch_add(ms * 1_000_000, Relaxed);
    }
}

impl Clock for JumpingClock {
    fn unix_us(&self) -> u64 {
        self.unix_us.load(Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Relaxed)
    }

    fn stands(&self) -> bool {
        self.stands.load(Relaxed)
    }
}

struct World {
    clock: Arc<JumpingClock>,
    engine: Engine,
    worker: Worker,
    client: Client,
}

impl World {
    fn new() -> World {
        let clock = Arc::new(JumpingClock {
            stands: AtomicBool::new(false),
            unix_us: AtomicU64::new(1_800_000_000_000_000),
            monotonic_ns: AtomicU64::new(12_345_678_901),
        });
        let engine = engine::with_all_commands(Arc::new(Settings::new()), Arc::new(IdleHost), clock.clone(), 4, 1);
        let worker = engine.worker(0);
        let handle = ClientHandle::new(1, "127.0.0.1:1".into(), String::new(), 1, 0, Box::new(|| {}));
        let handle = Arc::new(handle);
        engine.clients.add(handle.clone());
        World { clock, engine, worker, client: Client::new(handle, true) }
    }

    fn execute(&mut self, line: &str, out: &mut Vec<u8>) -> Flow {
        let mut request = OwnedRequest::default();
        line.split(' ').for_each(|word| request.push(word.as_bytes()));
        self.engine.begin(&mut self.worker);
        engine::execute(&self.engine, &mut self.worker, &mut self.client, request.as_request(), out)
    }

    fn run(&mut self, line: &str) -> String {
        let mut out = Vec::new();
        assert!(matches!(self.execute(line, &mut out), Flow::Continue), "{line}");
        String::from_utf8(out).expect("replies are text here")
    }

    fn is_paused(&mut self) -> bool {
        matches!(self.execute("SET a 1", &mut Vec::new()), Flow::Paused(_))
    }
}
