//! Both forms against a plain deque, and the specifics of each.

use super::*;
use crate::encoding::Reader;
use crate::storage::Scalar;
use crate::types::Shapes;
use std::collections::VecDeque;

type Model = VecDeque<Vec<u8>>;

/// Elements that are numbers, short and long texts, and now and then one that is longer than a chunk.
fn element(random: &mut fastrand::Rng, size: usize) -> Vec<u8> {
    match random.u8(..20) {
        0..4 => random.i8(..).to_string().into_bytes(),
        4..6 => random.i64(..).to_string().into_bytes(),
        6 => vec![],
        7 => vec![b'l'; random.usize(..300)],
        8 if random.u8(..20) == 0 => vec![b'h'; random.usize(..40_000)],
        9 => format!("job:{:012}", random.u32(..1000)).into_bytes(),
        10..13 => (0..random.usize(..size)).map(|_| random.u8(..)).collect(),
        _ => (0..random.usize(..size)).map(|_| random.alphanumeric() as u8).collect(),
    }
}

fn elements_of(list: ListRef<'_>, range: Range<usize>, from: Side) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    list.visit(range, from, |element| {
        found.push(element.bytes().into_owned());
        true
    });
    found
}

/// Compares all that can be read with what it should be.
fn assert_is(entry: &Entry, model: &Model, random: &mut fastrand::Rng) {
    let list = list(entry);
    assert_eq!(list.len(), model.len());
    let mut all = Vec::new();
    list.for_each(|element| all.push(element.bytes().into_owned()));
    assert!(all.iter().eq(model.iter()), "{} elements", model.len());
    let (a, b) = (random.usize(..=model.len()), random.usize(..model.len() + 3));
    let inside: Vec<Vec<u8>> = model.iter().skip(a).take(b.saturating_sub(a)).cloned().collect();
    assert_eq!(elements_of(list, a..b, Side::Left), inside);
    let backwards: Vec<Vec<u8>> = inside.into_iter().rev().collect();
    assert_eq!(elements_of(list, a..b, Side::Right), backwards);
    for index in [0, random.usize(..model.len()), model.len() - 1, model.len()] {
        assert_eq!(list.with(index, |element| element.bytes().into_owned()).as_ref(), model.get(index), "{index}");
    }
    // It ends where it is told to.
    let mut seen = 0;
    list.visit(0..list.len(), Side::Right, |_| {
        seen += 1;
        seen < 3
    });
    assert_eq!(seen, model.len().min(3));
}

fn push(entry: Option<Entry>, model: &mut Model, side: Side, elements: &[&[u8]]) -> Option<Entry> {
    for element in elements {
        match side {
            Side::Left => model.push_front(element.to_vec()),
            Side::Right => model.push_back(element.to_vec()),
        }
    }
    let change = Change::Push { side, elements };
    let (entry, applied) = match entry {
        None => change.create(b"key", &Thresholds::default()).unwrap(),
        Some(mut entry) => {
            let applied = change.apply(&mut entry, &Thresholds::default());
            (entry, applied)
        }
    };
    assert_eq!(applied.count, model.len());
    Some(entry)
}

fn side(random: &mut fastrand::Rng) -> Side {
    if random.bool() { Side::Left } else { Side::Right }
}

/// One change of a random kind that is no push. `None` when no element is left.
fn step(mut list: Entry, model: &mut Model, random: &mut fastrand::Rng, size: usize) -> Option<Entry> {
    let side = side(random);
    match random.u8(..11) {
        0..5 => {
            let count = if random.u8(..4) == 0 { random.usize(..model.len() + 2) } else { random.usize(..4) };
            let applied = Change::Pop { side, count }.apply(&mut list, &Thresholds::default());
            let gone = count.min(model.len());
            assert_eq!((applied.count, applied.emptied()), (gone, gone == model.len()));
            match side {
                Side::Left => drop(model.drain(..gone)),
                Side::Right => drop(model.drain(model.len() - gone..)),
            }
            if applied.emptied() {
                return None;
            }
        }
        5..7 => {
            let (index, element) = (random.usize(..model.len()), element(random, size));
            assert_eq!(Change::Set { index, element: &element }.apply(&mut list, &Thresholds::default()).count, 1);
            model[index] = element;
        }
        7..9 => {
            let (index, element) = (random.usize(..=model.len()), element(random, size));
            assert_eq!(
                Change::Insert { index, element: &element }.apply(&mut list, &Thresholds::default()).count,
                model.len() + 1
            );
            model.insert(index, element);
        }
        _ => {
            let element = match random.bool() {
                true => model[random.usize(..model.len())].clone(),
                false => element(random, size),
            };
            let count = if random.bool() { usize::MAX } else { random.usize(1..4) };
            let applied = Change::Remove { side, count, element: &element }.apply(&mut list, &Thresholds::default());
            let mut equal: Vec<usize> = (0..model.len()).filter(|at| model[*at] == element).collect();
            if side == Side::Right {
                equal.reverse();
            }
            equal.truncate(count);
            equal.sort_unstable();
            for at in equal.iter().rev() {
                model.remove(*at);
            }
            assert_eq!((applied.count, applied.emptied()), (equal.len(), model.is_empty()));
            if model.is_empty() {
                return None;
            }
        }
    }
    Some(list)
}

#[test]
fn lists_do_what_a_deque_does() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    for round in 0..60 {
        let size = [8, 40, 200, 3000][round % 4];
        let (mut entry, mut model) = (None, Model::new());
        let mut largest = 0;
        for number in 0..600 {
            let grows = number % 200 < 120;
            entry = match entry.take() {
                Some(list) if random.u8(..20) >= if grows { 12 } else { 5 } => {
                    step(list, &mut model, &mut random, size)
                }
                kept => {
                    let many = if random.u8(..8) == 0 { random.usize(1..400) } else { random.usize(1..5) };
                    let elements: Vec<Vec<u8>> = (0..many).map(|_| element(&mut random, size)).collect();
                    let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
                    let side = side(&mut random);
                    push(kept, &mut model, side, &elements)
                }
            };
            let Some(entry) = &entry else { continue };
            largest = largest.max(model.len());
            if number % 7 == 0 {
                assert_is(entry, &model, &mut random);
            }
            if number % 50 == 0 {
                assert_survives(entry, &model, &mut random);
            }
        }
        assert!(largest > 100);
    }
}

/// The image of a list is read back as an equal list, and a copy is independent.
fn assert_survives(entry: &Entry, model: &Model, random: &mut fastrand::Rng) {
    let mut image = Vec::new();
    image::write(entry, &Shapes::default(), &mut image);
    let mut reader = Reader::new(&image);
    image::check(&mut reader).unwrap();
    assert!(reader.is_empty());
    let mut read = image::read(b"other", Reader::new(&image), &mut Shapes::default(), Some(5));
    assert_is(&read, model, random);
    assert_eq!((read.name(), read.deadline()), (&b"other"[..], Some(5)));
    let copy = entry.clone();
    Change::Pop { side: Side::Left, count: 1 }.apply(&mut read, &Thresholds::default());
    assert_is(&copy, model, random);
}

#[test]
fn chunks_are_full_and_their_elements_take_one_byte_more() {
    for side in [Side::Left, Side::Right] {
        let mut list = ChunkedList::default();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..100_000 {
            let mut noise = [0; 32];
            random.fill(&mut noise);
            list.push(side, &noise);
        }
        let bytes = list.heap_bytes(usize::MAX) as f64 / 100_000.0;
        assert!(bytes < 33.7, "{bytes} bytes an element");
        let counts = list.chunk_counts();
        // The first few do not know yet that nothing can be packed.
        let full = counts.iter().filter(|count| **count == sealed::Sealed::BYTES_MAX / 33).count();
        assert!(full + 8 >= counts.len(), "{counts:?}");
    }
}

#[test]
fn ids_and_texts_take_less_than_their_bytes() {
    let mut random = fastrand::Rng::with_seed(7);
    let mut filled = |element: &mut dyn FnMut(&mut fastrand::Rng, usize) -> String| {
        let mut list = ChunkedList::default();
        (0..100_000).for_each(|number| list.push(Side::Left, element(&mut random, number).as_bytes()));
        list.heap_bytes(usize::MAX) as f64 / 100_000.0
    };
    let hex = filled(&mut |random, _| format!("{:032x}", random.u128(..)));
    let jobs = filled(&mut |_, number| format!("queue:jobs:{number:021}"));
    let texts = filled(&mut |random, _| (0..32).map(|_| char::from(random.u8(32..127))).collect());
    assert!(hex < 21.5 && jobs < 21.5 && texts < 29.8, "{hex} {jobs} {texts}");
}

/// Pushes and pops by turns touch one open chunk, wherever the boundary of chunks is.
#[test]
fn no_chunk_is_sealed_and_opened_over_and_over() {
    let mut list = ChunkedList::default();
    for number in 0..10_000 {
        list.push(Side::Left, format!("{number:032}").as_bytes());
    }
    let mut changes = 0;
    for _ in 0..1_000 {
        let before = list.chunk_counts().len();
        for _ in 0..100 {
            list.push(Side::Left, &[b'x'; 32]);
        }
        list.pop(Side::Left, 100);
        changes += usize::from(list.chunk_counts().len() != before);
    }
    assert!(changes <= 2, "{changes}");
}

#[test]
fn a_list_that_has_become_small_is_packed_again() {
    let elements: Vec<Vec<u8>> = (0..1000).map(|number| format!("element {number}").into_bytes()).collect();
    let elements: Vec<&[u8]> = elements.iter().map(Vec::as_slice).collect();
    let mut entry = push(None, &mut Model::new(), Side::Right, &elements).unwrap();
    assert!(entry.object().is_some());
    Change::Pop { side: Side::Left, count: 995 }.apply(&mut entry, &Thresholds::default());
    assert!(entry.object().is_none());
    assert_eq!(elements_of(list(&entry), 0..5, Side::Left), elements[995..]);
}

#[test]
fn a_very_large_element_is_not_copied_when_it_is_no_longer_at_the_end() {
    let mut chunks = ChunkedList::default();
    let large = vec![b'x'; 1_000_000];
    for side in [Side::Left, Side::Right] {
        chunks.push(side, b"before");
        chunks.push(side, &large);
        chunks.push(side, b"behind");
    }
    let mut lens = Vec::new();
    chunks.visit(0..6, Side::Left, &mut |element: Scalar<'_>| {
        lens.push(element.len());
        true
    });
    assert_eq!(lens, [6, 1_000_000, 6, 6, 1_000_000, 6]);
    chunks.insert(2, b"beside");
    chunks.insert(1, b"beside");
    chunks.set(1, b"other");
    chunks.pop(Side::Left, 2);
    chunks.pop(Side::Left, 1);
    assert_eq!(chunks.len(), 5);
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let entry = || push(None, &mut Model::new(), Side::Right, &[b"a", b"b"]).unwrap();
    for change in [
        Change::Set { index: 2, element: b"x" },
        Change::Insert { index: 3, element: b"x" },
        Change::Remove { side: Side::Left, count: 1, element: b"x" },
        Change::Remove { side: Side::Left, count: 0, element: b"a" },
        Change::Pop { side: Side::Right, count: 0 },
    ] {
        let mut list = entry();
        assert!(!change.apply(&mut list, &Thresholds::default()).emptied());
        assert_eq!(elements_of(super::list(&list), 0..9, Side::Left), [b"a", b"b"], "{change:?}");
    }
    assert!(Change::Set { index: 0, element: b"x" }.create(b"k", &Thresholds::default()).is_none());
}

#[test]
fn a_list_takes_no_more_room_in_its_entry_than_others_do() {
    assert!(size_of::<ChunkedList>() <= size_of::<crate::types::sorted_set::SortedSet>());
}

#[test]
fn forms_change_where_redis_changes_them() {
    let counted = Thresholds { small_size_max: 3 };
    let make = |elements: &[&[u8]], thresholds: &Thresholds| {
        Change::Push { side: Side::Right, elements }.create(b"k", thresholds).unwrap().0
    };
    let encoding = |entry: &Entry| (TYPE.encoding)(entry);
    let mut entry = make(&[b"a", b"b", b"c"], &counted);
    assert_eq!(encoding(&entry), "listpack");
    Change::Push { side: Side::Left, elements: &[b"d"] }.apply(&mut entry, &counted);
    assert_eq!(encoding(&entry), "quicklist");
    // It becomes small again at half the limit.
    Change::Pop { side: Side::Right, count: 2 }.apply(&mut entry, &counted);
    assert_eq!(encoding(&entry), "quicklist");
    let mut removed = entry.clone();
    Change::Pop { side: Side::Right, count: 1 }.apply(&mut entry, &counted);
    assert_eq!((encoding(&entry), entry.kind()), ("listpack", PACKED));
    Change::Remove { side: Side::Left, count: 1, element: b"d" }.apply(&mut removed, &counted);
    assert_eq!(encoding(&removed), "listpack");
    // A list that is full becomes large when an element is replaced, as in Redis.
    let mut full = make(&[b"a", b"b", b"c"], &counted);
    Change::Set { index: 0, element: b"x" }.apply(&mut full, &counted);
    assert_eq!(encoding(&full), "quicklist");
    let mut inserted = make(&[b"a", b"b", b"c"], &counted);
    Change::Insert { index: 1, element: b"x" }.apply(&mut inserted, &counted);
    assert_eq!(encoding(&inserted), "quicklist");
    assert_eq!(elements_of(list(&inserted), 0..9, Side::Left), [b"a", b"x", b"b", b"c"]);

    for (class, bytes_max) in [(-1, 4096), (-2, 8192), (-3, 16_384), (-4, 32_768), (-5, 65_536), (-9, 65_536)] {
        let thresholds = Thresholds { small_size_max: class };
        let long = vec![b'x'; bytes_max - EMPTY_BYTES];
        assert_eq!(encoding(&make(&[&long], &thresholds)), "listpack", "{class}");
        assert_eq!(encoding(&make(&[&long, b"x"], &thresholds)), "quicklist", "{class}");
        let element = vec![b'x'; 100];
        let mut entry = make(&[&element], &thresholds);
        let mut len = 1;
        while encoding(&entry) == "listpack" {
            len = Change::Push { side: Side::Right, elements: &[&element] }.apply(&mut entry, &thresholds).count;
        }
        assert!((bytes_max / 105..=bytes_max / 100 + 1).contains(&len), "{class}: {len} elements");
        while encoding(&entry) == "quicklist" {
            Change::Pop { side: Side::Left, count: 1 }.apply(&mut entry, &thresholds);
            len -= 1;
        }
        assert!((bytes_max / 2 / 105 - 1..=bytes_max / 2 / 100 + 1).contains(&len), "{class}: {len} elements");
    }
    let long = vec![b'x'; 9000];
    assert_eq!(encoding(&make(&[&long], &Thresholds { small_size_max: 100 })), "quicklist");
}

#[test]
fn an_image_keeps_the_form() {
    let counted = Thresholds { small_size_max: 2 };
    let large = Change::Push { side: Side::Right, elements: &[b"a", b"b", b"c"] }.create(b"k", &counted).unwrap().0;
    let wide = Thresholds { small_size_max: -5 };
    let element = vec![b'x'; 20_000];
    let small = Change::Push { side: Side::Right, elements: &[&element] }.create(b"k", &wide).unwrap().0;
    for (entry, encoding) in [(large, "quicklist"), (small, "listpack")] {
        let mut bytes = Vec::new();
        image::write(&entry, &Shapes::default(), &mut bytes);
        image::check(&mut Reader::new(&bytes)).unwrap();
        let read = image::read(b"k", Reader::new(&bytes), &mut Shapes::default(), None);
        assert_eq!([(TYPE.encoding)(&entry), (TYPE.encoding)(&read)], [encoding; 2]);
        // Lists that were written before there was a form.
        assert_ne!(bytes[0], 0);
        bytes[0] = 0;
        let read = image::read(b"k", Reader::new(&bytes), &mut Shapes::default(), None);
        assert_eq!((TYPE.encoding)(&read), if encoding == "listpack" { "quicklist" } else { "listpack" });
    }
}
