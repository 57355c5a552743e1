//! Walks the workloads over the servers, round by round. Knows nothing of how a workload drives a server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::load;
use crate::measure::{Disk, Line, Machine, Sample, ServerFigures, flush_disk, limits, ratios};
use crate::report::{self, Contender, Report};
use crate::servers::{self, Persistence, Server, ServerSpec};
use crate::workloads::{Driver, Length, Needs, RowFigures, Setup, Workload, durability};

/// The command line as meant.
pub(crate) struct Plan {
    pub(crate) workloads: Vec<&'static Workload>,
    pub(crate) pipelines: Vec<u32>,
    pub(crate) rounds: u32,
    pub(crate) length: Length,
    /// Whether what a server has written is flushed to the disk after its turn, since some keep a journal.
    pub(crate) flushes: bool,
    pub(crate) out: PathBuf,
    pub(crate) subject: ServerSpec,
    pub(crate) peers: Vec<ServerSpec>,
}

/// Measures, and writes the report to files.
pub(crate) fn run(plan: &Plan) -> Result<()> {
    let report = measure_all(plan)?;
    print!("{}", report::summary(&report));
    write(&plan.out, "results.json", &report::json(&report)?)?;
    write(&plan.out, "results.md", &report::markdown(&report))?;
    if let Some(waits) = report::waits_svg(&report) {
        write(&plan.out, "waits.svg", &waits)?;
    }
    write(&plan.out, "chart.svg", &report::svg(&report))
}

/// Measures, and shows what comes out on the way.
pub(crate) fn measure_all(plan: &Plan) -> Result<Report> {
    let mut report = Report {
        measured_at_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
        machine: Machine::describe(),
        disk: disk(plan)?,
        load_generator: load::redis_benchmark_version()?,
        clients: load::CLIENTS,
        keys: load::KEYS,
        rounds: plan.rounds,
        quick: plan.length == Length::Quick,
        servers: contenders(plan)?,
        lines: Vec::new(),
        notes: Vec::new(),
    };
    print!("{}", report::heading(&report));
    let mut kept = None;
    for workload in &plan.workloads {
        let mut notes = Vec::new();
        let lines =
            measure(plan, workload, &mut kept, &mut notes).with_context(|| format!("workload `{}`", workload.name))?;
        for note in notes {
            print!("\n{note}\n");
            report.notes.push(note);
        }
        print!("{}", report::console(&lines));
        report.lines.extend(lines);
    }
    Ok(report)
}

fn specs(plan: &Plan) -> impl Iterator<Item = &ServerSpec> {
    std::iter::once(&plan.subject).chain(&plan.peers)
}

/// The disk under the journals, if the plan has any.
fn disk(plan: &Plan) -> Result<Option<Disk>> {
    let journals = plan.flushes || plan.workloads.iter().any(|workload| workload.persistence != Persistence::Off);
    journals.then(|| Disk::under(&servers::data_root())).transpose()
}

/// Starts each server once: a wrong command should fail now, not after minutes of measuring.
fn contenders(plan: &Plan) -> Result<Vec<Contender>> {
    specs(plan)
        .map(|spec| {
            let version = Server::start(spec, Persistence::Off)?.version.clone();
            Ok(Contender { name: spec.name.clone(), version, command: spec.command.clone() })
        })
        .collect()
}

/// Servers that the next workload may find as it needs them.
struct Kept {
    setup: &'static Setup,
    servers: Vec<Server>,
}

/// The lines of a workload, or a note why there are none.
fn measure(plan: &Plan, workload: &Workload, kept: &mut Option<Kept>, notes: &mut Vec<String>) -> Result<Vec<Line>> {
    if let Driver::Search { run } = workload.driver {
        return Ok(vec![measure_search(plan, workload, kept, run)?]);
    }
    // The next servers have the machine, and its memory, for themselves.
    *kept = None;
    match workload.driver {
        Driver::RedisBenchmark { command, .. } => {
            let run = |server: &Server, pipeline, requests| load::redis_benchmark(server, command, pipeline, requests);
            let servers: Vec<_> = start_all(plan, workload)?.into_iter().map(Some).collect();
            measure_in_turns(plan, workload, &servers, run)
        }
        Driver::Clients { run, needs, .. } => {
            let servers = start_all(plan, workload)?;
            let able = able(workload, servers, needs, notes)?;
            measure_in_turns(plan, workload, &able, run)
        }
        Driver::Custom { run, needs, .. } => measure_alone(plan, workload, run, needs, notes),
        Driver::Rows { run, .. } => measure_rows(plan, workload, run),
        Driver::Own { program: Some(program), .. } if !is_installed(program) => {
            notes.push(format!("`{}` is left out: there is no {program} here.", workload.name));
            Ok(Vec::new())
        }
        Driver::Own { run, .. } => {
            let amount = workload.amount(None, plan.length);
            let lines = run(&plan.subject, amount)?.into_iter().map(|figures| Line {
                about: figures.about,
                waits_ms: figures.waits_ms,
                ..line(plan, workload, figures.pipeline, vec![vec![figures.sample]])
            });
            Ok(lines.collect())
        }
        Driver::Search { .. } => unreachable!("it was measured above"),
    }
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn start_all(plan: &Plan, workload: &Workload) -> Result<Vec<Server>> {
    specs(plan).enumerate().map(|(turn, spec)| Server::start(spec, persistence(workload, turn))).collect()
}

/// What the server that is measured in this turn does for its data to outlive it; the subject's is the first.
fn persistence(workload: &Workload, turn: usize) -> Persistence {
    if turn == 0 { workload.persistence } else { workload.persistence.of_peers() }
}

/// Each server, or nothing and a note in its place if it does not know a command that the workload needs.
fn able(
    workload: &Workload,
    servers: Vec<Server>,
    needs: Needs,
    notes: &mut Vec<String>,
) -> Result<Vec<Option<Server>>> {
    let able = |server: Server| match needs.missing(&server)? {
        Some(command) => {
            notes.push(format!("`{}` is left out of `{}`: it does not know {command}.", server.name, workload.name));
            Ok(None)
        }
        None => Ok(Some(server)),
    };
    servers.into_iter().map(able).collect()
}

/// All servers run at once and take turns within a round, so that whatever slows the machine slows them all.
fn measure_in_turns(
    plan: &Plan,
    workload: &Workload,
    servers: &[Option<Server>],
    run: impl Fn(&Server, u32, u64) -> Result<Sample>,
) -> Result<Vec<Line>> {
    if servers.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    preload_all(plan, workload, servers.iter().flatten())?;
    if workload.persistence != Persistence::Off {
        durability::settle();
    }
    let mut lines = Vec::new();
    for &pipeline in &plan.pipelines {
        let amount = workload.amount(Some(pipeline), plan.length);
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
        for round in 0..plan.rounds {
            for turn in turns(round, servers.len()) {
                let Some(server) = &servers[turn] else { continue };
                let run = || run(server, pipeline, amount).with_context(|| format!("server `{}`", server.name));
                samples[turn].push(match persistence(workload, turn) {
                    Persistence::Off => run()?,
                    _ => durability::journaled(server, amount, run)?,
                });
                if plan.flushes {
                    flush_disk(&servers::data_root())?;
                }
            }
        }
        lines.push(line(plan, workload, Some(pipeline), samples));
    }
    Ok(lines)
}

fn preload_all<'a>(plan: &Plan, workload: &Workload, servers: impl Iterator<Item = &'a Server>) -> Result<()> {
    let size = workload.setup.size(plan.length);
    for server in servers {
        (workload.setup.load)(server, size).with_context(|| format!("server `{}`", server.name))?;
    }
    Ok(())
}

/// As `measure_in_turns`, on servers that were kept, if they hold the right thing.
fn measure_search(
    plan: &Plan,
    workload: &Workload,
    kept: &mut Option<Kept>,
    run: fn(&Server, u64) -> Result<Sample>,
) -> Result<Line> {
    if kept.as_ref().is_none_or(|kept| !std::ptr::eq(kept.setup, workload.setup)) {
        *kept = None;
        let servers = start_all(plan, workload)?;
        preload_all(plan, workload, servers.iter())?;
        *kept = Some(Kept { setup: workload.setup, servers });
    }
    let servers = kept.as_ref().map_or(&[][..], |kept| &kept.servers);
    let amount = workload.amount(None, plan.length);
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
    for round in 0..plan.rounds {
        for turn in turns(round, servers.len()) {
            let server = &servers[turn];
            samples[turn].push(run(server, amount).with_context(|| format!("server `{}`", server.name))?);
        }
    }
    Ok(line(plan, workload, None, samples))
}

/// A fresh server for every round, with no other beside it: memory freed by an earlier round would hide growth.
fn measure_alone(
    plan: &Plan,
    workload: &Workload,
    run: fn(&mut Server, u64) -> Result<Sample>,
    needs: Needs,
    notes: &mut Vec<String>,
) -> Result<Vec<Line>> {
    let amount = workload.amount(None, plan.length);
    let specs: Vec<_> = specs(plan).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); specs.len()];
    let mut unable = vec![false; specs.len()];
    for round in 0..plan.rounds {
        for turn in turns(round, specs.len()) {
            if unable[turn] {
                continue;
            }
            let spec = specs[turn];
            let server = Server::start(spec, persistence(workload, turn))?;
            let Some(mut server) = able(workload, vec![server], needs, notes)?.remove(0) else {
                unable[turn] = true;
                continue;
            };
            (workload.setup.load)(&server, workload.setup.size(plan.length))
                .with_context(|| format!("server `{}`", spec.name))?;
            samples[turn].push(run(&mut server, amount).with_context(|| format!("server `{}`", spec.name))?);
        }
    }
    match unable.iter().all(|unable| *unable) {
        true => Ok(Vec::new()),
        false => Ok(vec![line(plan, workload, None, samples)]),
    }
}

/// A line for each row; the servers take turns, alone on the machine.
fn measure_rows(
    plan: &Plan,
    workload: &Workload,
    run: fn(&ServerSpec, u64) -> Result<Vec<RowFigures>>,
) -> Result<Vec<Line>> {
    let amount = workload.amount(None, plan.length);
    let specs: Vec<_> = specs(plan).collect();
    let mut names = Vec::new();
    let mut samples: Vec<Vec<Vec<Sample>>> = Vec::new();
    for round in 0..plan.rounds {
        for turn in turns(round, specs.len()) {
            let rows = run(specs[turn], amount).with_context(|| format!("server `{}`", specs[turn].name))?;
            names = rows.iter().map(|(name, _)| *name).collect();
            samples.resize(rows.len(), vec![Vec::new(); specs.len()]);
            for (of_row, (_, sample)) in samples.iter_mut().zip(rows) {
                of_row[turn].extend(sample);
            }
        }
    }
    let line = |(name, samples)| Line { about: name, ..line(plan, workload, None, samples) };
    Ok(names.into_iter().zip(samples).map(line).collect())
}

/// The order of the servers in a round. Every other one goes backwards, so that no server always follows the same
/// neighbour, whose last writes may still be on their way to the disk.
fn turns(round: u32, servers: usize) -> Vec<usize> {
    if round.is_multiple_of(2) { (0..servers).collect() } else { (0..servers).rev().collect() }
}

fn line(plan: &Plan, workload: &Workload, pipeline: Option<u32>, samples: Vec<Vec<Sample>>) -> Line {
    let servers: Vec<_> =
        specs(plan).zip(samples).map(|(spec, rounds)| ServerFigures::new(&spec.name, rounds)).collect();
    let ratios = ratios(&servers, pipeline, workload.targets);
    let limits = limits(&servers, pipeline, workload.targets);
    let amount = workload.amount(pipeline, plan.length);
    let (workload, about) = (workload.name, workload.about);
    Line { workload, about, pipeline, amount, servers, ratios, limits, waits_ms: Vec::new() }
}

/// Writes a file into a directory, which is made if need be.
pub(crate) fn write(dir: &Path, name: &str, text: &str) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let path = dir.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_noticed() {
        assert!(is_installed("cargo"));
        assert!(!is_installed("no such program"));
    }

    #[test]
    fn the_order_turns_with_every_round() {
        assert_eq!([turns(0, 3), turns(1, 3), turns(2, 3)], [[0, 1, 2], [2, 1, 0], [0, 1, 2]]);
    }
}
