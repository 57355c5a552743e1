//! Readers of bytes that come from elsewhere, for fuzz targets and random tests: they may refuse anything, and must not
//! panic, or believe what cannot be. Refuses to know where the bytes come from.

use crate::blocks;
use crate::frame::{self, Assembly, HEADER_LEN, Link, LogId, OVERHEAD};
use crate::snapshots::{self, Manifest};
use bytes::Bytes;

const LOG: LogId = LogId(1);

/// Reads the bytes as messages of a stream. Each begins with its length; what the chain needs (the checksum, the frame
/// before) is made right, because no fuzzer would guess it. Returns how many frames and batches were believed.
pub fn read_frames(mut rest: &[u8]) -> (usize, usize) {
    let (mut link, mut assembly) = (Link::START, Assembly::default());
    let (mut frames, mut batches, mut payload_bytes, mut batch_bytes) = (0, 0, 0, 0);
    while let Some((length, after)) = rest.split_first() {
        let (body, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        let position = link.position + 1;
        // As they are: nothing of it is believed but by a checksum that fits.
        let _ = frame::decode(LOG, 0, &link, position, &Bytes::copy_from_slice(body));
        let message = made_right(body, &link);
        let Ok(frame) = frame::decode(LOG, 0, &link, position, &message) else { continue };
        let expected = u64::from(frame.count);
        let mut found = 0;
        let added = assembly.add(&frame, |_, batch| {
            found += 1;
            batch_bytes += batch.len();
        });
        payload_bytes += frame.payload.len();
        if added.is_err() {
            break;
        }
        frames += 1;
        batches += found;
        assert_eq!(found as u64, expected, "batches that are in no frame");
        assert_eq!(frame.link.sequence.0, link.sequence.0 + expected);
        link = frame.link;
    }
    assert!(batch_bytes <= payload_bytes, "{batch_bytes} bytes of batches in {payload_bytes} bytes of payload");
    (frames, batches)
}

/// A message with this body, with a header that continues a chain.
fn made_right(body: &[u8], link: &Link) -> Bytes {
    let mut message = body.to_vec();
    message.resize(body.len().max(HEADER_LEN), 0);
    message[..4].copy_from_slice(b"HFL1");
    message[4] = message[4] % 3 + 1;
    message[5..8].fill(0);
    message[8..16].copy_from_slice(&LOG.0.to_le_bytes());
    message[20..24].fill(0);
    if message[4] != 2 {
        message[16..20].copy_from_slice(&link.epoch.0.to_le_bytes());
        message[24..40].copy_from_slice(&link.nonce.0.to_le_bytes());
    }
    message[40..48].copy_from_slice(&link.position.to_le_bytes());
    message[48..52].copy_from_slice(&link.crc.to_le_bytes());
    // Few batches end in so few bytes.
    message[53..56].fill(0);
    message[56..64].copy_from_slice(&link.sequence.next().0.to_le_bytes());
    with_checksum(message)
}

fn with_checksum(mut bytes: Vec<u8>) -> Bytes {
    let crc = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    debug_assert!(bytes.len() >= OVERHEAD || bytes.starts_with(snapshots::MAGIC));
    bytes.into()
}

/// Reads the bytes as the manifest of a snapshot, as they are and with the checksum made right. True if it was believed.
pub fn read_manifest(bytes: &[u8]) -> bool {
    let _ = Manifest::decode(bytes);
    let mut body = snapshots::MAGIC.to_vec();
    body.extend_from_slice(bytes);
    let bytes = with_checksum(body);
    match Manifest::decode(&bytes) {
        Some(manifest) => {
            assert_eq!(manifest.encode(), bytes, "what was read is what was written");
            true
        }
        None => false,
    }
}

/// Reads the bytes as a block of a snapshot. True if they are one.
pub fn read_block(stored: &[u8]) -> bool {
    let (mut bytes, mut again) = (Vec::new(), Vec::new());
    if !blocks::decompress(stored, &mut bytes) {
        return false;
    }
    assert!(blocks::decompress(&blocks::compress(&bytes), &mut again) && again == bytes);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_messages_are_read_or_refused() {
        let mut rng = fastrand::Rng::with_seed(1);
        let (mut frames, mut batches) = (0, 0);
        for _ in 0..5000 {
            let mut bytes = Vec::new();
            for _ in 0..rng.usize(..6) {
                // A header, and perhaps a batch that may be whole.
                let mut message = vec![0; HEADER_LEN];
                (message[4], message[16], message[52]) = (rng.u8(..), rng.u8(..4), rng.u8(..3));
                for _ in 0..rng.usize(..3) {
                    let batch = vec![rng.u8(..); rng.usize(..20)];
                    frame::encode_batch(&mut message, 1, &batch);
                }
                message.truncate(message.len() - rng.usize(..4));
                bytes.push(message.len() as u8);
                bytes.extend_from_slice(&message);
            }
            let (read, found) = read_frames(&bytes);
            (frames, batches) = (frames + read, batches + found);
        }
        assert!(frames > 1000 && batches > 100, "{frames} {batches}");
    }

    #[test]
    fn random_manifests_are_read_or_refused() {
        let mut rng = fastrand::Rng::with_seed(2);
        let mut believed = 0;
        for _ in 0..5000 {
            let mut bytes = vec![0; 40 + 15 * 8 + rng.usize(..12)];
            rng.fill(&mut bytes[..40]);
            let (meta, blocks) = (rng.u8(..8), rng.u8(..3));
            (bytes[40 + 13 * 8], bytes[40 + 14 * 8]) = (meta, blocks);
            believed += usize::from(read_manifest(&bytes));
        }
        assert!(believed > 100, "{believed}");
    }

    #[test]
    fn random_blocks_are_read_or_refused() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut blocks = 0;
        for _ in 0..5000 {
            // A literal of a few bytes, whose lengths may be wrong.
            let length = rng.u8(1..16);
            let mut stored = vec![length, 0, 0, 0, length + 1, 0, 0, 0, length << 4];
            stored.extend((0..length).map(|_| rng.u8(..)));
            if rng.bool() {
                let at = rng.usize(..stored.len());
                stored[at] = rng.u8(..);
            }
            blocks += usize::from(read_block(&stored));
        }
        assert!((2000..5000).contains(&blocks), "{blocks}");
    }
}
