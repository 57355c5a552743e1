//! SESSION.CALL: runs a request once for its session and id, and keeps its reply for as long as the client may retry.

use super::NO_SESSION;
use crate::shared::options::{error, number, shown};
use execution::acl::Context;
use execution::batch_limit;
use execution::call::Call;
use execution::client::Client;
use execution::command::{CommandRow, Flags, FoundKeys, KeyFlags, KeyRange, Locks, registry};
use execution::commit;
use execution::conditions;
use execution::context::{After, ScriptCx};
use execution::dispatch;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::gates;
use execution::indexes;
use execution::own_changes;
use execution::scripts;
use execution::sessions::lookup::{Found, find, still_in};
use execution::settings::ClientClass;
use execution::settings::events::Events;
use keyspace::types::session::{self, RequestDigest};
use keyspace::{Effect, Key, Locked};
use resp::{Protocol, Request};
use smallvec::SmallVec;
use std::sync::atomic::Ordering::Relaxed;

/// The arguments before the request: the command's name, the session, the id, LOW and its value.
pub(super) const BEFORE_REQUEST: u8 = 5;

/// The keys of a call: the session, and those of its request.
pub(super) fn keys(call: Request<'_>) -> FoundKeys {
    let mut found = FoundKeys::one(1, KeyFlags::CHANGE);
    if call.len() > usize::from(BEFORE_REQUEST)
        && let request = call.skip(usize::from(BEFORE_REQUEST))
        && let Ok(row) = find_row(request)
    {
        let inner = row.found_keys(request);
        let shift = u32::from(BEFORE_REQUEST);
        let moved = |range: KeyRange| KeyRange { first: range.first + shift, last: range.last + shift, ..range };
        found.ranges.extend(inner.ranges.into_iter().map(moved));
        found.is_invalid = inner.is_invalid;
    }
    found
}

pub(super) fn call(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let key = cx.args.key()?;
    let id = number(&mut cx.args, "the id of the request", 1, i64::MAX)? as u64;
    if !cx.args.take_word("LOW") {
        return Err(error("LOW and the lowest id whose reply the client does not have must follow the id".into()));
    }
    let low = number(&mut cx.args, "the id behind LOW", 0, i64::MAX)? as u64;
    if low > id {
        return Err(error(format!("the id behind LOW is above that of the request: send at most {id}, not {low}")));
    }
    let request = cx.args.request().skip(usize::from(BEFORE_REQUEST));
    let row = match cx.client.last_called {
        // Clients repeat commands: comparing with the last one is cheaper than a look-up.
        Some(last) if last.is_plainly(request) => last,
        _ => find_row(request)?,
    };
    cx.client.last_called = Some(row);
    if let Err(refused) = pass_allowed(row) {
        // There may be a password in it.
        cx.worker.secrets.extend(usize::from(BEFORE_REQUEST) + 1..cx.args.request().len());
        return Err(refused);
    }
    if cx.worker.must_detach()
        && let Some(begin) = scripts::leaving::may_run_long(cx.engine, row)
    {
        cx.after = After::Detach(begin);
        return Ok(());
    }
    let (engine, db) = (cx.engine, cx.client.db);
    let only_key = row.only_key(request);
    let mut locked = lock(engine, key, row, request, only_key).ok_or_else(|| conditions::busy(engine))?;
    if row.names_index() || indexes::meets_index(&locked, db, row, request, only_key) {
        drop(locked);
        if !indexes::is_ready_for_index(engine, cx.worker, db)? {
            cx.after = After::Again;
            return Ok(());
        }
        locked = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
    }
    let outcome = call_under(cx, &mut locked, key, SessionCall { id, low, row, request, only_key });
    cx.worker.batch.is_atomic = false;
    commit::commit(engine, cx.worker, Some(cx.client), &mut locked);
    outcome
}

/// Finds the row of a request and checks the number of arguments.
fn find_row(request: Request<'_>) -> Result<&'static CommandRow, CommandError> {
    let name = request.arg(0);
    let row = registry().find(name).ok_or_else(|| error(format!("unknown command {}", shown(name))))?;
    let row = match row.subcommands.is_empty() || request.len() < 2 {
        true => row,
        false => row
            .subcommand(request.arg(1))
            .ok_or_else(|| CommandError::unknown_subcommand(row.command.name, request.arg(1)))?,
    };
    match row.accepts(request.len()) {
        true => Ok(row),
        false => Err(row.wrong_arity()),
    }
}

/// Refuses commands that scripts may not call, except those that run scripts.
fn pass_allowed(row: &'static CommandRow) -> CommandResult {
    let command = row.command;
    let runs_script = command.keys.locks == Locks::Declared && !command.flags.has(Flags::NO_MULTI);
    match command.flags.has(Flags::NOSCRIPT) && !runs_script {
        true => Err(error(format!(
            "{} cannot be called in a session: send it without SESSION.CALL",
            row.full_name.replace('|', " ").to_uppercase()
        ))),
        false => Ok(()),
    }
}

/// Locks the shards of a session and of all keys that a request may touch. `None` when a long script holds one.
#[inline]
fn lock<'e>(
    engine: &'e Engine,
    key: Key<'_>,
    row: &'static CommandRow,
    request: Request<'_>,
    only_key: Option<(usize, Key<'_>)>,
) -> Option<Locked<'e>> {
    let keyspace = &engine.keyspace;
    if let Some((_, only_key)) = only_key {
        return keyspace.lock_two_unless_busy(keyspace.shard_of_key(key), keyspace.shard_of_key(only_key));
    }
    match row.locks(request) {
        Locks::None => keyspace.lock_key_unless_busy(key),
        Locks::Key(_) | Locks::Keys => {
            let mut shards: SmallVec<[usize; 16]> = SmallVec::new();
            shards.push(keyspace.shard_of_key(key));
            shards.extend(row.keys(request).map(|key| keyspace.shard_of_key(key)));
            keyspace.lock_shards_unless_busy(shards)
        }
        Locks::Everything | Locks::Walk | Locks::Declared => keyspace.lock_all_unless_busy(),
    }
}

struct SessionCall<'a> {
    id: u64,
    low: u64,
    row: &'static CommandRow,
    request: Request<'a>,
    /// The only key and its position, for a command with one key at a fixed position.
    only_key: Option<(usize, Key<'a>)>,
}

/// Returns the stored reply of a call, or runs it. Its effects are one batch, which the caller commits.
fn call_under(
    cx: &mut ScriptCx<'_, '_>,
    locked: &mut Locked<'_>,
    key: Key<'_>,
    call: SessionCall<'_>,
) -> CommandResult {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    let SessionCall { id, low, row, request, only_key } = call;
    cx.worker.batch.is_atomic = true;
    // Its reply depends on earlier changes of these shards.
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let Found::Alive(session) = find(locked, db, key, now_ms)? else { return Err(NO_SESSION) };
    // Also for a reply that is stored: it shows what the command has found.
    gates::pass_user(engine, cx.client, row, request)
        .inspect_err(|error| gates::note_if_denied(engine, cx.client, error, Context::TopLevel))?;
    let digest = RequestDigest::of(request.iter());
    let is_resp3 = cx.client.protocol == Protocol::Resp3;
    if let Some(answer) = session.answer(id) {
        if answer.request != digest {
            return Err(mismatch(id));
        }
        if answer.is_resp3 != is_resp3 {
            return Err(CommandError::fixed(
                "ERR the request was answered in the other version of RESP: ask in that one",
            ));
        }
        super::open::renew_here(engine, session, now_ms);
        cx.reply.raw(answer.bytes());
        if low > session.low() && engine.restrictions.pass_write().is_ok() {
            record(cx, locked, db, key, session::Change::Low { low });
        }
        return Ok(());
    }
    if id < session.low() {
        return Err(evicted(id, session.low()));
    }
    gates::gates(engine, cx.client, row, request)?;
    engine.restrictions.pass_write()?;
    // Its reply is stored, which takes memory: beyond the limit only commands that free memory run. Commands that may
    // need memory have just been checked.
    if !row.flags_of(request).has(Flags::DENYOOM) {
        gates::pass_memory_limit(engine).or_else(|error| if row.only_takes_away() { Ok(()) } else { Err(error) })?;
    }
    let limit = engine.settings.session_cache_max_bytes();
    let kept = session.answer_bytes();
    if kept as u64 >= limit && (kept - session.answer_bytes_below(low)) as u64 >= limit {
        return Err(error(format!(
            "the session keeps {kept} bytes of replies and takes no more requests (session-cache-max-bytes): raise LOW"
        )));
    }
    session.renew(now_ms);
    let birth = session.birth();
    let low = low.max(session.low());
    let (reply_at, bytes_max) = (cx.reply.position(), reply_bytes_max(engine, cx.client));
    // Earlier replies in the pipeline do not count towards its limit: it is stored, and may be requested alone.
    let mut reply = cx.reply.lend().limited(reply_at.saturating_add(bytes_max));
    cx.worker.batch.script_has_written = false;
    let call = Call::new(cx.worker, cx.client, row, request).with_only_key(only_key);
    let after = dispatch::execute_on(engine, call, &mut reply, locked);
    // Changes of a request to the connection end with the request.
    if cx.client.db != db {
        cx.client.db = db;
        cx.client.handle.db.store(db as u8, Relaxed);
    }
    if matches!(after, After::Close) {
        cx.after = after;
    }
    // A script that was refused for lack of memory before its first write has not run: its id stays free.
    if !cx.worker.batch.script_has_written && cx.reply.written_since(reply_at).starts_with(OUT_OF_MEMORY) {
        return Ok(());
    }
    // The request may have removed its own session, or moved it with its database.
    let db = match may_touch(row, request, only_key, key) {
        true => match still_in(locked, db, key, birth) {
            Some(db) => db,
            None => return Ok(()),
        },
        false => db,
    };
    let reply_len = cx.reply.position() - reply_at;
    let too_long = reply_len > bytes_max
        || batch_limit::pass_batch_bytes(engine, cx.worker.batch.effects.len() + reply_len).is_err();
    let kept: SmallVec<[u8; 64]> = match too_long {
        // The reply is too long to be sent or stored; an error is stored instead.
        true => TOO_LONG.into(),
        false => cx.reply.written_since(reply_at).into(),
    };
    record(cx, locked, db, key, session::Change::Answer { id, request: digest, is_resp3, low, reply: &kept });
    Ok(())
}

/// The longest reply that can be sent to a client with no unread replies.
fn reply_bytes_max(engine: &Engine, client: &Client) -> usize {
    let class = if client.subscriptions.is_empty() { ClientClass::Normal } else { ClientClass::Pubsub };
    match engine.settings.client_output_buffer_limit(class).hard_bytes as usize {
        0 => usize::MAX,
        hard_bytes => hard_bytes,
    }
}

/// True when a request may touch its own session.
fn may_touch(row: &'static CommandRow, request: Request<'_>, only_key: Option<(usize, Key<'_>)>, key: Key<'_>) -> bool {
    if let Some((_, only_key)) = only_key {
        return only_key.name == key.name;
    }
    match row.locks(request) {
        Locks::None => false,
        Locks::Key(_) | Locks::Keys => row.key_positions(request).any(|at| request.arg(at) == key.name),
        Locks::Everything | Locks::Walk | Locks::Declared => true,
    }
}

/// The beginning of the reply when there is no memory for a request.
const OUT_OF_MEMORY: &[u8] = b"-OOM ";

const TOO_LONG: &[u8] = b"-ERR the request has run, and its reply was too long to be kept\r\n";

fn record(cx: &mut ScriptCx<'_, '_>, locked: &mut Locked<'_>, db: usize, key: Key<'_>, change: session::Change<'_>) {
    let mut keys = own_changes::own_changes(cx.engine, cx.worker, locked.lend_key(key), db);
    keys.record(&Effect::change(key, change));
    keys.notify(Events::MODULE, "session.call", key);
    keys.finish();
}

#[cold]
fn mismatch(id: u64) -> CommandError {
    CommandError::said(format!(
        "MISMATCH the request {id} of the session was another one, and nothing was run: send a new request under a new id"
    ))
}

#[cold]
fn evicted(id: u64, low: u64) -> CommandError {
    CommandError::said(format!(
        "EVICTED the client has said that it has the replies below {low}, and {id} was not run: send a new request under a new id"
    ))
}
