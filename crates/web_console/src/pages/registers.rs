//! Registers: the list, with values and versions.

use super::keys::walk;
use super::value::{input, key_link, next};
use crate::html::{Html, Short, html};
use crate::layout::{empty, table};
use crate::paths::Page;
use crate::talk::request;
use crate::visit::{Outcome, Visit, search};

pub(super) async fn list(visit: &mut Visit<'_>) -> Outcome {
    let query = visit.query.clone();
    let prefix = query.typed("prefix");
    let pattern = [&escaped(prefix), &b"*"[..]].concat();
    let (names, cursor) = match walk(visit, &pattern, b"register", query.get("cursor")).await? {
        Ok(found) => found,
        Err(refused) => return visit.page("Registers", refused),
    };
    let asked: Vec<Vec<u8>> = names.iter().map(|name| request(&[b"REG.GET", name])).collect();
    let values = visit.ask_all(&asked).await?;
    let mut rows = Html::new();
    for (name, value) in names.iter().zip(&values) {
        let shown = match value.error() {
            Some(error) => html("{}", &[&Short(error)]),
            None => html("{}", &[&Short(&value.at(0).bytes())]),
        };
        rows.put(
            "<tr><td>{}</td><td class=\"num\">{}</td><td class=\"value\">{}</td></tr>",
            &[&key_link(visit, name), &Short(&value.at(1).bytes()), &shown],
        );
    }
    let list = match rows.is_empty() {
        true if cursor != b"0" => empty("No register among the keys so far.", "There are more keys to look at: go on."),
        true => empty("There is no register here.", "A register takes each version once: REG.PUT sum:1 1 value"),
        false => table(&["Register", "Version#", "Value"], &rows),
    };
    let more = (cursor != b"0").then(|| visit.link(Page::Registers).with_any("prefix", prefix).with("cursor", &cursor));
    let filters = search(visit, &input("Name begins", "prefix", prefix, "any"));
    visit.page("Registers", html("{}{}{}", &[&filters, &list, &next(more)]))
}

/// A text as a pattern that matches it alone.
pub(super) fn escaped(text: &[u8]) -> Vec<u8> {
    let special = |byte: &u8| b"*?[]\\^-".contains(byte);
    text.iter().flat_map(|byte| if special(byte) { vec![b'\\', *byte] } else { vec![*byte] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_no_pattern() {
        assert_eq!(escaped(b"a*[b]?\\"), b"a\\*\\[b\\]\\?\\\\");
    }
}
