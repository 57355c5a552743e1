//! Any bytes as a snapshot of registers, with a checksum that is right and without: reading must not panic, and the registers
//! of a snapshot that is accepted must come back the same when they are written and read again.

#![no_main]

use keyspace::types::register::checkpoint::{Checkpoint, Registers, written};
use libfuzzer_sys::fuzz_target;

/// What every snapshot begins with. The last byte is the version of the format.
const MAGIC: [u8; 8] = *b"HFREGS\0\x01";

fuzz_target!(|body: &[u8]| {
    let _ = Checkpoint::check(body);
    let blob = with_checksum(body);
    let Ok(checkpoint) = Checkpoint::check(&blob) else { return };
    // A number may have been written longer than it need be; written again, it is not.
    let once = written_again(&checkpoint);
    let read = Checkpoint::check(&once).expect("what was written is whole");
    assert_eq!((&read.scope, read.position, read.count), (&checkpoint.scope, checkpoint.position, checkpoint.count));
    for (saved, read) in checkpoint.registers().zip(read.registers()) {
        assert_eq!((saved.name, saved.deadline, saved.version), (read.name, read.deadline, read.version));
    }
    assert_eq!(written_again(&read), once);
});

fn written_again(checkpoint: &Checkpoint<'_>) -> Vec<u8> {
    let mut registers = Registers::default();
    checkpoint.registers().for_each(|saved| registers.add(&saved.entry()));
    written(&checkpoint.scope, checkpoint.position, &[registers])
}

/// The body with the beginning and the checksum that no fuzzer would guess.
fn with_checksum(body: &[u8]) -> Vec<u8> {
    let mut blob = [&MAGIC, body].concat();
    let checksum = crc32c::crc32c(&blob);
    blob.extend_from_slice(&checksum.to_le_bytes());
    blob
}
