//! Starts the process that takes this one's place (SIGUSR2): the same command line, from the file that is there now, as
//! `holdfast upgrade`. Knows processes; refuses to know how a place is taken.
//!
//! It belongs to the service that systemd has started, but must not be a child of this process: systemd watches only its
//! own children, and would not restart what it does not watch. So a process in between (`holdfast upgrade --detach`)
//! starts it and ends; then it is the child of systemd.

use super::Beginning;
use crate::platform::huge_pages::{self, TurnedOff};
use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

/// The flag of the process in between.
const DETACH: &str = "--detach";

/// Starts one, in the background. What becomes of it is logged.
pub(super) fn start(beginning: Beginning, huge_pages_off: TurnedOff) {
    let start = move || match huge_pages::as_they_were(huge_pages_off, || start_detached(beginning)) {
        Ok(process) => {
            tracing::info!(
                process = process.as_raw_nonzero(),
                "SIGUSR2: a process is started that takes this one's place"
            );
            // If all goes well, this process ends first.
            wait_for_end(process);
            tracing::error!("the process that was to take this one's place has ended: this one goes on");
        }
        Err(error) => {
            let error = format_args!("{error:#}");
            tracing::error!(error, "SIGUSR2: no process that takes this one's place could be started: this one goes on")
        }
    };
    if let Err(error) = std::thread::Builder::new().name("successor".into()).spawn(start) {
        tracing::error!(%error, "SIGUSR2: no thread that starts the next process could be started");
    }
}

/// Starts the process in between, and returns what it has started.
fn start_detached(beginning: Beginning) -> Result<Pid> {
    let mut command = Command::new(own_name());
    command.args(arguments(beginning, std::env::args_os().skip(1)));
    // The time of the manager's watchdog holds for the next process, too.
    command.env_remove("WATCHDOG_PID");
    // Its own output is the number; that of the next process is ours, and is handed on in the place of the input.
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    let done = command.stdin(output).stderr(Stdio::inherit()).output()?;
    ensure!(done.status.success(), "it ended with {}", done.status);
    let number = String::from_utf8_lossy(&done.stdout);
    let number = number.trim().parse().ok().and_then(Pid::from_raw);
    number.context("it does not say which process it has started")
}

/// The process in between: starts this command line without its flag, and tells the number of that process.
pub(crate) fn detach() -> Result<()> {
    let output = std::io::stdin().as_fd().try_clone_to_owned()?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != DETACH);
    let child = Command::new(own_name()).args(arguments).stdin(Stdio::null()).stdout(output).spawn()?;
    println!("{}", child.id());
    Ok(())
}

/// As this process was called: a file that has taken its place has the same name.
fn own_name() -> OsString {
    std::env::args_os().next().unwrap_or_else(|| "holdfast".into())
}

fn arguments(beginning: Beginning, own: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let upgrade = (beginning == Beginning::Start).then(|| OsString::from("upgrade"));
    // Last: before the flags of the settings, `upgrade` has to come first.
    upgrade.into_iter().chain(own).chain([OsString::from(DETACH)])
}

fn wait_for_end(process: Pid) {
    // Without a process of that number it has ended.
    let Ok(process) = pidfd_open(process, PidfdFlags::empty()) else { return };
    let mut ends = [PollFd::new(&process, PollFlags::IN)];
    while poll(&mut ends, None).is_err() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_process_has_the_same_flags() {
        let own = || ["--port", "7"].into_iter().map(OsString::from);
        assert_eq!(arguments(Beginning::Start, own()).collect::<Vec<_>>(), ["upgrade", "--port", "7", "--detach"]);
        let upgraded = || ["upgrade", "--port", "7"].into_iter().map(OsString::from);
        assert_eq!(
            arguments(Beginning::Upgrade, upgraded()).collect::<Vec<_>>(),
            ["upgrade", "--port", "7", "--detach"]
        );
    }
}
