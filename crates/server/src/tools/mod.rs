//! What the binary can do beside serving: check, export and import a data directory.

mod data_tools;
mod import;

pub(crate) use data_tools::{LeftOut, run};
