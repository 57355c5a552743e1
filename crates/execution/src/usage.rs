//! Writes the syntax of a command from its documentation, and explains an argument that is no option of it.

use crate::args::is_word;
use crate::docs::{Argument, ArgumentKind};
use crate::error::shown;
use algorithms::nearest::nearest;
use numbers::parse_i64;
use resp::Request;

/// Writes arguments as a line, such as `key [LIMIT limit]`.
pub(crate) fn syntax(arguments: &[Argument]) -> String {
    joined(arguments, " ")
}

fn joined(arguments: &[Argument], separator: &str) -> String {
    arguments.iter().map(one).collect::<Vec<_>>().join(separator)
}

fn one(argument: &Argument) -> String {
    let is_choice = argument.kind == ArgumentKind::OneOf && argument.arguments.len() > 1;
    let value = match argument.kind {
        ArgumentKind::PureToken => String::new(),
        ArgumentKind::OneOf => joined(argument.arguments, " | "),
        ArgumentKind::Block => joined(argument.arguments, " "),
        _ => argument.display_text.to_owned(),
    };
    let is_bracketed = argument.optional && argument.token.is_none() && !argument.multiple;
    let value = if is_choice && !is_bracketed { format!("<{value}>") } else { value };
    let value = if argument.multiple && !argument.multiple_token { format!("{value} ...") } else { value };
    let text = match argument.token {
        Some(token) if value.is_empty() => token.to_owned(),
        Some(token) => format!("{token} {value}"),
        None => value,
    };
    let text = if argument.optional { format!("[{text}]") } else { text };
    if argument.multiple_token { format!("{text} ...") } else { text }
}

/// Explains why the argument at a position is no option: where the counted list before it ended, the option with the
/// nearest name, and which options there are.
pub(crate) fn explain_option(arguments: &'static [Argument], request: Request<'_>, at: usize) -> String {
    let given = request.arg(at);
    let mut known = options(choice_before(arguments, request, at).map_or(arguments, |choice| choice.arguments));
    known.retain(|option| !is_word(given, option));
    let all: Vec<&str> = every(arguments).into_iter().filter_map(|argument| argument.token).collect();
    let mut parts = Vec::new();
    parts.extend(CountedList::ending_at(arguments, request, at).map(|list| list.explain(request.arg(at - 1))));
    parts.extend(nearest(given, &all).map(|option| match is_word(given, option) {
        true => format!("{option} cannot stand here."),
        false => format!("Did you mean {option}?"),
    }));
    parts.push(match known.is_empty() {
        true => "There are no options here.".to_owned(),
        false => format!("Known here: {}", known.join(", ")),
    });
    parts.join(" ")
}

/// All arguments, the members of groups included.
fn every(arguments: &'static [Argument]) -> Vec<&'static Argument> {
    arguments.iter().flat_map(|argument| [vec![argument], every(argument.arguments)].concat()).collect()
}

/// The words that begin one of these arguments, each once.
fn options(arguments: &[Argument]) -> Vec<&'static str> {
    let mut found = Vec::new();
    for argument in arguments {
        let words = match argument.token {
            // The `*` of RUN.APPEND and XADD is a value.
            Some(token) => Vec::from_iter(Some(token).filter(|token| token.starts_with(char::is_alphabetic))),
            None => options(argument.arguments),
        };
        let new = |word: &&str| !found.contains(word);
        let new: Vec<&str> = words.into_iter().filter(new).collect();
        found.extend(new);
    }
    found
}

/// The option before a position that takes one of some words.
fn choice_before(arguments: &'static [Argument], request: Request<'_>, at: usize) -> Option<&'static Argument> {
    let before = request.arg(at.checked_sub(1)?);
    let is_choice = |argument: &&Argument| {
        argument.kind == ArgumentKind::OneOf
            && argument.arguments.iter().all(|member| member.kind == ArgumentKind::PureToken)
            && argument.token.is_some_and(|token| is_word(before, token))
    };
    every(arguments).into_iter().find(is_choice)
}

/// A list in a request whose length an argument before it counts, such as `SET 2 a 1 b 2`.
struct CountedList {
    /// The option, or the name of a list without option.
    name: String,
    count: usize,
    /// Arguments of one item.
    each: usize,
}

impl CountedList {
    /// Finds the list whose last argument stands before a position.
    fn ending_at(arguments: &'static [Argument], request: Request<'_>, at: usize) -> Option<CountedList> {
        every(arguments).into_iter().find_map(|argument| {
            let (fixed, each) = list_shape(argument)?;
            let begins = |start: &usize| argument.token.is_none_or(|token| is_word(request.arg(*start - 1), token));
            (1..at).filter(begins).find_map(|start| {
                let count_at = start + fixed;
                let count = (count_at < at).then(|| parse_i64(request.arg(count_at))).flatten()?;
                let count = usize::try_from(count).ok()?;
                let end = count.checked_mul(each)?.checked_add(count_at + 1)?;
                (end == at).then_some(CountedList {
                    name: argument.token.map_or_else(|| format!("The list of {}", argument.name), str::to_owned),
                    count,
                    each,
                })
            })
        })
    }

    fn explain(&self, last: &[u8]) -> String {
        let CountedList { name, count, each } = self;
        let items = match (each, count) {
            (1, 1) => "1 item".to_owned(),
            (1, _) => format!("{count} items"),
            (_, 1) => format!("1 item of {each}"),
            _ => format!("{count} items of {each}"),
        };
        match count {
            0 => format!("{name} counts no items, so this follows it."),
            _ => format!("{name} counts {items}, and ended before it with {}.", shown(last)),
        }
    }
}

/// How many arguments stand before the count of a list, and how many arguments an item has; `None` if the argument is
/// no counted list.
fn list_shape(argument: &Argument) -> Option<(usize, usize)> {
    let fixed = argument.arguments.iter().position(|member| member.name == "count")?;
    let [item] = &argument.arguments[fixed + 1..] else { return None };
    let each = if item.kind == ArgumentKind::Block { item.arguments.len() } else { 1 };
    (argument.kind == ArgumentKind::Block && item.multiple).then_some((fixed, each))
}
