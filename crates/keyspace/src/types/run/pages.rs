//! A list that only grows, without moving its elements. Knows order; refuses to know its elements.
//!
//! A `Vec` is copied whole when it grows, which takes too long once it is large.

use crate::storage::size_class::size_class;

/// The most elements of a page.
const PAGE_MAX: usize = 512;

/// Elements in insertion order.
#[derive(Clone)]
pub(super) struct Pages<T> {
    /// All pages but the last are full.
    pages: Vec<Vec<T>>,
}

impl<T> Default for Pages<T> {
    fn default() -> Pages<T> {
        Pages { pages: Vec::new() }
    }
}

impl<T> Pages<T> {
    pub(super) fn len(&self) -> usize {
        match self.pages.last() {
            None => 0,
            Some(last) => (self.pages.len() - 1) * PAGE_MAX + last.len(),
        }
    }

    pub(super) fn push(&mut self, element: T) {
        match self.pages.last_mut() {
            Some(last) if last.len() < PAGE_MAX => {
                if last.len() == last.capacity() {
                    // By half: there are many lists, and most are short.
                    let wanted = (last.len() / 2 + 1).min(PAGE_MAX - last.len());
                    last.reserve_exact(wanted);
                }
                last.push(element);
            }
            _ => self.pages.push(vec![element]),
        }
    }

    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        self.pages.get(at / PAGE_MAX)?.get(at % PAGE_MAX)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pages.get_mut(at / PAGE_MAX)?.get_mut(at % PAGE_MAX)
    }

    /// The elements from this position on.
    pub(super) fn iter_from(&self, at: usize) -> impl Iterator<Item = &T> {
        let pages = self.pages.iter().skip(at / PAGE_MAX);
        pages.enumerate().flat_map(move |(page, elements)| {
            let skipped = if page == 0 { at % PAGE_MAX } else { 0 };
            elements.iter().skip(skipped)
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten()
    }

    /// The number of elements at the front for which `holds` is true; it is false for all others.
    pub(super) fn partition_point(&self, holds: impl Fn(&T) -> bool) -> usize {
        let is_whole = |page: &Vec<T>| page.last().is_some_and(&holds);
        let pages = self.pages.partition_point(is_whole);
        match self.pages.get(pages) {
            Some(page) => pages * PAGE_MAX + page.partition_point(&holds),
            None => self.len(),
        }
    }

    /// Heap bytes of the list itself.
    pub(super) fn heap_bytes(&self) -> usize {
        let last = self.pages.last().map_or(0, Vec::capacity);
        let full = self.pages.len().saturating_sub(1) * size_class(PAGE_MAX * size_of::<T>());
        full + size_class(last * size_of::<T>()) + size_class(self.pages.capacity() * size_of::<Vec<T>>())
    }
}
