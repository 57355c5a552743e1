//! The length of a node in Redis's form, a listpack: `stream-node-max-bytes` counts these bytes, and clients can see
//! where nodes end. Knows lengths; refuses to write a listpack (`formats` does).

use crate::storage::Scalar;

/// The header of a listpack and its end.
pub(super) const FRAME_BYTES: u64 = 7;

/// The bytes of an element.
#[inline]
pub(super) fn element_bytes(element: Scalar<'_>) -> u64 {
    match element {
        Scalar::Number(number) => integer_bytes(number),
        Scalar::Bytes(text) => {
            let len = text.len() as u64;
            let data = len
                + match len {
                    0..64 => 1,
                    64..4096 => 2,
                    _ => 5,
                };
            data + back_length_bytes(data)
        }
    }
}

/// The bytes of an element that is a number.
#[inline]
pub(super) fn integer_bytes(number: i64) -> u64 {
    let data = match number {
        0..128 => 1,
        -4096..4096 => 2,
        -0x8000..0x8000 => 3,
        -0x80_0000..0x80_0000 => 4,
        -0x8000_0000..0x8000_0000 => 5,
        _ => 9,
    };
    data + 1
}

/// An element's length is repeated after it, for readers that go backwards.
fn back_length_bytes(data: u64) -> u64 {
    match data {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}
