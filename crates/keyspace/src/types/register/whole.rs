//! A register behind a pointer: one with a buffer, a seal ahead of its version, or a long value. Knows what is dropped
//! when a version overtakes it; refuses to know when an operation is applied.

use super::{Current, Operation, Order, RegisterRef, Version};
use crate::storage::size_class::size_class;
use std::collections::BTreeMap;

/// A register, of any form.
#[derive(Clone, Default)]
pub struct Register {
    current: Option<Held>,
    /// How it takes ordered versions. What is buffered is of this kind.
    order: Option<Order>,
    /// The versions below this one are closed; `None` when the current version implies as much.
    sealed: Option<Version>,
    buffer: BTreeMap<Version, Kept>,
    /// The size of the buffered operations.
    buffer_bytes: usize,
}

#[derive(Clone)]
struct Held {
    version: Version,
    added: Option<i64>,
    value: Vec<u8>,
}

/// A buffered operation.
#[derive(Clone)]
enum Kept {
    Put(Box<[u8]>),
    Add(i64),
}

impl Kept {
    fn operation(&self) -> Operation<'_> {
        match self {
            Kept::Put(value) => Operation::Put(value),
            Kept::Add(number) => Operation::Add(*number),
        }
    }

    /// The bytes behind its pointer.
    fn bytes(&self) -> usize {
        match self {
            Kept::Put(value) => value.len(),
            Kept::Add(_) => 0,
        }
    }
}

impl Register {
    /// Creates a register with only this version.
    pub(super) fn of(order: Option<Order>, current: Current<'_>) -> Register {
        let mut register = Register { order, ..Register::default() };
        register.set(current);
        register
    }

    #[inline]
    pub fn current(&self) -> Option<Current<'_>> {
        let Held { version, added, value } = self.current.as_ref()?;
        Some(Current { version: *version, added: *added, value })
    }

    #[inline]
    pub(super) fn order(&self) -> Option<Order> {
        self.order
    }

    /// Decides how it takes ordered versions. Returns false, with nothing changed, when that was decided otherwise.
    pub(super) fn set_order(&mut self, order: Order) -> bool {
        *self.order.get_or_insert(order) == order
    }

    pub(super) fn sealed(&self) -> Option<Version> {
        self.sealed
    }

    pub(super) fn buffered(&self, version: Version) -> Option<Operation<'_>> {
        self.buffer.get(&version).map(Kept::operation)
    }

    pub(super) fn buffered_len(&self) -> usize {
        self.buffer.len()
    }

    pub(super) fn buffered_from(&self, version: Version) -> impl Iterator<Item = (Version, Operation<'_>)> {
        self.buffer.range(version..).map(|(version, kept)| (*version, kept.operation()))
    }

    /// The bytes of value and buffer, without the buffer's tree.
    pub(super) fn bytes(&self) -> usize {
        self.current.as_ref().map_or(0, |held| held.value.len()) + self.buffer_bytes
    }

    pub(super) fn heap_bytes(&self, samples: usize) -> usize {
        let value = self.current.as_ref().map_or(0, |held| size_class(held.value.capacity()));
        let sampled = self.buffer.len().min(samples);
        let sampled_bytes: usize = self.buffer.values().take(sampled).map(|kept| size_class(kept.bytes())).sum();
        // A node of the tree has room for 11 entries and is two thirds full.
        let entry = size_of::<(Version, Kept)>() * 3 / 2;
        let each = if sampled == 0 { 0 } else { sampled_bytes.div_ceil(sampled) + entry };
        value + self.buffer.len() * each
    }

    /// True when it has only a version, so that it can be packed.
    pub(super) fn is_plain(&self) -> bool {
        self.current.is_some() && self.sealed.is_none() && self.buffer.is_empty()
    }

    /// Sets the newest version; buffered operations up to it are dropped.
    pub(super) fn set(&mut self, current: Current<'_>) {
        let Current { version, added, value } = current;
        match &mut self.current {
            Some(held) => {
                (held.version, held.added) = (version, added);
                held.value.clear();
                held.value.extend_from_slice(value);
            }
            None => self.current = Some(Held { version, added, value: value.to_vec() }),
        }
        match version.successor() {
            Some(next) => {
                self.sealed = self.sealed.filter(|sealed| *sealed > next);
                self.drop_buffered_below(next);
            }
            // There are no more versions.
            None => {
                self.sealed = None;
                self.buffer.clear();
                self.buffer_bytes = 0;
            }
        }
    }

    /// Buffers an operation. Returns false, with nothing changed, when its version is closed, or the register takes
    /// ordered versions otherwise; a recorded one is always buffered.
    pub(super) fn buffer(&mut self, version: Version, order: Order, operation: Operation<'_>) -> bool {
        if RegisterRef::Whole(self).is_closed(version) || !self.set_order(order) {
            return false;
        }
        let kept = match operation {
            Operation::Put(value) => Kept::Put(value.into()),
            Operation::Add(number) => Kept::Add(number),
        };
        self.buffer_bytes += kept.bytes();
        if let Some(replaced) = self.buffer.insert(version, kept) {
            self.buffer_bytes -= replaced.bytes();
        }
        true
    }

    /// Closes the versions below this one. Returns false, with nothing changed, when they are closed already.
    pub(super) fn seal(&mut self, below: Version) -> bool {
        if RegisterRef::Whole(self).open_from().is_none_or(|open| below <= open) {
            return false;
        }
        self.sealed = Some(below);
        self.drop_buffered_below(below);
        true
    }

    fn drop_buffered_below(&mut self, version: Version) {
        while let Some(first) = self.buffer.first_entry().filter(|first| *first.key() < version) {
            self.buffer_bytes -= first.remove().bytes();
        }
    }
}
