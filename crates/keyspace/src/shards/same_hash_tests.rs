//! Keys, and fields, whose names have the same hash, against a model that knows only names: expiry, field expiry and
//! indexes are exact, in one shard and over several.

use super::locked::{Keyspace, Locked};
use crate::effects::Effect;
use crate::index::{Definition, Index, Indexes};
use crate::storage::table::SAME_HASH;
use crate::storage::{Key, NameHash, Scalar};
use crate::types::sorted_set::{Direction, Member, ScoreBound, ScoreRange};
use crate::types::{Cause, Change, Thresholds, hash, string};
use crate::views::IndexRef;
use std::collections::BTreeMap;
use std::sync::Arc;
use test_random::Random;

/// Value and deadline by field.
type Fields = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

/// What a key holds, and until when. A string has no fields.
#[derive(Clone, Default)]
struct Held {
    fields: Fields,
    deadline: Option<u64>,
}

type Model = BTreeMap<Vec<u8>, Held>;

const SCORE: &[u8] = b"score";
/// An instant up to which half of the deadlines pass.
const TIMES: u64 = 20;

/// Most have one hash. Names with a tag are in the tag's shard, with the same hash.
fn key_name(random: &mut Random) -> Vec<u8> {
    match random.below(14) {
        number @ 0..6 => [SAME_HASH, number.to_string().as_bytes()].concat(),
        number @ 6..12 => [SAME_HASH, format!("{{{}}}", number % 5).as_bytes(), &[b'a' + number as u8]].concat(),
        number => number.to_string().into_bytes(),
    }
}

fn field_name(random: &mut Random) -> Vec<u8> {
    match random.below(6) {
        0 | 1 => SCORE.to_vec(),
        number => [SAME_HASH, number.to_string().as_bytes()].concat(),
    }
}

fn index(name: &[u8]) -> Arc<Index> {
    let definition = Definition { prefixes: vec![Vec::new()], field: SCORE.to_vec(), ..Definition::default() };
    Arc::new(Index::new(name, definition))
}

/// One random effect, and the same in the model.
fn step(locked: &mut Locked<'_>, model: &mut Model, random: &mut Random) {
    // Every hash that can have field deadlines is a table; the others become one when a threshold says so.
    let mut thresholds = Thresholds::default();
    thresholds.hash.entries_max = 3;
    let (name, other) = (key_name(random), key_name(random));
    let (key, deadline) = (Key::new(&name), random.below(3).checked_sub(1).map(|_| 1 + random.next() % (2 * TIMES)));
    let (field, value) = (field_name(random), random.pick(&["1", "2", "2.5", "none"]).as_bytes());
    let is_hash = model.get(&name).is_none_or(|held| !held.fields.is_empty());
    let mut apply = |effect: Effect<'_>| locked.apply(0, &effect, &thresholds);
    match random.below(12) {
        0..5 if is_hash => {
            let keep_deadlines = random.below(2) == 0;
            apply(Effect::change(key, hash::Change::Set { fields: &[(&field, value)], keep_deadlines }));
            let set = model.entry(name).or_default().fields.entry(field).or_default();
            *set = (value.to_vec(), set.1.filter(|_| keep_deadlines));
        }
        5 if is_hash => {
            apply(Effect::change(key, hash::Change::Delete { fields: &[&field], cause: Cause::Deleted }));
            if let Some(held) = model.get_mut(&name) {
                held.fields.remove(&field);
                if held.fields.is_empty() {
                    model.remove(&name);
                }
            }
        }
        6 | 7 if is_hash => {
            apply(Effect::change(key, hash::Change::Deadline { field: &field, deadline }));
            if let Some(set) = model.get_mut(&name).and_then(|held| held.fields.get_mut(&field)) {
                set.1 = deadline;
            }
        }
        8 => {
            apply(Effect::Deadline { key, deadline });
            if let Some(held) = model.get_mut(&name) {
                held.deadline = deadline;
            }
        }
        9 => {
            apply(Effect::Rename { from: key, to: Key::new(&other) });
            if let Some(held) = model.remove(&name) {
                model.insert(other, held);
            }
        }
        10 => match random.below(3) {
            0 => {
                apply(Effect::Copy { from: key, to: Key::new(&other), to_db: 0 });
                if let Some(held) = model.get(&name).cloned() {
                    model.insert(other, held);
                }
            }
            _ => {
                let change = Change::String(string::Change::Set { value: Scalar::Bytes(b"text"), deadline });
                apply(Effect::Change { key, change });
                model.insert(name, Held { fields: Fields::new(), deadline });
            }
        },
        _ => {
            apply(Effect::Delete { key, cause: Cause::Deleted });
            model.remove(&name);
        }
    }
}

/// Compares what has expired at an instant.
fn check_expiry(locked: &Locked<'_>, model: &Model, now_ms: u64, shard_count: usize) {
    for (number, shard) in locked.shards() {
        let db = shard.db(0);
        let here = || model.iter().filter(|(name, _)| Key::new(name).shard(shard_count) == number);
        assert_eq!(db.len(), here().count());
        assert_eq!(db.with_deadline(), here().filter(|(_, held)| held.deadline.is_some()).count());
        let sum: u128 = here().filter_map(|(_, held)| held.deadline.map(u128::from)).sum();
        assert_eq!(db.time_left_sum(0), sum);

        let mut expired: Vec<_> = db.expired_keys(now_ms, usize::MAX);
        let deadlines: Vec<u64> = expired.iter().map(|name| model[name].deadline.expect("it has one")).collect();
        assert!(deadlines.is_sorted(), "soonest first");
        expired.sort();
        let expected = here().filter(|(_, held)| held.deadline.is_some_and(|deadline| deadline <= now_ms));
        assert_eq!(expired, expected.map(|(name, _)| name.clone()).collect::<Vec<_>>());

        let soonest = |held: &Held| held.fields.values().filter_map(|(_, deadline)| *deadline).min();
        assert_eq!(db.with_field_deadlines(), here().filter(|(_, held)| soonest(held).is_some()).count());
        let first = here().filter_map(|(_, held)| soonest(held)).min().filter(|deadline| *deadline <= now_ms);
        let found = db.expired_field_names(now_ms, usize::MAX);
        assert_eq!(found.as_ref().and_then(|(name, _)| soonest(&model[name])), first);
        if let Some((name, mut fields)) = found {
            let is_expired = |deadline: &Option<u64>| deadline.is_some_and(|deadline| deadline <= now_ms);
            let expected = model[&name].fields.iter().filter(|(_, (_, deadline))| is_expired(deadline));
            fields.sort();
            assert_eq!(fields, expected.map(|(field, _)| field.clone()).collect::<Vec<_>>());
        }
    }
}

/// Compares an index: its order, ranks, ranges and places.
fn check_index(locked: &Locked<'_>, model: &Model, name: &[u8], random: &mut Random) {
    let index = IndexRef::find(locked, 0, name).expect("it is built");
    let score_of =
        |held: &Held| held.fields.get(SCORE).and_then(|(value, _)| crate::index::number(Scalar::Bytes(value)));
    let mut expected: Vec<(f64, Vec<u8>)> =
        model.iter().filter_map(|(name, held)| Some((score_of(held)?, name.clone()))).collect();
    expected.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let shown = |member: Member<'_>| (member.score, member.name.into_bytes().into_owned());
    let listed = |from: usize, to: usize, direction| index.members(from..to, direction).map(shown).collect::<Vec<_>>();

    assert_eq!(index.len(), expected.len());
    assert_eq!(listed(0, expected.len(), Direction::Ascending), expected);
    let (one, other) = (random.below(expected.len() + 1), random.below(expected.len() + 1));
    let (from, to) = (one.min(other), one.max(other));
    assert_eq!(listed(from, to, Direction::Ascending), expected[from..to]);
    let backward: Vec<_> = expected[from..to].iter().rev().cloned().collect();
    assert_eq!(listed(from, to, Direction::Descending), backward);
    for (rank, (score, name)) in expected.iter().enumerate() {
        assert_eq!(index.rank(name), Some((rank, *score)));
        assert_eq!(index.before(*score, name).iter().sum::<usize>(), rank);
        assert_eq!(index.up_to(*score, name).iter().sum::<usize>(), rank + 1);
    }
    // A place is also one between the records, of a name that is not there.
    let (score, absent) = (*random.pick(&[1.0, 2.0, 2.5]), key_name(random));
    let before = expected.iter().filter(|(other, name)| (*other, name) < (score, &absent)).count();
    assert_eq!(index.before(score, &absent).iter().sum::<usize>(), before);

    let bound = |score| ScoreBound { score, excluded: false };
    let (start, end) = index.ranks_by_score(&ScoreRange { min: bound(2.0), max: bound(2.0) });
    assert_eq!(start..end, expected.partition_point(|one| one.0 < 2.0)..expected.partition_point(|one| one.0 <= 2.0));
    // Records that would be in it if their field were a number are counted by name too.
    let at = locked.nth(0).db(0).indexes().position(name).expect("there is one");
    let has_all = locked.shards().all(|(_, shard)| shard.db(0).part_has_all(at));
    let is_number = |held: &Held| !held.fields.contains_key(SCORE) || score_of(held).is_some();
    assert_eq!(has_all, model.values().all(is_number));
}

#[test]
fn keys_and_fields_with_equal_hashes_are_distinguished() {
    assert_eq!(NameHash::of(&[SAME_HASH, b"1"].concat()), NameHash::of(&[SAME_HASH, b"{x}2"].concat()));
    let mut random = Random::new();
    for shard_count in [1, 4] {
        let (keyspace, mut model) = (Keyspace::new(shard_count), Model::new());
        let (first, second) = (index(b"first"), index(b"second"));
        let indexes = Indexes::default().with(first.clone());
        keyspace.lock_all().set_indexes(&indexes);
        first.set_built();
        // The second one is filled while records change.
        let mut unfilled: Vec<(usize, u32)> = Vec::new();
        for round in 0..3_000 {
            let mut locked = keyspace.lock_all();
            step(&mut locked, &mut model, &mut random);
            if round == 500 {
                locked.set_indexes(&indexes.with(second.clone()));
                unfilled.extend((0..shard_count).map(|shard| (shard, 0)));
            }
            let now_ms = random.next() % (2 * TIMES);
            check_expiry(&locked, &model, now_ms, shard_count);
            if round % 3 == 0 {
                locked.apply_pending(0);
                check_index(&locked, &model, b"first", &mut random);
                if second.is_built() {
                    check_index(&locked, &model, b"second", &mut random);
                }
            }
            drop(locked);
            if round % 40 == 0
                && let Some((shard, from)) = unfilled.pop()
            {
                match keyspace.lock_shard(shard).index_some(from, 2) {
                    Some(from) => unfilled.push((shard, from)),
                    None if unfilled.is_empty() => second.set_built(),
                    None => {}
                }
            }
        }
        assert!(second.is_built(), "the second index was checked too");
    }
}
