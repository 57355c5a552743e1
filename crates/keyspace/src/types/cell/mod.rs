//! Cells: a value with a version counter, the time of each version, and past versions. One type for readers, whatever
//! form a cell has (`packed`, `history`). Knows versions; refuses to know commands, and how many versions to retain.
//!
//! The versions of a cell are consecutive, and their times ascend.

mod change;
mod history;
mod image;
mod packed;

pub use change::Change;
pub use history::{History, NewestFirst};

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use crate::storage::Kind;

/// A cell without past versions, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(7);

/// The row of cells.
pub static TYPE: ValueType = ValueType {
    tag: 5,
    name: "cell",
    redis_number: 105,
    event_letter: 'd',
    is_own: true,
    is_bound: false,
    name_error,
    encoding: |_| "cell",
    elements: |entry, _| cell(entry).len(),
    heap_bytes: |object, samples| history_of(object).map_or(0, |history| history.heap_bytes(samples)),
    is_freed_later: |object| {
        history_of(object).is_some_and(|history| {
            history.len() > FREED_AT_ONCE_MAX || history.heap_bytes(FREED_SAMPLES) > FREED_AT_ONCE_BYTES_MAX
        })
    },
    write_image: image::write,
    check_image: image::check,
    read_image: image::read,
    release: None,
    element_expiry: None,
    to_redis: image::to_redis,
    digest: image::digest,
};

/// A larger cell is freed in the background: returning its memory to the operating system takes long.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;
/// The number of chunks sampled to estimate the size.
const FREED_SAMPLES: usize = 16;

/// The highest version and the latest time that a reply can show as an integer.
pub const VERSION_MAX: u64 = i64::MAX as u64;
pub const TIME_MAX_US: u64 = i64::MAX as u64;

/// The longest name of a cell within its branch, and of a branch.
const NAME_BYTES_MAX: usize = 1024;
/// Names with this prefix are reserved.
const NAME_RESERVED: &[u8] = b"_strata/";

/// Why a cell cannot have this key, if so. What is before the first `/` is its branch, if something follows; the rules
/// hold for its name within the branch.
pub fn name_error(key: &[u8]) -> Option<&'static str> {
    let branch_len = key.iter().position(|byte| *byte == b'/').filter(|len| len + 1 < key.len());
    let name = branch_len.map_or(key, |len| &key[len + 1..]);
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        Some("the name of a cell must have 1 to 1024 bytes")
    } else if branch_len.is_some_and(|len| len > NAME_BYTES_MAX) {
        Some("the branch of a cell, before the first '/', must have at most 1024 bytes")
    } else if key.starts_with(NAME_RESERVED) || name.starts_with(NAME_RESERVED) {
        Some("the name of a cell must not begin with '_strata/', which is reserved: choose another name")
    } else if key.contains(&0) {
        Some("the name of a cell must not contain a NUL byte: choose another name")
    } else {
        None
    }
}

/// One version of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version<'a> {
    /// From 1 on.
    pub number: u64,
    /// When it was written, in unix microseconds.
    pub time_us: u64,
    pub value: &'a [u8],
}

/// The cell in an entry.
#[inline]
pub fn cell(entry: &Entry) -> CellRef<'_> {
    match entry.object() {
        Some(Object::Cell(history)) => CellRef::History(history),
        Some(_) => panic!("the entry holds no cell"),
        None => CellRef::Packed(packed::read(entry.body())),
    }
}

fn history_of(object: &Object) -> Option<&History> {
    match object {
        Object::Cell(history) => Some(history),
        _ => None,
    }
}

/// A readable cell.
#[derive(Clone, Copy)]
pub enum CellRef<'a> {
    Packed(Version<'a>),
    History(&'a History),
}

impl<'a> CellRef<'a> {
    /// The newest version.
    #[inline]
    pub fn current(&self) -> Version<'a> {
        match self {
            CellRef::Packed(version) => *version,
            CellRef::History(history) => history.newest(),
        }
    }

    /// Number and time of the newest version, without reading its value.
    #[inline]
    pub fn stamp(&self) -> (u64, u64) {
        match self {
            CellRef::Packed(version) => (version.number, version.time_us),
            CellRef::History(history) => history.newest_stamp(),
        }
    }

    /// Prefetches what a write will touch.
    #[inline]
    pub fn prefetch_write(&self) {
        if let CellRef::History(history) = self {
            history.prefetch_end();
        }
    }

    /// The number of retained versions, including the newest.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            CellRef::Packed(_) => 1,
            CellRef::History(history) => history.len(),
        }
    }

    /// Always false: a cell has at least one version.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The version with this number, if it is retained.
    pub fn version(&self, number: u64) -> Option<Version<'a>> {
        match self {
            CellRef::Packed(version) => Some(*version).filter(|version| version.number == number),
            CellRef::History(history) => history.version(number),
        }
    }

    /// The newest version that is not later than this time, if it is retained.
    pub fn as_of(&self, time_us: u64) -> Option<Version<'a>> {
        match self {
            CellRef::Packed(version) => Some(*version).filter(|version| version.time_us <= time_us),
            CellRef::History(history) => history.as_of(time_us),
        }
    }

    /// The versions below that number, the newest first.
    pub fn newest_first(&self, below: u64) -> Versions<'a, NewestFirst<'a>> {
        match self {
            CellRef::Packed(version) => Versions::One(Some(*version).filter(|version| version.number < below)),
            CellRef::History(history) => Versions::Several(history.newest_first(below)),
        }
    }

    /// All versions, the oldest first.
    pub fn oldest_first(&self) -> impl Iterator<Item = Version<'a>> {
        match self {
            CellRef::Packed(version) => Versions::One(Some(*version)),
            CellRef::History(history) => Versions::Several(history.oldest_first()),
        }
    }
}

/// Versions of a cell: its only one, or some of several.
pub enum Versions<'a, I> {
    One(Option<Version<'a>>),
    Several(I),
}

impl<'a, I: Iterator<Item = Version<'a>>> Iterator for Versions<'a, I> {
    type Item = Version<'a>;

    fn next(&mut self) -> Option<Version<'a>> {
        match self {
            Versions::One(version) => version.take(),
            Versions::Several(versions) => versions.next(),
        }
    }
}

#[cfg(test)]
mod tests;
