//! Any bytes as a DUMP payload, with a footer that is right and without: reading must not panic or make more of them
//! than allowed, and what was read must come back the same when it is written and read again.

#![no_main]

mod footer;

use formats::rdb::{self, Dumped, HashForm, SortedSetForm};
use libfuzzer_sys::fuzz_target;

/// What compressed parts may become.
const BYTES_MAX: usize = 1 << 16;

fuzz_target!(|body: &[u8]| {
    let _ = rdb::decode(body, BYTES_MAX);
    for version in [6, 10, 12] {
        let Ok(dumped) = rdb::decode(&footer::with_footer(body, version), BYTES_MAX) else { continue };
        let bytes: usize = match &dumped {
            Dumped::String(bytes) => bytes.len(),
            Dumped::Hash(entries) => entries.iter().map(|(field, value, _)| field.len() + value.len()).sum(),
            Dumped::SortedSet(members) => members.iter().map(|(name, _)| name.len()).sum(),
            Dumped::Unsupported(_) => continue,
        };
        // A number of a few bits is at most twenty digits.
        assert!(bytes <= BYTES_MAX + body.len() * 20, "{} bytes became {bytes}", body.len());
        for payload in written(&dumped) {
            assert_eq!(rdb::decode(&payload, usize::MAX).map(ordered), Ok(ordered(dumped.clone())));
        }
    }
});

/// In every form that there is for it.
fn written(dumped: &Dumped) -> Vec<Vec<u8>> {
    match dumped {
        Dumped::String(bytes) => vec![rdb::encode_string(bytes)],
        Dumped::Hash(entries) => {
            let fields = entries.iter().map(|(field, value, ms)| (field.as_slice(), value.as_slice(), *ms));
            [HashForm::Listpack, HashForm::Table].map(|form| rdb::encode_hash(fields.clone(), form)).to_vec()
        }
        Dumped::SortedSet(members) => {
            let members = members.iter().map(|(name, score)| (name.as_slice(), *score));
            let forms = [SortedSetForm::Listpack, SortedSetForm::Table];
            forms.map(|form| rdb::encode_sorted_set(members.clone(), form)).to_vec()
        }
        Dumped::Unsupported(_) => Vec::new(),
    }
}

/// A hash's fields have no order of their own; some forms put them in that of their deadlines. Members of a sorted set
/// are written forward or backward.
fn ordered(mut dumped: Dumped) -> Dumped {
    match &mut dumped {
        Dumped::Hash(entries) => entries.sort(),
        Dumped::SortedSet(members) => members.sort_by(|a, b| a.0.cmp(&b.0)),
        Dumped::String(_) | Dumped::Unsupported(_) => {}
    }
    dumped
}
