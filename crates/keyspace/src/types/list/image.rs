//! A whole list: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST hashes it.
//! docs/effect-format.md describes the bytes.

use super::{Form, Thresholds, change, list};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number};
use crate::types::{Entry, Shapes};

/// The form of the list. Elements are written in the same way in all. IMPORTANT: append only; journals on disk hold them.
mod form {
    /// As the defaults of the settings say of its elements. All lists were written so before there was another form.
    pub(super) const BY_SIZE: u8 = 0;
    pub(super) const LARGE: u8 = 1;
    pub(super) const SMALL: u8 = 2;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let list = list(entry);
    out.push(form_byte(list.form(), Thresholds::default().form_of(list)));
    put_number(list.len() as u64, out);
    list.for_each(|element| element.with_bytes(|element| put_bytes(element, out)));
}

/// How a form is written, if `by_size` is the one that the default settings would give.
fn form_byte(form: Form, by_size: Form) -> u8 {
    match form {
        form if form == by_size => form::BY_SIZE,
        Form::Large => form::LARGE,
        Form::Small => form::SMALL,
    }
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    if !matches!(reader.byte()?, form::BY_SIZE | form::LARGE | form::SMALL) {
        return Err(BadEffect::OutOfRange);
    }
    for _ in 0..reader.count_of_elements()? {
        reader.bytes()?;
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    let form = image.byte().expect(CHECKED);
    let count = image.count_of_elements().expect(CHECKED);
    // A reader is a position in the bytes: a copy of it reads them again.
    let elements = (0..count).scan(image, |rest, _| Some(rest.bytes().expect(CHECKED)));
    let form = match form {
        form::LARGE => Form::Large,
        form::SMALL => Form::Small,
        _ => Thresholds::default().form_at_once(elements.clone()),
    };
    change::create(name, elements, form, deadline)
}

/// Appends the image of a whole list.
pub fn put_image<'e>(
    elements: impl ExactSizeIterator<Item = &'e [u8]> + Clone,
    thresholds: &Thresholds,
    out: &mut Vec<u8>,
) {
    let form = thresholds.form_at_once(elements.clone());
    out.push(form_byte(form, Thresholds::default().form_at_once(elements.clone())));
    put_number(elements.len() as u64, out);
    elements.for_each(|element| put_bytes(element, out));
}

/// Appends the image of a list that came from Redis.
pub fn image_of(elements: &formats::Texts, thresholds: &Thresholds, out: &mut Vec<u8>) {
    put_image(elements.iter(), thresholds, out);
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
