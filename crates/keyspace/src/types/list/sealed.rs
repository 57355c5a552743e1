//! A chunk inside a large list. Knows how its elements are stored; refuses to know other chunks.
//!
//! Its elements are plain (see `items`) and fill their allocation; changing one rewrites all. A chunk that is not near
//! an end of its list is packed (`alphabet`) if that saves memory; it is unpacked for each reader.

use super::alphabet;
use super::items::{last_linked, plain_items};
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
    /// Plain elements.
    Plain,
    /// Plain elements that are known not to be packable.
    Incompressible,
    /// One element, with its link: very large ones are moved to and from an end without a copy.
    Single,
    /// The elements with fewer bits each.
    Packed,
}

impl Sealed {
    /// The most bytes of a chunk, unless it has one element: a size class of the allocator, so that a full chunk wastes
    /// nothing.
    pub(super) const BYTES_MAX: usize = 8192;
    /// The most bytes of a chunk that may be packed: with four to seven bits per byte and the alphabet it fills a size
    /// class of the allocator too.
    pub(super) const BYTES_PACKED_MAX: usize = 8064;

    /// Creates a chunk of these plain elements.
    pub(super) fn new(plain: Vec<u8>, count: usize) -> Sealed {
        Sealed { bytes: plain.into_boxed_slice(), count: count as u32, form: Form::Plain }
    }

    /// Creates a chunk of one element of that length, followed by its link.
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

    /// The length of its elements as a plain run.
    pub(super) fn plain_len(&self) -> usize {
        match self.form {
            Form::Plain | Form::Incompressible => self.bytes.len(),
            Form::Single => last_linked(&self.bytes).0,
            Form::Packed => alphabet::unpacked_len(&self.bytes),
        }
    }

    /// Passes its elements as a plain run to `look`.
    #[inline]
    pub(super) fn with_plain<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        match self.form {
            Form::Plain | Form::Incompressible => look(&self.bytes),
            Form::Single => look(&self.bytes[..last_linked(&self.bytes).0]),
            Form::Packed => {
                let mut buffer = [0; Sealed::BYTES_MAX + alphabet::SLACK];
                let len = alphabet::unpack(&self.bytes, &mut buffer);
                look(&buffer[..len])
            }
        }
    }

    pub(super) fn is_packed(&self) -> bool {
        self.form == Form::Packed
    }

    /// Packs it, unless that was tried before. Returns false when it cannot be packed.
    pub(super) fn pack(&mut self) -> bool {
        if self.form == Form::Plain && self.bytes.len() <= Sealed::BYTES_MAX {
            match alphabet::pack(&self.bytes) {
                Some(packed) if size_class(packed.len()) < size_class(self.bytes.len()) => {
                    (self.bytes, self.form) = (packed.into_boxed_slice(), Form::Packed);
                }
                _ => self.form = Form::Incompressible,
            }
        }
        self.form == Form::Packed
    }

    /// Its element with its link, if it has a single very large one; otherwise its elements as a plain run.
    pub(super) fn into_linked(self) -> Result<Box<[u8]>, Box<[u8]>> {
        match self.form {
            Form::Single => Ok(self.bytes),
            Form::Plain | Form::Incompressible => Err(self.bytes),
            Form::Packed => Err(self.with_plain(|plain| plain.into())),
        }
    }

    /// Builds chunks of these plain elements, several if they do not fit in one.
    pub(super) fn split(plain: Vec<u8>, count: usize) -> Vec<Sealed> {
        if plain.len() <= Sealed::BYTES_MAX || count <= 1 {
            return vec![Sealed::new(plain, count)];
        }
        let half = plain.len() / 2;
        let (mut chunks, mut first, mut from) = (Vec::new(), 0, 0);
        for (number, (at, _)) in plain_items(&plain).enumerate() {
            // Begin a new chunk where this element would make the chunk too large, and where there are two of about the
            // same size.
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
