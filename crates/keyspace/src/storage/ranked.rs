//! Items in an order, found by that order or by rank. Knows neither what the items are nor what the order means: every
//! operation takes a closure that says which items come before a position.
//!
//! It is a B+tree whose inner nodes count the items below each child. Items are copied into wide leaves, without a
//! pointer each, so a walk in order reads memory in order. A skip list (Redis's choice) costs a pointer or more for
//! every item and a cache miss for every step.
//!
//! ```text
//! inner   first item below each child | number of items below each child | children
//! leaf    items
//! ```
//!
//! An inner node repeats only items that are in the tree: a removed item is never passed to a closure again, so an item
//! may refer to something that is freed with it.

use super::prefetch::prefetch;
use std::ops::Range;

mod together;

pub use together::Change;

/// The most items of a leaf, and the most children of an inner node.
const NODE_MAX: usize = 64;
/// A node with fewer is balanced or merged with a neighbour.
const NODE_MIN: usize = NODE_MAX / 3;
/// Two neighbours are merged when together they have no more than this: it leaves room before the next split.
const MERGED_MAX: usize = NODE_MAX - NODE_MAX / 8;
/// A full node moves items to a neighbour that has no more than this: with less room, it would soon be full again.
const GIVES_TO_MAX: usize = NODE_MAX - NODE_MAX / 8;

/// Items in an order. See the module's description.
pub struct Ranked<T> {
    root: Node<T>,
}

enum Node<T> {
    Leaf(Vec<T>),
    Inner(Box<Inner<T>>),
}

/// Children, all of the same height, with the first item and the number of items of each.
struct Inner<T> {
    firsts: Vec<T>,
    counts: Vec<u32>,
    children: Vec<Node<T>>,
}

/// Where an item is inserted: repeated insertion at one end leaves full nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InsertAt {
    First,
    Middle,
    Last,
}

impl<T: Copy> Ranked<T> {
    /// Builds a tree from items in order.
    pub fn from_sorted(items: impl Iterator<Item = T>) -> Ranked<T> {
        let mut items = items.peekable();
        let mut level = Vec::new();
        while items.peek().is_some() {
            let mut leaf = room();
            leaf.extend(items.by_ref().take(NODE_MAX));
            level.push(Node::Leaf(leaf));
        }
        Ranked::from_level(level)
    }

    /// Builds a tree from items in order, reusing the leaves of another tree.
    fn from_slice(items: &[T], mut leaves: Vec<Vec<T>>) -> Ranked<T> {
        // A single leaf has no spare room: there are many small trees.
        let room = if items.len() < NODE_MAX { items.len().next_power_of_two() } else { NODE_MAX };
        let leaf = |items: &[T]| {
            let left = leaves.pop().filter(|leaf| leaf.capacity() == room);
            let mut leaf = left.unwrap_or_else(|| Vec::with_capacity(room));
            leaf.clear();
            leaf.extend_from_slice(items);
            Node::Leaf(leaf)
        };
        Ranked::from_level(items.chunks(NODE_MAX).map(leaf).collect())
    }

    /// Builds the tree above nodes of one height, in order.
    fn from_level(mut level: Vec<Node<T>>) -> Ranked<T> {
        while level.len() > 1 {
            let mut children = level.into_iter().peekable();
            level = Vec::new();
            while children.peek().is_some() {
                let mut inner = Inner::empty();
                children.by_ref().take(NODE_MAX).for_each(|child| inner.push(child));
                level.push(Node::Inner(Box::new(inner)));
            }
        }
        Ranked { root: level.pop().unwrap_or(Node::Leaf(Vec::new())) }
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.root.count() as usize
    }

    /// True when there is no item.
    pub fn is_empty(&self) -> bool {
        self.root.len() == 0
    }

    /// The number of items before a position: the lower or upper bound of what `before` compares with. `before` must
    /// hold for a prefix of the items.
    pub fn partition_point(&self, before: impl Fn(&T) -> bool) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(items) => return rank + items.partition_point(&before),
                Node::Inner(inner) => {
                    let at = inner.child_of(&before);
                    rank += sum(&inner.counts[..at]);
                    node = &inner.children[at];
                }
            }
        }
    }

    /// The first item.
    #[inline]
    pub fn first(&self) -> Option<T> {
        self.root.first()
    }

    /// The item of a rank.
    pub fn get(&self, rank: usize) -> Option<T> {
        if rank >= self.len() {
            return None;
        }
        let (leaf, at) = self.leaf_of(rank);
        Some(leaf[at])
    }

    /// The first item for which `before` does not hold.
    pub fn find(&self, before: impl Fn(&T) -> bool) -> Option<T> {
        self.get(self.partition_point(before))
    }

    /// Inserts an item after those for which `before` holds.
    pub fn insert(&mut self, item: T, before: impl Fn(&T) -> bool) {
        let insert_at = match self.root.first() {
            Some(first) if !before(&first) => InsertAt::First,
            _ if self.root.ends_before(&before) => InsertAt::Last,
            _ => InsertAt::Middle,
        };
        if self.root.len() == NODE_MAX {
            let root = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            let mut inner = Inner::empty();
            inner.push(root);
            inner.split(0, insert_at);
            self.root = Node::Inner(Box::new(inner));
        }
        self.root.insert(item, insert_at, &before);
    }

    /// Removes the first item for which `before` does not hold.
    pub fn remove(&mut self, before: impl Fn(&T) -> bool) -> Option<T> {
        self.remove_if(before, |_| true)
    }

    /// Removes the first item for which `before` does not hold, if `is_wanted` holds for it.
    pub fn remove_if(&mut self, before: impl Fn(&T) -> bool, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let removed = self.root.remove(&before, &is_wanted);
        self.lower_root();
        removed
    }

    /// Replaces the first item for which `before` does not hold; the order must allow it.
    pub fn replace(&mut self, item: T, before: impl Fn(&T) -> bool) {
        let rank = self.partition_point(before);
        if rank < self.len() {
            self.root.replace(rank, item);
        }
    }

    /// Removes the items of these ranks and passes each to `removed`.
    pub fn remove_ranks(&mut self, ranks: Range<usize>, mut removed: impl FnMut(T)) {
        let mut left = ranks.end.min(self.len()).saturating_sub(ranks.start);
        while left > 0 {
            left -= self.root.remove_run(ranks.start, left, &mut removed);
            self.lower_root();
        }
    }

    /// All items.
    pub fn iter(&self) -> Iter<'_, T> {
        self.range(0..self.len())
    }

    /// The items of these ranks, from either end.
    pub fn range(&self, ranks: Range<usize>) -> Iter<'_, T> {
        let end = ranks.end.min(self.len());
        let front = Cursor { leaf: &[], base: 0 };
        Iter { tree: self, ranks: ranks.start.min(end)..end, front, back: front }
    }

    /// Heap bytes of all nodes.
    pub fn heap_bytes(&self) -> usize {
        self.root.heap_bytes()
    }

    /// The leaf of the item with this rank, and the item's position in it.
    fn leaf_of(&self, rank: usize) -> (&[T], usize) {
        let (mut node, mut rank) = (&self.root, rank);
        loop {
            match node {
                Node::Leaf(items) => return (items, rank),
                Node::Inner(inner) => {
                    let (at, before) = inner.child_at(rank);
                    rank -= before;
                    node = &inner.children[at];
                }
            }
        }
    }

    /// Removes a root with a single child.
    fn lower_root(&mut self) {
        while let Node::Inner(inner) = &mut self.root {
            match inner.children.len() {
                0 => self.root = Node::Leaf(Vec::new()),
                1 => self.root = inner.children.pop().expect("there is one"),
                _ => return,
            }
        }
    }
}

impl<T: Copy> Default for Ranked<T> {
    fn default() -> Ranked<T> {
        Ranked { root: Node::Leaf(Vec::new()) }
    }
}

impl<T: Copy> Clone for Ranked<T> {
    fn clone(&self) -> Ranked<T> {
        Ranked::from_sorted(self.iter())
    }
}

/// A list with the capacity of a whole node.
fn room<X>() -> Vec<X> {
    Vec::with_capacity(NODE_MAX)
}

fn sum(counts: &[u32]) -> usize {
    counts.iter().map(|count| *count as usize).sum()
}

impl<T: Copy> Node<T> {
    /// The number of items of a leaf, or of children of an inner node.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(items) => items.len(),
            Node::Inner(inner) => inner.children.len(),
        }
    }

    /// The number of items below.
    fn count(&self) -> u32 {
        match self {
            Node::Leaf(items) => items.len() as u32,
            Node::Inner(inner) => u32::try_from(sum(&inner.counts)).expect("fewer than 2^32 items"),
        }
    }

    fn first(&self) -> Option<T> {
        match self {
            Node::Leaf(items) => items.first().copied(),
            Node::Inner(inner) => inner.firsts.first().copied(),
        }
    }

    /// True when `before` holds for all items. Descends only as far as needed: otherwise the last leaf would be fetched
    /// for nothing.
    fn ends_before(&self, before: &impl Fn(&T) -> bool) -> bool {
        match self {
            Node::Leaf(items) => items.last().is_some_and(before),
            Node::Inner(inner) => {
                inner.firsts.last().is_some_and(before)
                    && inner.children.last().is_some_and(|child| child.ends_before(before))
            }
        }
    }

    /// Adds an item below a node that is not full.
    fn insert(&mut self, item: T, insert_at: InsertAt, before: &impl Fn(&T) -> bool) {
        match self {
            Node::Leaf(items) => {
                if insert_at == InsertAt::Middle {
                    prefetch(items);
                }
                let at = match insert_at {
                    InsertAt::First => 0,
                    InsertAt::Middle => items.partition_point(before),
                    InsertAt::Last => items.len(),
                };
                if items.len() == items.capacity() {
                    // Less than doubled: there are many small trees.
                    items.reserve_exact((items.len() / 2).clamp(1, NODE_MAX - items.len()));
                }
                items.insert(at, item);
            }
            Node::Inner(inner) => {
                let child = |inner: &Inner<T>| match insert_at {
                    InsertAt::First => 0,
                    InsertAt::Middle => inner.child_of(before),
                    InsertAt::Last => inner.children.len() - 1,
                };
                let mut at = child(inner);
                if inner.children[at].len() == NODE_MAX {
                    inner.make_room(at, insert_at);
                    at = child(inner);
                }
                inner.children[at].insert(item, insert_at, before);
                inner.counts[at] += 1;
                // In any other child, the position is after the first item.
                if at == 0 {
                    inner.firsts[0] = inner.children[0].first().expect("a child has items");
                }
            }
        }
    }

    fn remove(&mut self, before: &impl Fn(&T) -> bool, is_wanted: &impl Fn(&T) -> bool) -> Option<T> {
        match self {
            Node::Leaf(items) => {
                prefetch(items);
                let at = items.partition_point(before);
                items.get(at).is_some_and(is_wanted).then(|| items.remove(at))
            }
            Node::Inner(inner) => {
                let at = inner.child_of(before);
                let is_first = !before(&inner.firsts[at]);
                // If `before` holds for the whole child, the item is the first of the next one.
                let found = inner.children[at].remove(before, is_wanted).map(|item| (at, is_first, item));
                let next = || Some((at + 1, true, inner.children.get_mut(at + 1)?.remove(before, is_wanted)?));
                let (at, was_first, item) = found.or_else(next)?;
                inner.lost_one(at, was_first);
                Some(item)
            }
        }
    }

    fn replace(&mut self, rank: usize, item: T) {
        match self {
            Node::Leaf(items) => items[rank] = item,
            Node::Inner(inner) => {
                let (at, before) = inner.child_at(rank);
                inner.children[at].replace(rank - before, item);
                inner.note(at);
            }
        }
    }

    /// Removes up to `count` items from a rank on, as far as they are in one leaf, and returns how many.
    fn remove_run(&mut self, rank: usize, count: usize, removed: &mut impl FnMut(T)) -> usize {
        match self {
            Node::Leaf(items) => {
                let end = items.len().min(rank + count);
                items.drain(rank..end).for_each(removed);
                end - rank
            }
            Node::Inner(inner) => {
                let (at, before) = inner.child_at(rank);
                let run = inner.children[at].remove_run(rank - before, count, removed);
                inner.mend(at);
                run
            }
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            Node::Leaf(items) => items.capacity() * size_of::<T>(),
            Node::Inner(inner) => {
                let Inner { firsts, counts, children } = &**inner;
                let below: usize = children.iter().map(Node::heap_bytes).sum();
                let own = firsts.capacity() * size_of::<T>()
                    + counts.capacity() * size_of::<u32>()
                    + children.capacity() * size_of::<Node<T>>();
                size_of::<Inner<T>>() + own + below
            }
        }
    }

    /// Moves items or children between a node and its right neighbour until it has `len`.
    fn level(&mut self, right: &mut Node<T>, len: usize) {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => level(left, right, len),
            (Node::Inner(left), Node::Inner(right)) => {
                level(&mut left.firsts, &mut right.firsts, len);
                level(&mut left.counts, &mut right.counts, len);
                level(&mut left.children, &mut right.children, len);
            }
            _ => unreachable!("neighbours have the same height"),
        }
    }
}

/// Moves elements between the end of one list and the beginning of another until the first has `len`.
fn level<X>(left: &mut Vec<X>, right: &mut Vec<X>, len: usize) {
    match left.len() > len {
        true => drop(right.splice(..0, left.drain(len..))),
        false => left.extend(right.drain(..len - left.len())),
    }
}

impl<T: Copy> Inner<T> {
    fn empty() -> Inner<T> {
        Inner { firsts: room(), counts: room(), children: room() }
    }

    fn push(&mut self, child: Node<T>) {
        self.insert(self.children.len(), child);
    }

    fn insert(&mut self, at: usize, child: Node<T>) {
        self.firsts.insert(at, child.first().expect("a child has items"));
        self.counts.insert(at, child.count());
        self.children.insert(at, child);
    }

    fn remove(&mut self, at: usize) {
        self.firsts.remove(at);
        self.counts.remove(at);
        self.children.remove(at);
    }

    /// Updates the first item and the count of a child.
    fn note(&mut self, at: usize) {
        self.firsts[at] = self.children[at].first().expect("a child has items");
        self.counts[at] = self.children[at].count();
    }

    /// The child that contains a position, possibly at its end.
    fn child_of(&self, before: impl Fn(&T) -> bool) -> usize {
        self.firsts.partition_point(before).saturating_sub(1)
    }

    /// The child that contains the item with this rank, and the number of items before that child.
    fn child_at(&self, rank: usize) -> (usize, usize) {
        let mut before = 0;
        for (at, count) in self.counts.iter().enumerate() {
            if rank < before + *count as usize {
                return (at, before);
            }
            before += *count as usize;
        }
        panic!("the rank is that of an item")
    }

    /// Makes room in a full child: moves some of it to a neighbour, or splits it.
    fn make_room(&mut self, at: usize, insert_at: InsertAt) {
        let has_room = |at: usize| self.children.get(at).is_some_and(|child| child.len() <= GIVES_TO_MAX);
        match insert_at {
            InsertAt::Middle if has_room(at + 1) => self.even_out(at),
            InsertAt::Middle if at > 0 && has_room(at - 1) => self.even_out(at - 1),
            _ => self.split(at, insert_at),
        }
    }

    /// Splits a child in two: in the middle, or, when items are added at one end, so that the other part stays full.
    fn split(&mut self, at: usize, insert_at: InsertAt) {
        let child = &mut self.children[at];
        let len = match insert_at {
            InsertAt::First => 1,
            InsertAt::Middle => child.len() / 2,
            InsertAt::Last => child.len() - 1,
        };
        let mut right = match child {
            Node::Leaf(_) => Node::Leaf(room()),
            Node::Inner(_) => Node::Inner(Box::new(Inner::empty())),
        };
        child.level(&mut right, len);
        self.note(at);
        self.insert(at + 1, right);
    }

    /// Shares the content of a child and its right neighbour evenly between them.
    fn even_out(&mut self, at: usize) {
        let [left, right] = &mut self.children[at..at + 2] else { unreachable!("there is a right neighbour") };
        let len = (left.len() + right.len()) / 2;
        left.level(right, len);
        self.note(at);
        self.note(at + 1);
    }

    /// After a child has lost items: updates its first item and count, and rebalances it if it has too few.
    fn mend(&mut self, at: usize) {
        if self.children[at].len() == 0 {
            return self.remove(at);
        }
        self.note(at);
        self.balance(at);
    }

    /// After a child has lost one item: as `mend`, without reading the rest of the child.
    fn lost_one(&mut self, at: usize, was_first: bool) {
        if self.children[at].len() == 0 {
            return self.remove(at);
        }
        self.counts[at] -= 1;
        if was_first {
            self.firsts[at] = self.children[at].first().expect("a child has items");
        }
        self.balance(at);
    }

    /// Rebalances a child that has too few items.
    fn balance(&mut self, at: usize) {
        if self.children[at].len() >= NODE_MIN || self.children.len() < 2 {
            return;
        }
        let at = if at + 1 < self.children.len() { at } else { at - 1 };
        let [left, right] = &mut self.children[at..at + 2] else { unreachable!("there is a right neighbour") };
        let together = left.len() + right.len();
        if together > MERGED_MAX {
            return self.even_out(at);
        }
        left.level(right, together);
        self.note(at);
        self.remove(at + 1);
    }
}

/// Items in their order, from either end.
pub struct Iter<'t, T> {
    tree: &'t Ranked<T>,
    /// The ranks of the remaining items.
    ranks: Range<usize>,
    front: Cursor<'t, T>,
    back: Cursor<'t, T>,
}

/// The leaf at one end of an iteration. The next leaf is found from the root, which is rare.
#[derive(Clone, Copy)]
struct Cursor<'t, T> {
    leaf: &'t [T],
    /// The rank of its first item.
    base: usize,
}

impl<'t, T: Copy> Cursor<'t, T> {
    #[inline]
    fn get(&mut self, tree: &'t Ranked<T>, rank: usize) -> T {
        if let Some(item) = rank.checked_sub(self.base).and_then(|at| self.leaf.get(at)) {
            return *item;
        }
        let (leaf, at) = tree.leaf_of(rank);
        *self = Cursor { leaf, base: rank - at };
        leaf[at]
    }
}

impl<T: Copy> Iterator for Iter<'_, T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let rank = self.ranks.next()?;
        Some(self.front.get(self.tree, rank))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.ranks.size_hint()
    }
}

impl<T: Copy> DoubleEndedIterator for Iter<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<T> {
        let rank = self.ranks.next_back()?;
        Some(self.back.get(self.tree, rank))
    }
}

impl<T: Copy> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests;
