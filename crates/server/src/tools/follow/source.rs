//! The server whose data is wanted, to which this process is a replica. Knows what a replica says; refuses to know what is
//! done with what comes.

use super::position::{At, OFFSET_MAX};
use crate::config::ServerUrl;
use crate::tools::link::{Client, Reply, Socket, Way, encode, login};
use anyhow::{Context, Result, anyhow, bail};
use formats::replication::{Next, ReplicationId, ReplicationStream, SyncReply};
use std::cell::RefCell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The newest Valkey whose RDB files are read here.
const VALKEY_VERSION: &str = "9.1.0";
/// How long a source may be silent: it says something at least every ten seconds, if it is not configured otherwise.
const SILENT_WITHIN: Duration = Duration::from_secs(60);
/// How long a read of the stream of commands waits.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long a look for the payload waits.
const WAIT_EVERY: Duration = Duration::from_millis(500);

/// The socket, which is read by the stream and written by this file.
#[derive(Clone)]
pub(super) struct Shared(Rc<RefCell<Socket>>);

impl Read for Shared {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

pub(super) struct Source {
    socket: Shared,
    pub(super) stream: ReplicationStream<Shared>,
    heard: Instant,
}

/// How the source sends its history.
pub(super) enum Attached {
    /// All data, then what follows this place.
    Full(ReplicationId, u64),
    /// What follows the place that was asked for.
    Partial(Option<ReplicationId>),
    /// Not at all, for this reason.
    Refused(String),
}

impl Source {
    /// Connects as a replica that has everything up to a place, or nothing. A value of the RDB file and a command have so many
    /// bytes at most.
    pub(super) fn attach(
        url: &ServerUrl,
        way: &Way,
        at: Option<&At>,
        (value_bytes_max, command_bytes_max): (usize, u64),
    ) -> Result<(Source, Attached)> {
        let mut socket = Socket::connect(url, way)?;
        socket.set_read_timeout(SILENT_WITHIN)?;
        let socket = Shared(Rc::new(RefCell::new(socket)));
        let stream = ReplicationStream::new(socket.clone(), value_bytes_max).with_command_bytes_max(command_bytes_max);
        let mut source = Source { socket, stream, heard: Instant::now() };
        let attached = source.shake_hands(url, at).with_context(|| url.to_string())?;
        Ok((source, attached))
    }

    fn shake_hands(&mut self, url: &ServerUrl, at: Option<&At>) -> Result<Attached> {
        if let Some(login) = login(url) {
            let words: Vec<&str> = login.iter().map(String::as_str).collect();
            let reply = self.ask(&words)?;
            if let Some(error) = reply.strip_prefix('-') {
                bail!("AUTH: {error}");
            }
        }
        let reply = self.ask(&["PING"])?;
        if reply.starts_with("-NOAUTH") || reply.starts_with("-WRONGPASS") {
            bail!("{}", &reply[1..]);
        }
        // Port 0: nobody can connect to this replica. A source that refuses one of these does without.
        self.ask(&["REPLCONF", "listening-port", "0"])?;
        self.ask(&["REPLCONF", "capa", "eof", "capa", "psync2"])?;
        // Valkey writes nothing newer to its replicas than they know, and without this not even deadlines of hash fields.
        self.ask(&["REPLCONF", "version", VALKEY_VERSION])?;
        let (id, offset) = match at {
            Some(at) => (at.id.to_string(), (at.offset + 1).to_string()),
            None => ("?".to_owned(), "-1".to_owned()),
        };
        self.send(&["PSYNC", &id, &offset])?;
        Ok(match self.stream.sync_reply()? {
            SyncReply::Full { offset, .. } if offset > OFFSET_MAX => bail!("an offset of {offset} is none"),
            SyncReply::Full { id, offset } => Attached::Full(id, offset),
            SyncReply::Continue { .. } if at.is_none() => bail!("it goes on from a place that nobody asked for"),
            SyncReply::Continue { id } => Attached::Partial(id),
            SyncReply::Refused(why) => Attached::Refused(why),
            SyncReply::NotNow(why) => return Err(io::Error::other(why).into()),
        })
    }

    fn send(&mut self, words: &[&str]) -> Result<()> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut bytes = Vec::new();
        encode(&words, &mut bytes);
        let mut socket = self.socket.0.borrow_mut();
        socket.write_all(&bytes)?;
        Ok(socket.flush()?)
    }

    fn ask(&mut self, words: &[&str]) -> Result<String> {
        self.send(words)?;
        Ok(self.stream.line()?)
    }

    /// Waits until the RDB file begins; `waiting` is called meanwhile, and may end it.
    pub(super) fn wait_for_payload(&mut self, mut waiting: impl FnMut() -> Result<()>) -> Result<()> {
        self.socket.0.borrow_mut().set_read_timeout(WAIT_EVERY)?;
        loop {
            match self.stream.begin_payload() {
                Ok(_) => break,
                // A source that is silent while it prepares is alive: it closes the connection otherwise.
                Err(error) if error.is_timeout() => waiting()?,
                Err(error) => return Err(error.into()),
            }
        }
        self.socket.0.borrow_mut().set_read_timeout(SILENT_WITHIN)?;
        Ok(())
    }

    /// The next command, if one comes within moments.
    pub(super) fn next(&mut self) -> Result<Next> {
        self.socket.0.borrow_mut().set_read_timeout(LOOK_EVERY)?;
        let bytes = self.stream.bytes_read();
        let next = self.stream.advance()?;
        match next {
            Next::NotYet if self.heard.elapsed() > SILENT_WITHIN => {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the source is silent").into());
            }
            Next::NotYet if self.stream.bytes_read() == bytes => {}
            _ => self.heard = Instant::now(),
        }
        Ok(next)
    }

    /// Tells the source up to where its history is applied.
    pub(super) fn acknowledge(&mut self, offset: u64) -> Result<()> {
        self.send(&["REPLCONF", "ACK", &offset.to_string()])
    }
}

/// An ordinary connection to the source, for what a replica cannot ask.
pub(super) struct Side {
    url: ServerUrl,
    way: Way,
    client: Option<Client>,
}

impl Side {
    pub(super) fn new(url: &ServerUrl, way: &Way) -> Side {
        Side { url: url.clone(), way: way.clone(), client: None }
    }

    pub(super) fn client(&mut self) -> Result<&mut Client> {
        if self.client.is_none() {
            self.client = Some(Client::connect(&self.url, &self.way)?);
        }
        self.client.as_mut().ok_or_else(|| anyhow!("no connection"))
    }

    /// Asks, on a new connection if the old one is gone.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        let reply = self.client()?.ask(words);
        if reply.is_err() {
            self.client = None;
        }
        reply
    }

    /// Where the history of the source is; `None` when it cannot say now. An error when it never will.
    pub(super) fn offset(&mut self) -> Result<Option<u64>> {
        let Ok(reply) = self.ask(&[b"INFO", b"replication"]) else { return Ok(None) };
        match reply.error() {
            Some(error) if error.starts_with("NOPERM") || error.starts_with("ERR") => {
                bail!("the source does not say how far it is, so nobody can tell when all has come: INFO: {error}")
            }
            // Such as -LOADING.
            Some(_) => return Ok(None),
            None => {}
        }
        let info = reply.text().unwrap_or_default();
        Ok(super::target::field(&info, "master_repl_offset").and_then(|offset| offset.parse().ok()))
    }

    /// The digest of all data; `None` where DEBUG is not allowed.
    pub(super) fn digest(&mut self) -> Option<String> {
        self.ask(&[b"DEBUG", b"DIGEST"]).ok()?.text().filter(|text| text.len() == 40)
    }

    pub(super) fn is_valkey(&mut self) -> bool {
        let info = self.ask(&[b"INFO", b"server"]).ok().and_then(|reply| reply.text());
        info.is_some_and(|info| super::target::field(&info, "valkey_version").is_some())
    }

    pub(super) fn counts(&mut self, databases: u64) -> Option<Vec<u64>> {
        super::target::counts(self.client().ok()?, databases).ok()
    }
}
