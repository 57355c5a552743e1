//! The instants that read-only transactions read at (TXN.BEGIN READONLY), and the cells as they were then. Knows names,
//! places and values; refuses to know commands, clients' requests and the journal.
//!
//! An instant begins while everything is locked for a moment, so it lies between two batches. From then on, a cell that
//! is about to change is *kept* for every instant that has not kept it yet ([`Instants::note`]); for a name at which a
//! cell is about to be created, its absence is kept. A name that is not kept is read where it is: it has not changed.
//!
//! Only cells are kept. A name without a cell at the instant never shows one, but whether it held a value of another
//! type is known only as long as that value is there. Keeping those too would make a read-only transaction pay for every
//! write to any key.

use crate::clients::ClientHandle;
use crate::forks::WalkPlace;
use keyspace::db::Db;
use keyspace::footprint;
use keyspace::garbage::Garbage;
use keyspace::types::cell;
use keyspace::{Effect, Entry, Fate, Key, Locked, NameHash, Touch, Touches, ValueType};
use locks::{Mutex, rank};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// About how many bytes a kept name takes besides its bytes and its cell.
const KEPT_OVERHEAD_BYTES: usize = 96;
/// How many chunks of a long history are sampled to estimate its size.
const SAMPLES: usize = 64;

/// All instants that are read at.
#[derive(Default)]
pub struct Instants {
    count: AtomicUsize,
    last: AtomicU64,
    /// In the order in which they began.
    open: Mutex<Vec<Instant>, { rank::INSTANTS }>,
}

/// An instant that a transaction reads at.
struct Instant {
    id: InstantId,
    /// The number that its database has now: SWAPDB changes it.
    db: usize,
    /// Unix milliseconds: what had expired then is absent, what has expired since is not.
    now_ms: u64,
    /// A tree: it grows without ever moving all of its entries.
    kept: BTreeMap<WalkPlace, SmallVec<[Kept; 1]>>,
    bytes: usize,
    /// The client whose memory it counts as.
    reader: Arc<ClientHandle>,
}

/// A name that has changed since an instant, and the cell it held then.
struct Kept {
    name: Box<[u8]>,
    cell: Option<Arc<Entry>>,
}

/// Identifies an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantId(u64);

impl Instants {
    /// True when there is an instant. Exact for a thread that holds the lock of a shard: an instant begins while all
    /// are locked.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Begins an instant: now. IMPORTANT: everything is locked.
    pub fn begin(&self, db: usize, now_ms: u64, reader: Arc<ClientHandle>) -> InstantId {
        let id = InstantId(self.last.fetch_add(1, Relaxed) + 1);
        let mut open = self.open.lock();
        open.push(Instant { id, db, now_ms, kept: BTreeMap::new(), bytes: 0, reader });
        self.count.store(open.len(), Relaxed);
        id
    }

    /// Ends an instant. Returns what was kept for it, to be freed; `None` when it was lost before.
    pub fn end(&self, id: InstantId) -> Option<Garbage> {
        let mut open = self.open.lock();
        let at = open.iter().position(|instant| instant.id == id)?;
        let ended = open.remove(at);
        self.count.store(open.len(), Relaxed);
        Some(if ended.kept.is_empty() { Garbage::default() } else { Garbage::of(ended.kept) })
    }

    /// True when what was there at the instant could not be kept.
    pub fn is_lost(&self, id: InstantId) -> bool {
        !self.open.lock().iter().any(|instant| instant.id == id)
    }

    /// Loses all instants: the state is about to be loaded anew, without effects. Returns what was kept, to be freed.
    pub fn lose_all(&self) -> Garbage {
        let lost = std::mem::take(&mut *self.open.lock());
        self.count.store(0, Relaxed);
        let mut garbage = Garbage::default();
        for instant in lost {
            instant.reader.note_transaction(Some(0));
            garbage.add(instant.kept);
        }
        garbage
    }

    /// Follows SWAPDB. Everything is locked.
    #[cold]
    pub fn swap(&self, a: usize, b: usize) {
        for instant in self.open.lock().iter_mut() {
            instant.db = match instant.db {
                db if db == a => b,
                db if db == b => a,
                db => db,
            };
        }
    }

    /// Keeps the cells that an effect is about to change, at most `bytes_max` bytes for each instant. Called before the
    /// effect is applied.
    #[cold]
    pub fn note(
        &self,
        locked: &mut Locked<'_>,
        shard_of: impl Fn(Key<'_>) -> usize,
        db: usize,
        effect: &Effect<'_>,
        bytes_max: usize,
    ) {
        let touches = effect.touches(db);
        let makes_cell = makes_cell(locked, db, effect);
        // Most effects are about keys of other types. They must not queue for the lock below.
        if let Touches::Keys(keys) = &touches
            && !makes_cell
            && !keys.iter().any(|touch| cell_at(locked, touch.db, touch.key).is_some())
        {
            return;
        }
        let mut open = self.open.lock();
        let mut keeping = Keeping { open: &mut open, bytes_max, lost: Vec::new() };
        match touches {
            Touches::Keys(touches) => {
                for Touch { db, key, fate } in touches {
                    let entry = cell_at(locked, db, key);
                    if fate != Fate::Read && (makes_cell || entry.is_some()) {
                        keeping.keep(db, shard_of(key), key.name, entry);
                    }
                }
            }
            Touches::Emptied(dbs) => {
                for db in dbs {
                    for (index, shard) in locked.shards().filter(|(_, shard)| shard.db(db).has_own_values()) {
                        if !keeping.open.iter().any(|instant| instant.db == db) {
                            break;
                        }
                        for entry in shard.db(db).iter(0).filter(|entry| is_cell(entry)) {
                            keeping.keep(db, index, entry.name(), Some(entry));
                        }
                    }
                }
            }
            // `apply` follows a swap once it is done.
            Touches::Swapped(..) | Touches::Definition(_) => {}
        }
        let lost = keeping.lost;
        if !lost.is_empty() {
            self.count.store(open.len(), Relaxed);
            locked.add_garbage(lost);
        }
    }
}

fn is_cell(entry: &Entry) -> bool {
    ValueType::of(entry).is(&cell::TYPE)
}

/// The cell at a key, expired or not.
fn cell_at<'l>(locked: &'l Locked<'_>, db: usize, key: Key<'_>) -> Option<&'l Entry> {
    let within = locked.db(db, key);
    if within.has_own_values() { within.entry(key).filter(|entry| is_cell(entry)) } else { None }
}

/// True when an effect gives a key a cell.
fn makes_cell(locked: &Locked<'_>, db: usize, effect: &Effect<'_>) -> bool {
    match *effect {
        Effect::Change { change, .. } => change.value_type().is(&cell::TYPE),
        Effect::Put { value, .. } => value.value_type.is(&cell::TYPE),
        Effect::Rename { from, .. } | Effect::Copy { from, .. } | Effect::Move { key: from, .. } => {
            cell_at(locked, db, from).is_some()
        }
        Effect::Delete { .. }
        | Effect::Deadline { .. }
        | Effect::Rate { .. }
        | Effect::FlushDb
        | Effect::FlushAll
        | Effect::SwapDb { .. }
        | Effect::Define { .. }
        | Effect::Undefine { .. } => false,
    }
}

/// Keeps what an effect is about to change.
struct Keeping<'i> {
    open: &'i mut Vec<Instant>,
    bytes_max: usize,
    /// What was kept for instants that have become too large, to be freed.
    lost: Vec<BTreeMap<WalkPlace, SmallVec<[Kept; 1]>>>,
}

impl Keeping<'_> {
    /// Keeps one name for the instants of its database that have not kept it yet.
    fn keep(&mut self, db: usize, shard: usize, name: &[u8], entry: Option<&Entry>) {
        let place = WalkPlace { shard, position: NameHash::of(name).position() };
        let (mut copy, mut too_large) = (None, SmallVec::<[InstantId; 4]>::new());
        // The youngest first: a name that it has kept, all older ones have kept, too.
        for instant in self.open.iter_mut().rev().filter(|instant| instant.db == db) {
            if instant.find(place, name).is_some() {
                break;
            }
            let cell = entry.filter(|entry| !Db::is_expired(entry, instant.now_ms));
            let cell_bytes = cell.map_or(0, |cell| footprint::bytes_of(cell, SAMPLES));
            let bytes = instant.bytes.saturating_add(KEPT_OVERHEAD_BYTES + name.len() + cell_bytes);
            if bytes > self.bytes_max {
                too_large.push(instant.id);
                continue;
            }
            let cell = cell.map(|cell| copy.get_or_insert_with(|| Arc::new(cell.clone())).clone());
            instant.kept.entry(place).or_default().push(Kept { name: name.into(), cell });
            instant.bytes = bytes;
            instant.reader.note_transaction(Some(bytes));
        }
        for instant in self.open.extract_if(.., |instant| too_large.contains(&instant.id)) {
            instant.reader.note_transaction(Some(0));
            self.lost.push(instant.kept);
        }
    }
}

impl Instant {
    fn find(&self, place: WalkPlace, name: &[u8]) -> Option<&Kept> {
        self.kept.get(&place)?.iter().find(|kept| *kept.name == *name)
    }
}

/// An instant as one request reads it: the cells that the request names, as they were, if they have changed since.
pub struct AtInstant<'e> {
    instants: &'e Instants,
    id: InstantId,
    /// By name.
    cells: Vec<(&'e [u8], Option<Arc<Entry>>)>,
    is_lost: Cell<bool>,
}

/// A name that has changed since an instant.
pub struct ChangedName {
    /// Its position in its shard.
    pub position: u32,
    pub name: Box<[u8]>,
    /// It held a cell at the instant.
    pub was_cell: bool,
}

impl<'e> AtInstant<'e> {
    /// What the instant has for these keys, which are in the order of their names and whose shards are locked; and the
    /// number that the database has now. `None` when the instant was lost.
    pub fn new(
        instants: &'e Instants,
        id: InstantId,
        keys: &[Key<'e>],
        shard_of: impl Fn(Key<'_>) -> usize,
    ) -> Option<(AtInstant<'e>, usize)> {
        let open = instants.open.lock();
        let instant = open.iter().find(|instant| instant.id == id)?;
        let cells = keys.iter().filter_map(|key| {
            let place = WalkPlace { shard: shard_of(*key), position: NameHash::of(key.name).position() };
            instant.find(place, key.name).map(|kept| (key.name, kept.cell.clone()))
        });
        let cells = cells.collect();
        Some((AtInstant { instants, id, cells, is_lost: Cell::new(false) }, instant.db))
    }

    /// The cell that a name held, if it has changed since.
    pub fn kept(&self, name: &[u8]) -> Option<Option<&Entry>> {
        let at = self.cells.binary_search_by_key(&name, |(name, _)| name).ok()?;
        Some(self.cells[at].1.as_deref())
    }

    /// The number that the database of the instant has now. A shard is locked. `None` when the instant was lost.
    pub fn db(&self) -> Option<usize> {
        self.with(|instant| instant.db)
    }

    /// The names between two positions of a shard, which is locked, that have changed since. `None` when the instant was lost.
    pub fn changed_names(&self, shard: usize, from: u32, to: u32) -> Option<Vec<ChangedName>> {
        let range = WalkPlace { shard, position: from }..=WalkPlace { shard, position: to };
        self.with(|instant| {
            let kept =
                instant.kept.range(range).flat_map(|(place, kept)| kept.iter().map(|kept| (place.position, kept)));
            kept.map(|(position, kept)| ChangedName {
                position,
                name: kept.name.clone(),
                was_cell: kept.cell.is_some(),
            })
            .collect()
        })
    }

    fn with<T>(&self, look: impl FnOnce(&Instant) -> T) -> Option<T> {
        let open = self.instants.open.lock();
        let found = open.iter().find(|instant| instant.id == self.id).map(look);
        self.is_lost.set(self.is_lost.get() || found.is_none());
        found
    }

    /// True when the instant was lost while it was read.
    pub fn is_lost(&self) -> bool {
        self.is_lost.get()
    }
}
