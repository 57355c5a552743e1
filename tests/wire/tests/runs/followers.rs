//! Writers that append to a few runs, some of it twice, and readers that follow with a watermark, while the server is
//! killed and started again: each event is there exactly once and at one place, and each reader sees all of them in order.

use crate::{get, run_seq};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use wire::own::{OwnServer, SetOnDrop};
use wire::{Connection, Random, Reply};

const WRITERS: usize = 16;
const READERS: usize = 4;
const RUNS: usize = 4;
/// Kills, if HOLDFAST_TEST_ROUNDS does not ask for more.
const KILLS: usize = 2;
/// Appends of a writer between two kills.
const APPENDS: usize = 60;

/// Every write is synced before it is acknowledged, and the clients are served by several threads.
const ARGS: &[&str] =
    &["--appendonly", "yes", "--appendfsync", "always", "--threads", "4", "--worker-balance", "spread"];

/// The runSeq of each key of each run, as a writer was told.
type Told = BTreeMap<(usize, String), i64>;

#[test]
fn readers_see_each_event_once_and_in_order_though_the_server_is_killed() {
    let kills = std::env::var("HOLDFAST_TEST_ROUNDS").map_or(KILLS, |text| text.parse().expect("a number of rounds"));
    let Some(own) = &OwnServer::start(ARGS) else { return };
    let mut random = Random::from_env();
    let acknowledged = &AtomicUsize::new(0);
    let is_over = &AtomicBool::new(false);
    let (told, seen) = thread::scope(|scope| {
        // Set even if one of them fails: otherwise the readers would wait for ever.
        let _end = SetOnDrop(is_over);
        let readers: Vec<_> =
            (0..READERS).map(|reader| scope.spawn(move || follow(own, reader % RUNS, is_over))).collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let random = Random::new(random.next_u64());
                scope.spawn(move || write(own, writer, (kills + 1) * APPENDS, random, acknowledged))
            })
            .collect();
        for kill in 0..kills {
            // Somewhere in the middle of what is left to do.
            let moment = WRITERS * (kill * APPENDS + APPENDS / 4 + random.below(APPENDS / 2));
            while acknowledged.load(SeqCst) < moment && !writers.iter().all(|writer| writer.is_finished()) {
                thread::yield_now();
            }
            if random.one_in(2) {
                // What it leaves behind then comes from a snapshot in part.
                own.connect().run("BGSAVE");
            }
            own.kill_and_start();
        }
        let told: Vec<Told> = writers.into_iter().map(|writer| writer.join().expect("a writer has failed")).collect();
        is_over.store(true, SeqCst);
        (told, readers.into_iter().map(|reader| reader.join().expect("a reader has failed")).collect::<Vec<_>>())
    });
    check(own, &told, &seen);
}

/// A client that connects again when its server was killed.
struct Steady<'a> {
    own: &'a OwnServer,
    connection: Connection,
}

impl<'a> Steady<'a> {
    fn new(own: &'a OwnServer) -> Steady<'a> {
        Steady { own, connection: own.connect() }
    }

    /// Sends a command; `None` if the server was killed before it replied, or has not begun again for long.
    fn run(&mut self, args: &[impl AsRef<[u8]>]) -> Option<Reply> {
        self.connection.queue(args);
        match self.connection.read_until_killed() {
            Reply::Closed => {}
            Reply::Error(text) if text.starts_with(b"LOADING") => thread::sleep(Duration::from_millis(5)),
            reply => return Some(reply),
        }
        self.connection = self.own.connect();
        None
    }
}

/// Appends so many events, three in ten of them not for the first time. An append that was not answered is sent again.
fn write(own: &OwnServer, writer: usize, appends: usize, mut random: Random, acknowledged: &AtomicUsize) -> Told {
    let (mut client, mut told) = (Steady::new(own), Told::new());
    for number in 0..appends {
        let (run, key) = match random.below(10) {
            // One of its own, of which it knows the place.
            0..3 if !told.is_empty() => told.keys().nth(random.below(told.len())).expect("there are as many").clone(),
            // One that others append as well.
            3 => (random.below(RUNS), format!("shared-{}", random.below(appends))),
            _ => (random.below(RUNS), format!("w{writer}-{number}{}", "y".repeat(random.pick(&[0, 0, 60])))),
        };
        let is_own = key.starts_with('w');
        let (name, data) = (format!("run:{run}"), data_of(&key));
        let command = ["RUN.APPEND", &name, &key, "StepCompleted", &data, "STEP", &key];
        let mut tries = 0;
        let reply = loop {
            tries += 1;
            match client.run(&command) {
                Some(reply) => break reply,
                None => continue,
            }
        };
        let (at, idempotent) = (run_seq(&reply), get(&reply, "idempotent").integer());
        assert_eq!(
            (get(&reply, "persisted").integer(), get(&reply, "mismatch").integer()),
            (1 - idempotent, 0),
            "{key}"
        );
        match told.get(&(run, key.clone())) {
            Some(first) => assert_eq!((at, idempotent), (*first, 1), "{key} of run {run}"),
            // A key of its own that it has sent once is new. What was not answered may have been kept, or not.
            None if is_own && tries == 1 => assert_eq!(idempotent, 0, "{key} of run {run}"),
            None => {}
        }
        told.insert((run, key), at);
        acknowledged.fetch_add(1, SeqCst);
    }
    told
}

/// Reads a run from its beginning, waiting for what is next, until nothing more can come. The keys, in their order.
fn follow(own: &OwnServer, run: usize, is_over: &AtomicBool) -> (usize, Vec<String>) {
    let (mut client, mut keys) = (Steady::new(own), Vec::new());
    loop {
        // IMPORTANT: read before the events are: what was acknowledged then is among them.
        let was_over = is_over.load(SeqCst);
        let (name, watermark) = (format!("run:{run}"), keys.len().to_string());
        let Some(reply) = client.run(&["RUN.EVENTS", &name, "AFTER", &watermark, "LIMIT", "40", "BLOCK", "100"]) else {
            continue;
        };
        // An error would say that the run has fewer events than the reader has seen.
        assert!(!reply.is_error(), "{reply}");
        for event in reply.items() {
            assert_eq!(run_seq(event) as usize, keys.len() + 1, "of run {run}");
            keys.push(key_of(event));
        }
        if was_over && reply.items().is_empty() {
            return (run, keys);
        }
    }
}

/// The data of the event with a key: long now and then.
fn data_of(key: &str) -> String {
    let times = if key.len().is_multiple_of(7) { 200 } else { 1 };
    format!("data of {key}").repeat(times)
}

/// The key of an event whose other parts have to follow from it.
fn key_of(event: &Reply) -> String {
    let key = get(event, "idempotencyKey").text();
    assert_eq!(get(event, "eventData").text(), data_of(key));
    assert_eq!(get(event, "stepId").text(), key);
    key.to_owned()
}

/// Every event is there once, at the place that each writer was told and each reader has seen; also after another kill.
fn check(own: &OwnServer, told: &[Told], seen: &[(usize, Vec<String>)]) {
    let all: BTreeSet<&(usize, String)> = told.iter().flat_map(|told| told.keys()).collect();
    for _ in 0..2 {
        let mut connection = own.connect();
        let mut count = 0;
        for run in 0..RUNS {
            let events = connection.run(&format!("RUN.EVENTS run:{run} LIMIT 1000000"));
            let keys: Vec<String> = events.items().iter().map(key_of).collect();
            let places: BTreeMap<&String, usize> = keys.iter().zip(1..).collect();
            assert_eq!(places.len(), keys.len(), "a key is there twice");
            count += keys.len();
            for (number, event) in (1..).zip(events.items()) {
                assert_eq!(run_seq(event), number);
            }
            for ((_, key), at) in told.iter().flatten().filter(|((of, _), _)| *of == run) {
                assert_eq!(places.get(key), Some(&(*at as usize)), "{key} of run {run}");
            }
            for (_, followed) in seen.iter().filter(|(of, _)| *of == run) {
                assert!(
                    *followed == keys,
                    "a reader has seen {} events of run {run}, and there are {}",
                    followed.len(),
                    keys.len()
                );
            }
            let project = connection.run(&format!("RUN.PROJECT run:{run}"));
            assert_eq!(connection.run(&format!("RUN.SNAPSHOT run:{run}")), project);
        }
        assert_eq!(count, all.len(), "all that is there was appended");
        own.kill_and_start();
    }
    println!("{} events, {} appends", all.len(), told.iter().map(Told::len).sum::<usize>());
}
