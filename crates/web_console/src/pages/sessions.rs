//! Sessions: the list, and one with the requests to its client that are pending.

use super::value::{key_link, link_to, next};
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, facts, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

/// Pending requests on a page.
const PENDING: usize = 100;

pub(super) async fn list(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let mut cursor = if query.has("cursor") { query.get("cursor").to_vec() } else { b"0".to_vec() };
    let mut names = Vec::new();
    loop {
        let reply = visit.ask(&[b"SESSION.LIST", b"CURSOR", &cursor, b"LIMIT", b"100"]).await?;
        if let Some(refused) = refused(&reply) {
            return visit.page("Sessions", refused);
        }
        names.extend(reply.at(1).items().iter().map(|name| name.bytes().into_owned()));
        cursor = reply.at(0).bytes().into_owned();
        if cursor == b"0" || names.len() >= 100 || !visit.has_time() {
            break;
        }
    }
    let asked: Vec<Vec<u8>> =
        names.iter().flat_map(|name| [request(&[b"SESSION.INFO", name]), request(&[b"PTTL", name])]).collect();
    let replies = visit.ask_all(&asked).await?;
    let now = visit.now_ms();
    let mut rows = Html::new();
    for (name, replies) in names.iter().zip(replies.chunks_exact(2)) {
        let [info, left] = replies else { continue };
        // It may have ended since the list was made.
        if info.is_null() {
            continue;
        }
        let number = |field| info.get(field).number().unwrap_or(0.0);
        rows.put(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[
                &link_to(visit.link(Page::Session).with("sid", name), name),
                &figures::distance(number("created_at"), now),
                &time_left(left),
                &number("pending"),
                &number("replies"),
                &if number("attached") > 0.0 { "attached" } else { "–" },
            ],
        );
    }
    let list = match rows.is_empty() {
        true => empty("There is no session.", "A client opens one to have each request applied once: SESSION.OPEN"),
        false => table(&["Session", "Opened", "Ends in", "Pending#", "Replies kept#", "Client"], &rows),
    };
    let more = (cursor != b"0").then(|| visit.link(Page::Sessions).with("cursor", &cursor));
    visit.page("Sessions", html("{}{}", &[&list, &next(more)]))
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let sid = query.get("sid");
    let title = format!("Session {}", String::from_utf8_lossy(&sid[..sid.len().min(100)]));
    let (after, limit) = (query.number("after").unwrap_or(0).to_string(), PENDING.to_string());
    let replies = visit
        .ask_all(&[
            request(&[b"SESSION.INFO", sid]),
            request(&[b"SESSION.PENDING", sid, b"AFTER", after.as_bytes(), b"LIMIT", limit.as_bytes()]),
            request(&[b"PTTL", sid]),
        ])
        .await?;
    let [info, pending, left] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(info) {
        return visit.page(title, refused);
    }
    if info.is_null() {
        return visit
            .page(title, empty("There is no such session.", "It was closed or has ended. Is it another database?"));
    }
    let now = visit.now_ms();
    let number = |field| info.get(field).number().unwrap_or(0.0);
    let mut capabilities = Html::new();
    for (name, value) in info.get("capabilities").pairs() {
        capabilities.put("<span class=\"pair\"><i>{}</i> {}</span> ", &[&Short(&name.bytes()), &Short(&value.bytes())]);
    }
    let about = facts(&[
        (
            "Opened",
            html("{}, {}", &[&figures::date(number("created_at")), &figures::distance(number("created_at"), now)]),
        ),
        ("Ends in", html("{}, unless its client comes back before", &[&time_left(left)])),
        ("Time to live", html("{}", &[&figures::duration(number("ttl_ms"))])),
        ("Client", html("{}", &[&if number("attached") > 0.0 { "attached" } else { "not attached" }])),
        ("Requests pending", html("{}", &[&number("pending")])),
        ("Replies kept", html("{}, {}", &[&number("replies"), &figures::bytes(number("reply_bytes"))])),
        ("Lowest id asked for", html("{}", &[&number("low")])),
        ("Capabilities", capabilities),
        ("Key", key_link(visit, sid)),
    ]);
    let mut rows = Html::new();
    for item in pending.items() {
        rows.put(
            "<tr><td class=\"num\">{}</td><td>{}</td><td class=\"value\">{}</td></tr>",
            &[
                &item.at(0).text(),
                &item.at(2).number().map_or_else(String::new, |at| figures::distance(at, now)),
                &Short(&item.at(1).bytes()),
            ],
        );
    }
    let list = match (refused(pending), rows.is_empty()) {
        (Some(refused), _) => refused,
        (None, true) => empty("No request is pending.", "The client has acknowledged all that were pushed to it."),
        (None, false) => table(&["Id#", "Last sent", "Payload"], &rows),
    };
    let last = pending.items().last().map(|item| item.at(0).text()).unwrap_or_default();
    let more = (pending.items().len() == PENDING)
        .then(|| visit.link(Page::Session).with("sid", sid).with("after", last.as_bytes()));
    let mut actions = Html::new();
    if visit.may(&[b"SESSION.ACK", sid, b"1"]) && !last.is_empty() {
        let question = html("Acknowledge all requests up to {} in the client's place? It will not get them.", &[&last]);
        let hidden: [(&'static str, &[u8]); 2] = [("sid", sid), ("id", last.as_bytes())];
        actions.add(&visit.confirmed("ack", &"Acknowledge those below", &question, &hidden));
    }
    if visit.may(&[b"SESSION.CLOSE", sid]) {
        let question = html("Close the session <b>{}</b>? Its client gets -NOSESSION.", &[&Short(sid)]);
        actions.add(&visit.confirmed("close", &"Close the session", &question, &[("sid", sid)]));
    }
    let main =
        html("{}<div class=\"actions\">{}</div><h2>Pending requests</h2>{}{}", &[&about, &actions, &list, &next(more)]);
    visit.page(title, main)
}

/// What PTTL says of a session.
fn time_left(reply: &Reply) -> String {
    match reply.integer() {
        Some(ms) if ms >= 0 => figures::duration(ms as f64),
        _ => "–".to_owned(),
    }
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (sid, id) = (form.packed("sid"), form.packed("id"));
    match form.get("action") {
        b"close" => {
            let reply = visit.ask(&[b"SESSION.CLOSE", &sid]).await?;
            visit.note_reply(
                &reply,
                if reply.integer() == Some(1) { "The session is closed." } else { "It was closed already." },
            );
            visit.go(visit.link(Page::Sessions))
        }
        b"ack" => {
            let reply = visit.ask(&[b"SESSION.ACK", &sid, &id]).await?;
            visit.note_reply(&reply, format!("{} requests are acknowledged.", reply.text()));
            visit.go(visit.link(Page::Session).with("sid", &sid))
        }
        _ => Ok(None),
    }
}
