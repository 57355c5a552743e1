//! The bytes of a block of a snapshot as the object store has them: pieces, each compressed with LZ4. Refuses to know what
//! they contain.
//!
//! The store keeps three copies and sends all of them to each new follower, on disks and networks that the log shares: fewer
//! bytes cost it less than compressing costs the writer. LZ4, because a follower that loads waits for it.

use lz4_flex::block;

/// A piece has at most so many bytes, so that none is too long for LZ4 and room is made for no more than can come.
const PIECE_BYTES: usize = 4 * 1024 * 1024;

/// ```text
/// piece:  length (4) │ compressed length (4) │ compressed bytes
/// ```
pub(crate) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(bytes.len() / 2);
    for piece in bytes.chunks(PIECE_BYTES) {
        let compressed = block::compress(piece);
        stored.extend_from_slice(&(piece.len() as u32).to_le_bytes());
        stored.extend_from_slice(&(compressed.len() as u32).to_le_bytes());
        stored.extend_from_slice(&compressed);
    }
    stored
}

/// Replaces what `bytes` has. False if it is no block.
pub(crate) fn decompress(mut stored: &[u8], bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    while !stored.is_empty() {
        let Some((length, rest)) = take_length(stored) else { return false };
        let Some((compressed_length, rest)) = take_length(rest) else { return false };
        let Some((compressed, rest)) = rest.split_at_checked(compressed_length) else { return false };
        if length == 0 || length > PIECE_BYTES {
            return false;
        }
        let begin = bytes.len();
        bytes.resize(begin + length, 0);
        match block::decompress_into(compressed, &mut bytes[begin..]) {
            Ok(decompressed) if decompressed == length => {}
            _ => return false,
        }
        stored = rest;
    }
    true
}

fn take_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*length) as usize, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_size_come_back() {
        let mut rng = fastrand::Rng::new();
        println!("seed {}", rng.get_seed());
        let mut read = b"of the block before".to_vec();
        for length in [0, 1, 100, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES + 7] {
            let variety = rng.u8(1..);
            let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..variety)).take(length).collect();
            assert!(decompress(&compress(&bytes), &mut read));
            assert!(read == bytes, "{length} bytes");
        }
        let records = b"job:000000000001 state waiting updated_at 1760000000001 ".repeat(1000);
        assert!(compress(&records).len() < records.len() / 10);
    }

    #[test]
    fn what_is_no_block_is_refused() {
        let mut rng = fastrand::Rng::new();
        println!("seed {}", rng.get_seed());
        let stored = compress(&b"a record, and once more a record".repeat(20));
        let mut read = Vec::new();
        for length in 1..stored.len() {
            assert!(!decompress(&stored[..length], &mut read), "{length}");
        }
        let with_length = |length: u32| [&length.to_le_bytes(), &stored[4..]].concat();
        assert!(!decompress(&with_length(0), &mut read));
        assert!(!decompress(&with_length(u32::MAX), &mut read));
        assert!(!decompress(&with_length(stored.len() as u32), &mut read));
        for _ in 0..2000 {
            let mut damaged = stored.clone();
            let at = rng.usize(..damaged.len());
            damaged[at] ^= rng.u8(1..);
            // Damage may be a block of other bytes: the checksum in the manifest finds it. It must only do no harm.
            decompress(&damaged, &mut read);
        }
    }
}
