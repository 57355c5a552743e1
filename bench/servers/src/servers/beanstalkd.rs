//! Starts beanstalkd, a server of job queues with a protocol of its own. Knows of that no more than the question for its version.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;

use super::process::{Server, ServerSpec};

/// The name of the program.
pub(crate) const BEANSTALKD: &str = "beanstalkd";

/// With a log of its jobs that is synced at most once a second, as a journal of the other servers is with `everysec`. All other
/// settings are its own.
pub(crate) fn start_beanstalkd() -> Result<Server> {
    Server::start_foreign(&spec()?, version)
}

fn spec() -> Result<ServerSpec> {
    ServerSpec::new(BEANSTALKD, &format!("{BEANSTALKD} -l 127.0.0.1 -p {{port}} -b {{dir}} -f 1000"))
}

/// What it says it is, once it serves.
fn version(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SILENCE_MAX)).ok()?;
    stream.write_all(b"stats\r\n").ok()?;
    version_in(BufReader::new(stream))
}

/// Of a list of names and values.
fn version_in(stats: impl BufRead) -> Option<String> {
    let line = stats.lines().map_while(Result::ok).find(|line| line.starts_with("version:"))?;
    Some(line.trim_start_matches("version:").trim().trim_matches('"').to_owned())
}

const SILENCE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_among_the_statistics() {
        let stats = "OK 42\r\n---\ncurrent-jobs-urgent: 0\npid: 7\nversion: \"1.12\"\nrusage-utime: 0.1\n\r\n";
        assert_eq!(version_in(stats.as_bytes()).unwrap(), "1.12");
        assert_eq!(version_in(&b"UNKNOWN_COMMAND\r\n"[..]), None);
    }

    #[test]
    fn its_log_is_kept_and_synced_once_a_second() {
        assert!(spec().unwrap().command.ends_with(" -b {dir} -f 1000"));
    }
}
