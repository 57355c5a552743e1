//! What HRANDFIELD, SRANDMEMBER and ZRANDMEMBER share: the count of random elements, and the limit of the reply's
//! length.

use execution::args::Args;
use execution::error::CommandError;

/// Parses the count of random elements, and whether the option `with` follows: `-5 WITHVALUES`.
pub(crate) fn random_count(args: &mut Args<'_>, with: &str) -> Result<(i64, bool), CommandError> {
    let count = args.int()?;
    if count == i64::MIN {
        return Err(CommandError::fixed(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807",
        ));
    }
    let is_with = args.take_word(with);
    args.finish()?;
    match is_with && count.unsigned_abs() > i64::MAX as u64 / 2 {
        true => Err(OUT_OF_RANGE),
        false => Ok((count, is_with)),
    }
}

pub(crate) const OUT_OF_RANGE: CommandError = CommandError::fixed("ERR value is out of range");

/// The longest reply to a negative count. Redis has no limit.
pub(crate) const REPEATED_BYTES_MAX: usize = 64 << 20;
