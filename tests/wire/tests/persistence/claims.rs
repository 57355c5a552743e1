//! The claim race: many workers want the same jobs, and each job is won once, through a kill of the server too.

use std::collections::BTreeMap;
use std::thread;

use wire::{Connection, Random, Reply, Server};

use crate::support::Home;

const JOBS: usize = 4_000;
const WORKERS: usize = 64;
/// How many workers try each job, on average.
const RIVALS: usize = 8;
const PIPELINE: usize = 50;
const THREADS: &[&str] = &["--threads", "8", "--worker-balance", "spread"];

const CLAIM: &str = "local current = redis.call('HGET', KEYS[1], ARGV[1])\nif current == ARGV[2] then\n    \
                     redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])\n    return 1\nelse\n    return 0\nend";

#[test]
fn each_job_is_won_once_though_the_server_is_killed() {
    let Some(home) = Home::fresh() else { return };
    let mut random = Random::from_env();
    let server = home.start(THREADS);
    fill(&mut server.connect());
    // Killed after so many replies, in the middle of the race.
    let mut won = race(&server, random.next_u64(), 1000 + random.below(JOBS - 2000));
    let server = home.serve_again(server, THREADS);
    for (job, winners) in race(&server, random.next_u64(), usize::MAX) {
        won.entry(job).or_default().extend(winners);
    }
    let mut connection = server.connect();
    for job in 0..JOBS {
        let state = connection.run(&format!("HGET job:{job} state")).text().to_owned();
        match won.get(&job).map(Vec::as_slice) {
            Some([winner]) => assert_eq!(state, format!("claimed:{winner}")),
            // Nobody was told: its winner's reply was on its way.
            None => assert!(state.starts_with("claimed:"), "job {job} is {state}"),
            Some(winners) => panic!("job {job} was won by {winners:?}"),
        }
    }
}

fn fill(connection: &mut Connection) {
    let jobs: Vec<String> = (0..JOBS).map(|job| format!("HSET job:{job} state pending")).collect();
    for some in jobs.chunks(1000) {
        connection.pipeline(some);
    }
}

/// All workers try to claim jobs at once; who was told that it has won which. The server is killed when somebody has had
/// `replies_max` replies in all, or not at all.
fn race(server: &Server, seed: u64, replies_max: usize) -> BTreeMap<usize, Vec<usize>> {
    let sha = server.connect().run_with("SCRIPT LOAD", &[CLAIM.as_bytes()]).text().to_owned();
    let (sha, server_id) = (&sha, server.process_id());
    let won: Vec<Vec<usize>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let mut connection = server.connect();
                scope.spawn(move || claims(&mut connection, sha, worker, seed, replies_max, server_id))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker failed")).collect()
    });
    let mut winners: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (worker, jobs) in won.iter().enumerate() {
        jobs.iter().for_each(|job| winners.entry(*job).or_default().push(worker));
    }
    winners
}

fn claims(
    connection: &mut Connection,
    sha: &str,
    worker: usize,
    seed: u64,
    replies_max: usize,
    server_id: u32,
) -> Vec<usize> {
    let mut random = Random::new(seed ^ worker as u64);
    // The first worker tries them all, so that none is left over.
    let mut jobs: Vec<usize> = (0..JOBS).filter(|_| worker == 0 || random.one_in(WORKERS / RIVALS)).collect();
    let rotation = random.below(jobs.len());
    jobs.rotate_left(rotation);
    let (mut won, mut replies) = (Vec::new(), 0);
    for some in jobs.chunks(PIPELINE) {
        for job in some {
            connection.queue_line(&format!("EVALSHA {sha} 1 job:{job} state pending claimed:{worker}"));
        }
        connection.flush();
        for job in some {
            match connection.read() {
                Reply::Integer(1) => won.push(*job),
                Reply::Integer(0) => {}
                Reply::Closed if replies_max < usize::MAX => return won,
                other => panic!("{other}"),
            }
            replies += 1;
            if worker == 0 && replies == replies_max {
                let _ = std::process::Command::new("kill").args(["-s", "KILL", &server_id.to_string()]).status();
            }
        }
    }
    won
}
