//! Runs redis-benchmark and reads its figures. Knows nothing of who is compared with whom.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::scale::{CLIENTS, KEYS};
use crate::measure::{Metric, Sample, proc_stat};
use crate::servers::Server;

/// One measured run of redis-benchmark.
pub(crate) fn redis_benchmark(server: &Server, command: &[&str], pipeline: u32, requests: u64) -> Result<Sample> {
    let server_cpu_before = proc_stat::cpu_time(server.pid)?;
    let load_cpu_before = proc_stat::ended_children_cpu_time()?;
    let started = Instant::now();

    let output = Command::new("redis-benchmark")
        .args(["-h", "127.0.0.1", "-p", &server.port.to_string(), "--csv"])
        .args(["-c", &CLIENTS.to_string(), "-r", &KEYS.to_string()])
        .args(["-n", &requests.to_string(), "-P", &pipeline.to_string()])
        .args(command)
        .stdin(Stdio::null())
        .output()
        .context("cannot run redis-benchmark")?;

    let elapsed = started.elapsed();
    let load_cpu = proc_stat::ended_children_cpu_time()? - load_cpu_before;
    let server_cpu = proc_stat::cpu_time(server.pid)? - server_cpu_before;

    let text = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "redis-benchmark against `{}`: {}: {complaint}", server.name, output.status);
    let run = parse_csv(&text).with_context(|| format!("redis-benchmark printed {text:?} {complaint:?}"))?;
    Ok(Sample::from([
        (Metric::Throughput, run.requests_per_s),
        (Metric::LatencyP50, run.p50_ms),
        (Metric::LatencyP99, run.p99_ms),
        (Metric::ServerCpu, server_cpu.as_secs_f64() * 1e6 / requests as f64),
        (Metric::LoadBusy, load_cpu.as_secs_f64() / elapsed.as_secs_f64()),
    ]))
}

pub(crate) fn redis_benchmark_version() -> Result<String> {
    let output = Command::new("redis-benchmark").arg("--version").output().context("cannot run redis-benchmark")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

#[derive(Debug, PartialEq)]
struct BenchmarkRun {
    requests_per_s: f64,
    p50_ms: f64,
    p99_ms: f64,
}

fn parse_csv(text: &str) -> Result<BenchmarkRun> {
    let mut lines = text.lines();
    let header = lines.next().context("no output")?;
    let row = lines.next().context("no result row")?;
    let names = quoted_fields(header);
    // The first column is the command as it was typed, its quotes and commas unescaped: count from the end.
    let values = quoted_fields(row);
    let value = |name: &str| -> Result<f64> {
        let column = names.iter().position(|column| *column == name).with_context(|| format!("no column {name}"))?;
        let from_end = names.len() - column;
        let text = values.len().checked_sub(from_end).map(|i| values[i]).context("a short row")?;
        text.parse().with_context(|| format!("{name} is {text:?}"))
    };
    Ok(BenchmarkRun {
        requests_per_s: value("rps")?,
        p50_ms: value("p50_latency_ms")?,
        p99_ms: value("p99_latency_ms")?,
    })
}

fn quoted_fields(line: &str) -> Vec<&str> {
    line.trim().trim_matches('"').split("\",\"").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms""#;

    fn parse(row: &str) -> Result<BenchmarkRun> {
        parse_csv(&format!("{HEADER}\n{row}\n"))
    }

    #[test]
    fn a_row_is_read_by_the_names_in_the_header() {
        let row = r#""GET k:__rand_int__","122249.38","0.294","0.096","0.279","0.455","0.623","1.663""#;
        let run = BenchmarkRun { requests_per_s: 122249.38, p50_ms: 0.279, p99_ms: 0.623 };
        assert_eq!(parse(row).unwrap(), run);
    }

    #[test]
    fn a_command_with_quotes_and_commas_does_not_shift_the_columns() {
        let row = r#""EVAL return {1,"a","b"} 0","584795.31","1.245","0.224","1.279","1.767","1.983","2.863""#;
        let run = BenchmarkRun { requests_per_s: 584795.31, p50_ms: 1.279, p99_ms: 1.983 };
        assert_eq!(parse(row).unwrap(), run);
    }

    #[test]
    fn a_run_that_failed_is_refused() {
        assert_eq!(parse_csv("").unwrap_err().to_string(), "no output");
        assert_eq!(parse_csv(HEADER).unwrap_err().to_string(), "no result row");
        assert_eq!(parse(r#""GET","1.0""#).unwrap_err().to_string(), "a short row");
        assert_eq!(parse_csv("\"test\",\"rpm\"\n\"GET\",\"1\"\n").unwrap_err().to_string(), "no column rps");
        let row = r#""GET","fast","0.294","0.096","0.279","0.455","0.623","1.663""#;
        assert_eq!(parse(row).unwrap_err().to_string(), r#"rps is "fast""#);
    }
}
