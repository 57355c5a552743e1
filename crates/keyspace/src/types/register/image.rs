//! A whole register: as the bytes in snapshots, effects and DUMP, and as DEBUG DIGEST hashes it. docs/effect-format.md
//! describes the bytes.

use super::change::{current, finished, put_current, put_operation, read_operation};
use super::{Operation, Order, Register, RegisterRef, TYPE, Version, least_version, register};
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
/// How ordered versions are taken. An older version wrote a buffer without it, of versions taken one by one.
const IS_ONE_BY_ONE: u8 = 8;
const IS_UNTIL_SEALED: u8 = 16;
/// The seal has an epoch.
const HAS_SEAL_EPOCH: u8 = 32;
const ALL: u8 = HAS_CURRENT | HAS_SEAL | HAS_BUFFER | IS_ONE_BY_ONE | IS_UNTIL_SEALED | HAS_SEAL_EPOCH;

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let register = register(entry);
    let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
    let (current, sealed, buffered) = (register.current(), register.sealed(), register.buffered_len());
    let order = match register.order() {
        None => 0,
        Some(Order::OneByOne) => IS_ONE_BY_ONE,
        Some(Order::UntilSealed) => IS_UNTIL_SEALED,
    };
    let seal_epoch = sealed.map_or(0, |sealed| sealed.epoch);
    let seal = flag(sealed.is_some(), HAS_SEAL) | flag(seal_epoch > 0, HAS_SEAL_EPOCH);
    out.push(form::PARTS);
    out.push(flag(current.is_some(), HAS_CURRENT) | seal | flag(buffered > 0, HAS_BUFFER) | order);
    if let Some(current) = current {
        put_current(current, out);
    }
    if let Some(sealed) = sealed {
        if seal_epoch > 0 {
            put_number(seal_epoch, out);
        }
        put_number(sealed.round, out);
    }
    if buffered > 0 {
        put_number(buffered as u64, out);
        let mut before = Version::of_round(0);
        for (version, operation) in register.buffered_from(Version::of_round(0)) {
            if order == IS_UNTIL_SEALED {
                put_number(version.epoch - before.epoch, out);
            }
            put_number(version.round - if version.epoch == before.epoch { before.round } else { 0 }, out);
            put_operation(operation, out);
            before = version;
        }
    }
}

/// How an image says that ordered versions are taken.
fn order_of(parts: u8) -> Result<Option<Order>, BadEffect> {
    match parts & (IS_ONE_BY_ONE | IS_UNTIL_SEALED) {
        0 if parts & HAS_BUFFER != 0 => Ok(Some(Order::OneByOne)),
        0 => Ok(None),
        IS_ONE_BY_ONE => Ok(Some(Order::OneByOne)),
        IS_UNTIL_SEALED => Ok(Some(Order::UntilSealed)),
        _ => Err(BadEffect::OutOfRange),
    }
}

fn read_seal(parts: u8, reader: &mut Reader<'_>) -> Result<Version, BadEffect> {
    let epoch = match parts & HAS_SEAL_EPOCH {
        0 => 0,
        _ => reader.number()?,
    };
    Ok(Version { epoch, round: reader.number()? })
}

/// The version of a buffered operation, after the version before it.
fn read_version(order: Option<Order>, before: Version, reader: &mut Reader<'_>) -> Result<Version, BadEffect> {
    let epochs = match order {
        Some(Order::UntilSealed) => reader.number()?,
        Some(Order::OneByOne) | None => 0,
    };
    let epoch = before.epoch.checked_add(epochs).ok_or(BadEffect::OutOfRange)?;
    let rounds = reader.number()?;
    let round = if epochs == 0 { before.round.checked_add(rounds) } else { Some(rounds) };
    Ok(Version { epoch, round: round.ok_or(BadEffect::OutOfRange)? })
}

/// Checks an image. No version writes a seal, or a buffered operation, that the current version has overtaken.
pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if reader.byte()? != form::PARTS {
        return Err(BadEffect::OutOfRange);
    }
    let parts = reader.byte()?;
    if parts & (HAS_CURRENT | HAS_SEAL | HAS_BUFFER) == 0
        || parts & !ALL != 0
        || parts & (HAS_SEAL | HAS_SEAL_EPOCH) == HAS_SEAL_EPOCH
    {
        return Err(BadEffect::OutOfRange);
    }
    let order = order_of(parts)?;
    let mut open = Some(least_version(order));
    if parts & HAS_CURRENT != 0 {
        open = current(reader)?.version.successor();
    }
    if parts & HAS_SEAL != 0 {
        let sealed = read_seal(parts, reader)?;
        let is_padded = sealed.epoch == 0 && parts & HAS_SEAL_EPOCH != 0;
        if is_padded || open.is_none_or(|open| sealed <= open) {
            return Err(BadEffect::OutOfRange);
        }
        open = Some(sealed);
    }
    if parts & HAS_BUFFER != 0 {
        let (count, mut before) = (reader.count_of_elements()?, None);
        for _ in 0..count {
            let version = read_version(order, before.unwrap_or(Version::of_round(0)), reader)?;
            if before.is_some_and(|before| version <= before) || open.is_none_or(|open| version < open) {
                return Err(BadEffect::OutOfRange);
            }
            read_operation(reader)?;
            before = Some(version);
        }
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    image.byte().expect(CHECKED);
    let parts = image.byte().expect(CHECKED);
    let (mut register, order) = (Register::default(), order_of(parts).expect(CHECKED));
    if let Some(order) = order {
        register.set_order(order);
    }
    if parts & HAS_CURRENT != 0 {
        let current = current(&mut image).expect(CHECKED);
        if parts & (HAS_SEAL | HAS_BUFFER) == 0 {
            return super::change::create(name, order, current, deadline);
        }
        register.set(current);
    }
    if parts & HAS_SEAL != 0 {
        register.seal(read_seal(parts, &mut image).expect(CHECKED));
    }
    if parts & HAS_BUFFER != 0 {
        let (count, mut version) = (image.count_of_elements().expect(CHECKED), Version::of_round(0));
        let order = order.expect("a buffer has an order");
        for _ in 0..count {
            version = read_version(Some(order), version, &mut image).expect(CHECKED);
            register.buffer(version, order, read_operation(&mut image).expect(CHECKED));
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
    let mix_version = |version: Version, digest: &mut Digest| {
        digest.mix(&version.epoch.to_be_bytes());
        digest.mix(&version.round.to_be_bytes());
    };
    if let Some(current) = register.current() {
        mix_version(current.version, digest);
        digest.mix(current.value);
        digest.mix(&current.added.map_or(Vec::new(), |added| added.to_be_bytes().to_vec()));
    }
    mix_version(register.sealed().unwrap_or(Version::of_round(0)), digest);
    digest.mix(match register.order() {
        None => b"",
        Some(Order::OneByOne) => b"one by one",
        Some(Order::UntilSealed) => b"until sealed",
    });
    for (version, operation) in register.buffered_from(Version::of_round(0)) {
        mix_version(version, digest);
        match operation {
            Operation::Put(value) => digest.mix(value),
            Operation::Add(number) => digest.mix(&[&b"+"[..], &number.to_be_bytes()].concat()),
        }
    }
}
