//! Commands that exist only for tests of waiting and use all its features: two roles of keys, readers and takers,
//! conditions that capture arguments, conditions on absence. Knows what they do; `execution::waiting` knows how they
//! wait.

mod endings;
mod offers;
mod race;
mod roles;

use execution::command::{Command, Flags, Table, exactly, key, keys, read, write};
use execution::context::{ReadCx, WriteCx};
use execution::docs::argument as arg;
use execution::error::{CommandError, CommandResult};
use execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::types::sorted_set::{self, Direction};
use keyspace::{Cause, Effect, SortedSetRef, Value};
use smallvec::smallvec;

pub(super) const TABLES: &[Table] = &[Table { group: "generic", category: "", commands: COMMANDS }];

/// The deadline of a wait of so many seconds.
fn timeout(seconds: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    let seconds: Option<f64> = std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok());
    let ms = (seconds.ok_or(CommandError::Syntax)? * 1000.0) as u64;
    Ok((ms > 0).then_some(now_ms + ms))
}

const COMMANDS: &[Command] = &[
    write("test.move", exactly(4), keys(1, 2, 1), move_lowest)
        .flag(Flags::BLOCKING)
        .doc("1.0.0", "Moves the lowest member of a sorted set to another, or waits until there is one.")
        .arguments(&[arg::key("source", 0), arg::key("destination", 0), arg::double("timeout")]),
    read("test.read", exactly(4), key(1), read_above)
        .flag(Flags::BLOCKING)
        .doc("1.0.0", "Tells the first member of a sorted set above a score, or waits until there is one.")
        .arguments(&[arg::key("key", 0), arg::double("score"), arg::double("timeout")]),
    read("test.gone", exactly(3), key(1), gone)
        .flag(Flags::BLOCKING)
        .doc("1.0.0", "Waits until there is no such key.")
        .arguments(&[arg::key("key", 0), arg::double("timeout")]),
    write("test.grab", exactly(4), keys(1, 2, 1), grab)
        .flag(Flags::BLOCKING)
        .doc("1.0.0", "Deletes two keys when there is one of them, though a waiter is offered one alone.")
        .arguments(&[arg::key("key", 0), arg::key("other", 0), arg::double("timeout")]),
];

/// A taker of two roles: it waits for the source, and touches the destination when it is served. Its condition is wider
/// than needed, so that it is sometimes run without success.
fn move_lowest(cx: &mut WriteCx<'_>) -> CommandResult {
    let (from, to) = (cx.args.key()?, cx.args.key()?);
    let until_ms = timeout(cx.args.bytes()?, cx.keys.now_ms())?;
    cx.keys.to_change::<SortedSetRef>(to)?;
    let Ok(Some(set)) = cx.keys.to_change::<SortedSetRef>(from) else {
        cx.reply.null();
        let condition: Condition = Box::new(|value| value.is_some());
        cx.client.wait(Wait { until_ms, keys: WaitKeys::At(smallvec![1]), condition, role: WaitRole::Taker });
        return Ok(());
    };
    let (score, name) = lowest(set);
    cx.reply.bulk(&name);
    cx.keys.record(&Effect::change(from, sorted_set::Change::Remove { members: &[&name] }));
    cx.keys.record(&Effect::change(to, sorted_set::Change::Add { members: &[(score, &name)] }));
    Ok(())
}

fn lowest(set: SortedSetRef<'_>) -> (f64, Vec<u8>) {
    let member = set.members(0..1, Direction::Ascending).next().expect("no sorted set is empty");
    (member.score, member.name.into_bytes().into_owned())
}

/// A reader: it consumes nothing, and its condition captures what it has seen already.
fn read_above(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, score) = (cx.args.key()?, cx.args.bytes()?);
    let text = std::str::from_utf8(score).ok().and_then(|text| text.parse::<f64>().ok());
    let above = text.ok_or(CommandError::NotFloat)?;
    let until_ms = timeout(cx.args.bytes()?, cx.keys.now_ms)?;
    if let Some(set) = cx.keys.typed::<SortedSetRef>(key)?
        && let Some(member) = set.iter().find(|member| member.score > above)
    {
        cx.reply.array(2);
        cx.reply.bulk(&member.name.scalar().bytes());
        cx.reply.double(member.score);
        return Ok(());
    }
    cx.reply.null_array();
    let condition: Condition = Box::new(move |value| match value {
        Some(Value::SortedSet(set)) => set.iter().any(|member| member.score > above),
        _ => false,
    });
    cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Reader });
    Ok(())
}

/// A reader that waits for absence.
fn gone(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let until_ms = timeout(cx.args.bytes()?, cx.keys.now_ms)?;
    if !cx.keys.exists(key) {
        cx.reply.ok();
        return Ok(());
    }
    cx.reply.null();
    let condition: Condition = Box::new(|value| value.is_none());
    cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Reader });
    Ok(())
}

/// What a handler may not do: it changes a key that it may not have been offered.
fn grab(cx: &mut WriteCx<'_>) -> CommandResult {
    let (first, second) = (cx.args.key()?, cx.args.key()?);
    let until_ms = timeout(cx.args.bytes()?, cx.keys.now_ms())?;
    if !cx.keys.view().exists(first) && !cx.keys.view().exists(second) {
        cx.reply.null();
        let condition: Condition = Box::new(|value| value.is_some());
        cx.client.wait(Wait { until_ms, keys: WaitKeys::All, condition, role: WaitRole::Taker });
        return Ok(());
    }
    for key in [first, second] {
        cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
    }
    cx.reply.ok();
    Ok(())
}
