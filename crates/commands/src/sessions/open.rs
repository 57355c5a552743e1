//! SESSION.OPEN, SESSION.CLOSE and SESSION.ALIVE: open, close and renew a session.

use crate::shared::options::{Pairs, argument, number, once, pairs, unknown_option};
use execution::args::{Args, is_word};
use execution::commit;
use execution::conditions;
use execution::context::{After, ReadCx, ScriptCx, WholeServer};
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::indexes::is_index;
use execution::own_changes;
use execution::revealed;
use execution::scripts;
use execution::sessions::HookEvent;
use execution::sessions::ending;
use execution::sessions::lookup::{Found, find, still_in};
use execution::settings::events::Events;
use keyspace::types::session::{self, Session, put_capabilities};
use keyspace::{Cause, Effect, Key, Locked};

/// The default TTL.
const TTL_DEFAULT_MS: u64 = 90_000;
/// The longest TTL: some thousands of years.
const TTL_MAX_MS: i64 = 1 << 47;

const GONE_IN_HOOK: CommandError = CommandError::fixed(
    "ERR the function that was called for the session has removed, replaced or moved it: set another one with SESSION.HOOK",
);

#[derive(Default)]
struct Options<'a> {
    id: Option<&'a [u8]>,
    ttl_ms: Option<u64>,
    capabilities: Pairs<'a>,
}

impl<'a> Options<'a> {
    fn take(args: &mut Args<'a>) -> Result<Options<'a>, CommandError> {
        let (mut id, mut ttl_ms, mut capabilities) = (None, None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "ID") {
                once(&mut id, argument(args, "the id of the session")?, "ID")?;
            } else if is_word(word, "TTL") {
                once(&mut ttl_ms, number(args, "the time behind TTL", 1, TTL_MAX_MS)? as u64, "TTL")?;
            } else if is_word(word, "CAP") {
                once(&mut capabilities, pairs(args, "CAP")?, "CAP")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        Ok(Options { id, ttl_ms, capabilities: capabilities.unwrap_or_default() })
    }
}

pub(super) fn open(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let options = Options::take(&mut cx.args)?;
    pass_hook(cx)?;
    let generated;
    let sid = match options.id {
        Some(id) => id,
        None => {
            generated = format!("session:{:032x}", cx.worker.random.u128(..) ^ u128::from(cx.worker.now_us));
            generated.as_bytes()
        }
    };
    let key = Key::new(sid);
    under_locks(cx, key, |cx, locked| open_under(cx, locked, key, &options))?;
    cx.reply.bulk(sid);
    Ok(())
}

fn open_under(
    cx: &mut ScriptCx<'_, '_>,
    locked: &mut Locked<'_>,
    key: Key<'_>,
    options: &Options<'_>,
) -> CommandResult {
    let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
    match find(locked, db, key, now_ms)? {
        Found::Alive(session) => {
            session.renew(now_ms);
            let ttl_ms = session.ttl_ms();
            if let Some(asked_ms) = options.ttl_ms.filter(|asked_ms| *asked_ms != ttl_ms) {
                record(cx, locked, key, session::Change::Ttl { ttl_ms: asked_ms }, "session.open");
                renew(locked, db, key, now_ms);
            }
            return Ok(());
        }
        // Remove the expired session first. Its hook may leave any value under the name except a session, so this loop
        // ends.
        Found::Expired => {
            ending::end_session(engine, cx.worker, cx.client, locked, key, Cause::Expired);
            return open_under(cx, locked, key, options);
        }
        Found::Nothing => {}
    }
    if engine.forks.any() {
        engine.forks.pass_name(db, key.name)?;
    }
    let mut capabilities = Vec::new();
    put_capabilities(options.capabilities.iter().copied(), &mut capabilities);
    let ttl_ms = options.ttl_ms.unwrap_or(TTL_DEFAULT_MS);
    {
        let mut keys = own_changes::own_changes(engine, cx.worker, locked.lend(), db);
        // An expired value of another type.
        keys.remove_if_expired(db, key);
        keys.finish();
    }
    let opened = session::Change::Open { created_ms: now_ms, ttl_ms, capabilities: &capabilities };
    let Some(function) = engine.sessions.hook(HookEvent::Created) else {
        make(cx, locked, key, opened);
        return Ok(());
    };
    let undo = &engine.sessions.undo;
    let point = undo.begin(&cx.worker.batch);
    let birth = make(cx, locked, key, opened);
    let outcome = ending::call_hook(engine, cx.worker, cx.client, locked, &function, key, &capabilities);
    let error = match outcome {
        Ok(()) if still_in(locked, db, key, birth) == Some(db) => {
            undo.keep();
            return Ok(());
        }
        Ok(()) => GONE_IN_HOOK,
        Err(error) => CommandError::said(error),
    };
    undo.undo(engine, &mut cx.worker.batch, locked, &point);
    Err(error)
}

/// Makes a session, whose name is free. Returns its birth.
fn make(cx: &mut ScriptCx<'_, '_>, locked: &mut Locked<'_>, key: Key<'_>, opened: session::Change<'_>) -> u64 {
    record(cx, locked, key, opened, "session.open");
    let Ok(Found::Alive(session)) = find(locked, cx.client.db, key, cx.worker.now_ms) else {
        unreachable!("the session was just made")
    };
    session.renew(cx.worker.now_ms);
    session.birth()
}

/// Records a change of a session, whose shard is locked.
fn record(
    cx: &mut ScriptCx<'_, '_>,
    locked: &mut Locked<'_>,
    key: Key<'_>,
    change: session::Change<'_>,
    event: &'static str,
) {
    let mut keys = own_changes::own_changes(cx.engine, cx.worker, locked.lend(), cx.client.db);
    keys.record(&Effect::change(key, change));
    keys.notify(Events::MODULE, event, key);
    keys.finish();
}

fn renew(locked: &Locked<'_>, db: usize, key: Key<'_>, now_ms: u64) {
    if let Ok(Found::Alive(session)) = find(locked, db, key, now_ms) {
        session.renew(now_ms);
    }
}

pub(super) fn close(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let key = cx.args.key()?;
    pass_hook(cx)?;
    let mut is_closed = false;
    under_locks(cx, key, |cx, locked| {
        if matches!(find(locked, cx.client.db, key, cx.worker.now_ms)?, Found::Alive(_)) {
            ending::end_session(cx.engine, cx.worker, cx.client, locked, key, Cause::Deleted);
            is_closed = true;
        }
        Ok(())
    })?;
    cx.reply.integer(is_closed.into());
    Ok(())
}

/// Refuses a command inside a hook.
fn pass_hook(cx: &ScriptCx<'_, '_>) -> CommandResult {
    match cx.worker.in_hook {
        true => {
            Err(CommandError::fixed("ERR no session is opened or closed in a hook of sessions: do it after the hook"))
        }
        false => Ok(()),
    }
}

/// Runs `act` on a session under its lock, or under all locks if there are hooks, as one batch.
fn under_locks(
    cx: &mut ScriptCx<'_, '_>,
    key: Key<'_>,
    act: impl FnOnce(&mut ScriptCx<'_, '_>, &mut Locked<'_>) -> CommandResult,
) -> CommandResult {
    let engine = cx.engine;
    if engine.indexes.has_any_of([key.name].into_iter()) {
        revealed::await_definitions(cx)?;
        return Err(is_index(key.name));
    }
    if cx.held.is_none() && cx.worker.must_detach() && engine.sessions.has_hooks() {
        cx.after = After::Detach(scripts::leaving::start_thread(engine));
        return Ok(());
    }
    if let Some(mut held) = cx.held.take() {
        let outcome = act(cx, &mut held);
        let garbage = held.take_garbage();
        engine.free(garbage);
        return outcome;
    }
    let calls = HookEvent::ALL.into_iter().any(|event| engine.sessions.hook(event).is_some());
    let locked = match calls {
        true => engine.keyspace.lock_all_unless_busy(),
        false => engine.keyspace.lock_key_unless_busy(key),
    };
    let Some(mut locked) = locked else { return Err(conditions::busy(engine)) };
    if !calls && HookEvent::ALL.into_iter().any(|event| engine.sessions.hook(event).is_some()) {
        // A hook was set before the lock was taken: retry with all locks. Hooks are set under all locks, so none is set
        // after it.
        drop(locked);
        return under_locks(cx, key, act);
    }
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    cx.worker.batch.is_atomic = true;
    let outcome = act(cx, &mut locked);
    cx.worker.batch.is_atomic = false;
    commit::commit(engine, cx.worker, Some(cx.client), &mut locked);
    outcome
}

pub(super) fn alive(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let session = cx.keys.typed::<&Session>(key)?;
    cx.keys.looked_up(key, session.is_some());
    if let Some(session) = session {
        renew_here(cx.server(), session, cx.keys.now_ms);
    }
    cx.reply.integer(session.is_some().into());
    Ok(())
}

/// Renews a session, except on a follower, where the leader decides when it expires.
pub(super) fn renew_here(engine: &Engine, session: &Session, now_ms: u64) {
    if !engine.restrictions.is_following() {
        session.renew(now_ms);
    }
}
