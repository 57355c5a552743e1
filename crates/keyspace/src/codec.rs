//! Effects as bytes and back: what the journal keeps. Knows every effect's tag and layout; refuses to know files and
//! sequence numbers. docs/effect-format.md shows the same.
//!
//! Tags are given out once: an effect that changes its layout gets a new one, and the old one stays readable for ever.

use super::db::Db;
use super::effect::{Cause, Effect, Image};
use super::entry::{Entry, Kind};
use super::hash::{Form, scalar};
use super::key::Key;
use super::object::Object;
use super::packed::{Packed, Pair};
use super::scalar::Scalar;
use super::shard::DATABASES;
use super::sorted_set::{self, Scored, SortedSetRef};

/// The first byte of an encoded effect. IMPORTANT: append only; journals on disk hold these numbers.
pub mod tag {
    pub const STRING_SET: u8 = 1;
    pub const STRING_WRITE: u8 = 2;
    pub const HASH_SET: u8 = 3;
    pub const HASH_SET_KEEPING_DEADLINES: u8 = 4;
    pub const HASH_DELETE: u8 = 5;
    pub const HASH_EXPIRE: u8 = 6;
    pub const HASH_DEADLINE: u8 = 7;
    pub const DELETE: u8 = 8;
    pub const EXPIRE: u8 = 9;
    pub const DEADLINE: u8 = 10;
    pub const RENAME: u8 = 11;
    pub const COPY: u8 = 12;
    pub const MOVE: u8 = 13;
    pub const PUT_STRING: u8 = 14;
    pub const PUT_HASH: u8 = 15;
    pub const FLUSH_DB: u8 = 16;
    pub const FLUSH_ALL: u8 = 17;
    pub const SWAP_DB: u8 = 18;
    pub const LIBRARY_SET: u8 = 19;
    pub const LIBRARY_DELETE: u8 = 20;
    pub const INDEX_SET: u8 = 21;
    pub const INDEX_DELETE: u8 = 22;
    pub const SORTED_SET_ADD: u8 = 23;
    pub const SORTED_SET_REMOVE: u8 = 24;
    pub const PUT_SORTED_SET: u8 = 25;
}

/// How a scalar is written: a length and bytes, or a number.
const SCALAR_BYTES: u8 = 0;
const SCALAR_NUMBER: u8 = 1;
/// Bit of a string image: the string was changed in place.
const MARKED: u8 = 2;

/// How a hash image is kept: packed, or a table of some form.
const FORMS: [(Option<Form>, u8); 4] =
    [(None, 0), (Some(Form::Small), 1), (Some(Form::SmallWithDeadlines), 2), (Some(Form::Large), 3)];
/// Bit of a hash image: every field is followed by its deadline.
const WITH_DEADLINES: u8 = 128;

/// How a sorted set image is kept: packed, or a table of some form.
const SORTED_SET_FORMS: [(Option<sorted_set::Form>, u8); 3] =
    [(None, 0), (Some(sorted_set::Form::Small), 1), (Some(sorted_set::Form::Large), 2)];

/// How a score is written: a double, or a whole number.
const SCORE_DOUBLE: u8 = 0;
const SCORE_NUMBER: u8 = 1;
/// Whole numbers nearer to zero than this are the same as doubles and as integers.
const SCORE_NUMBER_MAX: f64 = (1_u64 << 53) as f64;

/// Appends an effect in database `db`.
pub fn encode(db: usize, effect: &Effect<'_>, out: &mut Vec<u8>) {
    let mut head = |tag: u8| out.extend_from_slice(&[tag, db as u8]);
    match *effect {
        Effect::StringSet { key, value, deadline } => {
            head(tag::STRING_SET);
            put_bytes(key.name, out);
            put_deadline(deadline, out);
            put_scalar(value, 0, out);
        }
        Effect::StringWrite { key, offset, bytes } => {
            head(tag::STRING_WRITE);
            put_bytes(key.name, out);
            put_number(offset as u64, out);
            put_bytes(bytes, out);
        }
        Effect::HashSet { key, fields, keep_deadlines } => {
            head(if keep_deadlines { tag::HASH_SET_KEEPING_DEADLINES } else { tag::HASH_SET });
            put_bytes(key.name, out);
            put_number(fields.len() as u64, out);
            for (field, value) in fields {
                put_bytes(field, out);
                put_bytes(value, out);
            }
        }
        Effect::HashDelete { key, fields, cause } => {
            head(if cause == Cause::Expired { tag::HASH_EXPIRE } else { tag::HASH_DELETE });
            put_bytes(key.name, out);
            put_number(fields.len() as u64, out);
            fields.iter().for_each(|field| put_bytes(field, out));
        }
        Effect::HashDeadline { key, field, deadline } => {
            head(tag::HASH_DEADLINE);
            put_bytes(key.name, out);
            put_bytes(field, out);
            put_deadline(deadline, out);
        }
        Effect::SortedSetAdd { key, members } => {
            head(tag::SORTED_SET_ADD);
            put_bytes(key.name, out);
            put_number(members.len() as u64, out);
            members.iter().for_each(|member| put_scored(*member, out));
        }
        Effect::SortedSetRemove { key, members } => {
            head(tag::SORTED_SET_REMOVE);
            put_bytes(key.name, out);
            put_number(members.len() as u64, out);
            members.iter().for_each(|member| put_bytes(member, out));
        }
        Effect::Delete { key, cause } => {
            head(if cause == Cause::Expired { tag::EXPIRE } else { tag::DELETE });
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
        Effect::Put { key, value: Image::String { value, marked }, deadline } => {
            head(tag::PUT_STRING);
            put_bytes(key.name, out);
            put_deadline(deadline, out);
            put_scalar(value, if marked { MARKED } else { 0 }, out);
        }
        Effect::Put { key, value: Image::Hash { fields, deadlines, form }, deadline } => {
            let timed = !deadlines.is_empty();
            put_hash_head(db, key.name, deadline, form, timed, fields.len(), out);
            for (at, (field, value)) in fields.iter().enumerate() {
                put_bytes(field, out);
                put_bytes(value, out);
                if timed {
                    put_deadline(deadlines[at], out);
                }
            }
        }
        Effect::Put { key, value: Image::SortedSet { members, form }, deadline } => {
            put_sorted_set_head(db, key.name, deadline, form, members.len(), out);
            members.iter().for_each(|member| put_scored(*member, out));
        }
        Effect::FlushDb => head(tag::FLUSH_DB),
        Effect::FlushAll => head(tag::FLUSH_ALL),
        Effect::SwapDb { a, b } => {
            head(tag::SWAP_DB);
            out.extend_from_slice(&[a as u8, b as u8]);
        }
        Effect::LibrarySet { name, code } => {
            head(tag::LIBRARY_SET);
            put_bytes(name, out);
            put_bytes(code, out);
        }
        Effect::LibraryDelete { name } => {
            head(tag::LIBRARY_DELETE);
            put_bytes(name, out);
        }
        Effect::IndexSet { name, definition } => {
            head(tag::INDEX_SET);
            put_bytes(name, out);
            put_bytes(definition, out);
        }
        Effect::IndexDelete { name } => {
            head(tag::INDEX_DELETE);
            put_bytes(name, out);
        }
    }
}

/// Appends an entry of database `db` as the [`Effect::Put`] that makes it, straight from where it lies.
pub(super) fn encode_entry(db: usize, within: &Db, entry: &Entry, out: &mut Vec<u8>) {
    let (name, deadline) = (entry.name(), entry.deadline());
    let mut string = |value: Scalar<'_>| {
        out.extend_from_slice(&[tag::PUT_STRING, db as u8]);
        put_bytes(name, out);
        put_deadline(deadline, out);
        put_scalar(value, if entry.is_marked() { MARKED } else { 0 }, out);
    };
    match entry.kind() {
        Kind::Text | Kind::Number => string(scalar(entry)),
        Kind::PackedHash => {
            let packed = Packed::new(entry.body(), &within.shapes);
            put_hash_head(db, name, deadline, None, false, packed.len(), out);
            for (field, value) in packed.iter() {
                field.scalar().with_bytes(|field| put_bytes(field, out));
                value.with_bytes(|value| put_bytes(value, out));
            }
        }
        Kind::PackedSortedSet => {
            let set = SortedSetRef::Packed(sorted_set::Packed::new(entry.body()));
            encode_sorted_set(db, name, deadline, set, None, out);
        }
        Kind::Object => match entry.object().expect("an object entry has an object") {
            Object::Bytes(bytes) => string(Scalar::Bytes(bytes)),
            Object::SortedSet(set) => {
                encode_sorted_set(db, name, deadline, SortedSetRef::Table(set), Some(set.form), out);
            }
            Object::Hash(table) => {
                let timed = table.soonest().is_some();
                put_hash_head(db, name, deadline, Some(table.form), timed, table.len(), out);
                for field in table.entries() {
                    put_bytes(field.name(), out);
                    scalar(field).with_bytes(|value| put_bytes(value, out));
                    if timed {
                        put_deadline(field.deadline(), out);
                    }
                }
            }
        },
    }
}

fn put_hash_head(
    db: usize,
    name: &[u8],
    deadline: Option<u64>,
    form: Option<Form>,
    timed: bool,
    fields: usize,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&[tag::PUT_HASH, db as u8]);
    put_bytes(name, out);
    put_deadline(deadline, out);
    let form = FORMS.iter().find(|(known, _)| *known == form).map_or(0, |(_, byte)| *byte);
    out.push(form | if timed { WITH_DEADLINES } else { 0 });
    put_number(fields as u64, out);
}

fn encode_sorted_set(
    db: usize,
    name: &[u8],
    deadline: Option<u64>,
    set: SortedSetRef<'_>,
    form: Option<sorted_set::Form>,
    out: &mut Vec<u8>,
) {
    put_sorted_set_head(db, name, deadline, form, set.len(), out);
    for member in set.iter() {
        member.name.with_bytes(|name| put_scored((member.score, name), out));
    }
}

fn put_sorted_set_head(
    db: usize,
    name: &[u8],
    deadline: Option<u64>,
    form: Option<sorted_set::Form>,
    members: usize,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&[tag::PUT_SORTED_SET, db as u8]);
    put_bytes(name, out);
    put_deadline(deadline, out);
    out.push(SORTED_SET_FORMS.iter().find(|(known, _)| *known == form).map_or(0, |(_, byte)| *byte));
    put_number(members as u64, out);
}

fn put_scored((score, name): Scored<'_>, out: &mut Vec<u8>) {
    let is_negative_zero = score == 0.0 && score.is_sign_negative();
    if score.abs() < SCORE_NUMBER_MAX && score.trunc() == score && !is_negative_zero {
        out.push(SCORE_NUMBER);
        put_signed(score as i64, out);
    } else {
        out.push(SCORE_DOUBLE);
        out.extend_from_slice(&score.to_le_bytes());
    }
    put_bytes(name, out);
}

/// Zigzag: small negative numbers are short too.
#[inline]
fn put_signed(number: i64, out: &mut Vec<u8>) {
    put_number((number << 1 ^ number >> 63) as u64, out);
}

/// Seven bits a byte, the lowest first; the top bit says that there is more.
#[inline]
fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[inline]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// None is zero; a deadline is one more than its milliseconds.
#[inline]
fn put_deadline(deadline: Option<u64>, out: &mut Vec<u8>) {
    put_number(deadline.map_or(0, |deadline| deadline.saturating_add(1)), out);
}

fn put_scalar(value: Scalar<'_>, bits: u8, out: &mut Vec<u8>) {
    match value {
        Scalar::Bytes(bytes) => {
            out.push(SCALAR_BYTES | bits);
            put_bytes(bytes, out);
        }
        Scalar::Number(number) => {
            out.push(SCALAR_NUMBER | bits);
            put_signed(number, out);
        }
    }
}

/// What is wrong with bytes that should be effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadEffect {
    /// The bytes end in the middle of an effect.
    CutShort,
    /// No effect has this tag: a newer version may have written it.
    UnknownTag(u8),
    /// A number is out of its range.
    OutOfRange,
    /// It cannot be applied to what the key holds.
    WrongType,
}

impl std::fmt::Display for BadEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BadEffect::CutShort => f.write_str("an effect is cut short"),
            BadEffect::UnknownTag(tag) => write!(f, "unknown effect {tag}: was it written by a newer version?"),
            BadEffect::OutOfRange => f.write_str("an effect has a number that is out of range"),
            BadEffect::WrongType => f.write_str("an effect does not fit the value that its key holds"),
        }
    }
}

impl std::error::Error for BadEffect {}

/// Reads effects one after the other. The lists that an effect refers to are kept here.
#[derive(Default)]
pub struct Decoder<'a> {
    rest: &'a [u8],
    pairs: Vec<Pair<'a>>,
    names: Vec<&'a [u8]>,
    deadlines: Vec<Option<u64>>,
    members: Vec<Scored<'a>>,
}

impl<'a> Decoder<'a> {
    /// A reader of encoded effects.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: bytes, ..Decoder::default() }
    }

    /// The next effect with the number of its database; `None` at the end.
    #[allow(clippy::should_implement_trait, reason = "it lends, which no iterator can")]
    pub fn next(&mut self) -> Result<Option<(usize, Effect<'_>)>, BadEffect> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.byte()?;
        let db = self.database()?;
        let effect = match tag {
            tag::STRING_SET => {
                let (key, deadline) = (self.key()?, self.deadline()?);
                let (value, _) = self.scalar(0)?;
                Effect::StringSet { key, value, deadline }
            }
            tag::STRING_WRITE => {
                let (key, offset, bytes) = (self.key()?, self.count()?, self.bytes()?);
                Effect::StringWrite { key, offset, bytes }
            }
            tag::HASH_SET | tag::HASH_SET_KEEPING_DEADLINES => {
                let key = self.key()?;
                self.read_pairs(false)?;
                let keep_deadlines = tag == tag::HASH_SET_KEEPING_DEADLINES;
                Effect::HashSet { key, fields: &self.pairs, keep_deadlines }
            }
            tag::HASH_DELETE | tag::HASH_EXPIRE => {
                let key = self.key()?;
                self.read_names()?;
                let cause = if tag == tag::HASH_EXPIRE { Cause::Expired } else { Cause::Deleted };
                Effect::HashDelete { key, fields: &self.names, cause }
            }
            tag::HASH_DEADLINE => {
                let (key, field, deadline) = (self.key()?, self.bytes()?, self.deadline()?);
                Effect::HashDeadline { key, field, deadline }
            }
            tag::SORTED_SET_ADD => {
                let key = self.key()?;
                self.read_members()?;
                Effect::SortedSetAdd { key, members: &self.members }
            }
            tag::SORTED_SET_REMOVE => {
                let key = self.key()?;
                self.read_names()?;
                Effect::SortedSetRemove { key, members: &self.names }
            }
            tag::PUT_SORTED_SET => {
                let (key, deadline, byte) = (self.key()?, self.deadline()?, self.byte()?);
                let form = SORTED_SET_FORMS.iter().find(|(_, known)| *known == byte);
                let (form, _) = *form.ok_or(BadEffect::OutOfRange)?;
                self.read_members()?;
                Effect::Put { key, value: Image::SortedSet { members: &self.members, form }, deadline }
            }
            tag::DELETE => Effect::Delete { key: self.key()?, cause: Cause::Deleted },
            tag::EXPIRE => Effect::Delete { key: self.key()?, cause: Cause::Expired },
            tag::DEADLINE => {
                let (key, deadline) = (self.key()?, self.deadline()?);
                Effect::Deadline { key, deadline }
            }
            tag::RENAME => {
                let (from, to) = (self.key()?, self.key()?);
                Effect::Rename { from, to }
            }
            tag::COPY => {
                let (from, to, to_db) = (self.key()?, self.key()?, self.database()?);
                Effect::Copy { from, to, to_db }
            }
            tag::MOVE => {
                let (key, to_db) = (self.key()?, self.database()?);
                Effect::Move { key, to_db }
            }
            tag::PUT_STRING => {
                let (key, deadline) = (self.key()?, self.deadline()?);
                let (value, bits) = self.scalar(MARKED)?;
                Effect::Put { key, value: Image::String { value, marked: bits & MARKED != 0 }, deadline }
            }
            tag::PUT_HASH => {
                let (key, deadline) = (self.key()?, self.deadline()?);
                let byte = self.byte()?;
                let timed = byte & WITH_DEADLINES != 0;
                let form = FORMS.iter().find(|(_, known)| *known == byte & !WITH_DEADLINES);
                let (form, _) = *form.ok_or(BadEffect::OutOfRange)?;
                self.read_pairs(timed)?;
                let value = Image::Hash { fields: &self.pairs, deadlines: &self.deadlines, form };
                Effect::Put { key, value, deadline }
            }
            tag::FLUSH_DB => Effect::FlushDb,
            tag::FLUSH_ALL => Effect::FlushAll,
            tag::SWAP_DB => {
                let (a, b) = (self.database()?, self.database()?);
                Effect::SwapDb { a, b }
            }
            tag::LIBRARY_SET => Effect::LibrarySet { name: self.bytes()?, code: self.bytes()? },
            tag::LIBRARY_DELETE => Effect::LibraryDelete { name: self.bytes()? },
            tag::INDEX_SET => Effect::IndexSet { name: self.bytes()?, definition: self.bytes()? },
            tag::INDEX_DELETE => Effect::IndexDelete { name: self.bytes()? },
            unknown => return Err(BadEffect::UnknownTag(unknown)),
        };
        Ok(Some((db, effect)))
    }

    /// Fields with their values into `pairs` and, where they follow, deadlines into `deadlines`.
    fn read_pairs(&mut self, timed: bool) -> Result<(), BadEffect> {
        let count = self.count()?;
        if count == 0 {
            // There is no hash without fields: commands rely on it.
            return Err(BadEffect::OutOfRange);
        }
        self.pairs.clear();
        self.deadlines.clear();
        for _ in 0..count {
            let pair = (self.bytes()?, self.bytes()?);
            self.pairs.push(pair);
            if timed {
                let deadline = self.deadline()?;
                self.deadlines.push(deadline);
            }
        }
        Ok(())
    }

    /// Names into `names`.
    fn read_names(&mut self) -> Result<(), BadEffect> {
        let count = self.count()?;
        self.names.clear();
        for _ in 0..count {
            let name = self.bytes()?;
            self.names.push(name);
        }
        Ok(())
    }

    /// Members with their scores into `members`.
    fn read_members(&mut self) -> Result<(), BadEffect> {
        let count = self.count()?;
        if count == 0 {
            // There is no sorted set without members either.
            return Err(BadEffect::OutOfRange);
        }
        self.members.clear();
        for _ in 0..count {
            let member = (self.score()?, self.bytes()?);
            self.members.push(member);
        }
        Ok(())
    }

    fn score(&mut self) -> Result<f64, BadEffect> {
        let score = match self.byte()? {
            SCORE_NUMBER => self.signed()? as f64,
            SCORE_DOUBLE => {
                let (bytes, rest) = self.rest.split_first_chunk().ok_or(BadEffect::CutShort)?;
                self.rest = rest;
                f64::from_le_bytes(*bytes)
            }
            _ => return Err(BadEffect::OutOfRange),
        };
        if score.is_nan() { Err(BadEffect::OutOfRange) } else { Ok(score) }
    }

    fn signed(&mut self) -> Result<i64, BadEffect> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, BadEffect> {
        let (first, rest) = self.rest.split_first().ok_or(BadEffect::CutShort)?;
        self.rest = rest;
        Ok(*first)
    }

    #[inline]
    fn number(&mut self) -> Result<u64, BadEffect> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                return Err(BadEffect::OutOfRange);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadEffect::OutOfRange)
    }

    fn count(&mut self) -> Result<usize, BadEffect> {
        usize::try_from(self.number()?).map_err(|_| BadEffect::OutOfRange)
    }

    #[inline]
    fn bytes(&mut self) -> Result<&'a [u8], BadEffect> {
        let len = self.count()?;
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(BadEffect::CutShort)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn key(&mut self) -> Result<Key<'a>, BadEffect> {
        Ok(Key::new(self.bytes()?))
    }

    fn database(&mut self) -> Result<usize, BadEffect> {
        let db = usize::from(self.byte()?);
        if db < DATABASES { Ok(db) } else { Err(BadEffect::OutOfRange) }
    }

    fn deadline(&mut self) -> Result<Option<u64>, BadEffect> {
        Ok(self.number()?.checked_sub(1))
    }

    /// A scalar, and those of the `known` bits beside its kind that are set.
    fn scalar(&mut self, known: u8) -> Result<(Scalar<'a>, u8), BadEffect> {
        let byte = self.byte()?;
        if byte & !(SCALAR_NUMBER | known) != 0 {
            return Err(BadEffect::OutOfRange);
        }
        let value = match byte & SCALAR_NUMBER {
            SCALAR_BYTES => Scalar::Bytes(self.bytes()?),
            _ => Scalar::Number(self.signed()?),
        };
        Ok((value, byte & known))
    }
}
