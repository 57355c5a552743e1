//! Applies many changes to a tree in one walk. Each changed leaf is fetched and written once; separate changes would
//! each search from the root. With few changes the walk searches from the root; with many, every leaf is rewritten
//! without searching.

use super::super::prefetch::prefetch;
use super::{Inner, NODE_MAX, NODE_MIN, Node, Ranked, room};

/// An item to insert or remove.
#[derive(Clone, Copy, Debug)]
pub struct Change<T> {
    pub item: T,
    pub comes: bool,
}

impl<T: Copy + PartialEq> Ranked<T> {
    /// Applies changes, which are sorted by item, at most one for each item. `before` says whether the first of two
    /// items comes before the other; unlike elsewhere, it is also called with items that are being removed. Removing an
    /// absent item has no effect.
    pub fn change_all(&mut self, changes: &[Change<T>], before: impl Fn(&T, &T) -> bool) {
        let mut walk = Walk { before, merged: Vec::with_capacity(2 * NODE_MAX) };
        let level = walk.change(&mut self.root, changes);
        self.grow_root(level);
    }

    /// Removes all items for which `is_removed` holds, and inserts others, which are sorted. Visits every item and
    /// rewrites every leaf, each full: for changes that are spread over most leaves. Calls `before` as
    /// [`Ranked::change_all`] does.
    pub fn rewrite(&mut self, inserted: &[T], is_removed: impl Fn(&T) -> bool, before: impl Fn(&T, &T) -> bool) {
        let root = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
        let mut leaves = Vec::new();
        root.into_leaves(&mut leaves);
        let mut merge = Merge { kept: Vec::with_capacity(NODE_MAX), merged: Vec::new(), inserted };
        merge.merged.reserve(leaves.iter().map(Vec::len).sum::<usize>() + inserted.len());
        for (at, leaf) in leaves.iter().enumerate() {
            if let Some(next) = leaves.get(at + 1) {
                prefetch(next);
            }
            merge.leaf(leaf, &is_removed, &before);
        }
        merge.merged.extend_from_slice(merge.inserted);
        *self = Ranked::from_slice(&merge.merged, leaves);
    }

    /// Adds the nodes that a walk has split off beside the root, and adjusts the height.
    fn grow_root(&mut self, mut level: Vec<Node<T>>) {
        while !level.is_empty() {
            let mut inner = Inner::empty();
            inner.push(std::mem::replace(&mut self.root, Node::Leaf(Vec::new())));
            level.into_iter().for_each(|node| inner.push(node));
            level = inner.split_evenly();
            self.root = Node::Inner(Box::new(inner));
        }
        self.lower_root();
    }
}

struct Walk<T, F> {
    before: F,
    /// The new contents of a leaf.
    merged: Vec<T>,
}

impl<T: Copy + PartialEq, F: Fn(&T, &T) -> bool> Walk<T, F> {
    /// Applies changes below a node. If it becomes too large, it keeps its first part and returns the others.
    fn change(&mut self, node: &mut Node<T>, changes: &[Change<T>]) -> Vec<Node<T>> {
        match node {
            Node::Leaf(items) => self.change_leaf(items, changes),
            Node::Inner(inner) => {
                self.change_children(inner, changes);
                inner.balance_all();
                inner.split_evenly()
            }
        }
    }

    fn change_leaf(&mut self, items: &mut Vec<T>, changes: &[Change<T>]) -> Vec<Node<T>> {
        self.merged.clear();
        // Where much changes, the next position is near; otherwise search for it.
        let is_near = changes.len() * 8 >= items.len();
        let mut rest = &items[..];
        for Change { item, comes } in changes {
            let at = match comes {
                true if is_near => rest.iter().take_while(|other| (self.before)(other, item)).count(),
                true => rest.partition_point(|other| (self.before)(other, item)),
                // Search by equality: a leaf is scanned quickly, and comparing the order of two items may be costly.
                false => match rest.iter().position(|other| other == item) {
                    Some(at) => at,
                    None => continue,
                },
            };
            self.merged.extend_from_slice(&rest[..at]);
            rest = &rest[at + usize::from(!comes)..];
            if *comes {
                self.merged.push(*item);
            }
        }
        self.merged.extend_from_slice(rest);
        set_leaf(items, &self.merged)
    }

    fn change_children(&mut self, inner: &mut Inner<T>, mut changes: &[Change<T>]) {
        let mut at = 0;
        while let Some(change) = changes.first() {
            // A child has the items from its first one on; items before all children belong to the first child.
            let is_up_to = |first: &T, item: &T| first == item || (self.before)(first, item);
            at += inner.firsts[at..].partition_point(|first| is_up_to(first, &change.item)).saturating_sub(1);
            let count = match inner.firsts.get(at + 1) {
                Some(next) => changes.iter().position(|change| is_up_to(next, &change.item)),
                None => None,
            };
            let (below, others) = changes.split_at(count.unwrap_or(changes.len()));
            if let Some(Node::Leaf(items)) = inner.children.get(at + 1) {
                prefetch(items);
            }
            let more = self.change(&mut inner.children[at], below);
            changes = others;
            if inner.children[at].len() == 0 {
                inner.remove(at);
                continue;
            }
            inner.note(at);
            for node in more {
                at += 1;
                inner.insert(at, node);
            }
        }
    }
}

/// Merges the leaves of a tree with inserted items.
struct Merge<'i, T> {
    /// The remaining items of a leaf.
    kept: Vec<T>,
    merged: Vec<T>,
    /// The items that are not inserted yet.
    inserted: &'i [T],
}

impl<T: Copy> Merge<'_, T> {
    /// Which items stay and where others are inserted cannot be predicted: both loops choose without a branch.
    fn leaf(&mut self, leaf: &[T], is_removed: &impl Fn(&T) -> bool, before: &impl Fn(&T, &T) -> bool) {
        self.kept.clear();
        self.kept.extend_from_slice(leaf);
        let mut count = 0;
        for at in 0..self.kept.len() {
            let item = self.kept[at];
            self.kept[count] = item;
            count += usize::from(!is_removed(&item));
        }
        self.kept.truncate(count);
        let mut kept = &self.kept[..];
        let Some(last) = kept.last() else { return };
        let here = self.inserted.iter().take_while(|item| !before(last, item)).count();
        let (mut inserted, others) = self.inserted.split_at(here);
        self.inserted = others;
        while let ([one, ..], [other, ..]) = (kept, inserted) {
            let is_kept = before(one, other);
            self.merged.push(*if is_kept { one } else { other });
            kept = &kept[usize::from(is_kept)..];
            inserted = &inserted[usize::from(!is_kept)..];
        }
        self.merged.extend_from_slice(kept);
    }
}

impl<T> Node<T> {
    /// Collects the leaves below this node, in order.
    fn into_leaves(self, leaves: &mut Vec<Vec<T>>) {
        match self {
            Node::Leaf(items) => leaves.push(items),
            Node::Inner(inner) => inner.children.into_iter().for_each(|child| child.into_leaves(leaves)),
        }
    }
}

/// Sets the items of a leaf. Returns additional leaves for the items that do not fit.
fn set_leaf<T: Copy>(leaf: &mut Vec<T>, items: &[T]) -> Vec<Node<T>> {
    let mut pieces = even_pieces(items.len()).scan(0, |start, len| {
        *start += len;
        Some(&items[*start - len..*start])
    });
    leaf.clear();
    if let Some(first) = pieces.next() {
        if leaf.capacity() < first.len() {
            leaf.reserve_exact(first.len().next_power_of_two());
        }
        leaf.extend_from_slice(first);
    }
    let new_leaf = |piece: &[T]| {
        let mut leaf = room();
        leaf.extend_from_slice(piece);
        Node::Leaf(leaf)
    };
    pieces.map(new_leaf).collect()
}

impl<T: Copy> Inner<T> {
    /// Rebalances all children that have too few items.
    fn balance_all(&mut self) {
        let mut at = 0;
        while at < self.children.len() {
            let count = self.children.len();
            if self.children[at].len() < NODE_MIN && count > 1 {
                self.balance(at);
            }
            // A child that was merged with its neighbour is checked again.
            match self.children.len() < count {
                true => at = at.min(self.children.len() - 1),
                false => at += 1,
            }
        }
    }

    /// Keeps as many children as allowed, and returns nodes with the others.
    fn split_evenly(&mut self) -> Vec<Node<T>> {
        let mut lens = even_pieces(self.children.len());
        let Some(own) = lens.next().filter(|own| *own < self.children.len()) else { return Vec::new() };
        let (mut firsts, mut counts) = (self.firsts.drain(own..), self.counts.drain(own..));
        let mut children = self.children.drain(own..);
        let piece = |len: usize| {
            let mut piece = Inner::empty();
            piece.firsts.extend(firsts.by_ref().take(len));
            piece.counts.extend(counts.by_ref().take(len));
            piece.children.extend(children.by_ref().take(len));
            Node::Inner(Box::new(piece))
        };
        let pieces = lens.map(piece).collect();
        drop((firsts, counts, children));
        self.firsts.shrink_to(NODE_MAX);
        self.counts.shrink_to(NODE_MAX);
        self.children.shrink_to(NODE_MAX);
        pieces
    }
}

/// The sizes of the fewest nodes that hold `count`, as even as possible.
fn even_pieces(count: usize) -> impl Iterator<Item = usize> {
    let pieces = count.div_ceil(NODE_MAX);
    (0..pieces).map(move |piece| count / pieces + usize::from(piece < count % pieces))
}
