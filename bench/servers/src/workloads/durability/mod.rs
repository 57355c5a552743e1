//! What it costs a server that its data outlive it: journals, starts with data, snapshots. Knows nothing of how a
//! server stores anything, only that it writes, starts and serves.

mod readers;

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::data_sets::{NOTHING, PAIRS, fill_with_job_records};
use super::strings_and_hashes::{HSET, redis_benchmark};
use super::workload::{Driver, Needs, RequestCounts, Workload};
use crate::measure::{Bound, Latencies, Metric, Sample, Target, proc_stat, thousands};
use crate::servers::{Connection, Persistence, Reply, Server, info, info_field};
use readers::Readers;

/// A measured run of writes, with what it wrote to the disk. A server that wrote nothing is refused: it would win.
pub(crate) fn journaled(server: &Server, requests: u64, run: impl FnOnce() -> Result<Sample>) -> Result<Sample> {
    let before = proc_stat::disk_bytes_written(server.pid)?;
    let mut sample = run()?;
    settle();
    let written = proc_stat::disk_bytes_written(server.pid)? - before;
    ensure!(written > 0, "`{}` wrote nothing to the disk: its journal is off", server.name);
    sample.insert(Metric::DiskPerItem, written as f64 / requests as f64);
    Ok(sample)
}

/// Lets a journal that is synced once a second reach the disk, so that it does not slow the next server.
pub(crate) fn settle() {
    thread::sleep(Duration::from_millis(1_500));
}

/// The time a server needs to start with job records in its journal, as it wrote them. The files are in the page
/// cache: what is measured is the server, not the disk.
fn start_with_data(server: &mut Server, records: u64) -> Result<Sample> {
    fill_with_job_records(server, records)?;
    settle();
    let written = proc_stat::disk_bytes_written(server.pid)?;
    let took = server.restart()?;
    let size = server.connect()?.call(&["DBSIZE"])?;
    let wanted = Reply::Integer(records as i64);
    ensure!(size == wanted, "started again, it answers DBSIZE with {size:?} instead of {wanted:?}");
    Ok(Sample::from([(Metric::StartTime, took.as_secs_f64()), (Metric::DiskPerItem, written as f64 / records as f64)]))
}

/// How long reads take while the server writes a snapshot, and how much memory it needs for that.
fn reads_during_snapshot(server: &mut Server, records: u64) -> Result<Sample> {
    fill_with_job_records(server, records)?;
    settle();
    let mut control = server.connect()?;
    let readers = Readers::start(server.port, records)?;
    thread::sleep(WARM_UP);
    readers.take();
    thread::sleep(BEFORE);
    let before = readers.take();

    let resident = proc_stat::resident_bytes(server.pid)?;
    proc_stat::forget_peak(server.pid)?;
    let load_cpu_before = proc_stat::cpu_time(std::process::id())?;
    readers.take();
    let started = Instant::now();
    let info = snapshot(&mut control)?;
    let took = started.elapsed();
    let during = readers.take();
    let load_cpu = proc_stat::cpu_time(std::process::id())? - load_cpu_before;
    let peak = proc_stat::peak_resident_bytes(server.pid)?;
    readers.stop()?;

    let mut sample = latencies(&during, &before, took)?;
    let growth = |bytes: u64| bytes as f64 / resident as f64;
    sample.extend([
        (Metric::LoadBusy, load_cpu.as_secs_f64() / took.as_secs_f64()),
        (Metric::SnapshotTime, took.as_secs_f64()),
        (Metric::RssGrowth, growth(peak.saturating_sub(resident))),
    ]);
    if let Some(bytes) = info_field(&info, "rdb_last_cow_size").and_then(|text| text.parse().ok()) {
        sample.insert(Metric::ChildShare, growth(bytes));
    }
    Ok(sample)
}

/// Connections and caches are warm after this.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long the same load is measured without a snapshot.
const BEFORE: Duration = Duration::from_secs(1);

/// Fewer reads than this have no 99.9th percentile worth the name.
const LEAST_READS: usize = 5_000;

fn latencies(during: &Latencies, before: &Latencies, took: Duration) -> Result<Sample> {
    let reads = during.count();
    ensure!(
        reads >= LEAST_READS,
        "the snapshot took {took:.0?} and only {} reads fell into it; a percentile needs {}",
        thousands(reads as f64),
        thousands(LEAST_READS as f64)
    );
    let ms = |of: &Latencies, quantile| of.quantile_us(quantile) / 1e3;
    Ok(Sample::from([
        (Metric::Throughput, reads as f64 / took.as_secs_f64()),
        (Metric::LatencyP50, ms(during, 0.5)),
        (Metric::LatencyP99, ms(during, 0.99)),
        (Metric::LatencyP999, ms(during, 0.999)),
        (Metric::LatencyMax, ms(during, 1.0)),
        (Metric::LatencyP999Before, ms(before, 0.999)),
    ]))
}

/// Has a snapshot written and returns what INFO says after it.
fn snapshot(control: &mut Connection) -> Result<String> {
    let asked_unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let asked = Instant::now();
    match control.call(&["BGSAVE"])? {
        Reply::SimpleString(_) => {}
        other => bail!("BGSAVE answered {other:?}"),
    }
    loop {
        let info = info(control, "persistence")?;
        let field = |name: &str| info_field(&info, name).with_context(|| format!("INFO persistence has no {name}"));
        if field("rdb_bgsave_in_progress")? == "0" {
            let (status, saved_unix_s) = (field("rdb_last_bgsave_status")?, field("rdb_last_save_time")?);
            let saved = status == "ok" && saved_unix_s.parse::<u64>()? >= asked_unix_s;
            ensure!(
                saved,
                "no snapshot was written: its status is {status}, the last one of {saved_unix_s} s, and this one was \
                 asked for at {asked_unix_s} s"
            );
            return Ok(info);
        }
        ensure!(asked.elapsed() < SNAPSHOT_TIMEOUT, "the snapshot does not end");
        thread::sleep(LOOK_AGAIN);
    }
}

const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(120);

/// Between two looks at a snapshot: often enough to end the window in time, rare among the reads.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(crate) const WORKLOADS: &[Workload] = &[
    Workload {
        name: "durability-everysec",
        about: "HSET, everysec",
        persistence: Persistence::EverySecond,
        setup: &PAIRS,
        driver: redis_benchmark(HSET, JOURNALED),
        targets: &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(2.0) },
            Target { pipeline: Some(64), metric: Metric::Throughput, bound: Bound::AtLeast(2.5) },
        ],
    },
    Workload {
        name: "durability-always",
        about: "HSET, always",
        persistence: Persistence::Always,
        setup: &PAIRS,
        driver: redis_benchmark(HSET, SYNCED),
        targets: &[Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.5) }],
    },
    Workload {
        name: "durability-start",
        about: "Start with job records",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Custom {
            run: start_with_data,
            amount: 1_000_000,
            amount_quick: 100_000,
            needs: Needs::Nothing,
        },
        targets: &[Target { pipeline: None, metric: Metric::StartTime, bound: Bound::AtMost(0.5) }],
    },
    Workload {
        name: "durability-snapshot",
        about: "HGET during a snapshot",
        persistence: Persistence::EverySecond,
        setup: &NOTHING,
        driver: Driver::Custom {
            run: reads_during_snapshot,
            amount: 1_000_000,
            amount_quick: 100_000,
            needs: Needs::Nothing,
        },
        targets: &[
            Target { pipeline: None, metric: Metric::LatencyP999, bound: Bound::AtMost(0.5) },
            Target { pipeline: None, metric: Metric::RssGrowth, bound: Bound::AtMost(0.1) },
        ],
    },
];

/// Long enough that even the faster server syncs several times.
const JOURNALED: RequestCounts = &[(1, 300_000), (8, 2_000_000), (32, 4_000_000)];
/// Each reply waits for the disk.
const SYNCED: RequestCounts = &[(1, 150_000), (8, 600_000), (32, 600_000)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_become_milliseconds() {
        let during = Latencies::from_us((1..=10_000).collect());
        let before = Latencies::from_us(vec![250; 100]);
        let sample = latencies(&during, &before, Duration::from_secs(2)).unwrap();
        assert_eq!(sample[&Metric::Throughput], 5_000.0);
        assert_eq!(sample[&Metric::LatencyP50], 5.0);
        assert_eq!(sample[&Metric::LatencyP999], 9.99);
        assert_eq!(sample[&Metric::LatencyMax], 10.0);
        assert_eq!(sample[&Metric::LatencyP999Before], 0.25);
    }

    #[test]
    fn a_snapshot_too_short_to_judge_is_refused() {
        let reads = |count| Latencies::from_us(vec![250; count]);
        let error = latencies(&reads(4_999), &reads(1), Duration::from_millis(21)).unwrap_err().to_string();
        assert_eq!(error, "the snapshot took 21ms and only 4,999 reads fell into it; a percentile needs 5,000");
    }
}
