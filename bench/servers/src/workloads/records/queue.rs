//! A queue of jobs in the order in which they fall due: an index and CLAIM where the server has them, elsewhere a sorted
//! set that scripts and transactions keep. Knows nothing of what is measured.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::requests::{Requests, TIME, TIME_BASE_MS};
use crate::load::expect;
use crate::servers::{Reply, Server, simple, text};

/// How jobs get into the queue of a server and out of it.
pub(crate) enum Queue {
    /// The server keeps an index of the jobs that are due.
    Index,
    /// A sorted set, and the digests of the scripts that claim and complete.
    Scripts { claim: String, complete: String },
}

/// The name of the index, or of the sorted set.
pub(crate) const DUE: &str = "due";

pub(crate) const JOB: &str = "job:{job}";
const JOB_PREFIX: &str = "job:";
const JOB_DIGITS: usize = 12;

pub(crate) fn job_key(number: u64) -> String {
    format!("{JOB_PREFIX}{number:0JOB_DIGITS$}")
}

/// The fields of a job and what a new one has in them.
pub(crate) const NEW_JOB: [(&str, &str); FIELDS] = [
    ("state", "pending"),
    ("task_type", "email-send"),
    ("task_id", "job_{job}"),
    ("worker", ""),
    ("current_step", "0"),
    ("step_count", "3"),
    ("created_at", TIME),
    ("updated_at", TIME),
    ("run_at", TIME),
    ("attempt", "0"),
    ("params_ref", "s3://gbe-params/email-send/job_{job}.json"),
    ("result_ref", ""),
];
pub(crate) const FIELDS: usize = 12;

impl Queue {
    /// An empty queue in an empty server, or one that is there already.
    pub(crate) fn of(server: &Server) -> Result<Self> {
        let mut control = server.connect()?;
        if server.knows("CLAIM")? {
            let Reply::Array(indexes) = control.call(&["IDX.LIST"])? else { bail!("IDX.LIST answered no array") };
            if !indexes.iter().any(|index| text(index) == Some(DUE)) {
                #[rustfmt::skip]
                let created = control.call(&["IDX.CREATE", DUE, "PREFIX", "1", JOB_PREFIX, "FIELD", "run_at",
                    "ONLY", "state", "2", "pending", "running"])?;
                ensure!(created == simple("OK"), "IDX.CREATE answered {created:?}");
            }
            return Ok(Queue::Index);
        }
        let mut load = |script: &str| match control.call(&["SCRIPT", "LOAD", script])? {
            Reply::BulkString(sha) => Ok(String::from_utf8(sha)?),
            other => bail!("SCRIPT LOAD answered {other:?}"),
        };
        Ok(Queue::Scripts { claim: load(include_str!("claim.lua"))?, complete: load(include_str!("complete.lua"))? })
    }

    /// The creation of a job that is due now. Where the index is not the server's, a careful user makes record and entry
    /// in one transaction: a job without an entry would never be done.
    pub(crate) fn create(&self) -> Requests {
        let hset: Vec<_> =
            ["HSET", JOB].into_iter().chain(NEW_JOB.iter().flat_map(|(name, new)| [*name, new])).collect();
        match self {
            Queue::Index => Requests::new(&[&hset]),
            Queue::Scripts { .. } => Requests::new(&[&["MULTI"], &hset, &["ZADD", DUE, TIME, JOB], &["EXEC"]]),
        }
    }

    /// What a creation is answered with.
    pub(crate) fn created(&self) -> &'static str {
        match self {
            Queue::Index => ":12\r\n",
            Queue::Scripts { .. } => "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:12\r\n:1\r\n",
        }
    }

    pub(crate) fn claim(&self, worker: &str, lease_ms: u64) -> Claim {
        match self {
            Queue::Index => {
                let lease = format!("NOW+{lease_ms}");
                #[rustfmt::skip]
                let words = ["CLAIM", "1", DUE, "MAX", "NOW", "SET", "3", "state", "running", "worker", worker,
                    "run_at", &lease, "COUNTER", "attempt"];
                Claim { requests: Requests::new(&[&words]), lease_ms: None }
            }
            // The two times are written one after the other; the second goes where a job's number would.
            Queue::Scripts { claim, .. } => {
                let words = ["EVALSHA", claim, "1", DUE, TIME, "1{job}", worker];
                Claim { requests: Requests::new(&[&words]), lease_ms: Some(lease_ms) }
            }
        }
    }

    /// The completion of a job by the worker that has this token. It is answered with 1.
    pub(crate) fn complete(&self, token: &str) -> Requests {
        match self {
            #[rustfmt::skip]
            Queue::Index => Requests::new(&[&["HCAS", JOB, "IF", "1", "attempt", token,
                "SET", "3", "state", "completed", "result_ref", RESULT, "updated_at", TIME]]),
            Queue::Scripts { complete, .. } => {
                Requests::new(&[&["EVALSHA", complete, "2", JOB, DUE, token, RESULT, TIME]])
            }
        }
    }
}

const RESULT: &str = "s3://gbe-results/email-send/job_{job}.json";

/// A worker's request for the next due job.
pub(crate) struct Claim {
    requests: Requests,
    /// Where the client tells the server the time.
    lease_ms: Option<u64>,
}

impl Claim {
    pub(crate) fn write(&self, requests: &mut Vec<u8>) {
        match self.lease_ms {
            None => self.requests.write(0, 0, requests),
            Some(lease_ms) => {
                let now = now_digits();
                self.requests.write(now + lease_ms, now, requests);
            }
        }
    }
}

/// The time in milliseconds, without its first digit.
pub(crate) fn now_digits() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64);
    now.saturating_sub(TIME_BASE_MS)
}

/// A job as the reply to a claim has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Claimed<'a> {
    pub(crate) job: u64,
    /// The token.
    pub(crate) attempt: u64,
    pub(crate) state: &'a [u8],
    pub(crate) worker: &'a [u8],
    pub(crate) run_at: u64,
}

/// The job in a reply, and the reply's length; `None` while it is not all there.
pub(crate) fn claimed(received: &[u8]) -> Result<Option<(Claimed<'_>, usize)>> {
    let mut reading = Reading { bytes: received, at: 0 };
    match reading.claimed() {
        Ok(claimed) => Ok(Some((claimed, reading.at))),
        Err(Stop::Unfinished) => Ok(None),
        Err(Stop::Wrong(what)) => {
            let excerpt = String::from_utf8_lossy(&received[..received.len().min(EXCERPT_BYTES)]);
            bail!("a claim was answered with {what}: {excerpt:?}")
        }
    }
}

/// How much of a wrong reply is shown.
const EXCERPT_BYTES: usize = 256;

/// A reply in RESP2, read without copying it: the load generator shares the machine with the server.
struct Reading<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why a reply cannot be read to its end.
enum Stop {
    Unfinished,
    Wrong(&'static str),
}

impl<'a> Reading<'a> {
    /// `[[key, score, fields]]` of CLAIM, or `[key, fields]` of the script.
    fn claimed(&mut self) -> Result<Claimed<'a>, Stop> {
        let key = match self.line(b'*')? {
            1 => {
                if self.line(b'*')? != 3 {
                    return Err(Stop::Wrong("a row that has not three parts"));
                }
                let key = self.bulk()?;
                self.bulk()?;
                key
            }
            2 => self.bulk()?,
            0 => return Err(Stop::Wrong("no job, though one was due")),
            _ => return Err(Stop::Wrong("something else than one job")),
        };
        let job = key.strip_prefix(JOB_PREFIX.as_bytes()).filter(|digits| digits.len() == JOB_DIGITS);
        let job = number(job.ok_or(Stop::Wrong("a key that is no job's"))?)?;
        if self.line(b'*')? != 2 * FIELDS as u64 {
            return Err(Stop::Wrong("a record that has not all fields"));
        }
        let mut claimed = Claimed { job, attempt: 0, state: b"", worker: b"", run_at: 0 };
        for _ in 0..FIELDS {
            let (name, value) = (self.bulk()?, self.bulk()?);
            match name {
                b"state" => claimed.state = value,
                b"worker" => claimed.worker = value,
                b"attempt" => claimed.attempt = number(value)?,
                b"run_at" => claimed.run_at = number(value)?,
                _ => {}
            }
        }
        Ok(claimed)
    }

    fn bulk(&mut self) -> Result<&'a [u8], Stop> {
        let length = self.line(b'$')? as usize;
        let rest = &self.bytes[self.at..];
        if rest.len() < length + 2 {
            return Err(Stop::Unfinished);
        }
        self.at += length + 2;
        Ok(&rest[..length])
    }

    /// A line of this kind, which is a number.
    fn line(&mut self, kind: u8) -> Result<u64, Stop> {
        let rest = &self.bytes[self.at..];
        if rest.first().is_some_and(|first| *first != kind) {
            return Err(Stop::Wrong(if rest[0] == b'-' { "an error" } else { "a reply of another form" }));
        }
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(Stop::Unfinished)?;
        let digits = rest[1..end].strip_suffix(b"\r").ok_or(Stop::Wrong("a line without its end"))?;
        self.at += end + 1;
        number(digits)
    }
}

fn number(digits: &[u8]) -> Result<u64, Stop> {
    let text = str::from_utf8(digits).ok();
    text.and_then(|text| text.parse().ok()).ok_or(Stop::Wrong("something else than a number"))
}

/// The reply to a request that is answered with a fixed text, whose length is returned.
pub(crate) fn fixed(received: &[u8], answer: &str) -> Result<Option<usize>> {
    Ok(expect(received, answer.as_bytes())?.then_some(answer.len()))
}

/// Reads these fields of the jobs 0 to `jobs`, and calls `check` with each one's texts.
pub(crate) fn each_job<const N: usize>(
    server: &Server,
    jobs: u64,
    fields: [&str; N],
    mut check: impl FnMut(u64, [&str; N]) -> Result<()>,
) -> Result<()> {
    let mut control = server.connect()?;
    for first in (0..jobs).step_by(BATCH) {
        let batch = first..jobs.min(first + BATCH as u64);
        for number in batch.clone() {
            let key = job_key(number);
            let words: Vec<_> = ["HMGET", &key].into_iter().chain(fields).collect();
            control.push(&words);
        }
        control.flush()?;
        for number in batch {
            let reply = control.read_reply()?;
            let Reply::Array(values) = &reply else { bail!("HMGET of job {number} answered {reply:?}") };
            let texts: Option<Vec<_>> = values.iter().map(text).collect();
            let texts = texts.and_then(|texts| <[&str; N]>::try_from(texts).ok());
            check(number, texts.with_context(|| format!("job {number} lacks a field: {reply:?}"))?)?;
        }
    }
    Ok(())
}

/// Few enough that their replies fit a socket's buffer before they are read.
const BATCH: usize = 500;

/// How many jobs are in the queue.
pub(crate) fn ensure_queued(server: &Server, jobs: u64) -> Result<()> {
    let size = server.connect()?.call(&["ZCARD", DUE])?;
    ensure!(size == Reply::Integer(jobs as i64), "the queue has {size:?} jobs and not {jobs}");
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::servers::write_request;

    pub(crate) fn scripts() -> Queue {
        Queue::Scripts { claim: "claim-sha".into(), complete: "complete-sha".into() }
    }

    /// The reply to a claim, of a server with CLAIM or of the script.
    pub(crate) fn reply(queue: &Queue, job: u64, worker: &str, attempt: &str) -> String {
        let mut fields = Vec::new();
        let values = NEW_JOB.map(|(name, new)| match name {
            "state" => (name, "running"),
            "worker" => (name, worker),
            "run_at" => (name, "1800000000000"),
            "attempt" => (name, attempt),
            _ => (name, new),
        });
        let values: Vec<_> = values.into_iter().flat_map(|(name, value)| [name, value]).collect();
        // A request and a reply of strings have the same form.
        write_request(&mut fields, &values);
        let key = job_key(job);
        let fields = String::from_utf8(fields).unwrap();
        match queue {
            Queue::Index => format!("*1\r\n*3\r\n$16\r\n{key}\r\n$13\r\n1600000000000\r\n{fields}"),
            Queue::Scripts { .. } => format!("*2\r\n$16\r\n{key}\r\n{fields}"),
        }
    }

    fn sent(write: impl FnOnce(&mut Vec<u8>)) -> Vec<String> {
        let mut bytes = Vec::new();
        write(&mut bytes);
        let text = String::from_utf8(bytes).unwrap();
        text.lines().filter(|line| !line.starts_with(['*', '$'])).map(String::from).collect()
    }

    #[test]
    fn claims_are_one_request_with_the_worker_and_the_lease() {
        let claim = Queue::Index.claim("w-07", 50);
        assert_eq!(
            sent(|requests| claim.write(requests)).join(" "),
            "CLAIM 1 due MAX NOW SET 3 state running worker w-07 run_at NOW+50 COUNTER attempt"
        );
        let words = sent(|requests| scripts().claim("w-07", 50).write(requests));
        let [command, sha, count, queue, now, until, worker] = words.try_into().unwrap();
        assert_eq!([command, sha, count, queue, worker], ["EVALSHA", "claim-sha", "1", "due", "w-07"]);
        let [now, until] = [now, until].map(|time| time.parse::<u64>().unwrap());
        assert_eq!(until - now, 50);
        assert!(now > 1_700_000_000_000);
    }

    #[test]
    fn a_job_is_created_with_twelve_fields_and_where_need_be_an_entry() {
        let words = sent(|requests| Queue::Index.create().write(7, 5, requests));
        assert_eq!(words.len(), 2 + 2 * FIELDS);
        assert_eq!(words[1], "job:000000000007");
        let words = sent(|requests| scripts().create().write(7, 5, requests));
        assert_eq!(words[words.len() - 5..], ["ZADD", "due", "1000000000005", "job:000000000007", "EXEC"]);
        assert_eq!(words[0], "MULTI");
    }

    #[test]
    fn a_claimed_job_is_read_from_either_reply() {
        for queue in [Queue::Index, scripts()] {
            let reply = reply(&queue, 42, "w-07", "3");
            for end in 0..reply.len() {
                assert_eq!(claimed(&reply.as_bytes()[..end]).unwrap(), None, "{end}");
            }
            let more = reply.clone() + "*1";
            let (job, length) = claimed(more.as_bytes()).unwrap().unwrap();
            assert_eq!(length, reply.len());
            let run_at = 1_800_000_000_000;
            assert_eq!(job, Claimed { job: 42, attempt: 3, state: b"running", worker: b"w-07", run_at });
        }
    }

    #[test]
    fn what_is_no_claimed_job_is_refused() {
        let refused = |reply: &str| claimed(reply.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused("*0\r\n"), r#"a claim was answered with no job, though one was due: "*0\r\n""#);
        assert!(refused("-ERR no\r\n").starts_with("a claim was answered with an error: "));
        assert!(refused(":1\r\n").contains("another form"));
        assert!(refused("*2\r\n$1\r\nx\r\n").contains("a key that is no job's"));
        let whole = reply(&Queue::Index, 1, "w", "1");
        assert!(refused(&whole.replace("*24", "*22")).contains("not all fields"));
        assert!(refused(&whole.replace("$1\r\n1\r\n", "$1\r\nx\r\n")).contains("else than a number"));
    }
}
