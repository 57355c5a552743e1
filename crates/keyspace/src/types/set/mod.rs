//! Sets in their three forms behind one type for readers: integers, small, large. Knows members; refuses to know
//! commands, and how each form is laid out (`intset`, `packed`, `table`).

mod change;
mod image;
mod intset;
mod packed;
mod table;

pub use change::Change;
pub use image::{image_of, image_of_small, put_image};
pub use intset::Intset;
pub use packed::Packed;
pub use table::MemberTable;

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use crate::storage::scalar::canonical_i64;
use crate::storage::{Kind, Scalar};
use intset::Numbers;
use packed::PackedMembers;

/// A small set, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(5);
/// A set of whole numbers: see [`intset`].
pub const INTSET: Kind = Kind::inline(6);

/// The row of sets.
pub static TYPE: ValueType = ValueType {
    tag: 4,
    name: "set",
    redis_number: 2,
    event_letter: 's',
    is_own: false,
    is_bound: false,
    name_error: |_| None,
    encoding: |entry| form(entry).encoding(),
    elements: |entry, _| set(entry).len(),
    heap_bytes: |object, samples| table_of(object).map_or(0, |table| table.heap_bytes(samples)),
    is_freed_later: |object| table_of(object).is_some_and(|table| table.len() > FREED_AT_ONCE_MAX),
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: image::to_redis,
    digest: image::digest,
};

/// When a set of integers, or a small one, becomes a hash table.
#[derive(Clone, Copy, Debug)]
pub struct Thresholds {
    pub intset_entries_max: usize,
    pub small_entries_max: usize,
    pub small_value_bytes_max: usize,
}

/// The encoding that Redis would use for a set, for OBJECT ENCODING. How a small set lies in memory is another question:
/// see [`MemberTable::form`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Intset,
    /// Few and short members.
    Small,
    Large,
}

impl Form {
    /// Its name in OBJECT ENCODING.
    pub fn encoding(self) -> &'static str {
        match self {
            Form::Intset => "intset",
            Form::Small => "listpack",
            Form::Large => "hashtable",
        }
    }
}

/// The form of the set in an entry.
fn form(entry: &Entry) -> Form {
    match (entry.kind(), entry.object()) {
        (INTSET, _) => Form::Intset,
        (_, Some(Object::Set(table))) => table.form(),
        _ => Form::Small,
    }
}

/// The most members of an intset, whatever the setting says: each insertion or removal moves those after it, which are
/// up to eight megabytes.
const INTSET_MEMBERS_MAX: usize = 1 << 20;

impl Thresholds {
    /// True when a set of that many integers may be an intset.
    pub fn allow_intset(&self, members: usize) -> bool {
        members <= self.intset_entries_max.min(INTSET_MEMBERS_MAX)
    }

    /// True when a set of that many members, the longest of which has so many bytes, may be small.
    pub fn allow_small(&self, members: usize, longest: usize) -> bool {
        members <= self.small_entries_max && longest <= self.small_value_bytes_max
    }

    /// The form of a set to which these members, all distinct, were added one by one. Too many integers make a hash
    /// table, even if a small set may have as many.
    pub fn grown_form(&self, members: &[Scalar<'_>]) -> Form {
        let integers = members.iter().take_while(|member| whole(**member).is_some()).count();
        match integers == members.len() {
            _ if !self.allow_intset(integers) => Form::Large,
            true => Form::Intset,
            false => self.mixed_form(members),
        }
    }

    /// The form of a set that was made of these members, all distinct, at once.
    pub fn form_at_once(&self, members: &[Scalar<'_>]) -> Form {
        match self.allow_intset(members.len()) && members.iter().all(|member| whole(*member).is_some()) {
            true => Form::Intset,
            false => self.mixed_form(members),
        }
    }

    fn mixed_form(&self, members: &[Scalar<'_>]) -> Form {
        match self.allow_small(members.len(), longest(members.iter().map(|member| member.len()))) {
            true => Form::Small,
            false => Form::Large,
        }
    }
}

/// The greatest of these lengths.
fn longest(lengths: impl Iterator<Item = usize>) -> usize {
    lengths.max().unwrap_or(0)
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { intset_entries_max: 512, small_entries_max: 128, small_value_bytes_max: 64 }
    }
}

fn table_of(object: &Object) -> Option<&MemberTable> {
    match object {
        Object::Set(table) => Some(table),
        _ => None,
    }
}

/// The integer that a member spells.
#[inline]
pub fn whole(member: Scalar<'_>) -> Option<i64> {
    match member {
        Scalar::Number(number) => Some(number),
        Scalar::Bytes(bytes) => canonical_i64(bytes),
    }
}

/// The set in an entry.
#[inline]
pub fn set(entry: &Entry) -> SetRef<'_> {
    match entry.kind() {
        INTSET => SetRef::Intset(Intset::new(entry.body())),
        PACKED => SetRef::Packed(Packed::new(entry.body())),
        _ => match entry.object() {
            Some(Object::Set(table)) => SetRef::Table(table),
            _ => panic!("the entry holds no set"),
        },
    }
}

/// A readable set. A member is a scalar: integers may be returned as such, whatever form the set has.
#[derive(Clone, Copy)]
pub enum SetRef<'a> {
    Intset(Intset<'a>),
    Packed(Packed<'a>),
    Table(&'a MemberTable),
}

impl<'a> SetRef<'a> {
    /// How many members there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            SetRef::Intset(intset) => intset.len(),
            SetRef::Packed(packed) => packed.len(),
            SetRef::Table(table) => table.len(),
        }
    }

    /// True when there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True when this is a member.
    #[inline]
    pub fn has(&self, member: Scalar<'_>) -> bool {
        match self {
            SetRef::Intset(intset) => whole(member).is_some_and(|number| intset.has(number)),
            SetRef::Packed(packed) => packed.has(member),
            SetRef::Table(table) => member.with_bytes(|member| table.has(member)),
        }
    }

    /// All members: integers ascending, small sets in insertion order, large ones in no order.
    pub fn iter(&self) -> Members<'a> {
        match self {
            SetRef::Intset(intset) => Members::Intset(intset.iter()),
            SetRef::Packed(packed) => Members::Packed(packed.iter()),
            SetRef::Table(table) => Members::Table(Box::new(table.iter())),
        }
    }

    /// Visits members from `cursor` on, as [`Table::scan`](crate::storage::table::Table::scan) does. A set that is not
    /// [large](Form::Large) is visited whole.
    pub fn scan(&self, cursor: u32, count: usize, mut visit: impl FnMut(Scalar<'_>)) -> Option<u32> {
        match self {
            SetRef::Table(table) if table.form() == Form::Large => {
                table.scan(cursor, count, |member| visit(Scalar::Bytes(member)))
            }
            _ => {
                self.iter().for_each(visit);
                None
            }
        }
    }

    /// A random member. Fair for sets that are not a table, nearly so for tables.
    pub fn random(&self, random: &mut fastrand::Rng) -> Scalar<'a> {
        const NOT_EMPTY: &str = "a set has a member";
        match self {
            SetRef::Intset(intset) => Scalar::Number(intset.get(random.usize(..intset.len()))),
            SetRef::Packed(packed) => packed.iter().nth(random.usize(..packed.len())).expect(NOT_EMPTY),
            SetRef::Table(table) => Scalar::Bytes(table.random(random).expect(NOT_EMPTY)),
        }
    }
}

/// Members of a set.
pub enum Members<'a> {
    Intset(Numbers<'a>),
    Packed(PackedMembers<'a>),
    Table(Box<dyn Iterator<Item = &'a [u8]> + 'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = Scalar<'a>;

    #[inline]
    fn next(&mut self) -> Option<Scalar<'a>> {
        match self {
            Members::Intset(numbers) => numbers.next().map(Scalar::Number),
            Members::Packed(members) => members.next(),
            Members::Table(members) => members.next().map(Scalar::Bytes),
        }
    }
}

#[cfg(test)]
mod tests;
