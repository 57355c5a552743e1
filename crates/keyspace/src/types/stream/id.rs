//! The id of an entry: milliseconds and a number among the entries of one millisecond. Knows the order of ids; refuses
//! to know how clients may abbreviate them.

/// The id of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    pub ms: u64,
    pub seq: u64,
}

impl StreamId {
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    pub const fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// The next id; `None` after the last.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => self.ms.checked_add(1).map(|ms| StreamId { ms, seq: 0 }),
        }
    }

    /// The previous id; `None` before the first.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => self.ms.checked_sub(1).map(|ms| StreamId { ms, seq: u64::MAX }),
        }
    }

    /// The id of an entry added at that time to a stream with this last id; `None` when there is no higher one.
    #[inline]
    pub fn after_at(self, now_ms: u64) -> Option<StreamId> {
        if now_ms > self.ms { Some(StreamId { ms: now_ms, seq: 0 }) } else { self.next() }
    }

    /// The id as Redis writes it inside a node's key: big endian, so that bytes compare as ids do.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_cross_milliseconds() {
        assert_eq!(StreamId::new(1, u64::MAX).next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).previous(), Some(StreamId::new(1, u64::MAX)));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
    }

    #[test]
    fn time_never_goes_back() {
        assert_eq!(StreamId::new(5, 3).after_at(6), Some(StreamId::new(6, 0)));
        assert_eq!(StreamId::new(5, 3).after_at(5), Some(StreamId::new(5, 4)));
        assert_eq!(StreamId::new(5, 3).after_at(1), Some(StreamId::new(5, 4)));
        assert_eq!(StreamId::MAX.after_at(1), None);
    }
}
