//! Registers: a value with its version, and buffered operations that came before their turn. One type for readers,
//! whatever form a register has (`packed`, `whole`). Knows versions and operations; refuses to know commands, and how
//! much may be buffered.
//!
//! All buffered versions are open: above the newest one, and not below the seal. Of versions that are taken one by one,
//! the next one is buffered only if it cannot be applied, such as an addition to a value that is not a number.

mod accumulator;
mod change;
pub mod checkpoint;
mod image;
mod packed;
pub mod plan;
mod version;
mod whole;

pub use accumulator::{Accumulator, Unfit};
pub use change::Change;
pub use version::{Order, Version};
pub use whole::Register;

use super::{Entry, FREED_AT_ONCE_MAX, Object, ValueType};
use crate::storage::Kind;

/// A register without a buffer, packed: see [`packed`].
pub const PACKED: Kind = Kind::inline(8);

/// The row of registers.
pub static TYPE: ValueType = ValueType {
    tag: 7,
    name: "register",
    redis_number: 107,
    event_letter: 'd',
    is_own: true,
    is_bound: false,
    name_error: |_| None,
    encoding: |_| "register",
    elements: |entry, _| register(entry).elements(),
    heap_bytes: |object, samples| register_of(object).map_or(0, |register| register.heap_bytes(samples)),
    is_freed_later: |object| {
        register_of(object).is_some_and(|register| {
            register.buffered_len() > FREED_AT_ONCE_MAX || register.bytes() > FREED_AT_ONCE_BYTES_MAX
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

/// A larger register is freed in the background: returning its memory to the operating system takes long.
const FREED_AT_ONCE_BYTES_MAX: usize = 1024 * 1024;

/// The operation of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Sets the value.
    Put(&'a [u8]),
    /// Adds to the value, a number.
    Add(i64),
}

/// The newest version that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current<'a> {
    pub version: Version,
    /// The addend, if this version was an addition.
    pub added: Option<i64>,
    pub value: &'a [u8],
}

impl Current<'_> {
    /// True when this operation produced the current version.
    #[inline]
    pub fn is_by(&self, operation: Operation<'_>) -> bool {
        match (operation, self.added) {
            (Operation::Put(value), None) => self.value == value,
            (Operation::Add(number), Some(added)) => number == added,
            (Operation::Put(_), Some(_)) | (Operation::Add(_), None) => false,
        }
    }
}

/// The register in an entry.
#[inline]
pub fn register(entry: &Entry) -> RegisterRef<'_> {
    match entry.object() {
        Some(Object::Register(register)) => RegisterRef::Whole(register),
        Some(_) => panic!("the entry holds no register"),
        None => RegisterRef::Packed(packed::read(entry.body()), packed::order(entry.body())),
    }
}

fn register_of(object: &Object) -> Option<&Register> {
    match object {
        Object::Register(register) => Some(register),
        _ => None,
    }
}

/// The lowest version that a seal can be above, in a register without a version: those taken one by one begin at 1.
fn least_version(order: Option<Order>) -> Version {
    match order {
        None | Some(Order::OneByOne) => Version::of_round(1),
        Some(Order::UntilSealed) => Version::of_round(0),
    }
}

/// A readable register.
#[derive(Clone, Copy)]
pub enum RegisterRef<'a> {
    /// Without a seal and a buffer.
    Packed(Current<'a>, Option<Order>),
    Whole(&'a Register),
}

impl<'a> RegisterRef<'a> {
    /// The newest version that was applied, if any.
    #[inline]
    pub fn current(&self) -> Option<Current<'a>> {
        match self {
            RegisterRef::Packed(current, _) => Some(*current),
            RegisterRef::Whole(register) => register.current(),
        }
    }

    /// How it takes ordered versions; `None` before the first of them.
    #[inline]
    pub fn order(&self) -> Option<Order> {
        match self {
            RegisterRef::Packed(_, order) => *order,
            RegisterRef::Whole(register) => register.order(),
        }
    }

    /// The lowest version that is not closed; `None` when there is none any more.
    #[inline]
    pub fn open_from(&self) -> Option<Version> {
        let least = self.sealed().unwrap_or_else(|| least_version(self.order()));
        match self.current() {
            None => Some(least),
            Some(current) => current.version.successor().map(|next| next.max(least)),
        }
    }

    /// The next of the versions that are taken one by one; `None` when there is none any more.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        self.open_from().filter(|next| next.epoch == 0).map(|next| next.round)
    }

    /// The first version that is not sealed, if the seal is ahead of the newest version.
    #[inline]
    pub fn sealed(&self) -> Option<Version> {
        match self {
            RegisterRef::Packed(..) => None,
            RegisterRef::Whole(register) => register.sealed(),
        }
    }

    /// True for a version that comes too late.
    #[inline]
    pub fn is_closed(&self, version: Version) -> bool {
        self.current().is_some_and(|current| version <= current.version)
            || self.sealed().is_some_and(|sealed| version < sealed)
    }

    /// The buffered operation of a version.
    #[inline]
    pub fn buffered(&self, version: Version) -> Option<Operation<'a>> {
        match self {
            RegisterRef::Whole(register) => register.buffered(version),
            RegisterRef::Packed(..) => None,
        }
    }

    /// How many operations are buffered.
    #[inline]
    pub fn buffered_len(&self) -> usize {
        match self {
            RegisterRef::Packed(..) => 0,
            RegisterRef::Whole(register) => register.buffered_len(),
        }
    }

    /// The buffered operations from that version on, in order.
    pub fn buffered_from(&self, version: Version) -> impl Iterator<Item = (Version, Operation<'a>)> + use<'a> {
        let register = match *self {
            RegisterRef::Packed(..) => None,
            RegisterRef::Whole(register) => Some(register),
        };
        register.into_iter().flat_map(move |register| register.buffered_from(version))
    }

    /// A register that is only sealed counts as one element.
    fn elements(&self) -> usize {
        (usize::from(self.current().is_some()) + self.buffered_len()).max(1)
    }
}

#[cfg(test)]
mod tests;
