//! An array reply of a command in slices. Its length is known at the end, and is written before the elements; still, a
//! long array is neither moved nor copied as a whole, which would block the worker's other clients. Knows nothing of
//! the elements.

use resp::{Protocol, Reply};

/// The elements so far, encoded.
#[derive(Default)]
pub(crate) struct SlicedArray {
    /// After space for the header, if it is long.
    bytes: Vec<u8>,
    header_len: usize,
}

/// The most bytes that are reserved for expected elements: if the first elements are much longer than the others, the
/// estimate is far too high, and counts as memory in use.
const RESERVED_MAX: usize = 256 * 1024 * 1024;

impl SlicedArray {
    /// Creates an array with room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> SlicedArray {
        SlicedArray { bytes: Vec::with_capacity(bytes), header_len: 0 }
    }

    /// A writer that appends elements.
    pub(crate) fn writer(&mut self, protocol: Protocol, bytes_max: usize) -> Reply<'_> {
        Reply::new(&mut self.bytes, protocol).limited(bytes_max)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when room was reserved.
    pub(crate) fn expects_more(&self) -> bool {
        self.header_len > 0
    }

    /// Reserves room after the first slice, which has written `elements` and visited `done` records, when there are
    /// `left` more.
    pub(crate) fn expect_more(&mut self, elements: usize, done: usize, left: usize, bytes_max: usize) {
        let with_the_rest = |part: usize| {
            let all = part as u128 * (done as u128 + left as u128) / done.max(1) as u128;
            usize::try_from(all).unwrap_or(usize::MAX)
        };
        let header = header(with_the_rest(elements));
        // Later elements may be longer.
        let expected = with_the_rest(self.bytes.len()).saturating_mul(3) / 2;
        let mut bytes = Vec::new();
        // If there is not so much memory, it grows as usual.
        let reserved = expected.min(bytes_max).min(RESERVED_MAX);
        let _ = bytes.try_reserve_exact(reserved.max(self.bytes.len()) + header.len());
        bytes.extend_from_slice(&header);
        bytes.append(&mut self.bytes);
        self.bytes = bytes;
        self.header_len = header.len();
    }

    /// Replies with all elements.
    pub(crate) fn send(mut self, elements: usize, reply: &mut Reply<'_>) {
        // The elements of one slice are not long.
        if !self.expects_more() {
            reply.array(elements);
            return reply.raw(&self.bytes);
        }
        let header = header(elements);
        match header.len() == self.header_len {
            true => self.bytes[..header.len()].copy_from_slice(&header),
            false => drop(self.bytes.splice(..self.header_len, header)),
        }
        reply.take_over(self.bytes);
    }
}

fn header(elements: usize) -> Vec<u8> {
    let mut header = Vec::new();
    Reply::new(&mut header, Protocol::Resp2).array(elements);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_elements_comes_first_whether_it_was_expected_or_not() {
        // As many as expected, more, fewer, and without reserved room.
        for (done, left, more) in [(3, 96, 7), (3, 5, 97), (3, 9000, 0), (0, 0, 5)] {
            let mut array = SlicedArray::default();
            let mut expected = format!("*{}\r\n", done + more);
            let add = |array: &mut SlicedArray, expected: &mut String, number: usize| {
                array.writer(Protocol::Resp2, usize::MAX).integer(number as i64);
                *expected += &format!(":{number}\r\n");
            };
            (0..done).for_each(|number| add(&mut array, &mut expected, number));
            if left > 0 {
                array.expect_more(done, done, left, usize::MAX);
            }
            (done..done + more).for_each(|number| add(&mut array, &mut expected, number));
            for before in ["", "+OK\r\n"] {
                let mut out = before.as_bytes().to_vec();
                let array = SlicedArray { bytes: array.bytes.clone(), header_len: array.header_len };
                array.send(done + more, &mut Reply::new(&mut out, Protocol::Resp2));
                assert_eq!(String::from_utf8_lossy(&out), format!("{before}{expected}"));
            }
        }
    }
}
