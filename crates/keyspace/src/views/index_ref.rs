//! An index as one sorted set, although its records are spread over the shards. Knows how parts are merged; refuses to
//! know what an index is for. All shards are locked while it is read.

use super::value::Value;
use crate::db::Db;
use crate::index::Index;
use crate::index::item::{Item, by_score};
use crate::index::parts::is_before;
use crate::locked::Locked;
use crate::shard::Shard;
use crate::storage::ranked::Ranked;
use crate::storage::table::NameHash;
use crate::storage::{Key, Scalar};
use crate::types::Entry;
use crate::types::sorted_set::{Direction, Member, Name, NameRange, ScoreRange};
use std::cmp::Ordering;
use std::ops::Range;

/// An index to be read.
#[derive(Clone, Copy)]
pub struct IndexRef<'a> {
    shards: &'a (dyn AllShards + 'a),
    db: usize,
    /// Its position among the indexes.
    at: usize,
}

/// All shards, locked. A trait only because of lifetimes: what is read lives as long as the borrow of the locks, not as
/// long as the locks.
trait AllShards {
    fn count(&self) -> usize;
    fn shard(&self, number: usize) -> &Shard;
    fn of_key(&self, key: Key<'_>) -> &Shard;
}

impl AllShards for Locked<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    fn shard(&self, number: usize) -> &Shard {
        self.nth(number)
    }

    fn of_key(&self, key: Key<'_>) -> &Shard {
        Locked::shard(self, key)
    }
}

/// The position of a merged walk: a rank in each part.
pub type Positions = Vec<usize>;

impl<'a> IndexRef<'a> {
    /// Finds the readable index of this name in a database. All shards are locked.
    pub fn find(locked: &'a Locked<'_>, db: usize, name: &[u8]) -> Option<IndexRef<'a>> {
        let indexes = locked.nth(0).db(db).indexes();
        let at = indexes.position(name).filter(|at| indexes.iter().nth(*at).is_some_and(|index| index.is_built()))?;
        Some(IndexRef { shards: locked, db, at })
    }

    /// The index itself.
    pub fn index(&self) -> &'a Index {
        self.shards.shard(0).db(self.db).indexes().iter().nth(self.at).expect("it was found")
    }

    fn parts(&self) -> impl Iterator<Item = (&'a Db, &'a Ranked<Item>)> + use<'a> {
        let IndexRef { shards, db, at } = *self;
        let dbs = (0..shards.count()).map(move |number| shards.shard(number).db(db));
        dbs.filter_map(move |db| db.part(at).map(|part| (db, part)))
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.parts().map(|(_, part)| part.len()).sum()
    }

    /// True when there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the last change of this index. While it stays the same, no record was added, removed or moved.
    /// Pending changes must have been applied.
    pub fn last_change(&self) -> u64 {
        self.parts().map(|(db, _)| db.part_changed(self.at)).max().unwrap_or(0)
    }

    /// Heap bytes of all parts, and of the groups.
    pub fn heap_bytes(&self) -> usize {
        let parts: usize = self.parts().map(|(db, _)| db.part_bytes(self.at)).sum();
        parts + self.index().groups.heap_bytes(self.db)
    }

    /// The score of a record.
    pub fn score(&self, name: &[u8]) -> Option<f64> {
        let (key, definition) = (Key::new(name), &self.index().definition);
        let db = self.shards.of_key(key).db(self.db);
        match db.entry(key).map(|entry| db.value(entry, 0)) {
            Some(Value::Hash(hash)) if definition.covers(name) => definition.score(hash),
            _ => None,
        }
    }

    /// The rank of a record and its score.
    pub fn rank(&self, name: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(name)?;
        let before =
            |(db, part): (&Db, &Ranked<Item>)| part.partition_point(|item| is_before(&db.table, item, score, name));
        Some((self.parts().map(before).sum(), score))
    }

    /// In each part, the number of records for which `before` holds.
    fn positions(&self, before: impl Fn(&Db, &Item) -> bool) -> Positions {
        self.parts().map(|(db, part)| part.partition_point(|item| before(db, item))).collect()
    }

    /// Where a range of scores begins and ends in each part.
    pub fn by_score(&self, range: &ScoreRange) -> (Positions, Positions) {
        let start = self.positions(|_, item| range.is_above(item.0));
        let end = self.positions(|_, item| range.reaches(item.0));
        (start, end)
    }

    /// In each part, the number of records at or before this score and name.
    pub fn up_to(&self, score: f64, name: &[u8]) -> Positions {
        self.positions(|db, item| db.is_indexed_up_to(*item, score, name))
    }

    /// In each part, the number of records before this score and name.
    pub fn before(&self, score: f64, name: &[u8]) -> Positions {
        self.positions(|db, item| is_before(&db.table, item, score, name))
    }

    /// The ranks of records whose scores are within a range.
    pub fn ranks_by_score(&self, range: &ScoreRange) -> (usize, usize) {
        let (start, end) = self.by_score(range);
        (start.iter().sum(), end.iter().sum())
    }

    /// Where a range of names begins and ends in each part.
    pub fn by_name(&self, range: &NameRange<'_>) -> (Positions, Positions) {
        let positions = |before: &dyn Fn(&[u8]) -> bool| {
            self.positions(|db, item| db.indexed(*item).is_some_and(|entry| before(entry.name())))
        };
        (positions(&|name| range.is_above(name)), positions(&|name| range.reaches(name)))
    }

    /// Where each part begins and ends.
    pub fn whole(&self) -> (Positions, Positions) {
        let ends: Positions = self.parts().map(|(_, part)| part.len()).collect();
        (vec![0; ends.len()], ends)
    }

    /// The ranks of records whose names are within a range: see `SortedSetRef::ranks_by_name`.
    pub fn ranks_by_name(&self, range: &NameRange<'_>) -> (usize, usize) {
        let (start, end) = self.by_name(range);
        (start.iter().sum(), end.iter().sum())
    }

    /// Records of these ranks.
    pub fn members(&self, ranks: Range<usize>, direction: Direction) -> IndexMembers<'a> {
        IndexMembers::new(*self, &self.up_to_rank(ranks.start), &self.up_to_rank(ranks.end), direction)
    }

    /// The records between two positions.
    pub fn between(&self, start: &Positions, end: &Positions, direction: Direction) -> IndexMembers<'a> {
        IndexMembers::new(*self, start, end, direction)
    }

    /// The number of records of each part among the first `rank` of all. Searches with the middle record of the largest
    /// remaining part as pivot.
    pub fn up_to_rank(&self, rank: usize) -> Positions {
        let parts: Vec<(&Db, &Ranked<Item>)> = self.parts().collect();
        let (mut low, mut high) = self.whole();
        if rank == 0 {
            return low;
        }
        if rank >= high.iter().sum() {
            return high;
        }
        loop {
            let widest = (0..parts.len()).max_by_key(|at| high[*at] - low[*at]).filter(|at| high[*at] > low[*at]);
            let Some(widest) = widest else { return low };
            let middle = low[widest] + (high[widest] - low[widest]) / 2;
            let (db, part) = parts[widest];
            let Some(pivot) = part.get(middle) else { return low };
            let name = db.indexed(pivot).map_or(&[][..], Entry::name);
            let before = |(db, part): &(&Db, &Ranked<Item>)| {
                part.partition_point(|item| is_before(&db.table, item, pivot.0, name))
            };
            let before: Positions = parts.iter().map(before).collect();
            match before.iter().sum::<usize>().cmp(&rank) {
                Ordering::Equal => return before,
                Ordering::Greater => high = before,
                Ordering::Less => {
                    low = before;
                    // The pivot itself is among the first `rank`.
                    low[widest] = middle + 1;
                }
            }
        }
    }

    /// One of the records, a different one for each number below `len`, in no particular order.
    pub fn pick(&self, number: usize) -> Option<Member<'a>> {
        let mut left = number;
        for (db, part) in self.parts() {
            if left < part.len() {
                let item = part.get(left)?;
                return db.indexed(item).map(|entry| member(entry, item));
            }
            left -= part.len();
        }
        None
    }

    /// Visits `count` records from `cursor` on or a few more, at most [`SCANNED_MAX`]. Returns the next cursor; `None`
    /// at the end.
    ///
    /// ```text
    /// cursor   bits 0..32 position of the name's hash, bits 32.. shard
    /// ```
    ///
    /// Neither changes with a record's score, so a record that stays during the whole scan is visited exactly once.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Member<'_>)) -> Option<u64> {
        let mut left = count.clamp(1, SCANNED_MAX);
        let (first, mut from) = ((cursor >> 32) as usize, cursor as u32);
        for number in first..self.shards.count() {
            let db = self.shards.shard(number).db(self.db);
            let items = db.part(self.at).map(|part| part.iter()).into_iter().flatten();
            let position = |item: &Item| NameHash::from_raw(item.1).position();
            let mut items: Vec<(u32, Item)> = items.map(|item| (position(&item), item)).collect();
            items.retain(|(position, _)| *position >= from);
            let last = match items.len() > left {
                // Records at one position stay together.
                true => items.select_nth_unstable_by_key(left - 1, |(position, _)| *position).1.0,
                false => u32::MAX,
            };
            let mut seen = 0;
            for (_, item) in items.iter().filter(|(position, _)| *position <= last) {
                if let Some(entry) = db.indexed(*item) {
                    visit(member(entry, *item));
                }
                seen += 1;
            }
            left = left.saturating_sub(seen);
            match last.checked_add(1) {
                Some(next) => return Some((number as u64) << 32 | u64::from(next)),
                None if left == 0 && number + 1 < self.shards.count() => return Some((number as u64 + 1) << 32),
                None => from = 0,
            }
        }
        None
    }
}

/// The most records that one step of a scan visits, except for those at one position: about a third of a millisecond.
const SCANNED_MAX: usize = 1024;

fn member(entry: &Entry, item: Item) -> Member<'_> {
    Member { name: Name::kept(Scalar::Bytes(entry.name())), score: item.0 }
}

/// Records of an index in order.
///
/// They are merged window by window. A window has all records up to a limit: the least of the records that are `width`
/// ahead in each part. Sorting a window costs less per record than a heap of the next records of all parts.
pub struct IndexMembers<'a> {
    parts: Vec<Rest<'a>>,
    /// The next records, in reverse order.
    window: Vec<DbItem<'a>>,
    /// How many of them have been prefetched: otherwise each would be a cache miss.
    fetched: usize,
    /// How far ahead the next window looks.
    width: usize,
    direction: Direction,
}

/// A record and its database.
type DbItem<'a> = (&'a Db, Item);

/// The rest of a part.
struct Rest<'a> {
    db: &'a Db,
    part: &'a Ranked<Item>,
    ranks: Range<usize>,
}

/// The number of records that are prefetched together.
const FETCHED: usize = 32;
/// A caller that reads few records needs only a small window.
const WIDTH_MIN: usize = 4;
const WIDTH_MAX: usize = 32;

impl<'a> IndexMembers<'a> {
    fn new(index: IndexRef<'a>, start: &[usize], end: &[usize], direction: Direction) -> IndexMembers<'a> {
        let ranges = start.iter().zip(end);
        let parts = index.parts().zip(ranges).map(|((db, part), (start, end))| Rest { db, part, ranks: *start..*end });
        let parts = parts.filter(|rest| !rest.ranks.is_empty()).collect();
        IndexMembers { parts, window: Vec::new(), fetched: 0, width: WIDTH_MIN, direction }
    }

    fn fill_window(&mut self) {
        let (width, direction) = (self.width, self.direction);
        let ends = self.parts.iter().filter_map(|rest| rest.ahead(width, direction).map(|item| (rest.db, item)));
        let end = ends.min_by(|one, other| in_order(*one, *other, direction));
        for rest in &mut self.parts {
            rest.take_up_to(end, direction, &mut self.window);
        }
        self.parts.retain(|rest| !rest.ranks.is_empty());
        // By scores first: looking up names would slow down every comparison.
        self.window.sort_unstable_by(|one, other| by_score(one.1.0, other.1.0));
        let is_tie = |one: &DbItem<'_>, other: &DbItem<'_>| one.1.0 == other.1.0;
        self.window.chunk_by(is_tie).filter(|ties| ties.len() > 1).for_each(fetch);
        for ties in self.window.chunk_by_mut(is_tie).filter(|ties| ties.len() > 1) {
            ties.sort_unstable_by(|one, other| in_order(*one, *other, Direction::Ascending));
        }
        if direction == Direction::Ascending {
            self.window.reverse();
        }
        self.width = (width * 2).min(WIDTH_MAX);
    }

    /// The number of remaining records.
    pub fn left(&self) -> usize {
        self.window.len() + self.parts.iter().map(|rest| rest.ranks.len()).sum::<usize>()
    }

    /// The next record: its database, entry and score.
    pub fn next_entry(&mut self) -> Option<(&'a Db, &'a Entry, f64)> {
        loop {
            if self.window.is_empty() {
                self.fill_window();
            }
            if self.fetched == 0 {
                self.fetched = self.window.len().min(FETCHED);
                fetch(&self.window[self.window.len() - self.fetched..]);
            }
            let (db, item) = self.window.pop()?;
            self.fetched -= 1;
            if let Some(entry) = db.indexed(item) {
                return Some((db, entry, item.0));
            }
        }
    }
}

/// Prefetches records, the last first.
fn fetch(records: &[DbItem<'_>]) {
    records.iter().rev().for_each(|(db, item)| db.prefetch_indexed(*item));
}

impl<'a> Rest<'a> {
    /// The item `width` places ahead.
    fn ahead(&self, width: usize, direction: Direction) -> Option<Item> {
        let rank = match direction {
            Direction::Ascending => self.ranks.start + width - 1,
            Direction::Descending => self.ranks.end.checked_sub(width)?,
        };
        self.ranks.contains(&rank).then(|| self.part.get(rank)).flatten()
    }

    /// Takes the items up to a record of any part, or all.
    fn take_up_to(&mut self, end: Option<DbItem<'_>>, direction: Direction, out: &mut Vec<DbItem<'a>>) {
        let (db, taken_before) = (self.db, out.len());
        let is_within = |item: &Item| end.is_none_or(|end| in_order((db, *item), end, direction).is_le());
        let items = self.part.range(self.ranks.clone());
        match direction {
            Direction::Ascending => {
                out.extend(items.take_while(is_within).map(|item| (db, item)));
                self.ranks.start += out.len() - taken_before;
            }
            Direction::Descending => {
                out.extend(items.rev().take_while(is_within).map(|item| (db, item)));
                self.ranks.end -= out.len() - taken_before;
            }
        }
    }
}

/// The order of two records in a direction.
fn in_order(one: DbItem<'_>, other: DbItem<'_>, direction: Direction) -> Ordering {
    let ((db, item), (other_db, other_item)) = (one, other);
    // An id identifies a name only within one database of one shard.
    let is_same = std::ptr::eq(db, other_db) && item.1 == other_item.1;
    let ascending = by_score(item.0, other_item.0).then_with(|| match is_same {
        true => Ordering::Equal,
        false => db.indexed(item).map(Entry::name).cmp(&other_db.indexed(other_item).map(Entry::name)),
    });
    match direction {
        Direction::Ascending => ascending,
        Direction::Descending => ascending.reverse(),
    }
}

impl<'a> Iterator for IndexMembers<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        let (_, entry, score) = self.next_entry()?;
        Some(member(entry, (score, 0)))
    }
}
