//! Compares the tree with a sorted list, with items of distinct scores and with many of equal scores.

use super::*;
use std::collections::HashSet;
use test_random::Random;

/// A score, a number in place of a name, and a slot that is not part of the order.
type Item = (u32, u32, u32);

impl<T: Copy + PartialEq + std::fmt::Debug> Ranked<T> {
    /// What must hold for every node; returns the height.
    fn check(&self) -> usize {
        let height = check(&self.root, true);
        assert_eq!(self.iter().count(), self.len());
        height
    }
}

fn check<T: Copy + PartialEq + std::fmt::Debug>(node: &Node<T>, is_root: bool) -> usize {
    assert!(node.len() <= NODE_MAX && (is_root || node.len() > 0));
    match node {
        Node::Leaf(items) => {
            assert!(items.capacity() <= NODE_MAX, "a leaf has outgrown its place");
            0
        }
        Node::Inner(inner) => {
            assert!(inner.firsts.len() == inner.children.len() && inner.counts.len() == inner.children.len());
            let mut heights = inner.children.iter().enumerate().map(|(at, child)| {
                assert_eq!(child.first(), Some(inner.firsts[at]), "the first item below a child");
                assert_eq!(child.count(), inner.counts[at], "the number of items below a child");
                check(child, false)
            });
            let height = heights.next().expect("a child");
            assert!(heights.all(|other| other == height), "leaves at different depths");
            height + 1
        }
    }
}

/// Items and the places that leaves have for them.
fn fill<T: Copy>(node: &Node<T>) -> (usize, usize) {
    match node {
        Node::Leaf(items) => (items.len(), NODE_MAX),
        Node::Inner(inner) => inner.children.iter().map(fill).fold((0, 0), |(a, b), (c, d)| (a + c, b + d)),
    }
}

fn fill_percent<T: Copy>(tree: &Ranked<T>) -> usize {
    let (items, places) = fill(&tree.root);
    items * 100 / places
}

/// A number in place of a name: ties are not in the order of the items' own numbers.
fn name(number: u32) -> u32 {
    number.wrapping_mul(0x9e37_79b1)
}

fn key(item: &Item) -> (u32, u32) {
    (item.0, name(item.1))
}

#[test]
fn random_changes_agree_with_a_sorted_list() {
    let mut random = Random::new();
    // The second number of an item tells it from others; the first is the same for many or for few.
    for (scores, rounds) in [(1, 6_000), (7, 20_000), (100_000, 30_000)] {
        let (mut tree, mut model): (Ranked<Item>, Vec<Item>) = (Ranked::default(), Vec::new());
        let mut growing = true;
        for round in 0..rounds {
            if round % 1_500 == 0 {
                growing = random.below(5) > 1;
            }
            let score = random.below(scores) as u32;
            match random.below(16) {
                0..8 if growing => add(&mut tree, &mut model, (score, round, 0)),
                0..3 => add(&mut tree, &mut model, (score, round, 0)),
                3..12 if !model.is_empty() => {
                    let item = *random.pick(&model);
                    let at = model.iter().position(|other| *other == item).unwrap();
                    assert_eq!(tree.remove(|other| key(other) < key(&item)), Some(item));
                    model.remove(at);
                }
                12 if !model.is_empty() => {
                    let at = random.below(model.len());
                    let item = model[at];
                    let moved = (item.0, item.1, item.2 + 1);
                    tree.replace(moved, |other| key(other) < key(&item));
                    model[at] = moved;
                }
                13 if random.below(40) == 0 => {
                    let start = random.below(model.len() + 2);
                    let end = start + random.below(300);
                    let mut removed = Vec::new();
                    tree.remove_ranks(start..end, |item| removed.push(item));
                    let end = end.min(model.len());
                    assert_eq!(removed, model.drain(start.min(end)..end).collect::<Vec<_>>());
                }
                _ => look(&tree, &model, &mut random, score),
            }
            assert_eq!(tree.len(), model.len());
            if round % 64 == 0 {
                tree.check();
            }
        }
        assert_eq!(tree.iter().collect::<Vec<_>>(), model);
        assert!(tree.iter().rev().eq(model.iter().rev().copied()));
        let copy = tree.clone();
        copy.check();
        assert_eq!(copy.iter().collect::<Vec<_>>(), model);
        while let Some(first) = tree.remove(|_| false) {
            assert_eq!(first, model.remove(0));
        }
        assert!(tree.is_empty() && model.is_empty());
    }
}

#[test]
fn changes_together_agree_with_a_sorted_list() {
    let mut random = Random::new();
    for scores in [1, 50, 1_000_000] {
        let (mut tree, mut model): (Ranked<Item>, Vec<Item>) = (Ranked::default(), Vec::new());
        for round in 0..300_u32 {
            // Few and many, that grow and shrink it, all over and in one place.
            let count = [1, 3, 40, 400, 5_000][random.below(5)];
            let percent_coming = [0, 20, 50, 80, 100][random.below(5)];
            let narrow = random.below(3) == 0;
            let mut changes: Vec<Change<Item>> = Vec::new();
            for number in 0..count {
                let comes = random.below(100) < percent_coming && model.len() < 30_000;
                let item = match comes {
                    true if narrow => (scores as u32 / 2, round * 10_000 + number, 0),
                    true => (random.below(scores) as u32, round * 10_000 + number, 0),
                    false if random.below(50) == 0 => (random.below(scores) as u32, u32::MAX - number, 0),
                    false if model.is_empty() => continue,
                    false => *random.pick(&model),
                };
                changes.push(Change { item, comes });
            }
            changes.sort_by_key(|change| key(&change.item));
            changes.dedup_by_key(|change| key(&change.item));
            tree.change_all(&changes, |one, other| key(one) < key(other));
            let gone: HashSet<Item> = changes.iter().filter(|change| !change.comes).map(|change| change.item).collect();
            model.retain(|item| !gone.contains(item));
            model.extend(changes.iter().filter(|change| change.comes).map(|change| change.item));
            model.sort_by_key(key);
            tree.check();
            assert!(tree.iter().eq(model.iter().copied()));
            // What has been changed together can still be changed alone.
            let score = random.below(scores) as u32;
            add(&mut tree, &mut model, (score, round * 10_000 + 9_999, 0));
            look(&tree, &model, &mut random, score);
        }
        tree.change_all(
            &model.iter().map(|item| Change { item: *item, comes: false }).collect::<Vec<_>>(),
            |one, other| key(one) < key(other),
        );
        assert!(tree.is_empty());
        tree.check();
    }
}

#[test]
fn rewriting_all_leaves_agrees_with_a_sorted_list() {
    let mut random = Random::new();
    for scores in [1, 50, 1_000_000] {
        let (mut tree, mut model): (Ranked<Item>, Vec<Item>) = (Ranked::default(), Vec::new());
        for round in 0..60_u32 {
            let count = [0, 1, 40, 400, 2_000][random.below(5)];
            // What goes: nothing, some all over, most, a run of neighbours, everything.
            let (share, all_of) = ([0, 1, 10, 90, 100][random.below(5)], random.below(model.len() + 1));
            let in_run = random.below(4) == 0;
            let is_removed = |item: &Item, at: usize| match in_run {
                true => at >= all_of,
                false => name(item.1) % 100 < share,
            };
            let removed: HashSet<Item> =
                model.iter().enumerate().filter(|(at, item)| is_removed(item, *at)).map(|(_, item)| *item).collect();
            let narrow = random.below(3) == 0;
            let mut inserted: Vec<Item> = Vec::new();
            for number in 0..if model.len() < 8_000 { count } else { 0 } {
                let score = if narrow { scores / 2 } else { random.below(scores) };
                inserted.push((score as u32, round * 10_000 + number, 0));
            }
            // Some of them come back to the place they had.
            inserted.extend(removed.iter().filter(|item| item.1 % 3 == 0).map(|item| (item.0, item.1, item.2 + 1)));
            inserted.sort_by_key(key);
            tree.rewrite(&inserted, |item| removed.contains(item), |one, other| key(one) < key(other));
            model.retain(|item| !removed.contains(item));
            model.extend(&inserted);
            model.sort_by_key(key);
            tree.check();
            assert!(tree.iter().eq(model.iter().copied()));
            let score = random.below(scores) as u32;
            add(&mut tree, &mut model, (score, round * 10_000 + 9_999, 0));
            look(&tree, &model, &mut random, score);
        }
        tree.rewrite(&[], |_| true, |one, other| key(one) < key(other));
        assert!(tree.is_empty());
        tree.check();
    }
}

#[test]
fn leaves_that_change_together_are_full_enough() {
    let mut random = Random::new();
    let mut tree: Ranked<(u64, u32)> = Ranked::from_sorted((0..20_000).map(|number| (u64::from(number) << 40, number)));
    // Items get another place, all over or at the end, a tenth of them at a time.
    for at_end in [false, true] {
        for round in 0..60_u64 {
            let (mut changes, mut moved) = (Vec::new(), HashSet::new());
            for number in 0..2_000 {
                let place = if at_end { (1 << 62) + (round << 20) + number } else { random.next() >> 2 };
                let item = tree.get(random.below(tree.len())).unwrap();
                if moved.insert(item.1) {
                    changes.push(Change { item, comes: false });
                    changes.push(Change { item: (place, item.1), comes: true });
                }
            }
            changes.sort_by_key(|change| change.item);
            match round % 2 {
                0 => tree.change_all(&changes, |one, other| one < other),
                _ => {
                    let inserted: Vec<_> =
                        changes.iter().filter(|change| change.comes).map(|change| change.item).collect();
                    let coming: HashSet<_> = inserted.iter().copied().collect();
                    let is_removed = |item: &(u64, u32)| moved.contains(&item.1) && !coming.contains(item);
                    tree.rewrite(&inserted, is_removed, |one, other| one < other);
                }
            }
        }
        tree.check();
        assert_eq!(tree.len(), 20_000);
        assert!(fill_percent(&tree) >= 55, "{} %, at the end: {at_end}", fill_percent(&tree));
    }
}

fn add(tree: &mut Ranked<Item>, model: &mut Vec<Item>, item: Item) {
    tree.insert(item, |other| key(other) < key(&item));
    model.insert(model.partition_point(|other| key(other) < key(&item)), item);
}

fn look(tree: &Ranked<Item>, model: &[Item], random: &mut Random, score: u32) {
    let (lower, upper) = (|item: &Item| item.0 < score, |item: &Item| item.0 <= score);
    assert_eq!(tree.partition_point(lower), model.partition_point(lower));
    assert_eq!(tree.partition_point(upper), model.partition_point(upper));
    assert_eq!(tree.find(lower), model.get(model.partition_point(lower)).copied());
    let rank = random.below(model.len() + 3);
    assert_eq!(tree.get(rank), model.get(rank).copied());
    let (start, end) = (random.below(model.len() + 2), random.below(model.len() + 2));
    let expected = model.get(start..end.min(model.len())).unwrap_or_default();
    let found = tree.range(start..end);
    assert_eq!(found.len(), expected.len());
    assert!(found.eq(expected.iter().copied()));
    assert!(tree.range(start..end).rev().eq(expected.iter().rev().copied()));
    // From both ends in turns.
    let (mut found, mut expected) = (tree.range(start..end), expected.iter().copied());
    for _ in 0..expected.len() + 1 {
        match random.below(2) {
            0 => assert_eq!(found.next(), expected.next()),
            _ => assert_eq!(found.next_back(), expected.next_back()),
        }
    }
}

#[test]
fn leaves_are_full_enough() {
    let mut random = Random::new();
    let mut tree: Ranked<(u64, u32)> = Ranked::default();
    for number in 0..100_000 {
        let item = (random.next(), number);
        tree.insert(item, |other| *other < item);
    }
    tree.check();
    assert!(fill_percent(&tree) >= 75, "{} % after random inserts", fill_percent(&tree));
    let bytes_an_item = tree.heap_bytes() as f64 / tree.len() as f64;
    assert!(bytes_an_item < 16.0 / 0.75 + 2.0, "{bytes_an_item} bytes for 16");

    let (mut up, mut down) = (Ranked::default(), Ranked::default());
    for number in 0..100_000_u32 {
        up.insert(number, |other| *other < number);
        let number = 100_000 - number;
        down.insert(number, |other| *other < number);
    }
    for (tree, order) in [(&up, "ascending"), (&down, "descending")] {
        tree.check();
        assert!(fill_percent(tree) >= 97, "{} % after {order} inserts", fill_percent(tree));
    }
    let built = Ranked::from_sorted(0..100_000);
    built.check();
    assert!(fill_percent(&built) >= 99);
}

#[test]
fn a_queue_stays_compact() {
    let mut tree: Ranked<u32> = Ranked::default();
    for number in 0..50_000 {
        tree.insert(number, |other| *other < number);
        if number >= 5_000 {
            assert_eq!(tree.remove(|_| false), Some(number - 5_000));
        }
    }
    tree.check();
    assert!(fill_percent(&tree) >= 90, "{} %", fill_percent(&tree));
    // Remove most items, everywhere: the rest must not keep their memory.
    for number in 45_000..50_000 {
        if number % 10 > 0 {
            tree.remove(|other| *other < number);
        }
    }
    tree.check();
    assert!(fill_percent(&tree) >= 30, "{} %", fill_percent(&tree));
    assert!(tree.iter().eq((45_000..50_000).step_by(10)));
}

#[test]
fn trees_of_every_small_size_are_built_alike() {
    for len in [0, 1, 2, 63, 64, 65, 127, 128, 129, 4_095, 4_096, 4_097, 10_000] {
        let built = Ranked::from_sorted(0..len);
        built.check();
        assert_eq!(built.len(), len);
        assert!(built.iter().eq(0..len));
        assert_eq!(built.get(len), None);
        assert_eq!(built.partition_point(|item| *item < len / 2), len / 2);
    }
}
