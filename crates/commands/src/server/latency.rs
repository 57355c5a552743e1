//! LATENCY: how long commands take, and the spikes of events that took too long.

use execution::command::{CommandRow, registry};
use execution::context::ServerCx;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::observability::latency::{Durations, Spikes};
use std::fmt::Write;

/// The durations of a command over all workers; `None` when it was never called.
pub(super) fn durations(engine: &Engine, row: &CommandRow) -> Option<Durations> {
    let mut sum = Durations::default();
    engine.statistics.workers().iter().for_each(|metrics| metrics.histograms.sum_into(row.index, &mut sum));
    (sum.calls() > 0).then_some(sum)
}

pub(super) fn histogram(cx: &mut ServerCx<'_>) -> CommandResult {
    let rows: Vec<&CommandRow> = if cx.args.is_empty() {
        registry().rows().to_vec()
    } else {
        // A container is expanded into its subcommands.
        let named = cx.args.rest().filter_map(|name| registry().find_full(name));
        named.flat_map(|row| std::iter::once(row).chain(row.subcommands.iter().copied())).collect()
    };
    let called = rows.into_iter().filter_map(|row| Some((row, durations(cx.engine, row)?)));
    let called: Vec<(&CommandRow, Durations)> = called.collect();
    cx.reply.map(called.len());
    for (row, durations) in &called {
        cx.reply.bulk(row.full_name.as_bytes());
        cx.reply.map(2);
        cx.reply.bulk(b"calls");
        cx.reply.integer(durations.calls() as i64);
        cx.reply.bulk(b"histogram_usec");
        let bounds = durations.doubling_us();
        cx.reply.map(bounds.len());
        for (bound_us, calls) in bounds {
            cx.reply.integer(bound_us as i64);
            cx.reply.integer(calls as i64);
        }
    }
    Ok(())
}

pub(super) fn latest(cx: &mut ServerCx<'_>) -> CommandResult {
    let events = cx.engine.latency.events();
    cx.reply.array(events.len());
    for (event, spikes) in &events {
        let (time_s, took_ms) = spikes.samples.back().copied().unwrap_or_default();
        cx.reply.array(4);
        cx.reply.bulk(event.as_bytes());
        cx.reply.integer(time_s as i64);
        cx.reply.integer(took_ms as i64);
        cx.reply.integer(spikes.worst_ms as i64);
    }
    Ok(())
}

pub(super) fn history(cx: &mut ServerCx<'_>) -> CommandResult {
    let found = cx.engine.latency.event(cx.args.bytes()?);
    let samples = found.map(|(_, spikes)| spikes.samples).unwrap_or_default();
    cx.reply.array(samples.len());
    for (time_s, took_ms) in samples {
        cx.reply.array(2);
        cx.reply.integer(time_s as i64);
        cx.reply.integer(took_ms as i64);
    }
    Ok(())
}

pub(super) fn reset(cx: &mut ServerCx<'_>) -> CommandResult {
    let names: Vec<&[u8]> = cx.args.rest().collect();
    cx.reply.integer(cx.engine.latency.reset(&names) as i64);
    Ok(())
}

pub(super) fn graph(cx: &mut ServerCx<'_>) -> CommandResult {
    let name = cx.args.bytes()?;
    let Some((event, spikes)) = cx.engine.latency.event(name) else {
        let name = String::from_utf8_lossy(name);
        return Err(CommandError::said(format!("ERR No samples available for event '{name}'")));
    };
    cx.reply.verbatim(&drawn(event, &spikes, cx.now_ms / 1000));
    Ok(())
}

/// Columns and rows of a graph.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: usize = 4;
/// How full the topmost cell of a bar is.
const GRAPH_TIPS: [char; 3] = ['_', 'o', '#'];

/// Draws an event's newest spikes as bars, with the time since each written downwards beneath it.
fn drawn(event: &str, spikes: &Spikes, now_s: u64) -> String {
    let newest = spikes.samples.len().saturating_sub(GRAPH_COLUMNS);
    let shown: Vec<(u64, u64)> = spikes.samples.iter().skip(newest).copied().collect();
    let durations = || shown.iter().map(|(_, took_ms)| *took_ms);
    let (high, low) = (durations().max().unwrap_or(0), durations().min().unwrap_or(0));
    let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {} ms)\n", spikes.worst_ms);
    text.push_str(&"-".repeat(GRAPH_COLUMNS));
    text.push('\n');
    let steps = (GRAPH_ROWS * GRAPH_TIPS.len()) as u64;
    let heights: Vec<usize> =
        durations().map(|took| ((took - low) * steps / (high - low).max(1)).min(steps - 1) as usize).collect();
    for row in (0..GRAPH_ROWS).rev() {
        let base = row * GRAPH_TIPS.len();
        let cell = |height: &usize| match height.checked_sub(base) {
            None => ' ',
            Some(above) => GRAPH_TIPS.get(above).copied().unwrap_or('|'),
        };
        text.extend(heights.iter().map(cell));
        text.push('\n');
    }
    let ages: Vec<Vec<char>> = shown.iter().map(|(time_s, _)| age(now_s.saturating_sub(*time_s))).collect();
    text.push('\n');
    for line in 0..ages.iter().map(Vec::len).max().unwrap_or(0) {
        text.extend(ages.iter().map(|age| age.get(line).copied().unwrap_or(' ')));
        text.push('\n');
    }
    text
}

/// Formats a duration in its largest unit.
fn age(seconds: u64) -> Vec<char> {
    let text = match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    };
    text.chars().collect()
}

pub(super) fn doctor(cx: &mut ServerCx<'_>) -> CommandResult {
    let events = cx.engine.latency.events();
    let mut report = String::new();
    if cx.engine.settings.latency_monitor_threshold() == 0 && events.is_empty() {
        report.push_str(
            "Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> notes what takes longer.\n",
        );
    } else if events.is_empty() {
        report.push_str("No spike was noted: nothing took longer than latency-monitor-threshold.\n");
    }
    for (number, (event, spikes)) in events.iter().enumerate() {
        let count = spikes.samples.len().max(1) as u64;
        let average = spikes.samples.iter().map(|(_, took_ms)| took_ms).sum::<u64>() / count;
        let deviation = spikes.samples.iter().map(|(_, took_ms)| took_ms.abs_diff(average)).sum::<u64>() / count;
        let _ = writeln!(
            report,
            "{}. {event}: {count} latency spikes (average {average}ms, mean deviation {deviation}ms). Worst all time \
             event {}ms.",
            number + 1,
            spikes.worst_ms
        );
    }
    if !events.is_empty() {
        report.push_str("SLOWLOG GET shows which commands took long, and who sent them.\n");
    }
    cx.reply.verbatim(&report);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_a_bar_and_an_age_for_each_spike() {
        let samples = [(1000, 100), (1060, 550), (7200, 1000)].into_iter().collect();
        let text = drawn("command", &Spikes { samples, worst_ms: 2000 }, 7205);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "command - high 1000 ms, low 100 ms (all time high 2000 ms)");
        assert_eq!(lines[2..6], ["  #", " _|", " ||", "_||"]);
        assert_eq!(lines[6..], ["", "115", "hhs"]);
    }
}
