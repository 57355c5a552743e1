//! Followers and servers that share a log: roles, members, how far behind each is, and the hand-over to another writer.

use super::info::{Info, part};
use super::value::input;
use crate::html::{Html, html};
use crate::layout::{empty, facts, refused, table};
use crate::paths::Page;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let replies = visit.ask_all(&[request(&[b"INFO", b"replication"]), request(&[b"ROLE"])]).await?;
    let [info, role] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(info) {
        return visit.page("Cluster", refused);
    }
    let info = Info::of(info);
    let mut about = vec![("Role", html("{}", &[&role.at(0).text()]))];
    for (name, field) in [
        ("Writer", "master_host"),
        ("Writer's port", "master_port"),
        ("Link to the writer", "master_link_status"),
        ("Changes behind the writer", "lag_batches"),
        ("Milliseconds behind the writer", "lag_ms"),
        ("Followers", "connected_slaves"),
        ("Hand-over", "master_failover_state"),
        ("Position", "master_repl_offset"),
        ("Log", "log"),
        ("Epoch", "epoch"),
        ("Members of the log", "members"),
        ("Milliseconds of the lease left", "lease_ms_left"),
        ("Log connected", "log_connected"),
        ("Place in the log", "log_position"),
        ("Findings", "log_findings"),
    ] {
        if !info.get(field).is_empty() {
            about.push((name, html("{}", &[&info.get(field)])));
        }
    }
    let mut main = facts(&about);
    // A follower does not know of the others.
    if role.at(0).text() == "master" {
        main.add(&members(&info));
    }
    let mut others = Html::new();
    for (name, value) in info.with_prefix("") {
        others.put("<div><dt>{}</dt><dd>{}</dd></div>", &[&name, &value]);
    }
    main.add(&hand_over(visit, &role.at(0).text(), info.number("connected_slaves")));
    main.put("<details><summary>All of INFO replication</summary><dl class=\"facts\">{}</dl></details>", &[&others]);
    visit.page("Cluster", main)
}

fn members(info: &Info) -> Html {
    let mut rows = Html::new();
    for (name, value) in info.with_prefix("slave").filter(|(number, _)| number.parse::<u32>().is_ok()) {
        let address = format!("{}:{}", part(value, "ip"), part(value, "port"));
        rows.put(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{} s</td></tr>",
            &[&name, &address, &part(value, "state"), &part(value, "offset"), &part(value, "lag")],
        );
    }
    match rows.is_empty() {
        true => empty(
            "No follower is known here.",
            "A follower answers reads and can take over: holdfast --follow DIR, or --log nats://… on several machines (docs/cluster.md).",
        ),
        false => {
            html("<h2>Followers</h2>{}", &[&table(&["Follower", "Address", "State", "Position#", "Behind#"], &rows)])
        }
    }
}

fn hand_over(visit: &Visit<'_>, role: &str, followers: f64) -> Html {
    if role != "master" || followers < 1.0 || !visit.may(&[b"FAILOVER"]) {
        return Html::new();
    }
    let content = html(
        "<p>The follower that has applied most becomes the writer, or the one that is named. Clients reconnect.</p>{}{}\
         <button class=\"danger\">Yes, hand over</button>",
        &[&input("To host", "host", b"", "the furthest"), &input("port", "port", b"", "")],
    );
    html(
        "<div class=\"actions\"><details class=\"ask\"><summary>Hand over…</summary>{}</details></div>",
        &[&visit.form("failover", &[], &content)],
    )
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let mut words: Vec<&[u8]> = vec![b"FAILOVER"];
    if !form.typed("host").is_empty() {
        words.extend([&b"TO"[..], form.typed("host"), form.typed("port")]);
    }
    let reply = visit.ask(&words).await?;
    visit.note_reply(&reply, "The hand-over has begun. This page shows when it is done.");
    visit.go(visit.link(Page::Cluster))
}
