//! A whole hash: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST hashes it.
//! docs/effect-format.md describes the bytes.

use super::packed::{self, Pair};
use super::{FieldTable, Form, Thresholds, hash};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_deadline, put_number};
use crate::storage::scalar::inline_scalar;
use crate::types::{Entry, Object, PACKED_BYTES_MAX, PACKED_ELEMENTS_MAX, Shapes};
use smallvec::SmallVec;

/// How a hash is stored: packed, or a table of some form.
const FORMS: [(Option<Form>, u8); 4] =
    [(None, 0), (Some(Form::Small), 1), (Some(Form::SmallWithDeadlines), 2), (Some(Form::Large), 3)];
/// Bit: every field is followed by its deadline.
const WITH_DEADLINES: u8 = 128;

pub(super) fn write(entry: &Entry, shapes: &Shapes, out: &mut Vec<u8>) {
    match entry.object() {
        Some(Object::Hash(table)) => {
            let timed = table.soonest().is_some();
            put_head(Some(table.form()), timed, table.len(), out);
            for field in table.entries() {
                put_bytes(field.name(), out);
                inline_scalar(field).with_bytes(|value| put_bytes(value, out));
                if timed {
                    put_deadline(field.deadline(), out);
                }
            }
        }
        _ => {
            let packed = packed::Packed::new(entry.body(), shapes);
            put_head(None, false, packed.len(), out);
            for (field, value) in packed.iter() {
                field.scalar().with_bytes(|field| put_bytes(field, out));
                value.with_bytes(|value| put_bytes(value, out));
            }
        }
    }
}

fn put_head(form: Option<Form>, timed: bool, fields: usize, out: &mut Vec<u8>) {
    let form = FORMS.iter().find(|(known, _)| *known == form).map_or(0, |(_, byte)| *byte);
    out.push(form | if timed { WITH_DEADLINES } else { 0 });
    put_number(fields as u64, out);
}

/// The form, whether deadlines follow, and the number of fields.
fn head(reader: &mut Reader<'_>) -> Result<(Option<Form>, bool, usize), BadEffect> {
    let byte = reader.byte()?;
    let form = FORMS.iter().find(|(_, known)| *known == byte & !WITH_DEADLINES);
    let (form, _) = *form.ok_or(BadEffect::OutOfRange)?;
    Ok((form, byte & WITH_DEADLINES != 0, reader.count_of_elements()?))
}

type Field<'a> = (Pair<'a>, Option<u64>);

fn field<'a>(reader: &mut Reader<'a>, timed: bool) -> Result<Field<'a>, BadEffect> {
    let pair = (reader.bytes()?, reader.bytes()?);
    Ok((pair, if timed { reader.deadline()? } else { None }))
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    let (_, timed, count) = head(reader)?;
    for _ in 0..count {
        field(reader, timed)?;
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, shapes: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    let (form, timed, count) = head(&mut image).expect(CHECKED);
    if form.is_none() && !timed && count <= PACKED_ELEMENTS_MAX {
        let mut rest = image;
        let fields = (0..count).map(|_| field(&mut rest, false).expect(CHECKED).0);
        let fields: SmallVec<[Pair<'_>; 32]> = fields.collect();
        let fits = fields.iter().all(|(field, value)| field.len().max(value.len()) <= PACKED_BYTES_MAX);
        // A packed hash never has a field twice, but bytes from a disk are not trusted.
        if fits && !has_twins(&fields) {
            return packed::create(name, &fields, shapes, deadline);
        }
    }
    let mut table = FieldTable::default();
    table.set_form(form.unwrap_or_default());
    for _ in 0..count {
        let ((field, value), deadline) = field(&mut image, timed).expect(CHECKED);
        table.set(field, value, false);
        if timed {
            table.set_deadline(field, deadline);
        }
    }
    Entry::with_object(name, Box::new(Object::Hash(table)), deadline)
}

/// True when two fields have the same name.
fn has_twins(fields: &[Pair<'_>]) -> bool {
    let mut names: SmallVec<[&[u8]; 32]> = fields.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// Appends the image of a whole hash without its expired fields, and returns how many had expired. Appends nothing when
/// no field is left.
pub fn image_of(fields: &[formats::HashEntry], now_ms: u64, thresholds: &Thresholds, out: &mut Vec<u8>) -> usize {
    let alive = || fields.iter().filter(|(.., deadline)| deadline.is_none_or(|deadline| deadline > now_ms));
    let count = alive().count();
    if count > 0 {
        let longest = alive().map(|(field, value, _)| field.len().max(value.len())).max().unwrap_or(0);
        let timed = alive().any(|(.., deadline)| deadline.is_some());
        let is_small = count <= thresholds.entries_max && longest <= thresholds.value_bytes_max;
        let form = match (is_small, timed) {
            (false, _) => Some(Form::Large),
            (true, true) => Some(Form::SmallWithDeadlines),
            (true, false) if count > PACKED_ELEMENTS_MAX || longest > PACKED_BYTES_MAX => Some(Form::Small),
            (true, false) => None,
        };
        put_head(form, timed, count, out);
        for (field, value, deadline) in alive() {
            put_bytes(field, out);
            put_bytes(value, out);
            if timed {
                put_deadline(*deadline, out);
            }
        }
    }
    fields.len() - count
}

pub(super) fn to_redis(entry: &Entry, shapes: &Shapes, now_ms: u64) -> formats::Value {
    let hash = hash(entry, shapes, now_ms);
    let fields = hash.iter().map(|(field, value)| {
        let name = field.scalar().bytes().into_owned();
        let deadline = hash.deadline(&name).flatten();
        (name, value.bytes().into_owned(), deadline)
    });
    formats::Value::Hash(fields.collect())
}

pub(super) fn digest(entry: &Entry, shapes: &Shapes, now_ms: u64, digest: &mut Digest) {
    let hash = hash(entry, shapes, now_ms);
    for (field, value) in hash.iter() {
        let name = field.scalar().bytes();
        let mut pair = Digest::default();
        pair.mix(&name);
        value.with_bytes(|bytes| pair.mix(bytes));
        if hash.deadline(&name).flatten().is_some() {
            pair.add(b"!!hexpire!!");
        }
        digest.add(pair.bytes());
    }
}
