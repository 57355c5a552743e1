//! An index of records by a field: its definition, and the score of a record in it. Refuses to know where its records
//! are stored (`parts`), how it is read (`views::index_ref`), and how it is created.

use super::groups::{GROUP_NAME_MAX, Groups, Place};
use super::heads::{Head, Heads};
use crate::effects::DATABASES;
use crate::storage::Scalar;
use crate::types::hash::{self, HashRef, Packed, Pair};
use crate::types::{Entry, Object, Shapes};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Which records an index has, and by which field.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Definition {
    /// Only names that begin with one of these are indexed.
    pub prefixes: Vec<Vec<u8>>,
    /// The field that is the score.
    pub field: Vec<u8>,
    pub condition: Option<Condition>,
    /// STAMP: a write to a record that does not itself set the field sets it to the current time.
    pub stamp: bool,
    /// The field by which records are grouped.
    pub group: Option<Vec<u8>>,
    /// Which records are held.
    pub held: Option<HeldWhere>,
}

/// A record is held while this field has one of the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldWhere {
    pub field: Vec<u8>,
    pub values: Vec<Vec<u8>>,
}

/// The fields of a record that place it in an index with groups.
#[derive(Clone)]
pub(crate) struct Placement {
    /// Of its field, whatever the others say.
    score: IndexScore,
    is_admitted: bool,
    is_held: bool,
    /// `None` when the name is too long.
    group: Option<GroupName>,
}

type GroupName = SmallVec<[u8; 24]>;

impl Placement {
    /// The score of the record in the index.
    #[inline]
    pub(crate) fn index_score(&self) -> IndexScore {
        if self.is_admitted && self.group.is_some() { self.score } else { IndexScore::ABSENT }
    }

    /// Where it is among the groups.
    #[inline]
    pub(crate) fn place(&self) -> Option<Place<'_>> {
        let (score, is_held) = (self.index_score().score(), self.is_held);
        let group = self.group.as_deref()?;
        (score.is_some() || is_held).then_some(Place { group, score, is_held })
    }
}

/// A condition on another field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub field: Vec<u8>,
    pub values: Vec<Vec<u8>>,
    /// True: only records with these values are indexed. False: they are left out.
    pub only: bool,
}

/// An index.
pub struct Index {
    pub name: Vec<u8>,
    pub definition: Definition,
    /// True when the backfill is complete.
    is_built: AtomicBool,
    /// The heads in each database that has had records of this index.
    heads: [OnceLock<Heads>; DATABASES],
    /// Its groups. An index without groups and held records has only limits for all.
    pub groups: Groups,
    /// For each shard, the position up to which its records are counted in the groups, while they are backfilled.
    filled_up_to: OnceLock<Box<[AtomicU64]>>,
}

/// All indexes; every database of every shard shares this list.
#[derive(Clone, Default)]
pub struct Indexes(pub(crate) Arc<[Arc<Index>]>);

/// The most indexes: every write of a record checks each.
pub const INDEXES_MAX: usize = 64;

/// The score of a record in an index, or why it has none.
#[derive(Clone, Copy)]
pub(crate) struct IndexScore(f64);

impl IndexScore {
    /// The record is not in the index. No score is infinite.
    pub(crate) const ABSENT: IndexScore = IndexScore(f64::INFINITY);
    /// The record would be in the index if its field were a number.
    const NOT_NUMERIC: IndexScore = IndexScore(f64::NAN);
    /// The score was not looked up.
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
    /// True for names that the index covers.
    #[inline]
    pub fn covers(&self, name: &[u8]) -> bool {
        // An empty prefix has a dangling address; comparing with it costs some CPUs a hundred nanoseconds.
        self.prefixes.iter().any(|prefix| prefix.is_empty() || name.starts_with(prefix))
    }

    /// The head of a part whose first record has this score and name.
    pub fn head(&self, score: f64, name: &[u8]) -> Head {
        let behind = self.prefixes.iter().filter_map(|prefix| name.strip_prefix(&prefix[..])).next();
        Head::new(score, behind.unwrap_or(name))
    }

    /// True when a record's score can change with one of these fields.
    #[inline]
    pub fn concerns<'f>(&self, mut fields: impl Iterator<Item = &'f [u8]>) -> bool {
        let condition = self.condition.as_ref().map(|condition| &*condition.field);
        let group = self.group.as_deref();
        let held = self.held.as_ref().map(|held| &*held.field);
        let matters = |field: &[u8]| Some(field) == condition || Some(field) == group || Some(field) == held;
        fields.any(|field| field == self.field || matters(field))
    }

    /// True when its records are kept in groups: by a field, or all in one because some are held.
    #[inline]
    pub fn has_queues(&self) -> bool {
        self.group.is_some() || self.held.is_some()
    }

    /// True when a record with these fields is held.
    pub fn holds<'v>(&self, field: impl Fn(&[u8]) -> Option<Scalar<'v>>) -> bool {
        self.held.as_ref().is_some_and(|held| held.holds(field(&held.field)))
    }

    /// True when the group's field of a record is no name of a group.
    #[inline]
    fn refuses_group<'v>(&self, field: impl Fn(&[u8]) -> Option<Scalar<'v>>) -> bool {
        let Some(group) = &self.group else { return false };
        group_name(field(group)).is_none()
    }

    /// The group of a record; `None` when it has none in this index.
    pub fn group(&self, hash: HashRef<'_>) -> Option<Vec<u8>> {
        group_name(self.group.as_ref().and_then(|group| hash.get(group))).map(|name| name.to_vec())
    }

    /// What places an entry, including expired fields that are not removed yet.
    pub(crate) fn placement(&self, entry: &Entry, shapes: &Shapes) -> Placement {
        let condition = self.condition.as_ref().map(|condition| &*condition.field);
        let held = self.held.as_ref().map(|held| &*held.field);
        // Often both are the state.
        let other = held.filter(|held| Some(*held) != condition);
        let fields = [Some(&*self.field), condition, self.group.as_deref(), other];
        let [score, of_condition, group, of_held] = match entry.kind() {
            hash::PACKED => Packed::new(entry.body(), shapes).get_each(fields),
            _ => match entry.object() {
                Some(Object::Hash(table)) => fields.map(|field| HashRef::Table(table, 0).get(field?)),
                _ => [None; 4],
            },
        };
        let of_held = if other.is_some() { of_held } else { of_condition };
        Placement {
            score: score.map_or(IndexScore::ABSENT, IndexScore::of_field),
            is_admitted: self.condition.as_ref().is_none_or(|condition| condition.admits(of_condition)),
            is_held: self.held.as_ref().is_some_and(|held| held.holds(of_held)),
            group: group_name(group),
        }
    }

    /// What places an entry after these fields were set.
    pub(crate) fn placement_after_set(&self, mut before: Placement, fields: &[Pair<'_>]) -> Placement {
        for (field, value) in fields {
            if *field == self.field {
                before.score = IndexScore::of_field(Scalar::of(value));
            }
            let value = Some(Scalar::Bytes(value));
            if let Some(condition) = self.condition.as_ref().filter(|condition| condition.field == *field) {
                before.is_admitted = condition.admits(value);
            }
            if let Some(held) = self.held.as_ref().filter(|held| held.field == *field) {
                before.is_held = held.holds(value);
            }
            if self.group.as_deref() == Some(*field) {
                before.group = group_name(value);
            }
        }
        before
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
            _ if self.refuses_group(field) => IndexScore::ABSENT,
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

/// The name of a group from its field; `None` when it is too long.
#[inline]
fn group_name(value: Option<Scalar<'_>>) -> Option<GroupName> {
    let name = value.map_or(SmallVec::new(), |value| value.with_bytes(SmallVec::from_slice));
    (name.len() <= GROUP_NAME_MAX).then_some(name)
}

impl HeldWhere {
    #[inline]
    fn holds(&self, value: Option<Scalar<'_>>) -> bool {
        value.is_some_and(|value| value.with_bytes(|value| self.values.iter().any(|one| one == value)))
    }
}

impl Condition {
    fn admits(&self, value: Option<Scalar<'_>>) -> bool {
        let listed = value.is_some_and(|value| value.with_bytes(|value| self.values.iter().any(|one| one == value)));
        listed == self.only
    }
}

impl std::fmt::Display for Definition {
    /// Formats the definition as the arguments of IDX.CREATE.
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
        if let Some(group) = &self.group {
            write!(f, " GROUP '{}'", group.escape_ascii())?;
        }
        if let Some(held) = &self.held {
            write!(f, " HELD '{}'", held.field.escape_ascii())?;
            list(f, &held.values)?;
        }
        if self.stamp { f.write_str(" STAMP") } else { Ok(()) }
    }
}

/// The first byte of an encoded definition.
const FORMAT: u8 = 1;
const STAMPS: u8 = 1;
const HAS_CONDITION: u8 = 2;
const ONLY: u8 = 4;
const HAS_GROUP: u8 = 8;
const HAS_HELD: u8 = 16;

impl Definition {
    /// Encodes the definition, for the journal; docs/effect-format.md describes it.
    pub fn encode(&self) -> Vec<u8> {
        let condition = self.condition.as_ref();
        let bits = if self.stamp { STAMPS } else { 0 }
            | condition.map_or(0, |condition| HAS_CONDITION | if condition.only { ONLY } else { 0 })
            | if self.group.is_some() { HAS_GROUP } else { 0 }
            | if self.held.is_some() { HAS_HELD } else { 0 };
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
        if let Some(group) = &self.group {
            list(std::slice::from_ref(group));
        }
        if let Some(held) = &self.held {
            list(std::slice::from_ref(&held.field));
            list(&held.values);
        }
        out
    }

    /// Decodes a definition; `None` when the bytes are invalid.
    pub fn decode(bytes: &[u8]) -> Option<Definition> {
        let [FORMAT, bits, rest @ ..] = bytes else { return None };
        if bits & !(STAMPS | HAS_CONDITION | ONLY | HAS_GROUP | HAS_HELD) != 0 {
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
        let group = match bits & HAS_GROUP != 0 {
            true => Some(list()?.pop()?),
            false => None,
        };
        let held = match bits & HAS_HELD != 0 {
            true => Some(HeldWhere { field: list()?.pop()?, values: list()? }),
            false => None,
        };
        rest.is_empty().then_some(Definition { prefixes, field, condition, stamp: bits & STAMPS != 0, group, held })
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
            // Minus zero equals zero in the order.
            number.is_finite().then_some(number + 0.0)
        }
    }
}

impl Index {
    /// Creates an empty index.
    pub fn new(name: &[u8], definition: Definition) -> Index {
        Index {
            name: name.to_vec(),
            definition,
            is_built: AtomicBool::new(false),
            heads: [const { OnceLock::new() }; DATABASES],
            groups: Groups::default(),
            filled_up_to: OnceLock::new(),
        }
    }

    /// Notes that all records of a shard before this position are counted in the groups. The shard is locked.
    pub(crate) fn set_filled(&self, shard: usize, shard_count: usize, position: u64) {
        let shards =
            self.filled_up_to.get_or_init(|| std::iter::repeat_with(AtomicU64::default).take(shard_count).collect());
        shards[shard].store(position, Relaxed);
    }

    /// True when the backfill has reached this position of a locked shard, and goes on from there.
    pub(crate) fn is_filled_up_to(&self, shard: usize, position: u64) -> bool {
        self.filled_up_to.get().map_or(position == 0, |shards| shards[shard].load(Relaxed) == position)
    }

    /// True when a record of a locked shard is counted in the groups: the backfill will not count it again.
    pub(crate) fn is_filled(&self, shard: usize, position: u32) -> bool {
        self.is_built()
            || self.filled_up_to.get().is_some_and(|shards| u64::from(position) < shards[shard].load(Relaxed))
    }

    /// True when the index can be read.
    pub fn is_built(&self) -> bool {
        self.is_built.load(Relaxed)
    }

    /// Its heads in a database of a keyspace with `shard_count` shards.
    pub fn heads(&self, db: usize, shard_count: usize) -> &Heads {
        self.heads[db].get_or_init(|| Heads::new(shard_count))
    }

    /// The number of clients that wait for its records in a database.
    #[inline]
    pub fn waiting(&self, db: usize) -> usize {
        self.heads[db].get().map_or(0, Heads::waiting)
    }

    /// Counts one waiting client less in a database.
    pub fn remove_waiting(&self, db: usize) {
        if let Some(heads) = self.heads[db].get() {
            heads.remove_waiting();
        }
    }

    /// Marks the backfill as complete.
    pub fn set_built(&self) {
        self.is_built.store(true, Relaxed);
    }
}

impl Indexes {
    /// Adds an index. The caller has checked the limit.
    pub fn with(&self, index: Arc<Index>) -> Indexes {
        assert!(self.0.len() < INDEXES_MAX, "an index too many");
        Indexes(self.0.iter().cloned().chain([index]).collect())
    }

    /// Removes an index.
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

    /// The position of an index.
    #[inline]
    pub fn position(&self, name: &[u8]) -> Option<usize> {
        self.0.iter().position(|index| index.name == name)
    }

    /// The index of that name, whether or not it can be read.
    pub fn find(&self, name: &[u8]) -> Option<&Arc<Index>> {
        self.0.iter().find(|index| index.name == name)
    }

    /// True when both lists have the same indexes.
    pub(crate) fn is_same(&self, other: &Indexes) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
