//! All indexes: how many records each has, how many are due, and how late the oldest is.

use super::index::Index;
use super::value::{age, link_to};
use crate::html::{Html, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

/// The most indexes on the page.
const INDEXES_MAX: usize = 200;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"IDX.LIST"]).await?;
    if let Some(refused) = refused(&reply) {
        return visit.page("Jobs", refused);
    }
    let mut names: Vec<Vec<u8>> = reply.items().iter().map(|name| name.bytes().into_owned()).collect();
    names.sort();
    let now = format!("{}", visit.now_ms());
    let asked = names.iter().take(INDEXES_MAX).flat_map(|name| {
        [
            request(&[b"IDX.INFO", name]),
            request(&[b"ZCOUNT", name, b"-inf", now.as_bytes()]),
            request(&[b"ZRANGE", name, b"0", b"0", b"WITHSCORES"]),
        ]
    });
    let replies = visit.ask_all(&asked.collect::<Vec<_>>()).await?;
    let mut rows = Html::new();
    for (name, replies) in names.iter().zip(replies.chunks_exact(3)) {
        rows.add(&row(visit, name, replies));
    }
    let main = match rows.is_empty() {
        true => empty(
            "There is no index.",
            "An index finds the records of a queue by a time or another number: \
             IDX.CREATE due PREFIX 1 job: FIELD run_at ONLY state 2 pending running",
        ),
        false => html(
            "<p class=\"hint\">An index is a queue if its numbers are times: a record is due when its time has come.</p>{}",
            &[&table(&["Index", "Records under", "By field", "Entries#", "Due#", "Oldest", "Groups#"], &rows)],
        ),
    };
    visit.page("Jobs", main)
}

fn row(visit: &Visit<'_>, name: &[u8], replies: &[Reply]) -> Html {
    let [info, due, oldest] = replies else { return Html::new() };
    let link = link_to(visit.link(Page::Index).with("index", name), name);
    if let Some(error) = info.error() {
        return html("<tr><td>{}</td><td colspan=\"6\">{}</td></tr>", &[&link, &Short(error)]);
    }
    let mut prefixes = Html::new();
    for prefix in info.get("prefixes").items() {
        prefixes.put("<code>{}</code> ", &[&Short(&prefix.bytes())]);
    }
    let score = oldest.at(0).at(1).number();
    let index = Index::new(name, info);
    // Of an index that is no queue, such as that of the dead letters, nothing is due.
    let due = match index.states.is_empty() && !index.stamps || index.waiting_state().is_some() {
        true => due.text(),
        false => "–".to_owned(),
    };
    let groups = match &index.group {
        Some(_) => html("<a href=\"{}\">{}</a>", &[&visit.link(Page::Groups).with("index", name), &index.groups]),
        None => html("–", &[]),
    };
    html(
        "<tr><td>{}</td><td>{}</td><td><code>{}</code></td><td class=\"num\">{}</td><td class=\"num\">{}</td><td>{}</td>\
         <td class=\"num\">{}</td></tr>",
        &[
            &link,
            &prefixes,
            &Short(&info.get("field").bytes()),
            &info.get("entries").text(),
            &due,
            &score.map_or_else(|| "–".to_owned(), |score| age(score, visit.now_ms())),
            &groups,
        ],
    )
}
