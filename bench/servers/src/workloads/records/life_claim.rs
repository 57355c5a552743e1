//! The lives of jobs whose workers find them by claiming: creation, claim, three steps, completion. Knows nothing of how
//! a queue is kept. No worker knows beforehand which job it will have, and each job must be done once.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};

use super::queue::{Claim, JOB, Queue, claimed, each_job, ensure_queued, fixed, now_digits};
use super::requests::{Requests, TIME};
use crate::load::{CLIENTS, Connections, Traffic};
use crate::measure::{Metric, Sample};
use crate::servers::{Server, simple};

/// A round trip for each change, of as many jobs at once as the pipeline is deep. What is counted are jobs; the latencies
/// are those of one change.
pub(crate) fn life_claim(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let flushed = server.connect()?.call(&["FLUSHALL"])?;
    ensure!(flushed == simple("OK"), "FLUSHALL answered {flushed:?}");
    let mut lives = Lives::new(&Queue::of(server)?);
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    let mut sample = connections.run(server, pipeline, operations, &mut lives)?;
    lives.finish(server)?;
    each_job(server, lives.begun, ["state", "current_step", "attempt"], |job, fields| {
        ensure!(fields == ["completed", "3", TOKEN], "job {job} is not done: {fields:?}");
        Ok(())
    })?;
    ensure_queued(server, 0)?;
    sample.entry(Metric::Throughput).and_modify(|per_s| *per_s /= CHANGES as f64);
    sample.entry(Metric::ServerCpu).and_modify(|us| *us *= CHANGES as f64);
    Ok(sample)
}

const CHANGES: usize = 6;
const STEPS: [&str; 3] = ["1", "2", "3"];

/// Every job is claimed once, so its first token is the one that it is completed with. Another one is an error.
const TOKEN: &str = "1";

/// Longer than any run.
const LEASE_MS: u64 = 600_000;

/// Jobs on their way.
struct Lives {
    create: Requests,
    created: &'static str,
    /// Of each worker.
    claims: Vec<Claim>,
    workers: Vec<String>,
    steps: [Requests; 3],
    complete: Requests,
    /// Jobs created so far, numbered from zero.
    begun: u64,
    /// Of each sender, the changes that have been sent, and those that come next.
    asked: Vec<VecDeque<Change>>,
    waiting: Vec<VecDeque<Change>>,
}

/// What is done with a job next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Create,
    /// The next job that is due, which may be another than the one that was created.
    Claim,
    /// One of the three steps.
    Step {
        job: u64,
        step: usize,
    },
    Complete {
        job: u64,
    },
}

impl Change {
    /// Changes from this one to the end of a life.
    fn left(self) -> usize {
        match self {
            Change::Create => CHANGES,
            Change::Claim => CHANGES - 1,
            Change::Step { step, .. } => STEPS.len() - step + 1,
            Change::Complete { .. } => 1,
        }
    }
}

impl Lives {
    fn new(queue: &Queue) -> Self {
        let nothing = || vec![VecDeque::new(); CLIENTS as usize];
        let workers: Vec<_> = (0..CLIENTS).map(|number| format!("w-{number:02}")).collect();
        Lives {
            create: queue.create(),
            created: queue.created(),
            claims: workers.iter().map(|worker| queue.claim(worker, LEASE_MS)).collect(),
            workers,
            steps: STEPS.map(|step| Requests::new(&[&["HSET", JOB, "current_step", step, "updated_at", TIME]])),
            complete: queue.complete(TOKEN),
            begun: 0,
            asked: nothing(),
            waiting: nothing(),
        }
    }

    /// Leads the jobs to their end that were on their way when the measured run was over: on one connection and one by one,
    /// so that no new job is begun.
    fn finish(&mut self, server: &Server) -> Result<()> {
        let left: VecDeque<_> = self.waiting.iter_mut().flat_map(|waiting| waiting.drain(..)).collect();
        let changes = left.iter().map(|change| change.left() as u64).sum();
        self.waiting[0] = left;
        if changes > 0 {
            Connections::new(server)?.senders(1)?.run(server, 1, changes, self)?;
        }
        Ok(())
    }

    /// The length of the reply to a change, and what comes after it.
    fn answered(&self, sender: usize, change: Change, received: &[u8]) -> Result<Option<(usize, Option<Change>)>> {
        let (length, next) = match change {
            Change::Create => (fixed(received, self.created)?, Some(Change::Claim)),
            Change::Claim => {
                let Some((claimed, length)) = claimed(received)? else { return Ok(None) };
                let ours = claimed.worker == self.workers[sender].as_bytes() && claimed.state == b"running";
                ensure!(ours, "{} has claimed a job that does not say so: {claimed:?}", self.workers[sender]);
                ensure!(claimed.attempt.to_string() == TOKEN, "a job was claimed a second time: {claimed:?}");
                (Some(length), Some(Change::Step { job: claimed.job, step: 0 }))
            }
            Change::Step { job, step } => {
                let next = step + 1;
                let next = if next < STEPS.len() { Change::Step { job, step: next } } else { Change::Complete { job } };
                (fixed(received, ":0\r\n")?, Some(next))
            }
            Change::Complete { .. } => (fixed(received, ":1\r\n")?, None),
        };
        Ok(length.map(|length| (length, next)))
    }
}

impl Traffic for Lives {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let change = self.waiting[sender].pop_front().unwrap_or(Change::Create);
        match change {
            Change::Create => {
                self.create.write(self.begun, now_digits(), requests);
                self.begun += 1;
            }
            Change::Claim => self.claims[sender].write(requests),
            Change::Step { job, step } => self.steps[step].write(job, now_digits(), requests),
            Change::Complete { job } => self.complete.write(job, now_digits(), requests),
        }
        self.asked[sender].push_back(change);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let change = *self.asked[sender].front().context("a reply without a request")?;
        let Some((length, next)) = self.answered(sender, change, received)? else { return Ok(None) };
        self.asked[sender].pop_front();
        self.waiting[sender].extend(next);
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::tests::{reply, scripts};
    use super::*;

    #[test]
    fn a_worker_goes_on_with_the_job_that_it_was_given() {
        for queue in [Queue::Index, scripts()] {
            let mut lives = Lives::new(&queue);
            let mut exchange = |answer: &str| {
                let mut request = Vec::new();
                lives.next_request(7, &mut request);
                assert_eq!(lives.check_reply(7, &answer.as_bytes()[..answer.len() - 1]).unwrap(), None);
                assert_eq!(lives.check_reply(7, answer.as_bytes()).unwrap(), Some(answer.len()));
                String::from_utf8(request).unwrap()
            };
            assert!(exchange(queue.created()).contains("job:000000000000"));
            exchange(&reply(&queue, 42, "w-07", "1"));
            for step in STEPS {
                let request = exchange(":0\r\n");
                assert!(request.contains("job:000000000042") && request.contains(&format!("$1\r\n{step}\r\n")));
            }
            assert!(exchange(":1\r\n").contains("job:000000000042"));
            assert!(exchange(queue.created()).contains("job:000000000001"));
            assert_eq!(lives.begun, 2);
            assert_eq!(lives.waiting[7], [Change::Claim]);
        }
    }

    #[test]
    fn a_job_that_is_claimed_twice_or_by_another_is_noticed() {
        let mut lives = Lives::new(&Queue::Index);
        lives.waiting[7].push_back(Change::Claim);
        lives.next_request(7, &mut Vec::new());
        for (worker, token) in [("w-07", "2"), ("w-08", "1")] {
            assert!(lives.check_reply(7, reply(&Queue::Index, 1, worker, token).as_bytes()).is_err());
        }
        assert!(lives.check_reply(7, b"*0\r\n").is_err());
    }

    #[test]
    fn a_life_is_six_changes() {
        let steps = [0, 1, 2].map(|step| Change::Step { job: 1, step });
        let all = [Change::Create, Change::Claim, steps[0], steps[1], steps[2], Change::Complete { job: 1 }];
        assert_eq!(all.map(Change::left), [6, 5, 4, 3, 2, 1]);
    }
}
