//! Registers: a value with its version, and buffered operations that came before their turn. One type for readers,
//! whatever form a register has (`packed`, `whole`). Knows versions and operations; refuses to know commands, and how
//! much may be buffered.
//!
//! All buffered versions of epoch 0 are ahead: none is below the next one. The next one itself is buffered only if it
//! cannot be applied, such as an addition to a value that is not a number.

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
pub use version::Version;
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
        None => RegisterRef::Packed(packed::read(entry.body())),
    }
}

fn register_of(object: &Object) -> Option<&Register> {
    match object {
        Object::Register(register) => Some(register),
        _ => None,
    }
}

/// A readable register.
#[derive(Clone, Copy)]
pub enum RegisterRef<'a> {
    Packed(Current<'a>),
    Whole(&'a Register),
}

impl<'a> RegisterRef<'a> {
    /// The newest version that was applied, if any.
    #[inline]
    pub fn current(&self) -> Option<Current<'a>> {
        match self {
            RegisterRef::Packed(current) => Some(*current),
            RegisterRef::Whole(register) => register.current(),
        }
    }

    /// The next version of epoch 0; `None` when there is none any more.
    #[inline]
    pub fn next(&self) -> Option<u64> {
        let sealed = self.sealed().unwrap_or(1);
        match self.current() {
            None => Some(sealed),
            Some(current) => current.version.next().map(|next| next.max(sealed)),
        }
    }

    /// The first version of epoch 0 that is not sealed, if the seal is ahead of the newest version.
    #[inline]
    pub fn sealed(&self) -> Option<u64> {
        match self {
            RegisterRef::Packed(_) => None,
            RegisterRef::Whole(register) => register.sealed(),
        }
    }

    /// True for a version that comes too late.
    #[inline]
    pub fn is_closed(&self, version: Version) -> bool {
        self.current().is_some_and(|current| version <= current.version)
            || self.sealed().is_some_and(|sealed| version < Version::of_round(sealed))
    }

    /// The buffered operation of a version.
    #[inline]
    pub fn buffered(&self, version: Version) -> Option<Operation<'a>> {
        match self {
            RegisterRef::Whole(register) if version.epoch == 0 => register.buffered(version.round),
            RegisterRef::Packed(_) | RegisterRef::Whole(_) => None,
        }
    }

    /// How many operations are buffered.
    #[inline]
    pub fn buffered_len(&self) -> usize {
        match self {
            RegisterRef::Packed(_) => 0,
            RegisterRef::Whole(register) => register.buffered_len(),
        }
    }

    /// The buffered operations from that version on, in order.
    pub fn buffered_from(&self, version: u64) -> impl Iterator<Item = (u64, Operation<'a>)> + use<'a> {
        let register = match *self {
            RegisterRef::Packed(_) => None,
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
