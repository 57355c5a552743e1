//! How long it takes from a job's arrival to the reply of a worker that waits for one: HSET to a blocked CLAIM, and where
//! a server has no CLAIM, LPUSH to a blocked BRPOP. Knows nothing of how a server wakes its clients.

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::queue::{DUE, NEW_JOB, Queue, job_key, now_digits};
use super::requests::TIME_BASE_MS;
use crate::measure::{Latencies, Metric, Sample};
use crate::servers::{Connection, Reply, Server, info, info_field, text};

/// One worker waits.
pub(crate) fn one(server: &mut Server, jobs: u64) -> Result<Sample> {
    wakeups(server, jobs, 1, Means::of(server)?)
}

/// Fifty wait, and the one that has waited for longest gets the job.
pub(crate) fn many(server: &mut Server, jobs: u64) -> Result<Sample> {
    wakeups(server, jobs, 50, Means::of(server)?)
}

/// One worker waits for an element of a list, on every server.
pub(crate) fn list_wakeup(server: &mut Server, jobs: u64) -> Result<Sample> {
    wakeups(server, jobs, 1, Means::List)
}

/// Jobs one at a time, each when all workers wait again.
fn wakeups(server: &Server, jobs: u64, workers: usize, means: Means) -> Result<Sample> {
    if means == Means::Claim {
        Queue::of(server)?;
    }
    let (mut control, mut producer) = (server.connect()?, server.connect()?);
    let mut waiting = VecDeque::new();
    for _ in 0..workers {
        let mut worker = server.connect()?;
        means.wait(&mut worker)?;
        waiting.push_back(worker);
        // One after the other, so that their order is known.
        until_blocked(&mut control, waiting.len())?;
    }
    let mut waits_us = Vec::with_capacity(jobs as usize);
    for job in 0..jobs {
        let mut worker = waiting.pop_front().context("no worker waits")?;
        means.push_job(&mut producer, job);
        let sent = Instant::now();
        producer.flush()?;
        let reply = worker.read_reply().context("the worker that has waited for longest got no job")?;
        waits_us.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        means.check(job, &producer.read_reply()?, &reply)?;
        means.wait(&mut worker)?;
        waiting.push_back(worker);
        until_blocked(&mut control, workers)?;
        thread::sleep(PAUSE);
    }
    let waits = Latencies::from_us(waits_us);
    Ok(Sample::from([
        (Metric::LatencyP50, waits.quantile_us(0.5) / 1e3),
        (Metric::LatencyP99, waits.quantile_us(0.99) / 1e3),
    ]))
}

/// Between two jobs: the server has gone to sleep after what was asked before.
const PAUSE: Duration = Duration::from_micros(200);

/// Waits until the server says that so many clients wait.
fn until_blocked(control: &mut Connection, workers: usize) -> Result<()> {
    let started = Instant::now();
    loop {
        let info = info(control, "clients")?;
        let blocked = info_field(&info, "blocked_clients").context("INFO clients has no blocked_clients")?;
        if blocked == workers.to_string() {
            return Ok(());
        }
        ensure!(started.elapsed() < BLOCKED_MAX, "of {workers} workers, {blocked} wait");
    }
}

const BLOCKED_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, PartialEq)]
enum Means {
    Claim,
    List,
}

const LIST: &str = "jobs";

impl Means {
    /// The best that a server has.
    fn of(server: &Server) -> Result<Means> {
        Ok(if server.knows("CLAIM")? { Means::Claim } else { Means::List })
    }

    fn wait(self, worker: &mut Connection) -> Result<()> {
        match self {
            #[rustfmt::skip]
            Means::Claim => worker.push(&["CLAIM", "1", DUE, "MAX", "NOW", "SET", "3", "state", "running", "worker", "w-1",
                "run_at", LEASE, "COUNTER", "attempt", "BLOCK", "0"]),
            Means::List => worker.push(&["BRPOP", LIST, "0"]),
        }
        worker.flush()
    }

    /// A record of twelve fields, or the same as one string.
    fn push_job(self, producer: &mut Connection, job: u64) {
        let (key, values) = (job_key(job), values(job));
        match self {
            Means::Claim => {
                let fields = NEW_JOB.iter().zip(&values).flat_map(|((name, _), value)| [*name, value.as_str()]);
                producer.push(&["HSET", &key].into_iter().chain(fields).collect::<Vec<_>>());
            }
            Means::List => producer.push(&["LPUSH", LIST, &(key + " " + &values.join(" "))]),
        }
    }

    /// The job was taken in, and the worker has it.
    fn check(self, job: u64, taken: &Reply, got: &Reply) -> Result<()> {
        let expected = match self {
            Means::Claim => Reply::Integer(NEW_JOB.len() as i64),
            Means::List => Reply::Integer(1),
        };
        ensure!(*taken == expected, "the job was answered with {taken:?}");
        let key = match (self, got) {
            (Means::Claim, Reply::Array(rows)) => match &rows[..] {
                [Reply::Array(row)] if row.len() == 3 => text(&row[0]),
                _ => None,
            },
            (Means::List, Reply::Array(pair)) if pair.len() == 2 => {
                text(&pair[1]).and_then(|payload| payload.split(' ').next())
            }
            _ => None,
        };
        match key {
            Some(key) if key == job_key(job) => Ok(()),
            _ => bail!("instead of job {job}, the worker got {got:?}"),
        }
    }
}

/// Longer than any run.
const LEASE: &str = "NOW+600000";

/// What the fields of a job have that is due now.
fn values(job: u64) -> [String; NEW_JOB.len()] {
    let (number, time) = (format!("{job:012}"), (TIME_BASE_MS + now_digits()).to_string());
    NEW_JOB.map(|(_, new)| new.replace("{job}", &number).replace("1{time}", &time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Reply {
        Reply::Array(texts.iter().map(|text| Reply::BulkString((*text).into())).collect())
    }

    #[test]
    fn a_worker_must_get_the_job_that_was_sent() {
        let row = |key: &str| Reply::Array(vec![Reply::BulkString(key.into()), Reply::Null, texts(&[])]);
        let claimed = |key: &str| Reply::Array(vec![row(key)]);
        let (hset, lpush) = (Reply::Integer(12), Reply::Integer(1));
        assert!(Means::Claim.check(7, &hset, &claimed("job:000000000007")).is_ok());
        assert!(Means::Claim.check(7, &hset, &claimed("job:000000000008")).is_err());
        assert!(Means::Claim.check(7, &lpush, &claimed("job:000000000007")).is_err());
        assert!(Means::Claim.check(7, &hset, &Reply::Array(Vec::new())).is_err());
        assert!(Means::List.check(7, &lpush, &texts(&["jobs", "job:000000000007 pending"])).is_ok());
        assert!(Means::List.check(7, &lpush, &texts(&["jobs", "job:000000000008 pending"])).is_err());
        // A list of two: no worker was waiting.
        assert!(Means::List.check(7, &Reply::Integer(2), &texts(&["jobs", "job:000000000007 pending"])).is_err());
    }

    #[test]
    fn a_job_is_due_when_it_is_sent() {
        let values = values(7);
        let run_at: u64 = values[NEW_JOB.iter().position(|(name, _)| *name == "run_at").unwrap()].parse().unwrap();
        assert!(run_at <= TIME_BASE_MS + now_digits() && run_at > 1_700_000_000_000);
        assert_eq!(values[2], "job_000000000007");
    }
}
