//! In which order pending entries of a group can be claimed: first those that consumers have released, in the order in
//! which they were, then the others, those that were delivered first before. Refuses to know consumers, and what is
//! pending.

use super::id::StreamId;
use std::collections::{BTreeMap, BTreeSet};

/// Entries that are pending for no consumer.
#[derive(Clone, Default)]
pub(super) struct Released {
    turns: BTreeMap<StreamId, u64>,
    by_turn: BTreeMap<u64, StreamId>,
    last_turn: u64,
}

impl Released {
    /// Adds an entry behind the others, or moves it there.
    pub(super) fn push(&mut self, id: StreamId) {
        self.remove(id);
        self.last_turn += 1;
        self.turns.insert(id, self.last_turn);
        self.by_turn.insert(self.last_turn, id);
    }

    pub(super) fn remove(&mut self, id: StreamId) {
        if let Some(turn) = self.turns.remove(&id) {
            self.by_turn.remove(&turn);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    /// In the order in which they were released.
    pub(super) fn ids(&self) -> impl Iterator<Item = StreamId> {
        self.by_turn.values().copied()
    }
}

/// The pending entries that have consumers, by the time of their last delivery. Only groups whose entries are claimed by
/// their age have one; it follows from what is pending, and is no part of an image.
#[derive(Clone, Default)]
pub(super) struct ByTime(BTreeSet<(i64, StreamId)>);

impl ByTime {
    pub(super) fn of(pending: impl Iterator<Item = (i64, StreamId)>) -> ByTime {
        ByTime(pending.collect())
    }

    pub(super) fn insert(&mut self, delivered_ms: i64, id: StreamId) {
        self.0.insert((delivered_ms, id));
    }

    pub(super) fn remove(&mut self, delivered_ms: i64, id: StreamId) {
        self.0.remove(&(delivered_ms, id));
    }

    /// Those that were delivered up to that time, the earliest first.
    pub(super) fn upto(&self, delivered_ms: i64) -> impl Iterator<Item = StreamId> {
        self.0.range(..=(delivered_ms, StreamId::MAX)).map(|(_, id)| *id)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
