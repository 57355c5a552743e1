//! Applies effects and shows each to its observers: the parts of the server that follow changes of keys. Knows all
//! observers and the order in which they see an effect; refuses to know commands.
//!
//! [`Recording::apply_observed`] is the list. A new observer is a type that implements [`Observer`], and one line
//! there. A table of function pointers was rejected: as code, [`Observer::is_interested`] is compiled to a load and a
//! branch, and most effects interest no observer but the journal.

use super::view::View;
use crate::apply;
use crate::clients::tracking::Reason;
use crate::engine::Engine;
use crate::panics;
use crate::waiting::keys::note_ready;
use crate::waiting::records::note_records;
use keyspace::effects::codec;
use keyspace::types::session::{self, Session};
use keyspace::{Applied, Cause, Change, Definable, Effect, Fate, Key, Locked, Thresholds, Touch, Touches};

/// The locked keys that effects are applied to, and what observers work with.
pub(super) struct Recording<'a> {
    pub(super) view: View<'a>,
    pub(super) engine: &'a Engine,
    pub(super) thresholds: Thresholds,
    /// The batch for the journal, if effects are recorded.
    pub(super) batch: Option<&'a mut Vec<u8>>,
    /// The keys belong to an interactive transaction: other clients do not see them.
    pub(super) is_private: bool,
}

/// An effect that observers see, and its database.
#[derive(Clone, Copy)]
struct Observed<'e> {
    db: usize,
    effect: &'e Effect<'e>,
}

impl<'e> Observed<'e> {
    /// What the effect touches.
    fn touches(self) -> Touches<'e> {
        self.effect.touches(self.db)
    }
}

/// A part of the server that sees effects: each before it is applied, or after, or both.
trait Observer {
    /// It also sees effects on the keys of an interactive transaction.
    const SEES_PRIVATE: bool = false;

    /// True when effects may concern it. IMPORTANT: called for every effect, so it must cost no more than a load.
    fn is_interested(recording: &Recording<'_>) -> bool;

    /// Called before the effect is applied.
    #[inline]
    fn before(_: &mut Recording<'_>, _: Observed<'_>) {}

    /// Called after the effect was applied.
    #[inline]
    fn after(_: &mut Recording<'_>, _: Observed<'_>, _: Applied) {}
}

impl Recording<'_> {
    /// Applies one effect and shows it to the observers. Derived effects (stamps, expiry) are not recorded.
    pub(super) fn apply(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        assert!(self.view.offers(db, effect), "a command that is served changes only keys that it is offered");
        if self.is_private {
            return self.apply_privately(db, effect);
        }
        panics::note_effect();
        self.apply_observed::<false>(Observed { db, effect })
    }

    /// Applies an effect to the keys of an interactive transaction. A later panic affects only that transaction, so the
    /// effect does not count as recorded.
    #[inline(never)]
    fn apply_privately(&mut self, db: usize, effect: &Effect<'_>) -> Applied {
        self.apply_observed::<true>(Observed { db, effect })
    }

    /// The list of observers: those that see an effect before it is applied, then those that see it afterwards.
    #[inline(always)]
    fn apply_observed<const IS_PRIVATE: bool>(&mut self, observed: Observed<'_>) -> Applied {
        // Before: these need the old state. FLUSHALL changes the watched keys that exist, "new" is the event of a key
        // that was absent, forks and read-only transactions keep the old value. Events come before invalidations: both are sent in the order in
        // which they are noted.
        self.before::<Watchers, IS_PRIVATE>(observed);
        self.before::<KeyspaceEvents, IS_PRIVATE>(observed);
        self.before::<Caches, IS_PRIVATE>(observed);
        self.before::<CellForks, IS_PRIVATE>(observed);
        self.before::<ReadInstants, IS_PRIVATE>(observed);
        self.before::<HookUndo, IS_PRIVATE>(observed);

        let Observed { db, effect } = observed;
        let applied = match IS_PRIVATE {
            true => self.view.locked.apply(db, effect, &self.thresholds),
            false => apply::apply(self.engine, &mut self.view.locked, db, effect, &self.thresholds),
        };

        // After: these need the new state: whether a key has a value, a record a score, a session a client.
        self.after::<KeyWaiters, IS_PRIVATE>(observed, applied);
        self.after::<RecordWaiters, IS_PRIVATE>(observed, applied);
        self.after::<AttachedClients, IS_PRIVATE>(observed, applied);
        // IMPORTANT: an observer that applies effects itself comes after the journal, which has effects in the order in
        // which they were applied.
        self.after::<Journal, IS_PRIVATE>(observed, applied);
        self.after::<KeyspaceEvents, IS_PRIVATE>(observed, applied);
        self.after::<RegisterRestores, IS_PRIVATE>(observed, applied);
        applied
    }

    #[inline(always)]
    fn before<O: Observer, const IS_PRIVATE: bool>(&mut self, observed: Observed<'_>) {
        if (O::SEES_PRIVATE || !IS_PRIVATE) && O::is_interested(self) {
            O::before(self, observed);
        }
    }

    #[inline(always)]
    fn after<O: Observer, const IS_PRIVATE: bool>(&mut self, observed: Observed<'_>, applied: Applied) {
        if (O::SEES_PRIVATE || !IS_PRIVATE) && O::is_interested(self) {
            O::after(self, observed, applied);
        }
    }
}

/// True when an observer follows changes of several shards: it must see effects in the order in which they were
/// recorded. The others (watchers, the journal of a writer) do not, or are not there during a replay.
pub(crate) fn follows_order(engine: &Engine) -> bool {
    !engine.settings.notify_keyspace_events().published().is_empty()
        || engine.tracking.any()
        || engine.forks.any()
        || engine.instants.any()
        || engine.waiting.keys.any()
        || engine.waiting.records.any()
        || engine.sessions.any_attached()
        || engine.restores.any()
}

/// Clients that watch keys: WATCH and interactive transactions.
struct Watchers;

impl Observer for Watchers {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.watches.any()
    }

    #[inline]
    fn before(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>) {
        let View { locked, now_ms, .. } = &mut recording.view;
        locked.notify_watchers(db, effect, *now_ms);
    }
}

/// Keyspace events that an effect implies, besides those of its handler: keys and elements that expired, and new keys.
struct KeyspaceEvents;

impl Observer for KeyspaceEvents {
    const SEES_PRIVATE: bool = true;

    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.view.has_events()
    }

    #[inline]
    fn before(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>) {
        recording.view.notify_expired_or_new(db, effect);
    }

    #[inline]
    fn after(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>, applied: Applied) {
        recording.view.notify_expired_elements(db, effect, applied);
    }
}

/// Client-side caches: clients that have read a key that changes.
struct Caches;

impl Observer for Caches {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.tracking.any()
    }

    #[inline(never)]
    fn before(recording: &mut Recording<'_>, observed: Observed<'_>) {
        let Some(pending) = recording.view.notifications else { return };
        let touches = match observed.touches() {
            Touches::Keys(touches) => touches,
            Touches::Emptied(_) | Touches::Swapped(..) => {
                recording.view.locked.forget_tracked();
                recording.engine.tracking.note_all_forgotten();
                return pending.all_stale();
            }
            Touches::Definition(index) => {
                return index.into_iter().for_each(|name| invalidate(recording, name, Reason::Changed));
            }
        };
        for Touch { key, fate, .. } in touches {
            let reason = match fate {
                Fate::Read | Fate::Noted => continue,
                Fate::Gone(Cause::Expired) | Fate::Loses(Cause::Expired) => Reason::Expired,
                Fate::Gone(Cause::Deleted | Cause::Evicted)
                | Fate::Loses(Cause::Deleted | Cause::Evicted)
                | Fate::Gains { .. }
                | Fate::Amended
                | Fate::Deadline => Reason::Changed,
            };
            invalidate(recording, key, reason);
        }
    }
}

/// Adds an invalidation of a key for the clients that have read it or track a prefix.
fn invalidate(recording: &mut Recording<'_>, key: Key<'_>, reason: Reason) {
    let (Some(pending), tracking) = (recording.view.notifications, &recording.engine.tracking) else { return };
    let readers = recording.view.locked.tracked_mut(key).forget(key.name);
    if let Some(readers) = &readers {
        tracking.note_forgotten(readers.len());
    }
    if readers.is_some() || tracking.has_prefixes() {
        pending.stale(key.name, readers.unwrap_or_default(), reason);
    }
}

/// Forks of cells, which put aside the cells they still have to copy.
struct CellForks;

impl Observer for CellForks {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.forks.any()
    }

    #[inline]
    fn before(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>) {
        let Recording { view, engine, .. } = recording;
        engine.forks.note(&view.locked, |key| engine.keyspace.shard_of_key(key), db, effect);
    }
}

/// Instants of read-only transactions, for which cells are kept as they were.
struct ReadInstants;

impl Observer for ReadInstants {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.instants.any()
    }

    #[inline]
    fn before(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>) {
        let Recording { view, engine, .. } = recording;
        let (shard_of, bytes_max) = (|key: Key<'_>| engine.keyspace.shard_of_key(key), engine.settings.txn_max_bytes());
        engine.instants.note(&mut view.locked, shard_of, db, effect, bytes_max as usize);
    }
}

/// The hook of a session that runs, whose changes are undone if it fails.
struct HookUndo;

impl Observer for HookUndo {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.sessions.undo.is_noting()
    }

    #[inline]
    fn before(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>) {
        recording.engine.sessions.undo.note(&recording.view.locked, db, effect);
    }
}

/// Clients that wait for keys.
struct KeyWaiters;

impl Observer for KeyWaiters {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.waiting.keys.any()
    }

    #[inline]
    fn after(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>, _: Applied) {
        if let Some(pending) = recording.view.notifications {
            note_ready(pending, &recording.view.locked, db, effect);
        }
    }
}

/// Clients that wait for records of an index.
struct RecordWaiters;

impl Observer for RecordWaiters {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.waiting.records.any()
    }

    #[inline]
    fn after(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>, _: Applied) {
        if let Some(pending) = recording.view.notifications {
            note_records(pending, &recording.view.locked, db, effect);
        }
    }
}

/// Clients that are attached to sessions and receive their requests.
struct AttachedClients;

impl Observer for AttachedClients {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.sessions.any_attached()
    }

    #[inline(never)]
    fn after(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>, _: Applied) {
        let Effect::Change { key, change: Change::Session(session::Change::Push { id, payload, .. }) } = *effect else {
            return;
        };
        let within = recording.view.locked.db(db, key);
        if let Some(session) = within.entry(key).and_then(|entry| within.typed::<&Session>(entry, 0))
            && session.attached() != 0
            && let Some(pending) = recording.view.notifications
        {
            pending.request(session.attached(), key.name, id, payload);
        }
    }
}

/// The batch for the journal.
struct Journal;

impl Observer for Journal {
    const SEES_PRIVATE: bool = true;

    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.batch.is_some()
    }

    #[inline]
    fn after(recording: &mut Recording<'_>, observed @ Observed { db, effect }: Observed<'_>, _: Applied) {
        let Recording { view, engine, batch: Some(batch), is_private, .. } = recording else { return };
        match engine.walks.any() && !*is_private {
            false => codec::encode(db, effect, batch),
            true => encode_while_walked(engine, &view.locked, observed, batch),
        }
    }
}

/// Appends an effect that was just applied while a walk over all keys is in progress. An effect that refers from one
/// key to another is replaced by the resulting state of each: the snapshot may have one key from before the effect and
/// the other from after. If a value is too large for a batch, the walk starts over instead.
#[cold]
fn encode_while_walked(engine: &Engine, locked: &Locked<'_>, observed: Observed<'_>, batch: &mut Vec<u8>) {
    let Observed { db, effect } = observed;
    let touches = match observed.touches() {
        // One name in two databases has one position in a snapshot.
        Touches::Keys(touches) if touches.iter().any(|touch| touch.key.name != touches[0].key.name) => touches,
        Touches::Keys(_) | Touches::Emptied(_) | Touches::Swapped(..) | Touches::Definition(_) => {
            return codec::encode(db, effect, batch);
        }
    };
    let changed = || touches.iter().filter(|touch| touch.fate != Fate::Read);
    if changed().any(|touch| locked.is_large(touch.db, touch.key)) {
        engine.walks.spoil();
        return codec::encode(db, effect, batch);
    }
    for Touch { db, key, .. } in changed() {
        match locked.db(*db, *key).entry(*key) {
            Some(_) => locked.encode_key(*db, *key, batch),
            None => codec::encode(*db, &Effect::Delete { key: *key, cause: Cause::Deleted }, batch),
        }
    }
}

/// Restores of registers in slices. When a database is emptied, the remaining steps of its restore are dropped too.
struct RegisterRestores;

impl Observer for RegisterRestores {
    #[inline]
    fn is_interested(recording: &Recording<'_>) -> bool {
        recording.engine.restores.any()
    }

    #[cold]
    fn after(recording: &mut Recording<'_>, Observed { db, effect }: Observed<'_>, _: Applied) {
        for ended in recording.engine.restores.ended_by(db, effect) {
            recording.apply(0, &Effect::Undefine { what: Definable::Restore, name: &[ended] });
        }
    }
}
