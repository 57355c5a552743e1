//! Sorts a part of a slice: elements `first..=last` come to where they would be if all were sorted. Knows how Redis
//! orders elements that are equal; refuses to know what is sorted.
//!
//! GEOSEARCH with COUNT and SORT with LIMIT sort no more than they return. Which of several equal elements are
//! returned, and in what order, follows from the algorithm, so it is Redis's: the quicksort of Bentley and McIlroy
//! ("Engineering a sort function", 1993), which skips the partitions that are not needed.

use std::cmp::Ordering;

/// Shorter slices are sorted by insertion.
const INSERTION_BELOW: usize = 7;
/// Longer slices take their pivot from nine elements, not from three.
const NINE_ABOVE: usize = 40;

/// Sorts `items` so far that those from `first` to `last` are in their places.
pub fn partial_sort<T>(items: &mut [T], first: usize, last: usize, compare: &impl Fn(&T, &T) -> Ordering) {
    sort_within(items, 0, first, last, compare);
}

/// Sorts `items`, the first of which is at `offset` of the whole.
fn sort_within<T>(
    mut items: &mut [T],
    mut offset: usize,
    first: usize,
    last: usize,
    compare: &impl Fn(&T, &T) -> Ordering,
) {
    loop {
        let len = items.len();
        if len < INSERTION_BELOW {
            return sort_by_insertion(items, compare);
        }
        items.swap(0, pivot(items, compare));
        let (smaller, greater) = partition(items, compare);
        let is_wanted = |offset: usize, len: usize| first < offset + len && last >= offset;
        if smaller > 1 && is_wanted(offset, smaller) {
            sort_within(&mut items[..smaller], offset, first, last, compare);
        }
        if greater <= 1 || !is_wanted(offset + len - greater, greater) {
            return;
        }
        // In a loop, not by calling itself again: half of the depth.
        offset += len - greater;
        items = &mut items[len - greater..];
    }
}

fn sort_by_insertion<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    for sorted in 1..items.len() {
        let mut at = sorted;
        while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
            items.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// The place of an element that is likely to be in the middle of the order.
fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let (len, middle) = (items.len(), items.len() / 2);
    if len == INSERTION_BELOW {
        return middle;
    }
    let median = |a, b, c| median(items, [a, b, c], compare);
    let (low, high) = (0, len - 1);
    if len <= NINE_ABOVE {
        return median(low, middle, high);
    }
    let apart = len / 8;
    median(
        median(low, low + apart, low + 2 * apart),
        median(middle - apart, middle, middle + apart),
        median(high - 2 * apart, high - apart, high),
    )
}

/// Which of three places has the element between the two others.
fn median<T>(items: &[T], [a, b, c]: [usize; 3], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let is_less = |one: usize, other: usize| compare(&items[one], &items[other]).is_lt();
    if is_less(a, b) {
        match is_less(b, c) {
            true => b,
            false if is_less(a, c) => c,
            false => a,
        }
    } else {
        match compare(&items[b], &items[c]).is_gt() {
            true => b,
            false if is_less(a, c) => a,
            false => c,
        }
    }
}

/// Brings what is less than the first element to the front and what is greater to the end; returns how many each are.
/// What is equal is collected at both ends first, then swapped into the middle.
fn partition<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let len = items.len();
    // `..equal` and `equal_end..` are equal; `equal..low` is less, `high..equal_end` is greater.
    let (mut equal, mut low, mut high, mut equal_end) = (1, 1, len, len);
    loop {
        while low < high {
            match compare(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(equal, low);
                    equal += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match compare(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    equal_end -= 1;
                    items.swap(high - 1, equal_end);
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (smaller, greater) = (low - equal, equal_end - low);
    let moved = equal.min(smaller);
    swap_runs(items, 0, low - moved, moved);
    let moved = greater.min(len - equal_end);
    swap_runs(items, low, len - moved, moved);
    (smaller, greater)
}

/// Swaps `count` elements from `a` on with those from `b` on.
fn swap_runs<T>(items: &mut [T], a: usize, b: usize, count: usize) {
    for at in 0..count {
        items.swap(a + at, b + at);
    }
}

#[cfg(test)]
mod tests {
    use super::partial_sort;

    #[test]
    fn the_part_is_as_if_all_were_sorted() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let len = random.usize(1..300);
            let range = random.u32(1..400);
            let items: Vec<u32> = (0..len).map(|_| random.u32(..range)).collect();
            let first = random.usize(..len);
            let last = random.usize(first..len);
            let (mut part, mut whole) = (items.clone(), items);
            whole.sort_unstable();
            partial_sort(&mut part, first, last, &u32::cmp);
            assert_eq!(part[first..=last], whole[first..=last], "{first}..={last} of {len}");
            part.sort_unstable();
            assert_eq!(part, whole, "no element is lost");
        }
    }
}
