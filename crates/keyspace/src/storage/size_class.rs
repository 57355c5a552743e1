//! The real sizes of allocations. Knows jemalloc's size classes; refuses to know what the memory is for.

/// Bytes of an ordered deadline of one key: a pair of numbers in a tree that is about two thirds full.
pub const DEADLINE_BYTES: usize = 24;

/// The real size of an allocation of this size: jemalloc's classes, four to a doubling.
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
}
