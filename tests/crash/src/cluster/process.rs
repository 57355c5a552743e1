//! Processes of a round: started with their output in a file, signalled, waited for, and ended when this process ends,
//! however it ends. Knows nothing of what they do.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

pub(crate) struct Process {
    child: Child,
    leash: Arc<Leash>,
}

impl Process {
    /// Starts a command. What it prints is appended to `log`.
    pub(crate) fn start(mut command: Command, log: &Path, leash: &Arc<Leash>) -> Process {
        let output = OpenOptions::new().create(true).append(true).open(log).expect("cannot open a log");
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("cannot share a log")).stderr(output);
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot start {:?}: {e}", command.get_program()));
        leash.hold(child.id());
        Process { child, leash: leash.clone() }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // It fails only if the process has ended already, which the caller finds out in another way.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("cannot ask for the process")
    }

    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits for its end, for so long.
    pub(crate) fn ends_within(&mut self, within: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + within;
        loop {
            match self.ended() {
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                ended => return ended,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // IMPORTANT: let go before the process is reaped; after that its number may belong to another.
        self.leash.let_go(self.child.id());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends all processes when this one ends: a shell waits on our pipe.
pub(crate) struct Leash {
    shell: Mutex<(Child, Option<ChildStdin>)>,
}

impl Leash {
    pub(crate) fn new() -> Arc<Leash> {
        const WATCH: &str = r#"trap : INT TERM
held=
while read -r sign id; do
    if [ "$sign" = + ]; then held="$held $id"; continue; fi
    rest=
    for one in $held; do [ "$one" = "$id" ] || rest="$rest $one"; done
    held=$rest
done
[ -z "$held" ] || kill -9 $held"#;
        let mut shell = Command::new("sh").args(["-c", WATCH]).stdin(Stdio::piped()).spawn().expect("cannot start sh");
        let pipe = shell.stdin.take();
        Arc::new(Leash { shell: Mutex::new((shell, pipe)) })
    }

    fn hold(&self, process_id: u32) {
        self.tell(&format!("+ {process_id}"));
    }

    fn let_go(&self, process_id: u32) {
        self.tell(&format!("- {process_id}"));
    }

    fn tell(&self, line: &str) {
        if let (_, Some(pipe)) = &mut *self.shell.lock().expect("no thread panicked with it") {
            writeln!(pipe, "{line}").expect("the leash is there as long as we are");
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let (shell, pipe) = self.shell.get_mut().expect("no thread panicked with it");
        drop(pipe.take());
        let _ = shell.wait();
    }
}
