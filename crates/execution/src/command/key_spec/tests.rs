//! Key specifications of Redis's hardest commands, most of which this server does not have yet.

use super::*;
use resp::OwnedRequest;

/// SORT key [BY pattern] [LIMIT offset count] [GET pattern …] … [STORE destination]: the last STORE counts, and what
/// follows another option may be called STORE too, so that no specification finds it.
fn keys_of_sort(request: Request<'_>) -> FoundKeys {
    let mut found = FoundKeys::one(1, KeyFlags::READ);
    let (mut at, mut store) = (2, None);
    while at < request.len() {
        let is = |word: &str| request.arg(at).eq_ignore_ascii_case(word.as_bytes());
        if is("STORE") && at + 1 < request.len() {
            store = Some(at + 1);
        }
        at += if is("LIMIT") { 3 } else { 1 + usize::from(is("STORE") || is("GET") || is("BY")) };
    }
    found.ranges.extend(store.map(|at| KeyRange::one(at, KeyFlags::OVERWRITE)));
    found
}

const SORT: Keys = key(1).read().found_by(keys_of_sort);
const XREAD: Keys = keys_after("STREAMS", 1).half().read();
const XREADGROUP: Keys = keys_after("STREAMS", 4).half().read();
const GEORADIUS: Keys =
    key(1).read().and(keys_after("STORE", 6).overwritten()).and(keys_after("STOREDIST", 6).overwritten());
const MIGRATE: Keys = key(3).taken_from().and(keys_after("KEYS", -2).to_end().taken_from());
const ZUNIONSTORE: Keys = key(1).overwritten().and(counted(2).read());
const BZMPOP: Keys = counted(2).taken_from();
const EVAL: Keys = counted(2).changed();
const MSET: Keys = keys(1, -1, 2).overwritten();
const BZPOPMIN: Keys = keys(1, -2, 1).taken_from();

fn found(keys: Keys, request: &str) -> (Vec<(usize, KeyFlags)>, bool) {
    let words: OwnedRequest = request.split(' ').map(str::as_bytes).collect();
    let found = keys.find(words.as_request(), 1);
    let keys = found.ranges.iter().flat_map(|range| range.positions().map(|at| (at, range.flags)));
    (keys.collect(), found.is_invalid)
}

fn positions(keys: Keys, request: &str) -> Vec<usize> {
    found(keys, request).0.into_iter().map(|(at, _)| at).collect()
}

#[test]
fn keys_are_found_wherever_they_are() {
    for (keys, request, expected) in [
        (XREAD, "XREAD COUNT 2 STREAMS a b 0 0", &[4, 5][..]),
        (XREAD, "XREAD streams a 0", &[2]),
        (XREAD, "XREAD COUNT 2 a b", &[]),
        (XREAD, "XREAD BLOCK 0 STREAMS", &[]),
        (XREADGROUP, "XREADGROUP GROUP STREAMS c STREAMS a >", &[5]),
        (SORT, "SORT a", &[1]),
        (SORT, "SORT a BY STORE STORE b", &[1, 5]),
        (SORT, "SORT a LIMIT 0 5 GET # STORE b STORE c", &[1, 10]),
        (SORT, "SORT a STORE", &[1]),
        (GEORADIUS, "GEORADIUS a 1 2 3 km", &[1]),
        (GEORADIUS, "GEORADIUS a 1 2 3 km STORE b STOREDIST c", &[1, 7, 9]),
        (MIGRATE, "MIGRATE host 6379 a 0 5000", &[3]),
        (MIGRATE, "MIGRATE host 6379 a 0 5000 KEYS b c", &[3, 7, 8]),
        (ZUNIONSTORE, "ZUNIONSTORE a 2 b c WEIGHTS 1 2", &[1, 3, 4]),
        (BZMPOP, "BZMPOP 0 2 a b MIN", &[3, 4]),
        (EVAL, "EVAL script 1 a b", &[3]),
        (MSET, "MSET a 1 b 2", &[1, 3]),
        (MSET, "MSET a 1 b", &[1, 3]),
        (BZPOPMIN, "BZPOPMIN a b 0", &[1, 2]),
    ] {
        assert_eq!(positions(keys, request), expected, "{request}");
    }
}

#[test]
fn an_impossible_count_makes_a_request_invalid() {
    for (keys, request, expected) in [
        (ZUNIONSTORE, "ZUNIONSTORE a 3 b c", &[1][..]),
        (ZUNIONSTORE, "ZUNIONSTORE a x b c", &[1]),
        (ZUNIONSTORE, "ZUNIONSTORE a 0 b c", &[1]),
        (BZMPOP, "BZMPOP 0", &[]),
        (EVAL, "EVAL script 9223372036854775807 a", &[]),
        (EVAL, "EVAL script -1 a", &[]),
    ] {
        let (keys, is_invalid) = found(keys, request);
        assert!(is_invalid, "{request}");
        assert_eq!(keys.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected, "{request}");
    }
    let words: OwnedRequest = ["EVAL", "script", "0", "a"].into_iter().map(str::as_bytes).collect();
    let none = EVAL.find(words.as_request(), 0);
    assert!(!none.is_invalid && none.ranges.is_empty());
}

#[test]
fn each_key_has_its_own_use() {
    let (keys, _) = found(ZUNIONSTORE, "ZUNIONSTORE a 2 b c");
    assert_eq!(keys, [(1, KeyFlags::OVERWRITE), (3, KeyFlags::READ), (4, KeyFlags::READ)]);
    assert!(keys[0].1.writes() && !keys[1].1.writes());
    let (keys, _) = found(SORT, "SORT a STORE b");
    assert_eq!(keys, [(1, KeyFlags::READ), (3, KeyFlags::OVERWRITE)]);
}

#[test]
fn only_keys_independent_of_arguments_are_at_fixed_positions() {
    for (keys, is_movable, range) in [
        (key(1), false, (1, 1, 1)),
        (MSET, false, (1, -1, 2)),
        (BZPOPMIN, false, (1, -2, 1)),
        (key(1).taken_from().and(key(2).overwritten()), false, (1, 2, 1)),
        (key(2).overwritten().and(keys(3, -1, 1).read()), false, (2, -1, 1)),
        (ZUNIONSTORE, true, (1, 1, 1)),
        (GEORADIUS, true, (1, 1, 1)),
        (SORT, true, (1, 1, 1)),
        (XREAD, true, (0, 0, 0)),
        (EVAL, true, (0, 0, 0)),
        (Keys::EVERYTHING, false, (0, 0, 0)),
    ] {
        assert_eq!((keys.are_movable(), keys.fixed_range()), (is_movable, range), "{:?}", keys.specs());
        assert_eq!(keys.find_in_any(6).is_none(), is_movable, "{:?}", keys.specs());
    }
    let ranges = MSET.find_in_any(5).unwrap().ranges;
    assert_eq!(ranges.iter().flat_map(|range| range.positions()).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn one_key_at_a_fixed_position_is_locked_without_a_search() {
    assert_eq!(key(2).changed().locks, Locks::Key(2));
    assert_eq!(key(1).and(key(2)).locks, Locks::Keys);
    assert_eq!(SORT.locks, Locks::Keys);
    assert_eq!(key(1).channels().locks, Locks::None);
    assert_eq!(counted(2).declared().locks, Locks::Declared);
}
