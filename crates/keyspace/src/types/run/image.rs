//! A whole run: as the bytes in snapshots, effects and DUMP, and as DEBUG DIGEST hashes it. docs/effect-format.md
//! describes the bytes.

use super::event::Event;
use super::{EVENTS_MAX, Run, TIME_MAX_MS, TYPE, run};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Entry, Object, Shapes};

/// Encodings of a run. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    pub(super) const EVENTS: u8 = 0;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let run = run(entry);
    out.push(form::EVENTS);
    put_number(run.len(), out);
    let mut before_ms = 0;
    for found in run.after(0) {
        put_number(found.time_ms - before_ms, out);
        put_bytes(found.event.bytes, out);
        before_ms = found.time_ms;
    }
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if reader.byte()? != form::EVENTS {
        return Err(BadEffect::OutOfRange);
    }
    let count = reader.count_of_elements()?;
    if count as u64 > EVENTS_MAX {
        return Err(BadEffect::OutOfRange);
    }
    let mut time_ms = 0u64;
    for _ in 0..count {
        let later = time_ms.checked_add(reader.number()?);
        time_ms = later.filter(|time_ms| *time_ms <= TIME_MAX_MS).ok_or(BadEffect::OutOfRange)?;
        Event::check(reader.bytes()?)?;
    }
    Ok(())
}

/// Reads a run. No version writes a key twice, but bytes from a disk are not trusted: the second event is ignored.
pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    image.byte().expect(CHECKED);
    let count = image.count_of_elements().expect(CHECKED);
    let (mut run, mut time_ms) = (Run::new(), 0);
    for _ in 0..count {
        time_ms += image.number().expect(CHECKED);
        run.push(time_ms, image.bytes().expect(CHECKED));
    }
    Entry::with_object(name, Box::new(Object::Run(run)), deadline)
}

/// Redis has no runs: the image, for DUMP.
pub(super) fn to_redis(entry: &Entry, shapes: &Shapes, _: u64) -> formats::Value {
    let mut image = Vec::new();
    write(entry, shapes, &mut image);
    formats::Value::Own(formats::OwnValue { tag: TYPE.tag, image })
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    for found in run(entry).after(0) {
        digest.mix(&found.number.to_be_bytes());
        digest.mix(&found.time_ms.to_be_bytes());
        digest.mix(found.event.bytes);
    }
}
