//! A whole set: as the bytes in snapshots and effects, as Redis's formats represent it, and as DEBUG DIGEST hashes it.
//! docs/effect-format.md describes the bytes.

use super::packed::fits;
use super::{Form, INTSET, INTSET_MEMBERS_MAX, MemberTable, PACKED, Thresholds, intset, longest, packed, set, whole};
use crate::digest::Digest;
use crate::encoding::{BadEffect, Reader, put_bytes, put_number, put_signed};
use crate::storage::Scalar;
use crate::types::{Entry, Object, Shapes};

/// How a set is stored. IMPORTANT: append only; journals on disk contain these numbers.
mod form {
    pub(super) const INTSET: u8 = 0;
    pub(super) const PACKED: u8 = 1;
    pub(super) const TABLE: u8 = 2;
    /// A table that is reported as a small set.
    pub(super) const SMALL_TABLE: u8 = 3;
}

pub(super) fn write(entry: &Entry, _: &Shapes, out: &mut Vec<u8>) {
    out.push(match (entry.kind(), super::form(entry)) {
        (INTSET, _) => form::INTSET,
        (PACKED, _) => form::PACKED,
        (_, Form::Small) => form::SMALL_TABLE,
        _ => form::TABLE,
    });
    let set = set(entry);
    put_number(set.len() as u64, out);
    for member in set.iter() {
        match member {
            Scalar::Number(number) if entry.kind() == INTSET => put_signed(number, out),
            member => member.with_bytes(|member| put_bytes(member, out)),
        }
    }
}

pub(super) fn check(reader: &mut Reader<'_>) -> Result<(), BadEffect> {
    let form = reader.byte()?;
    for _ in 0..reader.count_of_elements()? {
        match form {
            form::INTSET => drop(reader.signed()?),
            form::PACKED | form::TABLE | form::SMALL_TABLE => drop(reader.bytes()?),
            _ => return Err(BadEffect::OutOfRange),
        }
    }
    Ok(())
}

pub(super) fn read(name: &[u8], mut image: Reader<'_>, _: &mut Shapes, deadline: Option<u64>) -> Entry {
    const CHECKED: &str = "an image is checked before it is read";
    let form = image.byte().expect(CHECKED);
    let count = image.count_of_elements().expect(CHECKED);
    let table = if form == form::INTSET {
        let mut numbers: Vec<i64> = (0..count).map(|_| image.signed().expect(CHECKED)).collect();
        // No version writes them in another order, but bytes from a disk are not trusted.
        if !numbers.is_sorted_by(|a, b| a < b) {
            numbers.sort_unstable();
            numbers.dedup();
        }
        if numbers.len() <= INTSET_MEMBERS_MAX {
            return intset::create(name, &numbers, deadline);
        }
        MemberTable::of(numbers.into_iter().map(Scalar::Number), Form::Large)
    } else {
        // A reader is a position in the bytes: a copy of it reads them again.
        let members = || {
            let mut rest = image;
            (0..count).map(move |_| rest.bytes().expect(CHECKED))
        };
        if form == form::PACKED && fits(count, longest(members().map(<[u8]>::len))) {
            return packed::create(name, members().map(Scalar::Bytes), deadline).0;
        }
        let form = if form == form::TABLE { Form::Large } else { Form::Small };
        MemberTable::of(members().map(Scalar::Bytes), form)
    };
    Entry::with_object(name, Box::new(Object::Set(table)), deadline)
}

/// Appends the image of a whole set, each member once. Only whole numbers can have the form of an intset.
pub fn put_image(members: &[Scalar<'_>], form: Form, out: &mut Vec<u8>) {
    if form == Form::Intset {
        let mut numbers: Vec<i64> = members.iter().filter_map(|member| whole(*member)).collect();
        assert_eq!(numbers.len(), members.len(), "an intset has integers");
        numbers.sort_unstable();
        out.push(form::INTSET);
        put_number(numbers.len() as u64, out);
        numbers.iter().for_each(|number| put_signed(*number, out));
        return;
    }
    out.push(match form {
        Form::Small if fits(members.len(), longest(members.iter().map(|member| member.len()))) => form::PACKED,
        Form::Small => form::SMALL_TABLE,
        _ => form::TABLE,
    });
    put_number(members.len() as u64, out);
    members.iter().for_each(|member| member.with_bytes(|member| put_bytes(member, out)));
}

/// Appends the image of a set that came from Redis.
pub fn image_of(members: &formats::Texts, thresholds: &Thresholds, out: &mut Vec<u8>) {
    let members: Vec<Scalar<'_>> = members.iter().map(Scalar::Bytes).collect();
    put_image(&members, thresholds.grown_form(&members), out);
}

/// Appends the image of a set that Redis kept as a listpack: it stays small if it may have so many members, even if all
/// are integers or one is long, as in Redis.
pub fn image_of_small(members: &formats::Texts, thresholds: &Thresholds, out: &mut Vec<u8>) {
    let members: Vec<Scalar<'_>> = members.iter().map(Scalar::Bytes).collect();
    let form = if thresholds.allow_small(members.len(), 0) { Form::Small } else { Form::Large };
    put_image(&members, form, out);
}

pub(super) fn to_redis(entry: &Entry, _: &Shapes, _: u64) -> formats::Value {
    let set = set(entry);
    let mut members = formats::Texts::with_capacity(set.len(), 0);
    set.iter().for_each(|member| member.with_bytes(|member| members.push(member)));
    formats::Value::Set(members)
}

pub(super) fn digest(entry: &Entry, _: &Shapes, _: u64, digest: &mut Digest) {
    set(entry).iter().for_each(|member| member.with_bytes(|member| digest.add(member)));
}
