//! A whole register: as the bytes in snapshots, effects and DUMP, and as DEBUG DIGEST hashes it. docs/effect-format.md
//! describes the bytes.

use super::change::{current, finished, put_current, put_operation, read_operation};
use super::{Operation, Register, RegisterRef, TYPE, Version, register};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_number};
use crate::types::{Entry, Shapes};

/// Encodings of a register. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    pub(super) const PARTS: u8 = 0;
}

/// Flags for the parts that follow.
pub(super) const HAS_CURRENT: u8 = 1;
const HAS_SEAL: u8 = 2;
const HAS_BUFFER: u8 = 4;

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let register = register(entry);
    let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
    let (current, sealed, buffered) = (register.current(), register.sealed(), register.buffered_len());
    out.push(form::PARTS);
    out.push(flag(current.is_some(), HAS_CURRENT) | flag(sealed.is_some(), HAS_SEAL) | flag(buffered > 0, HAS_BUFFER));
    if let Some(current) = current {
        put_current(current, out);
    }
    if let Some(sealed) = sealed {
        put_number(sealed, out);
    }
    if buffered > 0 {
        put_number(buffered as u64, out);
        let mut before = 0;
        for (version, operation) in register.buffered_from(0) {
            put_number(version - before, out);
            put_operation(operation, out);
            before = version;
        }
    }
}

/// Checks an image. No version writes a seal, or a buffered operation, that the current version has overtaken.
pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if reader.byte()? != form::PARTS {
        return Err(BadEffect::OutOfRange);
    }
    let parts = reader.byte()?;
    if parts == 0 || parts & !(HAS_CURRENT | HAS_SEAL | HAS_BUFFER) != 0 {
        return Err(BadEffect::OutOfRange);
    }
    let mut next = Some(1);
    if parts & HAS_CURRENT != 0 {
        next = current(reader)?.version.next();
    }
    if parts & HAS_SEAL != 0 {
        let sealed = reader.number()?;
        if next.is_none_or(|next| sealed <= next) {
            return Err(BadEffect::OutOfRange);
        }
        next = Some(sealed);
    }
    if parts & HAS_BUFFER != 0 {
        let (count, mut before) = (reader.count_of_elements()?, 0u64);
        for _ in 0..count {
            let since = reader.number()?;
            let version = before.checked_add(since).ok_or(BadEffect::OutOfRange)?;
            if since == 0 || next.is_none_or(|next| version < next) {
                return Err(BadEffect::OutOfRange);
            }
            read_operation(reader)?;
            before = version;
        }
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    image.byte().expect(CHECKED);
    let parts = image.byte().expect(CHECKED);
    let mut register = Register::default();
    if parts & HAS_CURRENT != 0 {
        let current = current(&mut image).expect(CHECKED);
        if parts == HAS_CURRENT {
            return super::change::create(name, current, deadline);
        }
        register.set(current);
    }
    if parts & HAS_SEAL != 0 {
        register.seal(image.number().expect(CHECKED));
    }
    if parts & HAS_BUFFER != 0 {
        let (count, mut version) = (image.count_of_elements().expect(CHECKED), 0);
        for _ in 0..count {
            version += image.number().expect(CHECKED);
            register.buffer(version, read_operation(&mut image).expect(CHECKED));
        }
    }
    finished(name, register, deadline)
}

/// Redis has no registers: the image, for DUMP.
pub(super) fn to_redis(entry: &Entry, shapes: &Shapes, _: u64) -> formats::Value {
    let mut image = Vec::new();
    write(entry, shapes, &mut image);
    formats::Value::Own(formats::OwnValue { tag: TYPE.tag, image })
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    let register: RegisterRef<'_> = register(entry);
    let mut mix_version = |version: Version| {
        digest.mix(&version.epoch.to_be_bytes());
        digest.mix(&version.round.to_be_bytes());
    };
    if let Some(current) = register.current() {
        mix_version(current.version);
        digest.mix(current.value);
        digest.mix(&current.added.map_or(Vec::new(), |added| added.to_be_bytes().to_vec()));
    }
    digest.mix(&register.sealed().unwrap_or(0).to_be_bytes());
    for (version, operation) in register.buffered_from(0) {
        digest.mix(&version.to_be_bytes());
        match operation {
            Operation::Put(value) => digest.mix(value),
            Operation::Add(number) => digest.mix(&[&b"+"[..], &number.to_be_bytes()].concat()),
        }
    }
}
