//! Records by state, in bulk: dead letters are queued again or deleted many at a time, each by an HCAS of its own that fails if
//! the record is not as the page has shown it.

use super::index::{Index, RECORD_BYTES_MAX, others};
use super::peek::{self, Peek};
use super::record;
use super::requeue;
use super::shown::Shown;
use super::value::{input, link_to, maybe_time, next};
use crate::html::{Html, Short, html};
use crate::layout::{empty, problem, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::Trouble;
use crate::visit::{Outcome, Visit, search};

/// Records on a page.
const RECORDS: usize = 200;
/// The most bytes of all records that are chosen in one form, as the browser sends them.
const FORM_BYTES_MAX: usize = 256 << 10;

/// What a person looks for.
struct Search {
    index: Index,
    /// Through which those that are found are queued again.
    queue: Option<Index>,
    prefix: Vec<u8>,
    field: Vec<u8>,
    state: Vec<u8>,
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let index = match Index::find(visit, query.get("index")).await? {
        Ok(index) => index,
        Err(refused) => return visit.page("Dead letters", refused),
    };
    let state = if query.has("state") { query.typed("state").to_vec() } else { b"dead".to_vec() };
    let field = if query.typed("field").is_empty() { index.state_field.clone() } else { query.typed("field").to_vec() };
    let prefix = match query.typed("prefix") {
        b"" => index.prefixes.first().cloned().unwrap_or_default(),
        given => given.to_vec(),
    };
    let queue = requeue::queue(visit, &index, &prefix).await?;
    let sought = Search { index, queue, prefix, field, state };
    let filters = html(
        "<input type=\"hidden\" name=\"index\" value=\"{}\">{}{}{}",
        &[
            &String::from_utf8_lossy(&sought.index.name).into_owned(),
            &input("Under", "prefix", &sought.prefix, "job:"),
            &input("field", "field", &sought.field, "state"),
            &input("is", "state", &sought.state, "dead"),
        ],
    );
    let filters = search(visit, &filters);
    // Whatever goes wrong, the filters stay, to ask for something else.
    let list = found(visit, &sought, query.get("cursor")).await.unwrap_or_else(|trouble| problem(&trouble.to_string()));
    visit.page("Dead letters", html("{}{}", &[&filters, &list]))
}

/// The records from a cursor on, and the link to the next ones.
async fn found(visit: &mut Visit<'_>, sought: &Search, from: &[u8]) -> Result<Html, Trouble> {
    let from = if from.is_empty() { b"0" } else { from };
    let (keys, cursor) = match find(visit, sought, from).await? {
        Ok(found) => found,
        Err(refused) => return Ok(refused),
    };
    let at = |cursor: &[u8]| {
        let link = visit.link(Page::Dead).with("index", &sought.index.name).with("prefix", &sought.prefix);
        link.with("field", &sought.field).with("state", &sought.state).with("cursor", cursor)
    };
    let all = at(from).with("all", b"1");
    let more = (cursor != b"0").then(|| at(&cursor));
    let mut matter = requeue::matter(&sought.index, sought.queue.as_ref());
    matter.push(&sought.field);
    let peeks = peek::read(visit, &keys, &matter, RECORD_BYTES_MAX).await?;
    // IMPORTANT: what is shown is what is changed. A record that has become another one since it was found is not here.
    let is_like_it = |peek: &Peek| !peek.has_needed || is_equal(peek.fields.get(&sought.field), &sought.state);
    let records = keys.into_iter().zip(peeks).filter(|(_, peek)| !peek.is_gone() && is_like_it(peek));
    let mut records: Vec<(Vec<u8>, Peek)> = records.collect();
    let time = |peek: &Peek| peek.fields.get(&sought.index.field).number().unwrap_or(f64::INFINITY);
    records.sort_by(|(one, a), (other, b)| time(a).total_cmp(&time(b)).then_with(|| one.cmp(other)));
    let list = match records.is_empty() {
        true => empty(
            "No record is like that here.",
            if more.is_some() {
                "There are more keys to look at: go on."
            } else {
                "Another state, perhaps: workers choose its name."
            },
        ),
        false => {
            let choose = html("<p><a href=\"{}\">Choose all of this page</a></p>", &[&all]);
            html("{}{}", &[&choose, &bulk(visit, sought, &matter, &records)])
        }
    };
    Ok(html("{}{}", &[&list, &next(more)]))
}

/// As HFIND compares: two numbers as numbers, anything else as bytes.
fn is_equal(value: &Reply, sought: &[u8]) -> bool {
    let number = Reply::Bulk(sought.to_vec()).number();
    *value.bytes() == *sought || number.is_some() && number == value.number()
}

/// Looks for records until there is a page of them, or no more time.
async fn find(
    visit: &mut Visit<'_>,
    sought: &Search,
    from: &[u8],
) -> Result<Result<(Vec<Vec<u8>>, Vec<u8>), Html>, Trouble> {
    let mut cursor = from.to_vec();
    let mut keys = Vec::new();
    loop {
        let limit = (RECORDS - keys.len()).to_string();
        let reply = visit
            .ask(&[
                b"HFIND",
                &sought.prefix,
                b"FILTER",
                &sought.field,
                b"eq",
                &sought.state,
                b"CURSOR",
                &cursor,
                b"LIMIT",
                limit.as_bytes(),
                b"KEYS",
            ])
            .await?;
        if let Some(refused) = refused(&reply) {
            return Ok(Err(refused));
        }
        keys.extend(reply.at(1).items().iter().map(|key| key.bytes().into_owned()));
        cursor = reply.at(0).bytes().into_owned();
        if cursor == b"0" || keys.len() >= RECORDS || !visit.has_time() {
            return Ok(Ok((keys, cursor)));
        }
    }
}

fn bulk(visit: &Visit<'_>, sought: &Search, matter: &[&[u8]], records: &[(Vec<u8>, Peek)]) -> Html {
    let (index, now) = (&sought.index, visit.now_ms());
    let is_chosen = if visit.query.has("all") { html(" checked", &[]) } else { Html::new() };
    let (mut rows, mut left, mut without) = (Html::new(), FORM_BYTES_MAX, 0_u64);
    for (key, peek) in records {
        let shown = Shown::of(key, &peek.fields, matter).filter(|_| peek.has_needed);
        let packed = shown.map(|shown| shown.packed());
        let choice = match packed.filter(|packed| packed.len_in_form() <= left) {
            Some(packed) => {
                left -= packed.len_in_form();
                html(
                    "<input type=\"checkbox\" name=\"record\" value=\"{}\"{} aria-label=\"choose\">",
                    &[&packed, &is_chosen],
                )
            }
            None => {
                without += 1;
                html("–", &[])
            }
        };
        let time = match peek.fields.get(&index.field) {
            Reply::Null => html("–", &[]),
            value => maybe_time(&value.bytes(), now),
        };
        let link = visit.link(Page::Record).with("index", &index.name).with("key", key);
        rows.put(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            &[&choice, &link_to(link, key), &time, &others(peek, &[&sought.field, &index.field])],
        );
    }
    let time = String::from_utf8_lossy(&index.field[..index.field.len().min(40)]).into_owned();
    let mut list = table(&["", "Record", &time, "Other fields"], &rows);
    if without > 0 {
        list.put(
            "<p class=\"hint\">{} cannot be chosen here: they are too large, or more than one form takes. Each has its own page.</p>",
            &[&without],
        );
    }
    if !visit.may(&[b"HCAS", b"a", b"SET", b"1", b"a", b"b"])
        && !visit.may(&[b"HCAS", &records[0].0, b"SET", b"1", b"a", b"b"])
    {
        return html("{}{}", &[&record::may_not_change(), &list]);
    }
    let requeue = match sought.queue.as_ref().and_then(|queue| Some((queue, queue.waiting_state()?))) {
        None => html("<p class=\"hint\">{}</p>", &[&record::NO_QUEUE]),
        Some((queue, state)) => html(
            "<details class=\"ask\"><summary>Requeue those chosen…</summary><p>Through the index <b>{}</b>: sets <code>{}</code>, \
             and the time <code>{}</code> to now. Attempts begin anew: attempt is 0.</p>{}\
             <button class=\"main\" name=\"do\" value=\"requeue\">Yes, requeue</button></details>",
            &[
                &Short(&queue.name),
                &Short(&queue.state_field),
                &Short(&queue.field),
                &input("New state", "to", state, ""),
            ],
        ),
    };
    let content = html(
        "<div class=\"actions\">{}\
         <details class=\"ask\"><summary>Delete those chosen…</summary><p>They are deleted for good.</p>\
         <button class=\"danger\" name=\"do\" value=\"delete\">Yes, delete</button></details></div>{}",
        &[&requeue, &list],
    );
    let queue = sought.queue.as_ref().map_or(&b""[..], |queue| &queue.name);
    let hidden: [(&'static str, &[u8]); 5] = [
        ("index", &index.name),
        ("queue", queue),
        ("prefix", &sought.prefix),
        ("field", &sought.field),
        ("state", &sought.state),
    ];
    visit.form("bulk", &hidden, &content)
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let index = form.packed("index");
    let back = visit.link(Page::Dead).with("index", &index).with_any("prefix", &form.packed("prefix"));
    let back = back.with_any("field", &form.packed("field")).with("state", &form.packed("state"));
    let chosen: Vec<Shown> = form.all("record").filter_map(Shown::unpacked).collect();
    if chosen.is_empty() {
        visit.note(false, "No record was chosen: nothing was changed.");
        return visit.go(back);
    }
    let asked = match form.get("do") {
        b"requeue" => match Index::find(visit, &form.packed("queue")).await? {
            Ok(queue) => requeues(&queue, &chosen, form.typed("to")),
            Err(refused) => return visit.page("Dead letters", refused),
        },
        b"delete" => Ok(deletions(visit, &chosen).await?),
        _ => return Ok(None),
    };
    let asked = match asked {
        Ok(asked) => asked,
        Err(why) => {
            visit.note(false, why);
            return visit.go(back);
        }
    };
    let replies = visit.ask_all(&asked).await?;
    let done = replies.iter().filter(|reply| reply.integer() == Some(1)).count();
    let errors: Vec<String> = replies
        .iter()
        .filter_map(|reply| reply.error())
        .map(|error| String::from_utf8_lossy(error).into_owned())
        .collect();
    let lost = chosen.len() - done - errors.len();
    visit.note(done > 0, format!("{done} of {} records were changed.", chosen.len()));
    if lost > 0 {
        visit.note(
            false,
            format!("{lost} were left alone: another client has changed them since the page was made, or they are too large."),
        );
    }
    if let Some(error) = errors.first() {
        visit.note(false, format!("{} were refused: {error}", errors.len()));
    }
    visit.go(back)
}

/// An HCAS for each record that the queue can have.
fn requeues(queue: &Index, chosen: &[Shown], to: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    if queue.waiting_state().is_none() {
        return Err(record::NO_QUEUE.to_owned());
    }
    let to = requeue::checked_state(queue, to)?;
    let covered = chosen.iter().filter(|shown| queue.covers(&shown.key));
    Ok(covered.map(|shown| requeue::requeue(queue, shown, to, 0)).collect())
}

/// An HCAS for each record that is not too large.
async fn deletions(visit: &mut Visit<'_>, chosen: &[Shown]) -> Result<Vec<Vec<u8>>, Trouble> {
    let keys: Vec<&[u8]> = chosen.iter().map(|shown| shown.key.as_slice()).collect();
    let names = peek::names(visit, &keys).await?;
    let small = chosen.iter().zip(&names).filter_map(|(shown, names)| Some((shown, names.as_ref()?)));
    Ok(small.map(|(shown, names)| shown.remove(names.items().iter())).collect())
}
