//! An engine for hostile requests, with a simulated clock, a host that does nothing, and one client. Knows what every
//! reply must look like; refuses to know where requests come from, so that `tests/hostile.rs` and the fuzz target
//! `execute` share it.

use crate::host::IdleHost;
use engine::execution::client::ReplyMode;
use engine::{Client, ClientHandle, Clock, Engine, Flow, Settings, Worker};
use keyspace::DATABASES;
use keyspace::Value;
use keyspace::types::Object;
use keyspace::types::cell::Version;
use keyspace::types::register;
use keyspace::types::stream::StreamId;
use resp::{OwnedRequest, Protocol};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An engine and the one client that talks to it.
pub(crate) struct World {
    pub(crate) engine: Engine,
    clock: Arc<StoppedClock>,
    worker: Worker,
    client: Client,
}

impl World {
    /// An empty engine.
    pub(crate) fn new(settings: Arc<Settings>) -> World {
        let clock = Arc::new(StoppedClock { unix_us: AtomicU64::new(1_763_172_000_000_000) });
        let engine = engine::with_all_commands(settings, Arc::new(IdleHost), clock.clone(), 4, 1);
        let (worker, client) = (engine.worker(0), connect(&engine));
        connect(&engine); // another client, to be listed and killed
        World { engine, clock, worker, client }
    }

    /// Lets time pass.
    pub(crate) fn pass_ms(&mut self, ms: u64) {
        self.clock.unix_us.fetch_add(ms * 1000, Relaxed);
        self.engine.begin(&mut self.worker);
    }

    /// The instant that requests see, in unix milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.worker.now_ms
    }

    /// Executes one request and gives back its reply, which must be one, whole, and in the client's protocol. `None`
    /// where there is rightly none:
    /// - the client waits (WAIT), or has asked for silence (CLIENT REPLY), which ends here;
    /// - the connection is over (SHUTDOWN, and the words of a web browser);
    /// - MONITOR, a second time.
    ///
    /// SUBSCRIBE and its kin have a reply for each channel; afterwards the client is a new one, since it could only
    /// listen. In a transaction, where Redis too counts its replies wrong, it is not asked.
    pub(crate) fn ask(&mut self, args: &[Vec<u8>]) -> Option<Vec<u8>> {
        let subscribes = args[0].to_ascii_lowercase().ends_with(b"subscribe");
        if subscribes && self.client.transaction.is_some() {
            return None;
        }
        let request: OwnedRequest = args.iter().map(Vec::as_slice).collect();
        let mut out = Vec::new();
        let flow =
            engine::execute_to_end(&self.engine, &mut self.worker, &mut self.client, request.as_request(), &mut out);
        let protocol = self.client.protocol;
        let is_silent = std::mem::replace(&mut self.client.reply_mode, ReplyMode::On) != ReplyMode::On;
        self.client.handle.drain_outbox(&mut Vec::new());
        if args[0].eq_ignore_ascii_case(b"config") {
            limit_strings(&self.engine.settings);
        }
        let may_be_silent = match flow {
            Flow::Continue => is_silent || args[0].eq_ignore_ascii_case(b"monitor"),
            Flow::Close => {
                self.engine.clients.remove(&self.client.handle);
                self.client = connect(&self.engine);
                true
            }
            Flow::Block(blocked) => {
                let reply = engine::outcome(&self.engine, &self.worker, &mut self.client, &blocked.event, true)
                    .expect("a wait that is over has a reply");
                assert_eq!(reply_len(&reply, protocol), Some(reply.len()));
                assert!(out.is_empty(), "a client that waits has no reply yet: {}", shown(args));
                true
            }
            Flow::Again | Flow::AwaitScript => panic!("it was executed to its end"),
            Flow::Paused(_) => {
                assert!(out.is_empty(), "a request that was held has no reply: {}", shown(args));
                self.engine.pause.end();
                return self.ask(args);
            }
        };
        if out.is_empty() && may_be_silent {
            return None;
        }
        // A transaction that asks for silence is answered itself, as in Redis.
        let is_exec = args[0].eq_ignore_ascii_case(b"exec");
        assert!(!is_silent || is_exec, "a reply although there should be none: {}", shown(args));
        if subscribes {
            let mut rest = &out[..];
            while !rest.is_empty() {
                let len = reply_len(rest, protocol).unwrap_or_else(|| panic!("{} has a broken reply", shown(args)));
                rest = &rest[len..];
            }
            engine::forget(&self.engine, &mut self.client);
            return Some(out);
        }
        assert_eq!(
            reply_len(&out, protocol),
            Some(out.len()),
            "{} must have one whole reply, not \"{}\"",
            shown(args),
            out.escape_ascii()
        );
        Some(out)
    }

    /// Everything that the keyspace holds now. Its indexes of deadlines are checked on the way.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let (locked, now_ms) = (self.engine.keyspace.lock_all(), self.now_ms());
        let mut snapshot = Snapshot::new();
        for (_, shard) in locked.shards() {
            for index in 0..DATABASES {
                let db = shard.db(index);
                let everything = || db.iter(0);
                let deadlines = everything().filter(|entry| entry.deadline().is_some()).count();
                assert_eq!(db.with_deadline(), deadlines, "keys with a deadline in database {index}");
                let field_deadlines = everything().filter(|entry| match entry.object() {
                    Some(Object::Hash(table)) => table.soonest().is_some(),
                    _ => false,
                });
                assert_eq!(db.with_field_deadlines(), field_deadlines.count(), "such hashes in database {index}");
                for entry in db.iter(now_ms) {
                    let content = match db.value(entry, now_ms) {
                        Value::String(string) => Content::String(string.bytes().into_owned()),
                        Value::Hash(hash) => Content::Hash(
                            hash.iter()
                                .map(|(field, value)| {
                                    let field = field.scalar().bytes().into_owned();
                                    let deadline = hash.deadline(&field).flatten();
                                    (field, (value.bytes().into_owned(), deadline))
                                })
                                .collect(),
                        ),
                        Value::Set(set) => {
                            let members: Vec<Vec<u8>> = set.iter().map(|member| member.bytes().into_owned()).collect();
                            let distinct: BTreeSet<Vec<u8>> = members.iter().cloned().collect();
                            assert_eq!(distinct.len(), members.len(), "a member is there twice");
                            Content::Set(distinct)
                        }
                        Value::Cell(cell) => {
                            let versions: Vec<_> = cell.oldest_first().map(plain).collect();
                            let steps = || versions.windows(2).map(|two| (two[1].0 - two[0].0, two[1].1 > two[0].1));
                            assert!(steps().all(|step| step == (1, true)), "versions that do not follow each other");
                            assert_eq!(versions.last(), Some(&plain(cell.current())), "the newest version is another");
                            Content::Cell(versions)
                        }
                        Value::Run(run) => {
                            let events: Vec<_> = run
                                .after(0)
                                .map(|found| (found.number, found.time_ms, found.event.bytes.to_vec()))
                                .collect();
                            let steps = || events.windows(2).map(|two| (two[1].0 - two[0].0, two[1].1 >= two[0].1));
                            assert!(steps().all(|step| step == (1, true)), "events that do not follow each other");
                            assert_eq!(events.len() as u64, run.len(), "a run has another number of events");
                            Content::Run(events)
                        }
                        Value::Register(register) => {
                            let (open, order) = (register.open_from(), register.order());
                            let buffer: Vec<_> = register.buffered_from(register::Version::of_round(0)).collect();
                            assert!(buffer.iter().all(|(version, _)| open.is_some_and(|open| *version >= open)));
                            assert!(buffer.is_empty() || order.is_some());
                            let current = register.current();
                            assert!(current.is_some() || register.sealed().is_some() || !buffer.is_empty());
                            let value = current.map_or(Vec::new(), |current| current.value.to_vec());
                            Content::Register(value, format!("{current:?} {order:?} {open:?} {buffer:?}"))
                        }
                        Value::Session(session) => {
                            let pending: Vec<_> = session.pending_after(0).collect();
                            assert_eq!(pending.len(), session.pending_len());
                            let ids = pending.iter().rev().map(|request| request.id);
                            assert!(ids.eq((0..=session.last_id()).rev().take(pending.len())), "ids with a gap");
                            let answers: Vec<_> = session.all_answers().collect();
                            assert!(answers.iter().all(|answer| answer.id >= session.low()), "an answer was dropped");
                            let bytes = answers.iter().map(|answer| answer.bytes().len()).sum::<usize>();
                            assert_eq!(bytes, session.answer_bytes());
                            let payloads = pending.iter().map(|request| request.payload.len()).sum::<usize>();
                            Content::Session(bytes + payloads, format!("{} {answers:?} {pending:?}", session.ttl_ms()))
                        }
                        Value::List(list) => {
                            let mut elements = Vec::new();
                            list.for_each(|element| elements.push(element.bytes().into_owned()));
                            assert_eq!(elements.len(), list.len());
                            Content::List(elements)
                        }
                        Value::Stream(stream) => {
                            let entries: Vec<_> = stream.range(StreamId::MIN, StreamId::MAX).collect();
                            assert_eq!(entries.len() as u64, stream.len());
                            assert!(entries.windows(2).all(|two| two[0].id < two[1].id), "ids that do not rise");
                            assert!(entries.last().is_none_or(|entry| entry.id <= stream.last()));
                            let shown: Vec<_> =
                                entries.iter().map(|entry| (entry.id, entry.fields().collect::<Vec<_>>())).collect();
                            let bytes = entries.iter().flat_map(|entry| entry.fields());
                            let bytes: usize = bytes.map(|(name, value)| name.len() + value.len()).sum();
                            let groups = stream.groups().map(|(name, group)| {
                                let pending: Vec<_> = group.pending(..).map(|(id, _)| id).collect();
                                let owned: usize = group.consumers().map(|consumer| consumer.len()).sum();
                                let released = group.released_len();
                                assert_eq!(pending.len(), owned + released, "an entry is pending for one consumer");
                                format!("{name:?} {} {pending:?}", group.last)
                            });
                            let groups = groups.collect::<Vec<_>>();
                            Content::Stream(bytes, format!("{shown:?} {groups:?} {} {}", stream.last(), stream.added()))
                        }
                        Value::SortedSet(set) => Content::SortedSet(
                            set.iter()
                                .map(|member| (member.name.into_bytes().into_owned(), member.score.to_bits()))
                                .collect(),
                        ),
                        _ => {
                            let mut image = Vec::new();
                            db.write_image(entry, &mut image);
                            Content::Image(image)
                        }
                    };
                    match &content {
                        Content::Hash(fields) => assert!(!fields.is_empty(), "a hash without fields"),
                        Content::List(elements) => assert!(!elements.is_empty(), "a list without elements"),
                        Content::Set(members) => assert!(!members.is_empty(), "a set without members"),
                        Content::SortedSet(members) => {
                            assert!(!members.is_empty(), "a sorted set without members");
                            assert!(members.iter().all(|(_, bits)| !f64::from_bits(*bits).is_nan()), "a NaN");
                        }
                        Content::Cell(versions) => assert!(!versions.is_empty(), "a cell without a version"),
                        Content::Run(events) => assert!(!events.is_empty(), "a run without an event"),
                        Content::String(_)
                        | Content::Register(..)
                        | Content::Session(..)
                        | Content::Stream(..)
                        | Content::Image(_) => {}
                    }
                    let before = snapshot.insert((index, entry.name().to_vec()), (content, entry.deadline()));
                    assert!(before.is_none(), "a key is there twice");
                }
            }
        }
        snapshot
    }
}

/// Settings other than the defaults, within limits. Small queues reach the limits of claims.
pub(crate) fn settings(changed: &[(&str, &str)]) -> Arc<Settings> {
    let settings = Settings::new();
    for (name, value) in [("claim-reject-max", "2")].iter().chain(changed) {
        settings.load(name.as_bytes(), value.as_bytes()).expect("a setting of that name takes that value");
    }
    limit_strings(&settings);
    Arc::new(settings)
}

/// Makes the longest string as short as the setting allows, whatever CONFIG SET has made of it, so that no request can
/// ask for half a gigabyte of zeros.
fn limit_strings(settings: &Settings) {
    settings.load(b"proto-max-bulk-len", b"1mb").expect("the limit is a size");
}

/// Contents and deadline of each key, by database and name.
pub(crate) type Snapshot = BTreeMap<(usize, Vec<u8>), (Content, Option<u64>)>;

/// What a key holds, however it is stored.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Content {
    String(Vec<u8>),
    /// Values and deadlines by field.
    Hash(BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>),
    /// Names and the bits of their scores, in order.
    SortedSet(Vec<(Vec<u8>, u64)>),
    Set(BTreeSet<Vec<u8>>),
    List(Vec<Vec<u8>>),
    /// Number, time and value of each version, the oldest first.
    Cell(Vec<(u64, u64, Vec<u8>)>),
    /// Number, time and bytes of each event.
    Run(Vec<(u64, u64, Vec<u8>)>),
    /// Its value, and all there is to it.
    Register(Vec<u8>, String),
    /// How many bytes it holds, and all there is to it.
    Session(usize, String),
    /// How many bytes its entries have, and all there is to it.
    Stream(usize, String),
    /// A value of a type that is not looked into: its image.
    Image(Vec<u8>),
}

fn plain(version: Version<'_>) -> (u64, u64, Vec<u8>) {
    (version.number, version.time_us, version.value.to_vec())
}

/// A request as it would be typed.
pub(crate) fn shown(args: &[Vec<u8>]) -> String {
    let words: Vec<String> = args.iter().map(|arg| format!("\"{}\"", arg.escape_ascii())).collect();
    words.join(" ")
}

fn connect(engine: &Engine) -> Client {
    let id = engine.clients.next_id();
    let (address, now_ms) = (format!("127.0.0.1:{}", 10_000 + id % 50_000), engine.clock.unix_us() / 1000);
    let handle = ClientHandle::new(id, address, "127.0.0.1:6379".into(), 9, now_ms, Box::new(|| {}));
    let handle = Arc::new(handle);
    engine.clients.add(handle.clone());
    Client::new(handle, true)
}

// One reply -----------------------------------------------------------------------------------------------------------

/// How long the reply at the start of `wire` is; `None` when there is no whole one that Redis could have written.
pub(crate) fn reply_len(wire: &[u8], protocol: Protocol) -> Option<usize> {
    let mut rest = wire;
    step_over_reply(&mut rest, protocol)?;
    Some(wire.len() - rest.len())
}

fn step_over_reply(rest: &mut &[u8], protocol: Protocol) -> Option<()> {
    let resp3 = protocol == Protocol::Resp3;
    let (&kind, behind) = rest.split_first()?;
    *rest = behind;
    let line = take_line(rest)?;
    let count = || canonical(line).and_then(|number| usize::try_from(number).ok());
    match kind {
        b'+' | b'-' => Some(()),
        b':' => canonical(line).map(|_| ()),
        b'$' if line == b"-1" && !resp3 => Some(()),
        b'$' => step_over_bytes(rest, count()?),
        b'*' if line == b"-1" && !resp3 => Some(()),
        b'*' => step_over_replies(rest, count()?, protocol),
        b'_' if resp3 => line.is_empty().then_some(()),
        b'#' if resp3 => matches!(line, b"t" | b"f").then_some(()),
        b',' if resp3 => std::str::from_utf8(line).ok()?.parse::<f64>().ok().map(|_| ()),
        b'(' if resp3 => line.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-').then_some(()),
        b'=' if resp3 && rest.get(3) == Some(&b':') => step_over_bytes(rest, count()?),
        b'%' if resp3 => step_over_replies(rest, count()?.checked_mul(2)?, protocol),
        b'~' | b'>' if resp3 => step_over_replies(rest, count()?, protocol),
        // An attribute belongs to the reply behind it.
        b'|' if resp3 => step_over_replies(rest, count()?.checked_mul(2)?.checked_add(1)?, protocol),
        _ => None,
    }
}

fn step_over_replies(rest: &mut &[u8], count: usize, protocol: Protocol) -> Option<()> {
    (0..count).try_for_each(|_| step_over_reply(rest, protocol))
}

fn step_over_bytes(rest: &mut &[u8], len: usize) -> Option<()> {
    *rest = rest.get(len..)?.strip_prefix(b"\r\n")?;
    Some(())
}

/// The bytes before the next `\r\n`, among which there is no other line break.
fn take_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'))?;
    let line = &rest[..end];
    *rest = rest[end..].strip_prefix(b"\r\n")?;
    Some(line)
}

/// A number in the one form that it is written in.
fn canonical(text: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (number.to_string().as_bytes() == text).then_some(number)
}

// What is not there ---------------------------------------------------------------------------------------------------

struct StoppedClock {
    unix_us: AtomicU64,
}

impl Clock for StoppedClock {
    fn unix_us(&self) -> u64 {
        self.unix_us.load(Relaxed)
    }

    fn monotonic_ns(&self) -> u64 {
        self.unix_us() * 1000
    }
}
