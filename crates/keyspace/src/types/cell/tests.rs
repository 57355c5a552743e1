//! Cells against a plain list of versions.

use super::*;
use crate::encoding::Reader;
use crate::types::{self, Shapes, Thresholds};

/// A version as the model has it: number, time, value.
type Plain = (u64, u64, Vec<u8>);

fn plain(version: Version<'_>) -> Plain {
    (version.number, version.time_us, version.value.to_vec())
}

fn write(entry: &mut Entry, number: u64, time_us: u64, value: &[u8], older: u64) {
    let change = Change::Write { version: Version { number, time_us, value }, older };
    types::Change::from(change).apply(entry, &mut Shapes::default(), &Thresholds::default());
}

fn create(number: u64, time_us: u64, value: &[u8]) -> Entry {
    let change = Change::Write { version: Version { number, time_us, value }, older: 0 };
    change.create(b"cell").0
}

fn assert_equal(entry: &Entry, model: &[Plain]) {
    let cell = cell(entry);
    assert_eq!(cell.len(), model.len());
    assert_eq!(plain(cell.current()), *model.last().unwrap());
    assert_eq!(cell.oldest_first().map(plain).collect::<Vec<_>>(), model);
}

#[test]
fn random_writes_agree_with_a_list_of_versions() {
    let mut random = fastrand::Rng::with_seed(13);
    for round in 0..60 {
        let (mut time_us, mut limit) = (1_763_172_000_000_000, [1, 2, 3, 40, 128, 5_000][round % 6]);
        let first = random.u64(1..5);
        let mut entry = create(first, time_us, b"first");
        let mut model = vec![(first, time_us, b"first".to_vec())];
        for step in 0..random.usize(1..700) {
            if random.u8(..100) == 0 {
                limit = [1, 2, 33, 128, 5_000][random.usize(..5)];
            }
            let gap_us_max = [2, 300, 1 << 40][random.usize(..3)];
            time_us += random.u64(1..gap_us_max);
            let number = model.last().unwrap().0 + 1;
            let len = [0, 1, 32, 32, 32, 200, 1_100, 5_000][random.usize(..8)];
            let value = vec![step as u8; len];
            let older = (limit - 1).min(number - 1);
            write(&mut entry, number, time_us, &value, older);
            model.push((number, time_us, value));
            model.drain(..model.len() - model.len().min(limit as usize));
            if step % 40 == 0 {
                assert_equal(&entry, &model);
            }
            let cell = cell(&entry);
            let (oldest, newest) = (model[0].clone(), model.last().unwrap().clone());
            let asked = random.u64(oldest.0.saturating_sub(2)..newest.0 + 2);
            let expected = model.iter().find(|version| version.0 == asked);
            assert_eq!(cell.version(asked).map(plain).as_ref(), expected);
            let (_, at_us, _) = &model[random.usize(..model.len())];
            for at_us in [*at_us, at_us - 1, at_us + 1, oldest.1 - 1, u64::MAX] {
                let expected = model.iter().rfind(|version| version.1 <= at_us);
                assert_eq!(cell.as_of(at_us).map(plain).as_ref(), expected, "as of {at_us}");
            }
            let found: Vec<Plain> = cell.newest_first(asked).take(50).map(plain).collect();
            let expected = model.iter().rev().filter(|version| version.0 < asked).take(50);
            assert_eq!(found, expected.cloned().collect::<Vec<_>>(), "below {asked}");
        }
        assert_equal(&entry, &model);
        let mut image = Vec::new();
        (TYPE.write_image)(&entry, &Shapes::default(), &mut image);
        let mut reader = Reader::new(&image);
        assert_eq!((TYPE.check_image)(&mut reader), Ok(()));
        assert!(reader.is_empty());
        let read = (TYPE.read_image)(b"cell", Reader::new(&image), &mut Shapes::default(), Some(9));
        assert_equal(&read, &model);
        assert_eq!(read.deadline(), Some(9));
        assert_equal(&entry.clone(), &model);
    }
}

#[test]
fn a_cell_without_history_takes_eight_bytes_more_than_its_value() {
    let entry = create(1, 1_763_172_000_000_000, &[7; 32]);
    assert_eq!((entry.kind(), entry.body().len()), (PACKED, 32 + 8));
    let entry = create(VERSION_MAX, TIME_MAX_US, &[7; 32]);
    assert_eq!(plain(cell(&entry).current()), (VERSION_MAX, TIME_MAX_US, vec![7; 32]));
    assert_eq!(plain(cell(&create(1, 0, b"")).current()), (1, 0, vec![]));
}

#[test]
fn history_takes_little_more_than_its_values_however_it_came_to_be() {
    let mut entry = create(1, 1_763_172_000_000_000, &[7; 32]);
    for number in 2..1_000 {
        write(&mut entry, number, 1_763_172_000_000_000 + number * 50, &[7; 32], 127.min(number - 1));
    }
    let bytes = (TYPE.heap_bytes)(entry.object().unwrap(), usize::MAX);
    assert!((128 * 34..128 * 50).contains(&bytes), "{bytes}");
}

/// When the limit is lowered, what is too old is gone for readers at once, and from memory after some more writes.
#[test]
fn a_lowered_limit_frees_a_long_history_bit_by_bit() {
    let mut entry = create(1, 1, &[7; 32]);
    (2..100_000).for_each(|number| write(&mut entry, number, number, &[7; 32], number - 1));
    let before = (TYPE.heap_bytes)(entry.object().unwrap(), usize::MAX);
    write(&mut entry, 100_000, 100_000, b"x", 0);
    assert_eq!(cell(&entry).len(), 1);
    assert_eq!(cell(&entry).version(99_999), None);
    let after = (TYPE.heap_bytes)(entry.object().unwrap(), usize::MAX);
    assert!(after < before && after > before / 2, "{before} {after}");
    (100_001..100_100).for_each(|number| write(&mut entry, number, number, b"x", 0));
    assert!(entry.object().is_none(), "it is packed again");
}

/// A damaged journal may hold a change that does not follow: the cell has no gap and no time that goes back.
#[test]
fn a_version_that_does_not_follow_replaces_the_others() {
    for (number, time_us) in [(1, 9), (2, 9), (5, 9), (3, 2), (3, 1)] {
        let mut entry = create(1, 1, b"a");
        write(&mut entry, 2, 2, b"b", 1);
        write(&mut entry, number, time_us, b"c", 1.min(number - 1));
        assert_equal(&entry, &[(number, time_us, b"c".to_vec())]);
    }
}

#[test]
fn names_have_limits() {
    let long = [b'x'; 1025];
    let within = |branch: &[u8], name: &[u8]| [branch, b"/", name].concat();
    let refused: [&[u8]; 9] = [
        b"",
        &long,
        b"a\0b",
        b"_strata/",
        b"_strata/x",
        b"dev/_strata/x",
        b"a\0b/x",
        &within(b"dev", &long),
        &within(&long, b"x"),
    ];
    assert!(refused.iter().all(|name| name_error(name).is_some()));
    let taken: [&[u8]; 6] =
        [b"a", &long[1..], b"_strata", b"x_strata/", &within(b"dev", &long[1..]), &within(&long[1..], &long[1..])];
    assert!(taken.iter().all(|name| name_error(name).is_none()));
}

#[test]
fn a_history_makes_no_object_larger() {
    assert!(size_of::<History>() <= size_of::<types::sorted_set::SortedSet>());
}
