//! DEBUG: for tests and for inspection. Off unless `enable-debug-command` allows it. It holds every lock, so that it
//! shows one instant of the whole server, and so that DEBUG SLEEP blocks all clients, as in Redis.

use super::config::is_local;
use crate::keys::{dump, object};
use crate::shared::help;
use algorithms::glob;
use execution::args::is_word;
use execution::client_eviction;
use execution::context::WholeServer;
use execution::context::WriteCx;
use execution::engine::random_id;
use execution::error::{CommandError, CommandResult};
use execution::parts::BATCH_BYTES_MAX;
use execution::settings::AllowedFor;
use keyspace::db::Db;
use keyspace::digest::Digest;
use keyspace::storage::entry::idle_s;
use keyspace::types::{Object, string};
use keyspace::{Cause, DATABASES, Effect, Entry, Key, Scalar, Value, ValueType};
use numbers::parse_i64;
use resp::Protocol;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One subcommand. They are not rows of the command table, as in Redis: COMMAND shows only DEBUG itself.
struct Subcommand {
    name: &'static str,
    /// How many arguments may follow its name.
    args: RangeInclusive<usize>,
    run: fn(&mut WriteCx<'_>) -> CommandResult,
}

const fn sub(
    name: &'static str,
    args: RangeInclusive<usize>,
    run: fn(&mut WriteCx<'_>) -> CommandResult,
) -> Subcommand {
    Subcommand { name, args, run }
}

pub(super) fn debug(cx: &mut WriteCx<'_>) -> CommandResult {
    let allowed = match cx.server().settings.enable_debug_command() {
        AllowedFor::All => true,
        AllowedFor::Local => is_local(cx.client),
        AllowedFor::None => false,
    };
    if !allowed {
        return Err(CommandError::fixed(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from \
             a local connection, otherwise you need to set this option in the configuration file, and then restart the \
             server.",
        ));
    }
    let name = cx.args.bytes()?;
    let left = cx.args.left();
    match SUBCOMMANDS.iter().find(|sub| is_word(name, sub.name) && sub.args.contains(&left)) {
        Some(sub) => (sub.run)(cx),
        None => Err(unknown(name)),
    }
}

fn unknown(name: &[u8]) -> CommandError {
    let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
    CommandError::said(format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."))
}

/// Accepts a switch that has no effect here.
fn accept(cx: &mut WriteCx<'_>) -> CommandResult {
    cx.reply.ok();
    Ok(())
}

/// Refuses a subcommand that would end the server or lose memory: clients cannot do that, not even in a test.
fn refuse(_: &mut WriteCx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR this DEBUG subcommand would harm the server: refused"))
}

/// Sets the longest batch of the journal, so that a test need not fill gigabytes.
fn set_batch_bytes_max(cx: &mut WriteCx<'_>) -> CommandResult {
    let max = usize::try_from(cx.args.int()?).unwrap_or(0).min(BATCH_BYTES_MAX);
    cx.server().debug.batch_bytes_max.store(if max == 0 { BATCH_BYTES_MAX } else { max }, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// Panics as a handler with a bug would, before or after it has changed something, to test the consequences.
fn panic_on_purpose(cx: &mut WriteCx<'_>) -> CommandResult {
    match cx.args.bytes()? {
        word if is_word(word, "BEFORE-EFFECT") => {}
        word if is_word(word, "AFTER-EFFECT") => {
            cx.keys.record(&Effect::Delete { key: Key::new(b""), cause: Cause::Deleted });
        }
        _ => return Err(CommandError::Syntax),
    }
    panic!("DEBUG PANIC");
}

fn sleep(cx: &mut WriteCx<'_>) -> CommandResult {
    let seconds = std::str::from_utf8(cx.args.bytes()?).ok().and_then(|text| text.parse().ok());
    // A number that is not a duration counts as 0, as in Redis.
    let span = Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default();
    // IMPORTANT: sleeps with every lock held, as in Redis. No other sleep of the engine holds a lock.
    std::thread::sleep(span);
    cx.reply.ok();
    Ok(())
}

/// A key's entry with its value, even when it has expired.
fn entry<'a>(cx: &'a WriteCx<'_>, key: Key<'_>) -> Result<(&'a Entry, Value<'a>), CommandError> {
    let db = cx.keys.view().locked().db(cx.keys.db(), key);
    let entry = db.entry(key).ok_or(CommandError::NoSuchKey)?;
    Ok((entry, db.value(entry, cx.keys.now_ms())))
}

/// The bytes that DUMP adds to the value itself: its type, the version and the checksum.
const DUMP_FRAME_BYTES: usize = 1 + 2 + 8;

fn object(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (entry, _) = entry(cx, key)?;
    let text = format!(
        "Value at:{:p} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
        entry.name().as_ptr(),
        object::encoding_name(entry),
        dump::payload(cx.keys.view(), key).map_or(0, |payload| payload.len() - DUMP_FRAME_BYTES),
        entry.used_at(),
        idle_s(entry.used_at(), cx.keys.now_ms())
    );
    cx.reply.simple(&text);
    Ok(())
}

fn set_active_expire(cx: &mut WriteCx<'_>) -> CommandResult {
    // As C's atoi reads it: text that is not a number is zero.
    let on = parse_i64(cx.args.bytes()?).unwrap_or(0) != 0;
    cx.server().debug.active_expiry.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

fn set_disable_deny_scripts(cx: &mut WriteCx<'_>) -> CommandResult {
    let on = parse_i64(cx.args.bytes()?).unwrap_or(0) != 0;
    cx.server().debug.scripts_call_anything.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// Rebuilds every key from its image, as a restart from a snapshot would.
fn reload(cx: &mut WriteCx<'_>) -> CommandResult {
    let (mut merge, mut no_flush) = (false, false);
    for word in cx.args.rest() {
        match word {
            word if is_word(word, "MERGE") => merge = true,
            word if is_word(word, "NOFLUSH") => no_flush = true,
            word if is_word(word, "NOSAVE") => {}
            _ => {
                return Err(CommandError::fixed(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let engine = cx.server();
    let failed = |why: &str| {
        tracing::warn!(error = %why, "DEBUG RELOAD failed");
        CommandError::fixed("ERR Error trying to load the RDB dump, check server logs.")
    };
    // The keys that are loaded are those that exist. Without a flush and without MERGE, each of them would exist twice.
    let is_empty = || {
        let has_no_keys =
            cx.keys.view().locked().shards().all(|(_, shard)| (0..DATABASES).all(|db| shard.db(db).is_empty()));
        has_no_keys && engine.scripting.functions.catalogue().library_count() == 0
    };
    if no_flush && !merge && !is_empty() {
        return Err(failed("without a flush and without MERGE, no keys or libraries may exist"));
    }
    cx.keys.remake().map_err(|error| failed(&error.to_string()))?;
    cx.reply.ok();
    Ok(())
}

fn error(cx: &mut WriteCx<'_>) -> CommandResult {
    Err(CommandError::said(String::from_utf8_lossy(cx.args.bytes()?).into_owned()))
}

fn log(cx: &mut WriteCx<'_>) -> CommandResult {
    let message = String::from_utf8_lossy(cx.args.bytes()?);
    tracing::warn!("DEBUG LOG: {message}");
    cx.reply.ok();
    Ok(())
}

/// STRINGMATCH-LEN pattern text
fn stringmatch_len(cx: &mut WriteCx<'_>) -> CommandResult {
    let (pattern, text) = (cx.args.bytes()?, cx.args.bytes()?);
    cx.reply.integer(i64::from(glob::matches(pattern, text, false)));
    Ok(())
}

fn change_repl_id(cx: &mut WriteCx<'_>) -> CommandResult {
    *cx.server().identity.replication_id.lock() = random_id(cx.random);
    cx.reply.ok();
    Ok(())
}

/// HTSTATS db [full]
fn htstats(cx: &mut WriteCx<'_>) -> CommandResult {
    let index = usize::try_from(cx.args.int()?).ok().filter(|index| *index < DATABASES);
    let index = index.ok_or(CommandError::fixed("ERR Out of range database"))?;
    let (mut keys, mut deadlines) = (0, 0);
    for (_, shard) in cx.keys.view().locked().shards() {
        keys += shard.db(index).len();
        deadlines += shard.db(index).with_deadline();
    }
    let text = format!("[Dictionary HT]\n{}[Expires HT]\n{}", table_text(keys), table_text(deadlines));
    cx.reply.verbatim(&text);
    Ok(())
}

/// HTSTATS-KEY key [full]
fn htstats_key(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (entry, _) = entry(cx, key)?;
    if !matches!((ValueType::of(entry).encoding)(entry), "hashtable" | "skiplist") {
        return Err(CommandError::fixed(
            "ERR The value stored at the specified key is not represented using an hash table",
        ));
    }
    let text = table_text(cx.keys.view().locked().db(cx.keys.db(), key).elements(entry));
    cx.reply.verbatim(&text);
    Ok(())
}

fn table_text(elements: usize) -> String {
    match elements {
        0 => "Hash table 0 stats (main hash table):\nNo stats available for empty dictionaries\n".to_owned(),
        _ => format!("Hash table 0 stats (main hash table):\n number of elements: {elements}\n"),
    }
}

/// POPULATE count [prefix] [size]
fn populate(cx: &mut WriteCx<'_>) -> CommandResult {
    let positive = |text: &[u8]| {
        let number = parse_i64(text).and_then(|number| usize::try_from(number).ok());
        number.ok_or(CommandError::fixed("ERR value is out of range, must be positive"))
    };
    let count = positive(cx.args.bytes()?)?;
    let prefix = cx.args.try_next().unwrap_or(b"key");
    let size = positive(cx.args.try_next().unwrap_or(b"0"))?;
    if size as u64 > cx.server().settings.proto_max_bulk_len() {
        return Err(CommandError::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    let bytes = count.saturating_mul(size.saturating_add(prefix.len() + 32));
    if bytes > cx.server().debug.batch_bytes_max.load(Relaxed) {
        return Err(CommandError::fixed("ERR so many keys would be larger than one batch of the journal can be"));
    }
    for number in 0..count {
        let name = [prefix, format!(":{number}").as_bytes()].concat();
        let key = Key::new(&name);
        cx.keys.remove_if_expired(cx.keys.db(), key);
        if cx.keys.view().exists(key) {
            continue;
        }
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        cx.keys.record(&Effect::change(key, string::Change::Set { value: Scalar::of(&value), deadline: None }));
    }
    cx.reply.ok();
    Ok(())
}

fn digest(cx: &mut WriteCx<'_>) -> CommandResult {
    let (locked, now_ms) = (cx.keys.view().locked(), cx.keys.now_ms());
    let mut all = Digest::default();
    for index in 0..DATABASES {
        let dbs = || locked.shards().map(|(_, shard)| shard.db(index));
        if dbs().all(Db::is_empty) {
            continue;
        }
        all.mix(&(index as u32).to_be_bytes());
        for db in dbs() {
            for entry in db.iter(now_ms) {
                let mut digest = Digest::default();
                digest.mix(entry.name());
                db.digest(entry, now_ms, &mut digest);
                all.add(digest.bytes());
            }
        }
    }
    cx.reply.simple(&all.hex());
    Ok(())
}

fn digest_value(cx: &mut WriteCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    while !cx.args.is_empty() {
        let key = cx.args.key()?;
        let mut digest = Digest::default();
        if let Ok((entry, _)) = entry(cx, key) {
            cx.keys.view().locked().db(cx.keys.db(), key).digest(entry, cx.keys.now_ms(), &mut digest);
        }
        cx.reply.simple(&digest.hex());
    }
    Ok(())
}

#[expect(clippy::approx_constant, reason = "the number is Redis's")]
fn protocol(cx: &mut WriteCx<'_>) -> CommandResult {
    let resp3 = cx.reply.protocol() == Protocol::Resp3;
    let reply = &mut cx.reply;
    match cx.args.bytes()?.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(3.141),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if resp3 {
                reply.raw(b"|1\r\n");
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !resp3 => return Err(CommandError::fixed("ERR RESP2 is not supported by this command")),
        b"push" => {
            // Since Redis 7.2 a push message that a command causes follows the command's own reply.
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.verbatim("This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        b"bignum" if resp3 => reply.raw(b"(1234567999999999999999999999999999999\r\n"),
        b"bignum" => reply.bulk(b"1234567999999999999999999999999999999"),
        _ => {
            return Err(CommandError::fixed(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

/// REPLYBUFFER PEAK-RESET-TIME time | RESIZING on
fn replybuffer(cx: &mut WriteCx<'_>) -> CommandResult {
    let (option, value) = (cx.args.bytes()?, cx.args.bytes()?);
    if is_word(option, "PEAK-RESET-TIME") {
        let named = is_word(value, "NEVER") || is_word(value, "RESET");
        if !named && parse_i64(value).is_none() {
            return Err(CommandError::NotInteger);
        }
    } else if !is_word(option, "RESIZING") {
        return Err(unknown(b"REPLYBUFFER"));
    }
    cx.reply.ok();
    Ok(())
}

/// Has no effect, since lists here have no quicklist nodes. Refuses an invalid size.
fn quicklist_packed_threshold(cx: &mut WriteCx<'_>) -> CommandResult {
    if !cx.args.bytes()?.first().is_some_and(u8::is_ascii_digit) {
        return Err(CommandError::fixed("ERR argument must be a memory value bigger than 1 and smaller than 4gb"));
    }
    cx.reply.ok();
    Ok(())
}

fn listpack(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (entry, _) = entry(cx, key)?;
    if !(ValueType::of(entry).encoding)(entry).starts_with("listpack") {
        return Err(CommandError::fixed("ERR Not a listpack encoded object."));
    }
    let elements = cx.keys.view().locked().db(cx.keys.db(), key).elements(entry);
    tracing::info!(elements, packed_bytes = entry.body().len(), "DEBUG LISTPACK");
    cx.reply.simple("Listpack structure printed on stdout");
    Ok(())
}

fn quicklist(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    entry(cx, key)?;
    Err(CommandError::fixed("ERR Not a quicklist encoded object."))
}

fn sdslen(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let (entry, value) = entry(cx, key)?;
    let Value::String(Scalar::Bytes(bytes)) = value else {
        return Err(CommandError::fixed("ERR Not an sds encoded string."));
    };
    // A short string is in one allocation with its key; a long one has its own, with room to grow.
    let (spare, allocated) = match entry.object() {
        Some(Object::Bytes(bytes)) => (bytes.capacity() - bytes.len(), bytes.capacity()),
        _ => (0, entry.heap_bytes()),
    };
    let text = format!(
        "key_sds_len:{}, key_sds_avail:0, key_zmalloc: {}, val_sds_len:{}, val_sds_avail:{spare}, val_zmalloc: {allocated}",
        entry.name().len(),
        entry.heap_bytes(),
        bytes.len(),
    );
    cx.reply.simple(&text);
    Ok(())
}

fn structsize(cx: &mut WriteCx<'_>) -> CommandResult {
    let text = format!("bits:{} entry:{} object:{} ", usize::BITS, size_of::<Entry>(), size_of::<Object>());
    cx.reply.verbatim(&text);
    Ok(())
}

fn stringmatch_test(cx: &mut WriteCx<'_>) -> CommandResult {
    cx.reply.simple("Apparently Redis did not crash: test passed");
    Ok(())
}

fn client_eviction(cx: &mut WriteCx<'_>) -> CommandResult {
    let sizes =
        client_eviction::client_sizes(cx.server()).ok_or(CommandError::fixed("ERR maxmemory-clients is disabled."))?;
    cx.reply.verbatim(&sizes);
    Ok(())
}

fn clusterlink(_: &mut WriteCx<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR Debug option only available for cluster mode enabled setup!"))
}

fn help(cx: &mut WriteCx<'_>) -> CommandResult {
    help::reply(&mut cx.reply, "DEBUG", HELP);
    Ok(())
}

const HELP: &[&str] = &[
    "CHANGE-REPL-ID",
    "    Change the replication IDs of the instance.",
    "DIGEST",
    "    Output a hex signature representing the current DB content.",
    "DIGEST-VALUE <key> [<key> ...]",
    "    Output a hex signature of the values of all the specified keys.",
    "ERROR <string>",
    "    Return a Redis protocol error with <string> as message.",
    "HTSTATS <dbid> [full]",
    "    Return how many keys the specified database has, and how many with a deadline.",
    "HTSTATS-KEY <key> [full]",
    "    Like HTSTATS but for the hash table stored at <key>'s value.",
    "LISTPACK <key>",
    "    Write the size of the packed hash or sorted set at <key> to the server log.",
    "LOG <message>",
    "    Write <message> to the server log.",
    "OBJECT <key>",
    "    Show low level info about `key` and associated value.",
    "POPULATE <count> [<prefix>] [<size>]",
    "    Create <count> string keys named key:<num>. If <prefix> is specified then",
    "    it is used instead of the 'key' prefix.",
    "PROTOCOL <type>",
    "    Reply with a test value of the specified type. <type> can be: string,",
    "    integer, double, bignum, null, array, set, map, attrib, push, verbatim,",
    "    true, false.",
    "RELOAD [option ...]",
    "    Check that every value can be written and read back. Data stays as it is.",
    "SDSLEN <key>",
    "    Show the lengths of <key> and of the string stored at it.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Setting it to 0 disables expiring keys (and hash-fields) in background",
    "    when they are not accessed. Setting it to 1 reenables it.",
    "SLEEP <seconds>",
    "    Stop the server for <seconds>. Decimals allowed.",
    "STRINGMATCH-LEN <pattern> <string>",
    "    Tell whether the glob-style <pattern> matches <string>.",
    "STRUCTSIZE",
    "    Return the size of different core structures.",
];

const SUBCOMMANDS: &[Subcommand] = &[
    sub("aof-flush-sleep", 1..=1, accept),
    sub("assert", 0..=0, refuse),
    sub("change-repl-id", 0..=0, change_repl_id),
    sub("client-eviction", 0..=0, client_eviction),
    sub("clusterlink", 3..=3, clusterlink),
    sub("crash-and-recover", 0..=1, refuse),
    sub("delay-rdb-client-free-second", 1..=1, accept),
    sub("dict-resizing", 1..=1, accept),
    sub("digest", 0..=0, digest),
    sub("digest-value", 0..=usize::MAX, digest_value),
    sub("drop-cluster-packet-filter", 1..=1, accept),
    sub("error", 1..=1, error),
    sub("help", 0..=0, help),
    sub("htstats", 1..=2, htstats),
    sub("htstats-key", 1..=2, htstats_key),
    sub("jmap", 0..=0, accept),
    sub("leak", 1..=1, refuse),
    sub("listpack", 1..=1, listpack),
    sub("loadaof", 0..=0, reload),
    sub("log", 1..=1, log),
    sub("object", 1..=1, object),
    sub("oom", 0..=0, refuse),
    sub("set-batch-bytes-max", 1..=1, set_batch_bytes_max),
    sub("panic", 0..=0, refuse),
    sub("panic", 1..=1, panic_on_purpose),
    sub("pause-cron", 1..=1, accept),
    sub("populate", 1..=3, populate),
    sub("protocol", 1..=1, protocol),
    sub("quicklist", 1..=2, quicklist),
    sub("quicklist-packed-threshold", 1..=1, quicklist_packed_threshold),
    sub("reload", 0..=usize::MAX, reload),
    sub("repl-pause", 1..=1, accept),
    sub("replicate", 1..=usize::MAX, accept),
    sub("replybuffer", 2..=2, replybuffer),
    sub("restart", 0..=1, refuse),
    sub("sdslen", 1..=1, sdslen),
    sub("segfault", 0..=0, refuse),
    sub("set-active-expire", 1..=1, set_active_expire),
    sub("set-disable-deny-scripts", 1..=1, set_disable_deny_scripts),
    sub("set-skip-checksum-validation", 1..=1, accept),
    sub("sleep", 1..=1, sleep),
    sub("stringmatch-len", 2..=2, stringmatch_len),
    sub("stringmatch-test", 0..=0, stringmatch_test),
    sub("structsize", 0..=0, structsize),
];
