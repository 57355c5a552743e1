//! Fills servers: requests in large batches, every reply of which is checked. Knows nothing of what is loaded.

use anyhow::{Result, bail};

use crate::servers::{Connection, Reply, Server};

/// Sends requests in large batches and checks every reply.
pub(crate) struct Loader {
    connection: Connection,
    /// What the batch must be answered with; where it is not said, anything but an error.
    expected: Vec<Option<Reply>>,
}

/// Large enough to keep a server busy, small enough that the replies fit a socket buffer before they are read.
const BATCH: usize = 500;

impl Loader {
    pub(crate) fn new(server: &Server) -> Result<Self> {
        Ok(Loader { connection: server.connect()?, expected: Vec::with_capacity(BATCH) })
    }

    /// IMPORTANT: `finish` must follow the last one, or the last batch is never sent.
    pub(crate) fn send(&mut self, request: &[&str], expected: Reply) -> Result<()> {
        self.add(request, Some(expected))
    }

    /// As `send`, where the reply cannot be told: anything but an error will do.
    pub(crate) fn send_unseen(&mut self, request: &[&str]) -> Result<()> {
        self.add(request, None)
    }

    fn add(&mut self, request: &[&str], expected: Option<Reply>) -> Result<()> {
        self.connection.push(request);
        self.expected.push(expected);
        if self.expected.len() == BATCH { self.exchange() } else { Ok(()) }
    }

    pub(crate) fn finish(mut self) -> Result<()> {
        self.exchange()
    }

    fn exchange(&mut self) -> Result<()> {
        self.connection.flush()?;
        for expected in self.expected.drain(..) {
            let Some(expected) = expected else {
                if let Some(error) = self.connection.skip_reply()? {
                    bail!("loading the data set: the server answered {error}");
                }
                continue;
            };
            let reply = self.connection.read_reply()?;
            if reply != expected {
                bail!("loading the data set: expected {expected:?}, the server answered {reply:?}");
            }
        }
        Ok(())
    }
}
