//! Registers against a plain model.

use super::*;
use crate::encoding::Reader;
use crate::types::{self, Shapes, Thresholds};
use std::collections::BTreeMap;

/// A register as the model has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Plain {
    current: Option<(Version, Option<i64>, Vec<u8>)>,
    order: Option<Order>,
    /// Versions below are closed, besides those up to the current one.
    sealed: Option<Version>,
    buffer: BTreeMap<Version, Owned>,
}

impl Plain {
    fn is_closed(&self, version: Version) -> bool {
        self.current.as_ref().is_some_and(|(current, ..)| version <= *current)
            || self.sealed.is_some_and(|sealed| version < sealed)
    }

    /// Forgets what is closed, and a seal that says nothing new.
    fn settle(mut self) -> Plain {
        let plain = self.clone();
        self.buffer.retain(|version, _| !plain.is_closed(*version));
        if let (Some((current, ..)), Some(sealed)) = (&self.current, self.sealed)
            && current.successor().is_none_or(|next| sealed <= next)
        {
            self.sealed = None;
        }
        self
    }
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
        order: register.order(),
        sealed: register.sealed(),
        buffer: register
            .buffered_from(Version::of_round(0))
            .map(|(version, operation)| (version, Owned::of(operation)))
            .collect(),
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
        let (mut entry, mut model) = (None, Plain::default());
        for _ in 0..random.usize(1..60) {
            let version =
                Version { epoch: if random.u8(..8) == 0 { random.u64(..3) } else { 0 }, round: random.u64(..30) };
            let operation = match random.bool() {
                true => Owned::Put(vec![b'v'; [0, 1, 40, 4_096, 4_097][random.usize(..5)]]),
                false => Owned::Add(random.i64(..)),
            };
            match random.u8(..22) {
                0..6 => {
                    let version = match random.u8(..30) {
                        0 => Version { round: u64::MAX, ..version },
                        1 => Version { epoch: u64::MAX, round: u64::MAX },
                        _ => version,
                    };
                    let added = random.bool().then(|| random.i64(..));
                    let value = vec![b'w'; [0, 7, 5_000][random.usize(..3)]];
                    make(&mut entry, Change::Set(Current { version, added, value: &value }));
                    model.current = Some((version, added, value));
                }
                6..17 => {
                    let order = if random.u8(..6) == 0 { Order::OneByOne } else { Order::UntilSealed };
                    let order = if random.u8(..4) > 0 { model.order.unwrap_or(order) } else { order };
                    let version = match order {
                        Order::OneByOne => Version::of_round(version.round + 1),
                        Order::UntilSealed => version,
                    };
                    make(&mut entry, Change::Buffer { version, order, operation: operation.operation() });
                    if !model.is_closed(version) && *model.order.get_or_insert(order) == order {
                        model.buffer.insert(version, operation);
                    }
                }
                17..20 => {
                    make(&mut entry, Change::Seal { below: version });
                    if !model.is_closed(version) && version > least_version(model.order) {
                        model.sealed = Some(version);
                    }
                }
                _ => {
                    let order = if random.bool() { Order::OneByOne } else { Order::UntilSealed };
                    make(&mut entry, Change::Order(order));
                    if entry.is_some() {
                        model.order.get_or_insert(order);
                    }
                }
            }
            model = model.settle();
            let Some(entry) = &entry else {
                assert_eq!(model, Plain::default());
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
        let lens = [None, Some(Order::OneByOne), Some(Order::UntilSealed)].map(|order| {
            let entry = change::create(b"r", order, Current { version, added, value: &[7; 32] }, None);
            assert_eq!(register(&entry).current(), Some(Current { version, added, value: &[7; 32] }));
            assert_eq!(register(&entry).order(), order);
            entry.body().len()
        });
        assert!(lens[0] == lens[1] && lens[0] == lens[2]);
        lens[0]
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
        make(&mut entry, Change::Buffer { version: Version::of_round(version), order: Order::OneByOne, operation });
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
    assert_eq!(sum.apply_below(register, Version::of_round(7)), Ok(()));
    assert_eq!((sum.current(), sum.applied()), (value(6, None, b"x"), 3));
    assert_eq!(
        Accumulator::from(register.current()).apply_below(register, Version::of_round(8)),
        Err((Version::of_round(7), Unfit::NotInteger))
    );
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
        &[0u8, 0][..],                       // nothing at all
        &[1, 1, 0, 0, 0],                    // an unknown form
        &[0, 64, 0, 0, 0],                   // an unknown part
        &[0, 8],                             // an order and nothing else
        &[0, 25, 0, 5, 0],                   // two orders
        &[0, 32, 1, 9],                      // the epoch of a seal that is not there
        &[0, 34, 0, 9],                      // the epoch of a seal, which is 0
        &[0, 18, 0],                         // a seal of nothing, of versions from 0.0 on
        &[0, 20, 2, 1, 5, 0, 0, 0, 0, 0, 0], // a version twice, in an epoch
        &[0, 21, 1, 2, 5, 0, 1, 1, 9, 0, 0], // an operation of an epoch that was overtaken
        &[0, 1, 4, 0, 0],                    // an unknown flag of a version
        &[0, 1, 1, 0, 0, 0],                 // an epoch that is 0
        &[0, 3, 0, 5, 0, 6],                 // a seal that the version implies
        &[0, 3, 1, 1, 5, 0, 9],              // a seal behind an epoch
        &[0, 2, 1],                          // a seal of nothing
        &[0, 4, 0],                          // an empty buffer
        &[0, 5, 0, 5, 0, 1, 5, 0, 0],        // an operation that was overtaken
        &[0, 4, 2, 5, 0, 0, 0, 0, 0],        // a version twice
        &[0, 4, 1, 5, 2, 0],                 // an unknown operation
        &[0, 5, 1, 1, 5, 0, 1, 5, 0, 0],     // a buffer behind an epoch
    ] {
        assert!((TYPE.check_image)(&mut Reader::new(bad)).is_err(), "{bad:?}");
    }
    for good in [
        &[0u8, 7, 0, 5, 0, 9, 1, 9, 1, 2][..],
        &[0, 15, 0, 5, 0, 9, 1, 9, 1, 2],
        &[0, 55, 1, 2, 5, 0, 3, 9, 2, 3, 9, 1, 2, 0, 1, 1, 4],
    ] {
        assert_eq!((TYPE.check_image)(&mut Reader::new(good)), Ok(()), "{good:?}");
        for end in 0..good.len() {
            assert!((TYPE.check_image)(&mut Reader::new(&good[..end])).is_err());
        }
    }
}

/// Images of older versions do not say how ordered versions are taken. A buffer says it: one by one.
#[test]
fn an_image_of_an_older_version_is_read() {
    let order = |image: &[u8]| {
        let entry = (TYPE.read_image)(b"r", Reader::new(image), &mut Shapes::default(), None);
        register(&entry).order()
    };
    assert_eq!(order(&[0, 1, 0, 5, 0]), None);
    assert_eq!(order(&[0, 2, 9]), None);
    assert_eq!(order(&[0, 4, 1, 9, 1, 2]), Some(Order::OneByOne));
    assert_eq!(order(&[0, 7, 0, 5, 0, 9, 1, 9, 1, 2]), Some(Order::OneByOne));
}
