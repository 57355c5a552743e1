//! Sweepers among workers, among each other, and on a server that is killed: a record is swept wholly and once, or not at
//! all.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use wire::{Connection, Random, Reply};

use crate::support::{Definition, Home, fields, records, start};

const INDEX: Definition = Definition { name: "at", prefixes: &["j:"], field: "at", condition: None, stamp: false };

/// Jobs that a worker completes are never requeued, and the others are, once.
#[test]
fn a_job_that_finishes_is_left_alone() {
    const JOBS: usize = 1500;
    let Some(session) = start() else { return };
    let seed = Random::from_env().next_u64();
    let mut connection = session.connect();
    INDEX.create(&mut connection);
    (0..JOBS).for_each(|number| connection.queue_line(&format!("HSET j:{number} at 1 state running")));
    (0..JOBS).for_each(|_| assert_eq!(connection.read().integer(), 2));
    let (completed, requeued) = (Mutex::new(BTreeSet::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for number in 0..2 {
            let (mut worker, mut random, completed) = (session.connect(), Random::new(seed + number), &completed);
            scope.spawn(move || {
                for _ in 0..JOBS {
                    let job = format!("j:{}", random.below(JOBS));
                    if worker.run(&format!("HCAS {job} state running done")).integer() == 1 {
                        assert!(completed.lock().expect("no panic").insert(job.clone()), "{job} was completed twice");
                    }
                }
            });
            let (mut sweeper, requeued) = (session.connect(), &requeued);
            scope.spawn(move || {
                for _ in 0..JOBS / 10 {
                    let swept = sweeper.run("SWEEP at BEFORE 9 WHERE state 1 running SET 2 state pending at 9 LIMIT 3");
                    requeued.lock().expect("no panic").extend(outcomes(&swept));
                }
            });
        }
    });
    let completed = completed.into_inner().expect("no panic");
    let mut last = Vec::new();
    loop {
        let swept = outcomes(&connection.run("SWEEP at BEFORE 9 WHERE state 1 running SET 2 state pending at 9"));
        if swept.is_empty() {
            break;
        }
        last.extend(swept);
    }
    let mut requeued = requeued.into_inner().expect("no panic");
    println!("{} completed, {} requeued in the race, {} after it", completed.len(), requeued.len(), last.len());
    requeued.extend(last);
    let once: BTreeSet<String> = requeued.iter().map(|(job, _)| job.clone()).collect();
    assert_eq!(once.len(), requeued.len(), "a job was requeued twice");
    assert_eq!(once.intersection(&completed).next(), None, "a job was requeued that was completed");
    assert_eq!(once.len() + completed.len(), JOBS);
    for number in 0..JOBS {
        let job = format!("j:{number}");
        let expected = if completed.contains(&job) { "[\"done\", \"1\"]" } else { "[\"pending\", \"9\"]" };
        assert_eq!(connection.run(&format!("HMGET {job} state at")).to_string(), expected, "{job}");
    }
}

/// Every requeue that a sweeper tells of counts once, and no other does; the message is sent as often.
#[test]
fn sweepers_requeue_nothing_twice() {
    const JOBS: usize = 60;
    const TRIES: usize = 4;
    let Some(session) = start() else { return };
    let mut connection = session.connect();
    let mut listener = session.connect();
    listener.run("SUBSCRIBE swept");
    INDEX.create(&mut connection);
    for number in 0..JOBS {
        connection.run(&format!("HSET j:{number} at 1 state running"));
    }
    let (told, done) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        for limit in [1, 7, 100] {
            let (mut sweeper, told, done) = (session.connect(), &told, &done);
            scope.spawn(move || {
                let sweep = format!(
                    "SWEEP at BEFORE 9 WHERE state 1 running RETRY tries {TRIES} ELSE 2 state failed at 1000 \
                     SET 3 state pending at 9 last NOW LIMIT {limit} PUBLISH swept"
                );
                while !done.load(Relaxed) {
                    told.lock().expect("no panic").extend(outcomes(&sweeper.run(&sweep)));
                }
            });
        }
        // Claims what was requeued, and forgets about it.
        let (mut worker, done) = (session.connect(), &done);
        scope.spawn(move || {
            while worker.run("ZCOUNT at 1000 1000").integer() < JOBS as i64 {
                for number in 0..JOBS {
                    worker.run(&format!("HCAS j:{number} IF 1 state pending SET 2 state running at 1"));
                }
            }
            done.store(true, Relaxed);
        });
    });
    let told = told.into_inner().expect("no panic");
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    told.iter().for_each(|(job, outcome)| *counts.entry((job.clone(), outcome.clone())).or_default() += 1);
    for number in 0..JOBS {
        let job = format!("j:{number}");
        let count = |outcome: &str| counts.get(&(job.clone(), outcome.to_owned())).copied().unwrap_or(0);
        assert_eq!((count("requeued"), count("exhausted")), (TRIES, 1), "{job}");
        assert_eq!(
            connection.run(&format!("HMGET {job} state tries")).to_string(),
            format!("[\"failed\", \"{TRIES}\"]")
        );
    }
    let mut heard: Vec<String> = told.iter().map(|_| listener.read().items()[2].text().to_owned()).collect();
    let mut expected: Vec<String> = told.into_iter().map(|(job, _)| job).collect();
    heard.sort();
    expected.sort();
    assert_eq!(heard, expected);
    connection.run("PUBLISH swept end");
    assert_eq!(listener.read().items()[2].text(), "end", "a message too many");
}

#[test]
fn a_kill_leaves_no_record_half_swept() {
    const JOBS: usize = 3000;
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let mut server = home.start();
    for round in 0..3 {
        let mut connection = server.connect();
        if round == 0 {
            INDEX.create(&mut connection);
        }
        for number in 0..JOBS {
            connection.queue_line(&format!("HPUT j:{number} REPLACE FIELDS 5 at 1 state running tries 0 a 0 b 0"));
        }
        (0..JOBS).for_each(|_| assert!(!connection.read().is_error()));
        let acknowledged = Mutex::new(BTreeSet::new());
        let address = server.address();
        thread::scope(|scope| {
            for limit in [3, 20] {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    let Ok(mut sweeper) = Connection::open(address) else { return };
                    let sweep = format!(
                        "SWEEP at BEFORE 9 WHERE state 1 running RETRY tries 9 ELSE 1 state failed \
                         SET 4 state pending at 1000 a 1 b 1 LIMIT {limit}"
                    );
                    loop {
                        let reply = sweeper.run(&sweep);
                        if reply == Reply::Closed {
                            return;
                        }
                        acknowledged.lock().expect("no panic").extend(outcomes(&reply).into_iter().map(|(job, _)| job));
                    }
                });
            }
            thread::sleep(Duration::from_millis(random.below(200) as u64));
            server.kill();
        });
        server = home.start();
        let mut connection = server.connect();
        let acknowledged = acknowledged.into_inner().expect("no panic");
        let after = records(&mut connection);
        let parse = |line: &str| fields(&Reply::Array(line.split(' ').map(|word| Reply::Bulk(word.into())).collect()));
        let (before, swept) =
            (parse("at 1 state running tries 0 a 0 b 0"), parse("at 1000 state pending tries 1 a 1 b 1"));
        for (name, record) in &after {
            let name = String::from_utf8_lossy(name);
            assert!(*record == before || *record == swept, "{name} is half swept: {record:?}");
            assert!(*record == swept || !acknowledged.contains(&*name), "{name} was swept, and is not any more");
        }
        assert_eq!(after.len(), JOBS);
        let count = after.values().filter(|record| **record == swept).count();
        println!("round {round}: {count} of {JOBS} were swept, {} acknowledged", acknowledged.len());
        INDEX.assert_exact(&mut connection, &after, &format!("after kill {round}"));
    }
}

/// What a sweep tells: records and what became of them.
#[track_caller]
fn outcomes(reply: &Reply) -> Vec<(String, String)> {
    let outcome = |one: &Reply| (one.items()[0].text().to_owned(), one.items()[1].text().to_owned());
    reply.items().iter().map(outcome).collect()
}
