//! The clients that are connected, and how to end one.

use super::value::input;
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::visit::{Outcome, Visit, search};

/// The most clients on the page.
const CLIENTS_MAX: usize = 500;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"CLIENT", b"LIST"]).await?;
    if let Some(refused) = refused(&reply) {
        return visit.page("Clients", refused);
    }
    let text = reply.text();
    let filter = visit.query.typed("filter").to_vec();
    let wanted = String::from_utf8_lossy(&filter).into_owned();
    let found: Vec<&str> = text.lines().filter(|line| line.contains(&wanted)).collect();
    let may_kill = visit.may(&[b"CLIENT", b"KILL", b"ID", b"1"]);
    let mut rows = Html::new();
    for line in found.iter().take(CLIENTS_MAX) {
        let field = |name: &str| of(line, name);
        let id = field("id");
        let kill = match may_kill {
            true => {
                let question = html("End the connection of {} ({})?", &[&field("addr"), &field("user")]);
                visit.confirmed("kill", &"Kill", &question, &[("id", id.as_bytes())])
            }
            false => Html::new(),
        };
        let seconds = |name| figures::duration(field(name).parse::<f64>().unwrap_or(0.0) * 1000.0);
        rows.put(
            "<tr><td class=\"num\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[
                &id,
                &field("addr"),
                &Short(field("name").as_bytes()),
                &field("user"),
                &seconds("age"),
                &seconds("idle"),
                &field("cmd").replace('|', " "),
                &figures::bytes(field("tot-mem").parse().unwrap_or(0.0)),
                &field("db"),
                &kill,
            ],
        );
    }
    let list = match rows.is_empty() {
        true => {
            empty("No client is like that.", "The text is looked for in the lines of CLIENT LIST, such as user=alice.")
        }
        false => table(&["Id#", "Address", "Name", "User", "Age", "Idle", "Last command", "Memory#", "Db#", ""], &rows),
    };
    let note = html(
        "<p class=\"hint\">{} clients, of which {} are shown. One of them is this page.</p>",
        &[&found.len(), &found.len().min(CLIENTS_MAX)],
    );
    let filters = search(visit, &input("Lines with", "filter", &filter, "user=alice"));
    visit.page("Clients", html("{}{}{}", &[&filters, &note, &list]))
}

/// A field of a line of CLIENT LIST. Names of clients have no blanks.
fn of<'a>(line: &'a str, name: &str) -> &'a str {
    let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
    fields.find(|(known, _)| *known == name).map(|(_, value)| value).unwrap_or_default()
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let id = visit.form.packed("id");
    let reply = visit.ask(&[b"CLIENT", b"KILL", b"ID", &id]).await?;
    match reply.integer() {
        Some(0) => visit.note(false, "There is no such client any more."),
        _ => visit.note_reply(&reply, "The connection is closed."),
    }
    visit.go(visit.link(Page::Clients))
}
