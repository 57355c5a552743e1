//! The version of a register: an epoch and a round in it. Knows how versions are written, compared and ordered; refuses
//! to know what they are versions of.

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
    pub fn parse(text: &[u8]) -> Option<Version> {
        Version::parse_written(text).map(|(version, _)| version)
    }

    /// Reads `round`, or `epoch.round`; also returns how ORDERED takes a version that is written like that.
    #[inline]
    pub fn parse_written(text: &[u8]) -> Option<(Version, Order)> {
        if let Some(round) = parse_u64(text) {
            return Some((Version::of_round(round), Order::OneByOne));
        }
        let dot = text.iter().position(|byte| *byte == b'.')?;
        let version = Version { epoch: parse_u64(&text[..dot])?, round: parse_u64(&text[dot + 1..])? };
        Some((version, Order::UntilSealed))
    }

    /// The lowest version above this one, if there is one.
    #[inline]
    pub fn successor(self) -> Option<Version> {
        match self.round.checked_add(1) {
            Some(round) => Some(Version { round, ..self }),
            None => self.epoch.checked_add(1).map(|epoch| Version { epoch, round: 0 }),
        }
    }
}

/// How a register takes ordered versions. The first ordered operation decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Plain versions, strictly one by one from 1.
    OneByOne,
    /// Versions written with a dot, which have no next one: all are buffered until a seal is above them.
    UntilSealed,
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
        let written = |text: &[u8]| Version::parse_written(text).map(|(_, order)| order);
        assert_eq!((written(b"7"), written(b"0.7")), (Some(Order::OneByOne), Some(Order::UntilSealed)));
        for text in ["", ".", "1.", ".1", "1.2.3", "-1", "+1", " 1", "01", "1.02", "18446744073709551616", "1e3", "x"] {
            assert_eq!(Version::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn nothing_lies_between_a_version_and_its_successor() {
        let successor = |epoch, round| Version { epoch, round }.successor();
        assert_eq!(successor(0, 7), Some(Version::of_round(8)));
        assert_eq!(successor(3, u64::MAX), Some(Version { epoch: 4, round: 0 }));
        assert_eq!(successor(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn the_epoch_counts_before_the_round() {
        let version = |text: &str| Version::parse(text.as_bytes()).unwrap();
        let sorted = ["0", "0.1", "2", "18446744073709551615", "1.0", "1.9", "1.10", "2.0"].map(version);
        assert!(sorted.is_sorted_by(|a, b| a < b));
    }
}
