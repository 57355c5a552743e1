//! The settings: what they are, and CONFIG SET.

use super::value::input;
use crate::html::{Html, Long, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::visit::{Outcome, Visit, search};
use engine::Settings;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let reply = visit.ask(&[b"CONFIG", b"GET", b"*"]).await?;
    if let Some(refused) = refused(&reply) {
        return visit.page("Configuration", refused);
    }
    let filter = visit.query.typed("filter").to_vec();
    let wanted = String::from_utf8_lossy(&filter).to_ascii_lowercase();
    let may_set = visit.may(&[b"CONFIG", b"SET", b"a", b"b"]);
    let mut settings: Vec<(Vec<u8>, Vec<u8>)> =
        reply.pairs().map(|(name, value)| (name.bytes().into_owned(), value.bytes().into_owned())).collect();
    settings.sort();
    let mut rows = Html::new();
    for (name, value) in settings.iter().filter(|(name, _)| String::from_utf8_lossy(name).contains(&wanted)) {
        // CONFIG GET tells secrets, as in Redis; but a screen is seen by more people.
        let is_secret = !value.is_empty() && Settings::find(name).is_none_or(|row| row.sensitive);
        let shown = if is_secret {
            html("<span class=\"odd\">set, not shown</span>", &[])
        } else {
            html("{}", &[&Long(value)])
        };
        let change = match may_set {
            true => {
                let now = if is_secret { &b""[..] } else { value };
                let content = html("{}<button>Set</button>", &[&input("New value", "value", now, "")]);
                let hidden: [(&'static str, &[u8]); 2] = [("name", name), ("filter", &filter)];
                html(
                    "<details class=\"ask\"><summary>Change…</summary>{}</details>",
                    &[&visit.form("set", &hidden, &content)],
                )
            }
            false => Html::new(),
        };
        rows.put(
            "<tr><th scope=\"row\"><code>{}</code></th><td class=\"value\">{}</td><td>{}</td></tr>",
            &[&Short(name), &shown, &change],
        );
    }
    let mut actions = Html::new();
    if visit.may(&[b"CONFIG", b"REWRITE"]) {
        let question = "Write the settings as they are now into the configuration file?";
        actions.add(&visit.confirmed("rewrite", &"Write to the file", &question, &[]));
    }
    if visit.may(&[b"CONFIG", b"RESETSTAT"]) {
        let question = "Set the counters of INFO back to 0? Prometheus takes that for a restart.";
        actions.add(&visit.confirmed("resetstat", &"Reset the counters", &question, &[]));
    }
    let list = match rows.is_empty() {
        true => empty("No setting is called so.", "docs/SETTINGS.md and config/holdfast.toml describe all of them."),
        false => table(&["Setting", "Value", ""], &rows),
    };
    let filters = search(visit, &input("Name has", "filter", &filter, "memory"));
    visit.page("Configuration", html("{}<div class=\"actions\">{}</div>{}", &[&filters, &actions, &list]))
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (name, filter) = (form.packed("name"), form.packed("filter"));
    let (words, done): (Vec<&[u8]>, String) = match form.get("action") {
        b"set" => {
            let shown = String::from_utf8_lossy(&name).into_owned();
            (
                vec![b"CONFIG", b"SET", &name, form.get("value")],
                format!("{shown} is changed, until the next start: write it to the file to keep it."),
            )
        }
        b"rewrite" => (vec![b"CONFIG", b"REWRITE"], "The configuration file is written.".to_owned()),
        b"resetstat" => (vec![b"CONFIG", b"RESETSTAT"], "The counters are at 0.".to_owned()),
        _ => return Ok(None),
    };
    let reply = visit.ask(&words).await?;
    visit.note_reply(&reply, done);
    visit.go(visit.link(Page::Configuration).with_any("filter", &filter))
}
