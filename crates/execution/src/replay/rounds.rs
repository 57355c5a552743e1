//! Rounds: many batches that several threads apply, each to a range of the shards. Knows what can be applied apart from the
//! rest; refuses to know what an effect does.
//!
//! Effects on keys of different shards do not depend on each other. So each thread decodes all batches of a round, and
//! applies those effects that change its shards, shard by shard. All threads hold their locks before the first change,
//! and give them back after the last: a reply shows the state before the round or after it. A round with an effect that
//! refers from one shard to another, or that changes whole databases or definitions, is applied by one thread, in the
//! order of the log; so is one whose order clients follow (notifications, waiting clients, read-only transactions).

use super::stamps::Stamps;
use super::threads::{Meeting, Task, take_part};
use super::{Manner, Replay, apply};
use crate::engine::Engine;
use crate::worker::Worker;
use crate::{commit, observers, waiting};
use keyspace::effects::codec::Decoder;
use keyspace::{BadEffect, Effect, Locked, NameHash, Touches};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// From how many batches on it is worth to wake other threads.
const BATCHES_MIN: usize = 128;
/// How many batches one thread applies under the same locks: enough to fetch their entries from memory together, and few
/// enough that readers do not wait.
const BATCHES_UNDER_ONE_LOCK: usize = 32;

/// Batches that all threads apply, and how far they are.
struct Round {
    batches: Vec<(u64, Vec<u8>)>,
    stamps: Arc<Stamps>,
    manner: Manner,
    threads: usize,
    /// How many threads have decoded their part, hold their locks, and have applied it.
    decoded: AtomicUsize,
    locked: AtomicUsize,
    applied: AtomicUsize,
    /// The effects have to be applied by one thread, in their order.
    is_ordered: AtomicBool,
    meeting: Meeting,
    failure: OnceLock<BadEffect>,
}

/// Where an effect is that a thread has to apply.
struct Located {
    shard: usize,
    batch: usize,
    bytes: Range<usize>,
    db: usize,
    hash: NameHash,
}

impl Replay<'_> {
    /// Applies batches in their order: many at once on several threads, few on this one. As for [`Replay::batches`], an
    /// error leaves a state that must not be read any more.
    pub fn many(&mut self, batches: Vec<(u64, Vec<u8>)>) -> Result<(), BadEffect> {
        let engine = self.engine;
        self.assert_newer(batches.first().map_or(u64::MAX, |(sequence, _)| *sequence));
        let is_worth_it = batches.len() >= BATCHES_MIN && !(self.manner.is_live && observers::follows_order(engine));
        let appliers = self.appliers.as_mut().filter(|appliers| is_worth_it && appliers.has_several());
        let Some(appliers) = appliers else {
            return self.in_order(&batches);
        };
        let round = Arc::new(Round::new(batches, self.stamps.clone(), self.manner, appliers.start()));
        appliers.share(&round);
        if self.manner.is_live {
            engine.begin(&mut self.worker);
        }
        take_part(&*round, engine, &mut self.worker, 0);
        if round.is_ordered.load(SeqCst) {
            return self.in_order(&round.batches);
        }
        if let Some(appliers) = &mut self.appliers {
            appliers.batches += round.batches.len() as u64;
        }
        if waiting::queueing::has_deferred(engine) {
            waiting::serving::serve_deferred(engine, &mut self.worker);
        }
        round.failure.get().map_or(Ok(()), |failure| Err(*failure))
    }

    /// How many batches were applied by several threads.
    pub fn applied_apart(&self) -> u64 {
        self.appliers.as_ref().map_or(0, |appliers| appliers.batches)
    }

    fn in_order(&mut self, batches: &[(u64, Vec<u8>)]) -> Result<(), BadEffect> {
        for together in batches.chunks(BATCHES_UNDER_ONE_LOCK) {
            let together: SmallVec<[(u64, &[u8]); BATCHES_UNDER_ONE_LOCK]> =
                together.iter().map(|(sequence, batch)| (*sequence, &**batch)).collect();
            self.batches(&together)?;
        }
        Ok(())
    }
}

impl Round {
    fn new(batches: Vec<(u64, Vec<u8>)>, stamps: Arc<Stamps>, manner: Manner, threads: usize) -> Round {
        Round {
            batches,
            stamps,
            manner,
            threads,
            decoded: AtomicUsize::new(0),
            locked: AtomicUsize::new(0),
            applied: AtomicUsize::new(0),
            is_ordered: AtomicBool::new(false),
            meeting: Meeting::default(),
            failure: OnceLock::new(),
        }
    }

    /// The effects that change the shards of a thread, by shard, and those of a shard in their order. `None` if there is
    /// one in the round that cannot be applied apart from others, or bytes that are no effect.
    fn find(&self, engine: &Engine, number: usize) -> Option<Vec<Located>> {
        let shard_count = engine.keyspace.shard_count();
        let of_thread = |number: usize| number * shard_count / self.threads;
        let shards = of_thread(number)..of_thread(number + 1);
        let mut mine = Vec::with_capacity(2 * self.batches.len() / self.threads);
        let mut effects = Decoder::default();
        for (number, (_, batch)) in self.batches.iter().enumerate() {
            effects.go_on_with(batch);
            loop {
                let from = batch.len() - effects.bytes_left();
                let Some((db, effect)) = effects.next().ok()? else { break };
                let (shard, hash) = shard_of(engine, db, &effect)?;
                let bytes = from..batch.len() - effects.bytes_left();
                if shards.contains(&shard) {
                    mine.push(Located { shard, batch: number, bytes, db, hash });
                }
            }
        }
        mine.sort_by_key(|located| located.shard);
        Some(mine)
    }

    fn apply(
        &self,
        engine: &Engine,
        worker: &mut Worker,
        mine: &[Located],
        locked: &mut Locked<'_>,
    ) -> Result<(), BadEffect> {
        let last = self.batches.last().map_or(0, |(sequence, _)| *sequence);
        let by_shard = || mine.chunk_by(|one, other| one.shard == other.shard);
        let mut ahead = by_shard();
        ahead.next().into_iter().flatten().for_each(|located| prefetch(locked, located));
        let mut effects = Decoder::default();
        for of_shard in by_shard() {
            // The entries of the next shard come from memory while those of this one are changed.
            ahead.next().into_iter().flatten().for_each(|located| prefetch(locked, located));
            let mut shard = locked.lend_shard(of_shard[0].shard);
            let mut keys = self.manner.recorder(engine, worker, &mut shard);
            for Located { batch, bytes, .. } in of_shard {
                let (sequence, batch) = &self.batches[*batch];
                effects.go_on_with(&batch[bytes.clone()]);
                while let Some((db, effect)) = effects.next()? {
                    apply(&mut keys, &self.stamps, *sequence, db, &effect, self.manner)?;
                }
            }
            let garbage = keys.take_garbage();
            drop(keys);
            commit::commit_replayed(engine, worker, last, &mut shard);
            engine.free(garbage);
        }
        Ok(())
    }
}

impl Task for Round {
    /// Applies what changes the shards of one of the threads. The round ends for all of them together.
    fn take_part(&self, engine: &Engine, worker: &mut Worker, number: usize) {
        let mine = self.find(engine, number);
        if mine.is_none() {
            self.is_ordered.store(true, SeqCst);
        }
        self.decoded.fetch_add(1, SeqCst);
        self.meeting.wait_until(&self.decoded, self.threads);
        let Some(mine) = mine.filter(|_| !self.is_ordered.load(SeqCst)) else { return };
        // IMPORTANT: one thread after the other. Shards are locked in ascending order everywhere; that the locks belong
        // to several threads here changes nothing, since all of them wait for each other.
        self.meeting.wait_until(&self.locked, number);
        let mut shards: SmallVec<[usize; 16]> = mine.iter().map(|located| located.shard).collect();
        shards.dedup();
        let mut locked = engine.keyspace.lock_shards(shards);
        self.locked.fetch_add(1, SeqCst);
        self.meeting.wait_until(&self.locked, self.threads);
        if let Err(error) = self.apply(engine, worker, &mine, &mut locked) {
            // The first of them is as good as any.
            let _ = self.failure.set(error);
        }
        self.applied.fetch_add(1, SeqCst);
        self.meeting.wait_until(&self.applied, self.threads);
    }

    fn meeting(&self) -> &Meeting {
        &self.meeting
    }
}

/// The shard of the only keys that an effect changes or reads; `None` if there are several, or all.
fn shard_of(engine: &Engine, db: usize, effect: &Effect<'_>) -> Option<(usize, NameHash)> {
    let Touches::Keys(touches) = effect.touches(db) else { return None };
    let (first, others) = touches.split_first()?;
    let shard = engine.keyspace.shard_of_key(first.key);
    let is_alone = others.iter().all(|touch| engine.keyspace.shard_of_key(touch.key) == shard);
    is_alone.then_some((shard, first.key.hash))
}

fn prefetch(locked: &Locked<'_>, located: &Located) {
    locked.prefetch_in(located.shard, located.db, located.hash);
}
