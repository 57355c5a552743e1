//! HOTKEYS, as in Redis 8.6: counts which keys take the server's time and network. Knows the arguments and the report; what is counted
//! is in `execution::observability::hot_keys`.

use execution::acl;
use execution::args::{Args, is_word};
use execution::context::ServerCx;
use execution::error::{CommandError, CommandResult};
use execution::observability::hot_keys::{HotKeysReport, Wanted};
use execution::upkeep::moment;

/// The default COUNT, and its limit.
const COUNT_DEFAULT: usize = 10;
const COUNT_MAX: i64 = 64;
/// The longest DURATION, in seconds.
const DURATION_S_MAX: i64 = 1_000_000;
/// How many metrics there are.
const METRICS_MAX: i64 = 2;
/// The last slot of a cluster: without one, a server has all.
const SLOT_MAX: i64 = 16_383;

/// HOTKEYS START METRICS count [CPU] [NET] [COUNT k] [DURATION seconds] [SAMPLE ratio]
pub(super) fn start(cx: &mut ServerCx<'_>) -> CommandResult {
    let engine = cx.engine;
    let active = || CommandError::fixed("ERR hotkey tracking session already in progress");
    let seen = engine.hot_keys.report(engine.statistics.workers(), |_, _| false, || moment(engine));
    // As in Redis, before the arguments are looked at.
    if seen.is_some_and(|report| report.is_active) {
        return Err(active());
    }
    let seed = cx.worker.random.u64(..);
    let wanted = parse(&mut cx.args, seed)?;
    match engine.hot_keys.start(engine.statistics.workers(), &engine.monitors, wanted, || moment(engine)) {
        true => cx.reply.ok(),
        false => return Err(active()),
    }
    Ok(())
}

fn parse(args: &mut Args<'_>, seed: u64) -> Result<Wanted, CommandError> {
    let required = CommandError::fixed("ERR METRICS parameter is required");
    if args.left() < 2 || !args.take_word("METRICS") {
        return Err(required);
    }
    let metrics = number(args, 1, METRICS_MAX, "ERR METRICS count must be > 0 and <= 2")?;
    let mut wanted = Wanted { cpu: false, net: false, count: COUNT_DEFAULT, duration_ms: None, sample: 1, seed };
    for _ in 0..metrics {
        let Some(word) = args.try_next() else {
            return Err(CommandError::fixed("ERR METRICS count does not match number of metric types provided"));
        };
        // As in Redis, a metric of a later version is passed over.
        if is_word(word, "CPU") {
            if std::mem::replace(&mut wanted.cpu, true) {
                return Err(CommandError::fixed("ERR METRICS CPU defined more than once!"));
            }
        } else if is_word(word, "NET") && std::mem::replace(&mut wanted.net, true) {
            return Err(CommandError::fixed("ERR METRICS NET defined more than once!"));
        }
    }
    if !wanted.cpu && !wanted.net {
        return Err(CommandError::fixed("ERR METRICS no valid metrics passed. Supported: CPU|NET"));
    }
    while let Some(word) = args.try_next() {
        if args.is_empty() {
            return Err(CommandError::Syntax);
        }
        if is_word(word, "COUNT") {
            wanted.count = number(args, 1, COUNT_MAX, "ERR COUNT must be between 1 and 64")? as usize;
        } else if is_word(word, "DURATION") {
            let seconds = number(args, 1, DURATION_S_MAX, "ERR DURATION must be between 1 and 1000000")?;
            wanted.duration_ms = Some(seconds as u64 * 1000);
        } else if is_word(word, "SAMPLE") {
            wanted.sample = number(args, 1, i32::MAX.into(), "ERR SAMPLE ratio must be positive")? as u32;
        } else if is_word(word, "SLOTS") {
            return Err(CommandError::fixed("ERR SLOTS parameter cannot be used in non-cluster mode"));
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(wanted)
}

/// A number from `min` to `max`; everything else is the error.
fn number(args: &mut Args<'_>, min: i64, max: i64, error: &'static str) -> Result<i64, CommandError> {
    args.int().ok().filter(|number| (min..=max).contains(number)).ok_or(CommandError::fixed(error))
}

pub(super) fn stop(cx: &mut ServerCx<'_>) -> CommandResult {
    let engine = cx.engine;
    match engine.hot_keys.stop(&engine.monitors, || moment(engine)) {
        true => cx.reply.ok(),
        false => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn reset(cx: &mut ServerCx<'_>) -> CommandResult {
    let engine = cx.engine;
    match engine.hot_keys.reset(engine.statistics.workers(), || moment(engine)) {
        true => cx.reply.ok(),
        false => {
            return Err(CommandError::fixed("ERR hotkey tracking session in progress, stop tracking first"));
        }
    }
    Ok(())
}

/// Replies with an array of one map, as in Redis, so that the reports of several servers are put together by appending. A user sees the
/// keys that it may read.
pub(super) fn get(cx: &mut ServerCx<'_>) -> CommandResult {
    let engine = cx.engine;
    let rights = cx.client.user.as_ref().unwrap_or(engine.acl.default_user()).rights();
    let may_see = |db: usize, name: &[u8]| acl::check::may_know_key(&rights, db, name);
    let Some(report) = engine.hot_keys.report(engine.statistics.workers(), may_see, || moment(engine)) else {
        cx.reply.null();
        return Ok(());
    };
    let HotKeysReport { wanted, .. } = report;
    let figure = |figure: u64| i64::try_from(figure).unwrap_or(i64::MAX);
    let numbers = [
        (true, "all-commands-all-slots-us", report.all_ns / 1000),
        (true, "net-bytes-all-commands-all-slots", report.all_bytes),
        (true, "collection-start-time-unix-ms", report.begun_unix_ms),
        (true, "collection-duration-ms", report.took_ms),
        (wanted.cpu, "total-cpu-time-user-ms", report.cpu_user_ms),
        (wanted.cpu, "total-cpu-time-sys-ms", report.cpu_system_ms),
        (wanted.net, "total-net-bytes", report.counted_bytes),
    ];
    let lists =
        [(wanted.cpu, "by-cpu-time-us", report.by_cpu_ns, 1000), (wanted.net, "by-net-bytes", report.by_net_bytes, 1)];
    let numbers = numbers.into_iter().filter(|(is_shown, ..)| *is_shown);
    let lists = lists.into_iter().filter(|(is_shown, ..)| *is_shown);
    cx.reply.array(1);
    cx.reply.map(3 + numbers.clone().count() + lists.clone().count());
    cx.reply.bulk(b"tracking-active");
    cx.reply.integer(report.is_active.into());
    cx.reply.bulk(b"sample-ratio");
    cx.reply.integer(wanted.sample.into());
    cx.reply.bulk(b"selected-slots");
    cx.reply.array(1);
    cx.reply.array(2);
    cx.reply.integer(0);
    cx.reply.integer(SLOT_MAX);
    for (_, name, value) in numbers {
        cx.reply.bulk(name.as_bytes());
        cx.reply.integer(figure(value));
    }
    for (_, name, keys, unit) in lists {
        cx.reply.bulk(name.as_bytes());
        cx.reply.array(2 * keys.len());
        for (key, sum) in keys {
            cx.reply.bulk(&key);
            cx.reply.integer(figure(sum / unit));
        }
    }
    Ok(())
}
