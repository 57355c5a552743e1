//! What each user takes of the server: the handlers of ACL USAGE and ACL RESETUSAGE. What is counted is in
//! `execution::clients::account`.

use execution::acl::User;
use execution::clients::ClientsByAccount;
use execution::clients::account::limits::Limit;
use execution::clients::account::usage::Usage;
use execution::context::ServerCx;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult, shown};
use resp::Reply;
use std::sync::Arc;

/// What each of these users takes, by name. Visits all clients once.
fn usage_of(engine: &Engine, users: &[Arc<User>]) -> Vec<(Vec<u8>, Usage)> {
    let grouped = ClientsByAccount::new(&engine.clients, |_| true);
    let usage = |user: &Arc<User>| (user.name.to_vec(), user.account.usage(grouped.held_bytes(&user.account)));
    users.iter().map(usage).collect()
}

/// What each user takes, by name.
pub fn usage_by_user(engine: &Engine) -> Vec<(Vec<u8>, Usage)> {
    usage_of(engine, &engine.acl.all())
}

pub(super) fn usage(cx: &mut ServerCx<'_>) -> CommandResult {
    let users = named_users(cx)?;
    let usages = usage_of(cx.engine, &users);
    cx.reply.array(usages.len());
    usages.iter().for_each(|(name, usage)| describe(&mut cx.reply, name, usage));
    Ok(())
}

pub(super) fn reset(cx: &mut ServerCx<'_>) -> CommandResult {
    let users = named_users(cx)?;
    users.iter().for_each(|user| user.account.counters.reset());
    cx.reply.ok();
    Ok(())
}

/// The users that are named, or all.
fn named_users(cx: &mut ServerCx<'_>) -> Result<Vec<Arc<User>>, CommandError> {
    let acl = &cx.engine.acl;
    if cx.args.is_empty() {
        return Ok(acl.all());
    }
    let find = |name: &[u8]| {
        let unknown = || CommandError::said(format!("ERR User {} not found", shown(name)));
        acl.find(name).ok_or_else(unknown)
    };
    cx.args.rest().map(find).collect()
}

fn describe(reply: &mut Reply<'_>, name: &[u8], usage: &Usage) {
    let counts = &usage.counts;
    reply.map(10);
    reply.bulk(b"user");
    reply.bulk(name);
    for (name, number) in [
        ("clients", usage.clients),
        ("memory", usage.memory),
        ("ops", counts.operations),
        ("busy-us", counts.busy_ns / 1000),
        ("bytes-in", counts.bytes_in),
        ("bytes-out", counts.bytes_out),
        ("delayed", usage.delays),
        ("delayed-ms", usage.delayed_ms),
    ] {
        field(reply, name, number);
    }
    reply.bulk(b"refused");
    let refusing = [Limit::Clients, Limit::Reply, Limit::Memory];
    reply.map(refusing.len());
    refusing.into_iter().for_each(|limit| field(reply, limit.name(), usage.refused[limit as usize]));
}

fn field(reply: &mut Reply<'_>, name: &str, number: u64) {
    reply.bulk(name.as_bytes());
    reply.integer(number as i64);
}
