//! One record of an index: its fields and its times, and what can be done with it. Each action is one HCAS whose conditions are
//! what the page has shown: if somebody was faster, nothing is changed, and the page says so.

use super::index::Index;
use super::peek::{self, Peek};
use super::requeue;
use super::shown::Shown;
use super::value::{age, input, key_link, lifetime, maybe_time};
use crate::html::{Html, Short, html};
use crate::layout::{empty, facts, problem, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit};

/// The memory of a record, at most, whose fields are shown here.
const RECORD_BYTES_MAX: usize = 1 << 20;

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let (name, key) = (visit.query.get("index").to_vec(), visit.query.get("key").to_vec());
    let title = format!("Record {}", String::from_utf8_lossy(&key[..key.len().min(100)]));
    let index = match Index::find(visit, &name).await? {
        Ok(index) => index,
        Err(refused) => return visit.page(title, refused),
    };
    let back =
        html("<p><a href=\"{}\">All records of the index</a></p>", &[&visit.link(Page::Index).with("index", &name)]);
    let asked = [request(&[b"HLEN", &key]), request(&[b"PTTL", &key]), request(&[b"ZSCORE", &index.name, &key])];
    let replies = visit.ask_all(&asked).await?;
    let [len, ttl, score] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(len) {
        return visit.page(title, html("{}{}", &[&back, &refused]));
    }
    let queue = requeue::queue(visit, &index, &key).await?;
    let matter = requeue::matter(&index, queue.as_ref());
    let peek = peek::read(visit, std::slice::from_ref(&key), &matter, RECORD_BYTES_MAX).await?.pop();
    let Some(peek) = peek.filter(|peek| !peek.is_gone()) else {
        let gone = empty("The record is gone.", "It was deleted or has expired. Go back to the index for others.");
        return visit.page(title, html("{}{}", &[&back, &gone]));
    };
    let now = visit.now_ms();
    let mut rows = Html::new();
    for (field, value) in peek.fields.pairs() {
        rows.put(
            "<tr><th scope=\"row\">{}</th><td class=\"value\">{}</td></tr>",
            &[&Short(&field.bytes()), &maybe_time(&value.bytes(), now)],
        );
    }
    let place = match score.number() {
        Some(score) => html("{}", &[&age(score, now)]),
        None => html("not in the index", &[]),
    };
    let times = facts(&[
        ("In the index", place),
        ("Deadline", html("{}", &[&lifetime(ttl.integer())])),
        ("Key", key_link(visit, &key)),
    ]);
    let actions = actions(visit, &index, queue.as_ref(), &key, &peek, &matter);
    let mut fields = table(&["Field", "Value"], &rows);
    if !peek.is_whole {
        let all = html(
            "<p class=\"hint\">The record is too large to show here, with {} fields: these are those that its actions need. \
             All of them: {}</p>",
            &[&len.text(), &key_link(visit, &key)],
        );
        fields = html("{}{}", &[&all, &fields]);
    }
    visit.page(title, html("{}{}{}<h2>Fields</h2>{}", &[&back, &times, &actions, &fields]))
}

fn actions(visit: &Visit<'_>, index: &Index, queue: Option<&Index>, key: &[u8], peek: &Peek, matter: &[&[u8]]) -> Html {
    if !visit.may(&[b"HCAS", key, b"SET", b"1", b"a", b"b"]) {
        return html("<p class=\"hint\">This user may not change the record.</p>", &[]);
    }
    let shown = Shown::of(key, &peek.fields, matter).filter(|_| peek.has_needed);
    let Some(shown) = shown else {
        return html(
            "<p class=\"hint\">The record cannot be changed here: it has none of the fields of its index, or they are too long \
             to be compared.</p>",
            &[],
        );
    };
    let requeue = match queue.and_then(|queue| Some((queue, queue.waiting_state()?))) {
        None => html("<p class=\"hint\">{}</p>", &[&NO_QUEUE]),
        Some((queue, state)) => {
            let mut content = html(
                "<p>Through the index <b>{}</b>: sets <code>{}</code> and the time <code>{}</code>.{}</p>",
                &[&Short(&queue.name), &Short(&queue.state_field), &Short(&queue.field), &attempts(queue, &shown)],
            );
            content.put(
                "{}{}<button class=\"main\">Requeue</button>",
                &[&input("New state", "to", state, ""), &input("in seconds", "after", b"0", "")],
            );
            let form = form(visit, "requeue", index, &shown, Some(queue), &content);
            html("<details class=\"ask\" id=\"requeue\"><summary>Requeue…</summary>{}</details>", &[&form])
        }
    };
    let cancel = html("{}<button>Cancel it</button>", &[&input("New state", "to", b"cancelled", "")]);
    let delete = html(
        "<p>Delete the record <b>{}</b> for good?</p><button class=\"danger\">Yes, Delete</button>",
        &[&Short(key)],
    );
    html(
        "<h2>Actions</h2><p class=\"hint\">Each is done only if the state, the time and the attempt are still those below.</p>\
         <div class=\"actions\">{}<details class=\"ask\"><summary>Cancel…</summary>{}</details>\
         <details class=\"ask\"><summary>Delete…</summary>{}</details></div>",
        &[
            &requeue,
            &form(visit, "cancel", index, &shown, None, &cancel),
            &form(visit, "delete", index, &shown, None, &delete),
        ],
    )
}

/// Why there is no way to queue a record again.
pub(super) const NO_QUEUE: &str = "Requeue is not offered: no index here is a queue of such records. A queue is ordered by a time \
     that the server does not stamp, and names the states that it has (ONLY or EXCLUDE), one of them of jobs that wait.";

fn attempts(queue: &Index, shown: &Shown) -> &'static str {
    match (requeue::begins_anew(queue, shown), shown.has(requeue::ATTEMPT)) {
        (true, _) => " Its attempts begin anew: attempt is 0.",
        (false, true) => " Its attempts go on: its last worker may still be at work.",
        (false, false) => "",
    }
}

fn form(
    visit: &Visit<'_>,
    action: &'static str,
    index: &Index,
    shown: &Shown,
    queue: Option<&Index>,
    content: &Html,
) -> Html {
    let content = html("<input type=\"hidden\" name=\"shown\" value=\"{}\">{}", &[&shown.packed(), content]);
    let queue = queue.map_or(&b""[..], |queue| &queue.name);
    visit.form(action, &[("index", &index.name), ("key", &shown.key), ("queue", queue)], &content)
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (name, key) = (form.packed("index"), form.packed("key"));
    let here = visit.link(Page::Record).with("index", &name).with("key", &key);
    let index = match Index::find(visit, &name).await? {
        Ok(index) => index,
        Err(refused) => return visit.page("Record", refused),
    };
    let Some(shown) = Shown::unpacked(form.get("shown")).filter(|shown| shown.key == key) else {
        return Ok(None);
    };
    let to = form.typed("to");
    let words = match form.get("action") {
        b"requeue" => match Index::find(visit, &form.packed("queue")).await? {
            Ok(queue) => requeue_words(&queue, &shown, to, form.typed("after")),
            Err(refused) => return visit.page("Record", refused),
        },
        b"cancel" if to.is_empty() => Err("The new state is empty: nothing was changed.".to_owned()),
        b"cancel" => Ok(shown.set(&[(&index.state_field, to)], &[])),
        b"delete" => match peek::names(visit, &[&key]).await?.pop().flatten() {
            Some(names) => Ok(shown.remove(names.items().iter())),
            None => {
                Err(format!("Nothing was changed: the record is gone, or has more than {} fields.", peek::FIELDS_MAX))
            }
        },
        _ => return Ok(None),
    };
    let words = match words {
        Ok(words) => words,
        Err(why) => {
            visit.note(false, why);
            return visit.go(here);
        }
    };
    let reply = visit.ask_all(&[words]).await?.pop().unwrap_or(Reply::Null);
    match (reply.error(), reply.integer()) {
        (Some(error), _) => visit.note(false, String::from_utf8_lossy(error)),
        (None, Some(1)) => visit.note(true, done(form.get("action"))),
        (None, _) => visit.note(false, LOST),
    }
    visit.go(here)
}

/// The HCAS that queues a record again, or why not.
fn requeue_words(queue: &Index, shown: &Shown, to: &[u8], after: &[u8]) -> Result<Vec<u8>, String> {
    if queue.waiting_state().is_none() || !queue.covers(&shown.key) {
        return Err(NO_QUEUE.to_owned());
    }
    let to = requeue::checked_state(queue, to)?;
    Ok(requeue::requeue(queue, shown, to, requeue::checked_ms(after)?))
}

/// What is said when somebody else was faster.
const LOST: &str =
    "Nothing was changed: another client has changed the record since this page was made. It is shown as it is now.";

fn done(action: &[u8]) -> &'static str {
    match action {
        b"requeue" => "The record is queued again.",
        b"cancel" => "The record has its new state.",
        _ => "The record is deleted.",
    }
}

/// Why a user sees no actions, if it may not run HCAS.
pub(super) fn may_not_change() -> Html {
    problem("This user may not change records (HCAS).")
}
