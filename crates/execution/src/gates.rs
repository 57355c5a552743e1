//! The gates: checks that every command passes before it runs. Knows reasons to refuse; refuses to know what a command
//! does.

use crate::acl;
use crate::client::Client;
use crate::command::{CommandRow, Flags, registry};
use crate::conditions;
use crate::denied::Denied;
use crate::engine::Engine;
use crate::error::{CommandError, CommandResult};
use crate::eviction;
use crate::persistence::Role;
use crate::worker::Worker;
use resp::{OwnedRequest, Request};
use std::sync::atomic::Ordering::Relaxed;

/// Sets whether data is loading. Meanwhile only commands that do not need it pass. Other commands wait, and are refused
/// when loading takes long.
pub fn set_loading(engine: &Engine, loading: bool) {
    engine.restrictions.set_loading(loading);
    engine.pause.wake_held();
}

/// Sets whether data is being read, which may take long.
pub fn set_reading(engine: &Engine, reading: bool) {
    if reading && engine.restrictions.held_until_ms() != u64::MAX {
        // It is tried again: clients have waited since the first time.
        return;
    }
    engine.restrictions.set_reading(reading.then(|| engine.clock.monotonic_ms()));
    // Waiting clients compute anew until when they wait.
    engine.pause.wake_held();
}

/// Sets whether the time of the log stands still. A request that is executed then would count a TTL, or a lease, from a time
/// before it was sent. Its reply could not be sent anyway.
pub fn set_standing(engine: &Engine, stands: bool) {
    if engine.restrictions.is_standing() != stands {
        engine.restrictions.set_standing(stands);
        engine.pause.wake_held();
    }
}

/// When a request is tried again for which the time stood still, if nothing wakes its client.
const LOOK_AGAIN_MS: u64 = 10;

/// True for commands that read or change data, and so need to know what time it is.
fn needs_time(row: &CommandRow) -> bool {
    !row.command.flags.has(Flags::LOADING) || row.command.flags.has(Flags::ENDS_QUEUE)
}

/// Returns until when a request waits for data that is still loading, or for the time to go on; `None` when it need not wait.
#[cold]
pub fn waits_for_data(
    engine: &Engine,
    worker: &Worker,
    client: &Client,
    row: &'static CommandRow,
    request: Request<'_>,
) -> Option<u64> {
    let now_ms = worker.monotonic_ms();
    // The log's thread, which says so, may be late. A log that has failed says nothing more: its error is the answer.
    let stands = worker.time_stands && !engine.restrictions.refuses_writes();
    if (engine.restrictions.is_standing() || stands) && needs_time(row) {
        engine.pause.hold(&client.handle);
        // IMPORTANT: check again, as below.
        if engine.restrictions.is_standing() {
            return Some(u64::MAX);
        }
        // The time may go on without a word from that thread.
        if stands {
            return Some(now_ms + LOOK_AGAIN_MS);
        }
        engine.pause.forget(&client.handle);
        return None;
    }
    if !engine.restrictions.holds_for_load(now_ms)
        || !matches!(gates(engine, client, row, request), Err(CommandError::Loading))
    {
        return None;
    }
    engine.pause.hold(&client.handle);
    // IMPORTANT: check again. The data may have been loaded before the client was added to those that are woken.
    if !engine.restrictions.holds_for_load(now_ms) {
        engine.pause.forget(&client.handle);
        return None;
    }
    Some(engine.restrictions.held_until_ms())
}

/// How many replicas have been heard of lately.
pub fn good_replicas(engine: &Engine) -> u64 {
    if !engine.persistence.state().promises_durability() {
        // Replicas get what is in the journal.
        return 0;
    }
    let silent_ms_max = engine.settings.min_replicas_max_lag() * 1000;
    match engine.persistence.replication().role {
        Role::Writer { followers } => {
            followers.iter().filter(|follower| follower.silent_ms <= silent_ms_max).count() as u64
        }
        Role::Follower(_) => 0,
    }
}

/// Refuses writes if settings require more replicas than there are.
pub fn pass_replicas(engine: &Engine) -> CommandResult {
    let settings = &engine.settings;
    match settings.writes_need_replicas() && good_replicas(engine) < settings.min_replicas_to_write() {
        true => Err(CommandError::fixed("NOREPLICAS Not enough good replicas to write.")),
        false => Ok(()),
    }
}

/// Checks all gates for a command.
#[inline]
pub fn gates(engine: &Engine, client: &Client, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    let flags = row.command.flags;
    pass_user(engine, client, row, request)?;
    if client.is_only_listening() && !flags.has(Flags::WHILE_SUBSCRIBED) {
        return Err(CommandError::said(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context",
            row.full_name
        )));
    }
    if engine.restrictions.any() || flags.has(Flags::WRITE) && engine.settings.writes_need_replicas() {
        pass_restrictions(engine, flags_with_queue(client, row, request))?;
    }
    if flags.has(Flags::DENYOOM) {
        pass_memory_limit(engine).or_else(|error| if grows(row, request) { Err(error) } else { Ok(()) })?;
    }
    Ok(())
}

/// Checks whether the user has the right to a request.
#[inline]
pub fn pass_user(engine: &Engine, client: &Client, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    match client.free_pass.load(Relaxed) == engine.acl.generation() {
        true => Ok(()),
        false => pass_rights(engine, client, row, request),
    }
}

/// Checks whether the user has the right to a command without keys.
pub fn pass_command(engine: &Engine, client: &Client, name: &str) -> CommandResult {
    let row = registry().find(name.as_bytes()).expect("the command exists");
    let request: OwnedRequest = std::iter::once(name.as_bytes()).collect();
    pass_user(engine, client, row, request.as_request())
}

/// Checks whether a client may run a request at all.
#[inline(never)]
fn pass_rights(engine: &Engine, client: &Client, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    if let Some((seen_at, rights)) = &*client.seen_rights.borrow()
        && *seen_at == engine.acl.generation()
        && acl::check::allows_only_key(engine, rights, row, request)
    {
        return Ok(());
    }
    pass_all_rights(engine, client, row, request)
}

/// Checks a request that needs a closer look.
#[inline(never)]
fn pass_all_rights(engine: &Engine, client: &Client, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    // IMPORTANT: before the rights are read. If they change in between, the client is checked again.
    let generation = engine.acl.generation();
    let user = client.user.as_ref().unwrap_or(engine.acl.default_user());
    let denied = |object| CommandError::Denied(Box::new(Denied { object, user: user.shown_name() }));
    if let Some((seen_at, rights)) = &*client.seen_rights.borrow()
        && *seen_at == generation
    {
        return acl::check::check(engine, rights, row, request, client.db).map_err(denied);
    }
    if !client.authenticated && !engine.acl.default_needs_no_password() || user.is_removed() {
        return if row.command.flags.has(Flags::NO_AUTH) { Ok(()) } else { Err(CommandError::NoAuth) };
    }
    let rights = user.rights();
    if rights.is_everything {
        client.free_pass.store(generation, Relaxed);
        return Ok(());
    }
    *client.seen_rights.borrow_mut() = Some((generation, rights.clone()));
    acl::check::check(engine, &rights, row, request, client.db).map_err(denied)
}

/// Notes in ACL LOG that a request was refused for want of a right.
#[cold]
pub fn note_if_denied(engine: &Engine, client: &Client, error: &CommandError, context: acl::Context) {
    if let CommandError::Denied(denied) = error {
        let user = client.user.as_ref().unwrap_or(engine.acl.default_user());
        let (line, now_ms) =
            ((engine.procedures.describe_client)(engine, &client.handle), engine.clock.unix_us() / 1000);
        let len_max = engine.settings.acllog_max_len() as usize;
        engine.acl.note_denied(&denied.object, context, &user.name, line, now_ms, len_max);
    }
}

/// True when a request may write, as far as is known before it runs: CLIENT PAUSE WRITE delays it.
#[cold]
pub fn may_write(engine: &Engine, client: &Client, row: &'static CommandRow, request: Request<'_>) -> bool {
    if let Some(interactive) = &client.interactive
        && row.command.flags.has(Flags::ENDS_TXN)
    {
        return interactive.has_written() && may_write_alone(engine, row, request);
    }
    match &client.transaction {
        Some(transaction) if row.command.flags.has(Flags::ENDS_QUEUE) => {
            transaction.commands().any(|(row, request)| may_write_alone(engine, row, request))
        }
        _ => may_write_alone(engine, row, request),
    }
}

fn may_write_alone(engine: &Engine, row: &'static CommandRow, request: Request<'_>) -> bool {
    let (flags, declared) = (row.flags_of(request), row.command.declared);
    let promises_not_to = || declared.and_then(|of| of(engine, request.arg(1))).is_some_and(|flags| flags.no_writes);
    flags.has(Flags::WRITE) || flags.has(Flags::MAY_REPLICATE) && !promises_not_to()
}

/// Refuses commands that need more memory when more than `maxmemory` is in use, and no key can be removed.
#[inline]
pub fn pass_memory_limit(engine: &Engine) -> CommandResult {
    match engine.settings.maxmemory() != 0 && eviction::memory::is_out_of_memory(engine) {
        true => Err(CommandError::OutOfMemory),
        false => Ok(()),
    }
}

/// The flags of a request; EXEC writes if one of the queued commands does.
#[cold]
fn flags_with_queue(client: &Client, row: &'static CommandRow, request: Request<'_>) -> Flags {
    let flags = row.flags_of(request);
    match &client.transaction {
        Some(transaction)
            if flags.has(Flags::ENDS_QUEUE)
                && transaction.commands().any(|(row, request)| row.flags_of(request).has(Flags::WRITE)) =>
        {
            flags.union(Flags::WRITE)
        }
        _ => flags,
    }
}

#[cold]
fn pass_restrictions(engine: &Engine, flags: Flags) -> CommandResult {
    if engine.restrictions.is_loading() && !flags.has(Flags::LOADING) {
        return Err(CommandError::Loading);
    }
    if engine.restrictions.is_busy() && !flags.has(Flags::ALLOW_BUSY) {
        return Err(conditions::busy(engine));
    }
    if flags.has(Flags::WRITE) {
        engine.restrictions.pass_write()?;
        pass_replicas(engine)?;
    } else if engine.restrictions.is_following() && !flags.has(Flags::STALE) && !engine.settings.follower_reads() {
        return Err(CommandError::fixed("MASTERDOWN This server follows another, and follower-reads is set to 'no'."));
    }
    Ok(())
}

/// Refuses a request that writes, if writes are refused now.
#[cold]
pub fn pass_write(engine: &Engine, row: &'static CommandRow, request: Request<'_>) -> CommandResult {
    match row.flags_of(request).has(Flags::WRITE) {
        true => engine.restrictions.pass_write(),
        false => Ok(()),
    }
}

/// True when a request needs more memory, for a command of which some requests do.
#[cold]
fn grows(row: &'static CommandRow, request: Request<'_>) -> bool {
    row.flags_of(request).has(Flags::DENYOOM) && !row.only_removes(request)
}
