//! Runs the work of a command in slices: on the background thread, while its client waits, or right here where there is
//! none. Knows who waits; refuses to know what the work is.

use crate::clients::ticket::Ticket;
use crate::error::{CommandError, CommandResult};
use crate::execution::background_tasks::{Answer, SlicedWork, Task};
use crate::execution::context::{After, ScriptCx};
use crate::execution::engine::Engine;
use crate::execution::waiting::{Blocked, Event};
use crate::execution::worker::Worker;
use resp::Reply;
use std::sync::Arc;

/// Does the work in steps, each of which returns what is to be replied if it was the last.
pub(crate) fn run<J: Send + 'static, T: Send + 'static>(
    cx: &mut ScriptCx<'_, '_>,
    mut job: J,
    step: fn(&mut J, &Engine, &mut Worker) -> Option<Result<T, CommandError>>,
    reply: fn(T, &mut Reply<'_>),
) -> CommandResult {
    let engine = cx.engine;
    if engine.background_tasks.is_served() {
        let (ticket, handle) = (Arc::new(Ticket::default()), cx.client.handle.clone());
        cx.after = After::Block(Blocked { until_ms: None, event: Event::Background(ticket.clone()), silent: false });
        let step = Box::new(move |engine: &Engine, worker: &mut Worker| {
            let outcome = step(&mut job, engine, worker)?;
            Some(outcome.map(|value| Box::new(move |to: &mut Reply<'_>| reply(value, to)) as Answer))
        });
        engine.background_tasks.send(Task::InSlices(SlicedWork { step, ticket, handle, protocol: cx.client.protocol }));
        return Ok(());
    }
    let outcome = loop {
        if let Some(outcome) = step(&mut job, engine, cx.worker) {
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

/// Replies how many there were.
pub(crate) fn reply_integer(count: i64, reply: &mut Reply<'_>) {
    reply.integer(count);
}
