//! How long the jobs of a small tenant wait beside the many due jobs of a large one: in turns with it (ORDER fair), and in the
//! order of their times (ORDER score). Knows nothing of how a server keeps groups apart.

use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::jobs::{ANOTHER, Kind, PLACE, TENANT};
use crate::load::{CLIENTS, Connections, Template, Traffic, expect, numbered};
use crate::measure::{Latencies, Metric, Sample};
use crate::servers::{Persistence, Server, ServerSpec, write_request};
use crate::workloads::OwnFigures;

/// The small tenant's waits while workers take all that the large one has.
pub(crate) fn neighbour(subject: &ServerSpec, jobs: u64) -> Result<Vec<OwnFigures>> {
    [("ORDER fair", "fair"), ("ORDER score", "score")]
        .into_iter()
        .map(|(about, order)| {
            let waits = waits(subject, jobs, order)?;
            let sample = Sample::from([
                (Metric::LatencyP50, waits.quantile_us(0.5) / 1e3),
                (Metric::LatencyP99, waits.quantile_us(0.99) / 1e3),
                (Metric::LatencyMax, waits.quantile_us(1.0) / 1e3),
            ]);
            let waits_ms = (0..=100).map(|percent| waits.quantile_us(f64::from(percent) / 100.0) / 1e3).collect();
            Ok(OwnFigures { waits_ms, ..OwnFigures::new(about, None, sample) })
        })
        .collect()
}

/// Fifty workers take one job after the other. After every `CLAIMS_EACH` claims the small tenant adds a job, which is due at
/// once, until a tenth of the large one's jobs is left.
fn waits(subject: &ServerSpec, jobs: u64, order: &str) -> Result<Latencies> {
    let server = Server::start(subject, Persistence::EverySecond)?;
    let mut control = server.connect()?;
    ANOTHER.create(&mut control)?;
    ANOTHER.load(&server, Kind::Open, jobs, 1)?;
    let small = jobs / 10 * 9 / CLAIMS_EACH;
    let mut work = Work::new(order, small);
    let operations = jobs + 2 * small;
    Connections::new(&server)?.senders(CLIENTS as usize)?.run(&server, 1, operations, &mut work)?;
    ensure!(work.waits_us.len() as u64 == small, "of {small} jobs, {} were claimed", work.waits_us.len());
    Ok(Latencies::from_us(work.waits_us))
}

const CLAIMS_EACH: u64 = 200;

/// The claims of the workers, each of which completes the job before, and the small tenant's new jobs.
struct Work {
    claim: Vec<u8>,
    /// What stands before the number in the key of a job of the large tenant, and of the small one.
    large: String,
    small: String,
    complete: Template,
    complete_small: Template,
    create: Template,
    /// Jobs that the small tenant will have added.
    jobs: u64,
    created: u64,
    claims: u64,
    /// Of the small tenant's jobs that no worker has yet, when they were sent.
    sent: HashMap<u64, Instant>,
    waits_us: Vec<u32>,
    /// What each sender waits for, and the job that it has.
    senders: Vec<(Option<Asked>, Option<Job>)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Asked {
    Creation,
    Claim { completes: bool },
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Job {
    Large(u64),
    Small(u64),
}

/// Digits of a number.
const DIGITS: usize = 12;

impl Work {
    fn new(order: &str, jobs: u64) -> Self {
        let [large, small] = [Kind::Open, Kind::Blocked].map(|kind| ANOTHER.key(kind));
        let mut claim = Vec::new();
        #[rustfmt::skip]
        write_request(&mut claim, &["CLAIM", "1", ANOTHER.name, "MAX", "NOW", "ORDER", order, "SET", "2", "state", "running",
            "run_at", "NOW+600000", "KEYS"]);
        let complete = |key: &str| Template::new(&["HSET", key, "state", "completed"]);
        let tenant = numbered(&Kind::Blocked.tenant(), 0);
        Work {
            claim,
            complete: complete(&large),
            complete_small: complete(&small),
            create: Template::new(&[
                "HSET",
                &small,
                "state",
                "pending",
                TENANT,
                &tenant,
                "run_at",
                &format!("1{PLACE}"),
            ]),
            large: large.replace(PLACE, ""),
            small: small.replace(PLACE, ""),
            jobs,
            created: 0,
            claims: 0,
            sent: HashMap::new(),
            waits_us: Vec::new(),
            senders: vec![(None, None); CLIENTS as usize],
        }
    }
}

impl Traffic for Work {
    fn next_request(&mut self, sender: usize, requests: &mut Vec<u8>) {
        let (asked, job) = &mut self.senders[sender];
        if self.created < self.jobs.min(self.claims / CLAIMS_EACH) {
            self.create.write(requests, [self.created, now_digits()].into_iter());
            self.sent.insert(self.created, Instant::now());
            self.created += 1;
            *asked = Some(Asked::Creation);
            return;
        }
        let done = job.take();
        match done {
            Some(Job::Large(number)) => self.complete.write(requests, [number].into_iter()),
            Some(Job::Small(number)) => self.complete_small.write(requests, [number].into_iter()),
            None => {}
        }
        requests.extend_from_slice(&self.claim);
        self.claims += 1;
        *asked = Some(Asked::Claim { completes: done.is_some() });
    }

    fn check_reply(&mut self, sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let completed = b":0\r\n";
        let start = match self.senders[sender].0.context("a reply without a request")? {
            Asked::Creation => return Ok(expect(received, CREATED)?.then_some(CREATED.len())),
            Asked::Claim { completes: false } => 0,
            Asked::Claim { completes: true } if !expect(received, completed)? => return Ok(None),
            Asked::Claim { completes: true } => completed.len(),
        };
        let Some((job, length)) = self.claimed(&received[start..])? else { return Ok(None) };
        if let Job::Small(number) = job {
            let sent = self.sent.remove(&number).with_context(|| format!("job {number} was claimed twice"))?;
            self.waits_us.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        }
        self.senders[sender].1 = Some(job);
        Ok(Some(start + length))
    }
}

/// The reply to a creation, of three fields.
const CREATED: &[u8] = b":3\r\n";

impl Work {
    /// The job in the reply to a claim, and the reply's length; `None` while it is not all there.
    fn claimed(&self, received: &[u8]) -> Result<Option<(Job, usize)>> {
        let head = format!("*1\r\n${}\r\n", self.large.len() + DIGITS);
        let length = head.len() + self.large.len() + DIGITS + 2;
        if !expect(&received[..received.len().min(head.len())], head.as_bytes())? || received.len() < length {
            return Ok(None);
        }
        let key = str::from_utf8(&received[head.len()..length - 2])?;
        let (prefix, number) = key.split_at(self.large.len());
        let number = number.parse()?;
        match prefix {
            prefix if prefix == self.large => Ok(Some((Job::Large(number), length))),
            prefix if prefix == self.small => Ok(Some((Job::Small(number), length))),
            _ => bail!("a claim was answered with {key}"),
        }
    }
}

/// The time in milliseconds, without its first digit.
fn now_digits() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    now.saturating_sub(1_000_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(work: &mut Work) -> String {
        let mut requests = Vec::new();
        work.next_request(7, &mut requests);
        String::from_utf8(requests).unwrap()
    }

    #[test]
    fn the_small_tenant_adds_a_job_after_so_many_claims_and_its_wait_ends_with_its_claim() {
        let mut work = Work::new("fair", 1);
        let large = "*1\r\n$19\r\njob:n:o000000000042\r\n";
        assert!(!sent(&mut work).contains("HSET"));
        assert_eq!(work.check_reply(7, &large.as_bytes()[..large.len() - 1]).unwrap(), None);
        assert_eq!(work.check_reply(7, large.as_bytes()).unwrap(), Some(large.len()));
        let later = format!(":0\r\n{large}");
        for _ in 1..CLAIMS_EACH {
            assert!(sent(&mut work).contains("job:n:o000000000042\r\n$5\r\nstate\r\n$9\r\ncompleted"));
            assert_eq!(work.check_reply(7, later.as_bytes()).unwrap(), Some(later.len()));
        }
        assert!(sent(&mut work).contains("job:n:b000000000000\r\n$5\r\nstate\r\n$7\r\npending\r\n$6\r\ntenant"));
        assert_eq!(work.check_reply(7, CREATED).unwrap(), Some(CREATED.len()));
        sent(&mut work);
        let small = later.replace("o000000000042", "b000000000000");
        assert_eq!(work.check_reply(7, small.as_bytes()).unwrap(), Some(small.len()));
        assert_eq!(work.waits_us.len(), 1);
        assert!(sent(&mut work).contains("job:n:b000000000000\r\n$5\r\nstate\r\n$9\r\ncompleted"));
        assert!(work.check_reply(7, small.as_bytes()).is_err());
    }

    #[test]
    fn what_is_no_job_ends_the_run() {
        let mut work = Work::new("score", 1);
        sent(&mut work);
        for reply in ["*0\r\n", "-ERR no\r\n", "*1\r\n$19\r\njob:w:o000000000042\r\n"] {
            assert!(work.check_reply(7, reply.as_bytes()).is_err(), "{reply}");
        }
    }
}
