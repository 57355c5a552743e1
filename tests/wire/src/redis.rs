//! A Redis beside the server under test, as its judge. Knows how to start one; refuses to know what it is asked.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::connection::Connection;
use crate::server::{free_address, fresh_dir};

const START_DEADLINE: Duration = Duration::from_secs(20);

/// `redis-server` in the path, or what `REDIS_SERVER` names. Ended when dropped.
pub struct Redis {
    process: Child,
    address: SocketAddr,
    dir: PathBuf,
}

impl Redis {
    /// `None` when there is none on this machine.
    pub fn start() -> Option<Redis> {
        let program = env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let (address, dir) = (free_address(), fresh_dir());
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""]);
        command.args(["--enable-debug-command", "yes", "--dir"]);
        match command.arg(&dir).stdout(Stdio::null()).spawn() {
            Ok(process) => Some(Redis { process, address, dir }),
            Err(_) => {
                let _ = fs::remove_dir_all(&dir);
                None
            }
        }
    }

    pub fn connect(&self) -> Connection {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            match Connection::open(self.address) {
                Ok(connection) => return connection,
                Err(e) => assert!(Instant::now() < deadline, "Redis does not listen: {e}"),
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}
