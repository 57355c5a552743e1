//! A chunk inside a large list. Knows how its elements are kept; refuses to know the chunks beside it.
//!
//! Its elements are plain (see `items`) and fill their allocation; to change one is to write all of them anew.

use super::items::plain_items;
use crate::storage::size_class::size_class;

/// A chunk that is not at an end.
#[derive(Clone)]
pub(super) struct Sealed {
    bytes: Box<[u8]>,
    count: u32,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The elements.
    Plain,
    /// One element, with its link: very large ones are moved to and from an end without a copy.
    Single,
}

impl Sealed {
    /// A chunk has no more bytes than this, unless it has one element: it is a size of the allocator, so that nothing is lost
    /// behind a full one.
    pub(super) const BYTES_MAX: usize = 8192;

    /// A chunk of these plain elements.
    pub(super) fn new(plain: Vec<u8>, count: usize) -> Sealed {
        Sealed { bytes: plain.into_boxed_slice(), count: count as u32, form: Form::Plain }
    }

    /// A chunk of one element of that length, with its link behind it.
    pub(super) fn single(linked: Box<[u8]>, len: usize) -> Sealed {
        debug_assert!(len < linked.len());
        Sealed { bytes: linked, count: 1, form: Form::Single }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_class(self.bytes.len())
    }

    /// Its elements as a plain run.
    #[inline]
    pub(super) fn plain(&self) -> &[u8] {
        match self.form {
            Form::Plain => &self.bytes,
            Form::Single => {
                let len = super::items::last_linked(&self.bytes).0;
                &self.bytes[..len]
            }
        }
    }

    /// Its element with its link, if it has a very large one; otherwise its elements as a plain run.
    pub(super) fn into_linked(self) -> Result<Box<[u8]>, Box<[u8]>> {
        match self.form {
            Form::Plain => Err(self.bytes),
            Form::Single => Ok(self.bytes),
        }
    }

    /// Chunks of these plain elements, more than one if they take more bytes than one chunk has.
    pub(super) fn split(plain: Vec<u8>, count: usize) -> Vec<Sealed> {
        if plain.len() <= Sealed::BYTES_MAX || count <= 1 {
            return vec![Sealed::new(plain, count)];
        }
        let half = plain.len() / 2;
        let (mut chunks, mut first, mut from) = (Vec::new(), 0, 0);
        for (number, (at, _)) in plain_items(&plain).enumerate() {
            // A new one where this element would make it too large, and where there are two of about the same size.
            let is_full = at.end - from > Sealed::BYTES_MAX || from == 0 && at.start >= half;
            if is_full && at.start > from {
                chunks.push(Sealed::new(plain[from..at.start].to_vec(), number - first));
                (first, from) = (number, at.start);
            }
        }
        chunks.push(Sealed::new(plain[from..].to_vec(), count - first));
        chunks
    }
}
