//! Clients that wait for something on the writer. When it writes no more they must be told, or closed; when it still does
//! they must get what they wait for. Knows blocking commands; nothing of faults.

use std::time::{Duration, Instant};

use wire::Reply;

use super::members::Addresses;
use crate::connection::{Connection, Outcome, Trouble};

const LIST: &str = "shared:wait:list";
const STREAM: &str = "shared:wait:stream";
/// Only tells a slow server from one that has forgotten a client.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Waiters {
    server: usize,
    waiting: Vec<(&'static str, Connection)>,
}

impl Waiters {
    /// Lets clients wait on a server.
    pub(crate) fn begin(addresses: &Addresses, server: usize) -> Outcome<Waiters> {
        let commands: [(&'static str, &[&str]); 3] = [
            ("BLPOP", &["BLPOP", LIST, "0"]),
            ("XREAD", &["XREAD", "BLOCK", "0", "STREAMS", STREAM, "$"]),
            ("CLAIM", &["CLAIM", "1", "idx:updated_at", "SET", "1", "claimed", "1", "BLOCK", "0", "KEYS"]),
        ];
        let mut waiting = Vec::new();
        for (name, command) in commands {
            let mut connection = addresses.connect(server)?;
            connection.send_command(command)?;
            waiting.push((name, connection));
        }
        Ok(Waiters { server, waiting })
    }

    /// What became of them, when all is well again and `writer` writes.
    pub(crate) fn end(mut self, addresses: &Addresses, writer: usize, is_running: bool) -> Result<String, String> {
        let mut ended = Vec::new();
        let goes_on = is_running && self.server == writer;
        let deadline = Instant::now() + PATIENCE;
        for (name, connection) in &mut self.waiting {
            if goes_on && !connection.is_readable(Duration::from_millis(1)) {
                // It waits still, as it should: it gets what it waits for.
                match *name {
                    "BLPOP" => push(addresses, writer, &["RPUSH", LIST, "x"])?,
                    "XREAD" => push(addresses, writer, &["XADD", STREAM, "*", "f", "v"])?,
                    _ => {
                        ended.push(format!("{name} still waits"));
                        continue;
                    }
                }
            }
            while !connection.is_readable(Duration::from_millis(200)) {
                if Instant::now() > deadline {
                    let role = addresses.role(self.server);
                    return Err(format!(
                        "{name} on server {} still waits after {PATIENCE:?}; the server is {role:?}",
                        self.server
                    ));
                }
            }
            ended.push(match connection.read() {
                Ok(Reply::Error(text)) => {
                    let code: Vec<u8> = text.iter().take_while(|byte| **byte != b' ').copied().collect();
                    format!("{name} {}", String::from_utf8_lossy(&code))
                }
                Ok(Reply::Array(_)) if goes_on => format!("{name} served"),
                Ok(other) => {
                    return Err(format!("{name} on a server that wrote no more was answered with {}", other.excerpt()));
                }
                Err(Trouble::Closed | Trouble::ReadOnly) => format!("{name} closed"),
                Err(Trouble::Wrong(what)) => return Err(format!("{name}: {what}")),
            });
        }
        push(addresses, writer, &["DEL", LIST, STREAM])?;
        Ok(ended.join(", "))
    }
}

fn push(addresses: &Addresses, writer: usize, command: &[&str]) -> Result<(), String> {
    let pushed = addresses.connect(writer).and_then(|mut connection| connection.must_run(command));
    pushed.map(drop).map_err(|trouble| trouble.describe(&format!("{} for a client that waits", command[0])))
}
