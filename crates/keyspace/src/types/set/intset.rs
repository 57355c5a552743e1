//! A set of integers as one run of bytes. Knows the layout; refuses to know commands, and when a set stops being an
//! intset.
//!
//! ```text
//! u8 width: 2, 4 or 8
//!    number number …      ascending, each in so many little-endian bytes
//! ```
//! The width is that of the widest number that has been in the set, as in Redis.

use super::INTSET;
use crate::storage::Scalar;
use crate::types::Entry;
use std::ops::Range;

const HEADER: usize = 1;

/// A readable set of integers.
#[derive(Clone, Copy)]
pub struct Intset<'a> {
    width: usize,
    numbers: &'a [u8],
}

impl<'a> Intset<'a> {
    #[inline]
    pub fn new(body: &'a [u8]) -> Intset<'a> {
        let (width, numbers) = body.split_first().expect("an intset begins with its width");
        Intset { width: usize::from(*width), numbers }
    }

    /// How many numbers there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.numbers.len() >> self.width.trailing_zeros()
    }

    /// An intset is never empty: a key without members is deleted.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The number at a position.
    #[inline]
    pub fn get(&self, index: usize) -> i64 {
        let bytes = &self.numbers[index * self.width..][..self.width];
        match *bytes {
            [a, b] => i64::from(i16::from_le_bytes([a, b])),
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            _ => i64::from_le_bytes(bytes.try_into().expect("a number has two, four or eight bytes")),
        }
    }

    pub fn has(&self, number: i64) -> bool {
        self.find(number).is_ok()
    }

    /// The position of a number, or where it would be inserted.
    fn find(&self, number: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).cmp(&number) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// How many digits, with the sign, the longest number has.
    pub(super) fn longest(&self) -> usize {
        match self.len() {
            0 => 0,
            // The longest is at one of the ends.
            len => [0, len - 1].map(|index| Scalar::Number(self.get(index)).len()).into_iter().fold(0, usize::max),
        }
    }

    /// All numbers, ascending.
    pub fn iter(self) -> Numbers<'a> {
        Numbers { left: 0..self.len(), set: self }
    }
}

/// Numbers of a set, ascending.
pub struct Numbers<'a> {
    set: Intset<'a>,
    left: Range<usize>,
}

impl Iterator for Numbers<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        self.left.next().map(|index| self.set.get(index))
    }
}

/// Creates an entry with these numbers, which are ascending.
pub(super) fn create(name: &[u8], numbers: &[i64], deadline: Option<u64>) -> Entry {
    // The widest is at one of the ends.
    let width = width_of(numbers[0]).max(width_of(numbers[numbers.len() - 1]));
    let mut body = Vec::with_capacity(HEADER + numbers.len() * width);
    body.push(width as u8);
    numbers.iter().for_each(|number| body.extend_from_slice(&number.to_le_bytes()[..width]));
    Entry::new(name, INTSET, &body, deadline)
}

/// Adds a number; returns true when it is new.
pub(super) fn add(entry: &mut Entry, number: i64) -> bool {
    let set = Intset::new(entry.body());
    let Err(index) = set.find(number) else { return false };
    let width = width_of(number);
    if width > set.width {
        let mut body = Vec::with_capacity(HEADER + (set.len() + 1) * width);
        body.push(width as u8);
        set.iter().for_each(|known| body.extend_from_slice(&known.to_le_bytes()[..width]));
        entry.set_body(INTSET, &body);
    }
    let width = usize::from(entry.body()[0]);
    let start = HEADER + index * width;
    entry.splice_body(start..start, &number.to_le_bytes()[..width]);
    true
}

/// Removes a number and returns whether it existed. The last one is not removed: the caller removes the key.
pub(super) fn remove(entry: &mut Entry, number: i64) -> bool {
    let set = Intset::new(entry.body());
    let Ok(index) = set.find(number) else { return false };
    assert!(set.len() > 1, "the owner removes a key with its last member");
    let (start, width) = (HEADER + index * set.width, set.width);
    entry.splice_body(start..start + width, &[]);
    true
}

/// The number of bytes that a number takes.
fn width_of(number: i64) -> usize {
    if i16::try_from(number).is_ok() {
        2
    } else if i32::try_from(number).is_ok() {
        4
    } else {
        8
    }
}
