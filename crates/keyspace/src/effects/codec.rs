//! Encodes and decodes effects, for the journal. Knows every effect's tag and layout; refuses to know files and
//! sequence numbers. docs/effect-format.md describes it.
//!
//! A tag is never reused: an effect with a new layout gets a new tag, and the old one stays readable.

use super::effect::{DATABASES, Definable, Effect, Image};
use crate::encoding::{BadEffect, Reader, put_bytes, put_deadline, put_number};
use crate::storage::Key;
use crate::types::register::plan;
use crate::types::{Cause, Change, Entry, Lists, Shapes, ValueType};

/// The first byte of an encoded effect. IMPORTANT: append only; journals on disk hold these numbers.
pub mod tag {
    pub const CHANGE: u8 = 1;
    pub const PUT: u8 = 2;
    pub const DELETE: u8 = 3;
    pub const EXPIRE: u8 = 4;
    pub const DEADLINE: u8 = 5;
    pub const RENAME: u8 = 6;
    pub const COPY: u8 = 7;
    pub const MOVE: u8 = 8;
    pub const FLUSH_DB: u8 = 9;
    pub const FLUSH_ALL: u8 = 10;
    pub const SWAP_DB: u8 = 11;
    pub const DEFINE: u8 = 12;
    pub const UNDEFINE: u8 = 13;
    pub const EVICT: u8 = 14;
    pub const RATE: u8 = 15;
}

/// The byte for each kind of definition.
const DEFINABLES: [(Definable, u8); 6] = [
    (Definable::Library, 1),
    (Definable::Index, 2),
    (Definable::Fork, 3),
    (Definable::Restore, 4),
    (Definable::Hook, 5),
    (Definable::Limits, 6),
];

/// Appends an effect in database `db`.
pub fn encode(db: usize, effect: &Effect<'_>, out: &mut Vec<u8>) {
    let mut head = |tag: u8| out.extend_from_slice(&[tag, db as u8]);
    match *effect {
        Effect::Change { key, ref change } => {
            head(tag::CHANGE);
            put_bytes(key.name, out);
            change.encode(out);
        }
        Effect::Put { key, value, deadline } => {
            put_head(db, key.name, deadline, value.value_type, out);
            out.extend_from_slice(value.bytes);
        }
        Effect::Rate { key, until_ns, now_ns } => {
            head(tag::RATE);
            put_bytes(key.name, out);
            put_number(now_ns, out);
            put_number(until_ns, out);
        }
        Effect::Delete { key, cause } => {
            head(match cause {
                Cause::Deleted => tag::DELETE,
                Cause::Expired => tag::EXPIRE,
                Cause::Evicted => tag::EVICT,
            });
            put_bytes(key.name, out);
        }
        Effect::Deadline { key, deadline } => {
            head(tag::DEADLINE);
            put_bytes(key.name, out);
            put_deadline(deadline, out);
        }
        Effect::Rename { from, to } => {
            head(tag::RENAME);
            put_bytes(from.name, out);
            put_bytes(to.name, out);
        }
        Effect::Copy { from, to, to_db } => {
            head(tag::COPY);
            put_bytes(from.name, out);
            put_bytes(to.name, out);
            out.push(to_db as u8);
        }
        Effect::Move { key, to_db } => {
            head(tag::MOVE);
            put_bytes(key.name, out);
            out.push(to_db as u8);
        }
        Effect::FlushDb => head(tag::FLUSH_DB),
        Effect::FlushAll => head(tag::FLUSH_ALL),
        Effect::SwapDb { a, b } => {
            head(tag::SWAP_DB);
            out.extend_from_slice(&[a as u8, b as u8]);
        }
        Effect::Define { what, name, definition } => {
            head(tag::DEFINE);
            put_definable(what, out);
            put_bytes(name, out);
            put_bytes(definition, out);
        }
        Effect::Undefine { what, name } => {
            head(tag::UNDEFINE);
            put_definable(what, out);
            put_bytes(name, out);
        }
    }
}

/// Appends the effect that creates an entry of database `db`.
pub fn encode_entry(db: usize, entry: &Entry, shapes: &Shapes, out: &mut Vec<u8>) {
    let value_type = ValueType::of(entry);
    put_head(db, entry.name(), entry.deadline(), value_type, out);
    (value_type.write_image)(entry, shapes, out);
}

fn put_head(db: usize, name: &[u8], deadline: Option<u64>, value_type: &ValueType, out: &mut Vec<u8>) {
    out.extend_from_slice(&[tag::PUT, db as u8]);
    put_bytes(name, out);
    put_deadline(deadline, out);
    out.push(value_type.tag);
}

fn put_definable(what: Definable, out: &mut Vec<u8>) {
    out.extend(DEFINABLES.iter().find(|(known, _)| *known == what).map(|(_, byte)| *byte));
}

/// Decodes effects in order. It owns the lists that a decoded effect borrows.
#[derive(Default)]
pub struct Decoder<'a> {
    reader: Reader<'a>,
    lists: Lists<'a>,
}

impl<'a> Decoder<'a> {
    /// Creates a decoder.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { reader: Reader::new(bytes), lists: Lists::default() }
    }

    /// Goes on with other bytes.
    pub fn go_on_with(&mut self, bytes: &'a [u8]) {
        self.reader = Reader::new(bytes);
    }

    /// How many bytes are not decoded yet.
    pub fn bytes_left(&self) -> usize {
        self.reader.rest().len()
    }

    /// The next effect with the number of its database; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "it lends, which no iterator can")]
    pub fn next(&mut self) -> Result<Option<(usize, Effect<'_>)>, BadEffect> {
        let Decoder { reader, lists } = self;
        if reader.is_empty() {
            return Ok(None);
        }
        let tag = reader.byte()?;
        let db = database(reader)?;
        let effect = match tag {
            tag::CHANGE => {
                let key = key(reader)?;
                Effect::Change { key, change: Change::decode(reader, lists)? }
            }
            tag::PUT => {
                let (key, deadline) = (key(reader)?, reader.deadline()?);
                let value_type = ValueType::with_tag(reader.byte()?)?;
                let bytes = reader.taken_by(|reader| (value_type.check_image)(reader))?;
                Effect::Put { key, value: Image { value_type, bytes }, deadline }
            }
            tag::DELETE => Effect::Delete { key: key(reader)?, cause: Cause::Deleted },
            tag::EXPIRE => Effect::Delete { key: key(reader)?, cause: Cause::Expired },
            tag::EVICT => Effect::Delete { key: key(reader)?, cause: Cause::Evicted },
            tag::RATE => {
                let key = key(reader)?;
                let (now_ns, until_ns) = (reader.number()?, reader.number()?);
                Effect::Rate { key, until_ns, now_ns }
            }
            tag::DEADLINE => Effect::Deadline { key: key(reader)?, deadline: reader.deadline()? },
            tag::RENAME => Effect::Rename { from: key(reader)?, to: key(reader)? },
            tag::COPY => Effect::Copy { from: key(reader)?, to: key(reader)?, to_db: database(reader)? },
            tag::MOVE => Effect::Move { key: key(reader)?, to_db: database(reader)? },
            tag::FLUSH_DB => Effect::FlushDb,
            tag::FLUSH_ALL => Effect::FlushAll,
            tag::SWAP_DB => Effect::SwapDb { a: database(reader)?, b: database(reader)? },
            tag::DEFINE => {
                let (what, name, definition) = (definable(reader)?, reader.bytes()?, reader.bytes()?);
                if what == Definable::Restore {
                    plan::check(definition)?;
                }
                Effect::Define { what, name, definition }
            }
            tag::UNDEFINE => Effect::Undefine { what: definable(reader)?, name: reader.bytes()? },
            unknown => return Err(BadEffect::UnknownTag(unknown)),
        };
        Ok(Some((db, effect)))
    }
}

fn key<'a>(reader: &mut Reader<'a>) -> Result<Key<'a>, BadEffect> {
    Ok(Key::new(reader.bytes()?))
}

fn database(reader: &mut Reader<'_>) -> Result<usize, BadEffect> {
    let db = usize::from(reader.byte()?);
    if db < DATABASES { Ok(db) } else { Err(BadEffect::OutOfRange) }
}

fn definable(reader: &mut Reader<'_>) -> Result<Definable, BadEffect> {
    let byte = reader.byte()?;
    let known = DEFINABLES.iter().find(|(_, known)| *known == byte);
    known.map(|(what, _)| *what).ok_or(BadEffect::OutOfRange)
}
