//! COMMAND: the command table, told to clients. What is told is in `command` and `docs`; here is only its shape.

use crate::args::is_word;
use crate::command::{Command, Flags, KeySpec, Keys, Registered, at_least, exactly, registry, server};
use crate::commands::shared::help::help;
use crate::commands::shared::manual;
use crate::context::ServerCx;
use crate::docs::{self, Argument, CommandDoc};
use crate::error::{CommandError, CommandResult};
use crate::pure::glob::Pattern;
use crate::pure::numbers::parse_i64;
use resp::{Reply, Request};

fn command(cx: &mut ServerCx<'_>) -> CommandResult {
    info_of_all(&mut cx.reply);
    Ok(())
}

fn count(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(registry().commands().count() as i64);
    Ok(())
}

fn info(cx: &mut ServerCx<'_>) -> CommandResult {
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

fn info_of(row: &Registered, reply: &mut Reply<'_>) {
    let command = row.command;
    let (first, last, step) = match command.keys {
        Keys::Range { first, last, step } => (i64::from(first), i64::from(last), i64::from(step)),
        Keys::Counted { also: Some(also), .. } => (i64::from(also), i64::from(also), 1),
        Keys::Counted { also: None, .. } | Keys::None | Keys::Everything | Keys::Walk => (0, 0, 0),
    };
    reply.array(10);
    reply.bulk(row.full_name.as_bytes());
    reply.integer(i64::from(command.arity.0));
    let flags: Vec<&str> =
        Flags::NAMES.iter().filter(|(flag, _)| command.flags.has(*flag)).map(|(_, name)| *name).collect();
    set_of_words(&flags, reply);
    [first, last, step].iter().for_each(|number| reply.integer(*number));
    let categories = row.acl_categories();
    set_of_words(&categories, reply);
    reply.set(command.tips.len());
    command.tips.iter().for_each(|tip| reply.bulk(tip.as_bytes()));
    let specs = row.key_specs();
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
    reply.map(3);
    reply.bulk(b"flags");
    set_of_words(spec.flags, reply);
    reply.bulk(b"begin_search");
    kind_and_details(reply, "index", &[("index", i64::from(spec.first))]);
    reply.bulk(b"find_keys");
    match spec.counted {
        true => kind_and_details(reply, "keynum", &[("keynumidx", 0), ("firstkey", 1), ("keystep", 1)]),
        false => {
            let details = [("lastkey", i64::from(spec.last)), ("keystep", i64::from(spec.step)), ("limit", 0)];
            kind_and_details(reply, "range", &details);
        }
    }
}

fn kind_and_details(reply: &mut Reply<'_>, kind: &str, details: &[(&str, i64)]) {
    reply.map(2);
    pair(reply, "type", kind);
    reply.bulk(b"spec");
    reply.map(details.len());
    for (name, number) in details {
        reply.bulk(name.as_bytes());
        reply.integer(*number);
    }
}

fn pair(reply: &mut Reply<'_>, name: &str, value: &str) {
    reply.bulk(name.as_bytes());
    reply.bulk(value.as_bytes());
}

fn list(cx: &mut ServerCx<'_>) -> CommandResult {
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

fn docs(cx: &mut ServerCx<'_>) -> CommandResult {
    let rows: Vec<_> = match cx.args.is_empty() {
        true => registry().commands().collect(),
        false => cx.args.rest().filter_map(|name| registry().find_full(name)).collect(),
    };
    docs_of_rows(&rows, &mut cx.reply);
    Ok(())
}

/// A map from names to what is said of them; a row without documentation is left out.
fn docs_of_rows(rows: &[&'static Registered], reply: &mut Reply<'_>) {
    let documented = rows.iter().filter_map(|row| Some((row, docs::find(&row.full_name)?)));
    reply.map(documented.clone().count());
    for (row, doc) in documented {
        reply.bulk(row.full_name.as_bytes());
        docs_of(row, doc, reply);
    }
}

fn docs_of(row: &Registered, doc: &CommandDoc, reply: &mut Reply<'_>) {
    let texts = [
        ("summary", Some(doc.summary)),
        ("since", Some(doc.since)),
        ("group", Some(doc.group)),
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

fn getkeys(cx: &mut ServerCx<'_>) -> CommandResult {
    let (request, found) = keys_of(cx)?;
    cx.reply.array(found.len());
    found.iter().for_each(|(at, _)| cx.reply.bulk(request.arg(*at)));
    Ok(())
}

fn getkeysandflags(cx: &mut ServerCx<'_>) -> CommandResult {
    let (request, found) = keys_of(cx)?;
    cx.reply.array(found.len());
    for (at, flags) in found {
        cx.reply.array(2);
        cx.reply.bulk(request.arg(at));
        set_of_words(flags, &mut cx.reply);
    }
    Ok(())
}

/// Where a key is in a request, and what the command does with it.
type FoundKey = (usize, &'static [&'static str]);

/// The request that follows GETKEYS, and its keys.
fn keys_of<'a>(cx: &ServerCx<'a>) -> Result<(Request<'a>, Vec<FoundKey>), CommandError> {
    let request = cx.args.request().skip(2);
    let row = registry().find(request.arg(0)).and_then(|row| match row.subcommands.is_empty() || request.len() < 2 {
        true => Some(row),
        false => row.subcommand(request.arg(1)),
    });
    let row = row.ok_or(CommandError::fixed("ERR Invalid command specified"))?;
    let specs = row.key_specs();
    if specs.is_empty() {
        return Err(CommandError::fixed("ERR The command has no key arguments"));
    }
    if !row.accepts(request.len()) {
        return Err(CommandError::fixed("ERR Invalid number of arguments specified for command"));
    }
    let depends = DEPENDS_ON_ARGUMENTS.iter().find(|(name, _)| *name == row.full_name);
    let mut found = Vec::new();
    for spec in specs {
        let (first, last) = (i64::from(spec.first), i64::from(spec.last));
        let last = if last < 0 { request.len() as i64 + last } else { first + last };
        let flags = depends.map_or(spec.flags, |(_, flags)| flags(request));
        if spec.counted {
            let count = parse_i64(request.arg(usize::from(spec.first))).unwrap_or(-1);
            let least = if row.command.flags.has(Flags::NO_MANDATORY_KEYS) { 0 } else { 1 };
            if count < least || count >= request.len() as i64 - first {
                return Err(CommandError::fixed("ERR Invalid arguments specified for command"));
            }
            found.extend((first + 1..=first + count).map(|at| (at as usize, flags)));
            continue;
        }
        found.extend((first..=last).step_by(usize::from(spec.step)).map(|at| (at as usize, flags)));
    }
    match found.is_empty() && !row.command.flags.has(Flags::NO_MANDATORY_KEYS) {
        true => Err(CommandError::fixed("ERR Invalid arguments specified for command")),
        false => Ok((request, found)),
    }
}

/// Commands that do with their key what their arguments say: `variable_flags` in COMMAND INFO.
type FlagsOfRequest = fn(Request<'_>) -> &'static [&'static str];

const DEPENDS_ON_ARGUMENTS: &[(&str, FlagsOfRequest)] = &[("set", flags_of_set), ("bitfield", flags_of_bitfield)];

fn flags_of_set(request: Request<'_>) -> &'static [&'static str] {
    match request.iter().skip(3).any(|word| is_word(word, "GET")) {
        true => &["RW", "access", "update"],
        false => &["OW", "update"],
    }
}

fn flags_of_bitfield(request: Request<'_>) -> &'static [&'static str] {
    let changes = |word| is_word(word, "SET") || is_word(word, "INCRBY");
    match request.iter().skip(2).any(changes) {
        true => &["RW", "access", "update"],
        false => &["RO", "access"],
    }
}

const ANYTIME: Flags = Flags(Flags::LOADING.0 | Flags::STALE.0);
const ANY_ORDER: &[&str] = &["nondeterministic_output_order"];

pub(super) const COMMANDS: &[Command] =
    &[server("command", at_least(1), command).flag(ANYTIME).tips(ANY_ORDER).with_subcommands(&[
        server("count", exactly(2), count).flag(ANYTIME),
        server("docs", at_least(2), docs).flag(ANYTIME).tips(ANY_ORDER),
        server("getkeys", at_least(3), getkeys).flag(ANYTIME),
        server("getkeysandflags", at_least(3), getkeysandflags).flag(ANYTIME),
        help(manual::help),
        server("info", at_least(2), info).flag(ANYTIME).tips(ANY_ORDER),
        server("list", at_least(2), list).flag(ANYTIME).tips(ANY_ORDER),
    ])];
