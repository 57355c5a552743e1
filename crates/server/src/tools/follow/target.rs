//! The Holdfast that another server's data is brought into. Knows how a position is kept there, and how a transaction finds
//! out that another process has written one; refuses to know where the commands come from.
//!
//! Each transaction writes the position that it leads to, and takes effect only if the position is still the one that this
//! process has written before (WATCH). So a transaction that was sent by a process which was killed, or over a connection
//! that broke, is either whole in the position that is read next, or has no effect.

use super::gather::Batch;
use super::limits::Limits;
use super::position::{At, KEY, PROMOTE_KEY, Position, source_of};
use crate::config::ServerUrl;
use crate::tools::import::ImportReport;
use crate::tools::link::{Client, Reply, Way, is_about_the_server};
use anyhow::{Context, Result, bail, ensure};
use formats::replication::ReplicationId;
use resp::OwnedRequest;
use std::time::{Duration, Instant};

/// The name of the connection, by which another process sees that this one is at work.
const CLIENT_NAME: &str = "holdfast-import";
/// How long to wait for the connection of a process that was killed to go.
const LEAVES_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Bytes of requests that are sent before their replies are read.
const WINDOW_BYTES: usize = 512 << 10;
const WINDOW_REQUESTS: usize = 5000;
/// What may be refused about a command, by the beginning of the error; other errors are about the server.
const ABOUT_THE_COMMAND: [&str; 3] = ["ERR unknown command", "ERR unknown subcommand", "ERR wrong number of arguments"];

pub(super) struct Target {
    client: Client,
    /// The source, as the position names it.
    source: String,
    pub(super) databases: u64,
    pub(super) limits: Limits,
    /// What the target has, if it was begun.
    pub(super) position: Option<Position>,
    /// Somebody asks for the promotion, in these words.
    pub(super) promote: Option<String>,
    sent: Option<Sent>,
    /// Names of requests of [`Self::load`] whose replies are not read yet.
    window: Vec<Vec<u8>>,
    /// This process has turned import mode on.
    has_turned_it_on: bool,
}

/// A transaction whose replies are not read yet.
struct Sent {
    commands: Vec<OwnedRequest>,
    position: Position,
}

/// What a target may hold that is to be opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Nothing, or what an import has brought.
    NothingOfOthers,
    /// Keys of others too, which will go.
    Anything,
    /// A position: this process has written one.
    Position,
}

/// What the target holds when a process begins.
pub(super) enum Found {
    /// No position, where this process has written one. Nothing was changed.
    Gone,
    /// Nothing at all.
    Empty,
    /// Keys or functions, and no position: not ours to replace.
    Foreign,
    /// A position of this source, which can be gone on from.
    Ours,
    /// A position that was reached from another source. It may be of use with this one too, if that one knows its history.
    OfAnother(String),
    /// A position that is of no use, for this reason.
    Stale(&'static str),
}

impl Target {
    /// Connects, and turns the target into one whose keys do not expire by themselves.
    pub(super) fn open(url: &ServerUrl, way: &Way, source: &str, allowed: Allowed) -> Result<(Target, Found)> {
        let mut client = Client::connect(url, way)?;
        let info = client.must(&[b"INFO", b"everything"])?.text().unwrap_or_default();
        ensure!(field(&info, "holdfast_version").is_some(), "{url} is no Holdfast: nothing else keeps a position safe");
        wait_until_alone(&mut client)?;
        let mode = client.must(&[b"CONFIG", b"GET", b"import-mode"])?;
        let was_import_mode = mode.items().get(1).and_then(Reply::text).as_deref() == Some("yes");
        let databases = client.must(&[b"CONFIG", b"GET", b"databases"])?;
        let databases = databases.items().get(1).and_then(Reply::text).and_then(|text| text.parse().ok()).unwrap_or(16);
        let limits = Limits::of(&mut client)?;
        let mut target = Target {
            client,
            source: source.to_owned(),
            databases,
            limits,
            position: None,
            promote: None,
            sent: None,
            window: Vec::new(),
            has_turned_it_on: false,
        };
        let has_keys = |info: &str| info.lines().any(|line| line.starts_with("db") && line.contains(":keys="));
        let has_content = has_keys(&info) || !target.client.must(&[b"FUNCTION", b"LIST"])?.items().is_empty();
        if target.watch()?.items().is_empty() {
            match allowed {
                Allowed::Position => return Ok((target, Found::Gone)),
                Allowed::NothingOfOthers if has_content => return Ok((target, Found::Foreign)),
                Allowed::NothingOfOthers | Allowed::Anything => {}
            }
        }
        if !was_import_mode {
            set_import_mode(&mut target.client, true)?;
            target.has_turned_it_on = true;
        }
        target.client.must(&[b"CLIENT", b"IMPORT-SOURCE", b"ON"])?;
        let reply = target.watch()?;
        target.position = Position::read(&reply)?;
        // IMPORTANT: after import mode is on: nothing expires from here on.
        let info = target.client.must(&[b"INFO", b"everything"])?.text().unwrap_or_default();
        let number = |name: &str| field(&info, name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let has_expired = ["expired_keys", "expired_subkeys", "evicted_keys"].iter().any(|name| number(name) > 0);
        let found = match &target.position {
            None if has_content || has_keys(&info) => Found::Foreign,
            None => Found::Empty,
            Some(Position::At(_)) if !was_import_mode && has_expired => {
                Found::Stale("the target was started without import-mode, and keys have expired there since")
            }
            Some(Position::At(_)) => match source_of(&reply).filter(|other| other != source) {
                Some(other) => Found::OfAnother(other),
                None => Found::Ours,
            },
            Some(Position::Loading) => Found::Stale("the data had not come whole"),
            Some(Position::Copied) => Found::Stale("it was copied, not followed"),
        };
        Ok((target, found))
    }

    /// Watches the position, and reads it.
    fn watch(&mut self) -> Result<Reply> {
        self.client.must(&[b"SELECT", b"0"])?;
        self.client.must(&[b"WATCH", KEY])?;
        self.client.must(&[b"HGETALL", KEY])
    }

    // All data --------------------------------------------------------------------------------------------------------

    /// Removes everything, and notes that data is on its way.
    pub(super) fn begin_load(&mut self) -> Result<()> {
        let commands: [&[&[u8]]; 2] = [&[b"FLUSHALL"], &[b"FUNCTION", b"FLUSH"]];
        let commands = commands.iter().map(|words| words.iter().copied().collect()).collect();
        self.send(commands, Position::Loading)?;
        let mut report = ImportReport::default();
        self.finish(&mut report)?;
        ensure!(!report.has_left_something_out(), "the target cannot be emptied: {report}");
        Ok(())
    }

    /// Sends a request of a load. Errors are counted under its name.
    pub(super) fn load(&mut self, words: &[&[u8]], report: &mut ImportReport) -> Result<()> {
        self.limits.check(words)?;
        self.client.queue(words);
        self.window.push(words[0].to_vec());
        if self.client.unsent_bytes() >= WINDOW_BYTES || self.window.len() >= WINDOW_REQUESTS {
            self.end_window(report)?;
        }
        Ok(())
    }

    /// Reads the replies to all requests of a load.
    pub(super) fn end_window(&mut self, report: &mut ImportReport) -> Result<()> {
        self.client.flush()?;
        for name in std::mem::take(&mut self.window) {
            if let Reply::Error(error) = self.client.read()? {
                // Otherwise all of it would be left out, one by one.
                if is_about_the_server(&error) || error.starts_with("ERR Protocol error") {
                    return Err(self.client.refused(&error));
                }
                report.failed(&name, &error);
            }
        }
        Ok(())
    }

    /// Asks for something while nothing else is under way. It is no write.
    pub(super) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.client.must(words)
    }

    /// Sends several requests, and returns their replies.
    pub(super) fn ask_all(&mut self, requests: &[Vec<Vec<u8>>]) -> Result<Vec<Reply>> {
        for request in requests {
            let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            self.client.queue(&words);
        }
        self.client.flush()?;
        requests.iter().map(|_| self.client.read()).collect()
    }

    // Changes ---------------------------------------------------------------------------------------------------------

    /// Notes a position, with nothing before it.
    pub(super) fn note(&mut self, position: Position) -> Result<()> {
        self.send(Vec::new(), position)?;
        let mut report = ImportReport::default();
        self.finish(&mut report)
    }

    /// Sends a transaction. The one before must be finished.
    pub(super) fn apply(&mut self, batch: Batch, id: &ReplicationId) -> Result<()> {
        let at = At { id: id.clone(), offset: batch.offset, db: batch.db };
        self.send(batch.commands, Position::At(at))
    }

    fn send(&mut self, commands: Vec<OwnedRequest>, position: Position) -> Result<()> {
        assert!(self.sent.is_none(), "one transaction at a time");
        let fields = position.fields();
        let mut set: Vec<&[u8]> = vec![b"HSET", KEY, b"source", self.source.as_bytes()];
        set.extend(fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        let client = &mut self.client;
        client.queue(&[b"MULTI"]);
        for command in &commands {
            let words: Vec<&[u8]> = command.as_request().iter().collect();
            self.limits.check(&words)?;
            client.queue(&words);
        }
        client.queue(&[b"SELECT", b"0"]);
        // Nothing of the source must be mixed with it, whatever its commands have written.
        client.queue(&[b"DEL", KEY]);
        client.queue(&set);
        client.queue(&[b"EXEC"]);
        // For the next one.
        client.queue(&[b"WATCH", KEY]);
        client.queue(&[b"GET", PROMOTE_KEY]);
        client.flush()?;
        self.sent = Some(Sent { commands, position });
        Ok(())
    }

    pub(super) fn is_busy(&self) -> bool {
        self.sent.is_some()
    }

    /// Reads the replies to the transaction that was sent last, if there is one. What is refused is counted.
    pub(super) fn finish(&mut self, report: &mut ImportReport) -> Result<()> {
        while let Some(sent) = self.sent.take() {
            self.must_read("+OK")?;
            let mut refused = Vec::new();
            for (index, command) in sent.commands.iter().enumerate() {
                if let Reply::Error(error) = self.client.read()? {
                    let is_about_it = ABOUT_THE_COMMAND.iter().any(|beginning| error.starts_with(beginning));
                    if !is_about_it {
                        return Err(self.client.refused(&error));
                    }
                    report.failed(command.as_request().arg(0), &error);
                    refused.push(index);
                }
            }
            for _ in ["SELECT", "DEL", "HSET"] {
                self.must_read("+QUEUED")?;
            }
            let done = self.client.read()?;
            self.must_read("+OK")?;
            self.promote = self.client.read()?.text();
            match done {
                Reply::Array(replies) => {
                    for (command, reply) in sent.commands.iter().zip(&replies) {
                        if let Reply::Error(error) = reply {
                            report.failed(command.as_request().arg(0), error);
                        }
                    }
                    report.commands += sent.commands.len() as u64;
                    self.position = Some(sent.position);
                }
                Reply::Nil => bail!(
                    "another process has changed the position in the target, the key {}: one process follows into a target",
                    String::from_utf8_lossy(KEY)
                ),
                Reply::Error(_) if !refused.is_empty() => {
                    // Nothing of it was executed: once more without what is refused.
                    let mut at = 0;
                    let mut commands = sent.commands;
                    commands.retain(|_| {
                        at += 1;
                        !refused.contains(&(at - 1))
                    });
                    self.send(commands, sent.position)?;
                }
                other => bail!("{}: EXEC: {}", self.client.url(), other.error().unwrap_or("an odd reply")),
            }
        }
        Ok(())
    }

    fn must_read(&mut self, expected: &str) -> Result<()> {
        let reply = self.client.read()?;
        match &reply {
            Reply::Simple(text) if expected[1..] == *text => Ok(()),
            other => bail!("{}: {}", self.client.url(), other.error().unwrap_or("an odd reply")),
        }
    }

    /// Turns import mode off again, if this process has turned it on and nothing has come.
    pub(super) fn leave_as_it_was(&mut self) -> Result<()> {
        match self.has_turned_it_on && self.position.is_none() {
            true => set_import_mode(&mut self.client, false),
            false => Ok(()),
        }
    }

    /// Takes back that the promotion is asked for.
    pub(super) fn forget_promotion(&mut self) -> Result<()> {
        self.promote = None;
        self.client.must(&[b"DEL", PROMOTE_KEY]).map(drop)
    }

    /// Looks whether the promotion is asked for.
    pub(super) fn look_for_promotion(&mut self) -> Result<()> {
        self.promote = self.client.must(&[b"GET", PROMOTE_KEY])?.text();
        Ok(())
    }

    // The end ---------------------------------------------------------------------------------------------------------

    /// The digest of all data but the position; `None` where DEBUG is not allowed.
    pub(super) fn digest(&mut self) -> Result<Option<String>> {
        let Some(position) = self.position.clone() else { return Ok(None) };
        self.client.queue(&[b"MULTI"]);
        self.client.queue(&[b"DEL", KEY, PROMOTE_KEY]);
        self.client.queue(&[b"DEBUG", b"DIGEST"]);
        let fields = position.fields();
        let mut set: Vec<&[u8]> = vec![b"HSET", KEY, b"source", self.source.as_bytes()];
        set.extend(fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]));
        self.client.queue(&set);
        if let Some(promote) = &self.promote {
            self.client.queue(&[b"SET", PROMOTE_KEY, promote.as_bytes()]);
        }
        self.client.queue(&[b"EXEC"]);
        self.client.queue(&[b"WATCH", KEY]);
        self.client.flush()?;
        for _ in 0..4 + usize::from(self.promote.is_some()) {
            self.client.read()?;
        }
        let done = self.client.read()?;
        self.must_read("+OK")?;
        Ok(done.items().get(1).and_then(Reply::text).filter(|text| text.len() == 40))
    }

    /// Ends the import: the position goes, and keys expire again.
    pub(super) fn promote(&mut self) -> Result<()> {
        self.client.must(&[b"CLIENT", b"IMPORT-SOURCE", b"OFF"])?;
        set_import_mode(&mut self.client, false)?;
        self.client.must(&[b"MULTI"])?;
        self.client.must(&[b"DEL", KEY, PROMOTE_KEY])?;
        match self.client.must(&[b"EXEC"])? {
            Reply::Array(_) => Ok(()),
            _ => bail!("another process has changed the position in the target at the end"),
        }
    }

    /// True when a field of a hash has a deadline.
    pub(super) fn has_field_deadlines(&mut self) -> Result<bool> {
        let info = self.client.must(&[b"INFO", b"keyspace"])?.text().unwrap_or_default();
        Ok(info.split([',', '\r', '\n']).filter_map(|word| word.strip_prefix("subexpiry=")).any(|count| count != "0"))
    }

    /// The number of keys of each database, without ours.
    pub(super) fn counts(&mut self) -> Result<Vec<u64>> {
        let mut counts = counts(&mut self.client, self.databases)?;
        if let Reply::Integer(ours) = self.client.must(&[b"EXISTS", KEY, PROMOTE_KEY])? {
            counts[0] = counts[0].saturating_sub(ours as u64);
        }
        Ok(counts)
    }
}

/// The number of keys of each database.
pub(super) fn counts(client: &mut Client, databases: u64) -> Result<Vec<u64>> {
    let info = client.must(&[b"INFO", b"keyspace"])?.text().unwrap_or_default();
    let count = |db: u64| {
        let line = field(&info, &format!("db{db}"))?;
        line.strip_prefix("keys=")?.split(',').next()?.parse().ok()
    };
    Ok((0..databases).map(|db| count(db).unwrap_or(0)).collect())
}

/// A field of INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

fn set_import_mode(client: &mut Client, on: bool) -> Result<()> {
    let value: &[u8] = if on { b"yes" } else { b"no" };
    client.must(&[b"CONFIG", b"SET", b"import-mode", value]).context("this Holdfast has no import-mode: update it")?;
    // A server without a configuration file forgets it at its end.
    client.ask(&[b"CONFIG", b"REWRITE"])?;
    Ok(())
}

/// Waits until no other process is connected: what a process that was killed has sent is executed then.
fn wait_until_alone(client: &mut Client) -> Result<()> {
    client.must(&[b"CLIENT", b"SETNAME", CLIENT_NAME.as_bytes()])?;
    let began = Instant::now();
    loop {
        let list = client.must(&[b"CLIENT", b"LIST"])?.text().unwrap_or_default();
        let name = format!("name={CLIENT_NAME}");
        let others: Vec<&str> = list.lines().filter(|line| line.split(' ').any(|word| word == name)).collect();
        if others.len() <= 1 {
            return Ok(());
        }
        if began.elapsed() > LEAVES_WITHIN {
            bail!("another process follows into {} already: {}", client.url(), others[0]);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}
