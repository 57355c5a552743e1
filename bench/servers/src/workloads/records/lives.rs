//! The lives of jobs from their creation to their end, each change of which also moves the job in an index by time. Knows
//! nothing of how an index is kept: where the server does not keep one, the clients do, as its users must.

use std::collections::VecDeque;

use anyhow::{Context, Result, ensure};

use super::requests::{Requests, TIME};
use crate::load::{CLIENTS, Connections, Traffic, expect};
use crate::measure::{Metric, Sample};
use crate::servers::{Connection, Reply, Server, simple};
use crate::workloads::coordination;

/// Creation, claim, three steps, completion: a round trip each, of as many jobs at once as the pipeline is deep. What is
/// counted are jobs; the latencies are those of one change.
pub(crate) fn lives(server: &Server, pipeline: u32, operations: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let flushed = control.call(&["FLUSHALL"])?;
    ensure!(flushed == simple("OK"), "FLUSHALL answered {flushed:?}");
    let mut lives = Lives::new(match server.knows("HCAS")? && server.knows("IDX.RANGE")? {
        true => Story::indexed_by_server(),
        false => Story::indexed_by_hand(&coordination::load_compare_and_swap(server)?),
    });
    let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
    let mut sample = connections.run(server, pipeline, operations, &mut lives)?;
    lives.finish(&mut control)?;
    lives.check(&mut control)?;
    let changes = lives.story.changes.len() as f64;
    sample.entry(Metric::Throughput).and_modify(|per_s| *per_s /= changes);
    sample.entry(Metric::ServerCpu).and_modify(|us| *us *= changes);
    Ok(sample)
}

/// What is sent in the life of every job.
struct Story {
    changes: Vec<Change>,
    /// Where jobs are found by time, and whether those that are done stay in it.
    index: &'static str,
    keeps_done: bool,
}

/// One or several requests, sent at once.
struct Change {
    requests: Requests,
    answers: Vec<i64>,
    answered: Vec<u8>,
}

const JOB: &str = "gbe:state:lives:email-send:job_{job}";
const RESULT: &str = "s3://gbe-results/email-send/job_{job}.json";

impl Story {
    fn indexed_by_server() -> Self {
        let claim: &[&str] = &[
            "HCAS",
            JOB,
            "IF",
            "1",
            "state",
            "pending",
            "SET",
            "3",
            "state",
            "claimed",
            "worker",
            "worker-007",
            "updated_at",
            TIME,
        ];
        let complete: &[&str] = &[
            "HCAS",
            JOB,
            "IF",
            "1",
            "state",
            "claimed",
            "SET",
            "3",
            "state",
            "completed",
            "result_ref",
            RESULT,
            "updated_at",
            TIME,
        ];
        let mut changes = vec![Change::new(&[(&CREATE, 9)]), Change::new(&[(claim, 1)])];
        changes.extend(STEPS.map(|step| Change::new(&[(&["HSET", JOB, "current_step", step, "updated_at", TIME], 0)])));
        changes.push(Change::new(&[(complete, 1)]));
        Story { changes, index: "idx:updated_at", keeps_done: true }
    }

    fn indexed_by_hand(compare_and_swap: &str) -> Self {
        let swap = |from, to| ["EVALSHA", compare_and_swap, "1", JOB, "state", from, to];
        let index: &[&str] = &["ZADD", BY_HAND, TIME, JOB];
        let mut changes = vec![
            Change::new(&[(&CREATE, 9), (index, 1)]),
            Change::new(&[
                (&swap("pending", "claimed"), 1),
                (&["HSET", JOB, "worker", "worker-007", "updated_at", TIME], 0),
                (index, 0),
            ]),
        ];
        changes.extend(
            STEPS.map(|step| Change::new(&[(&["HSET", JOB, "current_step", step, "updated_at", TIME], 0), (index, 0)])),
        );
        changes.push(Change::new(&[
            (&swap("claimed", "completed"), 1),
            (&["HSET", JOB, "result_ref", RESULT, "updated_at", TIME], 0),
            (&["ZREM", BY_HAND, JOB], 1),
        ]));
        Story { changes, index: BY_HAND, keeps_done: false }
    }
}

const BY_HAND: &str = "gbe:state:by_updated_at";
const STEPS: [&str; 3] = ["1", "2", "3"];

const CREATE: [&str; 20] = [
    "HSET",
    JOB,
    "state",
    "pending",
    "task_type",
    "email-send",
    "task_id",
    "job_{job}",
    "worker",
    "",
    "current_step",
    "0",
    "step_count",
    "3",
    "created_at",
    TIME,
    "updated_at",
    TIME,
    "result_ref",
    "",
];

impl Change {
    /// Requests, and what each is answered with.
    fn new(requests: &[(&[&str], i64)]) -> Self {
        let words: Vec<_> = requests.iter().map(|(words, _)| *words).collect();
        let answers: Vec<_> = requests.iter().map(|(_, answer)| *answer).collect();
        let answered = answers.iter().flat_map(|answer| format!(":{answer}\r\n").into_bytes()).collect();
        Change { requests: Requests::new(&words), answers, answered }
    }
}

/// Jobs on their way, each in the hands of one sender.
struct Lives {
    story: Story,
    /// Jobs begun so far, numbered from zero.
    begun: u64,
    /// The time, which passes with every change.
    now_ms: u64,
    /// Of each sender, the jobs whose next change has been sent, and those that wait for theirs.
    asked: Vec<VecDeque<Job>>,
    waiting: Vec<VecDeque<Job>>,
}

#[derive(Clone, Copy)]
struct Job {
    number: u64,
    /// The position of its next change.
    next: usize,
}

/// The last twelve digits of 1 January 2026.
const START_MS: u64 = 767_225_600_000;

impl Lives {
    fn new(story: Story) -> Self {
        let nothing = || vec![VecDeque::new(); CLIENTS as usize];
        Lives { story, begun: 0, now_ms: START_MS, asked: nothing(), waiting: nothing() }
    }

    fn write(&mut self, job: Job, requests: &mut Vec<u8>) {
        self.now_ms += 1;
        self.story.changes[job.next].requests.write(job.number, self.now_ms, requests);
    }

    /// Leads the jobs to their end that were on their way when the measured run was over.
    fn finish(&mut self, control: &mut Connection) -> Result<()> {
        for sender in 0..self.waiting.len() {
            while let Some(job) = self.waiting[sender].pop_front() {
                let mut requests = Vec::new();
                self.write(job, &mut requests);
                control.push_written(&requests);
                control.flush()?;
                for answer in &self.story.changes[job.next].answers {
                    let reply = control.read_reply()?;
                    ensure!(reply == Reply::Integer(*answer), "expected {answer}, the server answered {reply:?}");
                }
                self.go_on(sender, job);
            }
        }
        Ok(())
    }

    fn go_on(&mut self, sender: usize, job: Job) {
        let next = job.next + 1;
        if next < self.story.changes.len() {
            self.waiting[sender].push_back(Job { next, ..job });
        }
    }

    /// Every job that was begun is done, and the index has those that it must have.
    fn check(&self, control: &mut Connection) -> Result<()> {
        for first in (0..self.begun).step_by(BATCH) {
            let batch = first..self.begun.min(first + BATCH as u64);
            let key = |number: u64| JOB.replace("{job}", &format!("{number:012}"));
            batch.clone().for_each(|number| control.push(&["HMGET", &key(number), "state", "current_step"]));
            control.flush()?;
            let done = Reply::Array(["completed", "3"].map(|text| Reply::BulkString(text.into())).into());
            for number in batch {
                let reply = control.read_reply()?;
                ensure!(reply == done, "job {number} is not done: {reply:?}");
            }
        }
        let indexed = Reply::Integer(if self.story.keeps_done { self.begun as i64 } else { 0 });
        let size = control.call(&["ZCARD", self.story.index])?;
        ensure!(size == indexed, "of {} jobs, the index has {size:?} and not {indexed:?}", self.begun);
        Ok(())
    }
}

/// Few enough that their replies fit a socket's buffer before they are read.
const BATCH: usize = 500;

impl Traffic for Lives {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let job = self.waiting[sender].pop_front().unwrap_or_else(|| {
            let number = self.begun;
            self.begun += 1;
            Job { number, next: 0 }
        });
        self.write(job, requests);
        self.asked[sender].push_back(job);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let job = *self.asked[sender].front().context("a reply without a request")?;
        let answered = &self.story.changes[job.next].answered;
        if !expect(received, answered)? {
            return Ok(None);
        }
        let length = answered.len();
        self.asked[sender].pop_front();
        self.go_on(sender, job);
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_six_changes_in_their_order() {
        for story in [Story::indexed_by_server(), Story::indexed_by_hand("sha")] {
            let mut lives = Lives::new(story);
            for change in 0..6 {
                let mut requests = Vec::new();
                for _ in 0..2 {
                    lives.next_request(7, &mut requests);
                }
                let requests = String::from_utf8(requests).unwrap();
                let jobs = ["job_000000000000\r\n", "job_000000000001\r\n"];
                assert!(jobs.iter().all(|job| requests.contains(job)), "{requests}");
                assert_eq!(lives.begun, 2);
                for _ in 0..2 {
                    let answered = lives.story.changes[change].answered.clone();
                    assert_eq!(lives.check_reply(7, &answered[..answered.len() - 1]).unwrap(), None);
                    assert_eq!(lives.check_reply(7, &answered).unwrap(), Some(answered.len()));
                }
            }
            assert!(lives.waiting[7].is_empty());
            lives.next_request(7, &mut Vec::new());
            assert_eq!(lives.begun, 3);
        }
    }

    #[test]
    fn a_claim_that_is_lost_is_noticed() {
        let mut lives = Lives::new(Story::indexed_by_server());
        lives.next_request(0, &mut Vec::new());
        lives.check_reply(0, b":9\r\n").unwrap();
        lives.next_request(0, &mut Vec::new());
        assert!(lives.check_reply(0, b":0\r\n").is_err());
    }

    #[test]
    fn a_change_of_two_requests_has_two_answers() {
        let change = Change::new(&[(&["HSET", JOB, "t", TIME], 0), (&["ZADD", BY_HAND, TIME, JOB], 1)]);
        assert_eq!(change.answered, b":0\r\n:1\r\n");
        assert_eq!(change.answers, [0, 1]);
    }
}
