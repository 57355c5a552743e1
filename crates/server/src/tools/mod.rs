//! What the binary can do beside serving: check, export and import a data directory, bring the data of a running server in,
//! look at a server or a cluster, hand a log over, convert a redis.conf, and describe its command line.

mod cluster_status;
mod convert;
mod data_tools;
mod doctor;
mod export;
mod follow;
mod hand_over;
mod import;
mod link;
mod next_step;
mod ping;
mod repair;
mod shell;

use crate::config::{Follow, Loaded, ServerUrl, Tool};
use crate::platform::logging;
use anyhow::Result;
pub(crate) use cluster_status::SomethingIsWrong;
pub(crate) use data_tools::LeftOut;
pub(crate) use doctor::CannotCheck;

/// Runs a tool.
pub(crate) fn run(tool: Tool, loaded: &Loaded) -> Result<()> {
    match tool {
        Tool::Data(tool) => data_tools::run(tool, loaded),
        Tool::Repair(asked) => {
            repair::run(&asked, logging::start(loaded.settings.loglevel(), loaded.settings.log_as_json()))
        }
        Tool::ClusterStatus { as_json } => cluster_status::run(&loaded.settings, as_json),
        Tool::Export(asked) => {
            export::run(&asked, logging::start(loaded.settings.loglevel(), loaded.settings.log_as_json()))
        }
        Tool::Follow(asked) => follow(&asked),
        Tool::HandOver(asked) => hand_over::run(&asked, &loaded.settings),
        Tool::Ping(asked) => ping::run(&asked, &loaded.settings),
        Tool::Doctor(asked) => doctor::run(&asked, loaded),
        Tool::Completions(shell) => shell::completions(shell),
        Tool::Convert { file } => convert::run(&file),
        Tool::Man { output } => shell::man(output.as_deref()),
    }
}

/// Brings the data of a running server in, or asks the process that does for its end.
fn follow(asked: &Follow) -> Result<()> {
    let way = link::Way::new(asked.tls.clone());
    let to = ServerUrl::parse_whole(&asked.to)?.with_password(asked.to_password.as_deref());
    match &asked.from {
        None => follow::ask_for_promotion(&to, &way, asked.pause, asked.within),
        Some(from) => follow::run(follow::Request {
            from: ServerUrl::parse_whole(from)?.with_password(asked.from_password.as_deref()),
            to,
            way,
            replaces: asked.replaces,
            promotes: asked.promotes,
            pause: asked.pause,
            skip_unsupported: asked.skip_unsupported,
        }),
    }
}
