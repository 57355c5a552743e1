//! The digest of a string, as DIGEST returns it: XXH3 with 64 bits, in lowercase hexadecimal. Knows bytes alone.

use xxhash_rust::xxh3::xxh3_64;

/// How many characters a digest has.
pub const DIGEST_CHARS: usize = 16;

/// The digest of these bytes.
pub fn content_digest(bytes: &[u8]) -> [u8; DIGEST_CHARS] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let hash = xxh3_64(bytes);
    std::array::from_fn(|at| HEX[(hash >> (60 - 4 * at)) as usize & 0xf])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Redis 8.4 and others that have the command return.
    #[test]
    fn digests_are_those_of_redis() {
        const LEADING_ZEROS: &[u8] =
            b"v8lf0c11xh8ymlqztfd3eeq16kfn4sspw7fqmnuuq3k3t75em5wdizgcdw7uc26nnf961u2jkfzkjytls2kwlj7626sd";
        for (text, digest) in [
            (&b""[..], "2d06800538d394c2"),
            (b"v8", "0cc76dbb41381419"),
            (b"123", "404a763b3f4c8c9a"),
            (b"test", "9ec9f7918d7dfc40"),
            (b"hello", "9555e8555c62dcfd"),
            (b"Hello world", "b6acb9d84a38ff74"),
            (b"Hello, Dragonfly!", "063b4909128e92b7"),
            (LEADING_ZEROS, "00006c38adf31777"),
        ] {
            assert_eq!(String::from_utf8_lossy(&content_digest(text)), digest, "{}", text.escape_ascii());
        }
    }
}
