//! Undoes what a hook has changed, if it fails: values as they were before its first change, kept while it runs. Knows
//! effects; refuses to know hooks and sessions.
//!
//! A hook runs while everything is locked, and its effects are not committed before it ends. So they are undone in
//! memory and dropped from the batch: neither the journal nor a follower nor another client ever has them.

use crate::apply;
use crate::engine::Engine;
use crate::pending_batch::PendingBatch;
use keyspace::effects::codec;
use keyspace::{Definable, Effect, Key, KeyCopy, Locked, Touches};
use locks::{Mutex, rank};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What undoes the effects of the hook that runs. There is at most one: it holds all locks.
#[derive(Default)]
pub struct Undo {
    is_noting: AtomicBool,
    noted: Mutex<Noted, { rank::SESSION_UNDO }>,
}

#[derive(Default)]
struct Noted {
    steps: Vec<Step>,
    /// Keys that are noted already. Cleared when databases change as a whole.
    keys: HashSet<(usize, Vec<u8>)>,
}

/// Undoes a part of an effect.
enum Step {
    Key(usize, Vec<u8>, KeyCopy),
    Swap(usize, usize),
    Definition(Definable, Vec<u8>, Option<Vec<u8>>),
    /// A restore of registers was ended because its database was emptied. It stays ended: its command has seen it.
    EndedRestore(Vec<u8>),
}

/// Where a batch was when noting began.
pub struct UndoPoint {
    effects: usize,
    notifications: usize,
}

impl Undo {
    /// True while effects are noted.
    #[inline]
    pub fn is_noting(&self) -> bool {
        self.is_noting.load(Relaxed)
    }

    /// Begins to note effects. Everything is locked until [`Undo::keep`] or [`Undo::undo`].
    pub fn begin(&self, batch: &PendingBatch) -> UndoPoint {
        assert!(!self.is_noting.swap(true, Relaxed), "one hook runs at a time");
        UndoPoint { effects: batch.effects.len(), notifications: batch.notifications.len() }
    }

    /// Notes what an effect is about to change.
    #[cold]
    pub fn note(&self, locked: &Locked<'_>, db: usize, effect: &Effect<'_>) {
        let Noted { steps, keys } = &mut *self.noted.lock();
        let mut note_key = |db: usize, key: Key<'_>| {
            if keys.insert((db, key.name.to_vec())) {
                steps.push(Step::Key(db, key.name.to_vec(), locked.copy_to_restore(db, key)));
            }
        };
        match effect.touches(db) {
            Touches::Keys(touches) => touches.iter().for_each(|touch| note_key(touch.db, touch.key)),
            Touches::Emptied(dbs) => {
                for db in dbs {
                    let entries = locked.shards().flat_map(|(_, shard)| shard.db(db).iter(0));
                    let names: Vec<Vec<u8>> = entries.map(|entry| entry.name().to_vec()).collect();
                    names.iter().for_each(|name| note_key(db, Key::new(name)));
                }
            }
            Touches::Swapped(a, b) => {
                steps.push(Step::Swap(a, b));
                keys.clear();
            }
            Touches::Definition(_) => {
                let (Effect::Define { what, name, .. } | Effect::Undefine { what, name }) = *effect else { return };
                if what == Definable::Restore {
                    return steps.push(Step::EndedRestore(name.to_vec()));
                }
                let before = locked.definitions().definition(what, name).map(<[u8]>::to_vec);
                steps.push(Step::Definition(what, name.to_vec(), before));
            }
        }
    }

    /// Ends noting: the effects stay.
    pub fn keep(&self) {
        self.is_noting.store(false, Relaxed);
        *self.noted.lock() = Noted::default();
    }

    /// Ends noting, and undoes the effects since the point.
    pub fn undo(&self, engine: &Engine, batch: &mut PendingBatch, locked: &mut Locked<'_>, point: &UndoPoint) {
        self.is_noting.store(false, Relaxed);
        let Noted { steps, .. } = std::mem::take(&mut *self.noted.lock());
        batch.effects.truncate(point.effects);
        batch.notifications.retract(point.notifications);
        for step in steps.into_iter().rev() {
            match step {
                Step::Key(db, name, copy) => locked.put_copy(db, Key::new(&name), copy),
                Step::Swap(a, b) => undo_with(engine, locked, &Effect::SwapDb { a, b }),
                Step::Definition(what, name, Some(definition)) => {
                    undo_with(engine, locked, &Effect::Define { what, name: &name, definition: &definition });
                }
                Step::Definition(what, name, None) => {
                    undo_with(engine, locked, &Effect::Undefine { what, name: &name });
                }
                Step::EndedRestore(name) if engine.persistence.is_recording() => {
                    let ended = Effect::Undefine { what: Definable::Restore, name: &name };
                    codec::encode(0, &ended, &mut batch.effects);
                }
                Step::EndedRestore(_) => {}
            }
        }
    }
}

fn undo_with(engine: &Engine, locked: &mut Locked<'_>, effect: &Effect<'_>) {
    apply::apply(engine, locked, 0, effect, &engine.thresholds());
}
