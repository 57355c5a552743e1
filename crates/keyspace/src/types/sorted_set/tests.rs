//! Both forms against a plain map, and the specifics of each.

use super::*;
use crate::types::Entry;
use std::collections::{BTreeMap, BTreeSet};

type Model = BTreeMap<Vec<u8>, f64>;

/// Names that are packed as numbers, that lie in a slot, that do not, and that differ late.
fn name(random: &mut fastrand::Rng, range: u32) -> Vec<u8> {
    let number = random.u32(..range);
    match number % 5 {
        0 => number.to_string().into_bytes(),
        1 => format!("m{number}").into_bytes(),
        2 => format!("a name of more than twenty-two bytes {number}").into_bytes(),
        3 => number.to_be_bytes().to_vec(),
        _ => format!("-{number:05}").into_bytes(),
    }
}

fn score(random: &mut fastrand::Rng, kinds: u8) -> f64 {
    match random.u8(..kinds) {
        0 => 0.0,
        1 => f64::from(random.i8(-3..3)),
        2 => f64::from(random.i32(..)),
        3 => random.f64() * 10.0 - 5.0,
        4 => [f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324, -1e19][random.usize(..5)],
        _ => random.i64(..) as f64,
    }
}

/// Compares all that can be read with what it should be.
fn assert_is(set: StoredRef<'_>, model: &Model, random: &mut fastrand::Rng) {
    let mut expected: Vec<(f64, &[u8])> = model.iter().map(|(name, score)| (*score, name.as_slice())).collect();
    expected.sort_by(|a, b| compare(*a, *b));
    let plain = |members: StoredMembers<'_>| -> Vec<(f64, Vec<u8>)> {
        members.map(|member| (member.score, member.name.into_bytes().into_owned())).collect()
    };
    let owned = |members: &[(f64, &[u8])]| -> Vec<(f64, Vec<u8>)> {
        members.iter().map(|(score, name)| (*score, name.to_vec())).collect()
    };
    assert_eq!(set.len(), expected.len());
    assert_eq!(plain(set.iter()), owned(&expected));
    for (rank, (score, name)) in expected.iter().enumerate().step_by(1 + expected.len() / 20) {
        assert_eq!((set.score(name), set.rank(name)), (Some(*score), Some((rank, *score))));
        assert_eq!(plain(set.members(rank..rank + 1, Direction::Ascending)), owned(&expected[rank..rank + 1]));
    }
    assert!(set.score(b"no such member").is_none() && set.get(expected.len()).is_none());
    let (start, end) = (random.usize(..=expected.len()), random.usize(..expected.len() + 5));
    let within = expected.get(start..end.min(expected.len())).unwrap_or_default();
    assert_eq!(plain(set.members(start..end, Direction::Ascending)), owned(within));
    let mut backwards = owned(within);
    backwards.reverse();
    assert_eq!(plain(set.members(start..end, Direction::Descending)), backwards);

    let bound = |random: &mut fastrand::Rng| {
        let score = if random.bool() { score(random, 5) } else { expected[random.usize(..expected.len())].0 };
        ScoreBound { score, excluded: random.bool() }
    };
    let range = ScoreRange { min: bound(random), max: bound(random) };
    let is_in = |score: f64| {
        let above = if range.min.excluded { score > range.min.score } else { score >= range.min.score };
        above && if range.max.excluded { score < range.max.score } else { score <= range.max.score }
    };
    let found = set.ranks_by_score(&range);
    let inside: Vec<usize> = (0..expected.len()).filter(|rank| is_in(expected[*rank].0)).collect();
    assert_eq!(found.clone().collect::<Vec<_>>(), inside, "{range:?}");

    let mut met: Vec<(Vec<u8>, u64)> = Vec::new();
    let mut cursor = Some(0);
    while let Some(at) = cursor {
        cursor = set.scan(at, 7, |member| {
            met.push((member.name.into_bytes().into_owned(), member.score.to_bits()));
        });
    }
    met.sort();
    let all: Vec<_> = model.iter().map(|(name, score)| (name.clone(), score.to_bits())).collect();
    assert_eq!(met, all, "a scan meets every member once");
}

#[test]
fn packed_sets_agree_with_a_map() {
    let seed = 29;
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..60 {
        let (kinds, range) = ([1, 2, 6][round % 3], [4, 60][round % 2]);
        let mut entry = packed::create(b"k", &[(1.0, b"first")], None);
        let mut model = Model::from([(b"first".to_vec(), 1.0)]);
        for _ in 0..150 {
            let name = name(&mut random, range);
            if random.u8(..3) > 0 {
                let score = score(&mut random, kinds);
                let added = packed::set(&mut entry, (score, &name));
                assert_eq!(model.insert(name, score).is_none(), added, "seed {seed}");
            } else if model.len() > 1 || !model.contains_key(&name) {
                assert_eq!(packed::remove(&mut entry, &name), model.remove(&name).is_some(), "seed {seed}");
            }
        }
        assert_is(StoredRef::Packed(Packed::new(entry.body())), &model, &mut random);
    }
}

#[test]
fn large_sets_agree_with_a_map() {
    let seed = 31;
    let mut random = fastrand::Rng::with_seed(seed);
    for (kinds, range) in [(1, 3_000), (2, 3_000), (6, 5_000)] {
        let (mut set, mut model) = (SortedSet::from_members(std::iter::empty(), Form::Large), Model::new());
        for round in 0..30_000 {
            // It grows, loses nearly all, and grows again: slots are used again and moved together.
            let grows = (round / 10_000) % 2 == 0;
            let name = name(&mut random, range);
            if model.is_empty() || random.u8(..10) < if grows { 7 } else { 1 } {
                let score = score(&mut random, kinds);
                assert_eq!(set.set((score, &name)), model.insert(name, score).is_none(), "seed {seed}");
            } else {
                assert_eq!(set.remove(&name), model.remove(&name).is_some(), "seed {seed}");
            }
            if round % 3_000 == 2_999 && !model.is_empty() {
                assert_is(StoredRef::Table(&set), &model, &mut random);
                assert_is(StoredRef::Table(&set.clone()), &model, &mut random);
            }
        }
        while let Some((name, _)) = model.pop_first() {
            assert!(set.remove(&name));
        }
        assert!(set.is_empty() && StoredRef::Table(&set).iter().next().is_none());
    }
}

#[test]
fn ranges_of_names_are_found_in_both_forms() {
    let names: Vec<Vec<u8>> = (0..40).map(|number| format!("{number:02}").into_bytes()).collect();
    let members: Vec<Scored<'_>> = names.iter().map(|name| (7.0, name.as_slice())).collect();
    let entry = packed::create(b"k", &members, None);
    let table = SortedSet::from_members(members.iter().copied(), Form::Large);
    let (included, excluded) = (NameBound::Included, NameBound::Excluded);
    for (min, max, ranks) in [
        (NameBound::Lowest, NameBound::Highest, 0..40),
        (NameBound::Highest, NameBound::Lowest, 40..40),
        (included(b"05"), included(b"09"), 5..10),
        (excluded(b"05"), excluded(b"09"), 6..9),
        (included(b"055"), excluded(b"0"), 6..6),
        (included(b""), included(b"3"), 0..30),
        (excluded(b"39"), NameBound::Highest, 40..40),
        (NameBound::Lowest, NameBound::Lowest, 0..0),
        (included(b"20"), included(b"10"), 20..20),
    ] {
        let range = NameRange { min, max };
        for set in [StoredRef::Packed(Packed::new(entry.body())), StoredRef::Table(&table)] {
            let found = set.ranks_by_name(&range);
            assert_eq!((found.is_empty(), found.clone()), (ranks.is_empty(), ranks.clone()), "{range:?}");
        }
    }
}

#[test]
fn members_in_any_order_make_the_same_set() {
    let seed = 37;
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..40 {
        let given: Vec<(f64, Vec<u8>)> =
            (0..random.usize(1..300)).map(|_| (score(&mut random, 3), name(&mut random, 200))).collect();
        let mut members: Vec<Scored<'_>> = given.iter().map(|(score, name)| (*score, name.as_slice())).collect();
        if random.bool() {
            members.sort_by(|a, b| compare(*a, *b));
        }
        let model: Model = members.iter().map(|(score, name)| (name.to_vec(), *score)).collect();
        let table = SortedSet::from_members(members.iter().copied(), Form::Large);
        assert_is(StoredRef::Table(&table), &model, &mut random);
        let entry = packed::create(b"k", &in_order(&members), None);
        assert_is(StoredRef::Packed(Packed::new(entry.body())), &model, &mut random);
    }
}

#[test]
fn small_sets_have_no_negative_zero_and_large_ones_have() {
    let bits = |set: StoredRef<'_>| set.score(b"m").unwrap().to_bits();
    let mut entry: Entry = packed::create(b"k", &[(-0.0, b"m")], None);
    assert_eq!(bits(StoredRef::Packed(Packed::new(entry.body()))), 0);
    packed::set(&mut entry, (1.0, b"m"));
    packed::set(&mut entry, (-0.0, b"m"));
    assert_eq!(bits(StoredRef::Packed(Packed::new(entry.body()))), 0);
    let mut table = SortedSet::from_members([(-0.0, b"m".as_slice())].into_iter(), Form::Large);
    assert_eq!(bits(StoredRef::Table(&table)), (-0.0_f64).to_bits());
    // The same number: nothing to change.
    table.set((0.0, b"m"));
    assert_eq!(bits(StoredRef::Table(&table)), (-0.0_f64).to_bits());
}

#[test]
fn small_scores_and_numbers_take_few_bytes() {
    let body = |members: &[Scored<'_>]| packed::create(b"k", members, None).body().len();
    assert_eq!(body(&[(1.0, b"a")]), 2 + 1 + 2);
    assert_eq!(body(&[(1.0, b"1234567")]), 2 + 1 + 4);
    assert_eq!(body(&[(1_700_000_000_000.0, b"a")]), 2 + 7 + 2);
    assert_eq!(body(&[(0.5, b"a")]), 2 + 9 + 2);
}

#[test]
fn a_large_set_takes_about_sixty_bytes_a_member() {
    let mut random = fastrand::Rng::with_seed(41);
    let mut set = SortedSet::default();
    let count = 50_000;
    for number in 0..count {
        set.set((random.f64() * 1e6, format!("member:{number:08}").as_bytes()));
    }
    let each = set.heap_bytes(100) / count;
    assert!((45..70).contains(&each), "{each} bytes a member");
    for number in 100..count {
        set.remove(format!("member:{number:08}").as_bytes());
    }
    let left = set.heap_bytes(100);
    assert!(left < 100_000, "{left} bytes for a hundred members: memory is given back");
    let names: BTreeSet<Vec<u8>> =
        StoredRef::Table(&set).iter().map(|member| member.name.into_bytes().into_owned()).collect();
    assert_eq!(names, (0..100).map(|number| format!("member:{number:08}").into_bytes()).collect());
}
