//! Names of scripts. Refuses to know what is in one.

/// The digest under which a script is known.
pub fn sha1hex(source: &[u8]) -> [u8; 40] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digest = sha1_smol::Sha1::from(source).digest().bytes();
    let mut hex = [0; 40];
    for (pair, byte) in hex.chunks_exact_mut(2).zip(digest) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    hex
}
