//! Filters: what they mean, on random values, and that servers agree with it.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use holdfast_client::{Fields, Filter, Query, StateStore};
use wire::Random;

use crate::own_commands::index_over;
use crate::places::{Place, everywhere, on_holdfast};

/// A value, and its place among the numbers if it is one: in thousandths, so that all have an exact one.
fn value(random: &mut Random) -> (Vec<u8>, Option<i128>) {
    const WORDS: [&[u8]; 12] =
        [b"", b"pending", b"nan", b"1 ", b" 1", b"1x", b"\xff", b"1,5", b"--1", b"1e", b"e1", b"1_000"];
    let whole = random.below(9) as i128 - 4;
    match random.below(8) {
        0 | 1 => (random.pick(&WORDS).to_vec(), None),
        2 => (format!("{whole}").into_bytes(), Some(whole * 1000)),
        3 => (format!("{whole:+04}").into_bytes(), Some(whole * 1000)),
        4 => (format!("{whole}.0").into_bytes(), Some(whole * 1000)),
        5 => (format!("{whole}e3").into_bytes(), Some(whole * 1_000_000)),
        6 => (format!("{whole}E-3").into_bytes(), Some(whole)),
        _ => {
            // Neighbours that a double cannot tell apart.
            let large = i64::MAX - random.below(4) as i64;
            (large.to_string().into_bytes(), Some(i128::from(large) * 1000))
        }
    }
}

fn order(held: &(Vec<u8>, Option<i128>), asked: &(Vec<u8>, Option<i128>)) -> Ordering {
    match (held.1, asked.1) {
        (Some(held), Some(asked)) => held.cmp(&asked),
        _ => held.0.cmp(&asked.0),
    }
}

#[test]
fn numbers_compare_as_numbers_and_anything_else_as_bytes() {
    let mut random = Random::from_env();
    for _ in 0..20_000 {
        let (held, a, b) = (value(&mut random), value(&mut random), value(&mut random));
        let record = Fields::new().with("other", "x").with("field", &held.0[..]);
        let (order, in_list) = (order(&held, &a), [&a, &b].iter().any(|value| order(&held, value).is_eq()));
        let list = || [&a.0[..], &b.0[..]];
        for (filter, expected) in [
            (Filter::eq("field", &a.0[..]), order.is_eq()),
            (Filter::ne("field", &a.0[..]), order.is_ne()),
            (Filter::lt("field", &a.0[..]), order.is_lt()),
            (Filter::le("field", &a.0[..]), order.is_le()),
            (Filter::gt("field", &a.0[..]), order.is_gt()),
            (Filter::ge("field", &a.0[..]), order.is_ge()),
            (Filter::is_in("field", list()), in_list),
            (Filter::not_in("field", list()), !in_list),
        ] {
            assert_eq!(filter.passes(&record), expected, "{filter:?} on {}", held.0.escape_ascii());
        }
    }
}

#[test]
fn a_record_without_the_field_passes_only_ne_and_notin() {
    let record = Fields::new().with("other", "x");
    for (filter, expected) in all_filters(b"", [b"", b"x"]).into_iter().zip([0, 1, 0, 0, 0, 0, 0, 1]) {
        assert_eq!(filter.passes(&record), expected == 1, "{filter:?}");
    }
    assert!(!Filter::is_in::<&str>("other", []).passes(&record));
    assert!(Filter::not_in::<&str>("other", []).passes(&record));
}

/// On a plain Redis the client filters, on Holdfast the server does: the same records pass.
#[test]
fn every_server_filters_alike() {
    const ODD: [&str; 16] = [
        "+9223372036854775807",
        "9223372036854775808",
        "-0",
        "0.0",
        "1e400",
        "1e-400",
        "inf",
        "-inf",
        "nan",
        "0x10",
        ".5",
        "5.",
        "-.5",
        ".",
        "+",
        "-",
    ];
    let mut random = Random::from_env();
    let mut any = || if random.one_in(3) { random.pick(&ODD).into() } else { value(&mut random).0 };
    let records: Vec<Fields> = (0..100)
        .map(|i| match i % 20 {
            0 => Fields::new().with("other", "x"),
            _ => Fields::new().with("field", any()),
        })
        .collect();
    let filters: Vec<Filter> = (0..10).flat_map(|_| all_filters(&any(), [&any(), &any()])).collect();
    everywhere(async |place| found_alike(place, &records, &filters).await);
}

/// With an index over the field a server may look there. It finds the same records, neighbours of 64 bits included.
#[test]
fn an_index_does_not_change_what_is_found() {
    let mut random = Random::from_env();
    let mut number = || loop {
        if let (number, Some(_)) = value(&mut random) {
            return number;
        }
    };
    let records: Vec<Fields> = (0..100).map(|_| Fields::new().with("field", number())).collect();
    let filters: Vec<Filter> = (0..10).flat_map(|_| all_filters(&number(), [&number(), &number()])).collect();
    on_holdfast(async |place, store| {
        index_over(&store, "r:", "field").await;
        found_alike(place, &records, &filters).await;
    });
}

async fn found_alike(place: &Place, records: &[Fields], filters: &[Filter]) {
    let store = place.store().await;
    for (i, fields) in records.iter().enumerate() {
        store.put(format!("r:{i}").as_bytes(), fields, None).await.unwrap();
    }
    for filter in filters {
        let passing = records.iter().enumerate().filter(|(_, fields)| filter.passes(fields));
        let expected: BTreeSet<Vec<u8>> = passing.map(|(i, _)| format!("r:{i}").into_bytes()).collect();
        let found = store.scan(Query::prefix("r:").filter(filter.clone())).collect().await.unwrap();
        let found: BTreeSet<Vec<u8>> = found.into_iter().map(|(key, _)| key).collect();
        assert_eq!(found, expected, "{filter:?} on {}", place.name);
    }
}

fn all_filters(value: &[u8], list: [&[u8]; 2]) -> [Filter; 8] {
    [
        Filter::eq("field", value),
        Filter::ne("field", value),
        Filter::lt("field", value),
        Filter::le("field", value),
        Filter::gt("field", value),
        Filter::ge("field", value),
        Filter::is_in("field", list),
        Filter::not_in("field", list),
    ]
}
