//! Runs a handler: sets up its context and commits its changes. Knows contexts; refuses to know how locks were taken
//! (`dispatch`).

use crate::args::Args;
use crate::batch_limit;
use crate::call::Call;
use crate::command::{Flags, Handler, Locks};
use crate::commit;
use crate::conditions;
use crate::context::{After, ReadCx, ScriptCx, ServerCx, WriteCx};
use crate::engine::Engine;
use crate::error::CommandResult;
use crate::forks;
use crate::gates;
use crate::indexes::OnIndex;
use crate::panics;
use crate::view::View;
use keyspace::Locked;
use resp::Reply;

/// Runs the handler of a command that needs no shard locks.
pub(super) fn run_server(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    reply: Reply<'_>,
    handler: fn(&mut ServerCx<'_>) -> CommandResult,
) -> CommandResult {
    let Call { worker, client, row, request, after, .. } = call;
    let args = Args::new(*request, row.name_args, None);
    let now_ms = worker.now_ms;
    let mut cx = ServerCx { engine, client, worker, args, reply, now_ms, command: row, after: After::Continue };
    let result = handler(&mut cx);
    *after = std::mem::take(&mut cx.after);
    result.map_err(|error| row.explain(*request, error))
}

/// Runs the handler of a command that runs other commands.
pub fn run_scripting(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    reply: Reply<'_>,
    handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
    held: Option<Locked<'_>>,
) -> CommandResult {
    let Call { worker, client, row, request, after, .. } = call;
    let args = Args::new(*request, row.name_args, None);
    if let Some(held) = &held {
        // As in `run_under`: its reply reveals the state of the locked keys.
        client.depends_on = client.depends_on.max(held.changed_by());
    }
    let mut cx = ScriptCx { engine, client, worker, args, reply, held, command: row, after: After::Continue };
    cx.worker.script_has_failed = false;
    if !cx.worker.in_script {
        // Otherwise a script has called this command, and may have written before.
        cx.worker.batch.script_has_written = false;
    }
    let result = handler(&mut cx);
    *after = std::mem::take(&mut cx.after);
    if cx.worker.script_has_failed {
        cx.worker.metrics.stats.commands[row.index].failed.add(1);
    }
    result.map_err(|error| row.explain(*request, error))
}

/// The instant at which nothing has expired yet. An import source sees it, because its commands may give a new deadline to
/// what is expired by our clock.
const BEGINNING_MS: u64 = 1;

/// Runs the handler of a command under locks, and commits its effects.
#[inline]
pub fn run_under(
    engine: &Engine,
    call: &mut Call<'_, '_>,
    reply: Reply<'_>,
    locked: &mut Locked<'_>,
    on_index: OnIndex<'_>,
) -> CommandResult {
    let Call { worker, client, .. } = call;
    let (row, request, only_key) = (call.row, call.request, call.only_key);
    let command = row.command;
    let (now_ms, now_us) = (worker.now_ms, worker.now_us);
    let stats = &worker.metrics.stats;
    // A command on one key sees only the shard of that key, even if more are locked.
    let lent = match only_key {
        Some((_, key)) => locked.lend_key(key),
        None => locked.lend(),
    };
    let mut view = View::new(lent, client.db, now_ms, engine.usage(&mut worker.random), stats);
    if client.is_import_source && engine.settings.import_mode() && !row.is_relative(request) {
        view.now_ms = BEGINNING_MS;
    }
    view.notify_through(&worker.batch.notifications, conditions::published_events(engine, command.handler));
    // Set up in place: moving the view would cost more than all of this.
    view.touch = !client.no_touch && !client.is_import_source && !command.flags.has(Flags::NO_TOUCH);
    on_index.set_up(&mut view, engine);
    view.offer = client.offer();
    let (random, in_script) = (&mut worker.random, worker.in_script);
    let args = Args::new(request, row.name_args, only_key);
    let (result, seen, garbage) = match command.handler {
        Handler::Read(handler) => {
            let is_resumed = client.unfinished.is_some();
            let mut cx = ReadCx {
                settings: &engine.settings,
                engine,
                client,
                args,
                reply,
                keys: view,
                random,
                command: row,
                slice: on_index.slice(),
                token: None,
                is_alone: matches!(on_index, OnIndex::NoneAlone),
                in_script,
            };
            let mut result = panics::catch(|| handler(&mut cx));
            if cx.keys.has_met_busy() {
                result = Err(conditions::busy(engine));
            }
            let seen = match command.keys.locks {
                // Replies about the server, such as INFO's, reveal no changes to data, so they need not wait for the
                // journal.
                Locks::Walk if !command.flags.has(Flags::READONLY) => 0,
                _ => cx.keys.seen(),
            };
            if cx.keys.has_leftovers() && conditions::may_expire(engine) {
                let mut recorder = cx.keys.into_recorder_of(engine, worker.batch.is_private, &mut worker.batch.effects);
                recorder.change_leftovers();
                cx.keys = recorder.into_view();
            }
            if let Some(tracker) = &cx.client.tracker
                && !worker.batch.is_private
                && tracker.remembers(cx.client.caching)
                && command.flags.has(Flags::READONLY)
            {
                match on_index {
                    // Done by the last slice.
                    OnIndex::NoneAlone | OnIndex::InSlices(_)
                        if cx.client.unfinished.is_some() || cx.client.wants_index_copies => {}
                    // The keys may have changed since the first slice. The client would get that invalidation before
                    // this reply, and cache the stale reply.
                    OnIndex::NoneAlone if is_resumed => cx.keys.invalidate_now(row.keys(request), cx.client.id()),
                    OnIndex::No | OnIndex::NoneAlone => cx.keys.remember(engine, row.keys(request), cx.client.id()),
                    OnIndex::InSlices(_) | OnIndex::AtOnce | OnIndex::OnCopies(_) | OnIndex::NoneAtInstant(_) => {
                        cx.keys.invalidate_now(row.keys(request), cx.client.id())
                    }
                }
            }
            (result, seen, cx.keys.take_garbage())
        }
        Handler::Write(handler) => {
            // IMPORTANT: once more, under the locks. A server that hands its log over refuses writes, and then takes all
            // locks: after that no request changes anything, even one that had passed the gates before.
            if engine.restrictions.is_following() && !worker.batch.is_atomic && client.unfinished.is_none() {
                gates::pass_write(engine, row, request)?;
            }
            let batch_bytes = worker.batch.effects.len();
            if let Err(error) =
                batch_limit::pass_batch_limit(engine, batch_bytes, view.locked(), client.db, row, request)
            {
                // The error reveals the sizes of values.
                client.depends_on = client.depends_on.max(view.locked().changed_by());
                return Err(error);
            }
            forks::pass_forks(engine, client.db, row, request)?;
            let keys = view.into_recorder_of(engine, worker.batch.is_private, &mut worker.batch.effects);
            let mut cx = WriteCx {
                settings: &engine.settings,
                engine,
                client,
                args,
                reply,
                keys,
                now_us,
                random,
                command: row,
                in_script,
            };
            let result = panics::catch(|| handler(&mut cx));
            if result.is_ok() {
                cx.keys.stamp_written();
            }
            if cx.keys.view().has_leftovers() {
                cx.keys.change_leftovers();
            }
            cx.keys.count_changes();
            (result, cx.keys.view().locked().changed_by(), cx.keys.take_garbage())
        }
        Handler::Server(_) | Handler::Script(_) | Handler::Container => return Ok(()),
    };
    client.depends_on = client.depends_on.max(seen);
    commit::commit(engine, worker, Some(client), locked);
    engine.free(garbage);
    result.map_err(|error| row.explain(request, error))
}
