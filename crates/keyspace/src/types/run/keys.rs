//! Which of a run's events has a key, and which of its steps a name: numbers by the hash of a text. Knows hashes and
//! numbers; refuses to know the texts, which the caller compares.
//!
//! Of few texts, the hashes lie in a row and are compared one after the other: four bytes each, and one look for all.
//! Of many, they are in a table that grows without a pause, eight bytes a slot: finding one costs the same however many
//! there are.

use crate::storage::NameHash;
use crate::storage::segmented::Segmented;
use crate::storage::size_class::size_class;

/// The most that lie in a row.
const FEW_MAX: usize = 64;

/// Numbers from 0 on, in the order in which they were added, by hash.
#[derive(Clone)]
pub(super) enum Keys {
    /// The hash of each number.
    Few(Vec<u32>),
    Many(Box<Segmented<Slot>>),
}

#[derive(Clone, Copy)]
pub(super) struct Slot {
    hash: u32,
    number: u32,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys::Few(Vec::new())
    }
}

impl Keys {
    fn len(&self) -> usize {
        match self {
            Keys::Few(hashes) => hashes.len(),
            Keys::Many(slots) => slots.len(),
        }
    }

    /// The number for which `test` holds, among those of that hash.
    #[inline]
    pub(super) fn find(&self, hash: u32, test: impl Fn(u32) -> bool) -> Option<u32> {
        match self {
            Keys::Few(hashes) => {
                let mut same = (0..).zip(hashes).filter(|(_, other)| **other == hash);
                same.find(|(number, _)| test(*number)).map(|(number, _)| number)
            }
            Keys::Many(slots) => {
                slots.find(spread(hash), |slot| slot.hash == hash && test(slot.number)).map(|slot| slot.number)
            }
        }
    }

    /// Adds the next number.
    pub(super) fn push(&mut self, hash: u32) {
        if let Keys::Few(hashes) = self {
            if hashes.len() < FEW_MAX {
                return hashes.push(hash);
            }
            let mut slots = Segmented::default();
            for (number, hash) in (0..).zip(&*hashes) {
                insert(&mut slots, Slot { hash: *hash, number });
            }
            *self = Keys::Many(Box::new(slots));
        }
        let number = self.len() as u32;
        if let Keys::Many(slots) = self {
            insert(slots, Slot { hash, number });
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        match self {
            Keys::Few(hashes) => size_class(hashes.capacity() * size_of::<u32>()),
            Keys::Many(slots) => size_class(size_of::<Segmented<Slot>>()) + slots.heap_bytes(),
        }
    }
}

fn insert(slots: &mut Segmented<Slot>, slot: Slot) {
    slots.insert(spread(slot.hash), slot, |slot| spread(slot.hash));
}

/// A hash of 64 bits from the 32 that are kept. The table splits by the high bits of the 32, and picks the slot and its tag
/// by low ones.
#[inline]
fn spread(hash: u32) -> NameHash {
    let (hash, tag) = (u64::from(hash), u64::from(hash >> 7));
    NameHash::from_raw(tag << 57 | hash << 16 | hash & 0x7f)
}
