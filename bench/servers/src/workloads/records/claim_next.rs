//! Workers that claim one due job after the other out of many. Knows nothing of how a server finds the next one; no job may
//! be claimed twice under one token, and the record of each must say who has it.

use anyhow::{Result, ensure};

use super::queue::{Claim, DUE, NEW_JOB, Queue, claimed, each_job, ensure_queued, job_key};
use crate::load::{CLIENTS, Connections, KEYS, Loader, Traffic};
use crate::measure::Sample;
use crate::servers::{Reply, Server};
use crate::workloads::workload::Setup;

/// Jobs that have been due for long.
pub(crate) static JOBS: Setup = Setup { size: KEYS, size_quick: KEYS, load: load_jobs };

/// Claims by fifty workers. Each moves the job to the end of its lease, which is short, so that the jobs come round again
/// before they run out: the queue is as long at the end as it was at the beginning.
pub(crate) fn claim_next(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let queue = Queue::of(server)?;
    release_all(server, &queue)?;
    let mut claims = Claims::new(&queue, KEYS);
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    let sample = connections.run(server, pipeline, operations, &mut claims)?;
    each_job(server, KEYS, ["state", "worker", "attempt"], |job, fields| {
        claims.histories[job as usize].check(job, fields)
    })?;
    ensure_queued(server, KEYS)?;
    Ok(sample)
}

/// A hundred thousand jobs come round again after this even at two million claims a second.
const LEASE_MS: u64 = 50;

fn load_jobs(server: &Server, jobs: u64) -> Result<()> {
    let queue = Queue::of(server)?;
    let mut loader = Loader::new(server)?;
    for job in 0..jobs {
        let (key, number, time) = (job_key(job), format!("{job:012}"), due_ms(job, jobs).to_string());
        let values = NEW_JOB.map(|(_, new)| new.replace("{job}", &number).replace("1{time}", &time));
        let fields = NEW_JOB.iter().zip(&values).flat_map(|((name, _), value)| [*name, value.as_str()]);
        let request: Vec<_> = ["HSET", &key].into_iter().chain(fields).collect();
        loader.send(&request, Reply::Integer(NEW_JOB.len() as i64))?;
        if let Queue::Scripts { .. } = queue {
            loader.send(&["ZADD", DUE, &time, &key], Reply::Integer(1))?;
        }
    }
    loader.finish()
}

/// When a job falls due: all of them long ago, each at a time of its own, in another order than that of their names.
fn due_ms(job: u64, jobs: u64) -> u64 {
    FIRST_DUE_MS + job * STRIDE % jobs
}

/// 1 January 2026.
const FIRST_DUE_MS: u64 = 1_767_225_600_000;
/// A prime that divides no number of jobs.
const STRIDE: u64 = 7_919;

/// Makes every job what it was when it was loaded.
fn release_all(server: &Server, queue: &Queue) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for job in 0..KEYS {
        let (key, time) = (job_key(job), due_ms(job, KEYS).to_string());
        let request = ["HSET", &key, "state", "pending", "worker", "", "run_at", &time, "attempt", "0"];
        loader.send(&request, Reply::Integer(0))?;
        if let Queue::Scripts { .. } = queue {
            loader.send(&["ZADD", DUE, &time, &key], Reply::Integer(0))?;
        }
    }
    loader.finish()
}

struct Claims {
    /// Of each worker.
    requests: Vec<Claim>,
    workers: Vec<String>,
    histories: Vec<History>,
}

/// Who has claimed a job, by the replies.
#[derive(Clone, Default)]
struct History {
    /// A bit for each token that was given out, the first in the lowest.
    tokens: u64,
    /// The worker with the highest token.
    worker: usize,
}

impl Claims {
    fn new(queue: &Queue, jobs: u64) -> Self {
        let workers: Vec<_> = (0..CLIENTS).map(worker_name).collect();
        let requests = workers.iter().map(|worker| queue.claim(worker, LEASE_MS)).collect();
        Claims { requests, workers, histories: vec![History::default(); jobs as usize] }
    }
}

fn worker_name(number: u32) -> String {
    format!("w-{number:02}")
}

impl Traffic for Claims {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        self.requests[sender].write(requests);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let Some((claimed, length)) = claimed(received)? else { return Ok(None) };
        let worker = &self.workers[sender];
        ensure!(
            claimed.state == b"running" && claimed.worker == worker.as_bytes() && claimed.run_at > FIRST_DUE_MS + KEYS,
            "{worker} has claimed a job that does not say so: {claimed:?}"
        );
        let history = self.histories.get_mut(claimed.job as usize);
        let known = history.is_some_and(|history| history.note(claimed.attempt, sender));
        ensure!(
            known,
            "job {} was claimed with the token {}, which was given before or cannot be",
            claimed.job,
            claimed.attempt
        );
        Ok(Some(length))
    }
}

impl History {
    /// Whether this token is one that the job can have and has not had yet. The jobs come round in turn, so no job has many.
    fn note(&mut self, token: u64, worker: usize) -> bool {
        if !(1..=u64::from(u64::BITS)).contains(&token) {
            return false;
        }
        let bit = 1 << (token - 1);
        let new = self.tokens & bit == 0;
        self.tokens |= bit;
        if self.tokens <= bit | (bit - 1) {
            self.worker = worker;
        }
        new
    }

    /// The record tells of the claims that were answered, of each of them and of no others.
    fn check(&self, job: u64, [state, worker, attempt]: [&str; 3]) -> Result<()> {
        let claims = self.tokens.count_ones();
        let expected = match claims {
            0 => ("pending", String::new()),
            _ => ("running", worker_name(self.worker as u32)),
        };
        let gapless = claims == u64::BITS - self.tokens.leading_zeros();
        ensure!(
            gapless && attempt == claims.to_string() && (state, worker) == (expected.0, &*expected.1),
            "job {job} was claimed {claims} times, at last by {expected:?}, but it is {state}, of {worker:?}, in attempt {attempt}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::tests::{reply, scripts};
    use super::*;

    #[test]
    fn every_job_is_due_at_a_time_of_its_own() {
        let mut times: Vec<_> = (0..1_000).map(|job| due_ms(job, 1_000)).collect();
        assert!(!times.is_sorted());
        times.sort();
        assert_eq!(times, (FIRST_DUE_MS..FIRST_DUE_MS + 1_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_token_is_given_once_for_a_job() {
        for queue in [Queue::Index, scripts()] {
            let mut claims = Claims::new(&queue, 10);
            let mut answer = |sender: usize, job, worker: &str, token: &str| {
                claims
                    .check_reply(sender, reply(&queue, job, worker, token).as_bytes())
                    .map_err(|error| error.to_string())
            };
            assert!(answer(3, 7, "w-03", "1").unwrap().is_some());
            assert!(answer(4, 7, "w-04", "3").unwrap().is_some());
            assert!(answer(3, 7, "w-03", "2").unwrap().is_some());
            assert!(answer(3, 8, "w-03", "1").unwrap().is_some());
            for (job, token) in [(7, "2"), (7, "0"), (7, "65"), (10, "1")] {
                assert!(answer(3, job, "w-03", token).unwrap_err().contains("given before or cannot be"));
            }
            assert!(answer(3, 9, "w-04", "1").unwrap_err().starts_with("w-03 has claimed a job that does not say so"));
            assert!(claims.histories[7].check(7, ["running", "w-04", "3"]).is_ok());
            for other in [["running", "w-03", "3"], ["running", "w-04", "4"], ["pending", "w-04", "3"]] {
                assert!(claims.histories[7].check(7, other).is_err());
            }
            assert!(claims.histories[0].check(0, ["pending", "", "0"]).is_ok());
        }
    }

    #[test]
    fn a_claim_that_no_client_has_heard_of_is_noticed() {
        let mut history = History::default();
        assert!(history.note(2, 5));
        assert!(history.check(1, ["running", "w-05", "2"]).is_err());
        assert!(history.note(1, 6));
        assert!(history.check(1, ["running", "w-05", "2"]).is_ok());
    }
}
