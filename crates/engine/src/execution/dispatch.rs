//! From a row to its handler: takes the locks that the command's keys need, gives the handler its context, and commits
//! its changes. Knows locks and contexts; refuses to know what comes before (gates) and after (books).

use crate::args::Args;
use crate::error::{CommandError, CommandResult};
use crate::execution::client::Client;
use crate::execution::command::{CommandRow, Flags, Handler, Locks};
use crate::execution::context::{After, ReadCx, ScriptCx, ServerCx, WriteCx};
use crate::execution::engine::Engine;
use crate::execution::execute::Ahead;
use crate::execution::indexes::OnIndex;
use crate::execution::view::View;
use crate::execution::waiting::waiter::WaitPhase;
use crate::execution::worker::Worker;
use crate::panics;
use keyspace::{Key, Locked};
use resp::{Reply, Request};
use smallvec::SmallVec;

impl Engine {
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(crate) fn dispatch(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        out: &mut Vec<u8>,
        after: &mut After,
        ahead: &mut Ahead<'_>,
    ) -> CommandResult {
        let command = row.command;
        let reply_at = out.len();
        let reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
        if let Handler::Server(handler) = command.handler {
            ahead.release();
            return self.run_server(worker, client, row, request, reply, after, handler);
        }
        if let Handler::Script(handler) = command.handler {
            ahead.release();
            if self.record_waiters.any() {
                // In a transaction or script, a claim cannot let them go first.
                self.serve_due_records(worker);
            }
            let result = self.run_scripting(worker, client, row, request, reply, after, handler, None);
            if command.flags.has(Flags::BLOCKING)
                && let Some(blocked) = self.begin_record_wait(client, row, request, (out, reply_at), worker.now_ms)?
            {
                *after = After::Block(blocked);
            }
            return result;
        }
        let (mut locked, first_key) = match command.keys.locks {
            Locks::Key(at) => {
                let at = usize::from(at);
                let key = Key::new(request.arg(at));
                (ahead.lock_key(&self.keyspace, key).ok_or_else(|| self.busy())?, Some((at, key)))
            }
            _ => {
                let locks = row.locks(request);
                if locks != Locks::Keys {
                    ahead.release();
                }
                let locked = match locks {
                    Locks::Key(_) | Locks::Keys => {
                        let keys: SmallVec<[Key<'_>; 4]> = row.keys(request).collect();
                        ahead.lock_keys(&self.keyspace, &keys)
                    }
                    Locks::Everything => self.keyspace.lock_all_unless_busy(),
                    Locks::None | Locks::Walk | Locks::Declared => Some(self.keyspace.lock_none()),
                };
                (locked.ok_or_else(|| self.busy())?, None)
            }
        };
        if self.meets_index(&locked, client.db, row, request, first_key) {
            drop(locked);
            ahead.release();
            let reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
            return self.run_on_index(worker, client, row, request, reply, after);
        }
        let reply = Reply::new(out, client.protocol).limited(client.output_bytes_max);
        let result = self.run_under(worker, client, row, request, reply, &mut locked, first_key, OnIndex::NoneAlone);
        if client.unfinished.is_some() {
            drop(locked);
            ahead.release();
            match result {
                Ok(()) => *after = After::Again,
                Err(_) => client.unfinished = None,
            }
            return result;
        }
        if command.flags.has(Flags::BLOCKING)
            && let Some(blocked) = self.begin_wait(client, row, request, out, reply_at, &mut locked)
        {
            *after = After::Block(blocked);
        }
        result
    }

    /// Runs the handler of a command that needs no locks of ours.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    fn run_server(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: Reply<'_>,
        after: &mut After,
        handler: fn(&mut ServerCx<'_>) -> CommandResult,
    ) -> CommandResult {
        let args = Args::new(request, row.name_args, None);
        let now_ms = worker.now_ms;
        let mut cx =
            ServerCx { engine: self, client, worker, args, reply, now_ms, command: row, after: After::Continue };
        let result = handler(&mut cx);
        *after = std::mem::take(&mut cx.after);
        result
    }

    /// Runs the handler of a command that runs others.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(crate) fn run_scripting(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: Reply<'_>,
        after: &mut After,
        handler: fn(&mut ScriptCx<'_, '_>) -> CommandResult,
        held: Option<Locked<'_>>,
    ) -> CommandResult {
        let args = Args::new(request, row.name_args, None);
        let mut cx = ScriptCx { engine: self, client, worker, args, reply, held, after: After::Continue };
        cx.worker.script_has_failed = false;
        let result = handler(&mut cx);
        *after = std::mem::take(&mut cx.after);
        if cx.worker.script_has_failed {
            cx.worker.books.stats.commands[row.index].failed.add(1);
        }
        result
    }

    /// Executes one of several commands that share their locks, and appends its reply.
    pub(crate) fn execute_under(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: &mut Reply<'_>,
        locked: &mut Locked<'_>,
    ) -> After {
        self.execute_on(worker, client, row, request, reply, locked, row.only_key(request))
    }

    /// The same, of a request whose only key is known, if it has one at a fixed place.
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(crate) fn execute_on(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: &mut Reply<'_>,
        locked: &mut Locked<'_>,
        only_key: Option<(usize, Key<'_>)>,
    ) -> After {
        let reply_at = reply.position();
        let mut after = After::Continue;
        let result = match row.command.handler {
            Handler::Server(handler) => {
                self.run_server(worker, client, row, request, reply.lend(), &mut after, handler)
            }
            Handler::Script(handler) => {
                let held = Some(locked.lend());
                self.run_scripting(worker, client, row, request, reply.lend(), &mut after, handler, held)
            }
            _ if self.meets_index(locked, client.db, row, request, only_key) => {
                self.run_on_index_under(worker, client, row, request, reply.lend(), locked, OnIndex::AtOnce)
            }
            _ => self.run_under(worker, client, row, request, reply.lend(), locked, only_key, OnIndex::No),
        };
        // Commands do not wait for keys here: the timeout reply that the handler has written stands.
        client.wait_phase = WaitPhase::Idle;
        self.keep_books(worker, client, row, request);
        if let Err(error) = result {
            worker.batch.has_panicked |= worker.batch.is_private && error == CommandError::Internal;
            worker.books.stats.commands[row.index].failed.add(1);
            let text = error.to_string();
            worker.books.stats.count_error(&text);
            reply.truncate(reply_at);
            reply.error(&text);
        }
        let after = match after {
            // No command blocks inside a transaction or script.
            After::Block(blocked) => {
                reply.raw(&self.outcome(worker, client, &blocked.event, true).unwrap_or_default());
                After::Continue
            }
            after => after,
        };
        if reply.position() == reply_at {
            // Outside a transaction the command has no reply (CLIENT REPLY SKIP); here one reply is counted per
            // command.
            reply.null();
        }
        after
    }

    /// Runs the handler of a command under locks, and commits what it has recorded.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "one request's whole context, passed on once")]
    pub(crate) fn run_under(
        &self,
        worker: &mut Worker,
        client: &mut Client,
        row: &'static CommandRow,
        request: Request<'_>,
        reply: Reply<'_>,
        locked: &mut Locked<'_>,
        first_key: Option<(usize, Key<'_>)>,
        on_index: OnIndex<'_>,
    ) -> CommandResult {
        let command = row.command;
        let (now_ms, now_us) = (worker.now_ms, worker.now_us);
        let stats = &worker.books.stats;
        // A command on one key sees the shard of that key, however many are locked.
        let lent = match first_key {
            Some((_, key)) => locked.lend_key(key),
            None => locked.lend(),
        };
        let mut view = View::new(lent, client.db, now_ms, self.usage(&mut worker.random), stats);
        view.notify_through(&worker.batch.notifications, self.published_events(command.handler));
        if client.no_touch || command.flags.has(Flags::NO_TOUCH) {
            view = view.without_touching();
        }
        view = on_index.view(view, self);
        if let Some(offer) = client.offer() {
            view = view.offered(offer);
        }
        let (random, in_script) = (&mut worker.random, worker.in_script);
        let args = Args::new(request, row.name_args, first_key);
        let (result, seen, garbage) = match command.handler {
            Handler::Read(handler) => {
                let is_resumed = client.unfinished.is_some();
                let mut cx = ReadCx {
                    settings: &self.settings,
                    engine: self,
                    client,
                    args,
                    reply,
                    keys: view,
                    random,
                    command: row,
                    slice: on_index.slice(),
                    is_alone: matches!(on_index, OnIndex::NoneAlone),
                    in_script,
                };
                let mut result = panics::catch(|| handler(&mut cx));
                if cx.keys.has_met_busy() {
                    result = Err(self.busy());
                }
                let seen = match command.keys.locks {
                    // Replies about the server, such as INFO's, reveal no change to data, so they need not wait for the
                    // journal.
                    Locks::Walk if !command.flags.has(Flags::READONLY) => 0,
                    _ => cx.keys.seen(),
                };
                let mut keys = cx.keys;
                if keys.has_leftovers() && self.may_expire() {
                    let mut recorder = keys.into_recorder_of(self, worker.batch.is_private, &mut worker.batch.effects);
                    recorder.change_leftovers();
                    keys = recorder.into_view();
                }
                if let Some(tracker) = &cx.client.tracker
                    && !worker.batch.is_private
                    && tracker.remembers(cx.client.caching)
                    && command.flags.has(Flags::READONLY)
                {
                    match on_index {
                        // The last slice tells the client.
                        OnIndex::NoneAlone | OnIndex::InSlices(_) if cx.client.unfinished.is_some() => {}
                        // What it replies may have changed since the first slice, and the client would learn of that before
                        // the reply, which it would then keep.
                        OnIndex::NoneAlone if is_resumed => keys.invalidate_now(row.keys(request), cx.client.id()),
                        OnIndex::No | OnIndex::NoneAlone => keys.remember(self, row.keys(request), cx.client.id()),
                        OnIndex::InSlices(_) | OnIndex::AtOnce | OnIndex::OnCopies(_) => {
                            keys.invalidate_now(row.keys(request), cx.client.id())
                        }
                    }
                }
                (result, seen, keys.take_garbage())
            }
            Handler::Write(handler) => {
                let batch_bytes = worker.batch.effects.len();
                self.pass_batch_limit(batch_bytes, view.locked(), client.db, row, request)?;
                self.pass_forks(client.db, row, request)?;
                let keys = view.into_recorder_of(self, worker.batch.is_private, &mut worker.batch.effects);
                let mut cx = WriteCx {
                    settings: &self.settings,
                    engine: self,
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
                if cx.keys.has_leftovers() {
                    cx.keys.change_leftovers();
                }
                cx.keys.count_changes();
                (result, cx.keys.locked().changed_by(), cx.keys.take_garbage())
            }
            Handler::Server(_) | Handler::Script(_) | Handler::Container => return Ok(()),
        };
        client.depends_on = client.depends_on.max(seen);
        self.commit(worker, Some(client), locked);
        self.free(garbage);
        result
    }
}
