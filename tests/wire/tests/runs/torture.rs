//! Very many appends of which half are duplicates, from several clients in long pipelines: afterwards every event is read
//! and compared with what was sent, and again when the server was killed and started.

use crate::own_server::{OwnServer, Steady};
use crate::{find, get, run_seq};
use std::collections::BTreeMap;
use std::thread;
use wire::{Connection, Random, Reply};

const CLIENTS: usize = 4;
const RUNS: usize = 25;
/// Appends, if HOLDFAST_TEST_STEPS does not ask for more: a million take minutes, and the release binary.
const APPENDS: usize = 40_000;
const PIPELINE: usize = 100;

const ARGS: &[&str] = &["--appendonly", "yes", "--threads", "2", "--worker-balance", "spread"];

/// All that an event is made of follows from its number, which is in its key.
struct Made {
    run: usize,
    key: String,
    event_type: &'static str,
    data: Vec<u8>,
    step: Option<String>,
}

impl Made {
    fn of(number: usize) -> Made {
        let mut random = Random::new(number as u64 + 1);
        // Runs of very different lengths.
        let run = random.below(RUNS).min(random.below(RUNS));
        let key = match number % 3 {
            0 => format!("{number:064x}"),
            1 => format!("{number}"),
            _ => format!("a-key-with-a-name-{number}"),
        };
        let len = match random.below(500) {
            0 => 20_000,
            1..50 => 700,
            _ => random.below(60),
        };
        let data = (0..len).map(|_| random.next_u64() as u8).collect();
        let event_type = random.pick(&["StepStarted", "StepCompleted", "StepFailed", "RunResumed", "custom", ""]);
        Made { run, key, event_type, data, step: (!random.one_in(3)).then(|| format!("step-{}", random.below(300))) }
    }

    /// The number in a key.
    fn number(key: &str) -> usize {
        let (digits, radix) = match key.strip_prefix("a-key-with-a-name-") {
            Some(digits) => (digits, 10),
            None if key.len() == 64 => (key, 16),
            None => (key, 10),
        };
        usize::from_str_radix(digits, radix).unwrap_or_else(|_| panic!("{key} is no key of ours"))
    }

    fn queue(&self, connection: &mut Connection) {
        let run = format!("run:{}", self.run);
        let mut command: Vec<&[u8]> =
            vec![b"RUN.APPEND", run.as_bytes(), self.key.as_bytes(), self.event_type.as_bytes(), &self.data];
        if let Some(step) = &self.step {
            command.extend([b"STEP", step.as_bytes()]);
        }
        connection.queue(&command);
    }

    fn check(&self, event: &Reply) {
        assert_eq!(get(event, "runId").text(), format!("run:{}", self.run));
        assert_eq!(get(event, "eventType").text(), self.event_type, "{}", self.key);
        assert!(get(event, "eventData").bytes() == self.data, "the data of {}", self.key);
        assert_eq!(find(event, "stepId").map(|step| step.text().to_owned()), self.step, "{}", self.key);
    }
}

#[test]
fn appends_of_which_half_are_duplicates_leave_each_event_once_and_whole() {
    let appends = std::env::var("HOLDFAST_TEST_STEPS").map_or(APPENDS, |text| text.parse().expect("a number of steps"));
    let Some(mut own) = OwnServer::start(ARGS) else { return };
    let mut random = Random::from_env();
    let mut killer = own.killer();
    let own = killer.own();
    let told: Vec<BTreeMap<usize, i64>> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let random = Random::new(random.next_u64());
                scope.spawn(move || append(own.connect(), client, appends / CLIENTS, random))
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("a client has failed")).collect()
    });
    // Each number is the same for all that were told it.
    let mut places: BTreeMap<usize, i64> = BTreeMap::new();
    for (number, at) in told.into_iter().flatten() {
        assert_eq!(*places.entry(number).or_insert(at), at, "of event {number}");
    }
    println!("{appends} appends, {} events", places.len());
    check(own, &places);
    killer.kill_and_start();
    check(own, &places);
}

/// Appends new events, and as many that it or another client has appended, or is about to. The place of each.
fn append(mut connection: Connection, client: usize, appends: usize, mut random: Random) -> BTreeMap<usize, i64> {
    let mut told: BTreeMap<usize, i64> = BTreeMap::new();
    let mut next = 0;
    for _ in 0..appends.div_ceil(PIPELINE) {
        let mut sent = Vec::new();
        for _ in 0..PIPELINE {
            let number = match next == 0 || random.one_in(2) {
                true => {
                    next += 1;
                    (next - 1) * CLIENTS + client
                }
                false => random.below(next) * CLIENTS + random.pick(&[client, client, (client + 1) % CLIENTS]),
            };
            Made::of(number).queue(&mut connection);
            sent.push(number);
        }
        for number in sent {
            let reply = connection.read();
            let at = run_seq(&reply);
            assert_eq!(get(&reply, "mismatch").integer(), 0, "of event {number}");
            match told.insert(number, at) {
                Some(first) => assert_eq!((at, get(&reply, "idempotent").integer()), (first, 1), "of event {number}"),
                None => assert_eq!(get(&reply, "persisted").integer(), 1 - get(&reply, "idempotent").integer()),
            }
        }
    }
    told
}

/// Reads every event of every run, in pages, and compares it with what was sent.
fn check(own: &OwnServer, places: &BTreeMap<usize, i64>) {
    let (mut client, mut count) = (Steady::new(own), 0);
    for run in 0..RUNS {
        let name = format!("run:{run}");
        let mut watermark = 0;
        loop {
            let page = client.run(&["RUN.EVENTS", &name, "AFTER", &watermark.to_string()]).expect("it is not killed");
            for event in page.items() {
                watermark += 1;
                let number = Made::number(get(event, "idempotencyKey").text());
                assert_eq!((run_seq(event), places.get(&number)), (watermark, Some(&watermark)), "of event {number}");
                let made = Made::of(number);
                assert_eq!(made.key, get(event, "idempotencyKey").text());
                made.check(event);
            }
            if page.items().is_empty() {
                break;
            }
        }
        count += watermark as usize;
        let of = |client: &mut Steady<'_>, command: &str| client.run(&[command, &name]).expect("it is not killed");
        assert_eq!(of(&mut client, "RUN.SNAPSHOT"), of(&mut client, "RUN.PROJECT"));
    }
    assert_eq!(count, places.len(), "all that is there was appended");
}
