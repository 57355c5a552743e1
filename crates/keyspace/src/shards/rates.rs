//! How far claims have used rates up, in one database of one shard. Knows names and points in time; refuses to know whose
//! rates they are.
//!
//! A state that is over says nothing more and is forgotten, a few with each change and with each tick: a walk over all of
//! them would hold everybody up.

use crate::storage::Key;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// How many states are looked at with each change.
const LOOKED_AT: usize = 4;

/// A position in a walk, and a name.
type At = (u32, Box<[u8]>);

#[derive(Default)]
pub(super) struct RateStates {
    states: BTreeMap<At, u64>,
    /// Where the search for those that are over goes on.
    next: u32,
}

impl RateStates {
    /// Raises a state, and forgets some others that are over. False when it was as high before.
    pub(super) fn raise(&mut self, key: Key<'_>, until_ns: u64, now_ns: u64) -> bool {
        self.forget_over(now_ns, LOOKED_AT);
        let state = self.states.entry((key.hash.position(), key.name.into())).or_default();
        let is_raised = until_ns > *state;
        *state = until_ns.max(*state);
        is_raised
    }

    /// Looks at about `count` states, and forgets those that are over.
    pub(super) fn forget_over(&mut self, now_ns: u64, count: usize) {
        let from = (self.next, Box::default());
        let end = self
            .states
            .range(&from..)
            .nth(count)
            .map(|((position, _), _)| (position.saturating_add(1), Box::default()));
        self.next = end.as_ref().map_or(0, |(position, _)| *position);
        let looked_at = (Included(from), end.map_or(Unbounded, Excluded));
        self.states.extract_if(looked_at, |_, until_ns| *until_ns <= now_ns).for_each(drop);
    }

    /// The states with names at these positions.
    pub(super) fn between(&self, from: u32, to: u32) -> impl Iterator<Item = (&[u8], u64)> {
        let states = self.states.range((from, Box::default())..);
        states.take_while(move |((position, _), _)| *position <= to).map(|((_, name), until_ns)| (&**name, *until_ns))
    }

    /// Removes those for whose names `counts` holds.
    pub(super) fn take(&mut self, counts: impl Fn(&[u8]) -> bool) -> Vec<(Box<[u8]>, u64)> {
        let taken = self.states.extract_if(.., |(_, name), _| counts(name));
        taken.map(|((_, name), until_ns)| (name, until_ns)).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.states.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: they were looked at only when their number had doubled, and those of groups that were gone stayed.
    #[test]
    fn what_is_over_is_forgotten_also_when_nothing_is_taken() {
        let mut states = RateStates::default();
        let name = |number: u64| format!("rate:{number}");
        for number in 0..10_000 {
            assert!(states.raise(Key::new(name(number).as_bytes()), number + 1, 0));
        }
        assert_eq!(states.between(0, u32::MAX).count(), 10_000);
        for _ in 0..101 {
            states.forget_over(5_000, 100);
        }
        let left: Vec<u64> = states.between(0, u32::MAX).map(|(_, until_ns)| until_ns).collect();
        assert!(left.len() == 5_000 && left.iter().all(|until_ns| *until_ns > 5_000), "{}", left.len());
        // With each change a few.
        for number in 0..4_000 {
            states.raise(Key::new(b"another"), 20_000 + number, 15_000);
        }
        assert_eq!(states.between(0, u32::MAX).count(), 1);
        assert!(!states.raise(Key::new(b"another"), 20_000, 15_000), "it only rises");
    }
}
