//! Pins what journals and snapshots on disk hold: the tag and the bytes of every effect. A row that fails says that this
//! version could not read what another one has written; the cure is a new tag, not a new row. docs/effect-format.md
//! shows the layout.

use keyspace::effects::codec::{BadEffect, Decoder, encode};
use keyspace::snapshot::Placement;
use keyspace::types::hash::Form;
use keyspace::types::{hash, sorted_set, string};
use keyspace::{Cause, Effect, Image, Key, Scalar, sorted_set};
use std::fmt::Write;
use std::path::Path;

/// A moment in 2025, in unix milliseconds.
const THEN: Option<u64> = Some(1_763_172_000_000);

/// Every effect with its bytes, in the order of the tags. IMPORTANT: rows are added, never changed.
fn pinned() -> Vec<(usize, Effect<'static>, &'static str)> {
    let key = Key::new;
    let text = |bytes| Scalar::Bytes(bytes);
    let (deleted, expired) = (Cause::Deleted, Cause::Expired);
    let string = |value, marked| Image::String { value, marked };
    let hash = |fields, deadlines, form| Image::Hash { fields, deadlines, form };
    let set = |members, form| Image::SortedSet { members, form };
    vec![
        (
            0,
            Effect::change(key(b"k"), string::Change::Set { value: text(b"v"), deadline: None }),
            "0100 016b 00 00 0176",
        ),
        (
            3,
            Effect::change(key(b"k"), string::Change::Set { value: Scalar::Number(-2), deadline: THEN }),
            "0103 016b 81c2f6a9a833 01 03",
        ),
        (
            0,
            Effect::change(key(b""), string::Change::Set { value: Scalar::Number(300), deadline: None }),
            "0100 00 00 01 d804",
        ),
        (1, Effect::change(key(b"k"), string::Change::Write { offset: 300, bytes: b"xyz" }), "0201 016b ac02 0378797a"),
        (
            0,
            Effect::change(
                key(b"h"),
                hash::Change::Set { fields: &[(b"f", b"v"), (b"g", b"10")], keep_deadlines: false },
            ),
            "0300 0168 02 0166 0176 0167 023130",
        ),
        (
            0,
            Effect::change(key(b"h"), hash::Change::Set { fields: &[(b"f", b"")], keep_deadlines: true }),
            "0400 0168 01 0166 00",
        ),
        (
            0,
            Effect::change(key(b"h"), hash::Change::Delete { fields: &[b"f", b"g"], cause: deleted }),
            "0500 0168 02 0166 0167",
        ),
        (0, Effect::change(key(b"h"), hash::Change::Delete { fields: &[b"f"], cause: expired }), "0600 0168 01 0166"),
        (
            0,
            Effect::change(key(b"h"), hash::Change::Deadline { field: b"f", deadline: THEN }),
            "0700 0168 0166 81c2f6a9a833",
        ),
        (0, Effect::change(key(b"h"), hash::Change::Deadline { field: b"f", deadline: None }), "0700 0168 0166 00"),
        (15, Effect::Delete { key: key(b"k"), cause: deleted }, "080f 016b"),
        (0, Effect::Delete { key: key(b"k"), cause: expired }, "0900 016b"),
        (0, Effect::Deadline { key: key(b"k"), deadline: THEN }, "0a00 016b 81c2f6a9a833"),
        (0, Effect::Deadline { key: key(b"k"), deadline: None }, "0a00 016b 00"),
        (2, Effect::Rename { from: key(b"old"), to: key(b"new") }, "0b02 036f6c64 036e6577"),
        (0, Effect::Copy { from: key(b"a"), to: key(b"b"), to_db: 9 }, "0c00 0161 0162 09"),
        (0, Effect::Move { key: key(b"k"), to_db: 9 }, "0d00 016b 09"),
        (
            0,
            Effect::Put { key: key(b"k"), value: string(text(b"v"), false), deadline: THEN },
            "0e00 016b 81c2f6a9a833 00 0176",
        ),
        (0, Effect::Put { key: key(b"k"), value: string(text(b"v"), true), deadline: None }, "0e00 016b 00 02 0176"),
        (
            0,
            Effect::Put { key: key(b"k"), value: string(Scalar::Number(i64::MIN), false), deadline: None },
            "0e00 016b 00 01 ffffffffffffffffff01",
        ),
        (
            0,
            Effect::Put { key: key(b"h"), value: hash(&[(b"f", b"v"), (b"g", b"w")], &[], None), deadline: THEN },
            "0f00 0168 81c2f6a9a833 00 02 0166 0176 0167 0177",
        ),
        (
            0,
            Effect::Put { key: key(b"h"), value: hash(&[(b"f", b"v")], &[], Some(Form::Small)), deadline: None },
            "0f00 0168 00 01 01 0166 0176",
        ),
        (
            0,
            Effect::Put {
                key: key(b"h"),
                value: hash(&[(b"f", b"v"), (b"g", b"w")], &[THEN, None], Some(Form::SmallWithDeadlines)),
                deadline: None,
            },
            "0f00 0168 00 82 02 0166 0176 81c2f6a9a833 0167 0177 00",
        ),
        (
            0,
            Effect::Put { key: key(b"h"), value: hash(&[(b"f", b"v")], &[], Some(Form::Large)), deadline: None },
            "0f00 0168 00 03 01 0166 0176",
        ),
        (7, Effect::FlushDb, "1007"),
        (0, Effect::FlushAll, "1100"),
        (0, Effect::SwapDb { a: 0, b: 15 }, "1200 00 0f"),
        (0, Effect::LibrarySet { name: b"lib", code: b"#!" }, "1300 036c6962 022321"),
        (0, Effect::LibraryDelete { name: b"lib" }, "1400 036c6962"),
        (0, Effect::IndexSet { name: b"i", definition: b"\x01\x00" }, "1500 0169 020100"),
        (0, Effect::IndexDelete { name: b"i" }, "1600 0169"),
        (
            0,
            Effect::change(key(b"z"), sorted_set::Change::Add { members: &[(1.0, b"a"), (-2.0, b"b"), (0.5, b"")] }),
            "1700 017a 03 01 02 0161 01 03 0162 00 000000000000e03f 00",
        ),
        (
            0,
            Effect::change(
                key(b"z"),
                sorted_set::Change::Add { members: &[(-0.0, b"a"), (f64::INFINITY, b"b"), (1e300, b"c")] },
            ),
            "1700 017a 03 00 0000000000000080 0161 00 000000000000f07f 0162 00 9c7500883ce4377e 0163",
        ),
        (4, Effect::change(key(b"z"), sorted_set::Change::Remove { members: &[b"a", b"b"] }), "1804 017a 02 0161 0162"),
        (
            0,
            Effect::Put { key: key(b"z"), value: set(&[(1.0, b"a"), (300.0, b"b")], None), deadline: THEN },
            "1900 017a 81c2f6a9a833 00 02 01 02 0161 01 d804 0162",
        ),
        (
            0,
            Effect::Put { key: key(b"z"), value: set(&[(1.0, b"a")], Some(sorted_set::Form::Small)), deadline: None },
            "1900 017a 00 01 01 01 02 0161",
        ),
        (
            0,
            Effect::Put { key: key(b"z"), value: set(&[(1.0, b"a")], Some(sorted_set::Form::Large)), deadline: None },
            "1900 017a 00 02 01 01 02 0161",
        ),
    ]
}

#[test]
fn every_effect_has_the_bytes_it_always_had() {
    for (db, effect, hex) in pinned() {
        let shown = describe(db, &effect);
        let mut bytes = Vec::new();
        encode(db, &effect, &mut bytes);
        assert_eq!(as_hex(&bytes), hex.replace(' ', ""), "{shown}");
        assert_eq!(describe_all(&bytes), [&*shown], "read back");
    }
}

#[test]
fn every_tag_is_pinned() {
    let pinned: Vec<u8> = pinned().iter().map(|(.., hex)| from_hex(hex)[0]).collect();
    for tag in 0..=u8::MAX {
        // Enough bytes behind it for whatever it may be.
        let mut bytes = vec![tag];
        bytes.resize(64, 0);
        let known = Decoder::new(&bytes).next().err() != Some(BadEffect::UnknownTag(tag));
        assert_eq!(known, pinned.contains(&tag), "tag {tag}");
    }
}

#[test]
fn an_unknown_tag_tells_of_a_newer_version() {
    let error = Decoder::new(&[200, 0, 1, b'k']).next().err().expect("no effect has this tag");
    assert_eq!(error, BadEffect::UnknownTag(200));
    assert_eq!(error.to_string(), "unknown effect 200: was it written by a newer version?");
}

/// Bytes that no version has written: had they a meaning, it would be guessed at.
#[test]
fn what_nobody_wrote_is_refused() {
    for (hex, error) in [
        ("01", BadEffect::CutShort),
        ("0110 016b 00 00 0176", BadEffect::OutOfRange), // database 16
        ("0100 016b 00 04 0176", BadEffect::OutOfRange), // an unknown bit beside the kind of a scalar
        ("0100 016b 00 02 0176", BadEffect::OutOfRange), // a mark where there is none
        ("0100 026b", BadEffect::CutShort),
        ("0100 ffffffffffffffffff02", BadEffect::OutOfRange), // a number of more than 64 bits
        ("0300 0168 00", BadEffect::OutOfRange),              // a hash without fields
        ("0f00 0168 00 00 00", BadEffect::OutOfRange),
        ("0f00 0168 00 04 01 0166 0176", BadEffect::OutOfRange), // an unknown form
        ("1200 00 10", BadEffect::OutOfRange),
        ("1700 017a 00", BadEffect::OutOfRange), // a sorted set without members
        ("1900 017a 00 00 00", BadEffect::OutOfRange),
        ("1900 017a 00 03 01 01 02 0161", BadEffect::OutOfRange), // an unknown form
        ("1700 017a 01 02 02 0161", BadEffect::OutOfRange),       // an unknown kind of score
        ("1700 017a 01 00 000000000000f87f 0161", BadEffect::OutOfRange), // NaN
        ("1700 017a 01 00 0000000000", BadEffect::CutShort),
    ] {
        assert_eq!(Decoder::new(&from_hex(hex)).next().err(), Some(error), "{hex}");
    }
}

#[test]
fn a_placement_has_the_bytes_it_always_had() {
    let placement = Placement { family: 1, seed: 0x0102_0304_0506_0708, shards: 128 };
    assert_eq!(as_hex(&placement.encode()), "01080706050403020180000000");
    assert_eq!(Placement::decode(&placement.encode()), Some(placement));
    for unknown in ["", "0108070605040302018000000000", "02080706050403020180000000", "01080706050403020181000000"] {
        assert_eq!(Placement::decode(&from_hex(unknown)), None, "{unknown}");
    }
}

/// Batches as the versions before this one wrote them, each beside what it says. A new effect comes with a new pair of
/// files: `HOLDFAST_TEST_BLESS=1` writes those that are missing, from the rows above, and leaves the others alone.
#[test]
fn old_batches_say_what_they_always_said() {
    const BATCHES: &[&str] = &["effects-1-to-18", "effects-1-to-18-and-23-to-25"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/effects");
    for name in BATCHES {
        let (batch, text) = (folder.join(format!("{name}.batch")), folder.join(format!("{name}.txt")));
        if std::env::var_os("HOLDFAST_TEST_BLESS").is_some() && !batch.exists() {
            let bytes: Vec<u8> = pinned().iter().flat_map(|(.., hex)| from_hex(hex)).collect();
            std::fs::write(&text, describe_all(&bytes).join("\n") + "\n").expect("the fixture can be written");
            std::fs::write(&batch, bytes).expect("the fixture can be written");
        }
        let bytes = std::fs::read(&batch).expect("the fixture is there");
        let text = std::fs::read_to_string(&text).expect("the fixture is there");
        assert_eq!(describe_all(&bytes), text.lines().collect::<Vec<_>>(), "{name}");
    }
}

// Effects as text -----------------------------------------------------------------------------------------------------

fn describe_all(bytes: &[u8]) -> Vec<String> {
    let (mut effects, mut said) = (Decoder::new(bytes), Vec::new());
    while let Some((db, effect)) = effects.next().expect("the bytes are effects") {
        said.push(describe(db, &effect));
    }
    said
}

/// One line that says all there is to an effect.
fn describe(db: usize, effect: &Effect<'_>) -> String {
    let name = |key: Key<'_>| quoted(key.name);
    let what = match *effect {
        Effect::change(key, string::Change::Set { value, deadline }) => {
            format!("string-set {} {}{}", name(key), scalar(value), until(deadline))
        }
        Effect::change(key, string::Change::Write { offset, bytes }) => {
            format!("string-write {} at {offset} {}", name(key), quoted(bytes))
        }
        Effect::change(key, hash::Change::Set { fields, keep_deadlines }) => {
            let keeping = if keep_deadlines { " keeping deadlines" } else { "" };
            format!("hash-set {}{}{keeping}", name(key), pairs(fields, &[]))
        }
        Effect::change(key, hash::Change::Delete { fields, cause }) => {
            let fields: Vec<_> = fields.iter().map(|field| quoted(field)).collect();
            format!("hash-delete {} {} {cause:?}", name(key), fields.join(" "))
        }
        Effect::change(key, hash::Change::Deadline { field, deadline }) => {
            format!("hash-deadline {} {}{}", name(key), quoted(field), until(deadline))
        }
        Effect::Delete { key, cause } => format!("delete {} {cause:?}", name(key)),
        Effect::Deadline { key, deadline } => format!("deadline {}{}", name(key), until(deadline)),
        Effect::Rename { from, to } => format!("rename {} {}", name(from), name(to)),
        Effect::Copy { from, to, to_db } => format!("copy {} {} into {to_db}", name(from), name(to)),
        Effect::Move { key, to_db } => format!("move {} into {to_db}", name(key)),
        Effect::Put { key, value: Image::String { value, marked }, deadline } => {
            let marked = if marked { " marked" } else { "" };
            format!("put {} {}{marked}{}", name(key), scalar(value), until(deadline))
        }
        Effect::Put { key, value: Image::Hash { fields, deadlines, form }, deadline } => {
            format!("put {} {form:?}{}{}", name(key), pairs(fields, deadlines), until(deadline))
        }
        Effect::change(key, sorted_set::Change::Add { members }) => {
            format!("sorted-set-add {}{}", name(key), scored(members))
        }
        Effect::change(key, sorted_set::Change::Remove { members }) => {
            let members: Vec<_> = members.iter().map(|member| quoted(member)).collect();
            format!("sorted-set-remove {} {}", name(key), members.join(" "))
        }
        Effect::Put { key, value: Image::SortedSet { members, form }, deadline } => {
            format!("put {} sorted set {form:?}{}{}", name(key), scored(members), until(deadline))
        }
        Effect::FlushDb => "flush-db".into(),
        Effect::FlushAll => "flush-all".into(),
        Effect::SwapDb { a, b } => format!("swap-db {a} {b}"),
        Effect::LibrarySet { name, code } => format!("library-set {} {}", quoted(name), quoted(code)),
        Effect::LibraryDelete { name } => format!("library-delete {}", quoted(name)),
        Effect::IndexSet { name, definition } => format!("index-set {} {}", quoted(name), quoted(definition)),
        Effect::IndexDelete { name } => format!("index-delete {}", quoted(name)),
    };
    format!("{db}: {what}")
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

fn scalar(value: Scalar<'_>) -> String {
    match value {
        Scalar::Bytes(bytes) => quoted(bytes),
        Scalar::Number(number) => number.to_string(),
    }
}

fn until(deadline: Option<u64>) -> String {
    deadline.map_or(String::new(), |deadline| format!(" until {deadline}"))
}

fn pairs(fields: &[(&[u8], &[u8])], deadlines: &[Option<u64>]) -> String {
    assert!(deadlines.is_empty() || deadlines.len() == fields.len());
    fields.iter().enumerate().fold(String::new(), |mut text, (at, (field, value))| {
        let deadline = deadlines.get(at).copied().flatten();
        write!(text, " {}={}{}", quoted(field), quoted(value), until(deadline)).expect("text can be written");
        text
    })
}

fn scored(members: &[(f64, &[u8])]) -> String {
    members.iter().fold(String::new(), |mut text, (score, name)| {
        write!(text, " {}={score:?}", quoted(name)).expect("text can be written");
        text
    })
}

fn as_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
