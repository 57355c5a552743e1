//! Registers against a plain model.

use super::*;
use crate::encoding::Reader;
use crate::types::{self, Shapes, Thresholds};
use std::collections::BTreeMap;

/// A register as the model has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    current: Option<(Version, Option<i64>, Vec<u8>)>,
    /// The first version of epoch 0 that is not closed.
    next: u64,
    buffer: BTreeMap<u64, Owned>,
}

#[derive(Clone, Debug, PartialEq)]
enum Owned {
    Put(Vec<u8>),
    Add(i64),
}

impl Owned {
    fn operation(&self) -> Operation<'_> {
        match self {
            Owned::Put(value) => Operation::Put(value),
            Owned::Add(number) => Operation::Add(*number),
        }
    }

    fn of(operation: Operation<'_>) -> Owned {
        match operation {
            Operation::Put(value) => Owned::Put(value.to_vec()),
            Operation::Add(number) => Owned::Add(number),
        }
    }
}

fn make(entry: &mut Option<Entry>, change: Change<'_>) {
    match entry {
        Some(entry) => {
            types::Change::from(change).apply(entry, &mut Shapes::default(), &Thresholds::default());
        }
        None => *entry = change.create(b"register").map(|(entry, _)| entry),
    }
}

fn shown(entry: &Entry) -> Plain {
    let register = register(entry);
    Plain {
        current: register.current().map(|current| (current.version, current.added, current.value.to_vec())),
        next: register.next().unwrap_or(0),
        buffer: register.buffered_from(0).map(|(version, operation)| (version, Owned::of(operation))).collect(),
    }
}

fn image(entry: &Entry) -> Vec<u8> {
    let mut image = Vec::new();
    (TYPE.write_image)(entry, &Shapes::default(), &mut image);
    image
}

fn restored(entry: &Entry) -> Entry {
    let image = image(entry);
    let mut reader = Reader::new(&image);
    (TYPE.check_image)(&mut reader).expect("an image that was just written is one");
    assert!(reader.is_empty());
    (TYPE.read_image)(b"register", Reader::new(&image), &mut Shapes::default(), Some(9))
}

#[test]
fn random_changes_agree_with_the_model() {
    let mut random = fastrand::Rng::with_seed(15);
    for _ in 0..400 {
        let (mut entry, mut model) = (None, Plain { next: 1, ..Plain::default() });
        for _ in 0..random.usize(1..60) {
            let round = random.u64(0..30);
            let operation = match random.bool() {
                true => Owned::Put(vec![b'v'; [0, 1, 40, 4_096, 4_097][random.usize(..5)]]),
                false => Owned::Add(random.i64(..)),
            };
            match random.u8(..20) {
                0..6 => {
                    let epoch = if random.u8(..8) == 0 { random.u64(..) } else { 0 };
                    let round = if random.u8(..20) == 0 { u64::MAX } else { round };
                    let version = Version { epoch, round };
                    let added = random.bool().then(|| random.i64(..));
                    let value = vec![b'w'; [0, 7, 5_000][random.usize(..3)]];
                    make(&mut entry, Change::Set(Current { version, added, value: &value }));
                    let is_last = epoch > 0 || round == u64::MAX;
                    // The seal is ahead of the version, or forgotten.
                    let is_sealed =
                        model.next > model.current.as_ref().map_or(1, |(version, ..)| version.round.wrapping_add(1));
                    let sealed = if is_sealed { model.next } else { 0 };
                    model.next = if is_last { 0 } else { sealed.max(round + 1) };
                    model.buffer.retain(|version, _| !is_last && *version > round);
                    model.current = Some((version, added, value));
                }
                6..17 => {
                    make(&mut entry, Change::Buffer { version: round + 1, operation: operation.operation() });
                    if model.next > 0 && round + 1 >= model.next {
                        model.buffer.insert(round + 1, operation);
                    }
                }
                _ => {
                    make(&mut entry, Change::Seal { below: round });
                    if model.next > 0 && round > model.next {
                        model.next = round;
                        model.buffer.retain(|version, _| *version >= round);
                    }
                }
            }
            let Some(entry) = &entry else {
                assert_eq!(model, Plain { next: 1, ..Plain::default() });
                continue;
            };
            assert_eq!(shown(entry), model);
            assert_eq!(shown(&restored(entry)), model);
            assert_eq!(restored(entry).deadline(), Some(9));
            assert_eq!(image(&restored(entry)), image(entry));
            assert_eq!(shown(&entry.clone()), model);
            let is_short = model.current.as_ref().is_some_and(|(.., value)| value.len() <= packed::VALUE_BYTES_MAX);
            let is_plain = model.buffer.is_empty() && register(entry).sealed().is_none() && is_short;
            assert_eq!(entry.kind() == PACKED, is_plain);
            if let Some(object) = entry.object() {
                let bytes: usize =
                    model.buffer.values().map(|kept| if let Owned::Put(v) = kept { v.len() } else { 0 }).sum();
                let value = model.current.as_ref().map_or(0, |(.., value)| value.len());
                assert_eq!(register_of(object).unwrap().bytes(), bytes + value);
                assert!((TYPE.heap_bytes)(object, usize::MAX) >= bytes + value);
            }
        }
    }
}

#[test]
fn a_register_takes_little_more_than_its_value() {
    let body = |version: Version, added| {
        let entry = change::create(b"r", Current { version, added, value: &[7; 32] }, None);
        assert_eq!(register(&entry).current(), Some(Current { version, added, value: &[7; 32] }));
        entry.body().len()
    };
    assert_eq!(body(Version::of_round(200), None), 32 + 2);
    assert_eq!(body(Version::of_round(0), None), 32 + 1);
    assert_eq!(body(Version::of_round(1_000), Some(-1)), 32 + 5);
    assert_eq!(body(Version { epoch: u64::MAX, round: u64::MAX }, Some(i64::MIN)), 32 + 1 + 8 + 9 + 9);
}

#[test]
fn operations_come_to_a_value_one_after_the_other() {
    let mut entry = None;
    make(&mut entry, Change::Set(Current { version: Version::of_round(2), added: None, value: b"40" }));
    for (version, operation) in [
        (3, Operation::Add(1)),
        (4, Operation::Add(-2)),
        (6, Operation::Put(b"x")),
        (7, Operation::Add(1)),
        (9, Operation::Put(b"7")),
        (10, Operation::Add(i64::MAX)),
    ] {
        make(&mut entry, Change::Buffer { version, operation });
    }
    let register = register(entry.as_ref().unwrap());
    let value = |round, added, value: &'static [u8]| Some(Current { version: Version::of_round(round), added, value });
    let mut sum = Accumulator::from(register.current());
    sum.apply_without_gap(register, 3);
    assert_eq!((sum.current(), sum.applied()), (value(4, Some(-2), b"39"), 2));
    // It stops before what cannot be applied, and where a version is missing.
    sum.apply_without_gap(register, 6);
    assert_eq!((sum.current(), sum.applied()), (value(6, None, b"x"), 3));
    assert_eq!(sum.apply(Version::of_round(7), Operation::Add(1)), Err(Unfit::NotInteger));
    sum.apply_without_gap(register, 9);
    assert_eq!(sum.into_owned().current(), value(9, None, b"7"));
    let mut sum = Accumulator::from(register.current());
    assert_eq!(sum.apply_below(register, 7), Ok(()));
    assert_eq!((sum.current(), sum.applied()), (value(6, None, b"x"), 3));
    assert_eq!(Accumulator::from(register.current()).apply_below(register, 8), Err((7, Unfit::NotInteger)));
    let mut sum = Accumulator::from(value(9, None, b"7"));
    assert_eq!(sum.apply(Version::of_round(10), Operation::Add(i64::MAX)), Err(Unfit::Overflow));
    assert_eq!((sum.current(), sum.applied()), (value(9, None, b"7"), 0));
    let mut sum = Accumulator::from(None);
    assert_eq!(sum.apply(Version { epoch: 1, round: 0 }, Operation::Add(-5)), Ok(()));
    assert_eq!(sum.current().map(|current| current.value.to_vec()), Some(b"-5".to_vec()));
}

#[test]
fn an_image_that_no_register_has_is_refused() {
    for bad in [
        &[0u8, 0][..],                   // nothing at all
        &[1, 1, 0, 0, 0],                // an unknown form
        &[0, 8, 0, 0, 0],                // an unknown part
        &[0, 1, 4, 0, 0],                // an unknown flag of a version
        &[0, 1, 1, 0, 0, 0],             // an epoch that is 0
        &[0, 3, 0, 5, 0, 6],             // a seal that the version implies
        &[0, 3, 1, 1, 5, 0, 9],          // a seal behind an epoch
        &[0, 2, 1],                      // a seal of nothing
        &[0, 4, 0],                      // an empty buffer
        &[0, 5, 0, 5, 0, 1, 5, 0, 0],    // an operation that was overtaken
        &[0, 4, 2, 5, 0, 0, 0, 0, 0],    // a version twice
        &[0, 4, 1, 5, 2, 0],             // an unknown operation
        &[0, 5, 1, 1, 5, 0, 1, 5, 0, 0], // a buffer behind an epoch
    ] {
        assert!((TYPE.check_image)(&mut Reader::new(bad)).is_err(), "{bad:?}");
    }
    let good: &[u8] = &[0, 7, 0, 5, 0, 9, 1, 9, 1, 2];
    assert_eq!((TYPE.check_image)(&mut Reader::new(good)), Ok(()));
    for end in 0..good.len() {
        assert!((TYPE.check_image)(&mut Reader::new(&good[..end])).is_err());
    }
}
