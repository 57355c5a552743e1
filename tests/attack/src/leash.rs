//! Ends a server when this process ends, however it ends: a shell waits on our pipe.

use std::io::Write;
use std::process::{Child, Command, Stdio};

pub(crate) struct Leash {
    shell: Child,
}

impl Leash {
    pub(crate) fn hold(process_id: u32) -> Leash {
        const WATCH: &str = r#"trap : INT TERM
read -r line
[ "$line" = "let go" ] || kill -9 "$1""#;
        let mut shell = Command::new("sh");
        shell.args(["-c", WATCH, "sh", &process_id.to_string()]).stdin(Stdio::piped());
        Leash { shell: shell.spawn().expect("cannot start sh") }
    }
}

impl Drop for Leash {
    /// IMPORTANT: drop it before the server is waited for; after that the process's number may belong to another.
    fn drop(&mut self) {
        if let Some(mut pipe) = self.shell.stdin.take() {
            // A shell that is gone holds nothing.
            let _ = writeln!(pipe, "let go");
        }
        let _ = self.shell.wait();
    }
}
