//! Bit commands: strings as rows of bits and of small integers. The arithmetic is in `algorithms::bits`.

use algorithms::bits::{self, FieldType, Operation, Overflow, Unit};
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::view::View;
use keyspace::types::string;
use keyspace::{Cause, Effect, Key, Scalar, StringRef};
use numbers::parse_i64;
use resp::Reply;
use smallvec::SmallVec;

pub(super) fn getbit(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let offset = bit_offset(&mut cx.args, None, cx.settings.proto_max_bulk_len())?;
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let on = found.is_some_and(|string| string.with_bytes(|bytes| bits::get_bit(bytes, offset)));
    cx.reply.integer(i64::from(on));
    Ok(())
}

pub(super) fn setbit(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let offset = bit_offset(&mut cx.args, None, cx.settings.proto_max_bulk_len())?;
    let on = match parse_i64(cx.args.bytes()?) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(CommandError::fixed("ERR bit is not an integer or out of range")),
    };
    cx.keys.remove_if_expired(cx.client.db, key);
    let at = (offset / 8) as usize;
    let before = match cx.keys.view().typed::<StringRef>(key)? {
        Some(string) => string.with_bytes(|bytes| bytes.get(at).copied()),
        None => None,
    };
    let mut byte = [before.unwrap_or(0)];
    let was = bits::set_bit(&mut byte, offset % 8, on);
    if was != on || before.is_none() {
        cx.keys.record(&Effect::change(key, string::Change::Write { offset: at, bytes: &byte }));
        cx.keys.notify(Events::STRING, "setbit", key);
    }
    cx.reply.integer(i64::from(was));
    Ok(())
}

/// Reads a bit offset; `#n` is the nth field where fields are counted. Offsets past the longest string are refused.
fn bit_offset(args: &mut Args<'_>, counted_in: Option<FieldType>, bytes_max: u64) -> Result<u64, CommandError> {
    bits::parse_bit_offset(args.bytes()?, counted_in, bytes_max)
        .ok_or(CommandError::fixed("ERR bit offset is not an integer or out of range"))
}

pub(super) fn bitcount(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let range = match cx.args.left() {
        0 => None,
        2 | 3 => {
            let (start, end) = (cx.args.int()?, cx.args.int()?);
            Some((start, end, unit(&mut cx.args)?))
        }
        _ => return Err(CommandError::Syntax),
    };
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let ones = found.map_or(0, |string| {
        string.with_bytes(|bytes| match range {
            None => bits::count_ones(bytes),
            Some((start, end, unit)) => bits::count_range(bytes, start, end, unit),
        })
    });
    cx.reply.integer(ones as i64);
    Ok(())
}

pub(super) fn bitpos(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let bit = match cx.args.int()? {
        0 => false,
        1 => true,
        _ => return Err(CommandError::fixed("ERR The bit argument must be 1 or 0.")),
    };
    if cx.args.left() > 3 {
        return Err(CommandError::Syntax);
    }
    let start = if cx.args.is_empty() { 0 } else { cx.args.int()? };
    // The unit is checked before the end, as in Redis.
    let mut end = cx.args;
    cx.args.try_next();
    let unit = unit(&mut cx.args)?;
    let end = if end.is_empty() { None } else { Some(end.int()?) };
    let found = cx.keys.typed::<StringRef>(key)?;
    cx.keys.looked_up(key, found.is_some());
    let position = match found {
        Some(string) => string.with_bytes(|bytes| bits::position(bytes, bit, start, end, unit)),
        // A missing key is an endless string of zeros, whatever the range.
        None if bit => -1,
        None => 0,
    };
    cx.reply.integer(position);
    Ok(())
}

/// What a range is counted in: bytes unless the last argument says otherwise.
fn unit(args: &mut Args<'_>) -> Result<Unit, CommandError> {
    match args.try_next() {
        None => Ok(Unit::Byte),
        Some(word) if is_word(word, "BYTE") => Ok(Unit::Byte),
        Some(word) if is_word(word, "BIT") => Ok(Unit::Bit),
        Some(_) => Err(CommandError::Syntax),
    }
}

pub(super) fn bitop(cx: &mut WriteCx<'_>) -> CommandResult {
    const OPERATIONS: [(&str, Operation); 8] = [
        ("AND", Operation::And),
        ("OR", Operation::Or),
        ("XOR", Operation::Xor),
        ("NOT", Operation::Not),
        ("DIFF", Operation::Diff),
        ("DIFF1", Operation::Diff1),
        ("ANDOR", Operation::AndOr),
        ("ONE", Operation::One),
    ];
    let word = cx.args.bytes()?;
    let found = OPERATIONS.iter().find(|(name, _)| is_word(word, name));
    let (name, operation) = *found.ok_or(CommandError::Syntax)?;
    let target = cx.args.key()?;
    if operation == Operation::Not && cx.args.left() > 1 {
        return Err(CommandError::fixed("ERR BITOP NOT must be called with a single source key."));
    }
    let compares_with_others = matches!(operation, Operation::Diff | Operation::Diff1 | Operation::AndOr);
    if compares_with_others && cx.args.left() < 2 {
        return Err(CommandError::said(format!("ERR BITOP {name} must be called with at least two source keys.")));
    }
    let mut sources = Vec::with_capacity(cx.args.left());
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let found = cx.keys.view().typed::<StringRef>(key)?;
        cx.keys.view().looked_up(key, found.is_some());
        sources.push(found.unwrap_or(Scalar::Bytes(b"")).bytes());
    }
    let sources: Vec<&[u8]> = sources.iter().map(AsRef::as_ref).collect();
    let result = bits::combine(operation, &sources);
    cx.keys.remove_if_expired(cx.client.db, target);
    if !result.is_empty() {
        let change = string::Change::Set { value: Scalar::Bytes(&result), deadline: None };
        cx.keys.replace(&Effect::change(target, change))?;
        cx.keys.notify(Events::STRING, "set", target);
    } else if cx.keys.view().exists(target) {
        cx.keys.replace(&Effect::Delete { key: target, cause: Cause::Deleted })?;
        cx.keys.notify(Events::GENERIC, "del", target);
    }
    cx.reply.integer(result.len() as i64);
    Ok(())
}

/// One operation of BITFIELD.
struct FieldOp {
    field: FieldType,
    /// In bits.
    offset: u64,
    action: Action,
    overflow: Overflow,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

/// The most bytes that a field touches: it need not begin at a byte's border.
const WINDOW_BYTES: usize = 9;

impl FieldOp {
    /// The first byte the field touches.
    fn at(&self) -> usize {
        (self.offset / 8) as usize
    }

    /// Where the field begins in its first byte.
    fn bit(&self) -> u64 {
        self.offset % 8
    }

    /// How many bytes the field touches.
    fn span(&self) -> usize {
        (self.field.last_bit(self.bit()) / 8) as usize + 1
    }

    /// The bytes the field touches, zeros where the string has ended.
    fn window(&self, string: Option<Scalar<'_>>) -> [u8; WINDOW_BYTES] {
        let mut window = [0; WINDOW_BYTES];
        let copy = |bytes: &[u8]| {
            let tail = bytes.get(self.at()..).unwrap_or(&[]);
            let len = tail.len().min(WINDOW_BYTES);
            window[..len].copy_from_slice(&tail[..len]);
        };
        if let Some(string) = string {
            string.with_bytes(copy);
        }
        window
    }
}

pub(super) fn bitfield(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let operations = field_operations(&mut cx.args, cx.settings.proto_max_bulk_len())?;
    let writes = operations.iter().filter(|operation| operation.action != Action::Get);
    let Some(last_bit) = writes.map(|operation| operation.field.last_bit(operation.offset)).max() else {
        return read_fields(cx.keys.view(), &mut cx.reply, key, &operations);
    };
    cx.keys.remove_if_expired(cx.client.db, key);
    let last = (last_bit / 8) as usize;
    let grows = cx.keys.view().typed::<StringRef>(key)?.map_or(0, Scalar::len) <= last;
    let mut changed = false;
    cx.reply.array(operations.len());
    for operation in &operations {
        let field = operation.field;
        let mut window = operation.window(cx.keys.view().typed::<StringRef>(key)?);
        let current = field.get(&window, operation.bit());
        let outcome = match operation.action {
            Action::Get => {
                cx.reply.integer(current);
                continue;
            }
            Action::Set(value) => field.to_store(value, operation.overflow).map(|new| (new, current)),
            Action::Add(by) => field.add(current, by, operation.overflow).map(|new| (new, new)),
        };
        match outcome {
            Some((new, answer)) => {
                changed |= grows || new != current;
                if new != current {
                    let bytes = &mut window[..operation.span()];
                    field.set(bytes, operation.bit(), new);
                    cx.keys.record(&Effect::change(key, string::Change::Write { offset: operation.at(), bytes }));
                }
                cx.reply.integer(answer);
            }
            None => cx.reply.null(),
        }
    }
    // The string grows to hold all writes, even those that change nothing or that OVERFLOW FAIL refuses.
    if cx.keys.view().typed::<StringRef>(key)?.map_or(0, Scalar::len) <= last {
        cx.keys.record(&Effect::change(key, string::Change::Write { offset: last, bytes: &[0] }));
    }
    if changed {
        cx.keys.notify(Events::STRING, "setbit", key);
    }
    Ok(())
}

pub(super) fn bitfield_ro(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let operations = field_operations(&mut cx.args, cx.settings.proto_max_bulk_len())?;
    if operations.iter().any(|operation| operation.action != Action::Get) {
        return Err(CommandError::fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    read_fields(&cx.keys, &mut cx.reply, key, &operations)
}

fn read_fields(keys: &View<'_>, reply: &mut Reply<'_>, key: Key<'_>, operations: &[FieldOp]) -> CommandResult {
    let found = keys.typed::<StringRef>(key)?;
    keys.looked_up(key, found.is_some());
    reply.array(operations.len());
    for operation in operations {
        reply.integer(operation.field.get(&operation.window(found), operation.bit()));
    }
    Ok(())
}

/// Reads all operations of BITFIELD, before any is done. OVERFLOW holds for those that follow it.
fn field_operations(args: &mut Args<'_>, bytes_max: u64) -> Result<SmallVec<[FieldOp; 4]>, CommandError> {
    const WAYS: [(&str, Overflow); 3] =
        [("WRAP", Overflow::Wrap), ("SAT", Overflow::Saturate), ("FAIL", Overflow::Fail)];
    let mut operations = SmallVec::new();
    let mut overflow = Overflow::Wrap;
    while let Some(word) = args.try_next() {
        if is_word(word, "OVERFLOW") && !args.is_empty() {
            let way = args.bytes()?;
            let found = WAYS.iter().find(|(name, _)| is_word(way, name));
            overflow = found.ok_or(CommandError::fixed("ERR Invalid OVERFLOW type specified"))?.1;
            continue;
        }
        let action: fn(i64) -> Action = match word {
            _ if is_word(word, "GET") && args.left() >= 2 => |_| Action::Get,
            _ if is_word(word, "SET") && args.left() >= 3 => Action::Set,
            _ if is_word(word, "INCRBY") && args.left() >= 3 => Action::Add,
            _ => return Err(CommandError::Syntax),
        };
        let field = FieldType::parse(args.bytes()?).ok_or(CommandError::fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = bit_offset(args, Some(field), bytes_max)?;
        let value = if action(0) == Action::Get { 0 } else { args.int()? };
        operations.push(FieldOp { field, offset, action: action(value), overflow });
    }
    Ok(operations)
}
