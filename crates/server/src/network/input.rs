//! Bytes of requests that could not be executed yet. Knows where they begin in their buffer; refuses to know what they
//! mean.

/// The input of a connection. Executed bytes stay at the front until they are half of the buffer: a pipeline of a
/// megabyte is executed in many turns, and not moved in each of them.
#[derive(Default)]
pub(super) struct Input {
    buffer: Vec<u8>,
    /// Where the remaining bytes begin. Less than the length of the buffer, unless that is empty.
    at: usize,
}

impl Input {
    /// Copies `bytes` into a buffer of exactly their size.
    pub(super) fn copy_of(bytes: &[u8]) -> Input {
        Input { buffer: bytes.to_vec(), at: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.buffer.len() - self.at
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    /// Bytes of memory.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Appends bytes without reserving more memory than needed.
    pub(super) fn extend_exact(&mut self, bytes: &[u8]) {
        self.buffer.reserve_exact(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Inserts bytes before all others.
    pub(super) fn put_first(&mut self, bytes: &[u8]) {
        self.buffer.splice(..self.at, bytes.iter().copied());
        self.at = 0;
    }

    /// The buffer, for a read that appends to it. The remaining bytes are moved to its start.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        &mut self.buffer
    }

    /// Drops the first `len` bytes. If the buffer is much too large for the rest, shrinks it.
    pub(super) fn consume(&mut self, len: usize) {
        self.at += len;
        let left = self.len();
        if left == 0 {
            *self = Input::default();
        } else if left < self.buffer.capacity() / 4 {
            *self = Input::copy_of(self.bytes());
        } else if self.at > self.buffer.len() / 2 {
            self.buffer();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consumed_bytes_are_gone_whatever_the_buffer_does() {
        let all: Vec<u8> = (0..=255).cycle().take(10_000).collect();
        for step in [1, 7, 100, 2_499, 4_999, 9_999, 10_000] {
            let (mut input, mut at) = (Input::copy_of(&all), 0);
            while !input.is_empty() {
                assert_eq!(input.bytes(), &all[at..], "step {step}");
                let len = step.min(input.len());
                input.consume(len);
                at += len;
            }
            assert_eq!((at, input.len(), input.capacity()), (all.len(), 0, 0));
        }
    }

    #[test]
    fn more_is_appended_after_the_remaining_bytes() {
        let mut input = Input::copy_of(b"abcdef");
        input.consume(2);
        input.extend_exact(b"gh");
        assert_eq!(input.bytes(), b"cdefgh");
        input.buffer().push(b'i');
        assert_eq!((input.bytes(), input.len()), (&b"cdefghi"[..], 7));
    }

    #[test]
    fn bytes_put_first_replace_consumed_ones() {
        let mut input = Input::copy_of(b"abcdef");
        input.consume(2);
        input.put_first(b"12345");
        assert_eq!((input.bytes(), input.len()), (&b"12345cdef"[..], 9));
        let mut input = Input::default();
        input.put_first(b"12");
        assert_eq!((input.bytes(), input.is_empty()), (&b"12"[..], false));
    }

    /// Bytes are moved when half of the buffer was executed: not more often, however short turns are.
    #[test]
    fn a_long_input_is_moved_rarely() {
        let len = 1_000_000;
        let mut input = Input::copy_of(&vec![0; len]);
        let mut moves = 0;
        while !input.is_empty() {
            let at = input.at;
            input.consume(100.min(input.len()));
            moves += usize::from(input.at < at);
        }
        assert!(moves < 20, "{moves}");
    }
}
