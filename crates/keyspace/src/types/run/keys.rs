//! Finds events by key and steps by name: numbers by the hash of a text. Knows hashes and numbers; refuses to know the
//! texts, which the caller compares.
//!
//! The hashes of few texts are in a row and are compared one by one: four bytes each, in one pass. Those of many are in
//! a table that grows without a pause, with the position of each: finding one costs the same however many there are.

use crate::storage::NameHash;
use crate::storage::prefetch::prefetch;
use crate::storage::segmented::Segmented;
use crate::storage::size_class::size_class;

/// The most hashes in a row.
const FEW_MAX: usize = 64;
/// The step by which a row grows.
const FEW_STEP: usize = 8;

/// Numbers from 0 on, in insertion order, by hash; with each, the position of its text.
#[derive(Clone)]
pub(super) enum Keys<P> {
    /// The hash of each number.
    Few(Vec<u32>),
    Many(Box<Segmented<Slot<P>>>),
}

#[derive(Clone, Copy)]
pub(super) struct Slot<P> {
    hash: u32,
    number: u32,
    place: P,
}

impl<P> Default for Keys<P> {
    fn default() -> Keys<P> {
        Keys::Few(Vec::new())
    }
}

impl<P: Copy> Keys<P> {
    fn len(&self) -> usize {
        match self {
            Keys::Few(hashes) => hashes.len(),
            Keys::Many(slots) => slots.len(),
        }
    }

    /// Prefetches what a search reads first, if that is known.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Keys::Few(hashes) = self {
            prefetch(hashes);
        }
    }

    /// The number for which `test` holds, among those with this hash. The position is passed if it is known.
    #[inline]
    pub(super) fn find(&self, hash: u32, test: impl Fn(u32, Option<P>) -> bool) -> Option<(u32, Option<P>)> {
        match self {
            Keys::Few(hashes) => {
                let mut same = (0..).zip(hashes).filter(|(_, other)| **other == hash);
                same.find(|(number, _)| test(*number, None)).map(|(number, _)| (number, None))
            }
            Keys::Many(slots) => {
                let found = slots.find(spread(hash), |slot| slot.hash == hash && test(slot.number, Some(slot.place)));
                found.map(|slot| (slot.number, Some(slot.place)))
            }
        }
    }

    /// Adds the next number, whose text is at `place`; `before` are the positions of the previous ones.
    pub(super) fn push(&mut self, hash: u32, place: P, before: impl Iterator<Item = P>) {
        if let Keys::Few(hashes) = self {
            if hashes.len() < FEW_MAX {
                if hashes.len() == hashes.capacity() {
                    hashes.reserve_exact(FEW_STEP);
                }
                return hashes.push(hash);
            }
            let mut slots = Segmented::default();
            for (number, (hash, place)) in (0..).zip(hashes.iter().zip(before)) {
                insert(&mut slots, Slot { hash: *hash, number, place });
            }
            *self = Keys::Many(Box::new(slots));
        }
        let number = self.len() as u32;
        if let Keys::Many(slots) = self {
            insert(slots, Slot { hash, number, place });
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Keys::Few(hashes) => size_class(hashes.capacity() * size_of::<u32>()),
            Keys::Many(slots) => size_class(size_of::<Segmented<Slot<P>>>()) + slots.heap_bytes(),
        }
    }
}

fn insert<P>(slots: &mut Segmented<Slot<P>>, slot: Slot<P>) {
    slots.insert(spread(slot.hash), slot, |slot| spread(slot.hash));
}

/// Spreads the 32 stored bits over a hash of 64 bits. The table splits by the high bits of the 32, and uses low ones
/// for slot and tag.
#[inline]
fn spread(hash: u32) -> NameHash {
    let (hash, tag) = (u64::from(hash), u64::from(hash >> 7));
    NameHash::from_raw(tag << 57 | hash << 16 | hash & 0x7f)
}
