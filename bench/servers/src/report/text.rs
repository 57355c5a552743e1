//! The figures as text: lines on the console, JSON for machines, Markdown for the docs. Measures nothing.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use crate::measure::{BASELINE, Bound, Disk, Limit, Line, Machine, Metric, Ratio, ServerFigures, thousands};

#[derive(Serialize, Debug)]
pub(crate) struct Report {
    pub(crate) measured_at_unix_s: u64,
    pub(crate) machine: Machine,
    /// What the journals were written to, if any were.
    pub(crate) disk: Option<Disk>,
    pub(crate) load_generator: String,
    pub(crate) clients: u32,
    pub(crate) keys: u64,
    pub(crate) rounds: u32,
    pub(crate) quick: bool,
    /// The subject first, then the peers.
    pub(crate) servers: Vec<Contender>,
    pub(crate) lines: Vec<Line>,
    /// What could not be measured, and why.
    pub(crate) notes: Vec<String>,
}

#[derive(Serialize, Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) command: String,
}

impl Report {
    pub(crate) fn peers(&self) -> &[Contender] {
        &self.servers[1..]
    }

    /// What the figures were measured on and with.
    fn conditions(&self) -> String {
        self.platform() + "; " + &self.method()
    }

    pub(crate) fn platform(&self) -> String {
        let Machine { cpu, cores, memory_mib, kernel, .. } = &self.machine;
        let memory_gib = *memory_mib as f64 / 1024.0;
        format!("{cpu}, {cores} cores, {memory_gib:.1} GiB, Linux {kernel}")
    }

    pub(crate) fn method(&self) -> String {
        let Report { clients, rounds, .. } = self;
        let keys = thousands(self.keys as f64);
        let mut text = format!("{clients} connections, {keys} keys, one load process, median of {rounds}");
        if let Some(Disk { filesystem, sync_ms, .. }) = &self.disk {
            let _ = write!(text, "; journals on {filesystem}, where a sync takes {sync_ms:.2} ms");
        }
        if self.quick {
            text.push_str("; quick run, not to be quoted");
        }
        text
    }

    pub(crate) fn contenders(&self) -> String {
        let named = |server: &Contender| format!("{} {}", server.name, server.version);
        self.servers.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn heading(report: &Report) -> String {
    let load = &report.machine.load_average;
    format!("{}\n{}; load average before: {load}\n", report.contenders(), report.conditions())
}

/// What one workload gave.
pub(crate) fn console(lines: &[Line]) -> String {
    match lines.iter().all(is_row) {
        true => side_by_side(lines.iter()),
        false => lines.iter().map(console_line).collect(),
    }
}

/// Whether a line is one of many short ones, which are read best in one table with a row for each.
pub(super) fn is_row(line: &Line) -> bool {
    line.metrics().contains(&Metric::CommandTime)
}

/// A row for each line; for each metric the figures of all servers, then the ratios to the peers.
fn side_by_side<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> String {
    const METRICS: [Metric; 2] = [Metric::LatencyMax, Metric::CommandTime];
    let Some(first) = lines.clone().next() else { return String::new() };
    let mut names = vec!["work".to_string()];
    for metric in METRICS {
        names.extend(first.servers.iter().map(|figures| format!("{}, {}", metric.label(), figures.server)));
        names.extend(first.servers[1..].iter().map(|peer| format!("ratio to {}", peer.server)));
    }
    let rules = names.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" });
    let mut text = format!("\n| {} |\n| {} |\n", names.join(" | "), rules.collect::<Vec<_>>().join(" | "));
    for line in lines {
        let mut cells = vec![line.about.to_string()];
        for metric in METRICS {
            cells.extend(line.servers.iter().map(|figures| cell(figures, metric)));
            cells.extend(
                line.servers[1..]
                    .iter()
                    .map(|peer| line.ratio(&peer.server, metric).map(Ratio::text).unwrap_or_default()),
            );
        }
        let cells = cells.into_iter().map(|cell| if cell.is_empty() { "-".to_string() } else { cell });
        let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// One measured line: a row for each server, then the ratios.
fn console_line(line: &Line) -> String {
    let metrics = line.metrics();
    let mut text = format!("\n{:<34}", title(line));
    for metric in &metrics {
        let _ = write!(text, "{:>18}", metric.label());
    }
    text.push('\n');
    for figures in &line.servers {
        let _ = write!(text, "  {:<32}", figures.server);
        for metric in &metrics {
            let _ = write!(text, "{:>18}", cell(figures, *metric));
        }
        text.push('\n');
    }
    for peer in &line.servers[1..] {
        let _ = write!(text, "  {:<32}", format!("ratio to {}", peer.server));
        for metric in &metrics {
            let ratio = line.ratio(&peer.server, *metric).map(Ratio::text);
            let _ = write!(text, "{:>18}", ratio.unwrap_or_default());
        }
        text.push('\n');
    }
    for ratio in &line.ratios {
        if let Some(verdict) = ratio.verdict {
            let _ = writeln!(
                text,
                "  target: {} {} of {}: {}",
                ratio.metric.label(),
                bound(verdict.target),
                ratio.peer,
                if verdict.met { "met" } else { "MISSED" }
            );
        }
    }
    for limit in &line.limits {
        let met = if limit.verdict.met { "met" } else { "MISSED" };
        let _ = writeln!(text, "  target: {} {}: {met}", limit.metric.label(), limit_bound(limit));
    }
    text
}

pub(crate) fn summary(report: &Report) -> String {
    let verdicts: Vec<_> = report.lines.iter().flat_map(Line::verdicts).collect();
    let met = verdicts.iter().filter(|verdict| verdict.met).count();
    match verdicts.len() {
        0 => format!("\nNo target was judged (none applies, or no peer is named `{BASELINE}`).\n"),
        all => format!("\n{met} of {all} targets met.\n"),
    }
}

pub(crate) fn json(report: &Report) -> Result<String> {
    Ok(serde_json::to_string_pretty(report)? + "\n")
}

/// Tables to paste into the docs: the ratios to each peer with their targets, then the figures behind them.
pub(crate) fn markdown(report: &Report) -> String {
    let mut text = format!("{}. {}.\n", report.contenders(), report.conditions());
    for peer in report.peers() {
        let _ = write!(text, "\n### Ratio to {} {}\n", peer.name, peer.version);
        for (metrics, lines) in tables(report) {
            let cell = |line: &Line, metric| {
                line.ratio(&peer.name, metric).map(judged).or_else(|| line.limit(metric).map(judged_alone))
            };
            let shown = |metric: &Metric| lines.iter().any(|line| cell(line, *metric).is_some());
            let metrics: Vec<_> = metrics.into_iter().filter(shown).collect();
            table(&mut text, &["work", "pipeline"], &metrics);
            for line in &lines {
                row(&mut text, &[line.about, &depth(line)], &metrics, |metric| cell(line, metric));
            }
        }
    }
    text.push_str("\n### Figures\n");
    for (metrics, lines) in tables(report) {
        table(&mut text, &["work", "pipeline", "server"], &metrics);
        for line in lines {
            for figures in &line.servers {
                row(&mut text, &[line.about, &depth(line), &figures.server], &metrics, |metric| {
                    Some(cell(figures, metric)).filter(|cell| !cell.is_empty())
                });
            }
        }
    }
    if report.lines.iter().any(is_row) {
        text.push_str(&side_by_side(report.lines.iter().filter(|line| is_row(line))));
    }
    if report.lines.iter().flat_map(|line| &line.servers).any(ServerFigures::limited_by_load) {
        let _ = write!(text, "\n{LOAD_LIMIT_NOTE}\n");
    }
    for note in &report.notes {
        let _ = write!(text, "\n{note}\n");
    }
    let _ = write!(text, "{}", summary(report));
    text
}

const LOAD_LIMIT_NOTE: &str = "`*` the load generator was busy all the time: the server could do more.";

/// Lines grouped by the metrics they have, in the order measured: load and memory make tables of their own.
fn tables(report: &Report) -> Vec<(Vec<Metric>, Vec<&Line>)> {
    let mut tables: Vec<(Vec<Metric>, Vec<&Line>)> = Vec::new();
    for line in report.lines.iter().filter(|line| !is_row(line)) {
        let metrics = line.metrics();
        match tables.iter_mut().find(|(of_table, _)| *of_table == metrics) {
            Some((_, lines)) => lines.push(line),
            None => tables.push((metrics, vec![line])),
        }
    }
    tables
}

fn table(text: &mut String, names: &[&str], metrics: &[Metric]) {
    let labels = names.iter().copied().chain(metrics.iter().map(|metric| metric.label()));
    let _ = write!(text, "\n| {} |\n", labels.collect::<Vec<_>>().join(" | "));
    let rules = names.iter().map(|_| "---").chain(metrics.iter().map(|_| "---:"));
    let _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
}

fn row(text: &mut String, names: &[&str], metrics: &[Metric], cell: impl Fn(Metric) -> Option<String>) {
    let cells = metrics.iter().map(|metric| cell(*metric).unwrap_or_else(|| "-".to_string()));
    let cells = names.iter().map(|name| name.to_string()).chain(cells);
    let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
}

/// `1.78x (>= 1.70, met)`, or the bare ratio where nothing is promised.
fn judged(ratio: &Ratio) -> String {
    match ratio.verdict {
        Some(verdict) => {
            let met = if verdict.met { "met" } else { "**missed**" };
            format!("{} ({}, {met})", ratio.text(), bound(verdict.target))
        }
        None => ratio.text(),
    }
}

/// `3.1% (<= 10.0%, met)`
fn judged_alone(limit: &Limit) -> String {
    let met = if limit.verdict.met { "met" } else { "**missed**" };
    format!("{} ({}, {met})", limit.metric.with_unit(limit.value), limit_bound(limit))
}

/// A bound in the unit of its metric.
pub(super) fn limit_bound(limit: &Limit) -> String {
    let value = limit.metric.with_unit(limit.verdict.target.value());
    match limit.verdict.target {
        Bound::AtLeast(_) => format!(">= {value}"),
        Bound::AtMost(_) => format!("<= {value}"),
    }
}

pub(super) fn bound(bound: Bound) -> String {
    match bound {
        Bound::AtLeast(least) => format!(">= {least:.2}"),
        Bound::AtMost(most) => format!("<= {most:.2}"),
    }
}

fn cell(figures: &ServerFigures, metric: Metric) -> String {
    let Some(value) = figures.median.get(&metric) else {
        return String::new();
    };
    let mark = if metric == Metric::LoadBusy && figures.limited_by_load() { " *" } else { "" };
    metric.with_unit(*value) + mark
}

fn title(line: &Line) -> String {
    match line.pipeline {
        Some(pipeline) => format!("{}, pipeline {pipeline}", line.about),
        None => format!("{} ({})", line.about, thousands(line.amount as f64)),
    }
}

pub(super) fn depth(line: &Line) -> String {
    line.pipeline.map_or("-".to_string(), |pipeline| pipeline.to_string())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::measure::{Sample, Target, limits, ratios};

    /// Two load lines, a memory line and a snapshot line; one target of five missed.
    pub(crate) fn example() -> Report {
        const TARGETS: &[Target] = &[
            Target { pipeline: Some(1), metric: Metric::Throughput, bound: Bound::AtLeast(1.05) },
            Target { pipeline: Some(16), metric: Metric::Throughput, bound: Bound::AtLeast(1.7) },
            Target { pipeline: None, metric: Metric::RssPerItem, bound: Bound::AtMost(0.6) },
            Target { pipeline: None, metric: Metric::LatencyP999, bound: Bound::AtMost(0.5) },
            Target { pipeline: None, metric: Metric::RssGrowth, bound: Bound::AtMost(0.1) },
        ];
        let line = |about, pipeline, subject: Sample, peer: Sample| {
            let servers = vec![ServerFigures::new("holdfast", vec![subject]), ServerFigures::new("redis", vec![peer])];
            let (ratios, limits) = (ratios(&servers, pipeline, TARGETS), limits(&servers, pipeline, TARGETS));
            Line {
                workload: "example",
                about,
                pipeline,
                amount: 1_000_000,
                servers,
                ratios,
                limits,
                waits_ms: Vec::new(),
            }
        };
        let load = |throughput, busy| Sample::from([(Metric::Throughput, throughput), (Metric::LoadBusy, busy)]);
        let memory = |bytes| Sample::from([(Metric::RssPerItem, bytes)]);
        let snapshot = |p999, growth| Sample::from([(Metric::LatencyP999, p999), (Metric::RssGrowth, growth)]);
        let contender =
            |name: &str| Contender { name: name.into(), version: "1.0".into(), command: "run <&> {port}".into() };
        Report {
            measured_at_unix_s: 0,
            machine: Machine {
                cpu: "Abacus <9>".into(),
                cores: 2,
                memory_mib: 2048,
                kernel: "6.1".into(),
                load_average: "0.10".into(),
            },
            disk: None,
            load_generator: "redis-benchmark 7".into(),
            clients: 50,
            keys: 100_000,
            rounds: 1,
            quick: false,
            servers: vec![contender("holdfast"), contender("redis")],
            lines: vec![
                line("HGET", Some(1), load(110_000.0, 0.8), load(100_000.0, 0.5)),
                line("HGET", Some(16), load(900_000.0, 0.99), load(600_000.0, 0.5)),
                line("Memory", None, memory(200.0), memory(400.0)),
                line("Snapshot", None, snapshot(2.0, 0.031), snapshot(5.0, 0.2)),
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn the_tables_hold_ratios_verdicts_and_figures() {
        let expected = "\
holdfast 1.0, redis 1.0. Abacus <9>, 2 cores, 2.0 GiB, Linux 6.1; 50 connections, 100,000 keys, one load process, median of 1.

### Ratio to redis 1.0

| work | pipeline | throughput |
| --- | --- | ---: |
| HGET | 1 | 1.10x (>= 1.05, met) |
| HGET | 16 | 1.50x (>= 1.70, **missed**) |

| work | pipeline | RSS each |
| --- | --- | ---: |
| Memory | - | 0.50x (<= 0.60, met) |

| work | pipeline | p99.9 | RSS growth |
| --- | --- | ---: | ---: |
| Snapshot | - | 0.40x (<= 0.50, met) | 3.1% (<= 10.0%, met) |

### Figures

| work | pipeline | server | throughput | load busy |
| --- | --- | --- | ---: | ---: |
| HGET | 1 | holdfast | 110,000/s | 80% |
| HGET | 1 | redis | 100,000/s | 50% |
| HGET | 16 | holdfast | 900,000/s | 99% * |
| HGET | 16 | redis | 600,000/s | 50% |

| work | pipeline | server | RSS each |
| --- | --- | --- | ---: |
| Memory | - | holdfast | 200 B |
| Memory | - | redis | 400 B |

| work | pipeline | server | p99.9 | RSS growth |
| --- | --- | --- | ---: | ---: |
| Snapshot | - | holdfast | 2.000 ms | 3.1% |
| Snapshot | - | redis | 5.000 ms | 20.0% |

`*` the load generator was busy all the time: the server could do more.

4 of 5 targets met.
";
        assert_eq!(markdown(&example()), expected);
    }

    #[test]
    fn the_console_judges_ratios_and_figures_of_our_own() {
        let text = console_line(&example().lines[3]);
        assert!(
            text.ends_with(
                "  target: p99.9 <= 0.50 of redis: met\n  \
             target: RSS growth <= 10.0%: met\n"
            ),
            "{text}"
        );
    }

    #[test]
    fn what_could_not_be_measured_is_said_before_the_verdict() {
        let mut report = example();
        report.notes.push("`example` was left out.".to_string());
        assert!(markdown(&report).ends_with("\n\n`example` was left out.\n\n4 of 5 targets met.\n"));
    }

    #[test]
    fn the_method_names_the_disk_that_was_used() {
        let mut report = example();
        report.disk = Some(Disk { path: "/tmp".into(), filesystem: "ext4".into(), sync_ms: 0.314 });
        assert!(report.method().ends_with("median of 1; journals on ext4, where a sync takes 0.31 ms"));
    }

    #[test]
    fn json_names_metrics_with_their_units() {
        let value: serde_json::Value = serde_json::from_str(&json(&example()).unwrap()).unwrap();
        let line = &value["lines"][1];
        assert_eq!(line["servers"][0]["median"]["throughput_per_s"], 900_000.0);
        assert_eq!(line["ratios"][0]["verdict"]["target"]["at_least"], 1.7);
        assert_eq!(line["ratios"][0]["verdict"]["met"], false);
    }

    #[test]
    fn rows_are_shown_side_by_side_with_a_dash_for_what_a_peer_lacks() {
        let sample = |longest, took| vec![Sample::from([(Metric::LatencyMax, longest), (Metric::CommandTime, took)])];
        let line = |about, subject, peer| {
            let servers = vec![ServerFigures::new("holdfast", subject), ServerFigures::new("redis", peer)];
            let ratios = ratios(&servers, None, &[]);
            let (limits, waits_ms) = (Vec::new(), Vec::new());
            Line { workload: "stalls", about, pipeline: None, amount: 1, servers, ratios, limits, waits_ms }
        };
        let lines = [line("KEYS", sample(2.0, 3.0), sample(4.0, 12.0)), line("HFIND", sample(1.0, 2.0), Vec::new())];
        let expected = "
| work | longest, holdfast | longest, redis | ratio to redis | command, holdfast | command, redis | ratio to redis |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
| KEYS | 2.000 ms | 4.000 ms | 0.50x | 3.000 ms | 12.000 ms | 0.25x |
| HFIND | 1.000 ms | - | - | 2.000 ms | - | - |
";
        assert_eq!(console(&lines), expected);
    }
}
