//! CLIENT: names, lists, limits and closes connections.

use super::basic::{is_label, set_name, valid_name};
use super::client_filter::{Filter, is_filter};
use super::client_line::{describe, shown};
use execution::args::{Args, is_word};
use execution::client::ReplyMode;
use execution::clients::pause::PauseMode;
use execution::clients::{ClientHandle, Unblock};
use execution::context::{After, ServerCx};
use execution::error::{self, CommandError, CommandResult};
use execution::settings::AppendFsync;
use numbers::parse_i64;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn id(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(cx.client.id() as i64);
    Ok(())
}

pub(super) fn getname(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.client.handle.name();
    if name.is_empty() {
        cx.reply.null()
    } else {
        cx.reply.bulk(&name)
    }
    Ok(())
}

pub(super) fn setname(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = valid_name(cx.args.bytes()?)?;
    set_name(cx.client, name);
    cx.reply.ok();
    Ok(())
}

pub(super) fn setinfo(cx: &mut ServerCx<'_>) -> CommandResult {
    let (option, value) = (cx.args.bytes()?, cx.args.bytes()?);
    let (is_name, is_version) = (is_word(option, "LIB-NAME"), is_word(option, "LIB-VER"));
    if !is_name && !is_version {
        return Err(CommandError::said(format!("ERR Unrecognized option '{}'", shown(option))));
    }
    if !is_label(value) {
        let option = shown(option);
        return Err(CommandError::said(format!("ERR {option} cannot contain spaces, newlines or special characters.")));
    }
    cx.client.handle.set_labels(|labels| match is_name {
        true => labels.library = value.into(),
        false => labels.library_version = value.into(),
    });
    cx.reply.ok();
    Ok(())
}

/// CLIENT DURABILITY: `appendfsync` for this connection only.
pub(super) fn durability(cx: &mut ServerCx<'_>) -> CommandResult {
    let word = cx.args.bytes()?;
    let policies = [
        ("ALWAYS", Some(AppendFsync::Always)),
        ("EVERYSEC", Some(AppendFsync::Everysec)),
        ("NO", Some(AppendFsync::No)),
        ("DEFAULT", None),
    ];
    let Some((_, policy)) = policies.iter().find(|(name, _)| is_word(word, name)) else {
        let word = error::shown(word);
        return Err(CommandError::said(format!(
            "ERR {word} is no durability: use ALWAYS, EVERYSEC, NO, or DEFAULT for what appendfsync says"
        )));
    };
    if *policy == Some(AppendFsync::Always) && cx.engine.restrictions.is_following() {
        // Perhaps it was the writer when the client connected: the client looks for the new one.
        cx.engine.restrictions.pass_write()?;
    }
    if *policy == Some(AppendFsync::Always) && !cx.engine.persistence.state().promises_durability() {
        return Err(CommandError::fixed("ERR there is no journal to write to: CONFIG SET appendonly yes first"));
    }
    if *policy == Some(AppendFsync::Always) && cx.engine.persistence.state().hides_unpersisted() {
        cx.engine.restrictions.pass_write()?;
    }
    cx.client.durability = *policy;
    cx.reply.ok();
    Ok(())
}

pub(super) fn list(cx: &mut ServerCx<'_>) -> CommandResult {
    let listed = match ids_alone(cx.args) {
        Some(ids) => {
            let ids = ids.ok_or(CommandError::fixed("ERR Invalid client ID"))?;
            ids.iter().filter_map(|id| cx.engine.clients.get(u64::try_from(*id).ok()?)).collect()
        }
        None => {
            let filter = Filter::parse(cx.engine, &mut cx.args)?;
            let (me, skip_me) = (cx.client.id(), filter.skip_me.unwrap_or(false));
            let mut all = cx.engine.clients.all();
            all.retain(|handle| !(skip_me && handle.id == me) && filter.passes(cx.engine, handle, cx.now_ms));
            all
        }
    };
    let mut text = String::new();
    for handle in listed {
        describe(cx.engine, &handle, cx.now_ms, &mut text);
    }
    cx.reply.verbatim(&text);
    Ok(())
}

/// The ids of CLIENT LIST ID without other filters, as in Redis: they are listed in the given order, and each has to be
/// a number. `None` if there is another filter.
fn ids_alone(mut args: Args<'_>) -> Option<Option<Vec<i64>>> {
    if !args.take_word("ID") || args.is_empty() {
        return None;
    }
    let ids: Vec<&[u8]> = args.rest().collect();
    let has_filter = ids.iter().any(|word| is_filter(word));
    (!has_filter).then(|| ids.iter().map(|id| parse_i64(id)).collect())
}

pub(super) fn info(cx: &mut ServerCx<'_>) -> CommandResult {
    let mut text = String::new();
    describe(cx.engine, &cx.client.handle, cx.now_ms, &mut text);
    cx.reply.verbatim(&text);
    Ok(())
}

fn yes_or_no(word: &[u8], yes: &str, no: &str) -> Result<bool, CommandError> {
    match is_word(word, yes) {
        true => Ok(true),
        false if is_word(word, no) => Ok(false),
        false => Err(CommandError::Syntax),
    }
}

pub(super) fn kill(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 1 {
        let filter = Filter::parse(cx.engine, &mut cx.args)?;
        let engine = cx.engine;
        let passes = |handle: &ClientHandle, now_ms| filter.passes(engine, handle, now_ms);
        let killed = kill_all(cx, passes, filter.skip_me.unwrap_or(true));
        cx.reply.integer(killed as i64);
        return Ok(());
    }
    // The old form: an address, which may be that of the caller.
    let address = cx.args.bytes()?;
    if kill_all(cx, |handle, _| handle.address.as_bytes() == address, false) == 0 {
        return Err(CommandError::fixed("ERR No such client"));
    }
    cx.reply.ok();
    Ok(())
}

/// Closes all clients for which `chosen` is true; the caller's own connection only after the reply.
fn kill_all(cx: &mut ServerCx<'_>, chosen: impl Fn(&ClientHandle, u64) -> bool, skip_me: bool) -> usize {
    let mut killed = 0;
    for handle in cx.engine.clients.all() {
        let is_me = handle.id == cx.client.id();
        if is_me && skip_me || !chosen(&handle, cx.now_ms) {
            continue;
        }
        killed += 1;
        match is_me {
            true => cx.after = After::Close,
            false => cx.engine.clients.kill(&handle),
        }
    }
    killed
}

pub(super) fn pause(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 2 {
        return Err(wrong_arguments(cx));
    }
    let (timeout_ms, mode) = (cx.args.bytes()?, cx.args.try_next());
    let mode = match mode {
        None => PauseMode::All,
        Some(mode) if is_word(mode, "ALL") => PauseMode::All,
        Some(mode) if is_word(mode, "WRITE") => PauseMode::Writes,
        Some(_) => return Err(CommandError::fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
    };
    let timeout_ms =
        parse_i64(timeout_ms).ok_or(CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout_ms = u64::try_from(timeout_ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))?;
    // As in Redis, whose pauses end at a point in unix time.
    if i64::try_from(cx.now_ms + timeout_ms).is_err() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    let now_ms = cx.worker.monotonic_ms();
    cx.engine.pause.begin(now_ms, now_ms + timeout_ms, mode);
    cx.reply.ok();
    Ok(())
}

pub(super) fn unpause(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.pause.end();
    cx.reply.ok();
    Ok(())
}

/// The error for too many arguments of a subcommand with one optional last argument, which an arity cannot express.
fn wrong_arguments(cx: &ServerCx<'_>) -> CommandError {
    let subcommand = shown(cx.args.request().arg(1));
    CommandError::said(format!(
        "ERR unknown subcommand or wrong number of arguments for '{subcommand}'. Try CLIENT HELP."
    ))
}

pub(super) fn no_evict(cx: &mut ServerCx<'_>) -> CommandResult {
    let on = yes_or_no(cx.args.bytes()?, "ON", "OFF")?;
    cx.client.no_evict = on;
    cx.client.handle.no_evict.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

pub(super) fn no_touch(cx: &mut ServerCx<'_>) -> CommandResult {
    let on = yes_or_no(cx.args.bytes()?, "ON", "OFF")?;
    cx.client.no_touch = on;
    cx.client.handle.no_touch.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// CLIENT IMPORT-SOURCE, as in Valkey 8.1.
pub(super) fn import_source(cx: &mut ServerCx<'_>) -> CommandResult {
    if !cx.engine.settings.import_mode() {
        return Err(CommandError::fixed("ERR Server is not in import mode"));
    }
    let on = yes_or_no(cx.args.bytes()?, "ON", "OFF")?;
    cx.client.is_import_source = on;
    cx.client.handle.is_import_source.store(on, Relaxed);
    cx.reply.ok();
    Ok(())
}

/// CLIENT REPLY. OFF and SKIP themselves get no reply.
pub(super) fn reply(cx: &mut ServerCx<'_>) -> CommandResult {
    let mode = cx.args.bytes()?;
    if is_word(mode, "ON") {
        cx.client.reply_mode = ReplyMode::On;
        cx.reply.ok();
    } else if is_word(mode, "OFF") {
        cx.client.reply_mode = ReplyMode::Off;
    } else if is_word(mode, "SKIP") {
        if cx.client.reply_mode != ReplyMode::Off {
            cx.client.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

pub(super) fn unblock(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 2 {
        return Err(wrong_arguments(cx));
    }
    let (id, how) = (cx.args.bytes()?, cx.args.try_next());
    let how = match how {
        None => Unblock::Timeout,
        Some(how) if is_word(how, "TIMEOUT") => Unblock::Timeout,
        Some(how) if is_word(how, "ERROR") => Unblock::Error,
        Some(_) => return Err(CommandError::fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")),
    };
    let id = parse_i64(id).ok_or(CommandError::NotInteger)?;
    let handle = u64::try_from(id).ok().and_then(|id| cx.engine.clients.get(id));
    cx.reply.integer(i64::from(handle.is_some_and(|handle| handle.unblock(how))));
    Ok(())
}
