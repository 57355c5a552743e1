//! CONFIG: the server's settings. What a setting accepts is in `settings`.

use execution::acl::user::DEFAULT_USER;
use execution::acl::{Rights, rules};
use execution::args::is_word;
use execution::client::Client;
use execution::context::{After, ServerCx};
use execution::default_clients;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::persistence::journal_state::JournalState;
use execution::settings::{Origin, Settings};
use execution::waiting::{Blocked, Event};
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;

pub(super) fn get(cx: &mut ServerCx<'_>) -> CommandResult {
    let patterns: Vec<&[u8]> = cx.args.rest().collect();
    let mut found = Vec::new();
    cx.engine.settings.get(&patterns, &mut found);
    cx.reply.map(found.len());
    for (name, value) in &found {
        cx.reply.bulk(name.as_bytes());
        cx.reply.bulk(value.as_bytes());
    }
    Ok(())
}

pub(super) fn set(cx: &mut ServerCx<'_>) -> CommandResult {
    if !cx.args.left().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let mut pairs = Vec::with_capacity(cx.args.left() / 2);
    while let (Some(name), Some(value)) = (cx.args.try_next(), cx.args.try_next()) {
        if Settings::find(name).is_some_and(|row| row.sensitive) {
            cx.worker.secrets.push(cx.args.request().len() - cx.args.left() - 1);
        }
        pairs.push((name, value));
    }
    let origin = if is_local(cx.client) { Origin::Local } else { Origin::Remote };
    let follow = |names: &[&'static str]| cx.engine.host.follow_settings(names);
    cx.engine.settings.set_and_follow(origin, &pairs, follow).map_err(CommandError::said)?;
    // Even settings whose value is unchanged: `appendonly yes`, set again, restarts a failed journal.
    for row in pairs.iter().filter_map(|(name, _)| Settings::find(name)) {
        cx.engine.host.setting_changed(row.name);
        if row.name == "requirepass" {
            cx.engine.acl.set_default_password(cx.engine.settings.requirepass().as_bytes());
            default_clients::count(cx.engine);
        }
    }
    // `appendonly yes` is answered when the first snapshot of the journal is durable. That may have failed already.
    let is_not_yet_on =
        !matches!(cx.engine.persistence.state(), JournalState::Off | JournalState::Sound | JournalState::Closing);
    if is_not_yet_on && pairs.iter().any(|(name, _)| is_word(name, "appendonly")) {
        cx.after = After::Block(Blocked { until_ms: None, event: Event::Journal, silent: false });
        return Ok(());
    }
    cx.reply.ok();
    Ok(())
}

/// The users that belong into the configuration: none if they have a file of their own, and not the default user as a
/// new server has it.
fn users_to_keep(engine: &Engine) -> Result<Vec<(String, String)>, CommandError> {
    const NOT_UTF8: CommandError = CommandError::fixed(
        "ERR the configuration file holds UTF-8 alone, and a user has another name or pattern: keep users in an aclfile",
    );
    if !engine.settings.aclfile().is_empty() {
        return Ok(Vec::new());
    }
    let mut usual = Rights::everything();
    usual.set_password(engine.settings.requirepass().as_bytes());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| NOT_UTF8);
    let usual = (DEFAULT_USER.to_owned(), text(rules::shown_rights(&usual))?);
    let all = engine.acl.all().into_iter();
    let all = all.map(|user| Ok((text(user.name.to_vec())?, text(rules::shown_rights(&user.rights()))?)));
    all.filter(|kept| kept.as_ref().is_ok_and(|kept| *kept != usual) || kept.is_err()).collect()
}

/// True when the client is on this machine.
pub(super) fn is_local(client: &Client) -> bool {
    let address: Result<SocketAddr, _> = client.handle.address.parse();
    address.is_ok_and(|address| address.ip().to_canonical().is_loopback())
}

pub(super) fn resetstat(cx: &mut ServerCx<'_>) -> CommandResult {
    for metrics in cx.engine.statistics.workers() {
        metrics.stats.reset();
        metrics.histograms.reset(None);
    }
    cx.engine.clients.reset_totals();
    cx.engine.acl.all().iter().for_each(|user| user.account.counters.reset());
    cx.engine.transactions.reset();
    cx.engine.sessions.reset_failures();
    cx.engine.eviction.reset();
    cx.engine.statistics.sampler.reset();
    cx.engine.statistics.since_ms.store(cx.now_ms, Relaxed);
    cx.reply.ok();
    Ok(())
}

pub(super) fn rewrite(cx: &mut ServerCx<'_>) -> CommandResult {
    let host = &cx.engine.host;
    if host.config_file().is_empty() {
        return Err(CommandError::fixed("ERR The server is running without a config file"));
    }
    host.rewrite_config(&cx.engine.settings.all(), &users_to_keep(cx.engine)?)
        .map_err(|error| CommandError::said(format!("ERR {error}")))?;
    cx.reply.ok();
    Ok(())
}
