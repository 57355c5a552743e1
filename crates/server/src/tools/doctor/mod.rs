//! `holdfast doctor`: looks at a machine, a data directory and a configuration, or at a running server, and says what to do.
//! Knows how findings are shown; what is checked is in the files beside it.

mod clock;
mod configuration;
mod disk;
mod findings;
mod machine;
mod server;

use super::cluster_status::SomethingIsWrong;
use crate::config::{Doctor, Examined, Loaded};
use anyhow::Result;
use findings::Findings;
use machine::Machine;
use std::path::Path;

/// What was named cannot be looked at, so nothing is known of it. Its exit code says so to programs.
#[derive(Debug)]
pub(crate) struct CannotCheck(anyhow::Error);

impl CannotCheck {
    pub(crate) const EXIT_CODE: u8 = 2;
}

impl std::error::Error for CannotCheck {}

impl std::fmt::Display for CannotCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "nothing could be checked: {:#}", self.0)
    }
}

pub(super) fn run(doctor: &Doctor, loaded: &Loaded) -> Result<()> {
    let findings = match &doctor.examined {
        Examined::Server(asked) => server::check(asked, &loaded.settings),
        Examined::Directory(dir) => check_directory(dir, loaded),
    };
    let findings = findings.map_err(CannotCheck)?;
    match doctor.as_json {
        true => println!("{}", findings.to_json()),
        false => print!("{}", findings.shown()),
    }
    if findings.ask_for_action() { Err(SomethingIsWrong.into()) } else { Ok(()) }
}

/// The machine, the directory and the configuration of a server that need not run.
fn check_directory(dir: &Path, loaded: &Loaded) -> Result<Findings> {
    let mut findings = Findings::default();
    let machine = Machine::this();
    let clock = clock::Watch::begin();
    disk::check(dir, &loaded.settings, &mut findings)?;
    machine.check(&loaded.settings, &mut findings);
    clock.check(dir, &mut findings);
    configuration::check_file(loaded, &mut findings);
    configuration::check(&loaded.settings, configuration::Users::of(loaded), &mut findings);
    Ok(findings)
}
