//! The changes of a register: their definition, application and encoding. Knows when a register changes its form;
//! refuses to know how each form is laid out.

use super::packed::VALUE_BYTES_MAX;
use super::{Current, Operation, Order, Register, RegisterRef, TYPE, Version, packed};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::types::{Applied, Entry, Fate, Object};

/// A change of a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The newest version. Buffered operations up to it are dropped: they were applied, or overtaken.
    Set(Current<'a>),
    /// An operation is buffered. From now on the register takes ordered versions in this way.
    Buffer { version: Version, order: Order, operation: Operation<'a> },
    /// The versions below this one are closed.
    Seal { below: Version },
    /// From now on the register, which exists, takes ordered versions in this way.
    Order(Order),
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const SET: u8 = 1;
    pub(super) const BUFFER: u8 = 2;
    pub(super) const SEAL: u8 = 3;
    pub(super) const ORDER: u8 = 4;
    pub(super) const BUFFER_UNTIL_SEALED: u8 = 5;
    pub(super) const SEAL_EPOCH: u8 = 6;
}

/// Encodings of an order. IMPORTANT: append only; journals on disk contain these numbers.
mod order {
    pub(super) const ONE_BY_ONE: u8 = 1;
    pub(super) const UNTIL_SEALED: u8 = 2;
}

/// Encodings of an operation. IMPORTANT: append only; journals on disk contain these numbers.
mod operation {
    pub(super) const PUT: u8 = 0;
    pub(super) const ADD: u8 = 1;
}

impl<'a> Change<'a> {
    #[inline]
    pub(in crate::types) fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Change::Set(current) => {
                out.push(tag::SET);
                put_current(current, out);
            }
            Change::Buffer { version, order: Order::OneByOne, operation } => {
                out.push(tag::BUFFER);
                put_number(version.round, out);
                put_operation(operation, out);
            }
            Change::Buffer { version, order: Order::UntilSealed, operation } => {
                out.push(tag::BUFFER_UNTIL_SEALED);
                put_number(version.epoch, out);
                put_number(version.round, out);
                put_operation(operation, out);
            }
            Change::Seal { below: Version { epoch: 0, round } } => {
                out.push(tag::SEAL);
                put_number(round, out);
            }
            Change::Seal { below: Version { epoch, round } } => {
                out.push(tag::SEAL_EPOCH);
                put_number(epoch, out);
                put_number(round, out);
            }
            Change::Order(Order::OneByOne) => out.extend_from_slice(&[tag::ORDER, order::ONE_BY_ONE]),
            Change::Order(Order::UntilSealed) => out.extend_from_slice(&[tag::ORDER, order::UNTIL_SEALED]),
        }
    }

    pub(in crate::types) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::SET => Ok(Change::Set(current(reader)?)),
            tag::BUFFER => match reader.number()? {
                0 => Err(BadEffect::OutOfRange),
                round => {
                    let version = Version::of_round(round);
                    Ok(Change::Buffer { version, order: Order::OneByOne, operation: read_operation(reader)? })
                }
            },
            tag::BUFFER_UNTIL_SEALED => {
                let version = Version { epoch: reader.number()?, round: reader.number()? };
                Ok(Change::Buffer { version, order: Order::UntilSealed, operation: read_operation(reader)? })
            }
            tag::SEAL => Ok(Change::Seal { below: Version::of_round(reader.number()?) }),
            tag::SEAL_EPOCH => match reader.number()? {
                0 => Err(BadEffect::OutOfRange),
                epoch => Ok(Change::Seal { below: Version { epoch, round: reader.number()? } }),
            },
            tag::ORDER => match reader.byte()? {
                order::ONE_BY_ONE => Ok(Change::Order(Order::OneByOne)),
                order::UNTIL_SEALED => Ok(Change::Order(Order::UntilSealed)),
                _ => Err(BadEffect::OutOfRange),
            },
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        match self {
            Change::Set(_) | Change::Buffer { .. } | Change::Seal { .. } => Fate::Gains { replaces: false },
            Change::Order(_) => Fate::Amended,
        }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Set(Current { added: None, .. }) | Change::Buffer { operation: Operation::Put(_), .. } => "reg.put",
            Change::Set(Current { added: Some(_), .. }) | Change::Buffer { operation: Operation::Add(_), .. } => {
                "reg.incrby"
            }
            Change::Seal { .. } => "reg.seal",
            // It comes with the operation that decided it.
            Change::Order(_) => "",
        }
    }

    /// Applies the change to an entry that holds a register. A change that the register has overtaken, which only
    /// damage can cause, has no effect.
    #[inline]
    pub(in crate::types) fn apply(&self, entry: &mut Entry) -> Applied {
        let is_made = match *self {
            Change::Set(current) => {
                set(entry, current);
                true
            }
            Change::Buffer { version, order, operation } => {
                change_whole(entry, |register| register.buffer(version, order, operation))
            }
            Change::Seal { below } => change_whole(entry, |register| register.seal(below)),
            Change::Order(order) => set_order(entry, order),
        };
        Applied::counted(is_made.into())
    }

    /// Creates the entry that the change makes of a missing key; `None` when it makes none.
    #[inline]
    pub(in crate::types) fn create(&self, name: &[u8]) -> Option<(Entry, Applied)> {
        let entry = match *self {
            Change::Set(current) => create(name, None, current, None),
            Change::Buffer { version, order, operation } => {
                let mut register = Register::default();
                register.buffer(version, order, operation).then(|| whole(name, register, None))?
            }
            Change::Seal { below } => {
                let mut register = Register::default();
                register.seal(below).then(|| whole(name, register, None))?
            }
            Change::Order(_) => return None,
        };
        Some((entry, Applied::counted(1)))
    }
}

/// Creates an entry for a register with one version and no buffer.
pub(super) fn create(name: &[u8], order: Option<Order>, current: Current<'_>, deadline: Option<u64>) -> Entry {
    match current.value.len() <= VALUE_BYTES_MAX {
        true => packed::create(name, order, current, deadline),
        false => whole(name, Register::of(order, current), deadline),
    }
}

pub(super) fn whole(name: &[u8], register: Register, deadline: Option<u64>) -> Entry {
    Entry::with_object(name, Box::new(Object::Register(register)), deadline)
}

/// Sets the newest version of a register.
#[inline]
fn set(entry: &mut Entry, current: Current<'_>) {
    let is_short = current.value.len() <= VALUE_BYTES_MAX;
    match entry.object_mut() {
        Some(Object::Register(register)) => {
            register.set(current);
            if is_short && register.is_plain() {
                let order = register.order();
                packed::set(entry, order, current);
            }
        }
        Some(_) => panic!("a change of a register was recorded for another type"),
        None => {
            let order = packed::order(entry.body());
            match is_short {
                true => packed::set(entry, order, current),
                false => entry.set_object(Box::new(Object::Register(Register::of(order, current)))),
            }
        }
    }
}

/// Decides how a register takes ordered versions. Returns false when that was decided otherwise.
fn set_order(entry: &mut Entry, order: Order) -> bool {
    match entry.object_mut() {
        Some(Object::Register(register)) => register.set_order(order),
        Some(_) => panic!("a change of a register was recorded for another type"),
        None => match packed::order(entry.body()) {
            None => {
                packed::set_order(entry, order);
                true
            }
            Some(decided) => decided == order,
        },
    }
}

/// Changes a register that is behind a pointer afterwards. Returns false when nothing changed.
fn change_whole(entry: &mut Entry, change: impl FnOnce(&mut Register) -> bool) -> bool {
    match entry.object_mut() {
        Some(Object::Register(register)) => change(register),
        Some(_) => panic!("a change of a register was recorded for another type"),
        None => {
            let mut register = Register::of(packed::order(entry.body()), packed::read(entry.body()));
            let is_changed = change(&mut register);
            if is_changed {
                entry.set_object(Box::new(Object::Register(register)));
            }
            is_changed
        }
    }
}

/// Flag bits before a version: it has an epoch, it is an addition.
const HAS_EPOCH: u8 = 1;
const HAS_ADDED: u8 = 2;

/// Appends a version with its value.
#[inline]
pub(super) fn put_current(current: Current<'_>, out: &mut Vec<u8>) {
    let Current { version, added, value } = current;
    let epoch = if version.epoch == 0 { 0 } else { HAS_EPOCH };
    out.push(epoch | if added.is_some() { HAS_ADDED } else { 0 });
    if version.epoch != 0 {
        put_number(version.epoch, out);
    }
    put_number(version.round, out);
    if let Some(added) = added {
        put_signed(added, out);
    }
    put_bytes(value, out);
}

pub(super) fn current<'a>(reader: &mut Reader<'a>) -> Result<Current<'a>, BadEffect> {
    let flags = reader.byte()?;
    if flags & !(HAS_EPOCH | HAS_ADDED) != 0 {
        return Err(BadEffect::OutOfRange);
    }
    let epoch = match flags & HAS_EPOCH {
        0 => 0,
        _ => reader.number()?,
    };
    if epoch == 0 && flags & HAS_EPOCH != 0 {
        return Err(BadEffect::OutOfRange);
    }
    let round = reader.number()?;
    let added = match flags & HAS_ADDED {
        0 => None,
        _ => Some(reader.signed()?),
    };
    Ok(Current { version: Version { epoch, round }, added, value: reader.bytes()? })
}

pub(super) fn put_operation(operation: Operation<'_>, out: &mut Vec<u8>) {
    match operation {
        Operation::Put(value) => {
            out.push(operation::PUT);
            put_bytes(value, out);
        }
        Operation::Add(number) => {
            out.push(operation::ADD);
            put_signed(number, out);
        }
    }
}

pub(super) fn read_operation<'a>(reader: &mut Reader<'a>) -> Result<Operation<'a>, BadEffect> {
    match reader.byte()? {
        operation::PUT => Ok(Operation::Put(reader.bytes()?)),
        operation::ADD => Ok(Operation::Add(reader.signed()?)),
        _ => Err(BadEffect::OutOfRange),
    }
}

/// The register behind an entry, for [`super::image`].
pub(super) fn finished(name: &[u8], register: Register, deadline: Option<u64>) -> Entry {
    match RegisterRef::Whole(&register).current() {
        Some(current) if register.is_plain() => create(name, register.order(), current, deadline),
        _ => whole(name, register, deadline),
    }
}
