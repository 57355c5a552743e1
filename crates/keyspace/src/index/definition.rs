//! An index of records by a field: its definition, and the score of a record in it. Refuses to know where its records
//! are kept (`parts`), how it is read (`views::index_ref`), and how it is created.

use super::heads::{Head, Heads};
use crate::effects::DATABASES;
use crate::storage::Scalar;
use crate::types::hash::{self, HashRef, Packed};
use crate::types::{Entry, Object, Shapes};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Which records an index has, and by which field.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Definition {
    /// Names begin with one of these.
    pub prefixes: Vec<Vec<u8>>,
    /// The field that is the score.
    pub field: Vec<u8>,
    pub condition: Option<Condition>,
    /// STAMP: a write to a record that does not itself set the field sets it to the current time.
    pub stamp: bool,
}

/// What another field must hold, or must not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub field: Vec<u8>,
    pub values: Vec<Vec<u8>>,
    /// The records with these values are the ones in the index; otherwise they are the ones left out.
    pub only: bool,
}

/// An index that there is.
pub struct Index {
    pub name: Vec<u8>,
    pub definition: Definition,
    /// All records that were there before it are in it.
    is_built: AtomicBool,
    /// Its heads in each database that has had records of it.
    heads: [OnceLock<Heads>; DATABASES],
}

/// All indexes; every database of every shard shares this list.
#[derive(Clone, Default)]
pub struct Indexes(pub(crate) Arc<[Arc<Index>]>);

/// The most indexes: every write of a record looks at each.
pub const INDEXES_MAX: usize = 64;

/// What a record is to an index.
#[derive(Clone, Copy)]
pub(crate) struct IndexScore(f64);

impl IndexScore {
    /// It is not in it. No score is infinite.
    pub(crate) const ABSENT: IndexScore = IndexScore(f64::INFINITY);
    /// It would be in it if its field were a number.
    const NOT_NUMERIC: IndexScore = IndexScore(f64::NAN);
    /// It was not looked up.
    pub(crate) const UNKNOWN: IndexScore = IndexScore(f64::NEG_INFINITY);

    #[inline]
    pub(crate) fn of_field(value: Scalar<'_>) -> IndexScore {
        number(value).map_or(IndexScore::NOT_NUMERIC, IndexScore)
    }

    #[inline]
    pub(crate) fn score(self) -> Option<f64> {
        self.0.is_finite().then_some(self.0)
    }

    #[inline]
    pub(crate) fn is_not_numeric(self) -> bool {
        self.0.is_nan()
    }

    #[inline]
    pub(crate) fn is_unknown(self) -> bool {
        self.is_same(IndexScore::UNKNOWN)
    }

    #[inline]
    pub(crate) fn is_same(self, other: IndexScore) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Definition {
    /// True for names that it is about.
    #[inline]
    pub fn covers(&self, name: &[u8]) -> bool {
        // An empty prefix has a dangling address; comparing with it costs some CPUs a hundred nanoseconds.
        self.prefixes.iter().any(|prefix| prefix.is_empty() || name.starts_with(prefix))
    }

    /// The head of a part whose first record has that score and name.
    pub fn head(&self, score: f64, name: &[u8]) -> Head {
        let behind = self.prefixes.iter().filter_map(|prefix| name.strip_prefix(&prefix[..])).next();
        Head::new(score, behind.unwrap_or(name))
    }

    /// True when a record's score can change with one of these fields.
    #[inline]
    pub fn concerns<'f>(&self, mut fields: impl Iterator<Item = &'f [u8]>) -> bool {
        let condition = self.condition.as_ref().map(|condition| &*condition.field);
        fields.any(|field| field == self.field || Some(field) == condition)
    }

    /// The score of a record; `None` when it is not in the index.
    #[inline]
    pub fn score(&self, hash: HashRef<'_>) -> Option<f64> {
        self.index_score(|field| hash.get(field)).score()
    }

    /// The score in this index of a record with these fields.
    #[inline]
    fn index_score<'v>(&self, field: impl Fn(&[u8]) -> Option<Scalar<'v>>) -> IndexScore {
        let Some(value) = field(&self.field) else { return IndexScore::ABSENT };
        match &self.condition {
            Some(condition) if !condition.admits(field(&condition.field)) => IndexScore::ABSENT,
            _ => IndexScore::of_field(value),
        }
    }

    /// The score of an entry, including expired fields that are not removed yet.
    #[inline]
    pub(crate) fn score_of_entry(&self, entry: &Entry, shapes: &Shapes) -> IndexScore {
        match entry.kind() {
            hash::PACKED => {
                let packed = Packed::new(entry.body(), shapes);
                self.index_score(|field| packed.get(field))
            }
            _ => match entry.object() {
                Some(Object::Hash(table)) => self.index_score(|field| HashRef::Table(table, 0).get(field)),
                _ => IndexScore::ABSENT,
            },
        }
    }
}

impl Condition {
    fn admits(&self, value: Option<Scalar<'_>>) -> bool {
        let listed = value.is_some_and(|value| value.with_bytes(|value| self.values.iter().any(|one| one == value)));
        listed == self.only
    }
}

impl std::fmt::Display for Definition {
    /// As the arguments of IDX.CREATE.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |f: &mut std::fmt::Formatter<'_>, items: &[Vec<u8>]| {
            write!(f, " {}", items.len())?;
            items.iter().try_for_each(|item| write!(f, " '{}'", item.escape_ascii()))
        };
        f.write_str("PREFIX")?;
        list(f, &self.prefixes)?;
        write!(f, " FIELD '{}'", self.field.escape_ascii())?;
        if let Some(condition) = &self.condition {
            let word = if condition.only { "ONLY" } else { "EXCLUDE" };
            write!(f, " {word} '{}'", condition.field.escape_ascii())?;
            list(f, &condition.values)?;
        }
        if self.stamp { f.write_str(" STAMP") } else { Ok(()) }
    }
}

/// The first byte of an encoded definition.
const FORMAT: u8 = 1;
const STAMPS: u8 = 1;
const HAS_CONDITION: u8 = 2;
const ONLY: u8 = 4;

impl Definition {
    /// As bytes, for the journal: docs/effect-format.md shows them.
    pub fn encode(&self) -> Vec<u8> {
        let condition = self.condition.as_ref();
        let bits = if self.stamp { STAMPS } else { 0 }
            | condition.map_or(0, |condition| HAS_CONDITION | if condition.only { ONLY } else { 0 });
        let mut out = vec![FORMAT, bits];
        let mut list = |items: &[Vec<u8>]| {
            out.extend((items.len() as u32).to_le_bytes());
            for item in items {
                out.extend((item.len() as u32).to_le_bytes());
                out.extend_from_slice(item);
            }
        };
        list(std::slice::from_ref(&self.field));
        list(&self.prefixes);
        if let Some(condition) = condition {
            list(std::slice::from_ref(&condition.field));
            list(&condition.values);
        }
        out
    }

    /// From bytes; `None` when no version has written them.
    pub fn decode(bytes: &[u8]) -> Option<Definition> {
        let [FORMAT, bits, rest @ ..] = bytes else { return None };
        if bits & !(STAMPS | HAS_CONDITION | ONLY) != 0 {
            return None;
        }
        let mut rest = rest;
        let mut take = |len: usize| {
            let (taken, left) = rest.split_at_checked(len)?;
            rest = left;
            Some(taken)
        };
        let mut list = || -> Option<Vec<Vec<u8>>> {
            let number = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize);
            let count = number(take(4)?)?;
            let mut items = Vec::new();
            for _ in 0..count {
                let len = number(take(4)?)?;
                items.push(take(len)?.to_vec());
            }
            Some(items)
        };
        let field = list()?.pop()?;
        let prefixes = list()?;
        let condition = match bits & HAS_CONDITION != 0 {
            true => Some(Condition { field: list()?.pop()?, values: list()?, only: bits & ONLY != 0 }),
            false => None,
        };
        rest.is_empty().then_some(Definition { prefixes, field, condition, stamp: bits & STAMPS != 0 })
    }
}

/// A field read as a score: a finite number.
#[inline]
pub fn number(value: Scalar<'_>) -> Option<f64> {
    match value {
        Scalar::Number(number) => Some(number as f64),
        Scalar::Bytes(text) => {
            let first = *text.first()?;
            if !first.is_ascii_digit() && !matches!(first, b'-' | b'+' | b'.') {
                return None;
            }
            let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
            // Minus zero is zero: they are the same place.
            number.is_finite().then_some(number + 0.0)
        }
    }
}

impl Index {
    /// An index with nothing in it yet.
    pub fn new(name: &[u8], definition: Definition) -> Index {
        Index {
            name: name.to_vec(),
            definition,
            is_built: AtomicBool::new(false),
            heads: [const { OnceLock::new() }; DATABASES],
        }
    }

    /// True when it can be read.
    pub fn is_built(&self) -> bool {
        self.is_built.load(Relaxed)
    }

    /// Its heads in a database of a keyspace with so many shards.
    pub fn heads(&self, db: usize, shard_count: usize) -> &Heads {
        self.heads[db].get_or_init(|| Heads::new(shard_count))
    }

    /// How many clients wait for its records in a database.
    #[inline]
    pub fn waiting(&self, db: usize) -> usize {
        self.heads[db].get().map_or(0, Heads::waiting)
    }

    /// A client that waited in a database waits no longer.
    pub fn remove_waiting(&self, db: usize) {
        if let Some(heads) = self.heads[db].get() {
            heads.remove_waiting();
        }
    }

    /// All records are in it.
    pub fn set_built(&self) {
        self.is_built.store(true, Relaxed);
    }
}

impl Indexes {
    /// With one more. There are fewer than may be.
    pub fn with(&self, index: Arc<Index>) -> Indexes {
        assert!(self.0.len() < INDEXES_MAX, "an index too many");
        Indexes(self.0.iter().cloned().chain([index]).collect())
    }

    /// Without one.
    pub fn without(&self, name: &[u8]) -> Indexes {
        Indexes(self.0.iter().filter(|index| index.name != name).cloned().collect())
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Index>> {
        self.0.iter()
    }

    /// The place of an index among the others.
    #[inline]
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        self.0.iter().position(|index| index.name == name)
    }

    /// The index of that name, whether or not it can be read.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Index>> {
        self.0.iter().find(|index| index.name == name)
    }

    /// True when the same indexes are in both.
    pub(crate) fn is_same(&self, other: &Indexes) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
