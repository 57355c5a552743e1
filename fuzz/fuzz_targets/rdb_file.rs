//! Any bytes as an RDB file, with a beginning that is right and without: reading must not panic or make more of them
//! than allowed, must say where it stopped, and must find the same whatever the pieces in which the bytes come.

#![no_main]

mod pieces;

use formats::Value;
use formats::rdb_file::{FileError, Item, RdbFile};
use libfuzzer_sys::fuzz_target;
use pieces::Pieces;

/// What compressed parts of one value may become.
const BYTES_MAX: usize = 1 << 14;

fuzz_target!(|body: &[u8]| {
    check(body);
    check(&[b"REDIS0012", body].concat());
});

fn check(file: &[u8]) {
    let (items, stopped) = read(RdbFile::new(file, BYTES_MAX));
    let (in_pieces, stopped_in_pieces) = read(RdbFile::new(Pieces(file), BYTES_MAX));
    assert_eq!(items, in_pieces);
    assert_eq!(stopped, stopped_in_pieces);
    for item in items {
        let Item::Key(item) = item else { continue };
        let bytes = match item.value {
            Value::String(bytes) => bytes.len(),
            Value::Hash(fields) => fields.iter().map(|(field, value, _)| field.len() + value.len()).sum(),
            Value::Set(members) | Value::SmallSet(members) | Value::List(members) => members.bytes(),
            Value::SortedSet(members) => members.iter().map(|(name, _)| name.len()).sum(),
            Value::Stream(stream) => stream.nodes.iter().map(|node| node.bytes().len()).sum(),
            Value::Own(_) => panic!("no file of Redis's holds one"),
            Value::Unsupported(_) => 0,
        };
        // A number of a few bits is at most twenty digits.
        assert!(item.key.len() + bytes <= BYTES_MAX + file.len() * 20, "{} bytes became {bytes}", file.len());
    }
}

fn read(file: impl Iterator<Item = Result<Item, FileError>>) -> (Vec<Item>, Option<(u64, String)>) {
    let mut items = Vec::new();
    for item in file {
        match item {
            Ok(item) => items.push(item),
            Err(error) => return (items, Some((error.offset, error.to_string()))),
        }
    }
    (items, None)
}
