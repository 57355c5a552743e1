//! Digests of data, equal to those of Redis's DEBUG DIGEST: equal data has the same digest in both, whatever order it
//! was written in. Knows how bytes are mixed in; refuses to know what they mean.

use sha1_smol::Sha1;

/// A digest of twenty bytes, over data in order (`mix`) or in any order (`add`).
#[derive(Clone, Copy, Default)]
pub struct Digest([u8; 20]);

impl Digest {
    /// Adds data whose order does not matter.
    pub fn add(&mut self, bytes: &[u8]) {
        let hash = Sha1::from(bytes).digest().bytes();
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds data whose order matters.
    pub fn mix(&mut self, bytes: &[u8]) {
        self.add(bytes);
        self.0 = Sha1::from(self.0).digest().bytes();
    }

    /// The digest.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Forty hexadecimal digits.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_redis() {
        let mut digest = Digest::default();
        digest.mix(&0u32.to_be_bytes());
        digest.mix(b"v");
        assert_eq!(digest.hex(), "d79ee9fe5d5ad902d7f6620efc3b07b75ddd742f");
        assert_eq!(Digest::default().hex(), "0".repeat(40));
    }
}
