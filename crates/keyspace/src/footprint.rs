//! How much memory a key takes. Knows sizes; refuses to know who asks.

use super::entry::Entry;
use super::object::Object;

/// What an index of deadlines pays for one key: a pair of numbers in a tree that is about two thirds full.
pub const DEADLINE_BYTES: usize = 24;

/// A key's share of its table. Segments have 128 slots of nine bytes (a pointer and a tag) and hold 56 to 112
/// entries, 81 on average; with the segment's own header and its place in the directory that is fifteen bytes a key,
/// whatever the size of the table.
pub const TABLE_SHARE_BYTES: usize = 15;

/// Bytes that a key and its value take, tables and indexes included. Of a large value `samples` elements are looked
/// at and the rest is assumed to be like them.
pub fn bytes_of(entry: &Entry, samples: usize) -> usize {
    let value = match entry.object() {
        None => 0,
        Some(object) => size_class(size_of::<Object>()) + object_bytes(object, samples),
    };
    let deadline = if entry.deadline().is_some() { DEADLINE_BYTES } else { 0 };
    size_class(entry.heap_bytes()) + value + deadline + TABLE_SHARE_BYTES
}

fn object_bytes(object: &Object, samples: usize) -> usize {
    match object {
        Object::Bytes(bytes) => size_class(bytes.capacity()),
        Object::Hash(table) => table.heap_bytes(samples),
        Object::SortedSet(set) => set.heap_bytes(samples),
    }
}

/// What the allocator really hands out for a request of this size: jemalloc's classes, four to a doubling.
pub fn size_class(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=8 => 8,
        9..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of(bytes.next_power_of_two() / 8),
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::Kind;
    use super::*;

    #[test]
    fn size_classes_are_those_of_jemalloc() {
        let classes = [
            (1, 8),
            (9, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (256, 256),
            (257, 320),
            (512, 512),
            (513, 640),
            (1024, 1024),
            (1025, 1280),
            (4097, 5120),
            (14_337, 16_384),
        ];
        for (asked, given) in classes {
            assert_eq!(size_class(asked), given, "{asked}");
        }
    }

    #[test]
    fn a_small_key_costs_little_and_a_deadline_a_little_more() {
        let plain = bytes_of(&Entry::new(b"k", Kind::Text, b"v", None), 5);
        let timed = bytes_of(&Entry::new(b"k", Kind::Text, b"v", Some(1)), 5);
        assert!(plain < 64 && plain < timed, "{plain} {timed}");
        let long = Entry::with_object(b"k", Box::new(Object::Bytes(vec![0; 100_000])), None);
        assert!((100_000..120_000).contains(&bytes_of(&long, 5)));
    }
}
