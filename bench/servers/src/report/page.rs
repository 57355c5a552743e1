//! Tables for a document that people read, and their places in it. Measures nothing, and knows nothing of which sections
//! there are.
//!
//! A place is between two comments, `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`, each on a line of its own; what stands
//! outside of them is written by hand and left alone.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::text::{Contender, Report, bound, depth, is_row, limit_bound};
use crate::measure::{Line, Metric, ServerFigures, thousands};

/// The names of all places in a page, in order.
pub(crate) fn places(page: &str) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for line in page.lines() {
        let Some(name) = line.strip_prefix("<!-- bench:").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        ensure!(!names.contains(&name), "the place `{name}` is there twice");
        names.push(name);
        place(page, name)?;
    }
    Ok(names)
}

/// The page with this text in a place.
pub(crate) fn fill(page: &str, name: &str, text: &str) -> Result<String> {
    let (start, end) = place(page, name)?;
    Ok(format!("{}\n{}\n\n{}", &page[..start], text.trim_end(), &page[end..]))
}

/// Where the text of a place begins and ends.
fn place(page: &str, name: &str) -> Result<(usize, usize)> {
    let (opening, closing) = (format!("<!-- bench:{name} -->\n"), format!("<!-- /bench:{name} -->\n"));
    let start = page.find(&opening).with_context(|| format!("the page has no `{}`", opening.trim_end()))?;
    let start = start + opening.len();
    let length = page[start..].find(&closing).with_context(|| format!("the page has no `{}`", closing.trim_end()))?;
    ensure!(!page[start..start + length].contains("<!-- bench:"), "the place `{name}` has another one in it");
    Ok((start, start + length))
}

/// What was measured on what, in a few lines.
pub(crate) fn conditions(reports: &[&Report]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let mut versions: Vec<String> = Vec::new();
    for server in reports.iter().flat_map(|report| &report.servers) {
        let name = format!("{} {}", product(&server.name), server.version);
        if !versions.contains(&name) {
            versions.push(name);
        }
    }
    format!("{}. {}; {}.\n", versions.join(", "), first.platform(), first.method())
}

/// The tables of one section: a row for each line, with the ratios to all peers and the subject's own figure in each cell.
pub(crate) fn tables(report: &Report) -> String {
    // Where the subject has no figures, a note says why.
    let measured = |line: &&Line| line.servers.first().is_some_and(|subject| !subject.median.is_empty());
    let (rows, lines): (Vec<_>, Vec<_>) = report.lines.iter().filter(measured).partition(|line| is_row(line));
    let mut text = String::new();
    let peers: Vec<_> = report.peers().iter().map(full_name).collect();
    let compared = lines.iter().any(|line| !line.ratios.is_empty());
    if compared {
        let order = if peers.len() > 1 { ", in this order" } else { "" };
        let _ = writeln!(text, "Ratio to {}{order}; in brackets, Holdfast's own figure.", peers.join(" / "));
    }
    let mut tables: Vec<(Vec<Metric>, Vec<&Line>)> = Vec::new();
    for line in lines {
        let columns = columns(line);
        match tables.iter_mut().find(|(of_table, _)| *of_table == columns) {
            Some((_, lines)) => lines.push(line),
            None => tables.push((columns, vec![line])),
        }
    }
    for (columns, lines) in &tables {
        text.push_str(&table(report, columns, lines));
    }
    if !rows.is_empty() {
        text.push_str(&table_of_rows(report, &rows));
    }
    if report.lines.iter().flat_map(|line| line.servers.first()).any(ServerFigures::limited_by_load) {
        text.push_str("\n`*` the load generator was busy all the time: the server could do more.\n");
    }
    for note in &report.notes {
        let _ = write!(text, "\n{note}\n");
    }
    text
}

/// What is shown of a line: CPU first, since it says most about a server on a machine that it shares with its load.
/// What has a target is shown in any case.
fn columns(line: &Line) -> Vec<Metric> {
    const LOAD: [Metric; 3] = [Metric::ServerCpu, Metric::Throughput, Metric::LatencyP99];
    const ETCD: [Metric; 3] = [Metric::EtcdCpu, Metric::EtcdThroughput, Metric::EtcdP99];
    let metrics = line.metrics();
    if LOAD.iter().all(|metric| metrics.contains(metric)) {
        let etcd = ETCD.into_iter().filter(|metric| metrics.contains(metric));
        let limited = line.limits.iter().map(|limit| limit.metric).filter(|metric| !LOAD.contains(metric));
        return LOAD.into_iter().chain(etcd).chain(limited).collect();
    }
    let hidden = [Metric::LoadBusy, Metric::LatencyP999Before, Metric::ChildShare];
    let cpu = metrics.contains(&Metric::ServerCpu).then_some(Metric::ServerCpu);
    let others = metrics.iter().copied().filter(|metric| *metric != Metric::ServerCpu && !hidden.contains(metric));
    cpu.into_iter().chain(others).collect()
}

fn table(report: &Report, columns: &[Metric], lines: &[&Line]) -> String {
    let judged = lines.iter().any(|line| line.verdicts().next().is_some());
    let pipelined = lines.iter().any(|line| line.pipeline.is_some());
    let mut head = vec!["work".to_string()];
    head.extend(pipelined.then(|| "pipeline".to_string()));
    head.extend(columns.iter().map(|metric| long_label(*metric).to_string()));
    head.extend(judged.then(|| "target".to_string()));
    let mut rules = vec!["---"; head.len()];
    rules[1..head.len() - usize::from(judged)].fill("---:");
    let mut text = format!("\n| {} |\n| {} |\n", head.join(" | "), rules.join(" | "));
    for line in lines {
        let mut cells = vec![line.about.to_string()];
        cells.extend(pipelined.then(|| depth(line)));
        cells.extend(columns.iter().map(|metric| cell(report, line, *metric)));
        cells.extend(judged.then(|| targets(line)));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

/// `0.39 / 0.45 (1.24 us)`
fn cell(report: &Report, line: &Line, metric: Metric) -> String {
    let own = line.servers.first().and_then(|figures| {
        let value = metric.with_unit(*figures.median.get(&metric)?);
        let busy = if metric == Metric::Throughput && figures.limited_by_load() { " *" } else { "" };
        Some(value + busy)
    });
    let Some(own) = own else { return "-".to_string() };
    let ratios = report.peers().iter().map(|peer| line.ratio(&peer.name, metric).map(|ratio| ratio.ratio));
    let ratios: Vec<_> = ratios.collect();
    if ratios.iter().all(Option::is_none) {
        return own;
    }
    let ratios = ratios.into_iter().map(|ratio| ratio.map_or("-".to_string(), ratio_text));
    format!("{} ({own})", ratios.collect::<Vec<_>>().join(" / "))
}

fn ratio_text(ratio: f64) -> String {
    match ratio {
        ..0.01 => "< 0.01".to_string(),
        ..10.0 => format!("{ratio:.2}"),
        ..100.0 => format!("{ratio:.1}"),
        _ => thousands(ratio),
    }
}

/// What was promised of a line, and whether it holds.
fn targets(line: &Line) -> String {
    let judged = |metric: Metric, bound: String, met: bool| {
        format!("{} {bound}: {}", metric.label(), if met { "met" } else { "**missed**" })
    };
    let ratios = line.ratios.iter().filter_map(|ratio| {
        let verdict = ratio.verdict?;
        // Two decimals would show a target that was just missed as met.
        let near = (verdict.target.value() - ratio.ratio).abs() < 0.005;
        let exact = if near { format!(" ({:.3})", ratio.ratio) } else { String::new() };
        Some(judged(ratio.metric, bound(verdict.target) + &exact, verdict.met))
    });
    let limits = line.limits.iter().map(|limit| judged(limit.metric, limit_bound(limit), limit.verdict.met));
    ratios.chain(limits).collect::<Vec<_>>().join("; ")
}

/// Short lines side by side: for each metric the figures of all servers.
fn table_of_rows(report: &Report, rows: &[&Line]) -> String {
    const METRICS: [(Metric, &str); 2] = [(Metric::LatencyMax, "longest PING"), (Metric::CommandTime, "the command")];
    let mut head = vec!["work".to_string()];
    for (_, label) in METRICS {
        head.extend(report.servers.iter().map(|server| format!("{label}, {}", product(&server.name))));
    }
    let mut rules = vec!["---:"; head.len()];
    rules[0] = "---";
    let mut text = format!("\n| {} |\n| {} |\n", head.join(" | "), rules.join(" | "));
    for line in rows {
        let mut cells = vec![line.about.to_string()];
        for (metric, _) in METRICS {
            cells.extend(line.servers.iter().map(|figures| match figures.median.get(&metric) {
                Some(ms) if *ms < 10.0 => format!("{ms:.1} ms"),
                Some(ms) => format!("{ms:.0} ms"),
                None => "-".to_string(),
            }));
        }
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn long_label(metric: Metric) -> &'static str {
    if metric == Metric::ServerCpu { "CPU per operation" } else { metric.label() }
}

/// `Redis 7.0.15 with AOF`
fn full_name(server: &Contender) -> String {
    let aof = if server.name.ends_with(AOF) { " with AOF" } else { "" };
    format!("{} {}{aof}", product(&server.name), server.version)
}

/// A server that keeps an append-only file, though it does not by default, has this at the end of its name.
pub(crate) const AOF: &str = "-aof";

/// The name of a server with its first letter in upper case.
fn product(name: &str) -> String {
    let name = name.strip_suffix(AOF).unwrap_or(name);
    let mut letters = name.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Sample, ratios};
    use crate::report::text::tests::example;

    const PAGE: &str = "# Page\n\n<!-- bench:one -->\nold\n<!-- /bench:one -->\n\nBy hand.\n\n<!-- bench:two -->\n<!-- /bench:two -->\n";

    #[test]
    fn a_place_is_filled_and_the_rest_is_left_alone() {
        assert_eq!(places(PAGE).unwrap(), ["one", "two"]);
        let page = fill(PAGE, "one", "| a |\n\n").unwrap();
        assert_eq!(page, PAGE.replace("old\n", "\n| a |\n\n"));
        assert_eq!(fill(&page, "one", "| a |").unwrap(), page);
        assert_eq!(places(&fill(&page, "two", "b").unwrap()).unwrap(), ["one", "two"]);
    }

    #[test]
    fn a_page_with_a_place_that_is_not_whole_is_refused() {
        let refused = |page: &str| places(page).unwrap_err().to_string();
        assert_eq!(refused(&PAGE.replace("<!-- /bench:one -->\n", "")), "the page has no `<!-- /bench:one -->`");
        assert_eq!(refused(&PAGE.replace("two", "one")), "the place `one` is there twice");
        let nested = "<!-- bench:a -->\n<!-- bench:b -->\n<!-- /bench:b -->\n<!-- /bench:a -->\n";
        assert_eq!(refused(nested), "the place `a` has another one in it");
        assert!(fill(PAGE, "three", "").is_err());
    }

    #[test]
    fn cells_have_the_ratios_to_all_peers_and_our_own_figure() {
        let mut report = example();
        report.servers[1].name = "redis-aof".into();
        report.servers.push(Contender { name: "valkey".into(), version: "9".into(), command: String::new() });
        let sample = |cpu, throughput, p99| {
            let load = [(Metric::ServerCpu, cpu), (Metric::Throughput, throughput), (Metric::LatencyP99, p99)];
            vec![Sample::from(load).into_iter().chain([(Metric::LoadBusy, 0.99)]).collect()]
        };
        let servers = vec![
            ServerFigures::new("holdfast", sample(1.0, 300_000.0, 0.5)),
            ServerFigures::new("redis-aof", sample(4.0, 100_000.0, 1.0)),
            ServerFigures::new("valkey", Vec::new()),
        ];
        let ratios = ratios(&servers, Some(16), &[]);
        report.lines = vec![Line {
            workload: "hset",
            about: "HSET",
            pipeline: Some(16),
            amount: 1,
            servers,
            ratios,
            limits: Vec::new(),
            waits_ms: Vec::new(),
        }];
        let expected = "\
Ratio to Redis 1.0 with AOF / Valkey 9, in this order; in brackets, Holdfast's own figure.

| work | pipeline | CPU per operation | throughput | p99 |
| --- | ---: | ---: | ---: | ---: |
| HSET | 16 | 0.25 / - (1.00 us) | 3.00 / - (300,000/s *) | 0.50 / - (0.500 ms) |

`*` the load generator was busy all the time: the server could do more.
";
        assert_eq!(tables(&report), expected);
        let conditions = conditions(&[&report]);
        assert!(conditions.starts_with("Holdfast 1.0, Redis 1.0, Valkey 9. Abacus <9>, 2 cores, "), "{conditions}");
    }

    #[test]
    fn targets_are_shown_where_there_are_any() {
        let mut report = example();
        let text = tables(&report);
        assert!(text.contains("| HGET | 16 | 1.50 (900,000/s *) | throughput >= 1.70: **missed** |"), "{text}");
        assert!(text.contains("| Snapshot | 0.40 (2.000 ms) | 3.1% | p99.9 <= 0.50: met; RSS growth <= 10.0%: met |"));
        report.lines.iter_mut().for_each(Line::forget_verdicts);
        assert!(!tables(&report).contains("target"));
    }

    #[test]
    fn ratios_have_as_many_digits_as_say_something() {
        let ratios = [0.002, 0.394, 9.994, 14.24, 1_194.3].map(ratio_text);
        assert_eq!(ratios, ["< 0.01", "0.39", "9.99", "14.2", "1,194"]);
    }

    #[test]
    fn a_line_that_the_subject_is_left_out_of_is_not_shown() {
        let mut report = example();
        report.lines[0].servers[0] = ServerFigures::new("holdfast", Vec::new());
        report.notes.push("`holdfast` is left out.".into());
        let text = tables(&report);
        assert!(!text.contains("| HGET | 1 |") && text.contains("| HGET | 16 |"), "{text}");
        assert!(text.ends_with("\n`holdfast` is left out.\n"));
    }
}
