//! Checksums of any parts of a file, each in a time that hardly depends on the part's length.
//!
//! A search for frames meets lengths that a client has chosen: reading every part that such a length covers would take a
//! time that grows with the square of the file.

use std::io;

use crate::storage::{StorageFile, read_full_at};

/// A part up to this length is read as a whole.
const WHOLE_BYTES_MAX: u64 = 4096;
/// The distance between two positions whose checksums are kept.
const BLOCK_BYTES: u64 = 512;
const READ_BYTES: usize = 256 * 1024;

/// The polynomial of CRC32C, without its highest term and reflected: the highest bit is the coefficient of 1.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksums of a file from one offset on, up to another.
pub(crate) struct Checksums<'a> {
    file: &'a dyn StorageFile,
    from: u64,
    end: u64,
    /// The checksums of the first blocks: of none, of one, of two. Empty until a long part is asked for.
    prefixes: Vec<u32>,
    buffer: Vec<u8>,
}

impl<'a> Checksums<'a> {
    /// Reads nothing yet.
    pub(crate) fn new(file: &'a dyn StorageFile, from: u64, end: u64) -> Checksums<'a> {
        Checksums { file, from, end, prefixes: Vec::new(), buffer: Vec::new() }
    }

    /// Returns the checksum of a part between the two offsets.
    pub(crate) fn of(&mut self, start: u64, length: u32) -> io::Result<u32> {
        let (length, end) = (u64::from(length), start + u64::from(length));
        assert!(self.from <= start && end <= self.end, "the part is outside of what is searched");
        if length <= WHOLE_BYTES_MAX {
            return self.continued(0, start, end);
        }
        if self.prefixes.is_empty() {
            self.read_all()?;
        }
        // The checksum of `ab` is that of `a`, shifted by the length of `b`, plus that of `b`.
        Ok(self.up_to(end)? ^ shifted(self.up_to(start)?, length))
    }

    /// The checksum of all bytes before an offset.
    fn up_to(&mut self, offset: u64) -> io::Result<u32> {
        let block = (offset - self.from) / BLOCK_BYTES;
        self.continued(self.prefixes[block as usize], self.from + block * BLOCK_BYTES, offset)
    }

    /// Continues a checksum with the bytes of a short part.
    fn continued(&mut self, crc: u32, start: u64, end: u64) -> io::Result<u32> {
        self.buffer.resize((end - start) as usize, 0);
        read_exact_at(self.file, &mut self.buffer, start)?;
        Ok(crc32c::crc32c_append(crc, &self.buffer))
    }

    fn read_all(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; READ_BYTES];
        let (mut crc, mut offset, mut prefixes) = (0, self.from, vec![0]);
        while offset < self.end {
            let wanted = buffer.len().min((self.end - offset) as usize);
            read_exact_at(self.file, &mut buffer[..wanted], offset)?;
            for block in buffer[..wanted].chunks(BLOCK_BYTES as usize) {
                crc = crc32c::crc32c_append(crc, block);
                prefixes.push(crc);
            }
            offset += wanted as u64;
        }
        self.prefixes = prefixes;
        Ok(())
    }
}

fn read_exact_at(file: &dyn StorageFile, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    match read_full_at(file, bytes, offset)? == bytes.len() {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// What a checksum adds to that of a text in which `length` bytes follow.
fn shifted(crc: u32, length: u64) -> u32 {
    let mut shifted = crc;
    for (bit, power) in POWERS.iter().enumerate() {
        if length >> bit & 1 == 1 {
            shifted = product(*power, shifted);
        }
    }
    shifted
}

/// x to the power of 8, 16, 32 and so on: the shift by 1 byte, 2 bytes, 4 bytes.
const POWERS: [u32; 33] = {
    let mut powers = [1 << 23; 33];
    let mut at = 1;
    while at < powers.len() {
        powers[at] = product(powers[at - 1], powers[at - 1]);
        at += 1;
    }
    powers
};

/// The product of two polynomials, modulo that of CRC32C.
const fn product(a: u32, b: u32) -> u32 {
    let (mut sum, mut b, mut rest) = (0, b, a);
    while rest != 0 {
        if rest & 1 << 31 != 0 {
            sum ^= b;
        }
        b = if b & 1 == 1 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
        rest <<= 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{FaultyStorage, Storage, write_all_at};

    #[test]
    fn the_checksum_of_any_part_is_that_of_its_bytes() {
        let seed = fastrand::u64(..);
        let mut rng = fastrand::Rng::with_seed(seed);
        let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(300_000).collect();
        let storage = FaultyStorage::new();
        let file = storage.create("f").unwrap();
        write_all_at(&*file, &bytes, 0).unwrap();
        for from in [0, 40, 513] {
            let mut checksums = Checksums::new(&*file, from as u64, bytes.len() as u64);
            let mut parts = vec![(from, 0), (from, bytes.len() - from), (bytes.len(), 0), (bytes.len() - 4097, 4097)];
            parts.extend((0..500).map(|_| {
                let start = rng.usize(from..bytes.len());
                (start, rng.usize(..=bytes.len() - start))
            }));
            for (start, length) in parts {
                let expected = crc32c::crc32c(&bytes[start..start + length]);
                let found = checksums.of(start as u64, length as u32).unwrap();
                assert_eq!(found, expected, "{length} bytes from {start} on, seed {seed}");
            }
        }
    }
}
