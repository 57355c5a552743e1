//! The groups of one index: what waits and what is held in each, whether it may give, its limits, and how they are changed. Each
//! change is one IDX.LIMIT. Refuses to know how limits are obeyed.

use super::index::Index;
use super::value::{age, input, next};
use crate::figures;
use crate::html::{Html, Short, html};
use crate::layout::{empty, facts, problem, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::Trouble;
use crate::visit::{Outcome, Visit};

/// Groups on a page.
const GROUPS: &[u8] = b"50";
/// Between the values of the form in one field. No number or word has it.
const BETWEEN: &str = "|";

/// What limits are for.
#[derive(Clone, Copy)]
enum Scope<'a> {
    All,
    Each,
    Group(&'a [u8]),
}

impl<'a> Scope<'a> {
    fn word(self) -> &'static [u8] {
        match self {
            Scope::All => b"all",
            Scope::Each => b"each",
            Scope::Group(_) => b"group",
        }
    }

    fn group(self) -> &'a [u8] {
        match self {
            Scope::All | Scope::Each => b"",
            Scope::Group(name) => name,
        }
    }

    fn read(word: &[u8], group: &'a [u8]) -> Option<Scope<'a>> {
        match word {
            b"all" => Some(Scope::All),
            b"each" => Some(Scope::Each),
            b"group" => Some(Scope::Group(group)),
            _ => None,
        }
    }

    fn words(self) -> Vec<&'a [u8]> {
        match self {
            Scope::All => vec![b"ALL"],
            Scope::Each => vec![b"EACH"],
            Scope::Group(name) => vec![b"GROUP", name],
        }
    }

    fn shown(self) -> Html {
        match self {
            Scope::All => html("all groups together", &[]),
            Scope::Each => html("each group that has none of its own", &[]),
            Scope::Group(name) => html("the group <b>{}</b>", &[&Short(name)]),
        }
    }

    fn text(self) -> String {
        match self {
            Scope::All => "All groups together".to_owned(),
            Scope::Each => "Each group that has none of its own".to_owned(),
            Scope::Group(b"") => "The group of the empty name".to_owned(),
            Scope::Group(name) => format!("The group {}", String::from_utf8_lossy(&name[..name.len().min(100)])),
        }
    }
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let name = query.get("index");
    let title = format!("Groups of {}", String::from_utf8_lossy(&name[..name.len().min(100)]));
    let index = match Index::find(visit, name).await? {
        Ok(index) => index,
        Err(refused) => return visit.page(title, refused),
    };
    let may_limit = visit.may(&[b"IDX.LIMIT", name, b"ALL", b"PAUSE", b"yes"]);
    let back =
        html("<p><a href=\"{}\">All records of the index</a></p>", &[&visit.link(Page::Index).with("index", name)]);
    // What is too large leaves the rest of the page.
    let whole = match may_limit {
        true => whole(visit, &index).await.unwrap_or_else(|trouble| problem(&trouble.to_string())),
        false => Html::new(),
    };
    let list = match &index.group {
        // All of them are one group without a name.
        None if index.has_held => {
            let reply = visit.ask(&[b"IDX.GROUPS", name, b"LIMIT", b"1"]).await?;
            let held = reply.at(1).at(0).at(1).get("held").integer().unwrap_or_default();
            refused(&reply).unwrap_or_else(|| facts(&[("Held", html("{}", &[&held]))]))
        }
        None => empty(
            "The index has no groups.",
            "GROUP of IDX.CREATE names the field by which its records are kept apart, such as a tenant.",
        ),
        Some(field) => {
            let kept = html("<code>{}</code>", &[&Short(field)]);
            let about = facts(&[("Groups", html("{}", &[&index.groups])), ("Kept apart by", kept)]);
            let list = groups(visit, &index, query.get("cursor"), may_limit).await;
            html("{}{}", &[&about, &list.unwrap_or_else(|trouble| problem(&trouble.to_string()))])
        }
    };
    visit.page(title, html("{}{}{}", &[&back, &list, &whole]))
}

/// The groups from a cursor on, and the link to the next ones.
async fn groups(visit: &mut Visit<'_>, index: &Index, from: &[u8], may_limit: bool) -> Result<Html, Trouble> {
    let from = if from.is_empty() { b"0" } else { from };
    let reply = visit.ask(&[b"IDX.GROUPS", &index.name, b"CURSOR", from, b"LIMIT", GROUPS]).await?;
    if let Some(refused) = refused(&reply) {
        return Ok(refused);
    }
    let mut rows = Html::new();
    for group in reply.at(1).items() {
        rows.add(&row(visit, index, &group.at(0).bytes(), group.at(1), from, may_limit));
    }
    let cursor = reply.at(0).bytes();
    let more = (*cursor != *b"0").then(|| visit.link(Page::Groups).with("index", &index.name).with("cursor", &cursor));
    let list = match rows.is_empty() {
        true => empty("There is no group here.", "A group is there while it has records, held ones or limits to obey."),
        false => cards(&["Group", "Records#", "Held#", "Oldest", "May give", "Limits", ""], &rows),
    };
    Ok(html("{}{}", &[&list, &next(more)]))
}

/// A table whose rows are cards on a narrow screen. Each cell has its head in `data-label`.
fn cards(heads: &[&str], rows: &Html) -> Html {
    html("<div class=\"cards\">{}</div>", &[&table(heads, rows)])
}

fn row(visit: &Visit<'_>, index: &Index, name: &[u8], state: &Reply, cursor: &[u8], may_limit: bool) -> Html {
    let (now, limits) = (visit.now_ms(), state.get("limits"));
    let oldest = state.get("first_score").number().map_or_else(|| "–".to_owned(), |score| age(score, now));
    let actions = match may_limit {
        true => actions(visit, index, Scope::Group(name), limits, cursor),
        false => Html::new(),
    };
    html(
        "<tr><td data-label=\"Group\"><div>{}</div></td><td data-label=\"Records\" class=\"num\">{}</td>\
         <td data-label=\"Held\" class=\"num\">{}</td><td data-label=\"Oldest\">{}</td><td data-label=\"May give\">{}</td>\
         <td data-label=\"Limits\"><div>{}</div></td><td>{}</td></tr>",
        &[
            &Short(name),
            &state.get("records").text(),
            &state.get("held").text(),
            &oldest,
            &may_give(state, now),
            &shown(limits),
            &actions,
        ],
    )
}

/// Whether a record of the group may be taken, or what is in the way.
fn may_give(state: &Reply, now_ms: f64) -> Html {
    let limits = state.get("limits");
    let is_full = match (state.get("held").integer(), limits.get("held").integer()) {
        (Some(held), Some(max)) => held >= max,
        _ => false,
    };
    match state.get("allowed_at").number() {
        Some(at_ms) if at_ms >= 0.0 && at_ms <= now_ms => html("<span class=\"mark good\">now</span>", &[]),
        Some(at_ms) if at_ms > now_ms => {
            html("<span class=\"mark open\">{}</span>", &[&figures::distance(at_ms, now_ms)])
        }
        _ if is_paused(limits) => html("<span class=\"mark bad\">no: paused</span>", &[]),
        _ if is_full => html("<span class=\"mark open\">no: at its cap</span>", &[]),
        _ => html("<span class=\"mark open\">no: a limit for all</span>", &[]),
    }
}

fn is_paused(limits: &Reply) -> bool {
    *limits.get("pause").bytes() == *b"yes"
}

/// Limits, as IDX.GROUPS and IDX.LIMIT tell them.
fn shown(limits: &Reply) -> Html {
    let mut all = Html::new();
    let none = |reply: &Reply| *reply.bytes() == *b"none";
    match limits.get("held") {
        Reply::Null => {}
        held if none(held) => all.raw("<span class=\"pair\">any number held</span> "),
        held => all.put("<span class=\"pair\"><i>at most</i> {} <i>held</i></span> ", &[&held.text()]),
    }
    match limits.get("rate") {
        Reply::Null => {}
        rate if none(rate) => all.raw("<span class=\"pair\">no rate</span> "),
        rate => all.put(
            "<span class=\"pair\">{} <i>in</i> {}<i>, at once</i> {}</span> ",
            &[&rate.at(0).text(), &figures::duration(rate.at(1).number().unwrap_or_default()), &rate.at(2).text()],
        ),
    }
    if let Some(weight) = limits.get("weight").number() {
        all.put("<span class=\"pair\"><i>weight</i> {}</span> ", &[&weight]);
    }
    match &*limits.get("pause").bytes() {
        b"yes" => all.raw("<span class=\"mark bad\">paused</span>"),
        b"no" => all.raw("<span class=\"pair\">not paused</span>"),
        _ => {}
    }
    if all.is_empty() { html("–", &[]) } else { all }
}

/// The limits for each group and for all together.
async fn whole(visit: &mut Visit<'_>, index: &Index) -> Result<Html, Trouble> {
    let reply = visit.ask(&[b"IDX.LIMIT", &index.name]).await?;
    if let Some(refused) = refused(&reply) {
        return Ok(refused);
    }
    let mut rows = Html::new();
    for scope in [Scope::Each, Scope::All] {
        if index.group.is_none() && matches!(scope, Scope::Each) {
            continue;
        }
        let is_it = |set: &&Reply| *set.get("scope").bytes() == *scope.word();
        let limits = reply.items().iter().find(is_it).unwrap_or(&Reply::Null);
        rows.put(
            "<tr><td data-label=\"For\"><div>{}</div></td><td data-label=\"Limits\"><div>{}</div></td><td>{}</td></tr>",
            &[&scope.shown(), &shown(limits), &actions(visit, index, scope, limits, b"")],
        );
    }
    Ok(html("<h2>Limits for all</h2>{}", &[&cards(&["For", "Limits", ""], &rows)]))
}

/// Pause or resume, and the form of the other limits.
fn actions(visit: &Visit<'_>, index: &Index, scope: Scope<'_>, limits: &Reply, cursor: &[u8]) -> Html {
    let values = values(limits, scope);
    let was = values.join(BETWEEN);
    let hidden: [(&'static str, &[u8]); 5] = [
        ("index", &index.name),
        ("scope", scope.word()),
        ("group", scope.group()),
        ("cursor", cursor),
        ("was", was.as_bytes()),
    ];
    let pause = match is_paused(limits) {
        false => {
            let question =
                html("Pause {}? Nothing is taken until it is resumed; jobs that run go on.", &[&scope.shown()]);
            visit.confirmed("pause", &"Pause", &question, &hidden)
        }
        true => visit.confirmed("resume", &"Resume", &html("Resume {}?", &[&scope.shown()]), &hidden),
    };
    let [held, takes, per_ms, burst, weight] = &values;
    let default = match scope {
        Scope::Group(_) => html("; <code>default</code>: that of each group", &[]),
        Scope::All | Scope::Each => Html::new(),
    };
    let mut content = html(
        "<p class=\"hint\">What is changed is set for {}. <code>none</code>: no limit{}.</p>",
        &[&scope.shown(), &default],
    );
    if index.has_held {
        content.add(&input("Held at most", "held", held.as_bytes(), "no limit"));
    }
    content.add(&input("Taken at most", "takes", takes.as_bytes(), "no limit"));
    content.add(&input("in milliseconds", "per", per_ms.as_bytes(), ""));
    content.add(&input("and at once", "burst", burst.as_bytes(), ""));
    if !matches!(scope, Scope::All) {
        content.add(&input("Weight", "weight", weight.as_bytes(), "1"));
    }
    content.raw(
        "<div class=\"actions\"><button class=\"main\" name=\"do\" value=\"set\">Set</button>\
         <button class=\"danger\" name=\"do\" value=\"reset\">Reset all</button></div>",
    );
    html(
        "<div class=\"actions\">{}<details class=\"ask limits\"><summary>Limits…</summary>{}</details></div>",
        &[&pause, &visit.form("limits", &hidden, &content)],
    )
}

/// What the fields of the form have: the most that are held, takes, milliseconds, burst and weight.
fn values(limits: &Reply, scope: Scope<'_>) -> [String; 5] {
    let rate = limits.get("rate");
    let takes = if rate.items().is_empty() { rate.text() } else { rate.at(0).text() };
    let weight = match (limits.get("weight"), scope) {
        // IDX.GROUPS leaves it out if it is 1.
        (Reply::Null, Scope::Group(_)) => "1".to_owned(),
        (weight, _) => weight.text(),
    };
    [limits.get("held").text(), takes, rate.at(1).text(), rate.at(2).text(), weight]
}

/// The words of IDX.LIMIT for what was changed in the form, or why there are none.
fn changes(was: &[String; 5], now: &[String; 5]) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut add = |all: &[&str]| words.extend(all.iter().map(|word| (*word).to_owned()));
    let is_word = |text: &str| ["none", "default"].iter().any(|word| text.eq_ignore_ascii_case(word));
    let [held, takes, per_ms, burst, weight] = now;
    if *held != was[0] {
        match held.as_str() {
            "" => return Err("How many are held at most is empty: type a number or none.".to_owned()),
            held => add(&["HELD", held]),
        }
    }
    if now[1..4] != was[1..4] {
        match (takes.as_str(), per_ms.as_str(), burst.as_str()) {
            ("", ..) => return Err("How many are taken at most is empty: type a number or none.".to_owned()),
            (word, ..) if is_word(word) => add(&["RATE", word]),
            (_, "", _) => return Err("The milliseconds of the rate are missing.".to_owned()),
            (takes, per_ms, "") => add(&["RATE", takes, per_ms]),
            (takes, per_ms, burst) => add(&["RATE", takes, per_ms, "BURST", burst]),
        }
    }
    if *weight != was[4] {
        match weight.as_str() {
            "" => return Err("The weight is empty: type a number from 0.01 to 1000.".to_owned()),
            weight => add(&["WEIGHT", weight]),
        }
    }
    match words.is_empty() {
        true => Err("No limit is another one than before.".to_owned()),
        false => Ok(words),
    }
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (index, group, cursor) = (form.packed("index"), form.packed("group"), form.packed("cursor"));
    let Some(scope) = Scope::read(&form.packed("scope"), &group) else { return Ok(None) };
    let here = visit.link(Page::Groups).with("index", &index).with_any("cursor", &cursor);
    let words = |all: &[&str]| all.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (change, done) = match (form.get("action"), form.get("do")) {
        (b"pause", _) => (Ok(words(&["PAUSE", "yes"])), "paused: nothing is taken"),
        (b"resume", _) => (Ok(words(&["PAUSE", "no"])), "resumed"),
        (b"limits", b"reset") => (Ok(words(&["RESET"])), "what was set is taken back"),
        (b"limits", b"set") => {
            let was = form.packed("was");
            let was = String::from_utf8_lossy(&was).into_owned();
            let mut was = was.split(BETWEEN).map(str::to_owned);
            let was: [String; 5] = std::array::from_fn(|_| was.next().unwrap_or_default());
            let mut at = 0;
            // A field that the form does not have is as it was.
            let now = ["held", "takes", "per", "burst", "weight"].map(|name| {
                at += 1;
                match form.has(name) {
                    true => String::from_utf8_lossy(form.typed(name)).into_owned(),
                    false => was[at - 1].clone(),
                }
            });
            (changes(&was, &now), "the limits are set")
        }
        _ => return Ok(None),
    };
    match change {
        Err(why) => visit.note(false, format!("{why} Nothing was changed.")),
        Ok(change) => {
            let mut asked: Vec<&[u8]> = vec![b"IDX.LIMIT", &index];
            asked.extend(scope.words());
            asked.extend(change.iter().map(String::as_bytes));
            let reply = visit.ask(&asked).await?;
            visit.note_reply(&reply, format!("{}: {done}.", scope.text()));
        }
    }
    visit.go(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn five(values: [&str; 5]) -> [String; 5] {
        values.map(str::to_owned)
    }

    #[test]
    fn only_what_was_changed_is_set() {
        let was = five(["5", "10", "1000", "10", "1"]);
        let words = |now: [&str; 5]| changes(&was, &five(now)).map(|words| words.join(" "));
        let set = |text: &str| Ok(text.to_owned());
        assert_eq!(words(["6", "10", "1000", "10", "1"]), set("HELD 6"));
        assert_eq!(words(["none", "10", "1000", "10", "2.5"]), set("HELD none WEIGHT 2.5"));
        assert_eq!(words(["5", "20", "1000", "10", "1"]), set("RATE 20 1000 BURST 10"));
        assert_eq!(words(["5", "10", "2000", "", "1"]), set("RATE 10 2000"));
        assert_eq!(words(["5", "Default", "1000", "10", "1"]), set("RATE Default"));
        for now in [
            ["5", "10", "1000", "10", "1"],
            ["", "10", "1000", "10", "1"],
            ["5", "", "1000", "10", "1"],
            ["5", "10", "", "10", "1"],
            ["5", "10", "1000", "10", ""],
        ] {
            assert!(words(now).is_err(), "{now:?}");
        }
        assert_eq!(
            changes(&five(["", "", "", "", ""]), &five(["", "3", "60000", "", ""])).map(|words| words.join(" ")),
            set("RATE 3 60000")
        );
    }

    #[test]
    fn what_is_in_the_way_is_told() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let state = |held: i64, allowed_at: i64, limits: Vec<Reply>| {
            Reply::Map(vec![
                bulk("held"),
                Reply::Integer(held),
                bulk("allowed_at"),
                Reply::Integer(allowed_at),
                bulk("limits"),
                Reply::Map(limits),
            ])
        };
        let cap = || vec![bulk("held"), Reply::Integer(2)];
        let pause = || vec![bulk("pause"), bulk("yes")];
        let told = |state: &Reply| may_give(state, 5000.0).as_str().to_owned();
        assert!(told(&state(1, 0, cap())).contains(">now<"));
        assert!(told(&state(1, 4999, vec![])).contains(">now<"));
        assert!(told(&state(1, 8000, vec![])).contains(">in 3.0 s<"));
        assert!(told(&state(2, -1, cap())).contains("at its cap"));
        assert!(told(&state(2, -1, [cap(), pause()].concat())).contains("paused"));
        assert!(told(&state(1, -1, cap())).contains("a limit for all"));
        assert!(told(&Reply::Null).contains("no:"), "a reply that is none");
        assert!(shown(&Reply::Map(vec![])).as_str().contains("–"));
    }
}
