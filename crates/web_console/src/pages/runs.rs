//! Runs: the list by status, and one run as a timeline of its steps and events.

use super::value::{choice, input, key_link, lifetime, link_to, next};
use crate::charts::span;
use crate::figures;
use crate::html::{Html, Long, Short, html};
use crate::layout::{empty, facts, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit, search};

/// Events on a page.
const EVENTS: usize = 200;
/// The most steps in the drawing.
const STEPS_MAX: usize = 200;

const STATUSES: &[(&str, &str)] = &[
    ("", "any status"),
    ("pending", "pending"),
    ("running", "running"),
    ("paused", "paused"),
    ("completed", "completed"),
    ("failed", "failed"),
    ("cancelled", "cancelled"),
];

pub(super) async fn list(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let (status, prefix) = (query.get("status"), query.typed("prefix"));
    let mut words: Vec<&[u8]> = vec![b"RUN.LIST", b"PREFIX", prefix, b"LIMIT", b"100"];
    if !status.is_empty() {
        words.extend([&b"STATUS"[..], b"1", status]);
    }
    let mut cursor = if query.has("cursor") { query.get("cursor").to_vec() } else { b"0".to_vec() };
    let mut names = Vec::new();
    // A keyspace of other things may be walked for long without a run.
    loop {
        let mut words = words.clone();
        words.extend([&b"CURSOR"[..], &cursor]);
        let reply = visit.ask(&words).await?;
        if let Some(refused) = refused(&reply) {
            return visit.page("Runs", refused);
        }
        names.extend(reply.at(1).items().iter().map(|name| name.bytes().into_owned()));
        cursor = reply.at(0).bytes().into_owned();
        if cursor == b"0" || names.len() >= 100 || !visit.has_time() {
            break;
        }
    }
    let asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"RUN.INFO", name])).collect();
    let infos = visit.ask_all(&asked).await?;
    let now = visit.now_ms();
    let mut rows = Html::new();
    for (name, info) in names.iter().zip(&infos) {
        let status = info.get("status").bytes();
        let at = |name| info.get(name).number().map_or_else(|| "–".to_owned(), |at| figures::distance(at, now));
        rows.put(
            "<tr><td>{}</td><td>{}</td><td class=\"num\">{}</td><td>{}</td><td>{}</td></tr>",
            &[
                &link_to(visit.link(Page::Run).with("run", name), name),
                &mark(&status),
                &info.get("events").integer().unwrap_or(0),
                &at("firstAt"),
                &at("lastAt"),
            ],
        );
    }
    let filters =
        html("{}{}", &[&choice("Status", "status", status, STATUSES), &input("Name begins", "prefix", prefix, "any")]);
    let list = match rows.is_empty() {
        true => empty("No run is like that.", "A run begins with its first event: RUN.APPEND run:1 * RunStarted '{}'"),
        false => table(&["Run", "Status", "Events#", "Began", "Last event"], &rows),
    };
    let more = (cursor != b"0")
        .then(|| visit.link(Page::Runs).with_any("status", status).with_any("prefix", prefix).with("cursor", &cursor));
    visit.page("Runs", html("{}{}{}", &[&search(visit, &filters), &list, &next(more)]))
}

/// A status with its colour.
fn mark(status: &[u8]) -> Html {
    let class = match status {
        b"running" | b"pending" | b"paused" => "mark open",
        b"completed" => "mark good",
        b"failed" => "mark bad",
        _ => "mark",
    };
    html("<span class=\"{}\">{}</span>", &[&class, &Short(status)])
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let run = visit.query.get("run").to_vec();
    let title = format!("Run {}", String::from_utf8_lossy(&run[..run.len().min(100)]));
    let after = visit.query.number("after").unwrap_or(0).to_string();
    let limit = EVENTS.to_string();
    let replies = visit
        .ask_all(&[
            request(&[b"RUN.INFO", &run]),
            request(&[b"RUN.SNAPSHOT", &run]),
            request(&[b"RUN.EVENTS", &run, b"AFTER", after.as_bytes(), b"LIMIT", limit.as_bytes()]),
            request(&[b"PTTL", &run]),
        ])
        .await?;
    let [info, snapshot, events, ttl] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(info).or(refused(events)) {
        return visit.page(title, refused);
    }
    if events.items().is_empty() && info.get("status").is_null() {
        return visit
            .page(title, empty("There is no such run.", "It was deleted or has expired: see the list of runs."));
    }
    let now = visit.now_ms();
    let times = |name| {
        info.get(name)
            .number()
            .map_or_else(|| "–".to_owned(), |at| format!("{}, {}", figures::date(at), figures::distance(at, now)))
    };
    let about = facts(&[
        ("Status", mark(&info.get("status").bytes())),
        ("Events", html("{}", &[&info.get("events").text()])),
        ("First event", html("{}", &[&times("firstAt")])),
        ("Last event", html("{}", &[&times("lastAt")])),
        ("Bytes", html("{}", &[&figures::bytes(info.get("bytes").number().unwrap_or(0.0))])),
        ("Deadline", html("{}", &[&lifetime(ttl.integer())])),
        ("Key", key_link(visit, &run)),
    ]);
    let last = events.items().last().and_then(|event| event.get("runSeq").integer());
    let more = (events.items().len() == EVENTS)
        .then(|| visit.link(Page::Run).with("run", &run).with("after", last.unwrap_or(0).to_string().as_bytes()));
    let main = html(
        "{}{}<h2>Events</h2>{}{}",
        &[&about, &steps(snapshot), &timeline(events, info.get("firstAt").number()), &next(more)],
    );
    visit.page(title, main)
}

/// The steps of a snapshot as bars over the time of the run.
fn steps(snapshot: &Reply) -> Html {
    let steps: Vec<(&Reply, &Reply)> = snapshot.get("steps").pairs().take(STEPS_MAX).collect();
    if steps.is_empty() {
        return Html::new();
    }
    let at = |reply: &Reply, name| reply.get(name).number();
    let begin = steps.iter().filter_map(|(_, step)| at(step, "startedAt")).fold(f64::INFINITY, f64::min);
    let end = steps.iter().filter_map(|(_, step)| at(step, "updatedAt")).fold(begin, f64::max);
    let mut rows = Html::new();
    for (name, step) in steps {
        let (from, to) = (at(step, "startedAt").unwrap_or(begin), at(step, "updatedAt").unwrap_or(end));
        rows.put(
            "<tr><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[
                &Short(&name.bytes()),
                &mark(&step.get("status").bytes()),
                &step.get("attempts").integer().unwrap_or(0),
                &figures::duration(to - from),
                &span(from - begin, to - begin, end - begin),
            ],
        );
    }
    html("<h2>Steps</h2>{}", &[&table(&["Step", "Status", "Attempts#", "Took#", "When"], &rows)])
}

/// Events, one below the other, with how long after the first they came.
fn timeline(events: &Reply, first_at: Option<f64>) -> Html {
    const SHOWN: &[&[u8]] = &[b"runId", b"runSeq", b"eventType", b"eventData", b"stepId", b"persistedAt"];
    let mut list = Html::new();
    for event in events.items() {
        let at = event.get("persistedAt").number();
        let after =
            at.zip(first_at).map_or_else(String::new, |(at, first)| format!("+{}", figures::duration(at - first)));
        let mut step = Html::new();
        if !event.get("stepId").is_null() {
            step.put("<span class=\"pair\"><i>step</i> {}</span>", &[&Short(&event.get("stepId").bytes())]);
        }
        let mut others = Html::new();
        for (name, value) in event.pairs().filter(|(name, _)| !SHOWN.contains(&&*name.bytes())) {
            others.put("<span class=\"pair\"><i>{}</i> {}</span> ", &[&Short(&name.bytes()), &Short(&value.bytes())]);
        }
        list.put(
            "<li><p><b>{}</b> {} <span class=\"hint\">#{} {} {}</span></p><pre>{}</pre>\
             <details><summary>More of it</summary><p>{}</p></details></li>",
            &[
                &Short(&event.get("eventType").bytes()),
                &step,
                &event.get("runSeq").text(),
                &after,
                &at.map_or_else(String::new, figures::date),
                &Long(&event.get("eventData").bytes()),
                &others,
            ],
        );
    }
    html("<ol class=\"timeline\">{}</ol>", &[&list])
}
