//! Commands about strings that are numbers.

use execution::context::WriteCx;
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::string;
use keyspace::{Effect, Key, Scalar, StringRef, Value};
use numbers::long_double::LongDouble;
use numbers::parse_i64;

pub(super) fn incr(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    add(cx, key, 1)
}

pub(super) fn decr(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    add(cx, key, -1)
}

pub(super) fn incrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.int()?);
    add(cx, key, by)
}

pub(super) fn decrby(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.int()?);
    let by = by.checked_neg().ok_or(CommandError::fixed("ERR decrement would overflow"))?;
    add(cx, key, by)
}

fn add(cx: &mut WriteCx<'_>, key: Key<'_>, by: i64) -> CommandResult {
    // An expired key reads as absent, and the effect replaces it.
    let (current, deadline) = match cx.keys.view().entry(key) {
        None => (0, None),
        Some(entry) => match cx.keys.view().value_of(cx.keys.db(), key, entry) {
            Value::String(Scalar::Number(number)) => (number, entry.deadline()),
            Value::String(Scalar::Bytes(bytes)) => {
                (parse_i64(bytes).ok_or(CommandError::NotInteger)?, entry.deadline())
            }
            other => return Err(CommandError::wrong_type(other.value_type())),
        },
    };
    let sum = current.checked_add(by).ok_or(CommandError::fixed("ERR increment or decrement would overflow"))?;
    cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Number(sum), deadline }));
    cx.keys.notify(Events::STRING, "incrby", key);
    cx.reply.integer(sum);
    Ok(())
}

pub(super) fn incrbyfloat(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, by) = (cx.args.key()?, cx.args.bytes()?);
    cx.keys.remove_if_expired(cx.client.db, key);
    let current = match cx.keys.view().typed::<StringRef>(key)? {
        None => LongDouble::parse(b"0"),
        Some(string) => string.with_bytes(LongDouble::parse),
    };
    let (Some(current), Some(by)) = (current, LongDouble::parse(by)) else { return Err(CommandError::NotFloat) };
    let sum = current.add(by);
    if sum.is_nan_or_infinite() {
        return Err(CommandError::fixed("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.format_human();
    let deadline = cx.keys.view().deadline(key).flatten();
    cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::Bytes(&text), deadline }));
    cx.keys.notify(Events::STRING, "incrbyfloat", key);
    cx.reply.bulk(&text);
    Ok(())
}
