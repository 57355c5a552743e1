//! COMMAND: the command table as replies. The facts are in `execution::command` and `execution::docs`; this file only
//! writes replies.

use algorithms::glob::Pattern;
use execution::args::is_word;
use execution::command::{CommandRow, Find, Flags, KeyFlags, KeySpec, KeysBegin, registry};
use execution::context::ServerCx;
use execution::docs::Argument;
use execution::error::{CommandError, CommandResult};
use resp::{Reply, Request};

pub(super) fn command(cx: &mut ServerCx<'_>) -> CommandResult {
    info_of_all(&mut cx.reply);
    Ok(())
}

pub(super) fn count(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(registry().commands().count() as i64);
    Ok(())
}

pub(super) fn info(cx: &mut ServerCx<'_>) -> CommandResult {
    if cx.args.is_empty() {
        info_of_all(&mut cx.reply);
        return Ok(());
    }
    cx.reply.array(cx.args.left());
    for name in cx.args.rest() {
        match registry().find_full(name) {
            Some(row) => info_of(row, &mut cx.reply),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

fn info_of_all(reply: &mut Reply<'_>) {
    reply.array(registry().commands().count());
    registry().commands().for_each(|row| info_of(row, reply));
}

fn info_of(row: &CommandRow, reply: &mut Reply<'_>) {
    let command = row.command;
    let (first, last, step) = command.keys.fixed_range();
    reply.array(10);
    reply.bulk(row.full_name.as_bytes());
    reply.integer(i64::from(command.arity.0));
    set_of_words(&command.flags.names(), reply);
    [first, last, step].iter().for_each(|number| reply.integer(*number));
    let categories = row.acl_categories();
    set_of_words(&categories, reply);
    reply.set(command.tips.len());
    command.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    let specs = command.keys.specs();
    reply.set(specs.len());
    specs.iter().for_each(|spec| key_spec(spec, reply));
    match row.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    row.subcommands.iter().for_each(|row| info_of(row, reply));
}

fn set_of_words(words: &[impl AsRef<str>], reply: &mut Reply<'_>) {
    reply.set(words.len());
    words.iter().for_each(|word| reply.simple(word.as_ref()));
}

fn key_spec(spec: &KeySpec, reply: &mut Reply<'_>) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        pair(reply, "notes", notes);
    }
    reply.bulk(b"flags");
    set_of_words(&spec.flags.names(), reply);
    reply.bulk(b"begin_search");
    match spec.begin {
        KeysBegin::Index(at) => kind_and_details(reply, "index", None, &[("index", i64::from(at))]),
        KeysBegin::Unknown => kind_and_details(reply, "unknown", None, &[]),
        KeysBegin::Keyword { word, from } => {
            kind_and_details(reply, "keyword", Some(("keyword", word)), &[("startfrom", i64::from(from))]);
        }
    }
    reply.bulk(b"find_keys");
    match spec.find {
        Find::Count { step } => {
            let details = [("keynumidx", 0), ("firstkey", 1), ("keystep", i64::from(step))];
            kind_and_details(reply, "keynum", None, &details);
        }
        Find::Unknown => kind_and_details(reply, "unknown", None, &[]),
        Find::Range { last, step, limit } => {
            let details = [("lastkey", i64::from(last)), ("keystep", i64::from(step)), ("limit", i64::from(limit))];
            kind_and_details(reply, "range", None, &details);
        }
    }
}

fn kind_and_details(reply: &mut Reply<'_>, kind: &str, word: Option<(&str, &str)>, numbers: &[(&str, i64)]) {
    reply.map(2);
    pair(reply, "type", kind);
    reply.bulk(b"spec");
    reply.map(numbers.len() + usize::from(word.is_some()));
    if let Some((name, word)) = word {
        pair(reply, name, word);
    }
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

fn pair(reply: &mut Reply<'_>, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

pub(super) fn list(cx: &mut ServerCx<'_>) -> CommandResult {
    let rows = registry().commands().flat_map(|row| std::iter::once(row).chain(row.subcommands.iter().copied()));
    let rows: Vec<_> = match (cx.args.try_next(), cx.args.try_next(), cx.args.try_next()) {
        (None, ..) => rows.collect(),
        (Some(word), Some(by), Some(wanted)) if is_word(word, "FILTERBY") => {
            cx.args.finish()?;
            if is_word(by, "MODULE") {
                Vec::new()
            } else if is_word(by, "ACLCAT") {
                rows.filter(|row| row.acl_categories().iter().any(|has| is_word(wanted, &has[1..]))).collect()
            } else if is_word(by, "PATTERN") {
                let wanted = Pattern::new(wanted, true);
                rows.filter(|row| wanted.matches(row.full_name.as_bytes())).collect()
            } else {
                return Err(CommandError::Syntax);
            }
        }
        _ => return Err(CommandError::Syntax),
    };
    cx.reply.array(rows.len());
    rows.iter().for_each(|row| cx.reply.bulk(row.full_name.as_bytes()));
    Ok(())
}

pub(super) fn docs(cx: &mut ServerCx<'_>) -> CommandResult {
    let rows: Vec<_> = match cx.args.is_empty() {
        true => registry().commands().collect(),
        false => cx.args.rest().filter_map(|name| registry().find_full(name)).collect(),
    };
    docs_of_rows(&rows, &mut cx.reply);
    Ok(())
}

/// A map from command names to their documentation.
fn docs_of_rows(rows: &[&'static CommandRow], reply: &mut Reply<'_>) {
    reply.map(rows.len());
    for row in rows {
        reply.bulk(row.full_name.as_bytes());
        docs_of(row, reply);
    }
}

fn docs_of(row: &CommandRow, reply: &mut Reply<'_>) {
    let doc = &row.command.docs;
    let texts = [
        ("summary", Some(doc.summary)),
        ("since", Some(doc.since)),
        ("group", Some(row.group())),
        ("complexity", doc.complexity),
    ];
    let replacement = [("deprecated_since", doc.deprecated_since), ("replaced_by", doc.replaced_by)];
    let lists =
        [!doc.doc_flags.is_empty(), !doc.history.is_empty(), !doc.arguments.is_empty(), !row.subcommands.is_empty()];
    let said = texts.iter().chain(&replacement).filter(|(_, text)| text.is_some()).count();
    reply.map(said + lists.iter().filter(|there| **there).count());
    pairs(reply, &texts);
    if !doc.doc_flags.is_empty() {
        reply.bulk(b"doc_flags");
        set_of_words(doc.doc_flags, reply);
    }
    pairs(reply, &replacement);
    if !doc.history.is_empty() {
        reply.bulk(b"history");
        reply.set(doc.history.len());
        for (version, change) in doc.history {
            reply.array(2);
            pair(reply, version, change);
        }
    }
    if !doc.arguments.is_empty() {
        reply.bulk(b"arguments");
        arguments(doc.arguments, reply);
    }
    if !row.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        docs_of_rows(&row.subcommands, reply);
    }
}

fn pairs(reply: &mut Reply<'_>, pairs: &[(&str, Option<&str>)]) {
    for (name, value) in pairs {
        if let Some(value) = value {
            pair(reply, name, value);
        }
    }
}

fn arguments(arguments: &[Argument], reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for argument in arguments {
        let is_group = argument.kind.is_group();
        let head = [
            ("name", Some(argument.name)),
            ("type", Some(argument.kind.name())),
            ("display_text", (!is_group).then_some(argument.display_text)),
        ];
        let tail = [
            ("token", argument.token),
            ("summary", argument.summary),
            ("since", argument.since),
            ("deprecated_since", argument.deprecated_since),
        ];
        let flags: Vec<_> = argument.flags().collect();
        let said = head.iter().chain(&tail).filter(|(_, text)| text.is_some()).count();
        let others = [argument.key_spec_index.is_some(), !flags.is_empty(), is_group];
        reply.map(said + others.iter().filter(|there| **there).count());
        pairs(reply, &head);
        if let Some(index) = argument.key_spec_index {
            reply.bulk(b"key_spec_index");
            reply.integer(index as i64);
        }
        pairs(reply, &tail);
        if !flags.is_empty() {
            reply.bulk(b"flags");
            set_of_words(&flags, reply);
        }
        if is_group {
            reply.bulk(b"arguments");
            self::arguments(argument.arguments, reply);
        }
    }
}

pub(super) fn getkeys(cx: &mut ServerCx<'_>) -> CommandResult {
    let (request, found) = keys_of(cx)?;
    cx.reply.array(found.len());
    found.iter().for_each(|(at, _)| cx.reply.bulk(request.arg(*at)));
    Ok(())
}

pub(super) fn getkeysandflags(cx: &mut ServerCx<'_>) -> CommandResult {
    let (request, found) = keys_of(cx)?;
    cx.reply.array(found.len());
    for (at, flags) in found {
        cx.reply.array(2);
        cx.reply.bulk(request.arg(at));
        set_of_words(&flags.names(), &mut cx.reply);
    }
    Ok(())
}

/// Where a key is in a request, and what the command does with it.
type FoundKey = (usize, KeyFlags);

/// The request that follows GETKEYS, and its keys.
fn keys_of<'a>(cx: &ServerCx<'a>) -> Result<(Request<'a>, Vec<FoundKey>), CommandError> {
    let request = cx.args.request().skip(2);
    let row = registry().find(request.arg(0)).and_then(|row| match row.subcommands.is_empty() || request.len() < 2 {
        true => Some(row),
        false => row.subcommand(request.arg(1)),
    });
    let row = row.ok_or(CommandError::fixed("ERR Invalid command specified"))?;
    if !row.command.keys.has_any() {
        return Err(CommandError::fixed("ERR The command has no key arguments"));
    }
    if !row.accepts(request.len()) {
        return Err(CommandError::fixed("ERR Invalid number of arguments specified for command"));
    }
    let found = row.found_keys(request);
    if (found.is_invalid || found.ranges.is_empty()) && !row.command.flags.has(Flags::NO_MANDATORY_KEYS) {
        return Err(CommandError::fixed("ERR Invalid arguments specified for command"));
    }
    let keys = found.ranges.iter().flat_map(|range| range.positions().map(|at| (at, range.flags)));
    Ok((request, keys.collect()))
}
