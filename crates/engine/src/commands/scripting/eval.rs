//! EVAL, EVALSHA, their read-only forms, and SCRIPT. Scripts are stored in `execution::scripts`.

use crate::args::is_word;
use crate::clients::Ticket;
use crate::error::{CommandError, CommandResult};
use crate::execution::context::{After, ScriptCx, ServerCx};
use crate::execution::engine::Engine;
use crate::execution::scripts::{Job, Program, ProgramKind, Script, Unkillable};
use crate::execution::waiting::{Blocked, Event};
use lua::{ScriptFlags, Shebang};
use numbers::parse_i64;
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) fn eval(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let source = cx.args.bytes()?;
    let script = cx.engine.scripts.evaluate(source)?;
    run_script(cx, script, source, false)
}

pub(super) fn eval_ro(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let source = cx.args.bytes()?;
    let script = cx.engine.scripts.evaluate(source)?;
    run_script(cx, script, source, true)
}

pub(super) fn evalsha(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (sha, script) = known(cx)?;
    run_script(cx, script, sha, false)
}

pub(super) fn evalsha_ro(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let (sha, script) = known(cx)?;
    run_script(cx, script, sha, true)
}

fn known<'a>(cx: &mut ScriptCx<'a, '_>) -> Result<(&'a [u8], Arc<Script>), CommandError> {
    let sha = cx.args.bytes()?;
    let script = cx.engine.scripts.find(sha);
    Ok((sha, script.ok_or(CommandError::fixed("NOSCRIPT No matching script. Please use EVAL."))?))
}

fn run_script(cx: &mut ScriptCx<'_, '_>, script: Arc<Script>, named: &[u8], read_only: bool) -> CommandResult {
    let count = parse_i64(cx.args.bytes()?).ok_or(CommandError::NotInteger)?;
    run(cx, &Program::Script(script), named, count, read_only)
}

/// Runs a script or function with so many keys here, or on the script thread when it may run long, or has just done so here. `named` is the name
/// by which the client called it.
pub(super) fn run(
    cx: &mut ScriptCx<'_, '_>,
    program: &Program,
    named: &[u8],
    count: i64,
    read_only: bool,
) -> CommandResult {
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::fixed("ERR Number of keys can't be negative"));
    };
    if count > cx.args.left() {
        return Err(CommandError::fixed("ERR Number of keys can't be greater than number of args"));
    }
    let all: SmallVec<[&[u8]; 16]> = cx.args.rest().collect();
    let (keys, args) = all.split_at(count);
    let runs_here = program.reading().is_bounded || program.pace().is_quick() || !cx.engine.script_thread.is_served();
    let mut all = None;
    if cx.held.is_none() && runs_here && cx.engine.may_read_index(program, keys) {
        all = cx.engine.lock_for_index(cx.worker, cx.client.db)?;
        if all.is_none() {
            cx.after = After::Again;
            return Ok(());
        }
    }
    // Before what it calls, as in Redis.
    if cx.engine.monitors.any() {
        cx.engine.feed_monitors(cx.worker, cx.client, cx.args.request());
    }
    let held = cx.held.take();
    let has_run = (held.is_some() || runs_here)
        && cx.engine.run_program(cx.worker, cx.client, program, keys, args, read_only, &mut cx.reply, held, all)?;
    if !has_run {
        send(cx, program, named, keys, args, read_only);
    }
    Ok(())
}

/// Sends a script or function to the script thread, and lets the client wait for its reply.
fn send(cx: &mut ScriptCx<'_, '_>, program: &Program, named: &[u8], keys: &[&[u8]], args: &[&[u8]], read_only: bool) {
    let owned = |args: &[&[u8]]| args.iter().map(|arg| arg.to_vec()).collect();
    let ticket = Arc::new(Ticket::default());
    cx.after = After::Block(Blocked { until_ms: None, event: Event::Background(ticket.clone()), silent: false });
    cx.engine.script_thread.send(Job {
        program: program.clone(),
        command: [cx.args.request().arg(0).to_vec(), named.to_vec()],
        keys: owned(keys),
        args: owned(args),
        read_only,
        db: cx.client.db,
        protocol: cx.client.protocol,
        handle: cx.client.handle.clone(),
        tracker: cx.client.tracker.clone(),
        caching: cx.client.caching,
        ticket,
    });
}

pub(super) fn of_source(_: &Engine, source: &[u8]) -> Option<ScriptFlags> {
    Shebang::of_script(source).ok()?.flags
}

pub(super) fn of_digest(engine: &Engine, sha: &[u8]) -> Option<ScriptFlags> {
    engine.scripts.find(sha)?.flags
}

pub(super) fn load(cx: &mut ServerCx<'_>) -> CommandResult {
    let source = cx.args.bytes()?;
    // Redis accepts scripts beyond maxmemory; here they count, as they would leave no memory for keys.
    let script = cx.engine.scripts.load(source, || cx.engine.pass_memory_limit())?;
    // Compile it now, so that errors are found before its first run.
    if let Err(error) = cx.worker.compile(cx.engine, &script) {
        cx.engine.scripts.forget(&script.sha);
        return Err(error);
    }
    cx.reply.bulk(&script.sha);
    Ok(())
}

pub(super) fn exists(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    for sha in cx.args.rest() {
        cx.reply.integer(i64::from(cx.engine.scripts.find(sha).is_some()));
    }
    Ok(())
}

pub(super) fn flush(cx: &mut ServerCx<'_>) -> CommandResult {
    match cx.args.try_next() {
        None => {}
        Some(word) if cx.args.is_empty() && (is_word(word, "SYNC") || is_word(word, "ASYNC")) => {}
        Some(_) => return Err(CommandError::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    cx.engine.scripts.flush();
    cx.reply.ok();
    Ok(())
}

pub(super) fn kill(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.script_thread.kill(ProgramKind::Script).map_err(|why| not_killed(why, CommandError::BusyFunction))?;
    cx.reply.ok();
    Ok(())
}

/// The error when nothing could be killed; `other` when a function runs instead of a script, or the reverse.
pub(super) fn not_killed(why: Unkillable, other: CommandError) -> CommandError {
    match why {
        Unkillable::NotRunning => CommandError::fixed("NOTBUSY No scripts in execution right now."),
        Unkillable::HasWritten => CommandError::fixed(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the \
             script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        ),
        Unkillable::IsOther => other,
    }
}

pub(super) fn debug(cx: &mut ServerCx<'_>) -> CommandResult {
    match cx.args.bytes()? {
        word if is_word(word, "NO") => {
            cx.reply.ok();
            Ok(())
        }
        word if is_word(word, "YES") || is_word(word, "SYNC") => {
            Err(CommandError::fixed("ERR there is no script debugger here"))
        }
        _ => Err(CommandError::fixed("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
    }
}
