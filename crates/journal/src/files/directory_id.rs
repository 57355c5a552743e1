//! The id of a data directory, which every file in it carries. Knows nothing of files.

use std::fmt;
use std::io;

/// A random id, created once, when the first log is begun in an empty directory. A file with another id was copied from
/// elsewhere and says nothing about this directory, however well its numbers fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectoryId(pub(crate) [u8; DirectoryId::LEN]);

impl DirectoryId {
    pub(crate) const LEN: usize = 16;

    /// Uses the operating system's random numbers, so that two directories made at the same instant differ.
    pub(crate) fn random() -> io::Result<DirectoryId> {
        random_bytes().map(DirectoryId)
    }

    /// The id at the start of `bytes`, which must be long enough.
    pub(crate) fn decode(bytes: &[u8]) -> DirectoryId {
        DirectoryId(bytes[..DirectoryId::LEN].try_into().expect("the slice has this length"))
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Random bytes of the operating system.
pub(super) fn random_bytes<const LEN: usize>() -> io::Result<[u8; LEN]> {
    let mut bytes = [0; LEN];
    let mut filled = 0;
    while filled < LEN {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_written_in_hex() {
        assert_ne!(DirectoryId::random().unwrap(), DirectoryId::random().unwrap());
        let id = DirectoryId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(DirectoryId::decode(&id.0), id);
    }
}
