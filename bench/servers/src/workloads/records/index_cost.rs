//! What it costs a server to keep an index of its records: the subject beside itself without one. Knows nothing of
//! peers, who keep none.

use std::fs;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::load::{CLIENTS, Connections, Footprint, Random, SETTLE, Template, Traffic, expect, numbered};
use crate::measure::{Metric, Sample, ServerFigures};
use crate::servers::{Connection, Persistence, Reply, Server, ServerSpec, data_root, shell_quoted, text};
use crate::workloads::OwnFigures;
use crate::workloads::data_sets::{JOB_KEY, JOB_RECORDS};

/// Changes two fields of random records, of which one is indexed by default, on both in turns: with times that pass and
/// with random ones, at each pipeline depth; of a hundred thousand records and, in a full run, of as many as asked for.
pub(crate) fn index_cost(subject: &ServerSpec, records: u64) -> Result<Vec<OwnFigures>> {
    let mut lines =
        of_records(subject, RECORDS_SMALL, ["100 k records, passing times", "100 k records, random times"])?;
    if records > RECORDS_SMALL {
        lines.extend(of_records(subject, records, ["1 M records, passing times", "1 M records, random times"])?);
    }
    Ok(lines)
}

const RECORDS_SMALL: u64 = 100_000;

/// What the index costs with so many records; the names are of the runs with times that pass, and with random ones.
fn of_records(subject: &ServerSpec, records: u64, names: [&'static str; 2]) -> Result<Vec<OwnFigures>> {
    let indexed = Server::start(subject, PERSISTENCE)?;
    let bare = start_without_indexes(subject)?;
    let indexed_memory = loaded(&indexed, records)?;
    let bare_memory = loaded(&bare, records)?;
    let mut control = indexed.connect()?;
    let bytes = index_bytes(&mut control, records)?;
    let mut memory = Sample::from([(Metric::IndexBytes, bytes as f64 / records as f64)]);
    for (of_both, of_index) in
        [(Metric::RssPerItem, Metric::IndexRss), (Metric::UsedMemoryPerItem, Metric::IndexUsedMemory)]
    {
        if let (Some(with), Some(without)) = (indexed_memory.get(&of_both), bare_memory.get(&of_both)) {
            memory.insert(of_index, with - without);
        }
    }

    let mut touches = Touches::new(records);
    let mut lines = Vec::new();
    for (about, at_random) in names.into_iter().zip([false, true]) {
        touches.at_random = at_random;
        for (pipeline, requests) in REQUESTS {
            let pairs = touches.pairs(&indexed, &bare, *pipeline, *requests)?;
            lines.push(OwnFigures::new(about, Some(*pipeline), compared(&pairs)));
        }
    }
    check(&mut control, records)?;
    lines.push(OwnFigures::new(names[0], None, memory));
    Ok(lines)
}

/// The settings by default.
const PERSISTENCE: Persistence = Persistence::EverySecond;

/// Pipeline depths, and the requests in one run: about half a second.
const REQUESTS: &[(u32, u64)] = &[(1, 40_000), (16, 160_000), (64, 240_000)];

/// The medians of both servers, and the median of what makes each pair differ. Two runs side by side are more alike than
/// two medians: a machine that others use too is slow for seconds at a time.
fn compared(pairs: &[[Sample; 2]]) -> Sample {
    let of_one = |at: usize| {
        let runs = pairs.iter().map(|pair| pair[at].clone()).collect();
        ServerFigures::new("either", runs).median
    };
    let ratio = |metric: Metric| {
        let mut ratios: Vec<f64> = pairs.iter().map(|[with, without]| with[&metric] / without[&metric]).collect();
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    let (with, without) = (of_one(0), of_one(1));
    Sample::from([
        (Metric::Throughput, with[&Metric::Throughput]),
        (Metric::UnindexedThroughput, without[&Metric::Throughput]),
        (Metric::IndexLoss, 1.0 - ratio(Metric::Throughput)),
        (Metric::ServerCpu, with[&Metric::ServerCpu]),
        (Metric::UnindexedCpu, without[&Metric::ServerCpu]),
        (Metric::IndexCpu, ratio(Metric::ServerCpu) - 1.0),
        (Metric::LatencyP99, with[&Metric::LatencyP99]),
        (Metric::UnindexedP99, without[&Metric::LatencyP99]),
        (Metric::IndexP99, ratio(Metric::LatencyP99)),
    ])
}

const INDEX: &str = "idx:updated_at";

fn start_without_indexes(subject: &ServerSpec) -> Result<Server> {
    let file = data_root().join(format!("holdfast-bench-{}-no-index.toml", std::process::id()));
    fs::write(&file, "index = []\n").with_context(|| format!("cannot write {}", file.display()))?;
    let command = format!("{} --config {}", subject.command, shell_quoted(&file.to_string_lossy()));
    let server = ServerSpec::new("unindexed", &command).and_then(|spec| Server::start(&spec, PERSISTENCE));
    let _ = fs::remove_file(&file);
    let server = server?;
    let indexes = server.connect()?.call(&["IDX.LIST"])?;
    ensure!(indexes == Reply::Array(Vec::new()), "started without indexes, it answers IDX.LIST with {indexes:?}");
    Ok(server)
}

/// Fills a server, and returns what that took of its memory.
fn loaded(server: &Server, records: u64) -> Result<Sample> {
    let mut control = server.connect()?;
    let before = Footprint::measure(server, &mut control)?;
    (JOB_RECORDS.load)(server, records)?;
    thread::sleep(SETTLE);
    Ok(Footprint::measure(server, &mut control)?.since(&before, records))
}

/// What the server says that the index takes, which must have all records.
fn index_bytes(control: &mut Connection, records: u64) -> Result<i64> {
    let Reply::Array(info) = control.call(&["IDX.INFO", INDEX])? else { bail!("there is no index {INDEX}") };
    let field = |name: &str| {
        let at = info.iter().position(|word| text(word) == Some(name))?;
        if let Some(Reply::Integer(value)) = info.get(at + 1) { Some(*value) } else { None }
    };
    let entries = field("entries").context("IDX.INFO tells no entries")?;
    ensure!(entries == records as i64, "of {records} records, {entries} are in the index");
    field("bytes").context("IDX.INFO tells no bytes")
}

/// The index has all records, and some of them have the score that is in them.
fn check(control: &mut Connection, records: u64) -> Result<()> {
    index_bytes(control, records)?;
    for number in 0..SAMPLE {
        let key = numbered(JOB_KEY, number);
        let (score, field) = (control.call(&["ZSCORE", INDEX, &key])?, control.call(&["HGET", &key, "updated_at"])?);
        ensure!(score == field && text(&score).is_some(), "{key} has {field:?}, and in the index {score:?}");
    }
    Ok(())
}

/// So many records are looked at after the runs.
const SAMPLE: u64 = 1_000;

/// Writes to the indexed field of random records.
struct Touches {
    random: Random,
    template: Template,
    records: u64,
    now_ms: u64,
    /// With random times, in place of the time that it is.
    at_random: bool,
}

/// Short runs on each server, of which the median counts.
const TURNS: usize = 21;

/// The last twelve digits of a time that no record has yet, 1 May 2026.
const NOW_MS: u64 = 777_600_000_000;

impl Touches {
    fn new(records: u64) -> Self {
        let template = Template::new(&["HSET", JOB_KEY, "state", "running", "updated_at", "1__rand_int__"]);
        Touches { random: Random(0), template, records, now_ms: NOW_MS, at_random: false }
    }

    /// Runs on both servers, in turns.
    fn pairs(&mut self, indexed: &Server, bare: &Server, pipeline: u32, requests: u64) -> Result<Vec<[Sample; 2]>> {
        let mut pairs = Vec::new();
        for turn in 0..TURNS {
            let mut pair = [Sample::new(), Sample::new()];
            for at in [turn % 2, (turn + 1) % 2] {
                let server = [indexed, bare][at];
                let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
                pair[at] = connections.run(server, pipeline, requests, self)?;
            }
            pairs.push(pair);
        }
        Ok(pairs)
    }
}

impl Traffic for Touches {
    fn next_request(&mut self, _sender: usize, requests: &mut Vec<u8>) {
        // A thousand changes in a second.
        self.now_ms += 1;
        let time = if self.at_random { self.random.below(self.now_ms) } else { self.now_ms };
        self.template.write(requests, [self.random.below(self.records), time].into_iter());
    }

    fn check_reply(&mut self, _sender: usize, received: &[u8]) -> Result<Option<usize>> {
        Ok(expect(received, b":0\r\n")?.then_some(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(touches: &mut Touches) -> Vec<u64> {
        let mut requests = Vec::new();
        (0..100).for_each(|_| touches.next_request(0, &mut requests));
        let requests = String::from_utf8(requests).unwrap();
        requests.split("updated_at\r\n$13\r\n").skip(1).map(|rest| rest[..13].parse().unwrap()).collect()
    }

    #[test]
    fn time_passes_unless_it_is_random() {
        let mut touches = Touches::new(10);
        let passing = times(&mut touches);
        assert!(passing.is_sorted_by(|a, b| a < b) && passing[0] > 1_777_600_000_000);
        touches.at_random = true;
        assert!(!times(&mut touches).is_sorted());
    }

    #[test]
    fn what_is_lost_is_that_of_the_middle_pair() {
        let run = |per_s, cpu_us, p99_ms| {
            Sample::from([(Metric::Throughput, per_s), (Metric::ServerCpu, cpu_us), (Metric::LatencyP99, p99_ms)])
        };
        let one = compared(&[[run(50.0, 3.0, 4.0), run(100.0, 2.0, 2.0)]]);
        assert_eq!((one[&Metric::IndexLoss], one[&Metric::IndexCpu], one[&Metric::IndexP99]), (0.5, 0.5, 2.0));
        // A machine at half its speed makes no difference; a disturbed run does, and is not in the middle.
        let pairs = [
            [run(80.0, 1.5, 1.0), run(100.0, 1.0, 1.0)],
            [run(40.0, 3.0, 2.0), run(50.0, 2.0, 2.0)],
            [run(10.0, 9.0, 90.0), run(100.0, 1.0, 1.0)],
        ];
        let all = compared(&pairs);
        assert_eq!(all[&Metric::IndexLoss], 1.0 - 0.8);
        assert_eq!((all[&Metric::IndexCpu], all[&Metric::IndexP99]), (0.5, 1.0));
        assert_eq!((all[&Metric::Throughput], all[&Metric::UnindexedThroughput]), (40.0, 100.0));
    }
}
