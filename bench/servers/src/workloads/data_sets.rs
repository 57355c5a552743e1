//! What several workloads find on their servers before they begin. Knows nothing of what is done with it.

use anyhow::Result;

use super::job_records::{FIELDS, job_key, job_record};
use super::workload::Setup;
use crate::load::{KEYS, Loader, numbered};
use crate::servers::{Reply, Server, simple};

pub(crate) static NOTHING: Setup = Setup { size: 0, size_quick: 0, load: |_, _| Ok(()) };

/// Strings of 32 bytes.
pub(crate) static STRINGS: Setup = preloaded(|server, size| {
    let mut loader = Loader::new(server)?;
    for number in 0..size {
        loader.send(&["SET", &numbered(STRING_KEY, number), &format!("{number:032}")], simple("OK"))?;
    }
    loader.finish()
});

/// Hashes of two fields.
pub(crate) static PAIRS: Setup = preloaded(|server, size| {
    let mut loader = Loader::new(server)?;
    for number in 0..size {
        let (key, time) = (numbered(PAIR_KEY, number), format!("{number:012}"));
        loader.send(&["HSET", &key, "state", "pending", "updated_at", &time], Reply::Integer(2))?;
    }
    loader.finish()
});

/// Job records of twelve fields.
pub(crate) static JOB_RECORDS: Setup =
    preloaded(|server, size| load_job_records(server, (0..size).map(|number| numbered(JOB_KEY, number))));

const fn preloaded(load: fn(&Server, u64) -> Result<()>) -> Setup {
    Setup { size: KEYS, size_quick: KEYS, load }
}

// redis-benchmark replaces each `__rand_int__` with twelve digits, zero-padded.
pub(crate) const STRING_KEY: &str = "gbe:state:cell:__rand_int__";
pub(crate) const PAIR_KEY: &str = "gbe:state:step:__rand_int__";
pub(crate) const JOB_KEY: &str = "gbe:state:tasks:email-send:job___rand_int__";

/// Fills a server with job records under keys of their own, `job_key(0)` and so on.
pub(crate) fn fill_with_job_records(server: &Server, records: u64) -> Result<()> {
    load_job_records(server, (0..records).map(job_key))
}

/// The first record goes under the first key, and so on.
fn load_job_records(server: &Server, keys: impl Iterator<Item = String>) -> Result<()> {
    let mut loader = Loader::new(server)?;
    for (number, key) in keys.enumerate() {
        send_job_record(&mut loader, &key, job_record(number as u64, task_id(&key)))?;
    }
    loader.finish()
}

/// A new job record.
pub(crate) fn send_job_record(loader: &mut Loader, key: &str, values: [String; 12]) -> Result<()> {
    let mut request = vec!["HSET", key];
    for (field, value) in FIELDS.iter().zip(&values) {
        request.extend([field, value.as_str()]);
    }
    loader.send(&request, Reply::Integer(FIELDS.len() as i64))
}

/// The id of a task whose record has this key.
pub(crate) fn task_id(key: &str) -> &str {
    key.rsplit(':').next().unwrap_or(key)
}
