//! A small hash as one run of bytes. Knows the layout; refuses to know commands and deadlines.
//!
//! ```text
//! shape                          the record's field names are those of the shape, in order
//!     value value …
//! u8 PLAIN, u16 count            the names are here
//!     name value name value …
//! ```
//! The number of a shape takes one byte if it is small, as nearly all are, otherwise two: see `shape_head`. A name or
//! value is one item: see `storage::item`.

use super::PACKED;
use crate::storage::Scalar;
use crate::storage::item::{item_is, item_len, read_item, replace_item, write_item};
use crate::storage::shapes::{FIELDS_MAX, SHAPES_MAX, Shape, ShapeId, Shapes};
use crate::types::Entry;
use smallvec::SmallVec;

const PLAIN: u8 = u8::MAX;
const PLAIN_HEADER: usize = 3;
/// Shape numbers from this one on take two bytes.
const LONG_SHAPE: u8 = 251;
const _: () =
    assert!(SHAPES_MAX <= LONG_SHAPE as usize + (PLAIN - LONG_SHAPE) as usize * 256, "every shape has a head");

/// Field names and values, as commands give them.
pub type Pair<'a> = (&'a [u8], &'a [u8]);

/// A readable packed hash.
#[derive(Clone, Copy)]
pub struct Packed<'a> {
    items: &'a [u8],
    names: Names<'a>,
}

#[derive(Clone, Copy)]
enum Names<'a> {
    Shared(&'a Shape),
    Here { count: usize },
}

impl<'a> Packed<'a> {
    #[inline]
    pub fn new(body: &'a [u8], shapes: &'a Shapes) -> Packed<'a> {
        match shape_id(body) {
            Some((id, head)) => Packed { items: &body[head..], names: Names::Shared(shapes.shape(id)) },
            None => Packed { items: &body[PLAIN_HEADER..], names: Names::Here { count: plain_count(body) } },
        }
    }

    /// How many fields there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self.names {
            Names::Shared(shape) => shape.len(),
            Names::Here { count } => count,
        }
    }

    /// A packed hash is never empty; a key without fields is deleted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field.
    #[inline]
    pub fn get(&self, field: &[u8]) -> Option<Scalar<'a>> {
        self.find(field).map(|(_, at)| read_item(&self.items[at..]).0)
    }

    /// The values of several fields, found in one pass.
    pub fn get_each<const N: usize>(&self, fields: [Option<&[u8]>; N]) -> [Option<Scalar<'a>>; N] {
        let Names::Shared(shape) = self.names else { return fields.map(|field| self.get(field?)) };
        let mut values = [None; N];
        // Which field is where, in the order of the record.
        let mut wanted: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (number, field) in fields.into_iter().enumerate() {
            let Some(index) = field.and_then(|field| shape.index_of(field)) else { continue };
            let before = wanted.iter().take_while(|(other, _)| *other < index).count();
            wanted.insert(before, (index, number));
        }
        let (mut index, mut at) = (0, 0);
        for (next, number) in wanted {
            while index < next {
                at += item_len(&self.items[at..]);
                index += 1;
            }
            values[number] = Some(read_item(&self.items[at..]).0);
        }
        values
    }

    /// All fields in insertion order.
    pub fn iter(&self) -> PackedIter<'a> {
        PackedIter { rest: self.items, names: self.names, index: 0 }
    }

    /// The field's position in the list, and where its value begins in `items`.
    #[inline]
    fn find(&self, field: &[u8]) -> Option<(usize, usize)> {
        match self.names {
            Names::Shared(shape) => {
                let index = shape.index_of(field)?;
                let mut at = 0;
                for _ in 0..index {
                    at += item_len(&self.items[at..]);
                }
                Some((index, at))
            }
            Names::Here { count } => {
                let mut at = 0;
                for index in 0..count {
                    let value_at = at + item_len(&self.items[at..]);
                    if item_is(&self.items[at..], field) {
                        return Some((index, value_at));
                    }
                    at = value_at + item_len(&self.items[value_at..]);
                }
                None
            }
        }
    }
}

/// A field's name as it is stored.
#[derive(Clone, Copy)]
pub struct FieldName<'a> {
    name: Scalar<'a>,
    wire: Option<&'a [u8]>,
}

impl<'a> FieldName<'a> {
    /// A name outside of a packed hash.
    pub fn plain(name: &'a [u8]) -> FieldName<'a> {
        FieldName { name: Scalar::Bytes(name), wire: None }
    }

    /// The name as a scalar.
    pub fn scalar(self) -> Scalar<'a> {
        self.name
    }

    /// The name encoded as a bulk string, if it is from a shape: see [`Shape::wire_name`].
    #[inline]
    pub fn framed(self) -> Option<&'a [u8]> {
        self.wire
    }
}

/// Fields and values of a packed hash, in order.
pub struct PackedIter<'a> {
    rest: &'a [u8],
    names: Names<'a>,
    index: usize,
}

impl<'a> Iterator for PackedIter<'a> {
    type Item = (FieldName<'a>, Scalar<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let name = match self.names {
            Names::Shared(shape) => {
                FieldName { name: Scalar::Bytes(shape.name(self.index)), wire: Some(shape.wire_name(self.index)) }
            }
            Names::Here { .. } => {
                let (name, len) = read_item(self.rest);
                self.rest = &self.rest[len..];
                FieldName { name, wire: None }
            }
        };
        let (value, len) = read_item(self.rest);
        self.rest = &self.rest[len..];
        self.index += 1;
        Some((name, value))
    }
}

/// Creates an entry with `fields`, whose names all differ.
pub fn create(name: &[u8], fields: &[Pair<'_>], shapes: &mut Shapes, deadline: Option<u64>) -> Entry {
    let mut body = Vec::with_capacity(fields.iter().map(|(field, value)| field.len() + value.len() + 4).sum());
    write_all(&mut body, fields, shapes);
    Entry::new(name, PACKED, &body, deadline)
}

/// Sets fields of a packed hash and returns how many are new. Of several pairs with one name the last one wins.
pub fn set(entry: &mut Entry, fields: &[Pair<'_>], shapes: &mut Shapes) -> usize {
    let mut fresh: SmallVec<[Pair<'_>; 16]> = SmallVec::new();
    for (field, value) in fields {
        let packed = Packed::new(entry.body(), shapes);
        match packed.find(field) {
            Some((_, at)) => {
                let start = entry.body().len() - packed.items.len() + at;
                let old_len = item_len(&packed.items[at..]);
                replace_item(entry, start, old_len, Scalar::of(value));
            }
            None => match fresh.iter_mut().find(|(name, _)| name == field) {
                Some(pair) => pair.1 = value,
                None => fresh.push((*field, *value)),
            },
        }
    }
    if !fresh.is_empty() {
        add(entry, &fresh, shapes);
    }
    fresh.len()
}

/// Removes a field and returns whether it existed. The last field is not removed: the caller removes the key.
pub fn remove(entry: &mut Entry, field: &[u8], shapes: &mut Shapes) -> bool {
    let packed = Packed::new(entry.body(), shapes);
    let Some((index, at)) = packed.find(field) else { return false };
    assert!(packed.len() > 1, "the owner removes a key with its last field");
    if let Names::Here { count } = packed.names {
        let value_end = PLAIN_HEADER + at + item_len(&packed.items[at..]);
        let mut name_at = 0;
        for _ in 0..index {
            name_at += item_len(&packed.items[name_at..]);
            name_at += item_len(&packed.items[name_at..]);
        }
        entry.splice_body(PLAIN_HEADER + name_at..value_end, &[]);
        set_plain_count(entry, count - 1);
        return true;
    }
    if let Some((id, head)) = shape_id(entry.body())
        && let Some(smaller) = shapes.acquire_without(id, index)
    {
        let packed = Packed::new(entry.body(), shapes);
        let (start, len) = (head + at, item_len(&packed.items[at..]));
        entry.splice_body(start..start + len, &[]);
        reshape(entry, id, smaller, shapes);
        return true;
    }
    rewrite(entry, shapes, |fields| {
        fields.remove(index);
    });
    true
}

/// Changes the record's shape.
fn reshape(entry: &mut Entry, from: ShapeId, to: ShapeId, shapes: &mut Shapes) {
    entry.splice_body(0..shape_head(from).len(), &shape_head(to));
    shapes.release(from);
}

/// Releases the shape that the entry's body refers to. Called once, before the entry is dropped or its body replaced.
pub fn release(body: &[u8], shapes: &mut Shapes) {
    if let Some((id, _)) = shape_id(body) {
        shapes.release(id);
    }
}

/// Appends fields that are not there yet.
fn add(entry: &mut Entry, fresh: &[Pair<'_>], shapes: &mut Shapes) {
    let packed = Packed::new(entry.body(), shapes);
    let count = packed.len() + fresh.len();
    if let Names::Here { .. } = packed.names
        && count > FIELDS_MAX
    {
        // Too many fields for a shape, before and after: append at the end.
        let mut tail = Vec::with_capacity(fresh.iter().map(|(field, value)| field.len() + value.len() + 10).sum());
        for (field, value) in fresh {
            write_item(&mut tail, Scalar::of(field));
            write_item(&mut tail, Scalar::of(value));
        }
        let end = entry.body().len();
        entry.splice_body(end..end, &tail);
        set_plain_count(entry, count);
        return;
    }
    if let Some((id, _)) = shape_id(entry.body()) {
        let names: SmallVec<[&[u8]; 16]> = fresh.iter().map(|(field, _)| *field).collect();
        if let Some(larger) = shapes.acquire_with(id, &names) {
            // The existing values do not move; the new ones are appended.
            let mut tail = Vec::with_capacity(fresh.iter().map(|(_, value)| value.len() + 5).sum());
            fresh.iter().for_each(|(_, value)| write_item(&mut tail, Scalar::of(value)));
            let end = entry.body().len();
            entry.splice_body(end..end, &tail);
            reshape(entry, id, larger, shapes);
            return;
        }
    }
    rewrite(entry, shapes, |fields| {
        fields.extend(fresh.iter().map(|(field, value)| (field.to_vec(), value.to_vec())));
    });
}

/// Unpacks all fields, lets `change` edit the list, and packs it again.
fn rewrite(entry: &mut Entry, shapes: &mut Shapes, change: impl FnOnce(&mut Vec<(Vec<u8>, Vec<u8>)>)) {
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Packed::new(entry.body(), shapes)
        .iter()
        .map(|(name, value)| (name.scalar().bytes().into_owned(), value.bytes().into_owned()))
        .collect();
    change(&mut fields);
    let pairs: SmallVec<[Pair<'_>; 16]> =
        fields.iter().map(|(field, value)| (field.as_slice(), value.as_slice())).collect();
    release(entry.body(), shapes);
    let mut body = Vec::new();
    write_all(&mut body, &pairs, shapes);
    entry.set_body(PACKED, &body);
}

fn write_all(body: &mut Vec<u8>, fields: &[Pair<'_>], shapes: &mut Shapes) {
    let names: SmallVec<[&[u8]; 32]> = fields.iter().map(|(field, _)| *field).collect();
    match shapes.acquire(&names) {
        Some(id) => {
            body.extend_from_slice(&shape_head(id));
            for (_, value) in fields {
                write_item(body, Scalar::of(value));
            }
        }
        None => {
            body.push(PLAIN);
            body.extend_from_slice(&u16::try_from(fields.len()).expect("small hashes are small").to_le_bytes());
            for (field, value) in fields {
                write_item(body, Scalar::of(field));
                write_item(body, Scalar::of(value));
            }
        }
    }
}

/// The number of the body's shape, and its length in bytes.
#[inline]
fn shape_id(body: &[u8]) -> Option<(ShapeId, usize)> {
    match body[0] {
        id @ 0..LONG_SHAPE => Some((ShapeId::from(id), 1)),
        PLAIN => None,
        high => Some((ShapeId::from(LONG_SHAPE) + (ShapeId::from(high - LONG_SHAPE) << 8) + ShapeId::from(body[1]), 2)),
    }
}

/// Encodes the number of a shape.
fn shape_head(id: ShapeId) -> SmallVec<[u8; 2]> {
    match id.checked_sub(ShapeId::from(LONG_SHAPE)) {
        None => SmallVec::from_slice(&[id as u8]),
        Some(rest) => SmallVec::from_slice(&[LONG_SHAPE + (rest >> 8) as u8, rest as u8]),
    }
}

fn plain_count(body: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([body[1], body[2]]))
}

fn set_plain_count(entry: &mut Entry, count: usize) {
    let count = u16::try_from(count).expect("small hashes are small");
    entry.body_mut()[1..PLAIN_HEADER].copy_from_slice(&count.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(entry: &Entry, shapes: &Shapes) -> Vec<(Vec<u8>, Vec<u8>)> {
        let packed = Packed::new(entry.body(), shapes);
        let fields: Vec<_> = packed
            .iter()
            .map(|(name, value)| (name.scalar().bytes().into_owned(), value.bytes().into_owned()))
            .collect();
        assert_eq!(fields.len(), packed.len());
        fields
    }

    #[test]
    fn items_read_back_as_written() {
        let long = vec![b'x'; 70_000];
        let lengths = [0, 1, 127, 128, 239, 255, 256, 65_535, 65_536, long.len()];
        let mut scalars: Vec<_> = lengths.map(|len| Scalar::Bytes(&long[..len])).to_vec();
        scalars.extend((-130..130).map(Scalar::Number));
        for shift in 0..64 {
            for number in [1i64 << shift, (1i64 << shift).wrapping_neg(), (1i64 << shift).wrapping_sub(1)] {
                scalars.push(Scalar::Number(number));
            }
        }
        for scalar in scalars {
            let mut item = Vec::new();
            write_item(&mut item, scalar);
            let written = item.len();
            // Whatever follows, also nothing.
            for behind in [&[][..], &[9], &[0xff; 12]] {
                item.truncate(written);
                item.extend_from_slice(behind);
                assert_eq!((read_item(&item), item_len(&item)), ((scalar, written), written));
            }
        }
        for (text, len) in [("1700000000000", 7), ("0", 1), ("111", 1), ("112", 2), ("-1", 2), ("128", 3)] {
            let mut item = Vec::new();
            write_item(&mut item, Scalar::of(text.as_bytes()));
            assert_eq!(item.len(), len, "{text}");
        }
    }

    #[test]
    fn every_shape_has_a_head_of_its_own() {
        for id in 0..SHAPES_MAX as ShapeId {
            let mut body = shape_head(id);
            let len = body.len();
            body.push(9);
            assert_eq!((shape_id(&body), len), (Some((id, len)), if id < 251 { 1 } else { 2 }));
        }
    }

    /// More shapes than one byte can number: records move from one to the next as they gain and lose fields.
    #[test]
    fn records_of_many_shapes_agree_with_a_list() {
        let mut shapes = Shapes::default();
        let name = |number: usize| format!("field-{number}").into_bytes();
        let mut entries = Vec::new();
        for number in 0..600 {
            for twin in 0..2 {
                let mut entry = create(b"k", &[(b"a", b"1"), (&name(number), b"2")], &mut shapes, None);
                set(&mut entry, &[(b"z", b"3")], &mut shapes);
                if number % 3 == 0 {
                    assert!(remove(&mut entry, &name(number), &mut shapes));
                }
                entries.push((number, twin, entry));
            }
        }
        assert!(shapes.in_use() > 300, "{}", shapes.in_use());
        for (number, twin, entry) in &entries {
            let mut expected = vec![(b"a".to_vec(), b"1".to_vec()), (name(*number), b"2".to_vec())];
            expected.push((b"z".to_vec(), b"3".to_vec()));
            if number % 3 == 0 {
                expected.remove(1);
            }
            assert_eq!(fields(entry, &shapes), expected, "{number}, {twin}");
        }
        entries.iter().for_each(|(.., entry)| release(entry.body(), &mut shapes));
        assert_eq!(shapes.in_use(), 0, "every shape is given back exactly once");
    }

    #[test]
    fn random_changes_agree_with_a_list() {
        let seed = 23;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut shapes = Shapes::default();
        for round in 0..300 {
            let names = if round % 3 == 0 { 90 } else { 9 };
            let value = |random: &mut fastrand::Rng| match random.u8(..4) {
                0 => random.i64(..).to_string().into_bytes(),
                1 => vec![b'v'; random.usize(..300)],
                _ => random.u8(..).to_string().into_bytes(),
            };
            let first = value(&mut random);
            let mut entry = create(b"k", &[(b"first", &first)], &mut shapes, None);
            let mut model = vec![(b"first".to_vec(), first)];
            for _ in 0..120 {
                let name = format!("f{}", random.u32(..names)).into_bytes();
                let at = model.iter().position(|(field, _)| *field == name);
                if random.u8(..3) > 0 {
                    let value = value(&mut random);
                    assert_eq!(set(&mut entry, &[(&name, &value)], &mut shapes), usize::from(at.is_none()));
                    match at {
                        Some(at) => model[at].1 = value,
                        None => model.push((name, value)),
                    }
                } else if model.len() > 1 || at.is_none() {
                    assert_eq!(remove(&mut entry, &name, &mut shapes), at.is_some());
                    at.map(|at| model.remove(at));
                }
                assert_eq!(fields(&entry, &shapes), model, "seed {seed}");
            }
            for (name, value) in &model {
                assert_eq!(Packed::new(entry.body(), &shapes).get(name).unwrap().bytes(), *value);
            }
            release(entry.body(), &mut shapes);
        }
        assert_eq!(shapes.in_use(), 0, "every shape is given back exactly once");
    }

    #[test]
    fn a_name_that_comes_twice_is_one_field() {
        let mut shapes = Shapes::default();
        let mut entry = create(b"k", &[(b"a", b"1")], &mut shapes, None);
        assert_eq!(set(&mut entry, &[(b"b", b"2"), (b"a", b"3"), (b"b", b"4")], &mut shapes), 1);
        assert_eq!(fields(&entry, &shapes), [(b"a".to_vec(), b"3".to_vec()), (b"b".to_vec(), b"4".to_vec())]);
    }

    #[test]
    fn records_of_one_shape_do_not_store_the_names_again() {
        let mut shapes = Shapes::default();
        let record: &[Pair<'_>] = &[(b"state", b"pending"), (b"updated_at", b"1700000000000"), (b"worker", b"w-1")];
        let first = create(b"a", record, &mut shapes, None);
        let second = create(b"b", record, &mut shapes, None);
        assert_eq!(second.body().len(), 1 + 8 + 7 + 4);
        assert!(first.body().len() > second.body().len() + 21);
        assert_eq!(fields(&first, &shapes), fields(&second, &shapes));
    }
}
