//! Any bytes as a DUMP payload, with a footer that is right and without: reading must not panic or make more of them
//! than allowed, and what was read must come back the same when it is written and read again.

#![no_main]

mod footer;

use formats::{Value, payload};
use libfuzzer_sys::fuzz_target;

/// What compressed parts may become.
const BYTES_MAX: usize = 1 << 16;

fuzz_target!(|body: &[u8]| {
    let _ = payload::decode(body, BYTES_MAX);
    for version in [6, 10, 12] {
        let Ok(value) = payload::decode(&footer::with_footer(body, version), BYTES_MAX) else { continue };
        let bytes: usize = match &value {
            Value::String(bytes) => bytes.len(),
            Value::Hash(entries) => entries.iter().map(|(field, value, _)| field.len() + value.len()).sum(),
            Value::Set(members) | Value::SmallSet(members) | Value::List(members) => members.bytes(),
            Value::SortedSet(members) => members.iter().map(|(name, _)| name.len()).sum(),
            Value::Stream(stream) => stream.nodes.iter().map(|node| node.bytes().len()).sum(),
            Value::Own(own) => own.image.len(),
            Value::Unsupported(_) => continue,
        };
        // A number of a few bits is at most twenty digits.
        assert!(bytes <= BYTES_MAX + body.len() * 20, "{} bytes became {bytes}", body.len());
        // In the compact form of small values, and in that of large ones.
        for packed in [true, false] {
            assert_eq!(
                payload::decode(&payload::encode(&value, packed), usize::MAX).map(ordered),
                Ok(ordered(value.clone()))
            );
        }
    }
});

/// A hash's fields have no order of their own; some forms put them in that of their deadlines. Members of a sorted set
/// are written forward or backward.
fn ordered(mut value: Value) -> Value {
    // It is written as any other set.
    if let Value::SmallSet(members) = value {
        value = Value::Set(members);
    }
    match &mut value {
        Value::Hash(entries) => entries.sort(),
        Value::Set(members) => {
            let mut in_order: Vec<&[u8]> = members.iter().collect();
            in_order.sort_unstable();
            *members = in_order.into_iter().collect();
        }
        Value::SortedSet(members) => members.sort_by(|a, b| a.0.cmp(&b.0)),
        // Redis 5 did not count what was ever added: it is written as none.
        Value::Stream(stream) => stream.counts = None,
        Value::String(_) | Value::SmallSet(_) | Value::List(_) | Value::Own(_) | Value::Unsupported(_) => {}
    }
    value
}
