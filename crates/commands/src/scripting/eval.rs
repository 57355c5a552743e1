//! EVAL, EVALSHA, their read-only forms, and SCRIPT. Scripts are stored in `execution::scripts`.

use execution::args::is_word;
use execution::context::{After, ScriptCx, ServerCx, StartThread};
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::indexes;
use execution::metrics;
use execution::scripts;
use execution::scripts::run::{ProgramCall, may_read_index, run_program};
use execution::scripts::{Program, ProgramKind, Unkillable};
use lua::{ScriptFlags, Shebang};
use numbers::parse_i64;
use smallvec::SmallVec;

/// A SHA-1 in hex.
const DIGEST_LEN: usize = 40;

const NO_SCRIPT: CommandError = CommandError::fixed("NOSCRIPT No matching script. Please use EVAL.");

pub(super) fn eval(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    evaluate(cx, false)
}

pub(super) fn eval_ro(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    evaluate(cx, true)
}

pub(super) fn evalsha(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    run_known(cx, false)
}

pub(super) fn evalsha_ro(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    run_known(cx, true)
}

fn evaluate(cx: &mut ScriptCx<'_, '_>, read_only: bool) -> CommandResult {
    let source = cx.args.bytes()?;
    // IMPORTANT: before the script is kept. EVALSHA finds no script of a request that was refused.
    let count = key_count(cx)?;
    let script = match cx.engine.scripting.scripts.evaluate(source) {
        Ok(script) => script,
        Err(error) => return refuse(cx, error),
    };
    let outcome = run(cx, &Program::Script(script.clone()), source, count, read_only);
    if let Err(error) = &outcome
        && *error != CommandError::AwaitsScript
        && cx.worker.compile(cx.engine, &script).as_ref() == Err(error)
    {
        // It never runs.
        cx.engine.scripting.scripts.forget(&script.sha);
    }
    outcome
}

fn run_known(cx: &mut ScriptCx<'_, '_>, read_only: bool) -> CommandResult {
    let sha = cx.args.bytes()?;
    if sha.len() != DIGEST_LEN {
        return refuse(cx, NO_SCRIPT);
    }
    let count = key_count(cx)?;
    match cx.engine.scripting.scripts.find(sha) {
        Some(script) => run(cx, &Program::Script(script), sha, count, read_only),
        None => refuse(cx, NO_SCRIPT),
    }
}

/// How many of the arguments that follow are keys.
fn key_count(cx: &mut ScriptCx<'_, '_>) -> Result<usize, CommandError> {
    let count = parse_i64(cx.args.bytes()?).ok_or(CommandError::NotInteger);
    let checked = count.and_then(|count| pass_key_count(cx, count));
    checked.or_else(|error| refuse(cx, error).map(|()| 0))
}

/// Refuses a number of keys that cannot be.
pub(super) fn pass_key_count(cx: &ScriptCx<'_, '_>, count: i64) -> Result<usize, CommandError> {
    let Ok(count) = usize::try_from(count) else {
        return Err(CommandError::fixed("ERR Number of keys can't be negative"));
    };
    if count > cx.args.left() {
        return Err(CommandError::fixed("ERR Number of keys can't be greater than number of args"));
    }
    Ok(count)
}

/// Where a program starts that may run long; `None` for bounded ones.
fn may_run_long(engine: &Engine, program: &Program) -> Option<StartThread> {
    match program {
        // The code of its library runs on first use, and has no step at which it could leave a worker.
        Program::Function(library, _) if library.is_slow_to_load => Some(StartThread::OnScriptThread),
        // Any script may call a command that calls a hook.
        _ if engine.sessions.has_hooks() => Some(scripts::leaving::start_thread(engine)),
        _ => (!program.reading().is_bounded).then_some(StartThread::OnWorker),
    }
}

/// Refuses a script before it starts. MONITOR shows it nevertheless, as in Redis.
pub(super) fn refuse(cx: &mut ScriptCx<'_, '_>, error: CommandError) -> CommandResult {
    if cx.engine.monitors.any() {
        metrics::feed_monitors(cx.engine, cx.worker, cx.client, cx.args.request());
    }
    Err(error)
}

/// Runs a script or function with so many keys; one that may run long starts where it can leave its thread. `named` is
/// its name in the request.
pub(super) fn run(
    cx: &mut ScriptCx<'_, '_>,
    program: &Program,
    named: &[u8],
    count: usize,
    read_only: bool,
) -> CommandResult {
    let all: SmallVec<[&[u8]; 16]> = cx.args.rest().collect();
    let (keys, args) = all.split_at(count);
    if cx.held.is_none()
        && cx.worker.must_detach()
        && let Some(begin) = may_run_long(cx.engine, program)
    {
        cx.after = After::Detach(begin);
        return Ok(());
    }
    let mut all = None;
    if cx.held.is_none() && may_read_index(cx.engine, program, keys) {
        all = match indexes::lock_for_index(cx.engine, cx.worker, cx.client.db) {
            Ok(all) => all,
            // It is executed again.
            Err(CommandError::AwaitsScript) => return Err(CommandError::AwaitsScript),
            Err(error) => return refuse(cx, error),
        };
        if all.is_none() {
            cx.after = After::Again;
            return Ok(());
        }
    }
    // Before the commands that it calls, as in Redis.
    if cx.engine.monitors.any() {
        metrics::feed_monitors(cx.engine, cx.worker, cx.client, cx.args.request());
    }
    let held = cx.held.take();
    let command = [cx.args.request().arg(0), named];
    let call = ProgramCall { program, command, keys, args, read_only };
    run_program(cx.engine, cx.worker, cx.client, call, &mut cx.reply, held, all)
}

pub(super) fn of_source(_: &Engine, source: &[u8]) -> Option<ScriptFlags> {
    Shebang::of_script(source).ok()?.flags
}

pub(super) fn of_digest(engine: &Engine, sha: &[u8]) -> Option<ScriptFlags> {
    engine.scripting.scripts.find(sha)?.flags
}

pub(super) fn load(cx: &mut ServerCx<'_>) -> CommandResult {
    let source = cx.args.bytes()?;
    let script = cx.engine.scripting.scripts.load(source)?;
    // Compile it now, so that errors are reported before its first run.
    if let Err(error) = cx.worker.compile(cx.engine, &script) {
        cx.engine.scripting.scripts.forget(&script.sha);
        return Err(error);
    }
    cx.reply.bulk(&script.sha);
    Ok(())
}

pub(super) fn exists(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.array(cx.args.left());
    for sha in cx.args.rest() {
        cx.reply.integer(i64::from(cx.engine.scripting.scripts.find(sha).is_some()));
    }
    Ok(())
}

pub(super) fn flush(cx: &mut ServerCx<'_>) -> CommandResult {
    match cx.args.try_next() {
        None => {}
        Some(word) if cx.args.is_empty() && (is_word(word, "SYNC") || is_word(word, "ASYNC")) => {}
        Some(_) => return Err(CommandError::fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option")),
    }
    cx.engine.scripting.scripts.flush();
    cx.reply.ok();
    Ok(())
}

pub(super) fn kill(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.scripting.long.kill(ProgramKind::Script).map_err(|why| not_killed(why, CommandError::BusyFunction))?;
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
