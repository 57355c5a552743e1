//! Many texts in one run of bytes. A value may have millions of elements, and allocating each would dominate the cost.
//! Knows no type.

use std::fmt;

/// Texts, in order.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    /// The end of each text.
    ends: Vec<usize>,
}

impl Texts {
    /// Creates an empty list with room for `count` texts of `bytes` bytes together.
    pub fn with_capacity(count: usize, bytes: usize) -> Texts {
        Texts { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(count) }
    }

    /// The length of all texts together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.bytes[std::mem::replace(&mut start, *end)..*end])
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Texts {
        let texts = texts.into_iter();
        let mut all = Texts::with_capacity(texts.size_hint().0, 0);
        texts.for_each(|text| all.push(text.as_ref()));
        all
    }
}

impl fmt::Debug for Texts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter().map(<[u8]>::escape_ascii)).finish()
    }
}
