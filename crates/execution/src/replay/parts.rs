//! Parts of a snapshot, which several threads apply. Knows that their keys are different ones; refuses to know batches.

use super::threads::{Meeting, Task, take_part};
use super::{Manner, Replay};
use crate::engine::Engine;
use crate::walk::SnapshotPart;
use crate::worker::Worker;
use keyspace::effects::codec::Decoder;
use keyspace::{BadEffect, Effect};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

/// Parts that all threads apply, and how far they are.
struct Parts {
    keys: Vec<Vec<u8>>,
    manner: Manner,
    threads: usize,
    /// The first that no thread has taken yet.
    next: AtomicUsize,
    /// How many threads have found none left.
    done: AtomicUsize,
    meeting: Meeting,
    failure: OnceLock<BadEffect>,
}

impl Replay<'_> {
    /// Applies parts of the snapshot, on several threads. Parts of a shard must come in order.
    pub fn parts(&mut self, parts: Vec<(SnapshotPart, Vec<u8>)>) -> Result<(), BadEffect> {
        let engine = self.engine;
        let stamps = Arc::get_mut(&mut self.stamps).expect("parts come before batches");
        parts.iter().try_for_each(|(part, _)| stamps.add(*part))?;
        let mut keys = parts.into_iter().map(|(_, keys)| keys);
        let appliers = self.appliers.as_mut().filter(|appliers| appliers.has_several() && keys.len() > 1);
        let Some(appliers) = appliers else { return keys.try_for_each(|keys| put(engine, self.manner, &keys)) };
        let parts = Arc::new(Parts {
            keys: keys.collect(),
            manner: self.manner,
            threads: appliers.start(),
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            meeting: Meeting::default(),
            failure: OnceLock::new(),
        });
        appliers.share(&parts);
        take_part(&*parts, engine, &mut self.worker, 0);
        parts.failure.get().map_or(Ok(()), |failure| Err(*failure))
    }
}

impl Task for Parts {
    fn take_part(&self, engine: &Engine, _: &mut Worker, _: usize) {
        while let Some(keys) = self.keys.get(self.next.fetch_add(1, SeqCst)) {
            if let Err(error) = put(engine, self.manner, keys) {
                // The first of them is as good as any.
                let _ = self.failure.set(error);
            }
        }
        self.done.fetch_add(1, SeqCst);
        self.meeting.wait_until(&self.done, self.threads);
    }

    fn meeting(&self) -> &Meeting {
        &self.meeting
    }
}

/// Applies the effects of a part.
pub(super) fn put(engine: &Engine, manner: Manner, keys: &[u8]) -> Result<(), BadEffect> {
    let (thresholds, (now_ms, usage)) = (engine.thresholds(), manner.used);
    let mut effects = Decoder::new(keys);
    while let Some((db, effect)) = effects.next()? {
        let locked = match effect {
            Effect::Put { key, .. } | Effect::Rate { key, .. } => engine.keyspace.lock_key(key),
            Effect::Define { .. } => engine.keyspace.lock_all(),
            _ => return Err(BadEffect::OutOfRange),
        };
        locked.at(now_ms, usage).apply(db, &effect, &thresholds);
    }
    Ok(())
}
