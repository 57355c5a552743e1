//! A list of writes in four bytes, so that a state is small. Knows nothing of the protocol.

/// Up to eight writes in their order, as four-bit numbers from 1 on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Writes(u32);

impl Writes {
    pub(crate) fn of(write: u8) -> Writes {
        Writes(u32::from(write))
    }

    pub(crate) fn push(&mut self, write: u8) {
        self.0 = self.0 << 4 | u32::from(write);
    }

    pub(crate) fn extend(&mut self, more: Writes) {
        self.0 = self.0 << (4 * more.len()) | more.0;
    }

    pub(crate) fn len(self) -> u8 {
        (8 - self.0.leading_zeros() / 4) as u8
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..self.len()).rev().map(move |at| (self.0 >> (4 * at) & 15) as u8)
    }

    pub(crate) fn is_prefix_of(self, whole: Writes) -> bool {
        self.len() <= whole.len() && whole.0 >> (4 * (whole.len() - self.len())) == self.0
    }

    /// The place of a write in the order, from 1 on.
    pub(crate) fn place(self, write: u8) -> Option<u8> {
        (1u8..).zip(self.iter()).find(|(_, found)| *found == write).map(|(place, _)| place)
    }

    pub(crate) fn without(self, others: Writes) -> Writes {
        self.iter().filter(|write| others.place(*write).is_none()).collect()
    }
}

impl FromIterator<u8> for Writes {
    fn from_iter<T: IntoIterator<Item = u8>>(writes: T) -> Writes {
        let mut list = Writes::default();
        writes.into_iter().for_each(|write| list.push(write));
        list
    }
}

impl std::fmt::Debug for Writes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
