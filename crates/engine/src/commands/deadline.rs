//! Times in arguments: EX, PX, EXAT, PXAT and their kin, turned into absolute deadlines. Knows units and limits;
//! refuses to know what will expire.

use crate::args::Args;
use crate::error::CommandError;

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// From now, in seconds.
    Seconds,
    /// From now, in milliseconds.
    Milliseconds,
    /// Unix time in seconds.
    UnixSeconds,
    /// Unix time in milliseconds.
    UnixMilliseconds,
}

impl TimeForm {
    /// The form that an option word asks for.
    pub(crate) fn of_word(word: &[u8]) -> Option<TimeForm> {
        const WORDS: [(&str, TimeForm); 4] = [
            ("EX", TimeForm::Seconds),
            ("PX", TimeForm::Milliseconds),
            ("EXAT", TimeForm::UnixSeconds),
            ("PXAT", TimeForm::UnixMilliseconds),
        ];
        WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, form)| *form)
    }

    /// The instant in unix milliseconds; `None` when it cannot be kept in 63 bits.
    pub(crate) fn instant(self, time: i64, now_ms: u64) -> Option<i64> {
        let ms = match self {
            TimeForm::Seconds | TimeForm::UnixSeconds => time.checked_mul(1000)?,
            TimeForm::Milliseconds | TimeForm::UnixMilliseconds => time,
        };
        match self {
            TimeForm::Seconds | TimeForm::Milliseconds => ms.checked_add(now_ms as i64),
            TimeForm::UnixSeconds | TimeForm::UnixMilliseconds => Some(ms),
        }
    }

    /// Reads the time of an option such as `EX 10`: it must lie above zero, or the command is refused by name.
    pub(crate) fn deadline(self, args: &mut Args<'_>, now_ms: u64, command: &str) -> Result<u64, CommandError> {
        let time = args.int()?;
        if time <= 0 {
            return Err(CommandError::invalid_expire(command));
        }
        self.instant(time, now_ms).map(|instant| instant as u64).ok_or_else(|| CommandError::invalid_expire(command))
    }
}
