//! The process that follows, and the one that asks it for the promotion.

use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Connection, binary};

use crate::support::{Dir, eventually};

const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Tool {
    process: Child,
    dir: Dir,
}

impl Tool {
    /// Starts `holdfast import --follow FROM --to TO` with more flags.
    pub(crate) fn follow(from: &str, to: &str, more: &[&str]) -> Tool {
        let dir = Dir::fresh();
        let mut command = Command::new(binary());
        command.args(["import", "--follow", from, "--to", to]).args(more).stdin(Stdio::null());
        dir.keep_output(&mut command);
        Tool { process: command.spawn().expect("cannot start the tool"), dir }
    }

    pub(crate) fn stdout(&self) -> String {
        self.dir.read("stdout")
    }

    pub(crate) fn stderr(&self) -> String {
        self.dir.read("stderr")
    }

    /// Waits until it has said something on stderr.
    #[track_caller]
    pub(crate) fn wait_to_say(&mut self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !self.stderr().contains(text) {
            let ended = self.process.try_wait().expect("cannot ask for the process");
            assert!(ended.is_none() && Instant::now() < deadline, "never {text:?}, {ended:?}: {}", self.stderr());
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.process.try_wait().expect("cannot ask for the process") {
                return status;
            }
            assert!(Instant::now() < deadline, "it never ends: {}", self.stderr());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.process.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "cannot send SIG{name}");
    }

    pub(crate) fn kill(mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `holdfast import --promote`.
pub(crate) fn promote(to: &str, more: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.args(["import", "--promote", "--to", to, "--within", "100"]).args(more);
    command.output().expect("cannot start the tool")
}

/// Waits until the target has the offset of the source.
#[track_caller]
pub(crate) fn wait_until_following(target: &mut Connection) {
    eventually("it follows", || target.run("HGET holdfast:import state").to_string() == "\"following\"");
}
