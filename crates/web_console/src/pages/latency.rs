//! Latency: spikes by event, and how long commands take.

use super::info::{Info, part};
use crate::charts::{Line, plot};
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

/// The most commands in the table: those that took most time.
const COMMANDS_MAX: usize = 100;
/// Spikes that LATENCY HISTORY keeps.
const SPIKES_MAX: usize = 160;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let replies = visit
        .ask_all(&[request(&[b"LATENCY", b"LATEST"]), request(&[b"INFO", b"commandstats", b"latencystats"])])
        .await?;
    let [latest, info] = replies.as_slice() else { return Ok(None) };
    let events = match refused(latest) {
        Some(refused) => refused,
        None if latest.items().is_empty() => empty(
            "No spike was seen.",
            "Events are watched that take longer than latency-monitor-threshold milliseconds; 0 watches none.",
        ),
        None => {
            let names: Vec<Vec<u8>> = latest.items().iter().map(|event| event.at(0).bytes().into_owned()).collect();
            let asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"LATENCY", b"HISTORY", name])).collect();
            let histories = visit.ask_all(&asked).await?;
            let (mut rows, mut plots, now) = (Html::new(), Html::new(), visit.now_ms());
            for (event, history) in latest.items().iter().zip(&histories) {
                rows.put(
                    "<tr><td>{}</td><td>{}</td><td class=\"num\">{} ms</td><td class=\"num\">{} ms</td></tr>",
                    &[
                        &Short(&event.at(0).bytes()),
                        &figures::distance(event.at(1).number().unwrap_or(0.0) * 1000.0, now),
                        &event.at(2).text(),
                        &event.at(3).text(),
                    ],
                );
                let values = history.items().iter().filter_map(|spike| spike.at(1).number()).collect();
                let lines = [Line { name: "spikes", values }];
                plots.add(&plot(&event.at(0).text(), &lines, SPIKES_MAX, figures::duration));
            }
            html("{}<div class=\"plots\">{}</div>", &[&table(&["Event", "Last", "Took#", "Worst#"], &rows), &plots])
        }
    };
    let reset = match visit.may(&[b"LATENCY", b"RESET"]) && !latest.items().is_empty() {
        true => visit.confirmed("reset", &"Clear the events", &"Forget all spikes?", &[]),
        false => Html::new(),
    };
    let commands = match refused(info) {
        Some(refused) => refused,
        None => commands(&Info::of(info)),
    };
    visit.page(
        "Latency",
        html("<h2>Events</h2><div class=\"actions\">{}</div>{}<h2>Commands</h2>{}", &[&reset, &events, &commands]),
    )
}

fn commands(info: &Info) -> Html {
    let number = |value: &str, name| part(value, name).parse::<f64>().unwrap_or(0.0);
    let mut all: Vec<(&str, &str)> = info.with_prefix("cmdstat_").collect();
    all.sort_by(|one, other| number(other.1, "usec").total_cmp(&number(one.1, "usec")));
    let mut rows = Html::new();
    for (name, stats) in all.into_iter().take(COMMANDS_MAX) {
        let percentiles = info.get(&format!("latency_percentiles_usec_{name}"));
        let time = |name| match part(percentiles, name) {
            "" => "–".to_owned(),
            text => figures::micros(text.parse().unwrap_or(0.0)),
        };
        rows.put(
            "<tr><td><code>{}</code></td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
            &[
                &name,
                &figures::number(number(stats, "calls")),
                &figures::micros(number(stats, "usec")),
                &time("p50"),
                &time("p99"),
                &time("p99.9"),
                &figures::number(number(stats, "failed_calls") + number(stats, "rejected_calls")),
            ],
        );
    }
    table(&["Command", "Calls#", "Altogether#", "p50#", "p99#", "p99.9#", "Errors#"], &rows)
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"LATENCY", b"RESET"]).await?;
    visit.note_reply(&reply, "The events are forgotten.");
    visit.go(visit.link(Page::Latency))
}
