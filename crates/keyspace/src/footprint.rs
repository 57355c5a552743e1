//! How much memory a key takes. Knows sizes; refuses to know what the figures are for.

use crate::storage::size_class::{DEADLINE_BYTES, size_class};
use crate::types::{Entry, Object, ValueType};

/// A key's share of its table. Segments have 128 slots of nine bytes (a pointer and a tag) and hold 56 to 112 entries,
/// 81 on average; with the segment's header and its directory slot that is fifteen bytes per key, whatever the size of
/// the table.
pub const TABLE_SHARE_BYTES: usize = 15;

/// Estimates the bytes of a key and its value, including tables and indexes. For a large value, `samples` elements are
/// measured and extrapolated.
pub fn bytes_of(entry: &Entry, samples: usize) -> usize {
    let value = match entry.object() {
        None => 0,
        Some(object) => size_class(size_of::<Object>()) + (ValueType::of(entry).heap_bytes)(object, samples),
    };
    let deadline = if entry.deadline().is_some() { DEADLINE_BYTES } else { 0 };
    size_class(entry.heap_bytes()) + value + deadline + TABLE_SHARE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::string::TEXT;

    #[test]
    fn a_small_key_costs_little_and_a_deadline_a_little_more() {
        let plain = bytes_of(&Entry::new(b"k", TEXT, b"v", None), 5);
        let timed = bytes_of(&Entry::new(b"k", TEXT, b"v", Some(1)), 5);
        assert!(plain < 64 && plain < timed, "{plain} {timed}");
        let long = Entry::with_object(b"k", Box::new(Object::Bytes(vec![0; 100_000])), None);
        assert!((100_000..120_000).contains(&bytes_of(&long, 5)));
    }
}
