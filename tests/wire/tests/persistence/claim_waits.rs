//! Workers that wait in CLAIM for jobs which arrive one at a time and in bursts, while the server is killed and started
//! again: no acknowledged job is lost, none is handed out twice, and what a worker was told is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use wire::{Connection, Random, Reply, Server};

use crate::support::{Home, eventually};

const WORKERS: usize = 64;
/// Kills, if HOLDFAST_TEST_ROUNDS does not ask for more.
const KILLS: usize = 3;
/// Jobs between two kills.
const JOBS: usize = 300;

#[test]
fn jobs_are_claimed_once_though_the_server_is_killed() {
    race(&[]);
}

#[test]
fn jobs_are_claimed_once_though_the_server_is_killed_and_every_write_is_synced() {
    race(&["--appendfsync", "always"]);
}

fn race(policy: &[&str]) {
    let Some(home) = Home::fresh() else { return };
    let kills = std::env::var("HOLDFAST_TEST_ROUNDS").map_or(KILLS, |text| text.parse().expect("a number of rounds"));
    let args = [&["--threads", "4", "--worker-balance", "spread"], policy].concat();
    let mut random = Random::from_env();
    let mut server = home.start(&args);
    let created = server.connect().run("IDX.CREATE due PREFIX 1 job: FIELD run_at").to_string();
    assert_eq!(created, "+OK");
    let (address, is_over) = (Mutex::new(server.address()), AtomicBool::new(false));
    let (mut acknowledged, mut told) = (BTreeSet::new(), BTreeMap::new());
    let server = thread::scope(|scope| {
        let (address_of, over) = (&address, &is_over);
        let workers: Vec<_> =
            (0..WORKERS).map(|worker| (worker, scope.spawn(move || claims(address_of, over, worker)))).collect();
        let _end = SetAtEnd(&is_over);
        for round in 0..=kills {
            let kill_at = if round < kills { random.below(JOBS) } else { usize::MAX };
            create(&server, round, kill_at, &mut random, &mut acknowledged);
            if round < kills {
                server.kill();
                server = home.start(&args);
                *address.lock().expect("no thread panics with it") = server.address();
            }
        }
        let mut connection = server.connect();
        // Nothing is due any more.
        eventually("all jobs are claimed", || {
            let now = connection.run("TIME").items()[0].text().to_owned();
            connection.run(&format!("ZCOUNT due -inf {now}000")).integer() == 0
        });
        is_over.store(true, SeqCst);
        for (worker, claims) in workers {
            for job in claims.join().expect("a worker failed") {
                if let Some(other) = told.insert(job.clone(), worker) {
                    panic!("{job} was handed out to {other} and to {worker}");
                }
            }
        }
        server
    });
    let mut connection = server.connect();
    for job in &acknowledged {
        assert_eq!(connection.run(&format!("HGET {job} attempt")).to_string(), "\"1\"", "{job} was acknowledged");
    }
    for (job, worker) in &told {
        let expected = format!("[\"{worker}\", \"1\"]");
        assert_eq!(connection.run(&format!("HMGET {job} worker attempt")).to_string(), expected, "{job}");
    }
    // Of each kill, at most what was on its way to a worker was claimed and not told.
    println!("{} jobs acknowledged, {} handed out", acknowledged.len(), told.len());
    assert!(told.len() + kills * WORKERS >= acknowledged.len(), "{} of {}", told.len(), acknowledged.len());
}

/// Creates jobs, one at a time and in bursts, and notes which were acknowledged. The server is killed with a burst under way
/// in which there is the job of that number.
fn create(server: &Server, round: usize, kill_at: usize, random: &mut Random, acknowledged: &mut BTreeSet<String>) {
    let mut connection = server.connect();
    let mut next = 0;
    while next < JOBS {
        let burst = if random.one_in(4) { 2 + random.below(48) } else { 1 };
        let jobs: Vec<String> = (next..JOBS.min(next + burst)).map(|job| format!("job:{round}:{job}")).collect();
        for job in &jobs {
            connection.queue_line(&format!("HSET {job} run_at 5"));
        }
        connection.flush();
        let is_last = (next..next + jobs.len()).contains(&kill_at);
        if is_last && random.one_in(2) {
            thread::sleep(Duration::from_micros(random.below(2000) as u64));
        }
        if is_last {
            server.signal("KILL");
        }
        for job in &jobs {
            match connection.read() {
                Reply::Integer(1) => drop(acknowledged.insert(job.clone())),
                Reply::Closed if is_last => return,
                other => panic!("{job}: {other}"),
            }
        }
        if is_last {
            return;
        }
        next += jobs.len();
    }
}

/// Claims jobs until it is over, through every end of the server. The jobs that it was handed.
fn claims(address: &Mutex<SocketAddr>, is_over: &AtomicBool, worker: usize) -> Vec<String> {
    let line = format!(
        "CLAIM 1 due MAX NOW SET 2 worker {worker} run_at NOW+600000 COUNTER attempt COUNT {} BLOCK 200 KEYS",
        1 + worker % 3
    );
    let mut jobs = Vec::new();
    while !is_over.load(SeqCst) {
        let address = *address.lock().expect("no thread panics with it");
        let Ok(mut connection) = Connection::open(address) else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        while !is_over.load(SeqCst) {
            connection.queue_line(&line);
            connection.flush();
            match connection.read() {
                Reply::Array(rows) => jobs.extend(rows.iter().map(|row| row.text().to_owned())),
                Reply::Closed => break,
                // It reads its data.
                Reply::Error(_) => thread::sleep(Duration::from_millis(10)),
                other => panic!("{other}"),
            }
        }
    }
    jobs
}

/// Set when this goes, so that no thread goes on after another has failed.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
