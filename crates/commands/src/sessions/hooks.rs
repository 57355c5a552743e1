//! SESSION.HOOK: sets the functions that are called for sessions. `execution::sessions::ending` calls them.

use crate::shared::options::{argument, error, shown};
use execution::args::is_word;
use execution::commit;
use execution::conditions;
use execution::context::ScriptCx;
use execution::error::CommandResult;
use execution::own_changes;
use execution::revealed;
use execution::sessions::HookEvent;
use keyspace::{Definable, Effect};
use resp::Request;

pub(super) fn hook(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let engine = cx.engine;
    let Some(word) = cx.args.try_next() else {
        let hooks = HookEvent::ALL.map(|event| (event, engine.sessions.hook(event)));
        revealed::await_definitions(cx)?;
        cx.reply.map(hooks.len());
        for (event, function) in hooks {
            cx.reply.bulk(event.name().as_bytes());
            match function {
                Some(function) => cx.reply.bulk(&function),
                None => cx.reply.null(),
            }
        }
        return Ok(());
    };
    let Some(event) = HookEvent::ALL.into_iter().find(|event| is_word(word, event.name())) else {
        return Err(error(format!("a hook is CREATED or EXPIRED, not {}", shown(word))));
    };
    let function = argument(&mut cx.args, "the name of the function, or NONE")?;
    cx.args.finish()?;
    let function = Some(function).filter(|function| !is_word(function, "NONE"));
    if let Some(function) = function
        && engine.scripting.functions.find(function).is_none()
    {
        revealed::await_definitions(cx)?;
        return Err(error(format!("there is no function {}: FUNCTION LOAD it first", shown(function))));
    }
    let mut own;
    let mut locked = match &mut cx.held {
        Some(held) => held.lend(),
        None => {
            own = engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?;
            own.lend()
        }
    };
    let (what, name) = (Definable::Hook, event.name().as_bytes());
    let mut keys = own_changes::own_changes(engine, cx.worker, locked.lend(), cx.client.db);
    match function {
        Some(definition) => keys.record(&Effect::Define { what, name, definition }),
        None => keys.record(&Effect::Undefine { what, name }),
    };
    keys.finish();
    commit::commit(engine, cx.worker, Some(cx.client), &mut locked);
    cx.reply.ok();
    Ok(())
}

/// True for a request that only shows the hooks.
pub(super) fn only_reads(request: Request<'_>) -> bool {
    request.len() == 1
}
