//! Users and their rights: the handlers of ACL, but for files. What a rule means is in `execution::acl::rules`.

use execution::acl::command_set::{find_category, rows_of};
use execution::acl::log::Entry;
use execution::acl::selector::Selector;
use execution::acl::user::DEFAULT_USER;
use execution::acl::{Rights, User, check, rules};
use execution::args::is_word;
use execution::clients::{ClientHandle, Unblock};
use execution::command::{ACL_CATEGORIES, registry};
use execution::context::{After, ServerCx};
use execution::default_clients;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use numbers::parse_i64;
use resp::{OwnedRequest, Reply};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The default number of entries of ACL LOG.
const LOG_COUNT: usize = 10;

pub(super) fn whoami(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.client.user.as_ref().map_or(DEFAULT_USER.as_bytes(), |user| &user.name);
    cx.reply.bulk(name);
    Ok(())
}

pub(super) fn users(cx: &mut ServerCx<'_>) -> CommandResult {
    let all = cx.engine.acl.all();
    cx.reply.array(all.len());
    all.iter().for_each(|user| cx.reply.bulk(&user.name));
    Ok(())
}

/// `user bob on …`, as in a file.
pub(super) fn line(user: &User) -> Vec<u8> {
    [b"user ", &*user.name, b" ", &rules::shown_rights(&user.rights())].concat()
}

pub(super) fn list(cx: &mut ServerCx<'_>) -> CommandResult {
    let all = cx.engine.acl.all();
    cx.reply.array(all.len());
    all.iter().for_each(|user| cx.reply.bulk(&line(user)));
    Ok(())
}

pub(super) fn getuser(cx: &mut ServerCx<'_>) -> CommandResult {
    let Some(user) = cx.engine.acl.find(cx.args.bytes()?) else {
        cx.reply.null();
        return Ok(());
    };
    let rights = user.rights();
    let reply = &mut cx.reply;
    reply.map(8);
    reply.bulk(b"flags");
    let mut flags = vec![if rights.is_on { "on" } else { "off" }];
    if rights.no_password {
        flags.push("nopass");
    }
    flags.push(if rights.sanitizes { "sanitize-payload" } else { "skip-sanitize-payload" });
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.bulk(flag.as_bytes()));
    reply.bulk(b"passwords");
    reply.array(rights.passwords.len());
    rights.passwords.iter().for_each(|hash| reply.bulk(rules::shown_hash(hash).as_bytes()));
    describe(reply, &rights.selectors[0]);
    reply.bulk(b"selectors");
    reply.array(rights.selectors.len() - 1);
    for selector in &rights.selectors[1..] {
        reply.map(4);
        describe(reply, selector);
    }
    reply.bulk(b"limits");
    reply.bulk(rules::shown_limits(&rights.limits).as_bytes());
    Ok(())
}

fn describe(reply: &mut Reply<'_>, selector: &Selector) {
    reply.bulk(b"commands");
    reply.bulk(&rules::shown_commands(selector));
    reply.bulk(b"keys");
    reply.bulk(&rules::shown_keys(selector));
    reply.bulk(b"channels");
    reply.bulk(&rules::shown_channels(selector));
    reply.bulk(b"databases");
    reply.bulk(rules::shown_databases(selector).as_bytes());
}

pub(super) fn setuser(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.args.bytes()?;
    // Passwords are among the rules.
    cx.worker.secrets.extend(3..cx.args.request().len());
    if !rules::is_name(name) {
        return Err(CommandError::fixed("ERR Usernames can't contain spaces or null characters"));
    }
    let given: Vec<&[u8]> = cx.args.rest().collect();
    let joined = rules::join_selectors(&given).map_err(|open| {
        let open = String::from_utf8_lossy(&open).into_owned();
        CommandError::said(format!("ERR Unmatched parenthesis in acl selector starting at '{open}'."))
    })?;
    let engine = cx.engine;
    let before = engine.acl.find(name).map(|user| user.rights().as_ref().clone());
    let user = engine.acl.set(name, &joined, engine.settings.acl_pubsub_default()).map_err(|bad| {
        let rule = String::from_utf8_lossy(&bad.rule).into_owned();
        CommandError::said(format!("ERR Error in ACL SETUSER modifier '{rule}': {}", bad.why))
    })?;
    let limits = before.as_ref().map(|before| before.limits);
    if before.is_some_and(|before| !covers(&user.rights(), &before)) {
        follow_change(engine, &user, false);
    }
    if limits.is_some_and(|limits| limits != user.rights().limits) {
        let of_user = engine.clients.all().into_iter().filter(|handle| handle.is_of(&user.account));
        of_user.for_each(|handle| handle.wake());
    }
    default_clients::count(engine);
    cx.reply.ok();
    Ok(())
}

pub(super) fn deluser(cx: &mut ServerCx<'_>) -> CommandResult {
    let names: Vec<&[u8]> = cx.args.rest().collect();
    let mut removed = 0;
    for name in names {
        if name == DEFAULT_USER.as_bytes() {
            return Err(CommandError::fixed("ERR The 'default' user cannot be removed"));
        }
        let Some(user) = cx.engine.acl.remove(name) else { continue };
        removed += 1;
        follow_change(cx.engine, &user, true);
        if cx.client.user.as_ref().is_some_and(|own| Arc::ptr_eq(own, &user)) {
            cx.after = After::Close;
        }
    }
    cx.reply.integer(removed);
    Ok(())
}

/// True when rights allow all that others do, as far as their rules show it. IMPORTANT: a user may have thousands of
/// patterns and selectors, so that none is compared with all.
fn covers(rights: &Rights, others: &Rights) -> bool {
    let known: HashSet<(u8, &[u8])> =
        rights.selectors[0].keys.iter().map(|key| (key.right.bits(), &*key.text)).collect();
    let listened: HashSet<&[u8]> = rights.selectors[0].channels.iter().map(|channel| &*channel.text).collect();
    let (own, other) = (&rights.selectors[0], &others.selectors[0]);
    let has_keys = || other.keys.iter().all(|key| known.contains(&(key.right.bits(), &*key.text)));
    let has_channels = || other.channels.iter().all(|channel| listened.contains(&*channel.text));
    let has_databases =
        |own: &Vec<u32>| other.databases.as_ref().is_some_and(|others| others.iter().all(|db| own.contains(db)));
    let covers_own = own.commands.covers(&other.commands)
        && own.first_args == other.first_args
        && own.databases.as_ref().is_none_or(has_databases)
        && (own.all_keys || !other.all_keys && has_keys())
        && (own.all_channels || !other.all_channels && has_channels());
    // A selector stays as it is, or goes with all others.
    let keeps_selectors = others.selectors.len() == 1
        || rights.selectors.len() >= others.selectors.len()
            && rules::shown_selectors(&rights.selectors[1..others.selectors.len()])
                .eq(rules::shown_selectors(&others.selectors[1..]));
    rights.is_on && (rights.is_everything || covers_own && keeps_selectors)
}

/// Takes from the clients of a user what it may have lost: all of them are closed if it is gone, otherwise those that
/// are sent something unasked or are in an interactive transaction; those that wait get an error.
pub(crate) fn follow_change(engine: &Engine, user: &User, is_gone: bool) {
    let is_users = |handle: &ClientHandle| match handle.labels().user {
        name if name.is_empty() => *user.name == *DEFAULT_USER.as_bytes(),
        name => name == user.name,
    };
    for handle in engine.clients.all().into_iter().filter(|handle| is_users(handle)) {
        let listens = handle.is_subscriber()
            || handle.monitoring.load(Relaxed)
            || engine.tracking.of(handle.id).is_some()
            || handle.has_attached.load(Relaxed)
            // What it has written would be committed with rights that it has lost.
            || handle.in_transaction.load(Relaxed);
        if is_gone || listens {
            engine.clients.kill(&handle);
        } else if handle.is_waiting() {
            handle.unblock(Unblock::LostRight);
        }
    }
}

pub(super) fn dryrun(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.args.bytes()?;
    let Some(user) = cx.engine.acl.find(name) else {
        return Err(CommandError::said(format!("ERR User '{}' not found", String::from_utf8_lossy(name))));
    };
    let request: OwnedRequest = cx.args.rest().collect();
    let request = request.as_request();
    let command = request.arg(0);
    let row = registry().find(command);
    let row = match row {
        Some(row) if !row.subcommands.is_empty() && request.len() > 1 => row.subcommand(request.arg(1)),
        row => row,
    };
    let Some(row) = row else {
        return Err(CommandError::said(format!("ERR Command '{}' not found", String::from_utf8_lossy(command))));
    };
    if !row.accepts(request.len()) {
        return Err(row.wrong_arity());
    }
    match check::check(cx.engine, &user.rights(), row, request, cx.client.db) {
        Ok(()) => cx.reply.ok(),
        Err(object) => cx.reply.bulk(object.text(&user.shown_name()).as_bytes()),
    }
    Ok(())
}

pub(super) fn cat(cx: &mut ServerCx<'_>) -> CommandResult {
    let Some(name) = cx.args.try_next() else {
        cx.reply.array(ACL_CATEGORIES.len());
        ACL_CATEGORIES.iter().for_each(|name| cx.reply.bulk(name.as_bytes()));
        return Ok(());
    };
    if !cx.args.is_empty() {
        let given = String::from_utf8_lossy(cx.args.request().arg(1));
        return Err(CommandError::said(format!(
            "ERR unknown subcommand or wrong number of arguments for '{given}'. Try ACL HELP."
        )));
    }
    let Some(category) = find_category(name) else {
        return Err(CommandError::said(format!("ERR Unknown category '{}'", String::from_utf8_lossy(name))));
    };
    let rows: Vec<_> = rows_of(category).collect();
    cx.reply.array(rows.len());
    rows.iter().for_each(|row| cx.reply.bulk(row.full_name.as_bytes()));
    Ok(())
}

pub(super) fn genpass(cx: &mut ServerCx<'_>) -> CommandResult {
    const BITS_MAX: i64 = 4096;
    let bits = match cx.args.try_next() {
        None => 256,
        Some(bits) => parse_i64(bits).filter(|bits| (1..=BITS_MAX).contains(bits)).ok_or(CommandError::fixed(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to 4096",
        ))?,
    };
    cx.args.finish()?;
    let digits = (bits as usize).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    getrandom::fill(&mut random).map_err(|_| CommandError::fixed("ERR the system has no random numbers"))?;
    let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    cx.reply.bulk(&text.as_bytes()[..digits]);
    Ok(())
}

pub(super) fn log(cx: &mut ServerCx<'_>) -> CommandResult {
    let count = match cx.args.try_next() {
        None => LOG_COUNT,
        Some(word) if is_word(word, "RESET") => {
            cx.engine.acl.clear_log();
            cx.reply.ok();
            return Ok(());
        }
        Some(count) => usize::try_from(parse_i64(count).ok_or(CommandError::NotInteger)?).unwrap_or(0),
    };
    cx.args.finish()?;
    let entries = cx.engine.acl.log(count);
    cx.reply.array(entries.len());
    for entry in &entries {
        describe_entry(&mut cx.reply, entry, cx.now_ms);
    }
    Ok(())
}

fn describe_entry(reply: &mut Reply<'_>, entry: &Entry, now_ms: u64) {
    reply.map(10);
    reply.bulk(b"count");
    reply.integer(entry.count as i64);
    for (name, value) in [
        ("reason", entry.reason.name().as_bytes()),
        ("context", entry.context.name().as_bytes()),
        ("object", &entry.object),
        ("username", &entry.user),
    ] {
        reply.bulk(name.as_bytes());
        reply.bulk(value);
    }
    reply.bulk(b"age-seconds");
    reply.double(now_ms.saturating_sub(entry.created_ms) as f64 / 1000.0);
    reply.bulk(b"client-info");
    reply.bulk(entry.client.as_bytes());
    for (name, number) in
        [("entry-id", entry.id), ("timestamp-created", entry.created_ms), ("timestamp-last-updated", entry.updated_ms)]
    {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    }
}
