//! The version of a register: an epoch and a round in it. Knows how versions are written and compared; refuses to know
//! what they are versions of.

use numbers::parse_u64;
use std::fmt::{self, Display, Formatter};

/// Versions are compared by epoch, then by round. A version without an epoch is of epoch 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub epoch: u64,
    pub round: u64,
}

impl Version {
    /// A version of epoch 0.
    pub const fn of_round(round: u64) -> Version {
        Version { epoch: 0, round }
    }

    /// Reads `round`, or `epoch.round`.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Version> {
        if let Some(round) = parse_u64(text) {
            return Some(Version::of_round(round));
        }
        let dot = text.iter().position(|byte| *byte == b'.')?;
        Some(Version { epoch: parse_u64(&text[..dot])?, round: parse_u64(&text[dot + 1..])? })
    }

    /// The version that follows in epoch 0, if one does.
    #[inline]
    pub fn next(self) -> Option<u64> {
        if self.epoch == 0 { self.round.checked_add(1) } else { None }
    }
}

/// The shorter form: without an epoch where it is 0.
impl Display for Version {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.epoch {
            0 => write!(f, "{}", self.round),
            epoch => write!(f, "{epoch}.{}", self.round),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_shown_in_the_shorter_form() {
        for (text, shown) in [
            ("0", "0"),
            ("7", "7"),
            ("0.7", "7"),
            ("1.0", "1.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("18446744073709551615.18446744073709551615", "18446744073709551615.18446744073709551615"),
        ] {
            let version = Version::parse(text.as_bytes()).expect("it is a version");
            assert_eq!(version.to_string(), shown);
        }
        for text in ["", ".", "1.", ".1", "1.2.3", "-1", "+1", " 1", "01", "1.02", "18446744073709551616", "1e3", "x"] {
            assert_eq!(Version::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_epoch_counts_before_the_round() {
        let version = |text: &str| Version::parse(text.as_bytes()).unwrap();
        let sorted = ["0", "0.1", "2", "18446744073709551615", "1.0", "1.9", "1.10", "2.0"].map(version);
        assert!(sorted.is_sorted_by(|a, b| a < b));
    }
}
