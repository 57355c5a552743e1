//! Walks the workloads over the servers, round by round. Knows nothing of how a workload drives a server.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::chart;
use crate::figures::{Line, Sample, ServerFigures, ratios};
use crate::load;
use crate::machine::Machine;
use crate::report::{self, Contender, Report};
use crate::servers::{Server, ServerSpec};
use crate::workloads::{Driver, KEYS, Workload};

/// The command line as meant.
pub(crate) struct Plan {
    pub(crate) workloads: Vec<&'static Workload>,
    pub(crate) pipelines: Vec<u32>,
    pub(crate) rounds: u32,
    pub(crate) quick: bool,
    pub(crate) out: PathBuf,
    pub(crate) subject: ServerSpec,
    pub(crate) peers: Vec<ServerSpec>,
}

pub(crate) fn run(plan: &Plan) -> Result<()> {
    let mut report = Report {
        measured_at_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
        machine: Machine::describe(),
        load_generator: load::redis_benchmark_version()?,
        clients: load::CLIENTS,
        keys: KEYS,
        rounds: plan.rounds,
        quick: plan.quick,
        servers: contenders(plan)?,
        lines: Vec::new(),
    };
    print!("{}", report::heading(&report));
    for workload in &plan.workloads {
        for line in measure(plan, workload).with_context(|| format!("workload `{}`", workload.name))? {
            print!("{}", report::console_line(&line));
            report.lines.push(line);
        }
    }
    print!("{}", report::summary(&report));

    fs::create_dir_all(&plan.out).with_context(|| format!("cannot create {}", plan.out.display()))?;
    write(plan, "results.json", &report::json(&report)?)?;
    write(plan, "results.md", &report::markdown(&report))?;
    write(plan, "chart.svg", &chart::svg(&report))
}

fn specs(plan: &Plan) -> impl Iterator<Item = &ServerSpec> {
    std::iter::once(&plan.subject).chain(&plan.peers)
}

/// Starts each server once: a wrong command should fail now, not after minutes of measuring.
fn contenders(plan: &Plan) -> Result<Vec<Contender>> {
    specs(plan)
        .map(|spec| {
            let version = Server::start(spec)?.version.clone();
            Ok(Contender { name: spec.name.clone(), version, command: spec.command.clone() })
        })
        .collect()
}

fn measure(plan: &Plan, workload: &Workload) -> Result<Vec<Line>> {
    match workload.driver {
        Driver::RedisBenchmark { command, .. } => measure_in_turns(plan, workload, command),
        Driver::Custom { run, .. } => Ok(vec![measure_alone(plan, workload, run)?]),
    }
}

/// All servers run at once and take turns within a round, so that whatever slows the machine slows them all.
fn measure_in_turns(plan: &Plan, workload: &Workload, command: &[&str]) -> Result<Vec<Line>> {
    let servers = specs(plan).map(Server::start).collect::<Result<Vec<_>>>()?;
    for server in &servers {
        load::preload(server, workload.setup).with_context(|| format!("server `{}`", server.name))?;
    }
    let mut lines = Vec::new();
    for &pipeline in &plan.pipelines {
        let requests = workload.amount(Some(pipeline), plan.quick);
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); servers.len()];
        for _ in 0..plan.rounds {
            for (server, samples) in servers.iter().zip(&mut samples) {
                samples.push(load::redis_benchmark(server, command, pipeline, requests)?);
            }
        }
        lines.push(line(plan, workload, Some(pipeline), samples));
    }
    Ok(lines)
}

/// A fresh server for every round, with no other beside it: memory freed by an earlier round would hide growth.
fn measure_alone(plan: &Plan, workload: &Workload, run: fn(&Server, u64) -> Result<Sample>) -> Result<Line> {
    let amount = workload.amount(None, plan.quick);
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); specs(plan).count()];
    for _ in 0..plan.rounds {
        for (spec, samples) in specs(plan).zip(&mut samples) {
            let server = Server::start(spec)?;
            load::preload(&server, workload.setup).with_context(|| format!("server `{}`", server.name))?;
            samples.push(run(&server, amount).with_context(|| format!("server `{}`", server.name))?);
        }
    }
    Ok(line(plan, workload, None, samples))
}

fn line(plan: &Plan, workload: &Workload, pipeline: Option<u32>, samples: Vec<Vec<Sample>>) -> Line {
    let servers: Vec<_> =
        specs(plan).zip(samples).map(|(spec, rounds)| ServerFigures::new(&spec.name, rounds)).collect();
    let ratios = ratios(&servers, pipeline, workload.targets);
    let amount = workload.amount(pipeline, plan.quick);
    Line { workload: workload.name, about: workload.about, pipeline, amount, servers, ratios }
}

fn write(plan: &Plan, name: &str, text: &str) -> Result<()> {
    let path = plan.out.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {}", path.display());
    Ok(())
}
