//! The slow log: the requests that took longest.

use super::value::link_to;
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::visit::{Outcome, Visit};

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"SLOWLOG", b"GET", b"128"]).await?;
    if let Some(refused) = refused(&reply) {
        return visit.page("Slow log", refused);
    }
    let now = visit.now_ms();
    let mut rows = Html::new();
    for entry in reply.items() {
        let mut request = Html::new();
        for word in entry.at(3).items() {
            request.put("{} ", &[&Short(&word.bytes())]);
        }
        rows.put(
            "<tr><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td><td class=\"value\"><code>{}</code></td><td>{} {}</td></tr>",
            &[
                &entry.at(0).text(),
                &figures::micros(entry.at(2).number().unwrap_or(0.0)),
                &figures::distance(entry.at(1).number().unwrap_or(0.0) * 1000.0, now),
                &request,
                &Short(&entry.at(4).bytes()),
                &Short(&entry.at(5).bytes()),
            ],
        );
    }
    let setting = link_to(visit.link(Page::Configuration).with("filter", b"slowlog"), b"slowlog-log-slower-than");
    let main = match rows.is_empty() {
        true => html(
            "{}<p>{} says how slow is slow.</p>",
            &[&empty("No request was slow.", "Requests come here that take longer than a setting says."), &setting],
        ),
        false => {
            let reset = match visit.may(&[b"SLOWLOG", b"RESET"]) {
                true => visit.confirmed("reset", &"Clear the log", &"Forget all these requests?", &[]),
                false => Html::new(),
            };
            let list = table(&["Id#", "Took#", "When", "Request", "Client"], &rows);
            html(
                "<div class=\"actions\">{}</div>{}<p class=\"hint\">{} says how slow is slow.</p>",
                &[&reset, &list, &setting],
            )
        }
    };
    visit.page("Slow log", main)
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"SLOWLOG", b"RESET"]).await?;
    visit.note_reply(&reply, "The slow log is empty.");
    visit.go(visit.link(Page::SlowLog))
}
