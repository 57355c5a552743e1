//! Times in arguments: `NOW`, `NOW+ms` and `NOW-ms` as values and as score bounds, and the offsets of STAMP. Refuses to
//! read a clock: the caller passes in the command's time, from which all its times are computed.
//!
//! Only upper case is a time. `now` and `NOWHERE` are ordinary values; a value that begins with `NOW+` or `NOW-` must
//! be a time.

use crate::shared::options::{Stamps, argument, error, shown};
use crate::sorted_sets::score_bound;
use execution::args::Args;
use execution::error::CommandError;
use keyspace::types::sorted_set::ScoreBound;
use numbers::parse_i64;
use std::borrow::Cow;

/// Fields to set, with `NOW…` replaced by times.
pub(super) type Settings<'a> = Vec<(&'a [u8], Cow<'a, [u8]>)>;

/// Resolves a field's value. `NOW`, `NOW+ms` and `NOW-ms` become that time, in milliseconds; any other value stays.
pub(super) fn value_at(value: &[u8], now_ms: u64) -> Result<Cow<'_, [u8]>, CommandError> {
    match offset_ms(value)? {
        None => Ok(Cow::Borrowed(value)),
        Some(offset) => match shift(now_ms, offset) {
            Some(time) => Ok(Cow::Owned(time.to_string().into_bytes())),
            None => Err(no_time(value)),
        },
    }
}

/// Resolves the values of fields; see [`value_at`].
pub(super) fn values_at<'a>(
    fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>,
    now_ms: u64,
) -> Result<Settings<'a>, CommandError> {
    fields.into_iter().map(|(field, value)| Ok((field, value_at(value, now_ms)?))).collect()
}

/// Parses a score bound as in ZRANGEBYSCORE, or a time: `NOW`, `NOW+ms`, `NOW-ms`; `(` before any of these excludes it.
/// Errors call it `what`.
pub(super) fn bound_at(text: &[u8], now_ms: u64, what: &str) -> Result<ScoreBound, CommandError> {
    let (excluded, time) = match text {
        [b'(', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if let Some(offset) = offset_ms(time)? {
        let time = shift(now_ms, offset).ok_or_else(|| no_time(time))?;
        return Ok(ScoreBound { score: time as f64, excluded });
    }
    score_bound(text).ok_or_else(|| {
        let shown = shown(text);
        error(format!("{what} must be a score such as 5, (5, -inf, +inf, NOW or NOW+ms, not {shown}"))
    })
}

/// Takes the next argument as a time from 0 on: a number of milliseconds, `NOW`, `NOW+ms` or `NOW-ms`. Errors call it
/// `what`.
pub(super) fn time_at(args: &mut Args<'_>, what: &str, now_ms: u64) -> Result<i64, CommandError> {
    let text = argument(args, what)?;
    if let Some(offset) = offset_ms(text)? {
        return shift(now_ms, offset).ok_or_else(|| no_time(text));
    }
    parse_i64(text).filter(|time| *time >= 0).ok_or_else(|| {
        let shown = shown(text);
        error(format!("{what} must be a whole number not below 0, or a time such as NOW-ms, not {shown}"))
    })
}

/// The fields of STAMP, with the times that they are set to. None of them may be among `others`, the fields that the
/// request sets or deletes in another way.
pub(super) fn stamps_at<'a>(
    stamps: &Stamps<'a>,
    others: impl IntoIterator<Item = &'a [u8]>,
    now_ms: u64,
) -> Result<Settings<'a>, CommandError> {
    let mut named: Vec<&[u8]> = stamps.iter().map(|(field, _)| *field).collect();
    named.sort_unstable();
    if let Some(twice) = named.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(error(format!("STAMP names the field {} twice", shown(twice[0]))));
    }
    if let Some(field) = others.into_iter().find(|field| named.binary_search(field).is_ok()) {
        return Err(error(format!("the field {} is in STAMP, and cannot be set or deleted too", shown(field))));
    }
    let time = |offset| shift(now_ms, offset).map(|time| Cow::Owned(time.to_string().into_bytes()));
    let stamp = |(field, offset): &(&'a [u8], i64)| match time(*offset) {
        Some(time) => Ok((*field, time)),
        None => Err(error(format!("STAMP of the field {} must be a time from 0 to 2^63-1", shown(field)))),
    };
    stamps.iter().map(stamp).collect()
}

/// The offset of a time that is written as `NOW`, `NOW+ms` or `NOW-ms`; `None` for anything else.
pub(super) fn offset_ms(text: &[u8]) -> Result<Option<i64>, CommandError> {
    let ms = |digits: &[u8]| parse_i64(digits).filter(|ms| *ms >= 0);
    let offset = match text.strip_prefix(b"NOW") {
        Some(b"") => Some(0),
        Some([b'+', digits @ ..]) => ms(digits),
        Some([b'-', digits @ ..]) => ms(digits).map(|ms| -ms),
        _ => return Ok(None),
    };
    offset.map(Some).ok_or_else(|| no_time(text))
}

/// A time plus an offset; `None` outside 0…2^63−1.
pub(super) fn shift(now_ms: u64, offset_ms: i64) -> Option<i64> {
    i64::try_from(now_ms).ok()?.checked_add(offset_ms).filter(|time| *time >= 0)
}

fn no_time(text: &[u8]) -> CommandError {
    error(format!("{} must be NOW, NOW+ms or NOW-ms, and a time from 0 to 2^63-1", shown(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_replaced_and_nothing_else() {
        for (value, expected) in [
            ("NOW", "1000"),
            ("NOW+5", "1005"),
            ("NOW+0", "1000"),
            ("NOW-5", "995"),
            ("NOW-0", "1000"),
            ("NOW-1000", "0"),
            ("NOW+9223372036854774807", "9223372036854775807"),
            ("now", "now"),
            ("now+5", "now+5"),
            ("Now", "Now"),
            ("NOW 5", "NOW 5"),
            ("NOWHERE", "NOWHERE"),
            ("(NOW", "(NOW"),
            ("", ""),
        ] {
            assert_eq!(*value_at(value.as_bytes(), 1000).unwrap(), *expected.as_bytes(), "{value}");
        }
    }

    #[test]
    fn a_time_that_does_not_parse_or_is_out_of_range_is_refused() {
        for value in [
            "NOW+",
            "NOW-",
            "NOW+-5",
            "NOW--5",
            "NOW+ 5",
            "NOW+5.0",
            "NOW+x",
            "NOW-1001",
            "NOW+9223372036854774808",
            "NOW+9223372036854775807",
            "NOW-9223372036854775807",
            "NOW+9223372036854775808",
        ] {
            assert!(value_at(value.as_bytes(), 1000).is_err(), "{value}");
            assert!(bound_at(value.as_bytes(), 1000, "MAX").is_err(), "{value}");
            assert!(bound_at(format!("({value}").as_bytes(), 1000, "MAX").is_err(), "({value}");
        }
    }

    #[test]
    fn a_bound_is_a_score_or_a_time() {
        for (text, score, excluded) in [
            ("5", 5.0, false),
            ("(5", 5.0, true),
            ("-inf", f64::NEG_INFINITY, false),
            ("+inf", f64::INFINITY, false),
            ("NOW", 1000.0, false),
            ("(NOW", 1000.0, true),
            ("NOW+5", 1005.0, false),
            ("(NOW-5", 995.0, true),
        ] {
            let bound = bound_at(text.as_bytes(), 1000, "MIN").unwrap();
            assert_eq!((bound.score, bound.excluded), (score, excluded), "{text}");
        }
        for text in ["now", "NOWHERE", "((NOW", "x", "nan"] {
            assert!(bound_at(text.as_bytes(), 1000, "MIN").is_err(), "{text}");
        }
    }

    #[test]
    fn offsets_stay_within_times() {
        assert_eq!(shift(1000, -1000), Some(0));
        assert_eq!(shift(1000, -1001), None);
        assert_eq!(shift(1000, i64::MIN), None);
        assert_eq!(shift(0, i64::MAX), Some(i64::MAX));
        assert_eq!(shift(1, i64::MAX), None);
        assert_eq!(shift(u64::MAX, -1), None);
    }
}
