//! Blocks of snapshots in an object store: whatever is stored there is refused, or is bytes that can be stored again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    jetstream::fuzzing::read_block(bytes);
});
