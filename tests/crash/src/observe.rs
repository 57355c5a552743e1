//! Reads all that a server holds: every key of every database, with value and deadlines.

use std::collections::BTreeMap;
use std::sync::Arc;

use wire::Reply;

use crate::author::DATABASES;
use crate::connection::{Connection, Outcome, Trouble, accepted};
use crate::model::{Deadline, Entry, Field, Place, State, Value};
use crate::request::{Command, command, encode, now_ms};

/// What a server holds, and when it was asked.
pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) window: Window,
}

/// The time that the reading took: at any instant in it an entry may have been looked at.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) from_ms: i64,
    pub(crate) to_ms: i64,
}

pub(crate) fn observe(connection: &mut Connection, field_deadlines: bool) -> Outcome<World> {
    let from_ms = now_ms();
    let mut state = State::default();
    for db in 0..DATABASES {
        connection.must_run(&["SELECT", &db.to_string()])?;
        let keys = texts(connection.must_run(&["KEYS", "*"])?)?;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            for (key, entry) in keys.iter().zip(read_entries(connection, keys, field_deadlines)?) {
                if let Some(entry) = entry {
                    state.entries.insert(Place::new(db, key), Arc::new(entry));
                }
            }
        }
    }
    connection.must_run(&["SELECT", "0"])?;
    Ok(World { state, window: Window { from_ms, to_ms: now_ms() } })
}

const KEYS_AT_ONCE: usize = 500;

/// `None` for a key that expired since it was listed.
fn read_entries(connection: &mut Connection, keys: &[Vec<u8>], field_deadlines: bool) -> Outcome<Vec<Option<Entry>>> {
    let types = run_all(connection, keys.iter().map(|key| command(&[&"TYPE", key])))?;
    let deadlines = run_all(connection, keys.iter().map(|key| command(&[&"PEXPIRETIME", key])))?;
    let names = types.iter().map(|kind| match kind {
        Reply::Simple(kind) if kind == b"hash" => "HGETALL",
        _ => "GET",
    });
    let values = run_all(connection, keys.iter().zip(names).map(|(key, name)| command(&[&name, key])))?;

    let mut entries = Vec::new();
    for (value, deadline) in values.into_iter().zip(deadlines) {
        let value = match value {
            Reply::Bulk(bytes) => Some(Value::String(bytes)),
            Reply::Array(_) => Some(texts(value)?).filter(|texts| !texts.is_empty()).map(hash),
            _ => None,
        };
        entries.push(value.map(|value| Entry { value, deadline: deadline_of(&deadline) }));
    }
    if field_deadlines {
        read_field_deadlines(connection, keys, &mut entries)?;
    }
    Ok(entries)
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
