//! What the binary can do beside serving: check, export and import a data directory, look at a cluster, and hand a log
//! over.

mod cluster_status;
mod data_tools;
mod hand_over;
mod import;

use crate::config::{Loaded, Tool};
use anyhow::Result;
pub(crate) use cluster_status::SomethingIsWrong;
pub(crate) use data_tools::LeftOut;

/// Runs a tool.
pub(crate) fn run(tool: Tool, loaded: &Loaded) -> Result<()> {
    match tool {
        Tool::Data(tool) => data_tools::run(tool, loaded),
        Tool::ClusterStatus { as_json } => cluster_status::run(&loaded.settings, as_json),
        Tool::HandOver(asked) => hand_over::run(&asked, &loaded.settings),
    }
}
