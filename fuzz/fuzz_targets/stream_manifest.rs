//! Manifests of snapshots in an object store: whatever is stored there is refused, or is what was written.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    jetstream::fuzzing::read_manifest(bytes);
});
