//! Cells: the list, branches of them, one cell with its history, and the difference of two versions.

use super::value::{input, key_link, link_to, next};
use crate::figures;
use crate::html::{Html, Long, Short, html};
use crate::layout::{empty, refused, table};
use crate::paths::Page;
use crate::reply::Reply;
use crate::talk::request;
use crate::visit::{Outcome, Visit, search};

/// Versions on a page.
const VERSIONS: usize = 50;
/// The most lines of a value that are compared.
const LINES_MAX: usize = 1000;

pub(super) async fn list(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let prefix = query.typed("prefix");
    let mut cursor = if query.has("cursor") { query.get("cursor").to_vec() } else { b"0".to_vec() };
    let mut names = Vec::new();
    loop {
        let reply = visit.ask(&[b"CELL.LIST", b"PREFIX", prefix, b"CURSOR", &cursor, b"LIMIT", b"100"]).await?;
        if let Some(refused) = refused(&reply) {
            return visit.page("Cells", refused);
        }
        names.extend(reply.at(1).items().iter().map(|name| name.bytes().into_owned()));
        cursor = reply.at(0).bytes().into_owned();
        if cursor == b"0" || names.len() >= 100 || !visit.has_time() {
            break;
        }
    }
    let asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"CELL.HISTORY", name, b"LIMIT", b"1"])).collect();
    let newest = visit.ask_all(&asked).await?;
    let now = visit.now_ms();
    let mut rows = Html::new();
    for (name, newest) in names.iter().zip(&newest) {
        let newest = newest.at(0);
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td>{}</td><td class=\"value\">{}</td></tr>",
            &[
                &link_to(visit.link(Page::Cell).with("cell", name), name),
                &newest.at(1).text(),
                &newest.at(2).number().map_or_else(String::new, |at| figures::distance(at / 1000.0, now)),
                &Short(&newest.at(0).bytes()),
            ],
        );
    }
    let list = match rows.is_empty() {
        true => empty("There is no cell here.", "A cell is a value with a version: CELL.SET config:1 '{}'"),
        false => table(&["Cell", "Version#", "Changed", "Value"], &rows),
    };
    let more = (cursor != b"0").then(|| visit.link(Page::Cells).with_any("prefix", prefix).with("cursor", &cursor));
    let filters = search(visit, &input("Name begins", "prefix", prefix, "any"));
    let branches = branches(visit, prefix, &names);
    visit.page("Cells", html("{}{}{}{}", &[&filters, &list, &next(more), &branches]))
}

/// The prefixes of the cells above that could be branches, and what can be done with them.
fn branches(visit: &Visit<'_>, prefix: &[u8], names: &[Vec<u8>]) -> Html {
    let end = |name: &[u8]| name.iter().position(|byte| matches!(byte, b'/' | b':')).map(|at| name[..=at].to_vec());
    let mut found: Vec<Vec<u8>> = names
        .iter()
        .filter_map(|name| {
            let rest = name.strip_prefix(prefix)?;
            Some([prefix, &end(rest)?].concat())
        })
        .collect();
    found.sort();
    found.dedup();
    let mut list = Html::new();
    for branch in found.iter().take(50) {
        list.put("<li>{}</li>", &[&link_to(visit.link(Page::Cells).with("prefix", branch), branch)]);
    }
    let mut branches = Html::new();
    branches.put(
        "<h2>Branches</h2><p class=\"hint\">A branch is a prefix that ends in / or :.</p><ul class=\"columns\">{}</ul>",
        &[&list],
    );
    if visit.may(&[b"CELL.FORK", b"a/", b"b/"]) || visit.may(&[b"CELL.FORK", prefix, prefix]) {
        let fork = html(
            "{}{}<button>Copy the branch</button>",
            &[&input("From", "from", prefix, "main/"), &input("to", "to", b"", "test/")],
        );
        let drop = html(
            "{}<button class=\"danger\">Delete all its cells</button>",
            &[&input("Branch", "branch", b"", "test/")],
        );
        branches.put(
            "<div class=\"actions\"><details class=\"ask\"><summary>Copy a branch…</summary>{}</details>\
             <details class=\"ask\"><summary>Delete a branch…</summary>{}</details></div>",
            &[&visit.form("fork", &[], &fork), &visit.form("drop", &[], &drop)],
        );
    }
    branches
}

pub(super) async fn act_on_branch(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (words, shown): (Vec<&[u8]>, &[u8]) = match form.get("action") {
        b"fork" => (vec![b"CELL.FORK", form.typed("from"), form.typed("to")], form.typed("to")),
        b"drop" => (vec![b"CELL.DROP", form.typed("branch")], b""),
        _ => return Ok(None),
    };
    let reply = visit.ask(&words).await?;
    visit.note_reply(&reply, format!("{} cells.", reply.text()));
    visit.go(visit.link(Page::Cells).with_any("prefix", shown))
}

pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let cell = query.get("cell");
    let title = format!("Cell {}", String::from_utf8_lossy(&cell[..cell.len().min(100)]));
    let before = query.number("before").map(|before| before.to_string());
    let limit = VERSIONS.to_string();
    let mut history: Vec<&[u8]> = vec![b"CELL.HISTORY", cell, b"LIMIT", limit.as_bytes()];
    if let Some(before) = &before {
        history.extend([&b"BEFORE"[..], before.as_bytes()]);
    }
    let replies = visit.ask_all(&[request(&history), request(&[b"CELL.GETV", cell])]).await?;
    let [history, current] = replies.as_slice() else { return Ok(None) };
    if let Some(refused) = refused(history) {
        return visit.page(title, refused);
    }
    if current.is_null() {
        return visit
            .page(title, empty("There is no such cell.", "It was deleted or has expired: see the list of cells."));
    }
    let difference = match (query.number("from"), query.number("to")) {
        (Some(from), Some(to)) => compare(visit, cell, from, to).await?,
        _ => Html::new(),
    };
    let now = visit.now_ms();
    let mut rows = Html::new();
    let newest = current.at(1).integer().unwrap_or(0);
    for version in history.items() {
        let number = version.at(1).integer().unwrap_or(0);
        let at = version.at(2).number().unwrap_or(0.0) / 1000.0;
        let link =
            visit.link(Page::Cell).with("cell", cell).with("from", number.saturating_sub(1).to_string().as_bytes());
        let link = link.with("to", number.to_string().as_bytes());
        let again = match number != newest && visit.may(&[b"CELL.CAS", cell, b"1", b""]) {
            true => visit.confirmed(
                "again",
                &"Set it again",
                &html(
                    "Make the value of version {} the newest? It fails if the cell has changed since version {}.",
                    &[&number, &newest],
                ),
                &[
                    ("cell", cell),
                    ("version", number.to_string().as_bytes()),
                    ("newest", newest.to_string().as_bytes()),
                ],
            ),
            false => Html::new(),
        };
        rows.put(
            "<tr><td class=\"num\"><a href=\"{}\">{}</a></td><td>{} <span class=\"hint\">{}</span></td>\
             <td class=\"value\">{}</td><td>{}</td></tr>",
            &[&link, &number, &figures::date(at), &figures::distance(at, now), &Short(&version.at(0).bytes()), &again],
        );
    }
    let oldest = history.items().last().and_then(|version| version.at(1).integer());
    let more = oldest
        .filter(|_| history.items().len() == VERSIONS)
        .map(|oldest| visit.link(Page::Cell).with("cell", cell).with("before", oldest.to_string().as_bytes()));
    let main = html(
        "<p>{}</p><h2>Value, version {}</h2><pre class=\"value\">{}</pre>{}<h2>History</h2>\
         <p class=\"hint\">A version's number shows what it changed.</p>{}{}",
        &[
            &key_link(visit, cell),
            &newest,
            &Long(&current.at(0).bytes()),
            &difference,
            &table(&["Version#", "Time", "Value", ""], &rows),
            &next(more),
        ],
    );
    visit.page(title, main)
}

async fn compare(visit: &mut Visit<'_>, cell: &[u8], from: u64, to: u64) -> Result<Html, crate::talk::Trouble> {
    let numbers = [from, to].map(|number| number.to_string());
    let asked = numbers.iter().map(|number| request(&[b"CELL.GETV", cell, b"VERSION", number.as_bytes()]));
    let asked: Vec<Vec<u8>> = asked.collect();
    let mut replies = visit.ask_all(&asked).await?;
    if from == 0 {
        replies[0] = Reply::Null;
    }
    let values: Vec<Vec<u8>> = replies.iter().map(|reply| reply.at(0).bytes().into_owned()).collect();
    let missing = replies.iter().zip([from, to]).filter(|(reply, number)| *number > 0 && reply.is_null()).count();
    if missing > 0 {
        return Ok(empty("A version is no longer kept.", "cell-max-versions says how many are."));
    }
    let mut lines = Html::new();
    for (kind, line) in differences(&values[0], &values[1]) {
        let (class, sign) = match kind {
            Kind::Same => ("same", " "),
            Kind::Gone => ("gone", "−"),
            Kind::New => ("new", "+"),
        };
        lines.put("<span class=\"{}\">{} {}</span>\n", &[&class, &sign, &Long(line)]);
    }
    Ok(html("<h2>From version {} to {}</h2><pre class=\"difference\">{}</pre>", &[&from, &to, &lines]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Same,
    Gone,
    New,
}

/// The lines of two values: those of both, only of the first, only of the second. What is equal at both ends is found first; of
/// the rest, the longest common sequence, or nothing in common where that would take too long.
fn differences<'a>(one: &'a [u8], other: &'a [u8]) -> Vec<(Kind, &'a [u8])> {
    let lines = |value: &'a [u8]| match value.is_empty() {
        true => Vec::new(),
        false => value.split(|byte| *byte == b'\n').collect::<Vec<_>>(),
    };
    let (one, other) = (lines(one), lines(other));
    let begin = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let end =
        one[begin..].iter().rev().zip(other[begin..].iter().rev()).take_while(|(one, other)| one == other).count();
    let (left, right) = (&one[begin..one.len() - end], &other[begin..other.len() - end]);
    let mut found: Vec<(Kind, &[u8])> = one[..begin].iter().map(|line| (Kind::Same, *line)).collect();
    if left.len() > LINES_MAX || right.len() > LINES_MAX {
        found.extend(left.iter().map(|line| (Kind::Gone, *line)));
        found.extend(right.iter().map(|line| (Kind::New, *line)));
    } else {
        longest_common(left, right, &mut found);
    }
    found.extend(one[one.len() - end..].iter().map(|line| (Kind::Same, *line)));
    found
}

fn longest_common<'a>(left: &[&'a [u8]], right: &[&'a [u8]], found: &mut Vec<(Kind, &'a [u8])>) {
    let width = right.len() + 1;
    // How many lines the rests have in common, from each pair of lines on.
    let mut common = vec![0u16; (left.len() + 1) * width];
    for i in (0..left.len()).rev() {
        for j in (0..right.len()).rev() {
            common[i * width + j] = match left[i] == right[j] {
                true => common[(i + 1) * width + j + 1] + 1,
                false => common[(i + 1) * width + j].max(common[i * width + j + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < left.len() || j < right.len() {
        if i < left.len() && j < right.len() && left[i] == right[j] {
            found.push((Kind::Same, left[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == right.len() || i < left.len() && common[(i + 1) * width + j] >= common[i * width + j + 1] {
            found.push((Kind::Gone, left[i]));
            i += 1;
        } else {
            found.push((Kind::New, right[j]));
            j += 1;
        }
    }
}

pub(super) async fn act(visit: &mut Visit<'_>) -> Outcome {
    let form = visit.form.clone();
    let (cell, version, newest) = (form.packed("cell"), form.packed("version"), form.packed("newest"));
    if form.get("action") != b"again" {
        return Ok(None);
    }
    let old = visit.ask(&[b"CELL.GETV", &cell, b"VERSION", &version]).await?;
    let here = visit.link(Page::Cell).with("cell", &cell);
    if old.at(1).is_null() {
        visit.note(false, "That version is no longer kept: nothing was changed.");
        return visit.go(here);
    }
    let reply = visit.ask(&[b"CELL.CAS", &cell, &newest, &old.at(0).bytes()]).await?;
    match reply.is_null() {
        true => visit.note(false, "Nothing was changed: another client has changed the cell since this page was made."),
        false => visit.note_reply(&reply, format!("The cell is at version {} now.", reply.text())),
    }
    visit.go(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(one: &str, other: &str) -> String {
        let sign = |kind| match kind {
            Kind::Same => ' ',
            Kind::Gone => '-',
            Kind::New => '+',
        };
        let lines = differences(one.as_bytes(), other.as_bytes());
        lines.iter().map(|(kind, line)| format!("{}{};", sign(*kind), String::from_utf8_lossy(line))).collect()
    }

    #[test]
    fn lines_that_differ() {
        assert_eq!(shown("a\nb\nc", "a\nx\nc"), " a;-b;+x; c;");
        assert_eq!(shown("", "a"), "+a;");
        assert_eq!(shown("a", ""), "-a;");
        assert_eq!(shown("", ""), "");
        assert_eq!(shown("a\na", "a"), " a;-a;");
        assert_eq!(shown("1\n2\n3\n4\n5", "0\n2\n4\n6"), "-1;+0; 2;-3; 4;-5;+6;");
    }

    #[test]
    fn long_values_are_compared_at_their_ends() {
        let long: String = (0..5000).map(|number| format!("{number}\n")).collect();
        let other = long.replace("2500\n", "changed\n");
        assert_eq!(
            differences(long.as_bytes(), other.as_bytes()).iter().filter(|(kind, _)| *kind != Kind::Same).count(),
            2
        );
        let reversed: String = (0..5000).rev().map(|number| format!("{number}\n")).collect();
        assert!(differences(long.as_bytes(), reversed.as_bytes()).len() <= 10_002);
    }
}
