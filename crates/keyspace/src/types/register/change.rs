//! The changes of a register: their definition, application and encoding. Knows when a register changes its form;
//! refuses to know how each form is laid out.

use super::packed::VALUE_BYTES_MAX;
use super::{Current, Operation, Register, RegisterRef, TYPE, Version, packed};
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::types::{Applied, Entry, Fate, Object};

/// A change of a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The newest version. Buffered operations up to it are dropped: they were applied, or overtaken.
    Set(Current<'a>),
    /// An operation is buffered, with this version of epoch 0, from 1 on.
    Buffer { version: u64, operation: Operation<'a> },
    /// The versions of epoch 0 below this one are closed.
    Seal { below: u64 },
}

/// The first byte of an encoded change. IMPORTANT: append only; journals on disk hold these numbers.
mod tag {
    pub(super) const SET: u8 = 1;
    pub(super) const BUFFER: u8 = 2;
    pub(super) const SEAL: u8 = 3;
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
            Change::Buffer { version, operation } => {
                out.push(tag::BUFFER);
                put_number(version, out);
                put_operation(operation, out);
            }
            Change::Seal { below } => {
                out.push(tag::SEAL);
                put_number(below, out);
            }
        }
    }

    pub(in crate::types) fn decode(reader: &mut Reader<'a>) -> Result<Change<'a>, BadEffect> {
        match reader.byte()? {
            tag::SET => Ok(Change::Set(current(reader)?)),
            tag::BUFFER => match reader.number()? {
                0 => Err(BadEffect::OutOfRange),
                version => Ok(Change::Buffer { version, operation: read_operation(reader)? }),
            },
            tag::SEAL => Ok(Change::Seal { below: reader.number()? }),
            unknown => Err(BadEffect::UnknownChange(TYPE.tag, unknown)),
        }
    }

    #[inline]
    pub(in crate::types) fn fate(&self) -> Fate {
        Fate::Gains { replaces: false }
    }

    pub(in crate::types) fn event(&self) -> &'static str {
        match self {
            Change::Set(Current { added: None, .. }) | Change::Buffer { operation: Operation::Put(_), .. } => "reg.put",
            Change::Set(Current { added: Some(_), .. }) | Change::Buffer { operation: Operation::Add(_), .. } => {
                "reg.incrby"
            }
            Change::Seal { .. } => "reg.seal",
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
            Change::Buffer { version, operation } => {
                change_whole(entry, |register| register.buffer(version, operation))
            }
            Change::Seal { below } => change_whole(entry, |register| register.seal(below)),
        };
        Applied::counted(is_made.into())
    }

    /// Creates the entry that the change makes of a missing key; `None` when it makes none.
    #[inline]
    pub(in crate::types) fn create(&self, name: &[u8]) -> Option<(Entry, Applied)> {
        let entry = match *self {
            Change::Set(current) => create(name, current, None),
            Change::Buffer { version, operation } => {
                let mut register = Register::default();
                register.buffer(version, operation).then(|| whole(name, register, None))?
            }
            Change::Seal { below } => {
                let mut register = Register::default();
                register.seal(below).then(|| whole(name, register, None))?
            }
        };
        Some((entry, Applied::counted(1)))
    }
}

/// Creates an entry for a register with one version and no buffer.
pub(super) fn create(name: &[u8], current: Current<'_>, deadline: Option<u64>) -> Entry {
    match current.value.len() <= VALUE_BYTES_MAX {
        true => packed::create(name, current, deadline),
        false => whole(name, Register::of(current), deadline),
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
                packed::set(entry, current);
            }
        }
        Some(_) => panic!("a change of a register was recorded for another type"),
        None if is_short => packed::set(entry, current),
        None => entry.set_object(Box::new(Object::Register(Register::of(current)))),
    }
}

/// Changes a register that is behind a pointer afterwards. Returns false when nothing changed.
fn change_whole(entry: &mut Entry, change: impl FnOnce(&mut Register) -> bool) -> bool {
    match entry.object_mut() {
        Some(Object::Register(register)) => change(register),
        Some(_) => panic!("a change of a register was recorded for another type"),
        None => {
            let mut register = Register::of(packed::read(entry.body()));
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
        Some(current) if register.is_plain() => create(name, current, deadline),
        _ => whole(name, register, deadline),
    }
}
