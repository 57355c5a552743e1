//! Reads all that a server holds: every key of every database, with value and deadlines, every library of functions, and
//! every index with what it gives.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Reply;

use crate::author::{DATABASES, Features, Owner};
use crate::cells::Cell;
use crate::checkpoints;
use crate::connection::{Connection, Outcome, Trouble, accepted};
use crate::event_runs::Event;
use crate::grouped;
use crate::indexes::{self, Indexed};
use crate::model::{Deadline, Entry, Field, Place, State, Value, parse_int, parse_score};
use crate::registers::Checkpoint;
use crate::request::{Command, command, encode, excerpt};
use crate::sessions::Session;
use crate::shared_queue::{self, QueueFound};
use crate::streams;

/// What a server holds, and when it was asked.
pub(crate) struct World {
    pub(crate) state: State,
    /// What each index gave in each database.
    pub(crate) indexed: Vec<Indexed>,
    /// The queue that all clients share, if it was made.
    pub(crate) queue: Option<QueueFound>,
    pub(crate) window: Window,
}

/// The time that the reading took: at any instant in it an entry may have been looked at.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

/// Reads what one client alone writes, without indexes' entries.
pub(crate) fn observe_owned(connection: &mut Connection, features: Features, owner: Owner) -> Outcome<World> {
    let from_ms = server_ms(connection)?;
    let mut state = State::default();
    if features.functions {
        read_libraries(connection, &mut state)?;
    }
    if features.own_commands {
        // Others drop theirs meanwhile.
        let is_own = |name: &[u8]| Owner::of(0, name) == Some(owner.number);
        read_indexes(connection, &mut state, is_own)?;
    }
    state.entries.retain(|place, _| Owner::of(place.db, &place.key) == Some(owner.number));
    let databases = owner.databases_of_its_own().into_iter().flatten().map(|db| (db, "*".to_owned()));
    for (db, pattern) in databases.chain([(0, format!("c{}:*", owner.number))]) {
        connection.must_run(&["SELECT", &db.to_string()])?;
        let keys = texts(connection.must_run(&["KEYS", &pattern])?)?;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for (key, entry) in keys.iter().zip(read_entries(connection, keys, features.field_deadlines)?) {
                if let Some(entry) = entry {
                    state.entries.insert(Place::new(db, key), Arc::new(entry));
                }
            }
        }
    }
    connection.must_run(&["SELECT", "0"])?;
    Ok(World { state, indexed: Vec::new(), queue: None, window: Window { from_ms, to_ms: server_ms(connection)? } })
}

/// The server's own idea of the time, by which it judges deadlines.
pub(crate) fn server_ms(connection: &mut Connection) -> Outcome<i64> {
    let parts = texts(connection.must_run(&["TIME"])?)?;
    let number = |at: usize| parts.get(at).and_then(|digits| parse_int(digits));
    match (number(0), number(1)) {
        (Some(seconds), Some(micros)) => Ok(seconds * 1000 + micros / 1000),
        _ => Err(Trouble::Wrong("TIME was not answered with two numbers".into())),
    }
}

pub(crate) fn observe(connection: &mut Connection, features: Features) -> Outcome<World> {
    let from_ms = server_ms(connection)?;
    let (mut state, mut indexed) = (State::default(), Vec::new());
    if features.functions {
        read_libraries(connection, &mut state)?;
    }
    let indexes = if features.own_commands { read_indexes(connection, &mut state, |_| true)? } else { Vec::new() };
    for db in 0..DATABASES {
        connection.must_run(&["SELECT", &db.to_string()])?;
        let keys = texts(connection.must_run(&["KEYS", "*"])?)?;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for (key, entry) in keys.iter().zip(read_entries(connection, keys, features.field_deadlines)?) {
                if let Some(entry) = entry {
                    state.entries.insert(Place::new(db, key), Arc::new(entry));
                }
            }
        }
        for name in &indexes {
            let entries = texts(connection.must_run(&[b"ZRANGE", name.as_slice(), b"0", b"-1", b"WITHSCORES"])?)?;
            let Value::Scores(scores) = scores(&entries)? else { unreachable!("scores are scores") };
            // In the order in which they came.
            let entries = entries.chunks(2).map(|pair| (pair[0].clone(), scores[&pair[0]])).collect();
            let groups = connection.must_run(&[b"IDX.GROUPS", name.as_slice()])?;
            let told = || Trouble::Wrong(format!("{} in place of groups", groups.excerpt()));
            indexed.push(Indexed { db, name: name.clone(), entries, groups: grouped::told(&groups).ok_or_else(told)? });
        }
    }
    connection.must_run(&["SELECT", "0"])?;
    let queue = if features.own_commands { shared_queue::observe(connection)? } else { None };
    Ok(World { state, indexed, queue, window: Window { from_ms, to_ms: server_ms(connection)? } })
}

const KEYS_AT_ONCE: usize = 500;

/// `None` for a key that expired since it was listed.
fn read_entries(connection: &mut Connection, keys: &[Vec<u8>], field_deadlines: bool) -> Outcome<Vec<Option<Entry>>> {
    let types = run_all(connection, keys.iter().map(|key| command(&[&"TYPE", key])))?;
    let deadlines = run_all(connection, keys.iter().map(|key| command(&[&"PEXPIRETIME", key])))?;
    let reads = keys.iter().zip(&types).map(|(key, kind)| match kind {
        Reply::Simple(kind) if kind == b"hash" => command(&[&"HGETALL", key]),
        Reply::Simple(kind) if kind == b"zset" => command(&[&"ZRANGE", key, &"0", &"-1", &"WITHSCORES"]),
        Reply::Simple(kind) if kind == b"list" => command(&[&"LRANGE", key, &"0", &"-1"]),
        Reply::Simple(kind) if kind == b"cell" => command(&[&"CELL.HISTORY", key]),
        Reply::Simple(kind) if kind == b"register" => command(&[&"REG.SNAPSHOT", &"KEYS", &"1", key]),
        Reply::Simple(kind) if kind == b"run" => command(&[&"RUN.EVENTS", key, &"LIMIT", &"1000000"]),
        Reply::Simple(kind) if kind == b"stream" => command(&[&"XINFO", &"STREAM", key, &"FULL", &"COUNT", &"0"]),
        Reply::Simple(kind) if kind == b"session" => command(&[&"SESSION.INFO", key]),
        _ => command(&[&"GET", key]),
    });
    let values = run_all(connection, reads)?;

    let mut entries = Vec::new();
    for ((value, kind), deadline) in values.into_iter().zip(types).zip(deadlines) {
        let value = match value {
            Reply::Bulk(blob) if kind == Reply::Simple(b"register".to_vec()) => register(&blob)?,
            Reply::Bulk(bytes) if bytes.starts_with(checkpoints::MAGIC) => Some(Value::Checkpoint(checkpoint(&bytes)?)),
            Reply::Bulk(bytes) => Some(Value::String(bytes)),
            Reply::Array(items) if items.is_empty() => None,
            Reply::Array(_) if kind == Reply::Simple(b"zset".to_vec()) => Some(scores(&texts(value)?)?),
            Reply::Array(_) if kind == Reply::Simple(b"list".to_vec()) => Some(Value::List(texts(value)?)),
            Reply::Array(versions) if kind == Reply::Simple(b"cell".to_vec()) => Some(cell(versions)?),
            Reply::Array(events) if kind == Reply::Simple(b"run".to_vec()) => Some(run(&events)?),
            Reply::Array(_) if kind == Reply::Simple(b"stream".to_vec()) => {
                let stream = streams::observed(&value);
                let wrong = || Trouble::Wrong(format!("{} in place of a stream", value.excerpt()));
                Some(Value::Stream(stream.ok_or_else(wrong)?))
            }
            Reply::Array(_) if kind == Reply::Simple(b"session".to_vec()) => Some(session(&value)?),
            Reply::Array(_) => Some(hash(texts(value)?)),
            _ => None,
        };
        // A session's is when it would expire if it were not renewed.
        let deadline = deadline_of(&deadline).filter(|_| !matches!(value, Some(Value::Session(_))));
        entries.push(value.map(|value| Entry { value, deadline }));
    }
    read_pending(connection, keys, &mut entries)?;
    check_snapshots(connection, keys, &entries)?;
    if field_deadlines {
        read_field_deadlines(connection, keys, &mut entries)?;
    }
    Ok(entries)
}

/// The snapshot that a run has kept is what its events come to.
fn check_snapshots(connection: &mut Connection, keys: &[Vec<u8>], entries: &[Option<Entry>]) -> Outcome<()> {
    let is_run = |entry: &Option<Entry>| matches!(entry, Some(Entry { value: Value::Run(_), .. }));
    let runs = keys.iter().zip(entries).filter(|(_, entry)| is_run(entry)).map(|(key, _)| key);
    let reads = runs.flat_map(|key| ["RUN.SNAPSHOT", "RUN.PROJECT"].map(|name| command(&[&name, key])));
    for pair in run_all(connection, reads)?.chunks(2) {
        // It may expire in between.
        if pair[0] != pair[1] && !pair[1].is_nil() {
            let [kept, replayed] = [&pair[0], &pair[1]].map(Reply::excerpt);
            return Err(Trouble::Wrong(format!(
                "a run has kept the snapshot {kept}, and its events come to {replayed}"
            )));
        }
    }
    Ok(())
}

/// Reads the requests to the clients of sessions, each with its id.
fn read_pending(connection: &mut Connection, keys: &[Vec<u8>], entries: &mut [Option<Entry>]) -> Outcome<()> {
    let mut sessions = Vec::new();
    for (key, entry) in keys.iter().zip(entries) {
        if let Some(Entry { value: Value::Session(session), .. }) = entry {
            sessions.push((key, session));
        }
    }
    let asked = sessions.iter().map(|(key, _)| command(&[&"SESSION.PENDING", key, &"LIMIT", &"1000000"]));
    let replies = run_all(connection, asked)?;
    for ((_, session), reply) in sessions.into_iter().zip(replies) {
        for request in reply.items() {
            match request.items() {
                [Reply::Integer(id), Reply::Bulk(payload), Reply::Integer(_)] => {
                    session.pending.insert(*id, payload.clone());
                }
                _ => return Err(Trouble::Wrong(format!("{} in the requests of a session", request.excerpt()))),
            }
        }
    }
    Ok(())
}

fn read_field_deadlines(connection: &mut Connection, keys: &[Vec<u8>], entries: &mut [Option<Entry>]) -> Outcome<()> {
    let mut hashes = Vec::new();
    for (key, entry) in keys.iter().zip(entries.iter_mut()) {
        if let Some(Entry { value: Value::Hash(fields), .. }) = entry {
            hashes.push((key, fields));
        }
    }
    let asked = hashes.iter().map(|(key, fields)| {
        let count = fields.len().to_string();
        let mut asked = command(&[&"HPEXPIRETIME", key, &"FIELDS", &count]);
        asked.extend(fields.keys().cloned());
        asked
    });
    let replies = run_all(connection, asked)?;
    for ((_, fields), reply) in hashes.into_iter().zip(replies) {
        let Reply::Array(deadlines) = reply else { return Err(Trouble::Wrong(format!("HPEXPIRETIME said {reply}"))) };
        let mut deadlines = deadlines.iter();
        fields.retain(|_, field| {
            let deadline = deadlines.next();
            field.deadline = deadline.and_then(deadline_of);
            // Gone since its value was read.
            deadline != Some(&Reply::Integer(-2))
        });
    }
    entries.iter_mut().for_each(|entry| {
        entry.take_if(|entry| matches!(&entry.value, Value::Hash(fields) if fields.is_empty()));
    });
    Ok(())
}

/// The libraries of functions, as they were loaded.
fn read_libraries(connection: &mut Connection, state: &mut State) -> Outcome<()> {
    let libraries = connection.must_run(&["FUNCTION", "LIST", "WITHCODE"])?;
    for library in libraries.items() {
        let (name, code) = (part(library, b"library_name")?, part(library, b"library_code")?);
        state.define(name.bytes(), code.bytes().to_vec());
    }
    Ok(())
}

/// The indexes that clients have made, of those that are chosen; their names.
fn read_indexes(
    connection: &mut Connection,
    state: &mut State,
    is_chosen: impl Fn(&[u8]) -> bool,
) -> Outcome<Vec<Vec<u8>>> {
    let mut names = texts(connection.must_run(&["IDX.LIST"])?)?;
    // The one that every server has by default covers no record of the load.
    names.retain(|name| name != b"idx:updated_at" && name != shared_queue::INDEX.as_bytes() && is_chosen(name));
    for name in &names {
        let info = connection.must_run(&[b"IDX.INFO", name.as_slice()])?;
        let (prefixes, field) = (part(&info, b"prefixes")?, part(&info, b"field")?);
        let mut words = command(&[&"PREFIX", &"1", &prefixes.items()[0].bytes(), &"FIELD", &field.bytes()]);
        if let Ok(group) = part(&info, b"group") {
            words.extend(command(&[&"GROUP", &group.bytes()]));
        }
        if let Ok(held) = part(&info, b"held")
            && let [field, values @ ..] = held.items()
        {
            words.extend(command(&[&"HELD", &field.bytes(), &values.len().to_string()]));
            words.extend(values.iter().map(|value| value.bytes().to_vec()));
        }
        state.define(name, indexes::definition(&words));
        let limits = connection.must_run(&[b"IDX.LIMIT", name.as_slice()])?;
        let told = || Trouble::Wrong(format!("{} in place of limits", limits.excerpt()));
        grouped::read_limits(state, name, &limits).ok_or_else(told)?;
    }
    Ok(names)
}

/// What stands behind a name in a map, which RESP2 has as an array.
fn part<'a>(map: &'a Reply, name: &[u8]) -> Outcome<&'a Reply> {
    let found = map.items().chunks(2).find(|pair| pair[0] == Reply::Bulk(name.to_vec()));
    found
        .map(|pair| &pair[1])
        .ok_or_else(|| Trouble::Wrong(format!("{} has no {}", map.excerpt(), String::from_utf8_lossy(name))))
}

/// Sends all commands in one write, so there must not be too many.
fn run_all(connection: &mut Connection, commands: impl Iterator<Item = Command>) -> Outcome<Vec<Reply>> {
    let mut bytes = Vec::new();
    let count = commands.map(|command| encode(&command, &mut bytes)).count();
    connection.send(&bytes)?;
    (0..count).map(|_| accepted(connection.read()?, || "a read".into())).collect()
}

fn hash(texts: Vec<Vec<u8>>) -> Value {
    let mut fields = BTreeMap::new();
    let mut texts = texts.into_iter();
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        fields.insert(name, Field { value, deadline: None });
    }
    Value::Hash(fields)
}

/// A cell from its history: no version is missing.
fn cell(versions: Vec<Reply>) -> Outcome<Value> {
    let mut cell = Cell { version: 0, values: Vec::new() };
    for (back, version) in versions.into_iter().enumerate() {
        match version.items() {
            [Reply::Bulk(value), Reply::Integer(number), Reply::Integer(_)]
                if back == 0 || *number == cell.version - back as i64 =>
            {
                cell.version = if back == 0 { *number } else { cell.version };
                cell.values.push(value.clone());
            }
            _ => return Err(Trouble::Wrong(format!("{} in the history of a cell", version.excerpt()))),
        }
    }
    Ok(Value::Cell(cell))
}

/// A run from its events: none is missing, and none is earlier than the one before.
fn run(replies: &[Reply]) -> Outcome<Value> {
    let (mut events, mut last_time) = (Vec::new(), 0);
    for (number, reply) in (1..).zip(replies) {
        let (run_seq, time) = (part(reply, b"runSeq")?.integer(), part(reply, b"persistedAt")?.integer());
        if run_seq != number || time < last_time {
            return Err(Trouble::Wrong(format!("{} in place of event {number} of a run", reply.excerpt())));
        }
        last_time = time;
        let text = |name: &[u8]| part(reply, name).map(|text| text.bytes().to_vec());
        events.push(Arc::new(Event {
            key: text(b"idempotencyKey")?,
            event_type: text(b"eventType")?,
            data: text(b"eventData")?,
            id: text(b"eventId")?,
            step: text(b"stepId").ok(),
            persisted_at: Some(time),
        }));
    }
    Ok(Value::Run(events))
}

/// The one register of a snapshot; `None` if it has expired.
fn register(blob: &[u8]) -> Outcome<Option<Value>> {
    let entry = checkpoint(blob)?.registers.into_values().next();
    Ok(entry.map(|entry| Arc::unwrap_or_clone(entry).value))
}

fn checkpoint(blob: &[u8]) -> Outcome<Checkpoint> {
    checkpoints::read(blob).ok_or_else(|| Trouble::Wrong(format!("{} is no snapshot of registers", excerpt(blob))))
}

/// A session from what is told of it; its pending requests are read later.
fn session(info: &Reply) -> Outcome<Value> {
    let number = |name: &[u8]| part(info, name).map(Reply::integer);
    let answers = (0..number(b"replies")?).map(|place| (place, Default::default())).collect();
    let (low, last_id) = (number(b"low")?, number(b"last_id")?);
    Ok(Value::Session(Session { low, answers, last_id, pending: BTreeMap::new() }))
}

fn scores(texts: &[Vec<u8>]) -> Outcome<Value> {
    let mut scores = BTreeMap::new();
    for pair in texts.chunks(2) {
        let score = parse_score(&pair[1]);
        let score = score.ok_or_else(|| Trouble::Wrong(format!("{} is no score", wire::quote(&pair[1]))))?;
        scores.insert(pair[0].clone(), score);
    }
    Ok(Value::Scores(scores))
}

fn deadline_of(reply: &Reply) -> Option<Deadline> {
    match reply {
        Reply::Integer(ms @ 0..) => Some(Deadline::at(*ms)),
        _ => None,
    }
}

fn texts(reply: Reply) -> Outcome<Vec<Vec<u8>>> {
    let wrong = |reply: &Reply| Trouble::Wrong(format!("{} where a list of strings belongs", reply.excerpt()));
    let Reply::Array(items) = reply else { return Err(wrong(&reply)) };
    let text = |item| if let Reply::Bulk(bytes) = item { Ok(bytes) } else { Err(wrong(&item)) };
    items.into_iter().map(text).collect()
}
