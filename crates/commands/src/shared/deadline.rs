//! Times in arguments: EX, PX, EXAT, PXAT and the timeouts of blocking commands, turned into absolute deadlines. Knows
//! units and limits; refuses to know what will expire.

use execution::args::{Args, is_word};
use execution::error::CommandError;
use numbers::long_double::LongDouble;
use resp::Request;

/// The unit and origin of a time.
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
    /// The form that an option word selects.
    pub(crate) fn of_word(word: &[u8]) -> Option<TimeForm> {
        const WORDS: [(&str, TimeForm); 4] = [
            ("EX", TimeForm::Seconds),
            ("PX", TimeForm::Milliseconds),
            ("EXAT", TimeForm::UnixSeconds),
            ("PXAT", TimeForm::UnixMilliseconds),
        ];
        WORDS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes())).map(|(_, form)| *form)
    }

    /// The instant in unix milliseconds; `None` when it does not fit in 63 bits.
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

    /// Parses the time of an option such as `EX 10`. It must be positive; the error names the command.
    pub(crate) fn deadline(self, args: &mut Args<'_>, now_ms: u64, command: &str) -> Result<u64, CommandError> {
        let time = args.int()?;
        if time <= 0 {
            return Err(CommandError::invalid_expire(command));
        }
        self.instant(time, now_ms).map(|instant| instant as u64).ok_or_else(|| CommandError::invalid_expire(command))
    }
}

/// The deadline of a wait of so many seconds, in unix milliseconds; `None` for 0, which is for ever.
pub(crate) fn timeout(seconds: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    const NEGATIVE: CommandError = CommandError::fixed("ERR timeout is negative");
    // Up to 7.0, Redis treated a timeout that is too large as negative.
    const OUT_OF_RANGE: CommandError = CommandError::fixed("ERR timeout is out of range");
    let seconds =
        LongDouble::parse(seconds).ok_or(CommandError::fixed("ERR timeout is not a float or out of range"))?;
    match seconds.thousandfold_rounded_up() {
        Some(0) => Ok(None),
        Some(ms) if ms > 0 => {
            let until_ms = ms.checked_add_unsigned(now_ms).ok_or(OUT_OF_RANGE)?;
            Ok(Some(until_ms as u64))
        }
        Some(_) => Err(NEGATIVE),
        None if seconds.is_negative() => Err(NEGATIVE),
        None => Err(OUT_OF_RANGE),
    }
}

/// For [`Command::relative_time`](execution::command::Command::relative_time): the time is always relative.
pub(crate) fn always(_: Request<'_>) -> bool {
    true
}

/// For [`Command::relative_time`](execution::command::Command::relative_time): the time is relative with EX or PX among
/// the options, which begin at argument `FIRST` and end at FIELDS, if that is there: fields may have any name.
pub(crate) fn ex_or_px_from<const FIRST: usize>(request: Request<'_>) -> bool {
    let mut options = request.iter().skip(FIRST).take_while(|word| !is_word(word, "FIELDS"));
    options.any(|word| is_word(word, "EX") || is_word(word, "PX"))
}
