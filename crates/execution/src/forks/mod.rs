//! Forks of cells in progress: which names they reserve, which cells they still have to copy, and the values of these
//! cells at the instant of the fork. Knows prefixes, positions and values; refuses to know the commands and the walk of
//! a fork.
//!
//! A fork copies the state at one instant, at which everything is locked for a moment. From then on cells are copied in
//! slices, in the order of shards and positions. A cell that is about to change before it is copied is *put aside*
//! first ([`Forks::note`]); for a name that is about to be created, its absence is put aside. Each name is put aside at
//! most once, so the value put aside is the one at the instant of the fork.
//!
//! The names that a fork creates are reserved: other writes to them are refused. This is checked under the locks of a
//! command's keys, so a walk over all shards after the reservation finds everything written before it.
//!
//! The journal has the beginning and the end of a fork (`Definable::Fork`). After a start, and when a follower is
//! promoted, the cells of a fork without an end are removed (`procedures::undo_forks`).

pub mod procedures;

pub use procedures::undo_forks;
pub use procedures::{note_fork, pass_forks};

use crate::error::{CommandError, CommandResult};
use keyspace::db::Db;
use keyspace::types::cell;
use keyspace::{Effect, Entry, Fate, Key, Locked, NameHash, Touch, Touches, ValueType};
use locks::{Mutex, rank};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The most forks at a time: while there are forks, every write checks each of them.
const UNDER_WAY_MAX: usize = 16;

/// All forks in progress.
#[derive(Default)]
pub struct Forks {
    count: AtomicUsize,
    last: AtomicU64,
    under_way: Mutex<Vec<Fork>, { rank::FORKS }>,
}

/// A fork in progress.
struct Fork {
    id: ForkId,
    db: usize,
    from: Vec<u8>,
    to: Vec<u8>,
    /// The instant of the fork, in unix milliseconds; before that the fork only reserves names.
    instant_ms: Option<u64>,
    /// The cells before this position are copied.
    next: WalkPlace,
    /// A tree: it grows without ever moving all of its entries.
    aside: BTreeMap<Vec<u8>, Option<Aside>>,
}

/// Identifies a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkId(u64);

/// A cell as it was at the instant of a fork.
pub struct Aside {
    pub image: Vec<u8>,
    pub deadline: Option<u64>,
}

/// A position in a walk over all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WalkPlace {
    pub shard: usize,
    pub position: u32,
}

impl WalkPlace {
    /// The position after a range that ends at this position of the shard.
    pub fn behind(self, end: u32) -> WalkPlace {
        match end.checked_add(1) {
            Some(position) => WalkPlace { position, ..self },
            None => WalkPlace { shard: self.shard + 1, position: 0 },
        }
    }
}

impl Fork {
    fn overlaps(&self, db: usize, prefix: &[u8]) -> bool {
        self.db == db && contain_each_other(&self.to, prefix)
    }

    fn reserves(&self, db: usize, name: &[u8]) -> bool {
        self.db == db && name.starts_with(&self.to)
    }

    /// True when the fork may still have to copy the cell of that name.
    fn needs(&self, db: usize, key: Key<'_>, shard: usize) -> bool {
        let place = WalkPlace { shard, position: NameHash::of(key.name).position() };
        self.instant_ms.is_some()
            && self.db == db
            && key.name.starts_with(&self.from)
            && place >= self.next
            && !self.aside.contains_key(key.name)
    }
}

/// True when one of the two prefixes begins with the other.
pub fn contain_each_other(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

impl Forks {
    /// True when there is a fork. Exact for a thread that holds the lock of a shard that a fork has locked since it
    /// began.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Reserves the names under `to`. Refused while another fork creates names under either prefix.
    pub fn reserve(&self, db: usize, from: &[u8], to: &[u8]) -> Result<ForkId, CommandError> {
        self.pass_prefix(db, from)?;
        self.pass_prefix(db, to)?;
        let id = ForkId(self.last.fetch_add(1, Relaxed) + 1);
        let mut under_way = self.under_way.lock();
        if under_way.iter().any(|fork| fork.overlaps(db, from) || fork.overlaps(db, to)) {
            return Err(busy());
        }
        if under_way.len() >= UNDER_WAY_MAX {
            return Err(CommandError::fixed("BUSY as many forks as there may be are under way: try again later"));
        }
        under_way.push(Fork {
            id,
            db,
            from: from.to_vec(),
            to: to.to_vec(),
            instant_ms: None,
            next: WalkPlace::default(),
            aside: BTreeMap::new(),
        });
        self.count.store(under_way.len(), Relaxed);
        Ok(id)
    }

    /// Ends a fork: its names are no longer reserved. Returns its remaining state, to be freed.
    pub fn release(&self, id: ForkId) -> impl Send + use<> {
        let mut under_way = self.under_way.lock();
        let ended: Vec<Fork> = under_way.extract_if(.., |fork| fork.id == id).collect();
        self.count.store(under_way.len(), Relaxed);
        ended
    }

    fn with<T>(&self, id: ForkId, look: impl FnOnce(&mut Fork) -> T) -> T {
        let mut under_way = self.under_way.lock();
        let fork = under_way.iter_mut().find(|fork| fork.id == id);
        look(fork.expect("a fork is there until it is released"))
    }

    /// Sets the instant of a fork to now. IMPORTANT: everything is locked.
    pub fn begin(&self, id: ForkId, now_ms: u64) {
        self.with(id, |fork| fork.instant_ms = Some(now_ms));
    }

    /// True when a cell was put aside.
    pub fn is_aside(&self, id: ForkId, name: &[u8]) -> bool {
        self.with(id, |fork| fork.aside.contains_key(name))
    }

    /// Notes that the cells before that position are copied. IMPORTANT: the shard of the copied cells is still locked.
    pub fn pass(&self, id: ForkId, next: WalkPlace) {
        self.with(id, |fork| fork.next = next);
    }

    /// Takes some of the cells that were put aside; empty when there are no more. The walk is complete.
    pub fn take_aside(&self, id: ForkId, count: usize) -> Vec<(Vec<u8>, Option<Aside>)> {
        self.with(id, |fork| std::iter::from_fn(|| fork.aside.pop_first()).take(count).collect())
    }

    /// Puts aside the cells that an effect is about to change. Called before the effect is applied.
    #[cold]
    pub fn note(&self, locked: &Locked<'_>, shard_of: impl Fn(Key<'_>) -> usize, db: usize, effect: &Effect<'_>) {
        let mut under_way = self.under_way.lock();
        match effect.touches(db) {
            Touches::Keys(touches) => {
                for Touch { db, key, fate } in touches {
                    if fate == Fate::Read {
                        continue;
                    }
                    for fork in under_way.iter_mut().filter(|fork| fork.needs(db, key, shard_of(key))) {
                        let aside = aside_of(locked.db(db, key), key, fork.instant_ms.unwrap_or(0));
                        fork.aside.insert(key.name.to_vec(), aside);
                    }
                }
            }
            // The token of a fork's database refuses SWAPDB, and ends the fork when the database is emptied.
            Touches::Emptied(_) | Touches::Swapped(..) | Touches::Definition(_) => {}
        }
    }

    /// Refuses to write a name that a fork creates.
    pub fn pass_name(&self, db: usize, name: &[u8]) -> CommandResult {
        let is_reserved = self.any() && self.under_way.lock().iter().any(|fork| fork.reserves(db, name));
        if is_reserved { Err(busy()) } else { Ok(()) }
    }

    /// Refuses a command about all names under a prefix while a fork creates some of them.
    pub fn pass_prefix(&self, db: usize, prefix: &[u8]) -> CommandResult {
        let is_reserved = self.any() && self.under_way.lock().iter().any(|fork| fork.overlaps(db, prefix));
        if is_reserved { Err(busy()) } else { Ok(()) }
    }

    /// Refuses commands about a whole database while there is a fork in it.
    pub fn pass_database(&self, db: usize) -> CommandResult {
        if self.under_way.lock().iter().any(|fork| fork.db == db) { Err(busy()) } else { Ok(()) }
    }
}

fn busy() -> CommandError {
    CommandError::fixed("BUSY a CELL.FORK is writing there: try again when it has ended")
}

/// The cell of that name, unless it had expired at that instant.
fn aside_of(db: &Db, key: Key<'_>, now_ms: u64) -> Option<Aside> {
    let entry = db.entry(key).filter(|entry| is_cell(entry, now_ms))?;
    let mut image = Vec::new();
    db.write_image(entry, &mut image);
    Some(Aside { image, deadline: entry.deadline() })
}

/// True for a cell that has not expired.
pub fn is_cell(entry: &Entry, now_ms: u64) -> bool {
    ValueType::of(entry).is(&cell::TYPE) && !Db::is_expired(entry, now_ms)
}

/// The name of a fork in the journal.
pub fn definition_name(db: usize, to: &[u8]) -> Vec<u8> {
    [&[db as u8], to].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_at_a_time_are_limited() {
        let forks = Forks::default();
        let reserve =
            |number: usize| forks.reserve(0, format!("from{number}/").as_bytes(), format!("to{number}/").as_bytes());
        let ids: Vec<ForkId> = (10..10 + UNDER_WAY_MAX).map(|number| reserve(number).unwrap()).collect();
        assert!(reserve(99).unwrap_err().to_string().starts_with("BUSY as many forks"));
        assert!(forks.pass_name(0, b"to10/x").is_err() && forks.pass_name(1, b"to10/x").is_ok());
        drop(forks.release(ids[0]));
        assert!(forks.pass_name(0, b"to10/x").is_ok());
        reserve(99).unwrap();
    }
}
