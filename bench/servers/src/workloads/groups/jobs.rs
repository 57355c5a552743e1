//! Jobs of many tenants, the indexes that keep them, with groups and without, and claims from these. Knows nothing of what is
//! measured.

use anyhow::{Context, Result, bail, ensure};

use crate::load::{Loader, Template, Traffic, numbered, reply_len};
use crate::servers::{Connection, Reply, Server, simple, write_request};

/// An index, and the jobs that are in it: those whose keys begin with its prefix.
#[derive(Clone, Copy)]
pub(super) struct JobIndex {
    pub(super) name: &'static str,
    prefix: &'static str,
    groups: bool,
}

/// They differ in nothing but the groups; their names and prefixes are of the same length.
pub(super) const GROUPED: JobIndex = JobIndex { name: "due:grouped", prefix: "job:g:", groups: true };
pub(super) const PLAIN: JobIndex = JobIndex { name: "due:without", prefix: "job:w:", groups: false };
/// One more with groups, to be compared with `GROUPED`.
pub(super) const ANOTHER: JobIndex = JobIndex { name: "due:another", prefix: "job:n:", groups: true };

/// Tenants among whom the jobs are spread, unless a workload says otherwise.
pub(super) const TENANTS: u64 = 1_000;

/// Jobs that are told apart by the beginnings of their keys' last parts and of their tenants' names.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Jobs that may be taken.
    Open,
    /// Jobs of tenants that may not give.
    Blocked,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::Open => 'o',
            Kind::Blocked => 'b',
        }
    }

    /// The name of a tenant, with a place for its number.
    pub(super) fn tenant(self) -> String {
        format!("{}-{PLACE}", self.letter())
    }
}

/// Where a number goes.
pub(super) const PLACE: &str = "__rand_int__";

/// 1 January 2026: all jobs have been due since then, each since a time of its own.
const FIRST_DUE_MS: u64 = 1_767_225_600_000;
/// A prime that divides no number of jobs.
const STRIDE: u64 = 7_919;

/// The field of a job that says whose it is, and so its group.
pub(super) const TENANT: &str = "tenant";

/// What a new job has besides its tenant and its time.
const NEW_JOB: [(&str, &str); 6] = [
    ("state", "pending"),
    ("task_type", "email-send"),
    ("worker", ""),
    ("current_step", "0"),
    ("attempt", "0"),
    ("params_ref", "s3://gbe-params/email-send/job___rand_int__.json"),
];

impl JobIndex {
    pub(super) fn create(self, control: &mut Connection) -> Result<()> {
        let mut request = vec!["IDX.CREATE", self.name, "PREFIX", "1", self.prefix, "FIELD", "run_at"];
        request.extend(["ONLY", "state", "2", "pending", "running"]);
        if self.groups {
            request.extend(["GROUP", TENANT, "HELD", "state", "1", "running"]);
        }
        answered_ok(control, &request)
    }

    /// The key of a job, with a place for its number.
    pub(super) fn key(self, kind: Kind) -> String {
        format!("{}{}{PLACE}", self.prefix, kind.letter())
    }

    /// New jobs, all of them due, of tenants in turn.
    pub(super) fn load(self, server: &Server, kind: Kind, jobs: u64, tenants: u64) -> Result<()> {
        let (key, tenant) = (self.key(kind), kind.tenant());
        let mut loader = Loader::new(server)?;
        for job in 0..jobs {
            let key = numbered(&key, job);
            let (time, tenant) = ((FIRST_DUE_MS + job * STRIDE % jobs).to_string(), numbered(&tenant, job % tenants));
            let values = NEW_JOB.map(|(_, value)| numbered(value, job));
            let mut request = vec!["HSET", &key, "run_at", &time, TENANT, &tenant];
            request.extend(NEW_JOB.iter().zip(&values).flat_map(|((name, _), value)| [*name, value.as_str()]));
            loader.send(&request, Reply::Integer(NEW_JOB.len() as i64 + 2))?;
        }
        loader.finish()
    }

    /// Removes jobs that were loaded.
    pub(super) fn remove(self, server: &Server, kind: Kind, jobs: u64) -> Result<()> {
        let key = self.key(kind);
        let mut loader = Loader::new(server)?;
        for job in 0..jobs {
            loader.send(&["DEL", &numbered(&key, job)], Reply::Integer(1))?;
        }
        loader.finish()
    }

    /// What a write of one field of a random job sends; the value may have a place for a number.
    pub(super) fn write_of(self, field: &str, value: &str) -> Template {
        Template::new(&["HSET", &self.key(Kind::Open), field, value])
    }

    pub(super) fn limit(self, control: &mut Connection, limit: &[&str]) -> Result<()> {
        answered_ok(control, &[&["IDX.LIMIT", self.name], limit].concat())
    }

    /// How many records the index has.
    pub(super) fn ensure_records(self, control: &mut Connection, records: u64) -> Result<()> {
        let size = control.call(&["ZCARD", self.name])?;
        ensure!(size == Reply::Integer(records as i64), "{} has {size:?} records and not {records}", self.name);
        Ok(())
    }

    /// Takes jobs until there is none that may be taken, and returns how many there were.
    pub(super) fn take_all(self, control: &mut Connection) -> Result<u64> {
        let mut taken = 0;
        loop {
            #[rustfmt::skip]
            let reply = control.call(&["CLAIM", "1", self.name, "MAX", "NOW", "SET", "2", "state", "running", "run_at", "NOW+3600000",
                "COUNT", "1000", "KEYS"])?;
            match reply {
                Reply::Array(keys) if keys.is_empty() => return Ok(taken),
                Reply::Array(keys) => taken += keys.len() as u64,
                other => bail!("CLAIM answered {other:?}"),
            }
        }
    }
}

fn answered_ok(control: &mut Connection, request: &[&str]) -> Result<()> {
    let reply = control.call(request)?;
    ensure!(reply == simple("OK"), "{request:?} was answered with {reply:?}");
    Ok(())
}

/// Claims of one job at a time, each of which must get an open one. Their leases are short, so that the jobs come round again
/// before they run out.
pub(super) struct Claims {
    request: Vec<u8>,
    /// What stands in a reply before the number of the job.
    beginning: Vec<u8>,
}

impl Claims {
    pub(super) fn new(index: JobIndex) -> Self {
        let mut request = Vec::new();
        #[rustfmt::skip]
        write_request(&mut request, &["CLAIM", "1", index.name, "MAX", "NOW", "SET", "3", "state", "running", "worker", "w-07",
            "run_at", "NOW+50", "COUNTER", "attempt"]);
        let key = index.key(Kind::Open);
        let beginning = format!("*1\r\n*3\r\n${}\r\n{}", key.len(), key.replace(PLACE, ""));
        Claims { request, beginning: beginning.into_bytes() }
    }
}

impl Traffic for Claims {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        requests.extend_from_slice(&self.request);
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        let Some(length) = reply_len(received)? else { return Ok(None) };
        let reply = received.get(..length).context("a reply longer than what was received")?;
        ensure!(reply.starts_with(&self.beginning), "a claim was answered with {}", reply.escape_ascii());
        Ok(Some(length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_must_get_an_open_job() {
        let mut claims = Claims::new(GROUPED);
        let reply =
            |key: &str| format!("*1\r\n*3\r\n${}\r\n{key}\r\n$1\r\n5\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", key.len());
        let open = reply("job:g:o000000000007");
        assert_eq!(claims.check_reply(0, open.as_bytes()).unwrap(), Some(open.len()));
        assert_eq!(claims.check_reply(0, &open.as_bytes()[..open.len() - 1]).unwrap(), None);
        assert!(claims.check_reply(0, reply("job:g:b000000000007").as_bytes()).is_err());
        assert!(claims.check_reply(0, b"*0\r\n").is_err());
    }

    #[test]
    fn indexes_that_are_compared_have_names_and_keys_of_one_length() {
        assert_eq!(GROUPED.name.len(), PLAIN.name.len());
        for index in [PLAIN, ANOTHER] {
            assert_eq!(index.key(Kind::Open).len(), GROUPED.key(Kind::Open).len());
        }
    }
}
