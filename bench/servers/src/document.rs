//! What docs/BENCHMARKS.md shows: which workloads, on servers with which settings, in which order. Measures them in one
//! run and rewrites the tables and the chart. Knows nothing of how a workload is driven or a table is laid out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::report::{self, AOF, Report};
use crate::run::{self, Plan};
use crate::servers::{Persistence, ServerSpec, shell_quoted};
use crate::workloads::{self, Length};

/// The command line as meant.
pub(crate) struct Document {
    /// Each is told its persistence.
    pub(crate) holdfast: ServerSpec,
    pub(crate) redis: ServerSpec,
    pub(crate) valkey: Option<ServerSpec>,
    pub(crate) rounds: u32,
    pub(crate) quick: bool,
    /// Sections to measure; all, if it is empty.
    pub(crate) only: Vec<String>,
    pub(crate) out: PathBuf,
}

/// One question, and the table that answers it.
struct Section {
    /// Its place in the page.
    name: &'static str,
    settings: Settings,
    workloads: &'static [&'static str],
    pipelines: &'static [u32],
    /// Memory is the same in every round, some workloads have rounds of their own, and some take long.
    rounds_max: u32,
    /// Whether the targets of the workloads are meant for these settings.
    judged: bool,
    /// Pipelines whose lines are in the chart.
    chart: &'static [Option<u32>],
}

/// Who is compared, started how.
#[derive(Clone, Copy, PartialEq)]
enum Settings {
    /// Holdfast with its journal and its index, as it is by default; Redis without and with AOF, Valkey with AOF.
    Default,
    /// Holdfast without journal and index; Redis and Valkey without AOF.
    Bare,
    /// As each workload says.
    OfWorkload,
    /// The same, beside Redis alone, where every server more takes minutes.
    OfWorkloadBesideRedis,
}

const SECTIONS: &[Section] = &[
    Section {
        name: "claims",
        settings: Settings::Default,
        workloads: &["records-claim-next", "records-life-claim", "records-claim", "records-wakeup"],
        pipelines: &[1, 16],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[Some(1), Some(16)],
    },
    Section {
        name: "indexed",
        settings: Settings::Default,
        workloads: &["hset-indexed"],
        pipelines: &[1, 16, 64],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[Some(1), Some(16)],
    },
    Section {
        name: "commands",
        settings: Settings::Default,
        workloads: &["set", "get", "hget", "hgetall"],
        pipelines: &[1, 16, 64],
        rounds_max: u32::MAX,
        judged: false,
        chart: &[Some(1), Some(16)],
    },
    Section {
        name: "queues",
        settings: Settings::Default,
        workloads: &[
            "lists-queue",
            "lists-lmove",
            "lists-lrange",
            "streams-xadd",
            "streams-group",
            "sets-sadd",
            "sets-sismember",
        ],
        pipelines: &[1, 16, 64],
        rounds_max: u32::MAX,
        judged: false,
        chart: &[],
    },
    Section {
        name: "scripts",
        settings: Settings::Default,
        workloads: &["coordination-evalsha", "coordination-fcall", "coordination-multi", "coordination-publish"],
        pipelines: &[1, 16],
        rounds_max: u32::MAX,
        judged: false,
        chart: &[],
    },
    Section {
        name: "cells",
        settings: Settings::Default,
        workloads: &["cells", "coordination-txn"],
        pipelines: &[1, 16],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "runs",
        settings: Settings::Default,
        workloads: &["runs-append", "runs-events", "runs-long"],
        pipelines: &[1, 16],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "runs-memory",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["runs-memory"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "exactly-once",
        settings: Settings::Default,
        workloads: &["registers-own", "sessions-call", "sessions-own"],
        pipelines: &[1, 16],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "etcd",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["coordination-etcd"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "search",
        settings: Settings::Default,
        workloads: &["records-stuck"],
        pipelines: &[],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "memory",
        settings: Settings::Default,
        workloads: &["memory-records", "memory-idle", "sets-memory", "lists-memory", "streams-memory"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[None],
    },
    Section {
        name: "index-cost",
        settings: Settings::OfWorkload,
        workloads: &["records-index"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "groups",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["groups-writes", "groups-other-writes", "groups-claim", "groups-blocked", "groups-memory"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "groups-life",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["groups-life"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "groups-neighbour",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["groups-neighbour"],
        pipelines: &[],
        rounds_max: 1,
        judged: true,
        chart: &[],
    },
    Section {
        name: "durability",
        settings: Settings::OfWorkload,
        workloads: &["durability-always", "durability-start", "durability-snapshot"],
        pipelines: &[1, 16],
        rounds_max: 2,
        judged: true,
        chart: &[],
    },
    Section {
        name: "bare",
        settings: Settings::Bare,
        workloads: &["set", "get", "hset", "hget", "hmget", "hgetall"],
        pipelines: &[1, 16, 64],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "bare-queues",
        settings: Settings::Bare,
        workloads: &[
            "lists-queue",
            "lists-lmove",
            "lists-lrange",
            "lists-wakeup",
            "streams-xadd",
            "streams-group",
            "sets-sadd",
            "sets-sismember",
            "sets-sinter",
        ],
        pipelines: &[1, 16, 64],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "bare-sorted-sets",
        settings: Settings::Bare,
        workloads: &["sorted-sets"],
        pipelines: &[16],
        rounds_max: u32::MAX,
        judged: true,
        chart: &[],
    },
    Section {
        name: "stalls",
        settings: Settings::OfWorkloadBesideRedis,
        workloads: &["stalls", "stalls-cells", "stalls-registers", "stalls-sequences"],
        pipelines: &[],
        rounds_max: 1,
        judged: false,
        chart: &[],
    },
];

/// The place that says what was measured on what.
const CONDITIONS: &str = "conditions";

const PAGE: &str = "docs/BENCHMARKS.md";
const CHART: &str = "docs/benchmarks.svg";
/// The chart of the one section that is about waits.
const WAITS: &str = "docs/groups-neighbour.svg";

/// Measures, and writes the page. A quick run or a part is written beside the other results, never to `docs`: figures that
/// are not to be quoted, or of different runs, must not get there.
pub(crate) fn run(document: &Document) -> Result<()> {
    let page =
        fs::read_to_string(PAGE).with_context(|| format!("cannot read {PAGE} (not in the repository's root?)"))?;
    check_places(&page)?;
    let sections = selected(&document.only)?;
    fs::create_dir_all(&document.out).with_context(|| format!("cannot create {}", document.out.display()))?;
    let no_index = document.out.join("no-index.toml");
    fs::write(&no_index, "index = []\n").with_context(|| format!("cannot write {}", no_index.display()))?;

    let mut measured = Vec::new();
    for section in &sections {
        println!("\n# {}", section.name);
        let plan = document.plan(section, &no_index)?;
        let mut report = run::measure_all(&plan).with_context(|| format!("section `{}`", section.name))?;
        if !section.judged {
            report.lines.iter_mut().for_each(|line| line.forget_verdicts());
        }
        // At once: what was measured is not lost with a section that fails.
        run::write(&document.out, &format!("{}.json", section.name), &report::json(&report)?)?;
        run::write(&document.out, &format!("{}.md", section.name), &report::tables(&report))?;
        measured.push((*section, report));
    }

    let page = filled(page, &measured)?;
    let waits = measured.iter().find_map(|(_, report)| report::waits_svg(report));
    let files = [(PAGE, Some(page)), (WAITS, waits), (CHART, Some(chart(measured)))];
    for (path, text) in files.into_iter().filter_map(|(path, text)| Some((path, text?))) {
        match document.quick || !document.only.is_empty() {
            true => run::write(&document.out, path.trim_start_matches("docs/"), &text)?,
            false => run::write(Path::new("."), path, &text)?,
        }
    }
    Ok(())
}

/// Every section has its place in the page, and every place its section.
fn check_places(page: &str) -> Result<()> {
    let places = report::places(page).context(PAGE)?;
    let names = || std::iter::once(CONDITIONS).chain(SECTIONS.iter().map(|section| section.name));
    for name in names() {
        ensure!(places.contains(&name), "{PAGE} has no place `{name}`");
    }
    for place in places {
        ensure!(names().any(|name| name == place), "{PAGE} has a place `{place}`, which nothing is measured for");
    }
    Ok(())
}

fn selected(only: &[String]) -> Result<Vec<&'static Section>> {
    for name in only {
        if !SECTIONS.iter().any(|section| section.name == name) {
            let names: Vec<_> = SECTIONS.iter().map(|section| section.name).collect();
            bail!("{PAGE} has no section `{name}`; there are: {}", names.join(", "));
        }
    }
    let wanted = |section: &&Section| only.is_empty() || only.iter().any(|name| name == section.name);
    Ok(SECTIONS.iter().filter(wanted).collect())
}

fn filled(mut page: String, measured: &[(&Section, Report)]) -> Result<String> {
    for (section, report) in measured {
        page = report::fill(&page, section.name, &report::tables(report))?;
    }
    let reports: Vec<_> = measured.iter().map(|(_, report)| report).collect();
    report::fill(&page, CONDITIONS, &report::conditions(&reports))
}

/// The chart of the lines that say most.
fn chart(measured: Vec<(&Section, Report)>) -> String {
    let mut lines = Vec::new();
    let mut all: Option<Report> = None;
    for (section, mut report) in measured {
        lines.extend(report.lines.drain(..).filter(|line| section.chart.contains(&line.pipeline)));
        // Only sections of the same settings are in the chart.
        if all.is_none() && !section.chart.is_empty() {
            all = Some(report);
        }
    }
    all.map_or(String::new(), |report| report::svg(&Report { lines, ..report }))
}

impl Document {
    fn plan(&self, section: &Section, no_index: &Path) -> Result<Plan> {
        // One by one, so that the rows are in the order of the section.
        let selected = section.workloads.iter().map(|name| workloads::select(&[name.to_string()]));
        let workloads = selected.collect::<Result<Vec<_>>>()?.concat();
        let (subject, peers) = self.servers(section.settings, no_index);
        Ok(Plan {
            workloads,
            pipelines: section.pipelines.to_vec(),
            rounds: self.rounds.min(section.rounds_max),
            length: if self.quick { Length::Quick } else { Length::Third },
            flushes: section.settings == Settings::Default,
            out: self.out.clone(),
            subject,
            peers,
        })
    }

    /// Holdfast, and what it is compared with.
    fn servers(&self, settings: Settings, no_index: &Path) -> (ServerSpec, Vec<ServerSpec>) {
        let valkey = self.valkey.iter();
        let (off, journal) = (Persistence::Off, Persistence::EverySecond);
        match settings {
            Settings::Default => {
                let with_aof = |server: &ServerSpec| server.with_persistence(&format!("{}{AOF}", server.name), journal);
                let redis = [self.redis.with_persistence(&self.redis.name, off), with_aof(&self.redis)];
                let valkey = valkey.map(with_aof);
                let holdfast = self.holdfast.with_persistence(&self.holdfast.name, journal);
                (holdfast, redis.into_iter().chain(valkey).collect())
            }
            Settings::Bare => {
                let without = |server: &ServerSpec| server.with_persistence(&server.name, off);
                let mut holdfast = without(&self.holdfast);
                holdfast.command += &format!(" --config {}", shell_quoted(&no_index.to_string_lossy()));
                (holdfast, std::iter::once(&self.redis).chain(valkey).map(without).collect())
            }
            Settings::OfWorkload => {
                (self.holdfast.clone(), std::iter::once(&self.redis).chain(valkey).cloned().collect())
            }
            Settings::OfWorkloadBesideRedis => (self.holdfast.clone(), vec![self.redis.clone()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let spec = |name| ServerSpec::new(name, &format!("{name}-server --port {{port}} {{persistence}}")).unwrap();
        Document {
            holdfast: spec("holdfast"),
            redis: spec("redis"),
            valkey: Some(spec("valkey")),
            rounds: 3,
            quick: false,
            only: Vec::new(),
            out: "out".into(),
        }
    }

    #[test]
    fn the_page_has_a_place_for_every_section() {
        let page = include_str!("../../../docs/BENCHMARKS.md");
        check_places(page).unwrap();
        let page = page.replace("bench:claims ", "bench:claim ");
        assert_eq!(check_places(&page).unwrap_err().to_string(), "docs/BENCHMARKS.md has no place `claims`");
    }

    #[test]
    fn every_section_has_workloads_and_the_servers_that_they_need() {
        for section in SECTIONS {
            let plan = document().plan(section, Path::new("no-index.toml")).unwrap();
            let journaled = plan.workloads.iter().any(|workload| workload.persistence != Persistence::Off);
            for server in std::iter::once(&plan.subject).chain(&plan.peers) {
                // A workload with a journal finds one, unless it is meant against servers without.
                let told = server.is_told_persistence() || server.command.contains("--appendonly");
                assert!(!journaled || told, "{}: {}", section.name, server.command);
                let aof = server.command.contains("--appendonly yes");
                assert_eq!(server.name.ends_with(AOF), aof && server.name != "holdfast", "{}", server.command);
            }
            assert!(plan.peers.iter().any(|peer| peer.name == "redis"), "{}", section.name);
        }
    }

    #[test]
    fn the_default_is_a_journal_and_bare_is_neither_journal_nor_index() {
        let servers = |settings| document().servers(settings, Path::new("no index.toml"));
        let (holdfast, peers) = servers(Settings::Default);
        assert!(holdfast.command.contains("--appendonly yes") && !holdfast.command.contains("--config"));
        assert_eq!(peers.iter().map(|peer| &*peer.name).collect::<Vec<_>>(), ["redis", "redis-aof", "valkey-aof"]);
        let (holdfast, peers) = servers(Settings::Bare);
        assert!(
            holdfast.command.ends_with("--appendonly no --save '' --config 'no index.toml'"),
            "{}",
            holdfast.command
        );
        assert_eq!(peers.iter().map(|peer| &*peer.name).collect::<Vec<_>>(), ["redis", "valkey"]);
    }

    #[test]
    fn an_unknown_section_is_refused() {
        assert_eq!(selected(&[]).unwrap().len(), SECTIONS.len());
        assert_eq!(selected(&["bare".into()]).unwrap().len(), 1);
        let error = selected(&["claim".into()]).err().unwrap().to_string();
        assert!(error.starts_with("docs/BENCHMARKS.md has no section `claim`; there are: claims, "), "{error}");
    }
}
