//! Finding the hundred jobs of a backlog that are stuck: by an index that the server keeps, by one kept by hand, or by
//! looking at every record. Knows nothing of how a server finds anything; the names it finds must be the right ones.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::load::{KEYS, Loader, numbered};
use crate::measure::{Latencies, Metric, Sample, proc_stat};
use crate::servers::{Connection, Reply, Server, text};
use crate::workloads::data_sets::{JOB_KEY, send_job_record, task_id};
use crate::workloads::job_records::{Backlog, FIELDS, OLD_BEFORE_MS, STUCK_STATE, backlog_record};
use crate::workloads::workload::Setup;

/// Many job records, some of them stuck; and, for a server that keeps no index, one kept by hand.
pub(crate) static BACKLOG: Setup = Setup {
    size: 1_000_000,
    size_quick: KEYS,
    load: |server, size| {
        let by_hand = !server.knows("IDX.RANGE")?;
        let backlog = Backlog { records: size };
        let mut loader = Loader::new(server)?;
        for number in 0..size {
            let key = numbered(JOB_KEY, number);
            let values = backlog_record(backlog, number, task_id(&key));
            if by_hand {
                loader.send(&index_by_hand(&key, &values), Reply::Integer(1))?;
            }
            send_job_record(&mut loader, &key, values)?;
        }
        loader.finish()
    },
};

/// IDX.RANGE where the server has it; elsewhere SCAN and HMGET of everything, as a sweeper without an index must.
pub(crate) fn range_or_scan(server: &Server, records: u64) -> Result<Sample> {
    search(server, records, if server.knows("IDX.RANGE")? { Way::Range } else { Way::Scan })
}

/// HFIND where the server has it, elsewhere the same.
pub(crate) fn find_or_scan(server: &Server, records: u64) -> Result<Sample> {
    search(server, records, if server.knows("HFIND")? { Way::Find } else { Way::Scan })
}

/// IDX.RANGE where the server has it, elsewhere the sorted set that the writers of the records keep by hand.
pub(crate) fn range_or_by_hand(server: &Server, records: u64) -> Result<Sample> {
    search(server, records, if server.knows("IDX.RANGE")? { Way::Range } else { Way::ByHand })
}

/// What a client must send with each record to keep an index by hand.
fn index_by_hand<'a>(key: &'a str, values: &'a [String; 12]) -> [&'a str; 4] {
    let updated_at = FIELDS.iter().position(|field| *field == "updated_at").expect("a field of every record");
    ["ZADD", BY_HAND, &values[updated_at], key]
}

/// A sorted set of the keys of all records, by the time they changed last.
const BY_HAND: &str = "gbe:state:by_updated_at";

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Range,
    Find,
    ByHand,
    Scan,
}

impl Way {
    /// The names of what is stuck, in any order.
    fn search(self, connection: &mut Connection) -> Result<Vec<String>> {
        match self {
            Way::Range => range(connection),
            Way::Find => find(connection),
            Way::ByHand => by_hand(connection),
            Way::Scan => scan(connection),
        }
    }

    /// How often it is done in a round, so that a round is neither too short nor too long to be measured.
    fn times(self) -> u32 {
        match self {
            Way::Range | Way::Find => 200,
            Way::ByHand => 20,
            Way::Scan => 1,
        }
    }
}

/// One measured round, on one connection.
fn search(server: &Server, records: u64, way: Way) -> Result<Sample> {
    let mut stuck: Vec<_> = Backlog { records }.stuck().map(|number| numbered(JOB_KEY, number)).collect();
    stuck.sort_unstable();
    let mut connection = server.connect()?;
    let server_cpu_before = proc_stat::cpu_time(server.pid)?;
    let load_cpu_before = proc_stat::cpu_time(std::process::id())?;
    let mut took = Duration::ZERO;
    let mut each_us = Vec::new();
    for _ in 0..way.times() {
        let started = Instant::now();
        let mut found = way.search(&mut connection)?;
        let time = started.elapsed();
        took += time;
        each_us.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        found.sort_unstable();
        ensure!(found == stuck, "found {} jobs that are not the {} stuck ones: {found:?}", found.len(), stuck.len());
    }
    let load_cpu = proc_stat::cpu_time(std::process::id())? - load_cpu_before;
    let server_cpu = proc_stat::cpu_time(server.pid)? - server_cpu_before;
    let each = Latencies::from_us(each_us);
    let times = f64::from(way.times());
    Ok(Sample::from([
        (Metric::Throughput, times / took.as_secs_f64()),
        (Metric::LatencyP50, each.quantile_us(0.5) / 1e3),
        (Metric::LatencyP99, each.quantile_us(0.99) / 1e3),
        (Metric::ServerCpu, server_cpu.as_secs_f64() * 1e6 / times),
        (Metric::LoadBusy, load_cpu.as_secs_f64() / took.as_secs_f64()),
    ]))
}

fn range(connection: &mut Connection) -> Result<Vec<String>> {
    let (before, limit) = (format!("({OLD_BEFORE_MS}"), Backlog::STUCK.to_string());
    let reply = connection.call(&[
        "IDX.RANGE",
        "idx:updated_at",
        "-inf",
        &before,
        "FILTER",
        "state",
        "eq",
        STUCK_STATE,
        "LIMIT",
        &limit,
        "FIELDS",
        "2",
        "state",
        "updated_at",
    ])?;
    items(reply)?.into_iter().map(record_name).collect()
}

fn find(connection: &mut Connection) -> Result<Vec<String>> {
    let (before, limit) = (OLD_BEFORE_MS.to_string(), Backlog::STUCK.to_string());
    let mut found = Vec::new();
    let mut cursor = "0".to_string();
    loop {
        let reply = connection.call(&[
            "HFIND",
            PREFIX,
            "FILTER",
            "state",
            "eq",
            STUCK_STATE,
            "FILTER",
            "updated_at",
            "lt",
            &before,
            "CURSOR",
            &cursor,
            "LIMIT",
            &limit,
            "FIELDS",
            "2",
            "state",
            "updated_at",
        ])?;
        let (next, records) = page(reply)?;
        for record in records {
            found.push(record_name(record)?);
        }
        if next == "0" {
            return Ok(found);
        }
        cursor = next;
    }
}

const PREFIX: &str = "gbe:state:tasks:";

/// The first of what an index or a search shows of a record: its key.
fn record_name(record: Reply) -> Result<String> {
    let record = items(record)?;
    let name = record.first().and_then(text).context("a record without a name")?;
    Ok(name.to_string())
}

/// The oldest first, until a hundred of them are stuck. A page begins where the one before ended, as an offset would
/// have the server walk over all that was read already.
fn by_hand(connection: &mut Connection) -> Result<Vec<String>> {
    let (before, count) = (format!("({OLD_BEFORE_MS}"), PAGE.to_string());
    let mut found = Vec::new();
    let mut min = "-inf".to_string();
    // Those that the next page begins with once more, as they have its least score.
    let mut known = Vec::new();
    while found.len() < Backlog::STUCK as usize {
        let page = ["ZRANGEBYSCORE", BY_HAND, &min, &before, "WITHSCORES", "LIMIT", "0", &count];
        let page = pairs(names(connection.call(&page)?)?);
        let Some((_, last)) = page.last() else { break };
        let of_last = page.iter().filter(|(_, score)| score == last).map(|(key, _)| key.clone()).collect();
        min = last.clone();
        let keys: Vec<_> = page.into_iter().map(|(key, _)| key).filter(|key| !known.contains(key)).collect();
        known = of_last;
        if keys.is_empty() {
            break;
        }
        ask_for_records(connection, &keys);
        connection.flush()?;
        keep_stuck(connection, keys, &mut found)?;
    }
    Ok(found)
}

fn pairs(words: Vec<String>) -> Vec<(String, String)> {
    let mut words = words.into_iter();
    std::iter::from_fn(|| words.next().zip(words.next())).collect()
}

/// Everything, page by page; the next page is asked for with the records of the one before.
fn scan(connection: &mut Connection) -> Result<Vec<String>> {
    let (pattern, count) = (format!("{PREFIX}*"), PAGE.to_string());
    let mut found = Vec::new();
    let mut keys = Vec::new();
    let mut next = Some("0".to_string());
    while next.is_some() || !keys.is_empty() {
        if let Some(cursor) = &next {
            connection.push(&["SCAN", cursor, "MATCH", &pattern, "COUNT", &count]);
        }
        ask_for_records(connection, &keys);
        connection.flush()?;
        let mut scanned = Vec::new();
        if next.is_some() {
            let (cursor, page) = page(connection.read_reply()?)?;
            scanned = page.into_iter().map(name).collect::<Result<_>>()?;
            next = Some(cursor).filter(|cursor| cursor != "0");
        }
        keep_stuck(connection, std::mem::replace(&mut keys, scanned), &mut found)?;
    }
    // A key may come twice, and a sweeper must not requeue it twice.
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// Keys asked for at once.
const PAGE: usize = 1_000;

fn ask_for_records(connection: &mut Connection, keys: &[String]) {
    for key in keys {
        connection.push(&["HMGET", key, "state", "updated_at"]);
    }
}

/// Reads what was answered about these keys, and adds those that are stuck.
fn keep_stuck(connection: &mut Connection, keys: Vec<String>, found: &mut Vec<String>) -> Result<()> {
    for key in keys {
        let Reply::Array(values) = connection.read_reply()? else { bail!("HMGET of {key} answered no array") };
        let [state, updated_at] = &values[..] else { bail!("HMGET of {key} answered {values:?}") };
        let updated_at: u64 = text(updated_at).and_then(|text| text.parse().ok()).context("no time of change")?;
        if updated_at < OLD_BEFORE_MS && text(state) == Some(STUCK_STATE) {
            found.push(key);
        }
    }
    Ok(())
}

/// A cursor, and what came with it.
fn page(reply: Reply) -> Result<(String, Vec<Reply>)> {
    let mut parts = items(reply)?.into_iter();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(cursor), Some(page), None) => Ok((name(cursor)?, items(page)?)),
        _ => bail!("not a cursor and a page"),
    }
}

fn items(reply: Reply) -> Result<Vec<Reply>> {
    match reply {
        Reply::Array(items) => Ok(items),
        other => bail!("expected an array, the server answered {other:?}"),
    }
}

fn names(reply: Reply) -> Result<Vec<String>> {
    items(reply)?.into_iter().map(name).collect()
}

fn name(reply: Reply) -> Result<String> {
    match reply {
        Reply::BulkString(bytes) => Ok(String::from_utf8(bytes)?),
        other => bail!("expected a name, the server answered {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &'static str) -> Reply {
        Reply::BulkString(text.into())
    }

    #[test]
    fn a_page_is_a_cursor_and_an_array() {
        let reply = Reply::Array(vec![bulk("17"), Reply::Array(vec![bulk("a"), bulk("b")])]);
        assert_eq!(page(reply).unwrap(), ("17".to_string(), vec![bulk("a"), bulk("b")]));
        assert!(page(Reply::Array(vec![bulk("17")])).is_err());
        assert!(page(Reply::Error("ERR no".into())).is_err());
    }

    #[test]
    fn a_record_is_known_by_what_stands_first() {
        let record = Reply::Array(vec![bulk("job:1"), bulk("5"), Reply::Array(Vec::new())]);
        assert_eq!(record_name(record).unwrap(), "job:1");
        assert!(record_name(Reply::Array(Vec::new())).is_err());
    }
}
