//! A small sorted set as one run of bytes. Knows the layout; refuses to know commands.
//!
//! ```text
//! u16 count
//!     score name score name …      in their order
//! ```
//! A score and a name are items (see `storage::item`): an integral score is a number, any other the eight little-endian
//! bytes of the double. As in Redis's small sets, there is no negative zero.

use super::{Member, Name, PACKED, Scored, compare};
use crate::storage::Scalar;
use crate::storage::item::{Item, item_len, read_item, write_item};
use crate::types::Entry;
use std::ops::Range;

const HEADER: usize = 2;

/// A readable packed sorted set.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    count: usize,
    items: &'a [u8],
}

impl<'a> Packed<'a> {
    #[inline]
    pub fn new(body: &'a [u8]) -> Packed<'a> {
        let (count, items) = body.split_first_chunk::<HEADER>().expect("a packed set begins with its count");
        Packed { count: usize::from(u16::from_le_bytes(*count)), items }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// A packed set is never empty; a key without members is deleted.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rank of a member, and its score.
    pub(super) fn find(&self, name: &[u8]) -> Option<(usize, f64)> {
        self.locate(name).map(|found| (found.rank, found.score))
    }

    /// The number of members from rank `from` on before the first for which `test` does not hold.
    pub(super) fn count_while(&self, from: usize, test: impl Fn(f64, Scalar<'a>) -> bool) -> usize {
        self.places().skip(from).take_while(|place| test(place.score, place.name)).count()
    }

    /// The members of these ranks.
    pub(super) fn members(&self, ranks: Range<usize>) -> PackedMembers<'a> {
        let mut rest = self.items;
        for _ in 0..ranks.start * 2 {
            rest = &rest[item_len(rest)..];
        }
        PackedMembers { rest, left: ranks.len() }
    }

    fn locate(&self, name: &[u8]) -> Option<Place<'a>> {
        // A number has one decimal form, so two names are equal when both are stored as the same number.
        let name = Scalar::of(name);
        self.places().find(|place| place.name == name)
    }

    fn places(&self) -> Places<'a> {
        Places { items: self.items, at: 0, rank: 0 }
    }

    /// The offset at which a member would be inserted.
    fn place_for(&self, member: Scored<'_>) -> usize {
        let behind = |place: &Place<'_>| {
            place.score > member.0
                || place.score == member.0 && place.name.with_bytes(|name| compare((place.score, name), member).is_gt())
        };
        self.places().find(behind).map_or(self.items.len(), |place| place.at)
    }
}

/// A member and its location.
struct Place<'a> {
    rank: usize,
    /// Where its score begins in the items, and where its name ends.
    at: usize,
    end: usize,
    score: f64,
    name: Scalar<'a>,
}

struct Places<'a> {
    items: &'a [u8],
    at: usize,
    rank: usize,
}

impl<'a> Iterator for Places<'a> {
    type Item = Place<'a>;

    #[inline]
    fn next(&mut self) -> Option<Place<'a>> {
        if self.at == self.items.len() {
            return None;
        }
        let (at, rank) = (self.at, self.rank);
        let (score, score_len) = read_item(&self.items[at..]);
        let (name, name_len) = read_item(&self.items[at + score_len..]);
        self.at += score_len + name_len;
        self.rank += 1;
        Some(Place { rank, at, end: self.at, score: as_score(score), name })
    }
}

/// Members of a packed set in their order.
pub struct PackedMembers<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for PackedMembers<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Member<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (score, score_len) = read_item(self.rest);
        let (name, name_len) = read_item(&self.rest[score_len..]);
        self.rest = &self.rest[score_len + name_len..];
        Some(Member { name: Name::kept(name), score: as_score(score) })
    }
}

/// Creates an entry with `members`, which are in order and have distinct names.
pub(crate) fn create(key: &[u8], members: &[Scored<'_>], deadline: Option<u64>) -> Entry {
    let mut body = Vec::with_capacity(HEADER + members.iter().map(|(_, name)| name.len() + 10).sum::<usize>());
    let count = u16::try_from(members.len()).expect("small sets are small");
    body.extend_from_slice(&count.to_le_bytes());
    for (score, name) in members {
        write_item(&mut body, score_item(*score, &score.to_le_bytes()));
        write_item(&mut body, Scalar::of(name));
    }
    Entry::new(key, PACKED, &body, deadline)
}

/// Sets the score of a member, and returns whether it is new.
pub(crate) fn set(entry: &mut Entry, member: Scored<'_>) -> bool {
    let packed = Packed::new(entry.body());
    let known = packed.locate(member.1);
    if known.as_ref().is_some_and(|known| known.score == member.0) {
        return false;
    }
    let (count, mut place) = (packed.count, packed.place_for(member));
    let known = known.map(|known| known.at..known.end);
    if let Some(known) = &known {
        entry.splice_body(HEADER + known.start..HEADER + known.end, &[]);
        if place > known.start {
            place -= known.len();
        }
    }
    let double = member.0.to_le_bytes();
    let (score, name) = (Item::of(score_item(member.0, &double)), Item::of(Scalar::of(member.1)));
    let gap = entry.open_gap(HEADER + place..HEADER + place, score.len() + name.len());
    let (score_gap, name_gap) = gap.split_at_mut(score.len());
    score.write(score_gap);
    name.write(name_gap);
    if known.is_some() {
        return false;
    }
    set_count(entry, count + 1);
    true
}

/// Removes a member and returns whether it existed. The last one is not removed: the caller removes the key.
pub(crate) fn remove(entry: &mut Entry, name: &[u8]) -> bool {
    let packed = Packed::new(entry.body());
    let Some(Place { at, end, .. }) = packed.locate(name) else { return false };
    let count = packed.count;
    assert!(count > 1, "the owner removes a key with its last member");
    entry.splice_body(HEADER + at..HEADER + end, &[]);
    set_count(entry, count - 1);
    true
}

fn set_count(entry: &mut Entry, count: usize) {
    let count = u16::try_from(count).expect("small sets are small");
    entry.body_mut()[..HEADER].copy_from_slice(&count.to_le_bytes());
}

/// A score in packed form: an integer, or the bytes of the double. Negative zero becomes zero.
fn score_item(score: f64, double: &[u8; 8]) -> Scalar<'_> {
    let number = score as i64;
    match number as f64 == score && number != i64::MAX {
        true => Scalar::Number(number),
        false => Scalar::Bytes(double),
    }
}

fn as_score(item: Scalar<'_>) -> f64 {
    match item {
        Scalar::Number(number) => number as f64,
        Scalar::Bytes(bytes) => f64::from_le_bytes(bytes.try_into().expect("a score has eight bytes")),
    }
}
