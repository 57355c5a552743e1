//! What it costs a server to keep an index of its records: the subject beside itself without one. Knows nothing of
//! peers, who keep none.

use std::fs;
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::load::{CLIENTS, Connections, Footprint, Random, SETTLE, Template, Traffic, expect, numbered};
use crate::measure::{Metric, Sample, ServerFigures};
use crate::servers::{Connection, Persistence, Reply, Server, ServerSpec, data_root, shell_quoted, text};
use crate::workloads::data_sets::{JOB_KEY, JOB_RECORDS};

/// Loads records into both, and changes a field of random ones of them that is indexed by default, in turns.
pub(crate) fn index_cost(subject: &ServerSpec, records: u64) -> Result<Sample> {
    let indexed = Server::start(subject, Persistence::Off)?;
    let bare = start_without_indexes(subject)?;
    let indexed_memory = loaded(&indexed, records)?;
    let bare_memory = loaded(&bare, records)?;
    let mut control = indexed.connect()?;
    let bytes = index_bytes(&mut control, records)?;

    let mut touches = Touches::new(records);
    let ([with, without], passing_loss) = touches.compare(&indexed, &bare)?;
    touches.at_random = true;
    let (_, random_loss) = touches.compare(&indexed, &bare)?;
    check(&mut control, records)?;

    let mut sample = Sample::from([
        (Metric::Throughput, with[&Metric::Throughput]),
        (Metric::ServerCpu, with[&Metric::ServerCpu]),
        (Metric::UnindexedCpu, without[&Metric::ServerCpu]),
        (Metric::IndexLoss, passing_loss),
        (Metric::IndexLossAtRandom, random_loss),
        (Metric::IndexBytes, bytes as f64 / records as f64),
    ]);
    for (of_both, of_index) in
        [(Metric::RssPerItem, Metric::IndexRss), (Metric::UsedMemoryPerItem, Metric::IndexUsedMemory)]
    {
        if let (Some(with), Some(without)) = (indexed_memory.get(&of_both), bare_memory.get(&of_both)) {
            sample.insert(of_index, with - without);
        }
    }
    Ok(sample)
}

/// What the first of each pair lacks of the other's throughput, the median of all. Two runs side by side are more alike
/// than two medians: a machine that others use too is slow for seconds at a time.
fn loss(pairs: &[[Sample; 2]]) -> f64 {
    let lack = |[with, without]: &[Sample; 2]| 1.0 - with[&Metric::Throughput] / without[&Metric::Throughput];
    let mut lacks: Vec<f64> = pairs.iter().map(lack).collect();
    lacks.sort_by(f64::total_cmp);
    lacks[lacks.len() / 2]
}

const INDEX: &str = "idx:updated_at";
const PIPELINE: u32 = 16;

fn start_without_indexes(subject: &ServerSpec) -> Result<Server> {
    let file = data_root().join(format!("holdfast-bench-{}-no-index.toml", std::process::id()));
    fs::write(&file, "index = []\n").with_context(|| format!("cannot write {}", file.display()))?;
    let command = format!("{} --config {}", subject.command, shell_quoted(&file.to_string_lossy()));
    let server = ServerSpec::new("unindexed", &command).and_then(|spec| Server::start(&spec, Persistence::Off));
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
/// In a run, one of so many records is written.
const SHARE: u64 = 3;

/// The last twelve digits of a time that no record has yet, 1 May 2026.
const NOW_MS: u64 = 777_600_000_000;

impl Touches {
    fn new(records: u64) -> Self {
        let template = Template::new(&["HSET", JOB_KEY, "updated_at", "1__rand_int__"]);
        Touches { random: Random(0), template, records, now_ms: NOW_MS, at_random: false }
    }

    /// Runs on both servers in turns: the medians of each, and what the first lacks.
    fn compare(&mut self, indexed: &Server, bare: &Server) -> Result<([Sample; 2], f64)> {
        let mut pairs = Vec::new();
        for turn in 0..TURNS {
            let mut pair = [Sample::new(), Sample::new()];
            for at in [turn % 2, (turn + 1) % 2] {
                pair[at] = self.run([indexed, bare][at])?;
            }
            pairs.push(pair);
        }
        let medians = [0, 1].map(|at| {
            let runs = pairs.iter().map(|pair| pair[at].clone()).collect();
            ServerFigures::new("either", runs).median
        });
        Ok((medians, loss(&pairs)))
    }

    fn run(&mut self, server: &Server) -> Result<Sample> {
        let connections = Connections::new(server)?.senders(CLIENTS as usize)?;
        connections.run(server, PIPELINE, self.records / SHARE, self)
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
    fn the_loss_is_that_of_the_middle_pair() {
        let pair = |with, without| [with, without].map(|per_s| Sample::from([(Metric::Throughput, per_s)]));
        assert_eq!(loss(&[pair(50.0, 100.0)]), 0.5);
        // A machine at half its speed makes no difference; a disturbed run does, and is not in the middle.
        assert_eq!(loss(&[pair(80.0, 100.0), pair(40.0, 50.0), pair(10.0, 100.0)]), 1.0 - 0.8);
    }
}
