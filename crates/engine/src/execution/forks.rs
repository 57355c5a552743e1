//! Forks of cells that are under way: which names they reserve, which cells they have still to copy, and what those were
//! at the instant of the fork. Knows prefixes, places and values; refuses to know how a fork is asked for and walked.
//!
//! A fork is of one instant, at which everything is locked for a moment. From then on cells are copied in slices, in the
//! order of shards and positions. A cell that is about to change before its turn is *put aside* first, as it is then
//! ([`Forks::note`]), and so is the absence of a name that comes into being; each is put aside once, so it is as it was at the instant.
//!
//! The names that a fork makes are reserved: whoever else writes there is refused. That is checked under the locks of a
//! command's keys, so that a walk over all shards after the reservation finds whatever was written before it.
//!
//! The journal has the beginning and the end of a fork (`Definable::Fork`). After a start, and when a follower takes the
//! leader's place, what a fork has made that has no end is removed ([`Engine::undo_forks`]).

use crate::error::{CommandError, CommandResult};
use crate::execution::command::CommandRow;
use crate::execution::engine::Engine;
use crate::execution::recorder::Recorder;
use crate::execution::view::View;
use crate::execution::worker::Worker;
use crate::settings::events::Events;
use keyspace::db::Db;
use keyspace::types::cell;
use keyspace::{Cause, Definable, Effect, Entry, Fate, Key, Locked, NameHash, Touch, Touches, ValueType};
use locks::{Mutex, rank};
use resp::Request;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The most forks at a time: while there are any, every write looks at each of them.
const UNDER_WAY_MAX: usize = 16;

/// All forks that are under way.
#[derive(Default)]
pub(crate) struct Forks {
    count: AtomicUsize,
    last: AtomicU64,
    under_way: Mutex<Vec<Fork>, { rank::FORKS }>,
}

/// One of them.
struct Fork {
    id: ForkId,
    db: usize,
    from: Vec<u8>,
    to: Vec<u8>,
    /// When it took place, in unix milliseconds; before that it only reserves names.
    instant_ms: Option<u64>,
    /// The cells before this place are copied.
    next: WalkPlace,
    /// A map that grows without ever moving all of it.
    aside: BTreeMap<Vec<u8>, Option<Aside>>,
    failure: Option<&'static str>,
}

/// Which fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ForkId(u64);

/// A cell as it was at the instant of a fork.
pub(crate) struct Aside {
    pub(crate) image: Vec<u8>,
    pub(crate) deadline: Option<u64>,
}

/// Where a walk over all keys goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WalkPlace {
    pub(crate) shard: usize,
    pub(crate) position: u32,
}

impl WalkPlace {
    /// The place behind a range that ends at this position of the shard.
    pub(crate) fn behind(self, end: u32) -> WalkPlace {
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

    /// True when it may still have to copy the cell of that name.
    fn needs(&self, db: usize, key: Key<'_>, shard: usize) -> bool {
        let place = WalkPlace { shard, position: NameHash::of(key.name).position() };
        self.instant_ms.is_some()
            && self.db == db
            && key.name.starts_with(&self.from)
            && place >= self.next
            && !self.aside.contains_key(key.name)
    }
}

/// True when names under one prefix may be names under the other.
pub(crate) fn contain_each_other(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

impl Forks {
    /// True when there is one. Exact for a thread that holds a lock of a shard that a fork has locked since it began.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    /// Reserves the names under `to`. Refused while another fork makes names under either prefix.
    pub(crate) fn reserve(&self, db: usize, from: &[u8], to: &[u8]) -> Result<ForkId, CommandError> {
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
            failure: None,
        });
        self.count.store(under_way.len(), Relaxed);
        Ok(id)
    }

    /// Ends a fork: its names are no longer reserved. Returns what is left of it, to be freed.
    pub(crate) fn release(&self, id: ForkId) -> impl Send + use<> {
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

    /// This is the instant of a fork. IMPORTANT: everything is locked.
    pub(crate) fn begin(&self, id: ForkId, now_ms: u64) {
        self.with(id, |fork| fork.instant_ms = Some(now_ms));
    }

    /// Why a fork cannot go on, if it cannot.
    pub(crate) fn failure(&self, id: ForkId) -> Option<&'static str> {
        self.with(id, |fork| fork.failure)
    }

    /// True when a cell was put aside.
    pub(crate) fn is_aside(&self, id: ForkId, name: &[u8]) -> bool {
        self.with(id, |fork| fork.aside.contains_key(name))
    }

    /// The cells before that place are copied. IMPORTANT: the shard of what was copied is still locked.
    pub(crate) fn pass(&self, id: ForkId, next: WalkPlace) {
        self.with(id, |fork| fork.next = next);
    }

    /// Takes some of the cells that were put aside; none when there are no more. All cells have been passed.
    pub(crate) fn take_aside(&self, id: ForkId, count: usize) -> Vec<(Vec<u8>, Option<Aside>)> {
        self.with(id, |fork| std::iter::from_fn(|| fork.aside.pop_first()).take(count).collect())
    }

    /// Puts aside what an effect is about to change. Called before it is applied.
    #[cold]
    pub(crate) fn note(
        &self,
        locked: &Locked<'_>,
        shard_of: impl Fn(Key<'_>) -> usize,
        db: usize,
        effect: &Effect<'_>,
    ) {
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
            Touches::Emptied(dbs) => {
                for fork in under_way.iter_mut().filter(|fork| dbs.contains(&fork.db) && fork.instant_ms.is_some()) {
                    fork.failure = Some("ERR the database was emptied during the fork");
                }
            }
            // Refused while there is a fork: see `pass_swap`.
            Touches::Swapped(..) | Touches::Definition => {}
        }
    }

    /// Refuses to write a name that a fork makes.
    pub(crate) fn pass_name(&self, db: usize, name: &[u8]) -> CommandResult {
        let is_reserved = self.any() && self.under_way.lock().iter().any(|fork| fork.reserves(db, name));
        if is_reserved { Err(busy()) } else { Ok(()) }
    }

    /// Refuses a command about all names under a prefix while a fork makes some of them.
    pub(crate) fn pass_prefix(&self, db: usize, prefix: &[u8]) -> CommandResult {
        let is_reserved = self.any() && self.under_way.lock().iter().any(|fork| fork.overlaps(db, prefix));
        if is_reserved { Err(busy()) } else { Ok(()) }
    }

    /// Refuses what cannot be done in a database while there is a fork in it.
    pub(crate) fn pass_database(&self, db: usize) -> CommandResult {
        if self.under_way.lock().iter().any(|fork| fork.db == db) { Err(busy()) } else { Ok(()) }
    }

    /// Refuses to exchange databases while there is a fork in one of them: the journal names the database of a fork.
    pub(crate) fn pass_swap(&self, a: usize, b: usize) -> CommandResult {
        let concerns = |fork: &Fork| [a, b].contains(&fork.db);
        let is_reserved = self.any() && self.under_way.lock().iter().any(concerns);
        if is_reserved { Err(busy()) } else { Ok(()) }
    }
}

fn busy() -> CommandError {
    CommandError::fixed("BUSY a CELL.FORK is writing there: try again when it has ended")
}

/// The cell of that name, if there is one that had not expired at an instant.
fn aside_of(db: &Db, key: Key<'_>, now_ms: u64) -> Option<Aside> {
    let entry = db.entry(key).filter(|entry| is_cell(entry, now_ms))?;
    let mut image = Vec::new();
    db.write_image(entry, &mut image);
    Some(Aside { image, deadline: entry.deadline() })
}

/// True for a cell that has not expired.
pub(crate) fn is_cell(entry: &Entry, now_ms: u64) -> bool {
    ValueType::of(entry).is(&cell::TYPE) && !Db::is_expired(entry, now_ms)
}

/// The name of a fork in the journal.
pub(crate) fn definition_name(db: usize, to: &[u8]) -> Vec<u8> {
    [&[db as u8], to].concat()
}

impl Engine {
    /// Refuses a command that writes names which a fork makes.
    #[inline]
    pub(crate) fn pass_forks(&self, db: usize, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
        if self.forks.any() { self.pass_forks_by_key(db, row, request) } else { Ok(()) }
    }

    #[cold]
    fn pass_forks_by_key(&self, db: usize, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
        let found = row.found_keys(request);
        let written = found.ranges.iter().filter(|range| range.flags.writes());
        written.flat_map(|range| range.positions()).try_for_each(|at| self.forks.pass_name(db, request.arg(at)))
    }

    /// A recorder of changes that the server makes by itself, in one database.
    pub(crate) fn own_changes<'a>(&'a self, worker: &'a mut Worker, locked: Locked<'a>, db: usize) -> Recorder<'a> {
        let usage = self.usage(&mut worker.random);
        let mut view = View::new(locked, db, worker.now_ms, usage, &worker.books.stats).without_touching();
        view.notify_through(&worker.batch.notifications, self.settings.notify_keyspace_events().published());
        view.into_recorder(self, &mut worker.batch.effects)
    }

    /// Removes keys from a place on, as one batch: those that are `wanted`, of one shard at most. Returns how many, and where
    /// to go on; the same place, when a lock cannot be had now.
    pub(crate) fn remove_some(
        &self,
        worker: &mut Worker,
        db: usize,
        place: WalkPlace,
        is_over: impl Fn() -> bool,
        (class, event): (Events, &'static str),
        wanted: impl Fn(&Entry) -> bool,
    ) -> (u64, WalkPlace) {
        let Some(mut locked) = self.keyspace.lock_shard_unless_busy(place.shard) else { return (0, place) };
        let (mut next, mut removed) = (place, 0);
        let mut keys = self.own_changes(worker, locked.lend(), db);
        while next.shard == place.shard {
            let (mut names, mut end) = (Vec::new(), u32::MAX);
            if let Some((_, shard)) = keys.locked().shards().next() {
                end = shard.db(db).range_end(next.position);
                shard.db(db).visit_range(next.position, end, |entry| {
                    if wanted(entry) {
                        names.push(entry.name().to_vec());
                    }
                });
            }
            for name in &names {
                let key = Key::new(name);
                keys.record(&Effect::Delete { key, cause: Cause::Deleted });
                keys.notify(class, event, key);
                removed += 1;
            }
            next = next.behind(end);
            if is_over() {
                break;
            }
        }
        let garbage = keys.finish().take_garbage();
        self.commit(worker, None, &mut locked);
        locked.release_fairly();
        self.free(garbage);
        (removed, next)
    }

    /// Notes in the journal that a fork has begun, or that it has ended. False when the locks cannot be had now.
    /// `then` is called while everything is locked; when it returns false, nothing is noted.
    pub(crate) fn note_fork(
        &self,
        worker: &mut Worker,
        name: &[u8],
        has_begun: bool,
        then: impl FnOnce(&Worker) -> bool,
    ) -> bool {
        let Some(mut locked) = self.keyspace.lock_all_unless_busy() else { return false };
        if then(worker) {
            let mut keys = self.own_changes(worker, locked.lend(), 0);
            keys.record(&match has_begun {
                true => Effect::Define { what: Definable::Fork, name, definition: b"" },
                false => Effect::Undefine { what: Definable::Fork, name },
            });
            keys.finish();
            self.commit(worker, None, &mut locked);
        }
        true
    }

    /// After a start, or when a follower takes its leader's place: removes what forks have made that were not complete. No
    /// fork of this server has begun yet. Returns how many keys that were.
    pub fn undo_forks(&self, worker: &mut Worker) -> u64 {
        let names: Vec<Vec<u8>> = {
            let locked = self.keyspace.lock_shard(0);
            locked.definitions().forks().map(<[u8]>::to_vec).collect()
        };
        let mut removed = 0;
        for name in names {
            self.begin(worker);
            if let Some((&db, to)) = name.split_first().filter(|(db, _)| usize::from(**db) < keyspace::DATABASES) {
                let mut place = WalkPlace::default();
                while place.shard < self.keyspace.shard_count() {
                    let is_under = |entry: &Entry| entry.name().starts_with(to);
                    let event = (Events::GENERIC, "del");
                    let (some, next) = self.remove_some(worker, usize::from(db), place, || true, event, is_under);
                    (place, removed) = (next, removed + some);
                }
            }
            // A script that only reads may be running for long on a follower.
            while !self.note_fork(worker, &name, false, |_| true) {}
        }
        removed
    }
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
