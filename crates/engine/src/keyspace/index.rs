//! Indexes of records by a field, kept in the same step as the records. Knows what is in an index and in which order;
//! refuses to know commands, and how an index comes to be (`indexing`).
//!
//! An index is spread over the shards as the records are: each database of each shard has a part with its own records, so
//! that a write changes the index under the lock it has anyway. A part holds a score and the hash of a name for each
//! record, 16 bytes in a B+tree; the name itself is in the table of keys, and is looked up when scores are equal.

use super::entry::{Entry, Kind};
use super::hash::HashRef;
use super::object::Object;
use super::packed::Packed;
use super::scalar::Scalar;
use super::shapes::Shapes;
use super::table::{NameHash, Table};
use crate::pure::ranked::Ranked;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Which records an index has, and by which field.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Definition {
    /// Names begin with one of these.
    pub prefixes: Vec<Vec<u8>>,
    /// The field that is the score.
    pub field: Vec<u8>,
    pub condition: Option<Condition>,
    /// A write to a record that does not itself set the field sets it to now.
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
}

/// All indexes. Every database of every shard has the same.
#[derive(Clone, Default)]
pub struct Indexes(Arc<[Arc<Index>]>);

/// A record in a part: its score, and the hash of its name.
pub(crate) type Item = (f64, u64);
/// The scores of one record in each index; not a number when the field is none.
pub(super) type Scores = SmallVec<[Option<f64>; 2]>;

impl Definition {
    /// True for names that it is about.
    #[inline]
    pub fn covers(&self, name: &[u8]) -> bool {
        self.prefixes.iter().any(|prefix| name.starts_with(prefix))
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
        self.score_or_nan(hash).filter(|score| !score.is_nan())
    }

    /// The same, but not a number for a record that would be in the index if its field were one.
    #[inline]
    fn score_or_nan(&self, hash: HashRef<'_>) -> Option<f64> {
        let score = number(hash.get(&self.field)?).unwrap_or(f64::NAN);
        match &self.condition {
            Some(condition) if !condition.admits(hash.get(&condition.field)) => None,
            _ => Some(score),
        }
    }
}

impl Condition {
    fn admits(&self, value: Option<Scalar<'_>>) -> bool {
        let listed = value.is_some_and(|value| value.with_bytes(|value| self.values.iter().any(|one| one == value)));
        listed == self.only
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
        Index { name: name.to_vec(), definition, is_built: AtomicBool::new(false) }
    }

    /// True when it can be read.
    pub fn is_built(&self) -> bool {
        self.is_built.load(Relaxed)
    }

    /// All records are in it.
    pub(crate) fn set_built(&self) {
        self.is_built.store(true, Relaxed);
    }
}

impl Indexes {
    /// With one more.
    pub fn with(&self, index: Arc<Index>) -> Indexes {
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
    fn is_same(&self, other: &Indexes) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The parts of all indexes in one database of one shard.
#[derive(Default)]
pub(super) struct Parts {
    indexes: Indexes,
    /// In the order of `indexes`. Empty until the first record comes.
    parts: Vec<Part>,
}

/// The records of one index in one database of one shard.
///
/// A record whose score changes is noted first and moved later, together with others: in the order of their scores, the
/// same leaves of the tree are met again and again, instead of a cold one for each. IMPORTANT: whoever reads settles
/// first, and so does a record before it goes: what is noted, and what is in the tree, has its name in the table.
#[derive(Default)]
pub(super) struct Part {
    items: Ranked<Item>,
    /// Items that have come (1) or gone (-1) since the tree was settled, in the order in which they did.
    moved: Vec<(Item, i8)>,
    /// Hashes of the names of records that would be in it if their field were a number.
    odd: HashSet<u64, foldhash::fast::FixedState>,
}

impl Parts {
    /// True when there is nothing to keep in step.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.indexes.is_empty()
    }

    pub(super) fn indexes(&self) -> &Indexes {
        &self.indexes
    }

    /// True when a change of these fields can change a score.
    #[inline]
    pub(super) fn concern<'f>(&self, fields: impl Iterator<Item = &'f [u8]> + Clone) -> bool {
        self.indexes.0.iter().any(|index| index.definition.concerns(fields.clone()))
    }

    /// From here on these are the indexes; those that were there before keep their records. What is left of those that are
    /// gone is for the caller to free.
    pub(super) fn set_indexes(&mut self, indexes: &Indexes) -> Vec<Part> {
        if self.indexes.is_same(indexes) {
            return Vec::new();
        }
        let mut left = Vec::new();
        if !self.parts.is_empty() {
            let mut before: Vec<Option<Part>> = std::mem::take(&mut self.parts).into_iter().map(Some).collect();
            let parts = indexes.iter().map(|index| {
                let at = self.indexes.0.iter().position(|known| Arc::ptr_eq(known, index));
                at.and_then(|at| before[at].take()).unwrap_or_default()
            });
            self.parts = parts.collect();
            left = before.into_iter().flatten().collect();
        }
        self.indexes = indexes.clone();
        left
    }

    /// Empty parts of the same indexes.
    pub(super) fn emptied(&self) -> Parts {
        Parts { indexes: self.indexes.clone(), parts: Vec::new() }
    }

    /// Brings the trees up to date.
    pub(super) fn settle(&mut self, table: &Table) {
        for part in self.parts.iter_mut().filter(|part| !part.moved.is_empty()) {
            part.settle(table);
        }
    }

    /// The part of one index.
    pub(super) fn part(&self, index: usize) -> Option<&Ranked<Item>> {
        debug_assert!(self.parts.get(index).is_none_or(|part| part.moved.is_empty()), "whoever reads settles first");
        self.parts.get(index).map(|part| &part.items)
    }

    /// True when every record that it covers and that has the field is in it.
    pub(super) fn has_all(&self, index: usize) -> bool {
        self.parts.get(index).is_none_or(|part| part.odd.is_empty())
    }

    /// The scores that an entry has.
    #[inline]
    pub(super) fn scores(&self, entry: &Entry, shapes: &Shapes) -> Scores {
        let Some(hash) = hash_of(entry, shapes) else { return SmallVec::from_elem(None, self.indexes.0.len()) };
        let score = |index: &Arc<Index>| {
            let definition = &index.definition;
            if definition.covers(entry.name()) { definition.score_or_nan(hash) } else { None }
        };
        self.indexes.0.iter().map(score).collect()
    }

    /// Of the scores of a record, those in indexes that have every record.
    pub(super) fn in_built(&self, scores: &Scores) -> Scores {
        let indexes = self.indexes.0.iter();
        indexes.zip(scores).map(|(index, score)| if index.is_built() { *score } else { None }).collect()
    }

    /// A record's scores have changed, or it has come or goes. Its entry is in the table.
    pub(super) fn move_record(&mut self, table: &Table, name: &[u8], hash: NameHash, before: &Scores, after: &Scores) {
        for (at, (before, after)) in before.iter().zip(after).enumerate() {
            if before.map(f64::to_bits) == after.map(f64::to_bits) {
                continue;
            }
            if self.parts.is_empty() {
                self.parts.resize_with(self.indexes.0.len(), Part::default);
            }
            let number = |score: Option<f64>| score.filter(|score| !score.is_nan());
            let part = &mut self.parts[at];
            if let (Some(before), Some(after)) = (number(*before), number(*after))
                && self.indexes.0[at].is_built()
            {
                part.moved.extend([((before, hash.get()), -1), ((after, hash.get()), 1)]);
                if part.moved.len() >= MOVED_MAX {
                    part.settle(table);
                }
                continue;
            }
            part.settle(table);
            let Part { items: part, odd, .. } = part;
            // While the index is being built, it may have been seen by nobody, or by both who meet it.
            if after.is_some_and(f64::is_nan) {
                odd.insert(hash.get());
            } else if before.is_some_and(f64::is_nan) {
                odd.remove(&hash.get());
            }
            let (before, after) = (number(*before), number(*after));
            if let Some(score) = before {
                let place = |item: &Item| is_before(table, item, score, name, hash);
                // Not there yet when the index is being built and has not come to it.
                part.remove_if(place, |item| *item == (score, hash.get()));
            }
            if let Some(score) = after {
                let place = |item: &Item| is_before(table, item, score, name, hash);
                // Only while the index is being built, it may be there already.
                if self.indexes.0[at].is_built() || part.find(place) != Some((score, hash.get())) {
                    part.insert((score, hash.get()), place);
                }
            }
        }
    }

    /// Makes the part of one index anew from everything in the table.
    pub(super) fn build(&mut self, index: usize, table: &Table, shapes: &Shapes) {
        let definition = &self.indexes.0[index].definition;
        let mut items: Vec<(f64, &[u8], NameHash)> = Vec::new();
        let mut odd = HashSet::default();
        for entry in table.iter().filter(|entry| definition.covers(entry.name())) {
            match hash_of(entry, shapes).and_then(|hash| definition.score_or_nan(hash)) {
                Some(score) if score.is_nan() => {
                    odd.insert(NameHash::of(entry.name()).get());
                }
                Some(score) => items.push((score, entry.name(), NameHash::of(entry.name()))),
                None => {}
            }
        }
        if items.is_empty() && odd.is_empty() && self.parts.is_empty() {
            return;
        }
        items.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)));
        self.parts.resize_with(self.indexes.0.len(), Part::default);
        let items = Ranked::from_sorted(items.iter().map(|(score, _, hash)| (*score, hash.get())));
        self.parts[index] = Part { items, odd, moved: Vec::new() };
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let bytes = |part: &Part| {
            part.items.heap_bytes() + part.odd.capacity() * 9 + part.moved.capacity() * size_of::<(Item, i8)>()
        };
        self.parts.iter().map(bytes).sum()
    }
}

/// Changes that wait to be made together: a tenth of a millisecond's worth.
const MOVED_MAX: usize = 1024;

impl Part {
    /// Makes the changes that were noted.
    fn settle(&mut self, table: &Table) {
        if self.moved.is_empty() {
            return;
        }
        self.moved.sort_unstable_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        for same in self.moved.chunk_by(|(a, _), (b, _)| a == b) {
            let (item, _) = same[0];
            // One that has come and gone again has not moved at all.
            let sum: i32 = same.iter().map(|(_, change)| i32::from(*change)).sum();
            if sum == 0 {
                continue;
            }
            // Names are looked up where scores are equal, and only there: each is a place in memory that is cold by now.
            let place = |other: &Item| match other.0.total_cmp(&item.0) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => other.1 != item.1 && name_of(table, other.1) < name_of(table, item.1),
            };
            match sum > 0 {
                true => self.items.insert(item, place),
                false => drop(self.items.remove_if(place, |found| *found == item)),
            }
        }
        self.moved.clear();
    }
}

/// The hash that an entry holds, with whatever is past its time but still there.
fn hash_of<'a>(entry: &'a Entry, shapes: &'a Shapes) -> Option<HashRef<'a>> {
    match entry.kind() {
        Kind::PackedHash => Some(HashRef::Packed(Packed::new(entry.body(), shapes))),
        Kind::Object => match entry.object() {
            Some(Object::Hash(table)) => Some(HashRef::Table(table, 0)),
            _ => None,
        },
        _ => None,
    }
}

/// True when an item of a part comes before a record of that score and name.
#[inline]
pub(crate) fn is_before(table: &Table, item: &Item, score: f64, name: &[u8], hash: NameHash) -> bool {
    match item.0.total_cmp(&score) {
        Ordering::Less => true,
        Ordering::Greater => false,
        Ordering::Equal => item.1 != hash.get() && name_of(table, item.1).is_some_and(|other| other < name),
    }
}

/// The name of a record in a part.
#[inline]
pub(crate) fn name_of(table: &Table, hash: u64) -> Option<&[u8]> {
    table.find(NameHash::from_raw(hash), |_| true).map(Entry::name)
}
