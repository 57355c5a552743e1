//! One index: its records by age and by state, and those that wait longest, with filters.

use super::peek::{self, Peek};
use super::value::{age, choice, input, link_to, next};
use crate::charts::bar;
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, facts, problem, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::{Trouble, request};
use crate::visit::{Outcome, Visit, search};
use std::collections::BTreeMap;

/// The records that are counted by state: the oldest ones.
const COUNTED_MAX: usize = 2000;
/// Records on a page, and the most of them.
const RECORDS: u64 = 50;
const RECORDS_MAX: u64 = 1000;
/// The most states that are told apart.
const STATES_MAX: usize = 50;
/// The fields of a record in the table.
const FIELDS_SHOWN: usize = 6;
/// The memory of a record, at most, of which fields are in the table.
pub(super) const RECORD_BYTES_MAX: usize = 16 << 10;

/// How late a record is, at least.
const AGES: &[(&str, &str)] = &[
    ("", "any time"),
    ("0", "due"),
    ("10", "10 s late"),
    ("60", "1 min late"),
    ("600", "10 min late"),
    ("3600", "1 h late"),
    ("86400", "1 day late"),
];

const OPERATORS: &[(&str, &str)] = &[("eq", "="), ("ne", "≠"), ("lt", "<"), ("le", "≤"), ("gt", ">"), ("ge", "≥")];

/// What is known of an index.
#[derive(Clone)]
pub(super) struct Index {
    pub(super) name: Vec<u8>,
    pub(super) prefixes: Vec<Vec<u8>>,
    /// The field that it is ordered by.
    pub(super) field: Vec<u8>,
    /// The field that says which records it has.
    pub(super) state_field: Vec<u8>,
    /// It has records with these values alone (ONLY); otherwise it has all others (EXCLUDE).
    pub(super) only: bool,
    pub(super) states: Vec<Vec<u8>>,
    /// The server sets the field with each write (STAMP).
    pub(super) stamps: bool,
    /// The field by which records are kept apart (GROUP).
    pub(super) group: Option<Vec<u8>>,
    /// It knows which records are held (HELD).
    pub(super) has_held: bool,
    pub(super) groups: u64,
}

impl Index {
    /// Asks for an index; the error if there is none.
    pub(super) async fn find(visit: &mut Visit<'_>, name: &[u8]) -> Result<Result<Index, Html>, Trouble> {
        let info = visit.ask(&[b"IDX.INFO", name]).await?;
        if let Some(refused) = refused(&info) {
            return Ok(Err(refused));
        }
        Ok(Ok(Index::new(name, &info)))
    }

    /// Asks for several; those that are gone or may not be seen are left out.
    pub(super) async fn find_all(visit: &mut Visit<'_>, names: Vec<Vec<u8>>) -> Result<Vec<Index>, Trouble> {
        let asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"IDX.INFO", name])).collect();
        let infos = visit.ask_all(&asked).await?;
        let found = names.iter().zip(&infos).filter(|(_, info)| !info.items().is_empty());
        Ok(found.map(|(name, info)| Index::new(name, info)).collect())
    }

    /// Reads the reply of IDX.INFO.
    pub(super) fn new(name: &[u8], info: &Reply) -> Index {
        let texts = |reply: &Reply| reply.items().iter().map(|item| item.bytes().into_owned()).collect::<Vec<_>>();
        let only = !info.get("only").items().is_empty();
        let mut condition = texts(info.get(if only { "only" } else { "exclude" })).into_iter();
        Index {
            name: name.to_vec(),
            prefixes: texts(info.get("prefixes")),
            field: info.get("field").bytes().into_owned(),
            state_field: condition.next().unwrap_or_else(|| b"state".to_vec()),
            only,
            states: condition.collect(),
            stamps: info.get("stamp").integer() == Some(1),
            group: Some(info.get("group")).filter(|group| !group.is_null()).map(|group| group.bytes().into_owned()),
            has_held: !info.get("held").is_null(),
            groups: info.get("groups").integer().and_then(|count| u64::try_from(count).ok()).unwrap_or_default(),
        }
    }
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let name = visit.query.get("index").to_vec();
    let title = format!("Index {}", String::from_utf8_lossy(&name[..name.len().min(100)]));
    let index = match Index::find(visit, &name).await? {
        Ok(index) => index,
        Err(refused) => return visit.page(title, refused),
    };
    // What is too large or takes too long leaves the rest of the page, with its filters.
    let counts = counts(visit, &index).await.unwrap_or_else(|trouble| problem(&trouble.to_string()));
    let stuck = stuck(visit, &index).await;
    let dead = visit.link(Page::Dead).with("index", &index.name);
    let mut links = html("<p><a href=\"{}\">Dead letters</a>, and other records by state, in bulk</p>", &[&dead]);
    if visit.may(&[b"IDX.GROUPS", &index.name]) {
        let groups = visit.link(Page::Groups).with("index", &index.name);
        links.put("<p><a href=\"{}\">Groups and limits</a>: what each waits for, pause and resume</p>", &[&groups]);
    }
    visit.page(title, html("{}{}{}", &[&counts, &links, &stuck]))
}

/// How many records there are, by age and by state.
async fn counts(visit: &mut Visit<'_>, index: &Index) -> Result<Html, Trouble> {
    let now = visit.now_ms();
    let before = |seconds: f64| format!("({}", now - seconds * 1000.0).into_bytes();
    let from = |seconds: f64| format!("{}", now - seconds * 1000.0).into_bytes();
    let ages: [(&str, Vec<u8>, Vec<u8>); 7] = [
        ("more than a day late", b"-inf".to_vec(), before(86_400.0)),
        ("an hour to a day late", from(86_400.0), before(3600.0)),
        ("10 minutes to an hour late", from(3600.0), before(600.0)),
        ("1 to 10 minutes late", from(600.0), before(60.0)),
        ("less than a minute late", from(60.0), from(0.0)),
        ("due within an hour", before(0.0), from(-3600.0)),
        ("due later", before(-3600.0), b"+inf".to_vec()),
    ];
    let mut asked: Vec<Vec<u8>> =
        ages.iter().map(|(_, min, max)| request(&[b"ZCOUNT", &index.name, min, max])).collect();
    asked.push(request(&[b"ZCARD", &index.name]));
    asked.push(request(&[b"ZRANGE", &index.name, b"0", b"0", b"WITHSCORES"]));
    let limit = COUNTED_MAX.to_string();
    asked.push(request(&[
        b"IDX.RANGE",
        &index.name,
        b"-inf",
        b"+inf",
        b"LIMIT",
        limit.as_bytes(),
        b"FIELDS",
        b"1",
        &index.state_field,
    ]));
    let replies = visit.ask_all(&asked).await?;
    let [by_age @ .., all, oldest, records] = replies.as_slice() else { return Ok(Html::new()) };
    let all = all.number().unwrap_or(0.0);
    let mut rows = Html::new();
    for ((name, ..), count) in ages.iter().zip(by_age) {
        let count = count.number().unwrap_or(0.0);
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[name, &figures::number(count), &bar(count, all)],
        );
    }
    let oldest = oldest.at(0).at(1).number().map_or_else(|| "–".to_owned(), |score| age(score, now));
    let (by_state, counted) = by_state(visit, index, records);
    Ok(html(
        "{}<div class=\"halves\"><section><h2>By age</h2>{}</section><section><h2>By {}</h2>{}{}</section></div>",
        &[
            &facts(&[("Entries", html("{}", &[&figures::number(all)])), ("Oldest", html("{}", &[&oldest]))]),
            &table(&["Time", "Records#", ""], &rows),
            &Short(&index.state_field),
            &by_state,
            &counted,
        ],
    ))
}

fn by_state(visit: &Visit<'_>, index: &Index, records: &Reply) -> (Html, Html) {
    if let Some(refused) = refused(records) {
        return (refused, Html::new());
    }
    let mut states: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for record in records.items() {
        let mut state = record.at(2).get(&index.state_field).bytes().into_owned();
        if states.len() >= STATES_MAX && !states.contains_key(&state) {
            state = b"other".to_vec();
        }
        *states.entry(state).or_default() += 1;
    }
    let counted = records.items().len();
    let mut rows = Html::new();
    for (state, count) in &states {
        let link = visit.link(Page::Index).with("index", &index.name).with("state", state);
        let count = *count as f64;
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td></tr>",
            &[&link_to(link, state), &count, &bar(count, counted as f64)],
        );
    }
    let mut note = Html::new();
    if counted >= COUNTED_MAX {
        note.put("<p class=\"hint\">Of the {} oldest records.</p>", &[&COUNTED_MAX]);
    }
    (table(&["Value", "Records#", ""], &rows), note)
}

/// The records that wait longest, as the filters ask.
async fn stuck(visit: &mut Visit<'_>, index: &Index) -> Html {
    let query = visit.query.clone();
    let (state, late) = (query.typed("state"), query.get("late"));
    let (field, op, value) = (query.typed("field"), query.get("op"), query.typed("value"));
    let limit = query.number("limit").unwrap_or(RECORDS).clamp(1, RECORDS_MAX);
    let max = match query.number("late") {
        Some(seconds) => format!("{}", visit.now_ms() - seconds.min(1 << 40) as f64 * 1000.0),
        None => "+inf".to_owned(),
    };
    let limit_text = limit.to_string();
    let mut words: Vec<&[u8]> = vec![b"IDX.RANGE", &index.name, b"-inf", max.as_bytes()];
    if !state.is_empty() {
        words.extend([&b"FILTER"[..], &index.state_field, b"eq", state]);
    }
    if !field.is_empty() {
        let op = if op.is_empty() { b"eq" } else { op };
        words.extend([&b"FILTER"[..], field, op, value]);
    }
    // Only what is short: the number of the index.
    words.extend([&b"LIMIT"[..], limit_text.as_bytes(), b"FIELDS", b"1", &index.field]);
    // A filter that nothing passes may take too long: the filters stay, to ask for less.
    let reply = visit.ask(&words).await.unwrap_or_else(|trouble| Reply::Error(trouble.to_string().into_bytes()));
    let state_label = format!("{} is", String::from_utf8_lossy(&index.state_field[..index.state_field.len().min(40)]));
    let filters = html(
        "<input type=\"hidden\" name=\"index\" value=\"{}\">{}{}{}{}{}",
        &[
            &String::from_utf8_lossy(&index.name).into_owned(),
            &choice("At least", "late", late, AGES),
            &input(&state_label, "state", state, "any"),
            &input("and field", "field", field, "none"),
            &choice("", "op", op, OPERATORS),
            &input("", "value", value, "value"),
        ],
    );
    let filters = search(visit, &filters);
    let list = match refused(&reply) {
        Some(refused) => refused,
        None if reply.items().is_empty() => {
            empty("No record is like that.", "Ask for another time, or clear the filters.")
        }
        None => records(visit, index, &reply).await.unwrap_or_else(|trouble| problem(&trouble.to_string())),
    };
    let more = (reply.items().len() as u64 == limit && limit < RECORDS_MAX).then(|| {
        let link = visit.link(Page::Index).with("index", &index.name).with_any("late", late).with_any("state", state);
        let link = link.with_any("field", field).with_any("op", op).with_any("value", value);
        link.with("limit", (limit * 4).min(RECORDS_MAX).to_string().as_bytes())
    });
    html("<h2>Records, oldest first</h2>{}{}{}", &[&filters, &list, &next(more)])
}

async fn records(visit: &mut Visit<'_>, index: &Index, reply: &Reply) -> Result<Html, Trouble> {
    let now = visit.now_ms();
    let keys: Vec<Vec<u8>> = reply.items().iter().map(|record| record.at(0).bytes().into_owned()).collect();
    let peeks = peek::read(visit, &keys, &[&index.state_field], RECORD_BYTES_MAX).await?;
    let mut rows = Html::new();
    for ((key, peek), record) in keys.iter().zip(&peeks).zip(reply.items()) {
        let link = visit.link(Page::Record).with("index", &index.name).with("key", key);
        let score = record.at(1).number().map_or_else(String::new, |score| age(score, now));
        let state = match peek.has_needed {
            true => html("{}", &[&Short(&peek.fields.get(&index.state_field).bytes())]),
            false => html("<span class=\"odd\">too large to show here</span>", &[]),
        };
        rows.put(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            &[&link_to(link, key), &state, &score, &others(peek, &[&index.state_field, &index.field])],
        );
    }
    Ok(table(&["Record", "State", "Time", "Other fields"], &rows))
}

/// The first fields of a record, but for those that are shown elsewhere.
pub(super) fn others(peek: &Peek, elsewhere: &[&[u8]]) -> Html {
    if peek.is_gone() {
        return html("<span class=\"odd\">gone</span>", &[]);
    }
    if !peek.is_whole {
        return html("<span class=\"odd\">too large to show here</span>", &[]);
    }
    let mut shown = Html::new();
    let others = peek.fields.pairs().filter(|(name, _)| !elsewhere.contains(&name.bytes().as_ref()));
    for (name, value) in others.take(FIELDS_SHOWN) {
        shown.put("<span class=\"pair\"><i>{}</i> {}</span> ", &[&Short(&name.bytes()), &Short(&value.bytes())]);
    }
    shown
}
