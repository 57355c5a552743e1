//! Members of sorted sets, copied out of the keyspace to be combined and stored. Refuses to know what is done with
//! them.

use hashbrown::HashTable;
use keyspace::storage::table::NameHash;
use keyspace::types::sorted_set::{Member, compare};
use smallvec::SmallVec;

/// Members with their scores. All names are concatenated, so that a million members take a few allocations, and a few
/// members none.
#[derive(Default)]
pub(super) struct Gathered {
    names: SmallVec<[u8; 128]>,
    /// A score, and where the name begins and ends.
    members: SmallVec<[(f64, usize, usize); 4]>,
}

impl Gathered {
    pub(super) fn push(&mut self, score: f64, name: &[u8]) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.members.push((score, start, self.names.len()));
    }

    /// Members in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = (f64, &[u8])> {
        self.members.iter().map(|(score, start, end)| (*score, &self.names[*start..*end]))
    }

    /// Members in the order of a sorted set.
    pub(super) fn in_order(&self) -> Vec<(f64, &[u8])> {
        let mut members: Vec<_> = self.iter().collect();
        members.sort_unstable_by(|a, b| compare(*a, *b));
        members
    }

    fn name(&self, at: usize) -> &[u8] {
        let (_, start, end) = self.members[at];
        &self.names[start..end]
    }
}

impl<'a> FromIterator<Member<'a>> for Gathered {
    fn from_iter<I: IntoIterator<Item = Member<'a>>>(members: I) -> Gathered {
        let mut gathered = Gathered::default();
        for member in members {
            member.name.with_bytes(|name| gathered.push(member.score, name));
        }
        gathered
    }
}

/// Scored members, each once and found by its name.
#[derive(Default)]
pub(super) struct GatheredByName {
    pub(super) members: Gathered,
    places: HashTable<usize>,
}

impl GatheredByName {
    /// Mutable access to the score of a member. A new member is added with this score, and the result is `None`.
    pub(super) fn known_or_add(&mut self, score: f64, name: &[u8]) -> Option<&mut f64> {
        let (hash, members) = (NameHash::of(name).get(), &mut self.members);
        let at = match self.places.find(hash, |at| members.name(*at) == name) {
            Some(at) => *at,
            None => {
                let at = members.members.len();
                members.push(score, name);
                self.places.insert_unique(hash, at, |at| NameHash::of(members.name(*at)).get());
                return None;
            }
        };
        Some(&mut members.members[at].0)
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.places.find(NameHash::of(name).get(), |at| self.members.name(*at) == name).is_some()
    }
}
