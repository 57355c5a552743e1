//! Lists of field names that many records share, stored once. Knows names; refuses to know values.
//!
//! Millions of job records have the same dozen field names. A record with a *shape* stores only the shape's number and
//! its values. A list of names becomes a shape when it is seen for the second time, and is freed with its last
//! reference, so hashes whose field names all differ (ids, say) do not fill the memory with shapes.

use hashbrown::HashTable;
use std::hash::{BuildHasher, Hasher};

/// Lists with more names than this are not worth comparing.
pub(crate) const FIELDS_MAX: usize = 64;
/// Most shapes of one database and shard.
pub(crate) const SHAPES_MAX: usize = 1024;
/// How many lists that were seen once are remembered.
const CANDIDATES: usize = 256;

/// The number of a shape within one `Shapes`.
pub(crate) type ShapeId = u32;

/// One list of names, in order.
pub struct Shape {
    /// All names as bulk strings, ready for the wire.
    wire: Box<[u8]>,
    /// The start and length of each name in `wire`.
    spans: Box<[(u32, u32)]>,
    hash: u64,
    users: usize,
}

impl Shape {
    fn new<'a>(names: impl Iterator<Item = &'a [u8]>, hash: u64) -> Shape {
        let (mut wire, mut spans) = (Vec::new(), Vec::new());
        for name in names {
            wire.extend_from_slice(b"$");
            wire.extend_from_slice(itoa::Buffer::new().format(name.len()).as_bytes());
            wire.extend_from_slice(b"\r\n");
            spans.push((wire.len() as u32, name.len() as u32));
            wire.extend_from_slice(name);
            wire.extend_from_slice(b"\r\n");
        }
        Shape { wire: wire.into(), spans: spans.into(), hash, users: 0 }
    }

    /// How many names there are.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    #[inline]
    pub fn name(&self, index: usize) -> &[u8] {
        let (start, len) = self.spans[index];
        &self.wire[start as usize..(start + len) as usize]
    }

    /// The name as a bulk string for the wire.
    #[inline]
    pub fn wire_name(&self, index: usize) -> &[u8] {
        let begin = match index {
            0 => 0,
            _ => {
                let (start, len) = self.spans[index - 1];
                (start + len + 2) as usize
            }
        };
        let (start, len) = self.spans[index];
        &self.wire[begin..(start + len + 2) as usize]
    }

    /// The position of `name` in the list.
    #[inline]
    pub fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.spans.iter().position(|(start, len)| {
            *len as usize == name.len() && &self.wire[*start as usize..*start as usize + name.len()] == name
        })
    }

    fn names(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|index| self.name(index))
    }
}

/// The shapes of one database and shard.
#[derive(Default)]
pub struct Shapes {
    shapes: Vec<Option<Shape>>,
    free: Vec<ShapeId>,
    by_names: HashTable<ShapeId>,
    /// Hashes of lists that were seen once, by their low bits. Empty until the first list is seen.
    candidates: Vec<u64>,
}

impl Shapes {
    /// Acquires the shape of these names, if there is one or the list was seen before. The caller drops the reference
    /// with [`Shapes::release`].
    pub fn acquire(&mut self, names: &[&[u8]]) -> Option<ShapeId> {
        let found = self.find(names.iter().copied());
        self.take(found)
    }

    /// Acquires the shape of another shape's names followed by `more`.
    pub fn acquire_with(&mut self, id: ShapeId, more: &[&[u8]]) -> Option<ShapeId> {
        let found = self.find(self.shape(id).names().chain(more.iter().copied()));
        self.take_known(found)
    }

    /// Acquires the shape of another shape's names without one.
    pub fn acquire_without(&mut self, id: ShapeId, index: usize) -> Option<ShapeId> {
        let names = self.shape(id).names().enumerate().filter(|(at, _)| *at != index);
        let found = self.find(names.map(|(_, name)| name));
        self.take_known(found)
    }

    /// Looks up a list of names.
    fn find<'n>(&self, names: impl Iterator<Item = &'n [u8]> + Clone) -> Found {
        if names.clone().nth(FIELDS_MAX).is_some() {
            return Found::TooLong;
        }
        let hash = hash_of(names.clone());
        let same = |id: &ShapeId| {
            self.shapes[*id as usize]
                .as_ref()
                .is_some_and(|shape| shape.hash == hash && shape.names().eq(names.clone()))
        };
        if let Some(id) = self.by_names.find(hash, same) {
            return Found::Shape(*id);
        }
        let seen = self.candidates.get(hash as usize % CANDIDATES) == Some(&hash);
        match seen && self.by_names.len() < SHAPES_MAX {
            true => Found::SeenBefore(Shape::new(names, hash)),
            false => Found::New(hash),
        }
    }

    /// As `take`, but does not record a new list as seen: that happens when the record is packed again with it.
    fn take_known(&mut self, found: Found) -> Option<ShapeId> {
        if matches!(found, Found::New(_)) { None } else { self.take(found) }
    }

    /// Adds a reference to the shape that was found.
    fn take(&mut self, found: Found) -> Option<ShapeId> {
        match found {
            Found::TooLong => None,
            Found::Shape(id) => {
                self.shape_mut(id).users += 1;
                Some(id)
            }
            Found::SeenBefore(shape) => Some(self.add(shape)),
            Found::New(hash) => {
                if self.candidates.is_empty() {
                    self.candidates.resize(CANDIDATES, 0);
                }
                self.candidates[hash as usize % CANDIDATES] = hash;
                None
            }
        }
    }

    /// Adds a shape, with its first user.
    fn add(&mut self, mut shape: Shape) -> ShapeId {
        shape.users = 1;
        let hash = shape.hash;
        let id = self.free.pop().unwrap_or(self.shapes.len() as ShapeId);
        match self.shapes.get_mut(id as usize) {
            Some(slot) => *slot = Some(shape),
            None => self.shapes.push(Some(shape)),
        }
        let shapes = &self.shapes;
        self.by_names.insert_unique(hash, id, |id| shapes[*id as usize].as_ref().map_or(0, |shape| shape.hash));
        id
    }

    /// Drops a reference to a shape; the shape is freed with the last one.
    pub fn release(&mut self, id: ShapeId) {
        let shape = self.shape_mut(id);
        shape.users -= 1;
        if shape.users > 0 {
            return;
        }
        let hash = shape.hash;
        if let Ok(found) = self.by_names.find_entry(hash, |other| *other == id) {
            found.remove();
        }
        self.shapes[id as usize] = None;
        self.free.push(id);
    }

    #[inline]
    pub fn shape(&self, id: ShapeId) -> &Shape {
        self.shapes[id as usize].as_ref().expect("a record's shape lives as long as the record")
    }

    pub fn heap_bytes(&self) -> usize {
        let shapes = self.shapes.iter().flatten().map(|shape| shape.wire.len() + shape.spans.len() * 8).sum::<usize>();
        shapes + self.shapes.capacity() * size_of::<Option<Shape>>() + self.candidates.capacity() * 8
    }

    /// How many shapes have users.
    #[cfg(test)]
    pub fn in_use(&self) -> usize {
        self.by_names.len()
    }

    fn shape_mut(&mut self, id: ShapeId) -> &mut Shape {
        self.shapes[id as usize].as_mut().expect("a record's shape lives as long as the record")
    }
}

/// The result of looking up a list of names.
enum Found {
    Shape(ShapeId),
    /// Seen once before, with its shape to add.
    SeenBefore(Shape),
    New(u64),
    TooLong,
}

fn hash_of<'n>(names: impl Iterator<Item = &'n [u8]>) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    for name in names {
        hasher.write(name);
        hasher.write_u8(0xff);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_becomes_a_shape_the_second_time_and_goes_with_its_last_user() {
        let mut shapes = Shapes::default();
        let names: &[&[u8]] = &[b"state", b"worker"];
        assert_eq!(shapes.acquire(names), None);
        let id = shapes.acquire(names).expect("seen twice");
        assert_eq!(shapes.acquire(names), Some(id));
        let shape = shapes.shape(id);
        assert_eq!(
            (shape.index_of(b"worker"), shape.index_of(b"work"), shape.name(0)),
            (Some(1), None, b"state".as_slice())
        );
        assert_eq!(
            (shape.wire_name(0), shape.wire_name(1)),
            (b"$5\r\nstate\r\n".as_slice(), b"$6\r\nworker\r\n".as_slice())
        );
        shapes.release(id);
        shapes.release(id);
        assert!(shapes.by_names.is_empty());
        assert_eq!(shapes.acquire(names), Some(id), "still remembered as seen");
    }

    #[test]
    fn a_longer_or_shorter_list_is_unseen_until_a_record_is_packed_with_it() {
        let mut shapes = Shapes::default();
        let names: &[&[u8]] = &[b"state", b"worker"];
        let id = (shapes.acquire(names), shapes.acquire(names)).1.expect("seen twice");
        for _ in 0..3 {
            assert_eq!(shapes.acquire_with(id, &[b"lease"]), None);
            assert_eq!(shapes.acquire_without(id, 0), None);
        }
        assert_eq!(shapes.acquire(&[b"state", b"worker", b"lease"]), None, "this is the first record with it");
        assert!(shapes.acquire_with(id, &[b"lease"]).is_some(), "and this the second");
        assert_eq!(shapes.in_use(), 2);
    }

    #[test]
    fn the_order_of_names_counts_and_their_borders_too() {
        let mut shapes = Shapes::default();
        let lists: [&[&[u8]]; 3] = [&[b"ab", b"c"], &[b"a", b"bc"], &[b"c", b"ab"]];
        let ids: Vec<_> = lists.iter().map(|names| (shapes.acquire(names), shapes.acquire(names)).1).collect();
        assert_eq!(ids, [Some(0), Some(1), Some(2)]);
    }
}
