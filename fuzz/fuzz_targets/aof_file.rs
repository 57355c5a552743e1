//! Any bytes as an append-only file, and as a manifest: reading must not panic, must find the same whatever the pieces
//! in which the bytes come, and must account for every byte: read, cut off, or where the error is.

#![no_main]

mod pieces;

use formats::aof_file::{AofFile, Cut, Record, parse_manifest};
use libfuzzer_sys::fuzz_target;
use pieces::Pieces;
use std::io::Read;

/// What compressed parts of one value may become.
const BYTES_MAX: usize = 1 << 14;

fuzz_target!(|file: &[u8]| {
    let whole = read(AofFile::new(file, BYTES_MAX));
    assert_eq!(whole, read(AofFile::new(Pieces(file), BYTES_MAX)));
    let (_, cut, stopped) = whole;
    match (cut, stopped) {
        (Some(cut), stopped) => {
            assert!(stopped.is_none() && cut.bytes > 0);
            assert_eq!(cut.offset + cut.bytes, file.len() as u64);
        }
        (None, Some((offset, _))) => assert!(offset <= file.len() as u64),
        (None, None) => {}
    }
    if let Ok(names) = parse_manifest(file) {
        assert!(!names.is_empty() && names.iter().all(|name| !name.contains('/')));
    }
});

type Found = (Vec<String>, Option<Cut>, Option<(u64, bool)>);

/// Records, where it was cut off, and where an error stopped it. Which error may depend on the pieces: a line that is
/// too long to wait for is also no number.
fn read<R: Read>(mut file: AofFile<R>) -> Found {
    let (mut records, mut stopped) = (Vec::new(), None);
    for record in &mut file {
        match record {
            Ok(Record::Item(item)) => records.push(format!("{item:?}")),
            Ok(Record::Command(command)) => {
                assert!(!command.as_request().is_empty());
                records.push(format!("{:?}", command.as_request().iter().collect::<Vec<_>>()));
            }
            Err(error) => stopped = Some((error.offset, error.to_string().is_empty())),
        }
    }
    (records, file.cut(), stopped)
}
