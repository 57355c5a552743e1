//! A whole cell: as the bytes in snapshots, effects and DUMP, and as DEBUG DIGEST hashes it. docs/effect-format.md
//! describes the bytes.

use super::change::create;
use super::{History, TIME_MAX_US, TYPE, VERSION_MAX, Version, cell};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Entry, Object, Shapes};

/// Encodings of a cell. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    pub(super) const VERSIONS: u8 = 0;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let cell = cell(entry);
    out.push(form::VERSIONS);
    put_number(cell.len() as u64, out);
    put_number(cell.current().number - cell.len() as u64, out);
    let mut before_us = 0;
    for version in cell.oldest_first() {
        put_number(version.time_us - before_us, out);
        put_bytes(version.value, out);
        before_us = version.time_us;
    }
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if reader.byte()? != form::VERSIONS {
        return Err(BadEffect::OutOfRange);
    }
    let (count, forgotten) = (reader.count_of_elements()?, reader.number()?);
    if forgotten.checked_add(count as u64).is_none_or(|newest| newest > VERSION_MAX) {
        return Err(BadEffect::OutOfRange);
    }
    let mut time_us = 0u64;
    for at in 0..count {
        let since_us = reader.number()?;
        time_us =
            time_us.checked_add(since_us).filter(|time_us| *time_us <= TIME_MAX_US).ok_or(BadEffect::OutOfRange)?;
        if at > 0 && since_us == 0 {
            return Err(BadEffect::OutOfRange);
        }
        reader.bytes()?;
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    image.byte().expect(CHECKED);
    let count = image.count_of_elements().expect(CHECKED);
    let mut before = Version { number: image.number().expect(CHECKED), time_us: 0, value: b"" };
    let mut next = || {
        let time_us = before.time_us + image.number().expect(CHECKED);
        before = Version { number: before.number + 1, time_us, value: image.bytes().expect(CHECKED) };
        before
    };
    let first = next();
    if count == 1 {
        return create(name, first, deadline);
    }
    let mut history = History::new(first);
    (1..count).for_each(|_| history.push(next()));
    Entry::with_object(name, Box::new(Object::Cell(history)), deadline)
}

/// Redis has no cells: the image, for DUMP.
pub(super) fn to_redis(entry: &Entry, shapes: &Shapes, _: u64) -> formats::Value {
    let mut image = Vec::new();
    write(entry, shapes, &mut image);
    formats::Value::Own(formats::OwnValue { tag: TYPE.tag, image })
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    for version in cell(entry).oldest_first() {
        digest.mix(&version.number.to_be_bytes());
        digest.mix(&version.time_us.to_be_bytes());
        digest.mix(version.value);
    }
}
