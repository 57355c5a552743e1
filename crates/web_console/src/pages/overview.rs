//! The first page: what the server does now, and did in the last hour.

use super::info::Info;
use super::trouble::{self, Found};
use crate::charts::{Line, plot};
use crate::figures;
use crate::history::{SAMPLES_MAX, Sample};
use crate::html::{Html, html};
use crate::layout::{facts, refused};
use crate::visit::{Outcome, Shown, Visit};

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"INFO", b"everything"]).await?;
    // The plots are counters of INFO over time: a user that may not run it does not see them either.
    let live = match (refused(&reply), reply.error()) {
        (Some(refused), Some(error)) if error.starts_with(b"NOPERM") => {
            html("{}<p>This page is for users that may run INFO.</p>", &[&refused])
        }
        (Some(refused), _) => refused,
        (None, _) => {
            let info = Info::of(&reply);
            let found = trouble::find(visit, &info).await?;
            live(visit, &info, &found)
        }
    };
    if visit.query.has("part") {
        return Ok(Some(Shown::Part(live)));
    }
    visit.page("Overview", html("<div data-live=\"/console?part=1\" data-every=\"5\">{}</div>", &[&live]))
}

fn live(visit: &Visit<'_>, info: &Info, found: &Found) -> Html {
    html("{}<div class=\"plots\">{}</div>{}", &[&state(visit.db, found), &plots(visit), &now(info)])
}

/// What needs somebody's attention first; or what was looked at, if nothing does.
fn state(db: usize, found: &Found) -> Html {
    let mut lines = Html::new();
    for line in &found.wrong {
        lines.put("<p class=\"notice bad\">{}</p>", &[line]);
    }
    if found.wrong.is_empty() {
        lines.put(
            "<p class=\"notice good\">Nothing wrong was found in the journal, snapshots, memory, connections, sweepers, followers \
             and the log, and no record is late in the {} indexes that were looked at in database {}.</p>",
            &[&found.indexes, &db],
        );
    }
    if !found.unseen.is_empty() {
        lines.put("<p class=\"hint\">Not looked at: {}.</p>", &[&found.unseen.join("; ")]);
    }
    lines
}

fn plots(visit: &Visit<'_>) -> Html {
    let history = visit.console.history();
    let values = |of: fn(&Sample) -> f64| history.samples().map(of).collect::<Vec<f64>>();
    let draw = |title: &str, lines: Vec<Line<'_>>, shown: fn(f64) -> String| plot(title, &lines, SAMPLES_MAX, shown);
    let one = |name, of| vec![Line { name, values: values(of) }];
    let mut plots = Html::new();
    plots.add(&draw("Requests", one("per second", |sample| sample.requests_per_second), figures::number));
    let latency = vec![
        Line { name: "p50", values: values(|sample| sample.p50_us) },
        Line { name: "p99", values: values(|sample| sample.p99_us) },
    ];
    plots.add(&draw("Time of commands", latency, figures::micros));
    plots.add(&draw("Errors", one("per second", |sample| sample.errors_per_second), figures::number));
    plots.add(&draw("Memory", one("used", |sample| sample.memory_bytes), figures::bytes));
    plots.add(&draw("Connections", one("open", |sample| sample.connections), figures::number));
    plots.add(&draw("Journal", one("size", |sample| sample.journal_bytes), figures::bytes));
    plots.add(&draw("Not on disk yet", one("batches", |sample| sample.unsynced_batches), figures::number));
    plots
}

fn now(info: &Info) -> Html {
    let text = |name: &str| html("{}", &[&info.get(name)]);
    let bytes = |name: &str| html("{}", &[&figures::bytes(info.number(name))]);
    let count = |name: &str| html("{}", &[&figures::number(info.number(name))]);
    let mut keys = Html::new();
    for (db, value) in info.with_prefix("db").filter(|(db, _)| db.parse::<u8>().is_ok()) {
        keys.put("db{}: {} ", &[&db, &value]);
    }
    if keys.is_empty() {
        keys.raw("none");
    }
    let saved = (info.number("server_time_usec") / 1e6 - info.number("rdb_last_save_time")).max(0.0) * 1000.0;
    html(
        "<h2>Now</h2>{}",
        &[&facts(&[
            ("Version", text("holdfast_version")),
            ("Up for", html("{}", &[&figures::duration(info.number("uptime_in_seconds") * 1000.0)])),
            ("Role", text("role")),
            ("Requests a second", count("instantaneous_ops_per_sec")),
            ("Requests altogether", count("total_commands_processed")),
            ("Error replies", count("total_error_replies")),
            ("Clients", html("{} of {}", &[&info.get("connected_clients"), &info.get("maxclients")])),
            ("Waiting clients", text("blocked_clients")),
            ("Memory", bytes("used_memory")),
            ("Highest", bytes("used_memory_peak")),
            ("maxmemory", if info.number("maxmemory") > 0.0 { bytes("maxmemory") } else { html("no limit", &[]) }),
            (
                "Journal",
                html("{}", &[&if info.get("journal_state").is_empty() { "off" } else { info.get("journal_state") }]),
            ),
            ("Journal's size", bytes("aof_current_size")),
            (
                "Batches, on disk",
                html("{}, {}", &[&info.get("journal_sequence"), &info.get("journal_durable_sequence")]),
            ),
            ("Last snapshot", html("{} ago, {}", &[&figures::duration(saved), &info.get("rdb_last_bgsave_status")])),
            ("Keys", keys),
        ])],
    )
}
