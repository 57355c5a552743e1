//! Applies effects that an earlier run of the server, or another server, has recorded: decode, then apply. No handlers,
//! no clock, no randomness. Knows which part of a snapshot is older than a batch; refuses to know files.
//!
//! A batch is applied as a whole, under all its locks, and published as if its commands had run here: to watchers,
//! client-side caches, waiters and subscribers of notifications. So a follower can answer reads meanwhile, and each
//! reply shows a state between two batches. A start works the same way, without clients; only definitions take effect
//! once, at the end, instead of with each batch. Many batches at once can be applied by several threads
//! ([`rounds`]).

mod parts;
mod rounds;
mod stamps;
mod threads;

use self::stamps::Stamps;
use self::threads::Appliers;
use crate::commit;
use crate::engine::Engine;
use crate::recorder::Recorder;
use crate::view::View;
use crate::waiting;
use crate::walk::{Placement, SnapshotPart};
use crate::worker::Worker;
use keyspace::effects::codec::Decoder;
use keyspace::garbage::Garbage;
use keyspace::{BadEffect, Effect, Locked, Touches, Usage};
use smallvec::SmallVec;
use std::sync::Arc;

/// Rebuilds a keyspace, from the parts of a snapshot and then from batches in their order.
pub struct Replay<'e> {
    engine: &'e Engine,
    worker: Worker,
    stamps: Arc<Stamps>,
    manner: Manner,
    appliers: Option<Appliers>,
}

/// How effects are applied.
#[derive(Clone, Copy)]
struct Manner {
    /// The time of last use for recovered keys, and how use is recorded. Not part of the state.
    used: (u64, Usage),
    /// Clients read during the replay: a definition takes effect at once.
    is_live: bool,
}

/// Which shards a batch needs.
enum Need {
    Some(SmallVec<[usize; 16]>),
    All,
}

impl<'e> Replay<'e> {
    /// Begins a replay into an engine with an empty keyspace: of a snapshot with this placement of keys, or without a
    /// snapshot. Call `revive_functions` and `revive_indexes` afterwards, so that definitions take effect.
    pub fn new(engine: &'e Engine, placement: Option<Placement>) -> Replay<'e> {
        let used = (engine.clock.unix_us() / 1000, engine.usage(&mut fastrand::Rng::with_seed(0)));
        let manner = Manner { used, is_live: false };
        Replay { engine, worker: engine.worker(0), stamps: Arc::new(Stamps::new(placement)), manner, appliers: None }
    }

    /// Lets clients read from now on. The engine is a follower until `end_following`. The state so far is complete and
    /// consistent: every batch that the snapshot contains a part of was applied. `worker` serves nothing else: the
    /// counters of a worker have one writer.
    pub fn go_live(mut self, worker: Worker) -> Replay<'e> {
        self.engine.restrictions.set_following(true);
        self.worker = worker;
        self.manner.is_live = true;
        self
    }

    /// Applies a part of the snapshot. Parts of a shard must come in order.
    pub fn part(&mut self, part: SnapshotPart, keys: &[u8]) -> Result<(), BadEffect> {
        Arc::get_mut(&mut self.stamps).expect("parts come before batches").add(part)?;
        parts::put(self.engine, self.manner, keys)
    }

    /// Applies a batch to the keys whose snapshot part is older. An error when its bytes are not a batch (nothing is
    /// applied), or when it does not fit the state: then it may be applied partly, and the state must not be read any
    /// more.
    pub fn batch(&mut self, sequence: u64, batch: &[u8]) -> Result<(), BadEffect> {
        self.batches(&[(sequence, batch)])
    }

    /// Applies several batches, in their order, under the locks of all of them: a reply shows the state before the first
    /// or after the last. Their entries are fetched from memory at the same time, which is most of the work on a large
    /// keyspace.
    pub fn batches(&mut self, batches: &[(u64, &[u8])]) -> Result<(), BadEffect> {
        let engine = self.engine;
        self.assert_newer(batches.first().map_or(u64::MAX, |(sequence, _)| *sequence));
        if self.manner.is_live {
            engine.begin(&mut self.worker);
        }
        let mut shards = SmallVec::new();
        let mut needs_all = false;
        for (_, batch) in batches {
            match self.need(batch)? {
                Need::Some(more) => shards.extend(more),
                Need::All => needs_all = true,
            }
        }
        let mut locked = match needs_all {
            false => engine.keyspace.lock_shards(shards),
            true => engine.keyspace.lock_all(),
        };
        if batches.len() > 1 {
            batches.iter().try_for_each(|(_, batch)| prefetch(&locked, batch))?;
        }
        let mut garbage = SmallVec::<[Garbage; 8]>::new();
        for (sequence, batch) in batches {
            let left = self.apply_locked(*sequence, batch, &mut locked)?;
            if !left.is_empty() {
                garbage.push(left);
            }
        }
        drop(locked);
        garbage.into_iter().for_each(|garbage| engine.free(garbage));
        if waiting::queueing::has_deferred(engine) {
            waiting::serving::serve_deferred(engine, &mut self.worker);
        }
        Ok(())
    }

    /// While clients read, a batch must be newer than the snapshot.
    fn assert_newer(&self, sequence: u64) {
        let is_newer = sequence > self.stamps.newest;
        assert!(!self.manner.is_live || is_newer, "clients read before all parts of the snapshot were of one state");
    }

    /// Applies a batch whose shards are locked. Returns what it has removed.
    fn apply_locked(&mut self, sequence: u64, batch: &[u8], locked: &mut Locked<'_>) -> Result<Garbage, BadEffect> {
        let engine = self.engine;
        let mut keys = self.manner.recorder(engine, &self.worker, locked);
        let mut effects = Decoder::new(batch);
        while let Some((db, effect)) = effects.next()? {
            apply(&mut keys, &self.stamps, sequence, db, &effect, self.manner)?;
        }
        // The changes are not counted: they were made elsewhere, and at a start the worker's counters have another
        // writer.
        let garbage = keys.take_garbage();
        drop(keys);
        commit::commit_replayed(engine, &mut self.worker, sequence, locked);
        Ok(garbage)
    }

    /// The shards that a batch touches.
    fn need(&self, batch: &[u8]) -> Result<Need, BadEffect> {
        let (mut effects, mut shards) = (Decoder::new(batch), SmallVec::new());
        while let Some((db, effect)) = effects.next()? {
            match effect.touches(db) {
                Touches::Keys(touches) => {
                    shards.extend(touches.iter().map(|touch| self.engine.keyspace.shard_of_key(touch.key)));
                }
                Touches::Emptied(_) | Touches::Swapped(..) | Touches::Definition(_) => return Ok(Need::All),
            }
        }
        Ok(Need::Some(shards))
    }
}

impl Manner {
    /// What effects are applied to.
    fn recorder<'a>(self, engine: &'a Engine, worker: &'a Worker, locked: &'a mut Locked<'_>) -> Recorder<'a> {
        let (notifications, stats) = (&worker.batch.notifications, &worker.metrics.stats);
        let mut view = View::new(locked.lend(), 0, worker.now_ms, self.used.1, stats).without_touching();
        if self.is_live {
            view.notify_through(notifications, engine.settings.notify_keyspace_events().published());
        }
        view.into_follower(engine)
    }
}

/// Applies an effect to the keys whose snapshot part is older than it.
fn apply(
    keys: &mut Recorder<'_>,
    stamps: &Stamps,
    sequence: u64,
    db: usize,
    effect: &Effect<'_>,
    manner: Manner,
) -> Result<(), BadEffect> {
    let mut replay = || match keys.view().locked().fits(db, effect) {
        true => {
            keys.replay(db, effect, manner.is_live);
            Ok(())
        }
        false => Err(BadEffect::WrongType),
    };
    if sequence > stamps.newest {
        return replay();
    }
    let is_newer = |name: &[u8]| sequence > stamps.of(name);
    match effect.touches(db) {
        Touches::Keys(touches) => {
            let newer = touches.iter().filter(|touch| is_newer(touch.key.name)).count();
            if newer > 0 && newer < touches.len() {
                // While a snapshot was written, no batch referred from one key to another, so the snapshot has both
                // keys or none.
                return Err(BadEffect::OutOfRange);
            }
            if newer > 0 {
                replay()?;
            }
        }
        Touches::Emptied(_) | Touches::Swapped(..) => keys.apply_where(db, effect, is_newer),
        Touches::Definition(_) => {
            if sequence > stamps.of_definitions() {
                replay()?;
            }
        }
    }
    Ok(())
}

/// Begins to fetch the entries of a batch from memory.
fn prefetch(locked: &Locked<'_>, batch: &[u8]) -> Result<(), BadEffect> {
    let mut effects = Decoder::new(batch);
    while let Some((db, effect)) = effects.next()? {
        if let Touches::Keys(touches) = effect.touches(db) {
            touches.iter().for_each(|touch| locked.db(touch.db, touch.key).prefetch(touch.key.hash));
        }
    }
    Ok(())
}
