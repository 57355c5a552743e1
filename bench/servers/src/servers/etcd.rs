//! Starts a single etcd as a cluster of its own. Knows nothing of its gRPC interface: health and version are asked for over
//! plain HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;

use super::process::{Server, ServerSpec};

/// The name of the program.
pub(crate) const ETCD: &str = "etcd";

/// One node with its data beside those of the other servers. With `syncs` it syncs its log before it answers a write, as it
/// does by default; without, it leaves that to the operating system.
///
/// etcd 3.4 copies its uncommitted writes for every read. By default up to 10,000 are uncommitted for 100 ms, and a transaction
/// as the one that we measure takes three to five times as much CPU as with a hundred. All other settings are its own.
pub(crate) fn start_etcd(syncs: bool) -> Result<Server> {
    Server::start_foreign(&spec(syncs)?, version)
}

fn spec(syncs: bool) -> Result<ServerSpec> {
    // Port 0: a cluster of one has no peer that would connect. Only warnings, as the other servers write no line for a request.
    let peers = "http://127.0.0.1:0";
    let mut command = format!(
        "{ETCD} --data-dir {{dir}}/etcd --backend-batch-limit 100 --logger zap --log-level warn \
         --listen-client-urls http://127.0.0.1:{{port}} \
         --advertise-client-urls http://127.0.0.1:{{port}} --listen-peer-urls {peers} \
         --initial-advertise-peer-urls {peers} --initial-cluster default={peers}"
    );
    if !syncs {
        command += " --unsafe-no-fsync";
    }
    ServerSpec::new(ETCD, &command)
}

/// What it says it is, once it has elected itself.
fn version(port: u16) -> Option<String> {
    let health: serde_json::Value = get(port, "/health")?;
    if health["health"] != "true" {
        return None;
    }
    get(port, "/version")?["etcdserver"].as_str().map(str::to_owned)
}

fn get(port: u16, path: &str) -> Option<serde_json::Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SILENCE_MAX)).ok()?;
    // HTTP 1.0: the server closes the connection after the answer.
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

const SILENCE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_of_the_two_leaves_syncs_out() {
        assert!(!spec(true).unwrap().command.contains("fsync"));
        assert!(spec(false).unwrap().command.ends_with(" --unsafe-no-fsync"));
    }
}
