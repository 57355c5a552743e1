//! A whole list: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST hashes it.
//! docs/effect-format.md describes the bytes.

use super::{change, list};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Entry, Shapes};

/// How the elements are written. IMPORTANT: append only; journals on disk hold it.
const FORM_BYTES: u8 = 0;

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let list = list(entry);
    out.push(FORM_BYTES);
    put_number(list.len() as u64, out);
    list.for_each(|element| element.with_bytes(|element| put_bytes(element, out)));
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if reader.byte()? != FORM_BYTES {
        return Err(BadEffect::OutOfRange);
    }
    for _ in 0..reader.count_of_elements()? {
        reader.bytes()?;
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    image.byte().expect(CHECKED);
    let count = image.count_of_elements().expect(CHECKED);
    // A reader is a position in the bytes: a copy of it reads them again.
    let elements = (0..count).scan(image, |rest, _| Some(rest.bytes().expect(CHECKED)));
    change::create(name, elements, deadline)
}

/// Appends the image of a whole list.
pub fn put_image<'e>(elements: impl ExactSizeIterator<Item = &'e [u8]>, out: &mut Vec<u8>) {
    out.push(FORM_BYTES);
    put_number(elements.len() as u64, out);
    elements.for_each(|element| put_bytes(element, out));
}

/// Appends the image of a list that came from Redis.
pub fn image_of(elements: &formats::Texts, out: &mut Vec<u8>) {
    put_image(elements.iter(), out);
}

pub(super) fn to_redis(entry: &Entry, _: &Shapes, _: u64) -> formats::Value {
    let list = list(entry);
    let mut elements = formats::Texts::with_capacity(list.len(), list.plain_bytes());
    list.for_each(|element| element.with_bytes(|element| elements.push(element)));
    formats::Value::List(elements)
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    list(entry).for_each(|element| element.with_bytes(|element| digest.mix(element)));
}
