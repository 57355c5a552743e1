//! Runs the work of a command in slices: on the background thread, while its client waits, or in place when there is no
//! such thread. Knows the waiting client; refuses to know the work.

use execution::background_tasks::{Answer, BackgroundTask, SlicedWork};
use execution::conditions;
use execution::context::{After, ScriptCx};
use execution::database_tokens::DatabaseToken;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::ticket::Ticket;
use execution::waiting::{Blocked, Event};
use execution::worker::Worker;
use resp::Reply;
use std::sync::Arc;

/// Takes the token of a command's database, for a command that has read nothing yet.
pub(crate) fn take_token(cx: &ScriptCx<'_, '_>) -> Result<DatabaseToken, CommandError> {
    let locked = cx.engine.keyspace.lock_shard_unless_busy(0).ok_or_else(|| conditions::busy(cx.engine))?;
    Ok(cx.engine.databases.take_token(&locked, cx.client.db))
}

/// Does one slice of a job.
type JobStep<J, T> = fn(&mut J, &Engine, &mut Worker, &DatabaseToken) -> Option<Result<T, CommandError>>;

/// Runs a job in steps. The last step returns the reply, which is short or only tells: beyond `limit:reply` it is replaced
/// by an error. IMPORTANT: a step checks the token under each set of locks
/// that it takes.
pub(crate) fn run<J: Send + 'static, T: Send + 'static>(
    cx: &mut ScriptCx<'_, '_>,
    token: DatabaseToken,
    mut job: J,
    step: JobStep<J, T>,
    reply: fn(T, &mut Reply<'_>),
) -> CommandResult {
    let (engine, row) = (cx.engine, cx.command);
    if engine.background_tasks.is_served() {
        let (ticket, handle) = (Arc::new(Ticket::default()), cx.client.handle.clone());
        cx.after = After::Block(Blocked { until_ms: None, event: Event::Background(ticket.clone()), silent: false });
        let step = Box::new(move |engine: &Engine, worker: &mut Worker| {
            let outcome = step(&mut job, engine, worker, &token)?.map_err(|error| row.explain_type(error));
            Some(outcome.map(|value| Box::new(move |to: &mut Reply<'_>| reply(value, to)) as Answer))
        });
        engine.background_tasks.send(BackgroundTask::InSlices(SlicedWork {
            step,
            ticket,
            handle,
            protocol: cx.client.protocol,
            reply_bytes_max: cx.client.reply_bytes_max,
        }));
        return Ok(());
    }
    let outcome = loop {
        if let Some(outcome) = step(&mut job, engine, cx.worker, &token) {
            break outcome;
        }
        engine.begin(cx.worker);
    };
    let tail = engine.persistence.tail();
    cx.client.last_batch = cx.client.last_batch.max(tail);
    cx.client.depends_on = cx.client.depends_on.max(tail);
    reply(outcome?, &mut cx.reply);
    Ok(())
}

/// Replies with a count.
pub(crate) fn reply_integer(count: i64, reply: &mut Reply<'_>) {
    reply.integer(count);
}
