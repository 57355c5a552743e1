//! DUMP and RESTORE. The encoding is in `formats`.

use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::restore;
use execution::settings::events::Events;
use execution::view::View;
use formats::Value;
use formats::payload::{self, BadPayload};
use keyspace::storage::entry::{IDLE_MAX_S, used_at};
use keyspace::types::own_type;
use keyspace::types::session;
use keyspace::types::sorted_set::{self, Direction};
use keyspace::usage::counted;
use keyspace::{Cause, Effect, Key, ValueType};
use numbers::parse_i64;
use resp::{Protocol, is_one_reply};

pub(super) fn dump(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let found = payload(&cx.keys, key);
    cx.keys.looked_up(key, found.is_some());
    match found {
        None => cx.reply.null(),
        Some(payload) => cx.reply.bulk(&payload),
    }
    Ok(())
}

/// The payload that DUMP returns for a key.
pub(crate) fn payload(keys: &View<'_>, key: Key<'_>) -> Option<Vec<u8>> {
    if let Some(index) = keys.index_at(key) {
        return Some(payload::encode(
            &sorted_set::to_redis(index.members(0..index.len(), Direction::Ascending)),
            false,
        ));
    }
    let entry = keys.entry(key)?;
    let value = keys.locked().db(keys.db(), key).to_redis(entry, keys.now_ms);
    Some(payload::encode(&value, ValueType::of(entry).is_packed(entry)))
}

pub(super) fn restore(cx: &mut WriteCx<'_>) -> CommandResult {
    let (key, ttl, payload) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let options = Options::take(&mut cx.args)?;
    cx.keys.remove_if_expired(cx.keys.db(), key);
    let exists = cx.keys.view().exists(key);
    if exists && !options.replace {
        return Err(CommandError::fixed("BUSYKEY Target key name already exists."));
    }
    let ttl = parse_i64(ttl).ok_or(CommandError::NotInteger)?;
    let Ok(ttl_ms) = u64::try_from(ttl) else {
        return Err(CommandError::fixed("ERR Invalid TTL value, must be >= 0"));
    };
    let now_ms = cx.keys.now_ms();
    let deadline = match ttl_ms {
        0 => None,
        _ if options.absolute => Some(ttl_ms),
        _ => Some(ttl_ms.saturating_add(now_ms).min(i64::MAX as u64)),
    };
    let value = decode(payload, cx.settings.proto_max_bulk_len() as usize)?;
    if let Value::Own(own) = &value
        && let Some(value_type) = own_type(own)
    {
        pass_name(value_type, key)?;
        if value_type.is_bound && ttl_ms != 0 {
            let name = value_type.name;
            return Err(CommandError::said(format!("ERR a {name} has its TTL in the payload: send 0 as the ttl")));
        }
    }
    if exists {
        cx.keys.replace(&Effect::Delete { key, cause: Cause::Deleted })?;
    }
    // Everything has been checked: from here on the command cannot fail.
    let kept = restore::record(&mut cx.keys, key, &value, deadline, now_ms).key;
    match kept {
        true => cx.keys.notify(Events::GENERIC, "restore", key),
        false if exists => cx.keys.notify(Events::GENERIC, "del", key),
        false => {}
    }
    if kept
        && let Some(used) = options.used(cx.settings.maxmemory_policy().is_lfu(), now_ms)
        && let Some(entry) = cx.keys.view().entry(key)
    {
        entry.touch(used);
    }
    cx.reply.ok();
    Ok(())
}

fn decode(payload: &[u8], bytes_max: usize) -> Result<Value, CommandError> {
    let value = payload::decode(payload, bytes_max).map_err(|why| match why {
        BadPayload::Unsupported(kind) => {
            CommandError::said(format!("ERR RESTORE cannot keep values of type {kind}: not supported"))
        }
        BadPayload::Footer => CommandError::fixed("ERR DUMP payload version or checksum are wrong"),
        BadPayload::Format | BadPayload::TooLarge => BAD_FORMAT,
    })?;
    match &value {
        Value::Own(own) => match own_type(own) {
            Some(value_type) if value_type.is(&session::TYPE) && !session::can_be_restored(&own.image, is_reply) => {
                Err(BAD_FORMAT)
            }
            Some(_) => Ok(value),
            None => Err(BAD_FORMAT),
        },
        _ => Ok(value),
    }
}

/// True for bytes that can be sent to a client as its reply.
fn is_reply(bytes: &[u8], is_resp3: bool) -> bool {
    is_one_reply(bytes, if is_resp3 { Protocol::Resp3 } else { Protocol::Resp2 })
}

const BAD_FORMAT: CommandError = CommandError::fixed("ERR Bad data format");

/// Refuses a name that no value of this type can have.
pub(super) fn pass_name(value_type: &ValueType, key: Key<'_>) -> CommandResult {
    match (value_type.name_error)(key.name) {
        Some(why) => Err(CommandError::said(format!("ERR {why}"))),
        None => Ok(()),
    }
}

/// Refuses a type whose values are bound to their names.
pub(super) fn pass_free(value_type: &ValueType) -> CommandResult {
    match value_type.is_bound {
        true => Err(CommandError::said(format!(
            "ERR a {0} stays under its name and has a TTL of its own, so it cannot be renamed, copied, moved or given a \
             deadline: use the commands of the {0}, or DUMP and RESTORE it under another name",
            value_type.name
        ))),
        false => Ok(()),
    }
}

/// Like [`pass_free`], for the value at a key.
pub(super) fn pass_free_key(keys: &View<'_>, key: Key<'_>) -> CommandResult {
    keys.entry(key).map_or(Ok(()), |entry| pass_free(ValueType::of(entry)))
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    /// The time is a deadline, not a duration.
    absolute: bool,
    /// How long ago the key was last used.
    idle_s: Option<u32>,
    /// How often it was used.
    frequency: Option<u8>,
}

impl Options {
    /// The key's use (IDLETIME, FREQ) from the options, in the form that is stored now.
    fn used(&self, by_frequency: bool, now_ms: u64) -> Option<u32> {
        match by_frequency {
            true => self.frequency.map(|frequency| counted(frequency, now_ms)),
            false => self.idle_s.map(|idle_s| used_at(now_ms.saturating_sub(u64::from(idle_s) * 1000))),
        }
    }

    fn take(args: &mut Args<'_>) -> Result<Options, CommandError> {
        let mut options = Options::default();
        while let Some(word) = args.try_next() {
            if is_word(word, "REPLACE") {
                options.replace = true;
            } else if is_word(word, "ABSTTL") {
                options.absolute = true;
            } else if is_word(word, "IDLETIME") && options.frequency.is_none() {
                let refusal = CommandError::fixed("ERR Invalid IDLETIME value, must be >= 0");
                let idle_s = u64::try_from(args.int()?).map_err(|_| refusal)?;
                options.idle_s = Some(idle_s.min(u64::from(IDLE_MAX_S)) as u32);
            } else if is_word(word, "FREQ") && options.idle_s.is_none() {
                let refusal = CommandError::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255");
                options.frequency = Some(u8::try_from(args.int()?).map_err(|_| refusal)?);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}
