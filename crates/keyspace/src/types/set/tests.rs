//! Sets of every form against a plain one; images, those too that nothing here writes.

use super::*;
use crate::encoding::Reader;
use crate::storage::shapes::Shapes;
use crate::types::Applied;
use std::collections::BTreeSet;

type Model = BTreeSet<Vec<u8>>;

fn limit(intset_entries_max: usize) -> Thresholds {
    Thresholds { intset_entries_max, ..Thresholds::default() }
}

/// Whole numbers of all widths, texts that are nearly numbers, short and long texts.
fn member(random: &mut fastrand::Rng, range: u32) -> Vec<u8> {
    match random.u8(..8) {
        0..=2 => random.u32(..range).to_string().into_bytes(),
        3 => (i64::from(random.u32(..range)) * 100_000 - 500_000).to_string().into_bytes(),
        4 => (i64::MIN + i64::from(random.u32(..range))).to_string().into_bytes(),
        5 => format!("0{}", random.u32(..range)).into_bytes(),
        6 => vec![b'm'; random.usize(..100)],
        _ => format!("member:{}", random.u32(..range)).into_bytes(),
    }
}

/// The members, sorted, after a look at everything that a reader can ask for.
fn members(set: SetRef<'_>, random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let all: Vec<Vec<u8>> = set.iter().map(|member| member.bytes().into_owned()).collect();
    assert_eq!(all.len(), set.len());
    for member in &all {
        assert!(set.has(Scalar::Bytes(member)) && set.has(Scalar::of(member)), "{}", member.escape_ascii());
    }
    assert!(set.random(random).with_bytes(|member| set.has(Scalar::Bytes(member))));
    let (mut scanned, mut cursor) = (Vec::new(), Some(0));
    while let Some(at) = cursor {
        cursor = set.scan(at, 5, |member| scanned.push(member.bytes().into_owned()));
    }
    let mut sorted = all;
    sorted.sort();
    scanned.sort();
    assert_eq!(scanned, sorted, "a scan meets every member once");
    sorted
}

fn image_of_entry(entry: &Entry) -> Vec<u8> {
    let mut image = Vec::new();
    (TYPE.write_image)(entry, &Shapes::default(), &mut image);
    image
}

fn read(image: &[u8]) -> Entry {
    let mut reader = Reader::new(image);
    (TYPE.check_image)(&mut reader).expect("the image is good");
    assert!(reader.is_empty(), "all of it was read");
    (TYPE.read_image)(b"k", Reader::new(image), &mut Shapes::default(), None)
}

#[test]
fn random_changes_agree_with_a_plain_set() {
    let seed = 43;
    let mut random = fastrand::Rng::with_seed(seed);
    let mut kinds = BTreeSet::new();
    for round in 0..400 {
        let (mut thresholds, range) = (limit([0, 4, 512][round % 3]), [5, 30, 600][round / 3 % 3]);
        thresholds.small_entries_max = [128, 10, 0, 300][round % 4];
        thresholds.small_value_bytes_max = [64, 200][round % 2];
        let numbers_only = round % 2 == 0;
        let pick = |random: &mut fastrand::Rng| match numbers_only && random.u8(..50) > 0 {
            true => (i64::from(random.u32(..range)) - 3).to_string().into_bytes(),
            false => member(random, range),
        };
        let first: Vec<Vec<u8>> = (0..random.usize(1..40)).map(|_| pick(&mut random)).collect();
        let names: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        let (mut entry, applied) = Change::Add { members: &names }.create(b"k", &thresholds).expect("a new set");
        let mut model: Model = first.iter().cloned().collect();
        assert_eq!(applied.count, model.len(), "seed {seed}");
        for _ in 0..random.usize(..200) {
            let changed: Vec<Vec<u8>> = (0..random.usize(1..4)).map(|_| pick(&mut random)).collect();
            let names: Vec<&[u8]> = changed.iter().map(Vec::as_slice).collect();
            let was = form(&entry);
            if random.u8(..5) > 1 {
                let applied = Change::Add { members: &names }.apply(&mut entry, &thresholds);
                let added = changed.iter().filter(|member| model.insert(member.to_vec())).count();
                assert_eq!(applied, Applied::counted(added), "seed {seed}");
                assert!(was != Form::Large || form(&entry) == Form::Large, "a set never returns to a smaller form");
                assert!(was == Form::Intset || form(&entry) != Form::Intset, "a set never returns to a smaller form");
            } else {
                let applied = Change::Remove { members: &names }.apply(&mut entry, &thresholds);
                let removed = changed.iter().filter(|member| model.remove(*member)).count();
                assert_eq!((applied.count, applied.emptied()), (removed, model.is_empty()), "seed {seed}");
                if applied.emptied() {
                    break;
                }
            }
            let is_all_numbers = model.iter().all(|member| canonical_i64(member).is_some());
            assert!(entry.kind() != INTSET || is_all_numbers && thresholds.allow_intset(model.len()));
            let longest = longest(model.iter().map(Vec::len));
            assert!(form(&entry) != Form::Small || thresholds.allow_small(model.len(), longest), "seed {seed}");
        }
        if model.is_empty() {
            continue;
        }
        kinds.insert(format!("{:?} {:?}", entry.kind(), form(&entry)));
        let expected: Vec<Vec<u8>> = model.iter().cloned().collect();
        assert_eq!(members(set(&entry), &mut random), expected, "seed {seed}");
        assert_eq!(members(set(&entry.clone()), &mut random), expected, "seed {seed}");
        let again = read(&image_of_entry(&entry));
        let again = (again.kind(), form(&again), members(set(&again), &mut random));
        assert_eq!(again, (entry.kind(), form(&entry), expected), "seed {seed}");
    }
    assert_eq!(kinds.len(), 4, "every form was met: {kinds:?}");
}

#[test]
fn a_large_set_grows_and_shrinks() {
    let seed = 47;
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut table, mut model) = (MemberTable::default(), Model::new());
    for round in 0..40_000 {
        let name = member(&mut random, 3_000);
        if random.u8(..10) < if (round / 10_000) % 2 == 0 { 7 } else { 1 } {
            assert_eq!(table.add(&name), model.insert(name), "seed {seed}");
        } else {
            assert_eq!(table.remove(&name), model.remove(&name), "seed {seed}");
        }
        if round % 5_000 == 4_999 && !model.is_empty() {
            let expected: Vec<Vec<u8>> = model.iter().cloned().collect();
            assert_eq!(members(SetRef::Table(&table), &mut random), expected, "seed {seed}");
        }
    }
}

#[test]
fn forms_change_where_redis_changes_them() {
    let thresholds = Thresholds { intset_entries_max: 3, small_entries_max: 40, small_value_bytes_max: 70 };
    let add = |entry: &mut Entry, member: &[u8]| Change::Add { members: &[member] }.apply(entry, &thresholds).count;
    let (mut entry, _) = Change::Add { members: &[b"1", b"2", b"3", b"2"] }.create(b"k", &limit(4)).unwrap();
    assert_eq!(entry.kind(), INTSET);
    // A limit that has become lower acts when a number is added, not before.
    assert_eq!(Change::Add { members: &[b"3"] }.apply(&mut entry, &limit(1)).count, 0);
    assert_eq!((TYPE.encoding)(&entry), "intset");
    assert_eq!(add(&mut entry, b"4"), 1);
    assert_eq!((TYPE.encoding)(&entry), "hashtable");
    // It stays one.
    Change::Remove { members: &[b"4", b"3"] }.apply(&mut entry, &thresholds);
    assert_eq!((TYPE.encoding)(&entry), "hashtable");

    for (text, is_number) in [
        (&b"0"[..], true),
        (b"-1", true),
        (b"9223372036854775807", true),
        (b"-9223372036854775808", true),
        (b"9223372036854775808", false),
        (b"01", false),
        (b"+1", false),
        (b"-0", false),
        (b" 1", false),
        (b"", false),
    ] {
        let (entry, _) = Change::Add { members: &[text] }.create(b"k", &thresholds).unwrap();
        assert_eq!(entry.kind() == INTSET, is_number, "{}", text.escape_ascii());
    }
    let (mut entry, _) = Change::Add { members: &[b"a"] }.create(b"k", &thresholds).unwrap();
    assert_eq!(((TYPE.encoding)(&entry), entry.kind()), ("listpack", PACKED));
    assert_eq!(add(&mut entry, &[b'x'; 65]), 1);
    assert!(entry.object().is_some(), "a member that is too long to be packed makes a table");
    assert_eq!((TYPE.encoding)(&entry), "listpack");
    for number in 1..=38 {
        assert_eq!(((TYPE.encoding)(&entry), add(&mut entry, format!("m{number}").as_bytes())), ("listpack", 1));
    }
    let mut long = entry.clone();
    assert_eq!((add(&mut entry, b"m1"), (TYPE.encoding)(&entry)), (0, "listpack"));
    assert_eq!((add(&mut entry, b"last"), (TYPE.encoding)(&entry)), (1, "hashtable"));
    Change::Remove { members: &[b"m1"] }.apply(&mut long, &thresholds);
    assert_eq!((add(&mut long, &[b'x'; 71]), (TYPE.encoding)(&long)), (1, "hashtable"));

    // An intset and a text: both have to fit.
    for (number, text, encoding) in [(&b"1"[..], &b"a"[..], "listpack"), (b"1", &[b'a'; 71], "hashtable")] {
        let (mut entry, _) = Change::Add { members: &[number] }.create(b"k", &thresholds).unwrap();
        assert_eq!((add(&mut entry, text), (TYPE.encoding)(&entry)), (1, encoding));
    }
    let few_digits = Thresholds { small_value_bytes_max: 4, ..thresholds };
    let (mut entry, _) = Change::Add { members: &[b"-1234", b"5"] }.create(b"k", &few_digits).unwrap();
    assert_eq!(Change::Add { members: &[b"a"] }.apply(&mut entry, &few_digits).count, 1);
    assert_eq!((TYPE.encoding)(&entry), "hashtable");
}

#[test]
fn members_take_few_bytes() {
    let body = |members: &[&[u8]]| Change::Add { members }.create(b"k", &limit(512)).unwrap().0.body().len();
    assert_eq!(body(&[b"1", b"-2", b"30000"]), 1 + 3 * 2);
    assert_eq!(body(&[b"1", b"70000"]), 1 + 2 * 4);
    assert_eq!(body(&[b"1", b"5000000000"]), 1 + 2 * 8);
    assert_eq!(body(&[b"1", b"apple"]), 1 + 1 + 6);
    let mut table = MemberTable::default();
    for number in 0..50_000 {
        table.add(format!("member:{number:08}").as_bytes());
    }
    let each = table.heap_bytes(100) / table.len();
    assert!((25..50).contains(&each), "{each} bytes a member");
}

#[test]
fn an_intset_is_ascending_whatever_comes() {
    let (mut entry, _) = Change::Add { members: &[b"5"] }.create(b"k", &limit(512)).unwrap();
    for number in [b"-70000".as_slice(), b"9223372036854775807", b"0", b"-9223372036854775808", b"70000"] {
        Change::Add { members: &[number] }.apply(&mut entry, &limit(512));
    }
    let numbers: Vec<Scalar<'_>> = set(&entry).iter().collect();
    assert_eq!(numbers, [i64::MIN, -70_000, 0, 5, 70_000, i64::MAX].map(Scalar::Number));
}

#[test]
fn random_members_are_fair_enough() {
    let seed = 53;
    let mut random = fastrand::Rng::with_seed(seed);
    for count in [2_usize, 30, 100, 2_000] {
        for text in ["", "m"] {
            let names: Vec<Vec<u8>> = (0..count).map(|number| format!("{text}{number}").into_bytes()).collect();
            let members: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            let (entry, _) = Change::Add { members: &members }.create(b"k", &limit(512)).unwrap();
            let mut drawn = std::collections::HashMap::new();
            for _ in 0..count * 100 {
                *drawn.entry(set(&entry).random(&mut random).bytes().into_owned()).or_insert(0) += 1;
            }
            let (least, most) = (drawn.values().min().unwrap(), drawn.values().max().unwrap());
            assert_eq!(drawn.len(), count, "seed {seed}: every member is drawn");
            // The hashes are seeded at random, and a segment of a table may have a few members of a large range: beyond 350
            // once in some hundred runs.
            assert!(*least > 10 && *most < 700, "seed {seed}: {least} to {most} of 100 expected");
        }
    }
}

/// What no version writes is read as the set that it can only mean, or refused.
#[test]
fn hostile_images_make_good_sets_or_none() {
    let mut random = fastrand::Rng::with_seed(59);
    let mut shown = |image: &[u8]| {
        let entry = read(image);
        let kind = entry.kind();
        (kind, members(set(&entry), &mut random).iter().map(|name| name.escape_ascii().to_string()).collect::<Vec<_>>())
    };
    let strings = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    // Numbers out of order and twice; members twice.
    assert_eq!(shown(b"\x00\x04\x06\x02\x06\x01"), (INTSET, strings(&["-1", "1", "3"])));
    assert_eq!(shown(b"\x01\x03\x01a\x01b\x01a"), (PACKED, strings(&["a", "b"])));
    assert_eq!(shown(b"\x01\x03\x011\x01b\x011"), (PACKED, strings(&["1", "b"])));
    assert_eq!(shown(b"\x02\x02\x01a\x01a"), (Kind::OBJECT, strings(&["a"])));
    // Said to be packed, and too many or too long for it.
    let mut many = vec![1, 40];
    (0..40).for_each(|number: u8| many.extend([1, b'A' + number]));
    assert_eq!(shown(&many).0, Kind::OBJECT);
    let mut long = vec![1, 1, 70];
    long.extend([b'x'; 70]);
    assert_eq!(shown(&long).0, Kind::OBJECT);
    assert_eq!(shown(b"\x03\x02\x01a\x01a"), (Kind::OBJECT, strings(&["a"])));
    for bad in
        [&b""[..], b"\x00", b"\x00\x00", b"\x01\x00", b"\x02\x00", b"\x04\x01\x01a", b"\x01\x02\x01a", b"\x00\x01"]
    {
        assert!((TYPE.check_image)(&mut Reader::new(bad)).is_err(), "{bad:?}");
    }
    let seed = 61;
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..20_000 {
        let mut image: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..)).collect();
        if let [form, count, ..] = image.as_mut_slice() {
            (*form, *count) = (*form % 5, *count % 6);
        }
        let mut reader = Reader::new(&image);
        if (TYPE.check_image)(&mut reader).is_ok() {
            let entry = (TYPE.read_image)(b"k", Reader::new(&image), &mut Shapes::default(), None);
            assert!(!members(set(&entry), &mut random).is_empty(), "seed {seed}: {image:?}");
        }
    }
}

/// Only a large set of few and short members is stored anew.
#[test]
fn a_set_is_rebuilt_if_it_may_be_small() {
    let thresholds = Thresholds { small_entries_max: 3, small_value_bytes_max: 4, ..Thresholds::default() };
    for (members, removed, expected) in [
        (&["a", "b", "c", "longer"][..], &["longer"][..], Form::Small),
        (&["a", "b", "c", "longer"], &["a"], Form::Large),
        (&["a", "b", "c", "d", "e"], &["a"], Form::Large),
        (&["a", "b"], &["a"], Form::Small),
        (&["1", "2"], &["1"], Form::Intset),
    ] {
        let bytes = |names: &[&'static str]| names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>();
        let (mut entry, _) = Change::Add { members: &bytes(members) }.create(b"k", &thresholds).expect("a new set");
        Change::Remove { members: &bytes(removed) }.apply(&mut entry, &thresholds);
        let before: BTreeSet<Vec<u8>> = set(&entry).iter().map(|member| member.bytes().into_owned()).collect();
        assert_eq!(Change::Rebuild.apply(&mut entry, &thresholds), Applied::default());
        let after: BTreeSet<Vec<u8>> = set(&entry).iter().map(|member| member.bytes().into_owned()).collect();
        assert_eq!((form(&entry), after), (expected, before), "{members:?}");
    }
}
