//! The lives of jobs beside beanstalkd: HSET, CLAIM and a removal by the worker that has the job, against put, reserve and delete.
//! Knows nothing of how either keeps its jobs.

use std::collections::VecDeque;

use anyhow::{Context, Result, bail, ensure};

use super::costs::PERSISTENCE;
use super::jobs::TENANT;
use crate::load::{CLIENTS, Connections, Template, Traffic, expect};
use crate::measure::{Metric, Sample, flush_disk};
use crate::servers::{Server, ServerSpec, data_root, simple, start_beanstalkd, write_request};
use crate::workloads::OwnFigures;
use crate::workloads::durability;
use crate::workloads::in_turns::InTurns;

/// Runs of both servers in turns, of so many jobs each.
pub(crate) fn beside_beanstalkd(subject: &ServerSpec, jobs: u64) -> Result<Vec<OwnFigures>> {
    let ours = Server::start(subject, PERSISTENCE)?;
    let mut control = ours.connect()?;
    for (index, prefix, groups) in
        [(DUE, GROUPED, &["GROUP", TENANT, "HELD", "state", "1", "running"][..]), (ALIKE, PLAIN, &[])]
    {
        #[rustfmt::skip]
        let create = ["IDX.CREATE", index, "PREFIX", "1", prefix, "FIELD", "run_at", "ONLY", "state", "2", "pending", "running"];
        let created = control.call(&[&create[..], groups].concat())?;
        ensure!(created == simple("OK"), "IDX.CREATE answered {created:?}");
    }
    let beanstalkd = start_beanstalkd()?;
    println!("\nbeanstalkd {}", beanstalkd.version);
    durability::settle();
    let mut lines = Vec::new();
    let lives =
        [("A job's life", Holdfast::new(DUE, GROUPED)), ("A job's life, no groups", Holdfast::new(ALIKE, PLAIN))];
    for ((name, dialect), pipeline) in lives.iter().flat_map(|life| [(life, 1), (life, 16)]) {
        let mut runs = [Vec::new(), Vec::new()];
        for turn in 0..TURNS {
            for at in [turn % 2, (turn + 1) % 2] {
                runs[at].push(match at {
                    0 => {
                        // Jobs that were on their way when the last run was over.
                        let flushed = control.call(&["FLUSHALL"])?;
                        ensure!(flushed == simple("OK"), "FLUSHALL answered {flushed:?}");
                        run(&ours, pipeline, jobs, dialect)?
                    }
                    _ => run(&beanstalkd, pipeline, jobs, &Beanstalkd)?,
                });
                flush_disk(&data_root())?;
            }
        }
        let turns = InTurns::of(runs);
        let sample = Sample::from([
            (Metric::ServerCpu, turns.one[&Metric::ServerCpu]),
            (Metric::Throughput, turns.one[&Metric::Throughput]),
            (Metric::BeanstalkdCpu, turns.other[&Metric::ServerCpu]),
            (Metric::BeanstalkdThroughput, turns.other[&Metric::Throughput]),
            (Metric::OfBeanstalkdCpu, turns.cpu_ratio),
            (Metric::OfBeanstalkd, turns.ratio),
        ]);
        lines.push(OwnFigures::new(name, Some(pipeline), sample));
    }
    Ok(lines)
}

/// Runs of each, of which the median counts.
const TURNS: usize = 11;

/// An index with groups, and one without, and what their jobs begin with.
const DUE: &str = "due";
const GROUPED: &str = "job:";
const ALIKE: &str = "alike";
const PLAIN: &str = "one:";
/// Whose jobs they are, in turn.
const TENANTS: u64 = 100;

/// What there is to do, as both keep it.
const BODY: &str = "send the mail `welcome` to user 012345678901234, params s3://gbe-params/email-send/job_0123456789.json, \
                    within 30 min, in German";

/// As many jobs at once on each connection as the pipeline is deep. What is counted are jobs.
fn run(server: &Server, pipeline: u32, jobs: u64, dialect: &impl Dialect) -> Result<Sample> {
    let mut lives = Lives::new(dialect);
    let mut sample = durability::journaled(server, jobs, || {
        let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
        connections.run(server, pipeline, jobs * STEPS, &mut lives)
    })?;
    // All but those that were still on their way.
    let least = jobs.saturating_sub(u64::from(CLIENTS * pipeline));
    ensure!(lives.removed >= least, "of {jobs} jobs, {} were done", lives.removed);
    sample.entry(Metric::Throughput).and_modify(|per_s| *per_s /= STEPS as f64);
    sample.entry(Metric::ServerCpu).and_modify(|us| *us *= STEPS as f64);
    Ok(sample)
}

/// Each a request: a job is added, taken and removed.
const STEPS: u64 = 3;

/// What a job goes through. It is taken by some worker, and removed by that.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Add,
    Take,
    Remove(u64),
}

/// How a server is asked.
trait Dialect {
    /// The request for a step; a new job has this number.
    fn write(&self, step: Step, number: u64, requests: &mut Vec<u8>);

    /// The length of the reply, and the job in the reply to `Take`; `None` while it is not all there.
    fn read(&self, step: Step, received: &[u8]) -> Result<Option<(usize, Option<u64>)>>;
}

/// Jobs on their way.
struct Lives<'d, D> {
    dialect: &'d D,
    added: u64,
    removed: u64,
    /// Of each sender, the steps that have been sent, and those that come next.
    asked: Vec<VecDeque<Step>>,
    waiting: Vec<VecDeque<Step>>,
}

impl<'d, D: Dialect> Lives<'d, D> {
    fn new(dialect: &'d D) -> Self {
        let nothing = || vec![VecDeque::new(); CLIENTS as usize];
        Lives { dialect, added: 0, removed: 0, asked: nothing(), waiting: nothing() }
    }
}

impl<D: Dialect> Traffic for Lives<'_, D> {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let step = self.waiting[sender].pop_front().unwrap_or(Step::Add);
        self.dialect.write(step, self.added, requests);
        self.added += u64::from(step == Step::Add);
        self.asked[sender].push_back(step);
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let step = *self.asked[sender].front().context("a reply without a request")?;
        let Some((length, taken)) = self.dialect.read(step, received)? else { return Ok(None) };
        self.asked[sender].pop_front();
        // A job is taken only after one was added, so there is always one.
        let next = match step {
            Step::Add => Some(Step::Take),
            Step::Take => Some(Step::Remove(taken.context("no job, though one was added")?)),
            Step::Remove(_) => None,
        };
        self.removed += u64::from(next.is_none());
        self.waiting[sender].extend(next);
        Ok(Some(length))
    }
}

/// A job is a hash in an index.
struct Holdfast {
    prefix: &'static str,
    add: Template,
    take: Vec<u8>,
    remove: Template,
}

impl Holdfast {
    fn new(index: &'static str, prefix: &'static str) -> Self {
        let (key, place) = (format!("{prefix}__rand_int__"), "__rand_int__");
        let mut take = Vec::new();
        #[rustfmt::skip]
        write_request(&mut take, &["CLAIM", "1", index, "MAX", "NOW", "SET", "2", "state", "running", "run_at", "NOW+60000",
            "COUNTER", "attempt", "FIELDS", "2", "attempt", "body"]);
        Holdfast {
            prefix,
            add: Template::new(&["HSET", &key, "state", "pending", "run_at", "1", TENANT, place, "body", BODY]),
            take,
            // Only by the worker that has it: a key that ends with no fields is removed.
            #[rustfmt::skip]
            remove: Template::new(&["HCAS", &key, "IF", "1", "attempt", "1",
                "DEL", "5", "state", "run_at", TENANT, "body", "attempt"]),
        }
    }
}

impl Dialect for Holdfast {
    fn write(&self, step: Step, number: u64, requests: &mut Vec<u8>) {
        match step {
            Step::Add => self.add.write(requests, [number, number % TENANTS].into_iter()),
            Step::Take => requests.extend_from_slice(&self.take),
            Step::Remove(job) => self.remove.write(requests, [job].into_iter()),
        }
    }

    fn read(&self, step: Step, received: &[u8]) -> Result<Option<(usize, Option<u64>)>> {
        match step {
            Step::Add => Ok(expect(received, b":4\r\n")?.then_some((4, None))),
            Step::Remove(_) => Ok(expect(received, b":1\r\n")?.then_some((4, None))),
            Step::Take => {
                let key_len = self.prefix.len() + DIGITS;
                let head = format!("*1\r\n*3\r\n${key_len}\r\n{}", self.prefix);
                // Every job is taken for the first time, and was due since 1.
                let rest = format!(
                    "\r\n$1\r\n1\r\n*4\r\n$7\r\nattempt\r\n$1\r\n1\r\n$4\r\nbody\r\n${}\r\n{BODY}\r\n",
                    BODY.len()
                );
                let (digits_at, rest_at) = (head.len(), head.len() + DIGITS);
                expect(&received[..received.len().min(digits_at)], head.as_bytes())?;
                let length = rest_at + rest.len();
                if received.len() < length {
                    return Ok(None);
                }
                expect(&received[rest_at..length], rest.as_bytes())?;
                let job = str::from_utf8(&received[digits_at..rest_at])?.parse()?;
                Ok(Some((length, Some(job))))
            }
        }
    }
}

/// Digits of a number in a key.
const DIGITS: usize = 12;

/// A job is in the tube that is there from the start.
struct Beanstalkd;

impl Dialect for Beanstalkd {
    fn write(&self, step: Step, _number: u64, requests: &mut Vec<u8>) {
        let request = match step {
            // Without priority and delay, with a minute to be done in.
            Step::Add => format!("put 0 0 60 {}\r\n{BODY}\r\n", BODY.len()),
            Step::Take => "reserve\r\n".to_owned(),
            Step::Remove(job) => format!("delete {job}\r\n"),
        };
        requests.extend_from_slice(request.as_bytes());
    }

    fn read(&self, step: Step, received: &[u8]) -> Result<Option<(usize, Option<u64>)>> {
        let Some(end) = received.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let (line, length) = (str::from_utf8(&received[..end])?, end + 2);
        let words: Vec<_> = line.split(' ').collect();
        match (step, &words[..]) {
            (Step::Add, ["INSERTED", _]) | (Step::Remove(_), ["DELETED"]) => Ok(Some((length, None))),
            (Step::Take, ["RESERVED", job, _]) => {
                let body = &received[length..];
                let rest = format!("{BODY}\r\n");
                let whole = expect(&body[..body.len().min(rest.len())], rest.as_bytes())?;
                let job = job.parse()?;
                Ok(whole.then_some((length + rest.len(), Some(job))))
            }
            _ => bail!("{step:?} was answered with {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(dialect: &impl Dialect, replies: [&str; 3], removal: &str) {
        let mut lives = Lives::new(dialect);
        let mut removed = String::new();
        for reply in replies {
            let mut request = Vec::new();
            lives.next_request(7, &mut request);
            removed = String::from_utf8(request).unwrap();
            assert_eq!(lives.check_reply(7, &reply.as_bytes()[..reply.len() - 1]).unwrap(), None);
            let more = reply.to_owned() + "next";
            assert_eq!(lives.check_reply(7, more.as_bytes()).unwrap(), Some(reply.len()));
        }
        assert!(removed.contains(removal), "{removed}");
        assert_eq!((lives.added, lives.removed), (1, 1));
        assert!(lives.waiting[7].is_empty());
    }

    #[test]
    fn a_worker_removes_the_job_that_it_was_given() {
        let body = format!("${}\r\n{BODY}\r\n", BODY.len());
        let key = "$16\r\njob:000000000042\r\n";
        let claimed = format!("*1\r\n*3\r\n{key}$1\r\n1\r\n*4\r\n$7\r\nattempt\r\n$1\r\n1\r\n$4\r\nbody\r\n{body}");
        life(&Holdfast::new(DUE, GROUPED), [":4\r\n", &claimed, ":1\r\n"], key);
        let reserved = format!("RESERVED 42 {}\r\n{BODY}\r\n", BODY.len());
        life(&Beanstalkd, ["INSERTED 7\r\n", &reserved, "DELETED\r\n"], "delete 42\r\n");
    }

    #[test]
    fn what_is_no_success_ends_the_run() {
        assert_eq!(BODY.len(), 128);
        for (step, reply) in
            [(Step::Add, "BURIED 7\r\n"), (Step::Take, "TIMED_OUT\r\n"), (Step::Remove(1), "NOT_FOUND\r\n")]
        {
            assert!(Beanstalkd.read(step, reply.as_bytes()).is_err(), "{reply}");
        }
        for (step, reply) in [(Step::Add, ":3\r\n"), (Step::Take, "*0\r\n"), (Step::Remove(1), ":0\r\n")] {
            assert!(Holdfast::new(DUE, GROUPED).read(step, reply.as_bytes()).is_err(), "{reply}");
        }
    }
}
