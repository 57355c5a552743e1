//! INCREX: adds to a number, within bounds and with a deadline. Redis 8.8's rate limiter: the counter of a window is
//! made, bounded and given its deadline in one step.

use crate::shared::deadline::TimeForm;
use execution::args::{Args, is_word};
use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::string;
use keyspace::{Cause, Effect, Key, Scalar, StringRef};
use numbers::long_double::LongDouble;
use numbers::parse_i64;
use std::cmp::Ordering;

/// The options as given. No option may be repeated.
#[derive(Default)]
struct Options<'a> {
    by: Option<(Kind, &'a [u8])>,
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    saturates: bool,
    time: Option<(TimeForm, Args<'a>)>,
    persists: bool,
    only_without_deadline: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Integer,
    Float,
}

impl<'a> Options<'a> {
    fn take(args: &mut Args<'a>) -> Result<Options<'a>, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.try_next() {
            let is_new = if is_word(word, "BYINT") {
                options.by.replace((Kind::Integer, args.bytes()?)).is_none()
            } else if is_word(word, "BYFLOAT") {
                options.by.replace((Kind::Float, args.bytes()?)).is_none()
            } else if is_word(word, "LBOUND") {
                options.lower.replace(args.bytes()?).is_none()
            } else if is_word(word, "UBOUND") {
                options.upper.replace(args.bytes()?).is_none()
            } else if is_word(word, "SATURATE") {
                !std::mem::replace(&mut options.saturates, true)
            } else if is_word(word, "PERSIST") {
                !std::mem::replace(&mut options.persists, true)
            } else if is_word(word, "ENX") {
                !std::mem::replace(&mut options.only_without_deadline, true)
            } else {
                let form = TimeForm::of_word(word).ok_or(CommandError::Syntax)?;
                let at = *args;
                args.bytes()?;
                options.time.replace((form, at)).is_none()
            };
            if !is_new || options.persists && (options.time.is_some() || options.only_without_deadline) {
                return Err(CommandError::Syntax);
            }
        }
        match options.only_without_deadline && options.time.is_none() {
            true => Err(CommandError::fixed("ERR ENX flag requires an expiration")),
            false => Ok(options),
        }
    }
}

/// A number that INCREX can add to: an integer of 64 bits, or what Redis calls a long double.
trait Number: Copy {
    const ZERO: Self;
    const ONE: Self;
    const MIN: Self;
    const MAX: Self;
    const EVENT: &'static str;

    /// Reads an argument; the error begins with what the argument is.
    fn of_argument(text: &[u8], what: &str) -> Result<Self, CommandError>;
    /// Reads the increment, where it needs more than any argument.
    fn check_increment(self) -> CommandResult;
    fn of_value(value: Scalar<'_>) -> Result<Self, CommandError>;
    fn compare(self, other: Self) -> Ordering;
    /// `None` if the sum is out of the range of the type.
    fn plus(self, other: Self) -> Option<Self>;
    /// `None` if the difference is out of the range of the type.
    fn minus(self, other: Self) -> Option<Self>;
    fn record(self, cx: &mut WriteCx<'_>, key: Key<'_>, deadline: Option<u64>);
    fn reply(self, cx: &mut WriteCx<'_>);
}

impl Number for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
    const EVENT: &'static str = "incrby";

    fn of_argument(text: &[u8], what: &str) -> Result<i64, CommandError> {
        parse_i64(text).ok_or_else(|| CommandError::said(format!("ERR {what} is not an integer or out of range")))
    }

    fn check_increment(self) -> CommandResult {
        Ok(())
    }

    fn of_value(value: Scalar<'_>) -> Result<i64, CommandError> {
        match value {
            Scalar::Number(number) => Ok(number),
            Scalar::Bytes(bytes) => parse_i64(bytes).ok_or(CommandError::NotInteger),
        }
    }

    fn compare(self, other: i64) -> Ordering {
        self.cmp(&other)
    }

    fn plus(self, other: i64) -> Option<i64> {
        self.checked_add(other)
    }

    fn minus(self, other: i64) -> Option<i64> {
        self.checked_sub(other)
    }

    fn record(self, cx: &mut WriteCx<'_>, key: Key<'_>, deadline: Option<u64>) {
        cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Number(self), deadline }));
    }

    fn reply(self, cx: &mut WriteCx<'_>) {
        cx.reply.integer(self);
    }
}

impl Number for LongDouble {
    const ZERO: LongDouble = LongDouble::ZERO;
    const ONE: LongDouble = LongDouble::ONE;
    const MIN: LongDouble = LongDouble::MIN;
    const MAX: LongDouble = LongDouble::MAX;
    const EVENT: &'static str = "incrbyfloat";

    fn of_argument(text: &[u8], what: &str) -> Result<LongDouble, CommandError> {
        LongDouble::parse(text).ok_or_else(|| CommandError::said(format!("ERR {what} is not a valid float")))
    }

    fn check_increment(self) -> CommandResult {
        match self.is_nan_or_infinite() {
            true => Err(CommandError::fixed("ERR BYFLOAT increment cannot be Infinity")),
            false => Ok(()),
        }
    }

    fn of_value(value: Scalar<'_>) -> Result<LongDouble, CommandError> {
        let number = value.with_bytes(LongDouble::parse).ok_or(CommandError::NotFloat)?;
        match number.is_nan_or_infinite() {
            true => Err(CommandError::fixed("ERR value cannot be Infinity")),
            false => Ok(number),
        }
    }

    fn compare(self, other: LongDouble) -> Ordering {
        // Neither is NaN, which is no text of a number.
        self.partial_cmp(&other).unwrap_or(Ordering::Equal)
    }

    fn plus(self, other: LongDouble) -> Option<LongDouble> {
        Some(self.add(other)).filter(|sum| !sum.is_nan_or_infinite())
    }

    fn minus(self, other: LongDouble) -> Option<LongDouble> {
        self.plus(other.negated())
    }

    fn record(self, cx: &mut WriteCx<'_>, key: Key<'_>, deadline: Option<u64>) {
        let text = self.format_human();
        cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Bytes(&text), deadline }));
    }

    fn reply(self, cx: &mut WriteCx<'_>) {
        cx.reply.double_text(&self.format_human());
    }
}

pub(super) fn increx(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let options = Options::take(&mut cx.args)?;
    match options.by {
        Some((Kind::Float, _)) => add::<LongDouble>(cx, key, options),
        _ => add::<i64>(cx, key, options),
    }
}

fn add<N: Number>(cx: &mut WriteCx<'_>, key: Key<'_>, options: Options<'_>) -> CommandResult {
    let by = options.by.map_or(Ok(N::ONE), |(_, text)| N::of_argument(text, "Increment"))?;
    by.check_increment()?;
    let lower = options.lower.map_or(Ok(N::MIN), |text| N::of_argument(text, "LBOUND"))?;
    let upper = options.upper.map_or(Ok(N::MAX), |text| N::of_argument(text, "UBOUND"))?;
    if lower.compare(upper).is_gt() {
        return Err(CommandError::fixed("ERR LBOUND can't be greater than UBOUND"));
    }
    let until = match options.time {
        Some((form, mut at)) => Some(form.deadline(&mut at, cx.keys.now_ms(), "increx")?),
        None => None,
    };
    cx.keys.remove_if_expired(cx.client.db, key);
    let current = cx.keys.view().typed::<StringRef>(key)?.map_or(Ok(N::ZERO), N::of_value)?;
    let sum = current.plus(by);
    let is_within = |sum: &N| sum.compare(lower).is_ge() && sum.compare(upper).is_le();
    let sum = match sum.filter(is_within) {
        Some(sum) => sum,
        None if !options.saturates => {
            reply(cx, current, N::ZERO);
            return Ok(());
        }
        None => nearest(sum, by, lower, upper),
    };
    let applied = sum.minus(current).ok_or(CommandError::fixed("ERR applied increment would overflow"))?;

    let before = cx.keys.view().deadline(key).flatten();
    let until = until.filter(|_| before.is_none() || !options.only_without_deadline);
    if until.is_some_and(|until| until <= cx.keys.now_ms()) {
        if cx.keys.view().exists(key) {
            cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            cx.keys.notify(Events::GENERIC, "del", key);
        }
    } else {
        let deadline = if options.persists { None } else { until.or(before) };
        sum.record(cx, key, deadline);
        cx.keys.notify(Events::STRING, N::EVENT, key);
        if until.is_some() {
            cx.keys.notify(Events::GENERIC, "expire", key);
        } else if before.is_some() && options.persists {
            cx.keys.notify(Events::GENERIC, "persist", key);
        }
    }
    reply(cx, sum, applied);
    Ok(())
}

/// The bound that a sum has passed; the sum is missing if it is out of the range of the type.
fn nearest<N: Number>(sum: Option<N>, by: N, lower: N, upper: N) -> N {
    let is_above = match sum {
        Some(sum) => sum.compare(upper).is_gt(),
        None => by.compare(N::ZERO).is_gt(),
    };
    if is_above { upper } else { lower }
}

fn reply<N: Number>(cx: &mut WriteCx<'_>, number: N, applied: N) {
    cx.reply.array(2);
    number.reply(cx);
    applied.reply(cx);
}
