//! TIME, SHUTDOWN, MONITOR, SLOWLOG and other commands about the server as a whole.

use crate::shared::version::{HOLDFAST_VERSION, REDIS_VERSION};
use execution::args::is_word;
use execution::conditions;
use execution::context::{After, ServerCx};
use execution::error::{CommandError, CommandResult};
use execution::host::{SaveOnExit, Shutdown};
use execution::waiting::{Blocked, Event};
use std::fmt::Write;
use std::sync::atomic::Ordering::Relaxed;

/// The instant that the request sees: the same for all of a script or transaction.
pub(super) fn time(cx: &mut ServerCx<'_>) -> CommandResult {
    let now_us = cx.worker.now_us;
    cx.reply.array(2);
    cx.reply.bulk_integer((now_us / 1_000_000) as i64);
    cx.reply.bulk_integer((now_us % 1_000_000) as i64);
    Ok(())
}

/// LOLWUT [VERSION version] [arguments of that version].
pub(super) fn lolwut(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() >= 2 && cx.args.take_word("VERSION") {
        cx.args.int()?;
    }
    let mut art = kelp(&mut cx.worker.random);
    let _ = write!(
        art,
        "\nA holdfast is what kelp clings to the rock with.\nHoldfast ver. {HOLDFAST_VERSION}, Redis ver. {REDIS_VERSION}\n"
    );
    cx.reply.verbatim(&art);
    Ok(())
}

/// Draws a small forest of kelp: stems that sway on their way up, leaves to either side.
fn kelp(random: &mut fastrand::Rng) -> String {
    const WIDTH: usize = 64;
    const HEIGHT: usize = 12;
    let mut rows = vec![vec![' '; WIDTH]; HEIGHT];
    for root in (4..WIDTH - 4).step_by(5) {
        let mut at = root;
        for row in (random.usize(..HEIGHT / 2)..HEIGHT).rev() {
            let lean = random.usize(..3);
            at = (at + lean).clamp(2, WIDTH - 2) - 1;
            rows[row][at] = ['/', '|', '\\'][2 - lean];
            let leaf = if random.bool() { at + 1 } else { at - 1 };
            if random.u8(..3) == 0 && rows[row][leaf] == ' ' {
                rows[row][leaf] = '~';
            }
        }
    }
    let lines: Vec<String> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n") + "\n" + &"#".repeat(WIDTH) + "\n"
}

/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]
pub(super) fn shutdown(cx: &mut ServerCx<'_>) -> CommandResult {
    let (mut save, mut nosave, mut now, mut force, mut abort) = (false, false, false, false, false);
    for word in cx.args.rest() {
        let options = [
            ("SAVE", &mut save),
            ("NOSAVE", &mut nosave),
            ("NOW", &mut now),
            ("FORCE", &mut force),
            ("ABORT", &mut abort),
        ];
        match options.into_iter().find(|(name, _)| is_word(word, name)) {
            Some((_, option)) => *option = true,
            None => return Err(CommandError::Syntax),
        }
    }
    if abort && (save || nosave || now || force) || save && nosave {
        return Err(CommandError::Syntax);
    }
    if abort {
        // A shutdown never waits, so there is nothing to abort.
        return Err(CommandError::fixed("ERR No shutdown in progress."));
    }
    if cx.engine.restrictions.is_busy() && !nosave {
        // An orderly stop would wait for the script.
        return Err(conditions::busy(cx.engine));
    }
    let save = match (save, nosave) {
        (true, _) => SaveOnExit::Always,
        (_, true) => SaveOnExit::Never,
        _ => SaveOnExit::AsSet,
    };
    cx.engine.host.shutdown(Shutdown { graceful: !now, save, force });
    // The connection ends with the server. There is a reply only if saving fails and the server keeps running.
    cx.after = After::Block(Blocked { until_ms: None, event: Event::Shutdown, silent: false });
    Ok(())
}

pub(super) fn monitor(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.worker.batch.is_atomic {
        return Err(CommandError::fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    if cx.client.monitoring {
        // A second MONITOR has no reply, as in Redis.
        return Ok(());
    }
    cx.client.monitoring = true;
    cx.client.handle.monitoring.store(true, Relaxed);
    cx.engine.monitors.add(cx.client.handle.clone());
    cx.reply.ok();
    Ok(())
}

/// The default count of SLOWLOG GET.
const SLOWLOG_GET_DEFAULT: usize = 10;

pub(super) fn slowlog_get(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.left() > 1 {
        return Err(CommandError::fixed(
            "ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.",
        ));
    }
    let count = if cx.args.is_empty() {
        SLOWLOG_GET_DEFAULT
    } else {
        match cx.args.int() {
            Ok(-1) => usize::MAX,
            Ok(count @ 0..) => count as usize,
            _ => return Err(CommandError::fixed("ERR count should be greater than or equal to -1")),
        }
    };
    let entries = cx.engine.slowlog.newest(count);
    cx.reply.array(entries.len());
    for entry in &entries {
        cx.reply.array(6);
        cx.reply.integer(entry.id as i64);
        cx.reply.integer(entry.time_s as i64);
        cx.reply.integer(entry.took_us as i64);
        cx.reply.array(entry.args.len());
        entry.args.iter().for_each(|arg| cx.reply.bulk(arg));
        cx.reply.bulk(entry.address.as_bytes());
        cx.reply.bulk(&entry.name);
    }
    Ok(())
}

pub(super) fn slowlog_len(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.slowlog.len() as i64);
    Ok(())
}

pub(super) fn slowlog_reset(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.engine.slowlog.clear();
    cx.reply.ok();
    Ok(())
}
