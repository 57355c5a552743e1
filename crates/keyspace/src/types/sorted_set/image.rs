//! A whole sorted set: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST
//! hashes it. docs/effect-format.md describes the bytes.

use super::change::fits_packed;
use super::{Form, Member, Scored, SortedSet, Thresholds, compare, in_order, packed, stored};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::types::{Entry, Object, Shapes};
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits};
use smallvec::SmallVec;

/// How a set is stored: packed, or a table of some form.
const FORMS: [(Option<Form>, u8); 3] = [(None, 0), (Some(Form::Small), 1), (Some(Form::Large), 2)];

/// Encodings of a score: a double, or an integer.
const SCORE_DOUBLE: u8 = 0;
const SCORE_NUMBER: u8 = 1;
/// Integers nearer to zero than this are exact as doubles.
const SCORE_NUMBER_MAX: f64 = (1_u64 << 53) as f64;

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    let form = match entry.object() {
        Some(Object::SortedSet(set)) => Some(set.form),
        _ => None,
    };
    put_form(form, out);
    let set = stored(entry);
    put_number(set.len() as u64, out);
    for member in set.iter() {
        member.name.with_bytes(|name| put_scored((member.score, name), out));
    }
}

fn put_form(form: Option<Form>, out: &mut Vec<u8>) {
    out.push(FORMS.iter().find(|(known, _)| *known == form).map_or(0, |(_, byte)| *byte));
}

fn form(reader: &mut Reader<'_>) -> Result<Option<Form>, BadEffect> {
    let byte = reader.byte()?;
    let form = FORMS.iter().find(|(_, known)| *known == byte);
    form.map(|(form, _)| *form).ok_or(BadEffect::OutOfRange)
}

/// Appends members as a list.
#[inline]
pub(super) fn put_members<'m>(count: usize, members: impl Iterator<Item = Scored<'m>>, out: &mut Vec<u8>) {
    put_number(count as u64, out);
    members.for_each(|member| put_scored(member, out));
}

/// Reads a list of members.
pub(super) fn take_members<'a>(reader: &mut Reader<'a>, mut take: impl FnMut(Scored<'a>)) -> Result<(), BadEffect> {
    for _ in 0..reader.count_of_elements()? {
        take((score(reader)?, reader.bytes()?));
    }
    Ok(())
}

fn put_scored((score, name): Scored<'_>, out: &mut Vec<u8>) {
    let is_negative_zero = score == 0.0 && score.is_sign_negative();
    if score.abs() < SCORE_NUMBER_MAX && score.trunc() == score && !is_negative_zero {
        out.push(SCORE_NUMBER);
        put_signed(score as i64, out);
    } else {
        out.push(SCORE_DOUBLE);
        out.extend_from_slice(&score.to_le_bytes());
    }
    put_bytes(name, out);
}

fn score(reader: &mut Reader<'_>) -> Result<f64, BadEffect> {
    let score = match reader.byte()? {
        SCORE_NUMBER => reader.signed()? as f64,
        SCORE_DOUBLE => f64::from_le_bytes(reader.array()?),
        _ => return Err(BadEffect::OutOfRange),
    };
    if score.is_nan() { Err(BadEffect::OutOfRange) } else { Ok(score) }
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    form(reader)?;
    take_members(reader, |_| {})
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    let form = form(&mut image).expect(CHECKED);
    let mut members = Vec::new();
    take_members(&mut image, |member| members.push(member)).expect(CHECKED);
    entry_of(name, &members, form, deadline)
}

/// Creates an entry for a whole set: a table of that form, or packed.
fn entry_of(name: &[u8], members: &[Scored<'_>], form: Option<Form>, deadline: Option<u64>) -> Entry {
    if form.is_some() || !fits_packed(members) {
        let set = SortedSet::from_members(members.iter().copied(), form.unwrap_or_default());
        return Entry::with_object(name, Box::new(Object::SortedSet(set)), deadline);
    }
    let is_ordered = members.is_sorted_by(|a, b| compare(*a, *b).is_lt());
    match is_ordered && !has_twins(members) {
        true => packed::create(name, members, deadline),
        // Such an image is never written, but bytes from a disk are not trusted.
        false => packed::create(name, &in_order(members), deadline),
    }
}

/// Appends the image of a whole set. Its members may be in any order; it is built much faster in the set's order.
pub fn put_image(members: &[Scored<'_>], thresholds: &Thresholds, out: &mut Vec<u8>) {
    let longest = members.iter().map(|(_, name)| name.len()).max().unwrap_or(0);
    let is_small = members.len() <= thresholds.entries_max && longest <= thresholds.value_bytes_max;
    put_form((!is_small).then_some(Form::Large), out);
    put_members(members.len(), members.iter().copied(), out);
}

/// Appends the image of a set that came from Redis.
pub fn image_of(members: &[formats::SortedSetEntry], thresholds: &Thresholds, out: &mut Vec<u8>) {
    let mut members: Vec<Scored<'_>> = members.iter().map(|(name, score)| (*score, &**name)).collect();
    members.sort_unstable_by(|a, b| compare(*a, *b));
    put_image(&members, thresholds, out);
}

/// Members as Redis's formats have them.
pub fn to_redis<'a>(members: impl Iterator<Item = Member<'a>>) -> formats::Value {
    formats::Value::SortedSet(members.map(|member| (member.name.into_bytes().into_owned(), member.score)).collect())
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    for member in stored(entry).iter() {
        let mut pair = Digest::default();
        member.name.with_bytes(|name| pair.mix(name));
        pair.mix(format_f64_in_17_digits(member.score, &mut [0; F64_CHARS_MAX]));
        digest.add(pair.bytes());
    }
}

/// True when two members have the same name.
fn has_twins(members: &[Scored<'_>]) -> bool {
    let mut names: SmallVec<[&[u8]; 128]> = members.iter().map(|(_, name)| *name).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}
