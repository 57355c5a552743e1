//! Messages of a replicated log: whatever is stored there is read or refused, and no batch comes from nothing.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    jetstream::fuzzing::read_frames(bytes);
});
