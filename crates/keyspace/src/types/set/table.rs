//! A set that is too large to be packed: a hash table of members. Knows names; refuses to know commands.
//!
//! A slot of the table is 24 bytes and has the member inline, unless it is long: about 40 bytes per member, and one
//! cache miss to find it. A slot with only a pointer would save 10 bytes for members of 32 bytes and more, and cost a
//! second miss and an allocation for all others.

use super::Form;
use crate::storage::NameHash;
use crate::storage::Scalar;
use crate::storage::segmented::Segmented;
use crate::storage::size_class::size_class;

/// A set as a table.
#[derive(Default, Clone)]
pub struct MemberTable {
    members: Segmented<Slot>,
    /// Small by the settings, but too large for us to pack.
    is_small: bool,
}

/// The longest member that is inline in its slot.
const SHORT_MAX: usize = 22;

#[derive(Clone)]
enum Slot {
    Short(u8, [u8; SHORT_MAX]),
    Long(Box<[u8]>),
}

impl Slot {
    fn new(member: &[u8]) -> Slot {
        if member.len() > SHORT_MAX {
            return Slot::Long(member.into());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..member.len()].copy_from_slice(member);
        Slot::Short(member.len() as u8, bytes)
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Slot::Short(len, bytes) => &bytes[..usize::from(*len)],
            Slot::Long(bytes) => bytes,
        }
    }
}

fn hash_of(slot: &Slot) -> NameHash {
    NameHash::of(slot.bytes())
}

impl MemberTable {
    /// A table of these members, which is reported as that form.
    pub fn of<'m>(members: impl Iterator<Item = Scalar<'m>>, form: Form) -> MemberTable {
        let mut table = MemberTable { is_small: form == Form::Small, ..MemberTable::default() };
        members.for_each(|member| {
            member.with_bytes(|member| table.add(member));
        });
        table
    }

    /// The form that Redis would use, small or large. A set returns to a smaller form only by a rebuild.
    pub fn form(&self) -> Form {
        match self.is_small {
            true => Form::Small,
            false => Form::Large,
        }
    }

    /// From now on the set is reported as a large one.
    pub(super) fn set_large(&mut self) {
        self.is_small = false;
    }

    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    #[inline]
    pub fn has(&self, member: &[u8]) -> bool {
        self.members.find(NameHash::of(member), |slot| slot.bytes() == member).is_some()
    }

    /// Adds a member; returns true when it is new.
    pub fn add(&mut self, member: &[u8]) -> bool {
        let hash = NameHash::of(member);
        let is_new = self.members.find(hash, |slot| slot.bytes() == member).is_none();
        if is_new {
            self.members.insert(hash, Slot::new(member), hash_of);
        }
        is_new
    }

    /// Removes a member and returns whether it existed.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        self.members.remove(NameHash::of(member), |slot| slot.bytes() == member, hash_of).is_some()
    }

    /// All members, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.members.iter().map(Slot::bytes)
    }

    /// Visits members from `cursor` on: see [`Segmented::scan`].
    pub(super) fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(&[u8])) -> Option<u32> {
        self.members.scan(cursor, count, hash_of, |slot| visit(slot.bytes()))
    }

    /// A random member: see [`Segmented::random`] for how fair that is.
    pub(super) fn random(&self, random: &mut fastrand::Rng) -> Option<&[u8]> {
        self.members.random(random).map(Slot::bytes)
    }

    /// Heap bytes of the table and all it holds, judged by the first `samples` members.
    pub fn heap_bytes(&self, samples: usize) -> usize {
        let taken = samples.clamp(1, self.len().max(1));
        let long = |slot: &Slot| if let Slot::Long(bytes) = slot { size_class(bytes.len()) } else { 0 };
        let sampled: usize = self.members.iter().take(taken).map(long).sum();
        sampled * self.len() / taken + self.members.heap_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_three_words() {
        assert_eq!(size_of::<Slot>(), 24);
    }
}
