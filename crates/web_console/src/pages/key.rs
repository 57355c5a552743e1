//! One key of any type: its value, a part at a time, and what can be done with it.

use super::value::{input, lifetime, link_to, maybe_time, next, reply_tree};
use crate::figures;
use crate::html::{Html, Link, Long, Short, html};
use crate::layout::{empty, facts, problem, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::{Outcome, Visit};

/// Elements on a page.
const ELEMENTS: u64 = 100;
/// Bytes of a string on a page.
const BYTES: u64 = 16 << 10;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let key = visit.query.get("key").to_vec();
    let title = format!("Key {}", String::from_utf8_lossy(&key[..key.len().min(100)]));
    let replies = visit
        .ask_all(&[
            request(&[b"TYPE", &key]),
            request(&[b"PTTL", &key]),
            request(&[b"OBJECT", b"ENCODING", &key]),
            request(&[b"MEMORY", b"USAGE", &key]),
        ])
        .await?;
    let [kind, ttl, encoding, bytes] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(kind) {
        return visit.page(title, refused);
    }
    let kind = kind.bytes().into_owned();
    if kind == b"none" {
        return visit
            .page(title, empty("There is no such key.", "It was deleted or has expired. Is it another database?"));
    }
    let about = facts(&[
        ("Type", html("{}", &[&Short(&kind)])),
        ("Database", html("{}", &[&visit.db])),
        ("Encoding", html("{}", &[&Short(&encoding.bytes())])),
        ("Memory", html("{}", &[&bytes.number().map_or_else(|| "–".to_owned(), figures::bytes)])),
        ("Lifetime", html("{}", &[&lifetime(ttl.integer())])),
    ]);
    // A value that is too long for a page can still be deleted from it.
    let value = value(visit, &key, &kind).await.unwrap_or_else(|trouble| problem(&trouble.to_string()));
    let actions = actions(visit, &key);
    visit.page(title, html("{}{}<h2>Value</h2>{}", &[&about, &actions, &value]))
}

async fn value(visit: &mut Visit<'_>, key: &[u8], kind: &[u8]) -> Result<Html, Trouble> {
    match kind {
        b"string" => string(visit, key).await,
        b"hash" => scanned(visit, key, b"HSCAN", &["Field", "Value"]).await,
        b"set" => scanned(visit, key, b"SSCAN", &["Member"]).await,
        b"list" => list(visit, key).await,
        b"zset" => sorted_set(visit, key).await,
        b"stream" => stream(visit, key).await,
        b"cell" => {
            Ok(html("<p>{}</p>", &[&link_to(visit.link(Page::Cell).with("cell", key), b"The cell and its history")]))
        }
        b"run" => Ok(html("<p>{}</p>", &[&link_to(visit.link(Page::Run).with("run", key), b"The run and its events")])),
        b"session" => Ok(html(
            "<p>{}</p>",
            &[&link_to(visit.link(Page::Session).with("sid", key), b"The session and its requests")],
        )),
        b"register" => {
            let reply = visit.ask(&[b"REG.GET", key]).await?;
            Ok(refused(&reply).unwrap_or_else(|| {
                let version = facts(&[("Version", html("{}", &[&Short(&reply.at(1).bytes())]))]);
                html("{}<pre class=\"value\">{}</pre>", &[&version, &Long(&reply.at(0).bytes())])
            }))
        }
        _ => Ok(empty("This type has no view.", "The prompt has the commands for it.")),
    }
}

/// Where the part on this page begins, and the link to the next one.
fn part(visit: &Visit<'_>) -> u64 {
    visit.query.number("from").unwrap_or(0)
}

fn onward(visit: &Visit<'_>, key: &[u8], from: u64) -> Link {
    visit.link(Page::Key).with("key", key).with("from", from.to_string().as_bytes())
}

async fn string(visit: &mut Visit<'_>, key: &[u8]) -> Result<Html, Trouble> {
    let from = part(visit);
    let (begin, end) = (from.to_string(), from.saturating_add(BYTES - 1).to_string());
    let replies = visit
        .ask_all(&[request(&[b"STRLEN", key]), request(&[b"GETRANGE", key, begin.as_bytes(), end.as_bytes()])])
        .await?;
    let [len, text] = replies.as_slice() else { return Ok(Html::new()) };
    if let Some(refused) = refused(text) {
        return Ok(refused);
    }
    let len = len.integer().unwrap_or(0) as u64;
    let more = (from + BYTES < len).then(|| onward(visit, key, from + BYTES));
    Ok(html(
        "<p class=\"hint\">{} bytes; this is from byte {} on.</p><pre class=\"value\">{}</pre>{}",
        &[&len, &from, &Long(&text.bytes()), &next(more)],
    ))
}

/// The value of a hash or a set, which have cursors.
async fn scanned(visit: &mut Visit<'_>, key: &[u8], command: &[u8], heads: &[&str]) -> Result<Html, Trouble> {
    let from = part(visit).to_string();
    let reply = visit.ask(&[command, key, from.as_bytes(), b"COUNT", b"100"]).await?;
    if let Some(refused) = refused(&reply) {
        return Ok(refused);
    }
    let (mut rows, now) = (Html::new(), visit.now_ms());
    // A small value comes as a whole.
    for item in reply.at(1).items().chunks(heads.len()).take(2000) {
        match item {
            [member] => rows.put("<tr><td class=\"value\">{}</td></tr>", &[&Long(&member.bytes())]),
            [field, value] => rows.put(
                "<tr><th scope=\"row\">{}</th><td class=\"value\">{}</td></tr>",
                &[&Short(&field.bytes()), &maybe_time(&value.bytes(), now)],
            ),
            _ => {}
        }
    }
    let cursor: u64 = reply.at(0).text().parse().unwrap_or(0);
    let more = (cursor != 0).then(|| onward(visit, key, cursor));
    Ok(html("{}{}", &[&table(heads, &rows), &next(more)]))
}

async fn list(visit: &mut Visit<'_>, key: &[u8]) -> Result<Html, Trouble> {
    let from = part(visit);
    let (begin, end) = (from.to_string(), (from.saturating_add(ELEMENTS - 1)).to_string());
    let replies = visit
        .ask_all(&[request(&[b"LLEN", key]), request(&[b"LRANGE", key, begin.as_bytes(), end.as_bytes()])])
        .await?;
    let [len, items] = replies.as_slice() else { return Ok(Html::new()) };
    if let Some(refused) = refused(items) {
        return Ok(refused);
    }
    let mut rows = Html::new();
    for (number, item) in items.items().iter().enumerate() {
        rows.put(
            "<tr><td class=\"num\">{}</td><td class=\"value\">{}</td></tr>",
            &[&(from + number as u64), &Long(&item.bytes())],
        );
    }
    let len = len.integer().unwrap_or(0) as u64;
    let more = (from + ELEMENTS < len).then(|| onward(visit, key, from + ELEMENTS));
    Ok(html("<p class=\"hint\">{} elements</p>{}{}", &[&len, &table(&["#", "Element"], &rows), &next(more)]))
}

async fn sorted_set(visit: &mut Visit<'_>, key: &[u8]) -> Result<Html, Trouble> {
    let from = part(visit);
    let (begin, end) = (from.to_string(), (from.saturating_add(ELEMENTS - 1)).to_string());
    let replies = visit
        .ask_all(&[
            request(&[b"ZCARD", key]),
            request(&[b"ZRANGE", key, begin.as_bytes(), end.as_bytes(), b"WITHSCORES"]),
        ])
        .await?;
    let [len, items] = replies.as_slice() else { return Ok(Html::new()) };
    if let Some(refused) = refused(items) {
        return Ok(refused);
    }
    let (mut rows, now) = (Html::new(), visit.now_ms());
    for item in items.items() {
        rows.put(
            "<tr><td class=\"value\">{}</td><td>{}</td></tr>",
            &[&Long(&item.at(0).bytes()), &maybe_time(&item.at(1).bytes(), now)],
        );
    }
    let len = len.integer().unwrap_or(0) as u64;
    let more = (from + ELEMENTS < len).then(|| onward(visit, key, from + ELEMENTS));
    Ok(html(
        "<p class=\"hint\">{} members, lowest score first</p>{}{}",
        &[&len, &table(&["Member", "Score"], &rows), &next(more)],
    ))
}

async fn stream(visit: &mut Visit<'_>, key: &[u8]) -> Result<Html, Trouble> {
    let query = visit.query.clone();
    let from = if query.get("id").is_empty() { b"-" } else { query.get("id") };
    let replies = visit
        .ask_all(&[
            request(&[b"XLEN", key]),
            request(&[b"XRANGE", key, from, b"+", b"COUNT", b"100"]),
            request(&[b"XINFO", b"GROUPS", key]),
        ])
        .await?;
    let [len, items, groups] = replies.as_slice() else { return Ok(Html::new()) };
    if let Some(refused) = refused(items) {
        return Ok(refused);
    }
    let mut rows = Html::new();
    for item in items.items() {
        let mut fields = Html::new();
        for (name, value) in item.at(1).pairs() {
            fields.put("<span class=\"pair\"><i>{}</i> {}</span> ", &[&Short(&name.bytes()), &Short(&value.bytes())]);
        }
        rows.put(
            "<tr><td><code>{}</code></td><td class=\"value\">{}</td></tr>",
            &[&Short(&item.at(0).bytes()), &fields],
        );
    }
    let last = items.items().last().map(|item| item.at(0).bytes().into_owned());
    let more = last
        .filter(|_| items.items().len() == 100)
        .map(|last| visit.link(Page::Key).with("key", key).with("id", &[b"(", last.as_slice()].concat()));
    let groups = match groups.items().is_empty() {
        true => Html::new(),
        false => html("<h2>Groups</h2>{}", &[&reply_tree(groups)]),
    };
    let len = len.integer().unwrap_or(0);
    Ok(html("<p class=\"hint\">{} entries</p>{}{}{}", &[&len, &table(&["Id", "Fields"], &rows), &next(more), &groups]))
}

fn actions(visit: &Visit<'_>, key: &[u8]) -> Html {
    let mut actions = Html::new();
    let hidden: [(&'static str, &[u8]); 1] = [("key", key)];
    if visit.may(&[b"PEXPIRE", key, b"1"]) {
        let expire = html("{}<button>Set it</button>", &[&input("Seconds to live", "seconds", b"3600", "")]);
        actions.put(
            "<details class=\"ask\"><summary>Expire…</summary>{}</details>",
            &[&visit.form("expire", &hidden, &expire)],
        );
    }
    if visit.may(&[b"PERSIST", key]) {
        let question = html("Let <b>{}</b> live for ever?", &[&Short(key)]);
        actions.add(&visit.confirmed("persist", &"Never expire", &question, &hidden));
    }
    if visit.may(&[b"UNLINK", key]) {
        let question = html("Delete <b>{}</b> for good?", &[&Short(key)]);
        actions.add(&visit.confirmed("delete", &"Delete", &question, &hidden));
    }
    html("<div class=\"actions\">{}</div>", &[&actions])
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let key = form.packed("key");
    let here = visit.link(Page::Key).with("key", &key);
    let seconds = form.typed("seconds");
    // EXPIRE would delete the key at once, and nobody was asked whether it may.
    if form.get("action") == b"expire" && !is_time_to_live(seconds) {
        visit.note(
            false,
            "Seconds to live must be a whole number from 1 on: nothing was changed. To remove the key, delete it.",
        );
        return visit.go(here);
    }
    let (words, done): (Vec<&[u8]>, &str) = match form.get("action") {
        b"expire" => (vec![b"EXPIRE", &key, seconds], "It has its time to live."),
        b"persist" => (vec![b"PERSIST", &key], "It does not expire."),
        b"delete" => (vec![b"UNLINK", &key], "The key is deleted."),
        _ => return Ok(None),
    };
    let reply = visit.ask(&words).await?;
    match reply {
        Reply::Integer(0) => visit.note(false, "Nothing was changed: the key is gone, or it was so already."),
        reply => visit.note_reply(&reply, done),
    }
    visit.go(here)
}

/// True for seconds of which EXPIRE makes a deadline that is still to come.
fn is_time_to_live(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok_and(|seconds| seconds >= 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_is_still_to_come() {
        assert!(is_time_to_live(b"1") && is_time_to_live(b"3600"));
        for text in ["", "0", "-1", "-0", "1.5", "x", "10m", "1e3", "9223372036854775808"] {
            assert!(!is_time_to_live(text.as_bytes()), "{text}");
        }
    }
}
