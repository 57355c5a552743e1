//! Help at the prompt, from the command table: what a command does and takes, and the names that begin like what is typed.

use crate::html::{Html, html};
use crate::visit::{Outcome, Shown, Visit};
use engine::command::{CommandRow, registry};
use engine::execution::docs::{Argument, ArgumentKind};

/// The most names that are completed.
const NAMES_MAX: usize = 12;

/// Help for what is being typed: the command, or the names that begin so.
pub(super) async fn show(visit: &mut Visit<'_>) -> Outcome {
    let typed = String::from_utf8_lossy(visit.query.get("typed")).to_ascii_lowercase();
    let mut words = typed.split_ascii_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let mut part = Html::new();
    let container = registry().find(first.as_bytes());
    match (container, second) {
        (Some(row), Some(sub)) if !row.subcommands.is_empty() => match row.subcommand(sub.as_bytes()) {
            Some(row) => part.add(&describe(visit, row)),
            None => names(&mut part, row.subcommands.iter().copied(), &format!("{first}|{sub}")),
        },
        (Some(row), _) if second.is_some() || !typed.ends_with(char::is_alphanumeric) || row.subcommands.is_empty() => {
            part.add(&describe(visit, row));
            names(&mut part, row.subcommands.iter().copied(), first);
        }
        _ if first.is_empty() => {}
        _ => names(&mut part, registry().commands(), first),
    }
    Ok(Some(Shown::Part(part)))
}

fn names(part: &mut Html, rows: impl Iterator<Item = &'static CommandRow>, beginning: &str) {
    let mut list = Html::new();
    for row in rows.filter(|row| row.full_name.starts_with(beginning)).take(NAMES_MAX) {
        let name = row.full_name.replace('|', " ").to_ascii_uppercase();
        list.put(
            "<li><button type=\"button\" class=\"plain\" data-complete=\"{}\">{}</button> {}</li>",
            &[&name, &name, &row.command.docs.summary],
        );
    }
    if !list.is_empty() {
        part.put("<ul>{}</ul>", &[&list]);
    }
}

fn describe(visit: &Visit<'_>, row: &'static CommandRow) -> Html {
    let name = row.full_name.replace('|', " ").to_ascii_uppercase();
    let syntax = syntax(row.command.docs.arguments);
    let docs = &row.command.docs;
    let categories: Vec<String> =
        row.acl_categories().into_iter().map(|name| format!("@{}", name.trim_start_matches('@'))).collect();
    let rights = visit.session.user.rights();
    let may = if rights.selectors.iter().any(|selector| selector.allows_command(row, None)) {
        ""
    } else {
        "This user may not run it."
    };
    html(
        "<p><code>{} {}</code></p><p>{} <span class=\"hint\">{} {}</span> {}</p>",
        &[&name, &syntax, &docs.summary, &docs.complexity.unwrap_or_default(), &categories.join(" "), &may],
    )
}

/// Arguments as redis-cli shows them.
fn syntax(arguments: &[Argument]) -> String {
    arguments.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn one(argument: &Argument) -> String {
    let inner = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf => argument.arguments.iter().map(one).collect::<Vec<_>>().join(" | "),
        ArgumentKind::Block => syntax(argument.arguments),
        _ => argument.display_text.to_owned(),
    };
    let mut shown = match (argument.token, inner.is_empty()) {
        (Some(token), true) => token.to_owned(),
        (Some(token), false) if argument.kind == ArgumentKind::OneOf => format!("{token} <{inner}>"),
        (Some(token), false) => format!("{token} {inner}"),
        (None, _) if argument.kind == ArgumentKind::OneOf && !argument.optional => format!("<{inner}>"),
        (None, _) => inner,
    };
    if argument.multiple {
        let again = if argument.multiple_token || argument.token.is_none() {
            shown.clone()
        } else {
            shown[argument.token.map_or(0, |token| token.len() + 1).min(shown.len())..].to_owned()
        };
        shown = format!("{shown} [{again} …]");
    }
    if argument.optional { format!("[{shown}]") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_in_redis_cli() {
        let of = |name: &str| syntax(registry().find(name.as_bytes()).unwrap().command.docs.arguments);
        assert_eq!(of("get"), "key");
        assert_eq!(of("mset"), "key value [key value …]");
        assert_eq!(of("session.info"), "session");
        assert!(of("set").starts_with("key value ["), "{}", of("set"));
        for row in registry().rows() {
            syntax(row.command.docs.arguments);
        }
    }
}
