//! The furthest frame that a process has stored or read, as it remembers it over a restart. Knows one line of text; refuses
//! to know where it is kept.
//!
//! A stream whose files were damaged on all of its servers may come back shorter, and whole as far as it goes. Only one that
//! has read more can tell.

use crate::frame::{LogId, Position};

/// What a line begins with; the number is that of its form.
const WORD: &str = "holdfast-log-mark 1";

/// A frame of a log that was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub log: LogId,
    pub position: Position,
    /// The end of the chain with this frame.
    pub(crate) crc: u32,
}

impl Mark {
    pub fn line(&self) -> String {
        format!("{WORD} {:016x} {} {:08x}\n", self.log.0, self.position, self.crc)
    }

    /// `None` if the text is not a mark.
    pub fn parse(text: &str) -> Option<Mark> {
        let mut words = text.strip_prefix(WORD)?.strip_suffix('\n')?.split(' ').skip(1);
        let log = LogId(u64::from_str_radix(words.next()?, 16).ok()?);
        let position = words.next()?.parse().ok()?;
        let crc = u32::from_str_radix(words.next()?, 16).ok()?;
        words.next().is_none().then_some(Mark { log, position, crc })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written_and_nothing_else_is() {
        let mark = Mark { log: LogId(0xabc), position: 77, crc: 0x1234 };
        assert_eq!(Mark::parse(&mark.line()), Some(mark));
        for text in ["", "holdfast-log-mark 1", "holdfast-log-mark 2 abc 77 1234\n", &mark.line()[..30]] {
            assert_eq!(Mark::parse(text), None, "{text:?}");
        }
    }
}
