//! `holdfast export`: a data directory as requests, into a file or to a running server. Knows what is asked of whoever takes
//! them; refuses to know how values become requests (`formats`).

use super::data_tools::{LeftOut, Opened, open, walk};
use super::link::{Client, Reply, Way, encode, is_about_the_server};
use crate::config::{Export, ServerUrl};
use crate::platform::logging::LogLevelHandle;
use anyhow::{Context, Result};
use engine::Engine;
use keyspace::ValueType;
use keyspace::index::Definition;
use keyspace::index::groups::{self, Limits, Rate, Scope, Setting};
use keyspace::types::stream;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};

/// Bytes and requests that are sent before their replies are read.
const WINDOW_BYTES: usize = 512 << 10;
const WINDOW_REQUESTS: usize = 5000;
/// What is refused where XNACK is.
const RELEASE: &str = "release of pending entries, which stay with a consumer, for any to claim";

pub(super) fn run(asked: &Export, log_level: LogLevelHandle) -> Result<()> {
    let Opened { engine, .. } = open(&asked.dir, log_level)?;
    let mut taker = Taker::open(asked)?;
    for library in engine.scripting.functions.catalogue().libraries() {
        taker.request("library of functions", &[b"FUNCTION", b"LOAD", b"REPLACE", &library.code])?;
    }
    let (mut selected, mut has_it, mut own, mut orphans, mut released) = (None, true, 0u64, 0u64, 0u64);
    walk(&engine, |db, within, entry| {
        if selected.replace(db) != Some(db) {
            has_it = taker.select(db)?;
        }
        if !has_it {
            taker.refuse("key of a database that the server does not have", "ERR DB index is out of range");
            return Ok(());
        }
        let (name, kind) = (entry.name(), ValueType::of(entry).name);
        let value = match ValueType::of(entry).is(&stream::TYPE) {
            true if taker.is_holdfast() => stream::whole(stream::stream(entry)),
            true => stream::to_redis(stream::stream(entry)),
            false => within.to_redis(entry, engine.clock.unix_us() / 1000),
        };
        own += u64::from(matches!(value, formats::Value::Own(_)));
        orphans += value.commands(name, |words| {
            let subject = match words[0] {
                b"HPEXPIREAT" => "deadline of a hash field",
                b"XNACK" => RELEASE,
                _ => kind,
            };
            released += u64::from(subject == RELEASE);
            taker.request(subject, words)
        })?;
        if let Some(deadline) = entry.deadline() {
            taker.request("deadline", &[b"PEXPIREAT", name, deadline.to_string().as_bytes()])?;
        }
        Ok(())
    })?;
    let indexes = indexes(&engine);
    // Behind the records, which an index with STAMP would stamp.
    for (name, definition) in &indexes {
        let words = index_request(name, definition);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        taker.request("index", &words)?;
    }
    for words in limit_requests(&engine) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        taker.request("limit", &words)?;
    }
    let is_for_anyone = matches!(taker, Taker::File(_));
    let has_refused = taker.finish()?;
    if is_for_anyone && (own > 0 || !indexes.is_empty()) {
        eprintln!(
            "{own} keys hold values that Redis has no type for, such as cells, and there are {} indexes: another Holdfast takes \
             them, Redis refuses them",
            indexes.len()
        );
    }
    if is_for_anyone && released > 0 {
        eprintln!("{released} requests are XNACK, which servers before Redis 8.8 refuse: {RELEASE}");
    }
    if orphans > 0 {
        eprintln!(
            "{orphans} pending entries are left out: their stream entries were deleted, and their streams are too long for RESTORE, which alone could bring them"
        );
    }
    match orphans > 0 || has_refused {
        true => Err(LeftOut::by_export(&asked.dir).into()),
        false => Ok(()),
    }
}

/// The indexes of the data.
fn indexes(engine: &Engine) -> Vec<(Vec<u8>, Definition)> {
    let locked = engine.keyspace.lock_all();
    // What was dropped has a name and no definition.
    let defined = |(name, bytes): (&[u8], Option<&[u8]>)| Some((name.to_vec(), Definition::decode(bytes?)?));
    locked.definitions().indexes().filter_map(defined).collect()
}

/// The request that makes an index.
fn index_request(name: &[u8], definition: &Definition) -> Vec<Vec<u8>> {
    let counted = |names: &[Vec<u8>]| {
        let count = names.len().to_string().into_bytes();
        std::iter::once(count).chain(names.iter().cloned()).collect::<Vec<_>>()
    };
    let mut words = vec![b"IDX.CREATE".to_vec(), name.to_vec(), b"PREFIX".to_vec()];
    words.extend(counted(&definition.prefixes));
    words.extend([b"FIELD".to_vec(), definition.field.clone()]);
    if let Some(condition) = &definition.condition {
        words.extend([if condition.only { b"ONLY".to_vec() } else { b"EXCLUDE".to_vec() }, condition.field.clone()]);
        words.extend(counted(&condition.values));
    }
    if let Some(group) = &definition.group {
        words.extend([b"GROUP".to_vec(), group.clone()]);
    }
    if let Some(held) = &definition.held {
        words.extend([b"HELD".to_vec(), held.field.clone()]);
        words.extend(counted(&held.values));
    }
    if definition.stamp {
        words.push(b"STAMP".to_vec());
    }
    words
}

/// The requests that set the limits of groups.
fn limit_requests(engine: &Engine) -> Vec<Vec<Vec<u8>>> {
    let locked = engine.keyspace.lock_all();
    let limits = locked.definitions().limits();
    let decoded = limits.filter_map(|(name, limits)| Some((groups::decode_name(name)?, Limits::decode(limits)?)));
    decoded.map(|((index, scope), limits)| limit_request(index, scope, &limits)).collect()
}

fn limit_request(index: &[u8], scope: Scope<'_>, limits: &Limits) -> Vec<Vec<u8>> {
    let mut words = vec![b"IDX.LIMIT".to_vec(), index.to_vec()];
    match scope {
        Scope::All => words.push(b"ALL".to_vec()),
        Scope::Each => words.push(b"EACH".to_vec()),
        Scope::Group(group) => words.extend([b"GROUP".to_vec(), group.to_vec()]),
    }
    let mut option = |texts: &[String]| words.extend(texts.iter().map(|text| text.clone().into_bytes()));
    match limits.held {
        Setting::Default => {}
        Setting::None => option(&["HELD".into(), "NONE".into()]),
        Setting::Is(max) => option(&["HELD".into(), max.to_string()]),
    }
    match limits.rate {
        Setting::Default => {}
        Setting::None => option(&["RATE".into(), "NONE".into()]),
        Setting::Is(Rate { takes, per_ms, burst }) => {
            option(&["RATE".into(), takes.to_string(), per_ms.to_string(), "BURST".into(), burst.to_string()]);
        }
    }
    if let Some(thousandths) = limits.weight {
        option(&["WEIGHT".into(), (f64::from(thousandths) / 1000.0).to_string()]);
    }
    if let Some(pause) = limits.pause {
        option(&["PAUSE".into(), if pause { "yes" } else { "no" }.into()]);
    }
    words
}

/// Who takes the requests.
enum Taker {
    /// Whoever reads them later.
    File(BufWriter<Box<dyn Write>>),
    Server(Box<Server>),
}

/// A server that answers.
struct Server {
    client: Client,
    is_holdfast: bool,
    /// What the requests are about whose replies are not read yet.
    window: Vec<&'static str>,
    refused: BTreeMap<&'static str, Refused>,
    requests: u64,
}

#[derive(Default)]
struct Refused {
    count: u64,
    example: String,
}

impl Taker {
    fn open(asked: &Export) -> Result<Taker> {
        if let Some(to) = &asked.to {
            let url = ServerUrl::parse_whole(to)?.with_password(asked.to_password.as_deref());
            let mut client = Client::connect(&url, &Way::new(asked.tls.clone()))?;
            // A server that does not say what it is gets what every server takes.
            let info = client.ask(&[b"INFO", b"server"])?.text().unwrap_or_default();
            let is_holdfast = info.contains("\r\nholdfast_version:");
            let (window, refused) = (Vec::new(), BTreeMap::new());
            return Ok(Taker::Server(Box::new(Server { client, is_holdfast, window, refused, requests: 0 })));
        }
        let sink: Box<dyn Write> = match &asked.output {
            Some(path) => {
                Box::new(File::create(path).with_context(|| format!("cannot create the file {}", path.display()))?)
            }
            None => Box::new(std::io::stdout().lock()),
        };
        Ok(Taker::File(BufWriter::with_capacity(1024 * 1024, sink)))
    }

    fn is_holdfast(&self) -> bool {
        matches!(self, Taker::Server(server) if server.is_holdfast)
    }

    fn request(&mut self, subject: &'static str, words: &[&[u8]]) -> Result<()> {
        match self {
            Taker::File(file) => {
                let mut bytes = Vec::new();
                encode(words, &mut bytes);
                Ok(file.write_all(&bytes)?)
            }
            Taker::Server(server) => server.request(subject, words),
        }
    }

    /// Selects a database; false where a server does not have it.
    fn select(&mut self, db: usize) -> Result<bool> {
        let number = db.to_string();
        let words: [&[u8]; 2] = [b"SELECT", number.as_bytes()];
        match self {
            Taker::File(_) => self.request("database", &words).map(|()| true),
            Taker::Server(server) => {
                server.end_window()?;
                match server.client.ask(&words)?.error() {
                    Some(error) if is_about_the_server(error) => Err(server.client.refused(error)),
                    error => Ok(error.is_none()),
                }
            }
        }
    }

    fn refuse(&mut self, subject: &'static str, error: &str) {
        if let Taker::Server(server) = self {
            server.refuse(subject, error);
        }
    }

    /// Waits until everything is taken. True when something was refused, which is said.
    fn finish(&mut self) -> Result<bool> {
        match self {
            Taker::File(file) => file.flush().map(|()| false).map_err(Into::into),
            Taker::Server(server) => {
                server.end_window()?;
                println!("{} requests were sent to {}", server.requests, server.client.url());
                for (subject, Refused { count, example }) in &server.refused {
                    println!("refused: {subject}: {count}, for example: {example}");
                }
                Ok(!server.refused.is_empty())
            }
        }
    }
}

impl Server {
    fn request(&mut self, subject: &'static str, words: &[&[u8]]) -> Result<()> {
        self.requests += 1;
        self.client.queue(words);
        self.window.push(subject);
        match self.client.unsent_bytes() >= WINDOW_BYTES || self.window.len() >= WINDOW_REQUESTS {
            true => self.end_window(),
            false => Ok(()),
        }
    }

    fn end_window(&mut self) -> Result<()> {
        self.client.flush()?;
        for subject in std::mem::take(&mut self.window) {
            let Reply::Error(error) = self.client.read()? else { continue };
            // Otherwise everything would be refused, one by one.
            if is_about_the_server(&error) {
                return Err(self.client.refused(&error));
            }
            self.refuse(subject, &error);
        }
        Ok(())
    }

    fn refuse(&mut self, subject: &'static str, error: &str) {
        let refused = self.refused.entry(subject).or_default();
        refused.count += 1;
        if refused.example.is_empty() {
            refused.example = error.chars().filter(|char| !char.is_control()).collect();
        }
    }
}
