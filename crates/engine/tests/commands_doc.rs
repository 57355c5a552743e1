//! Keeps docs/COMMANDS.md equal to the command table, so that the page cannot forget a command or invent one.

use engine::command::missing::{MISSING, MISSING_FAMILIES, MISSING_IN_DEBUG, MISSING_OPTIONS, Missing};
use engine::command::{CommandRow, Handler, registry};
use engine::execution::docs::CommandDoc;
use std::collections::BTreeMap;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMMANDS.md");
const BLESS: &str = "HOLDFAST_TEST_BLESS";

#[test]
fn the_page_lists_every_command() {
    let rendered = page(&callable_rows()) + &not_built();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(PAGE, rendered).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = || {
        let (rendered, kept) = (rendered.lines().map(Some), kept.lines().map(Some));
        let mut pairs = rendered.chain([None]).zip(kept.chain([None]));
        let (new, old) = pairs.find(|(new, old)| new != old).unwrap_or_default();
        format!("it has {}\nand should have {}", old.unwrap_or("ended"), new.unwrap_or("ended"))
    };
    assert!(
        rendered == kept,
        "docs/COMMANDS.md is not what the command table says:\n{}\n\
         Rewrite it with {BLESS}=1 cargo test -p engine --test commands_doc",
        differs()
    );
}

#[test]
fn a_page_is_a_table_for_each_group() {
    let documented = |name: &str| registry().find_full(name.as_bytes()).unwrap();
    let rendered = page(&[documented("hget"), documented("config|get"), documented("hdel"), documented("hcas")]);
    let lines: Vec<&str> = rendered.lines().filter(|line| line.starts_with(['#', '|'])).collect();
    let expected = [
        "# Commands",
        "## Hash",
        "| command | what it does | since |",
        "| --- | --- | --- |",
        &format!("| `HCAS` | {} | Holdfast 0.1.0 |", documented("hcas").command.docs.summary),
        &format!("| `HDEL` | {} | 2.0.0 |", documented("hdel").command.docs.summary),
        &format!("| `HGET` | {} | 2.0.0 |", documented("hget").command.docs.summary),
        "## Server",
        "| command | what it does | since |",
        "| --- | --- | --- |",
        &format!("| `CONFIG GET` | {} | 2.0.0 |", documented("config|get").command.docs.summary),
    ];
    assert_eq!(lines, expected);
}

/// Each command that can be called: containers cannot, their subcommands can.
fn callable_rows() -> Vec<&'static CommandRow> {
    registry().rows().iter().copied().filter(|row| !matches!(row.command.handler, Handler::Container)).collect()
}

/// The page: a table for each group, groups and commands in the order of their names.
fn page(rows: &[&CommandRow]) -> String {
    let mut groups: BTreeMap<&str, BTreeMap<&str, &CommandDoc>> = BTreeMap::new();
    for row in rows {
        groups.entry(row.group()).or_default().insert(&row.full_name, &row.command.docs);
    }
    let mut page = format!(
        "# Commands\n\n\
         The {} commands of this version, subcommands counted, in Redis's groups. The last column is the version of\n\
         Redis that had the command first, or, for commands that Redis does not have, the version of Valkey or of\n\
         Holdfast.\n\
         `COMMAND DOCS name` tells more of each.\n\n\
         A test writes this page from the command table: `{BLESS}=1 cargo test -p engine --test commands_doc`.\n",
        rows.len()
    );
    for (group, commands) in groups {
        let title = group[..1].to_uppercase() + &group[1..];
        let _ = write!(page, "\n## {title}\n\n| command | what it does | since |\n| --- | --- | --- |\n");
        for (name, doc) in commands {
            let (name, summary) = (name.replace('|', " ").to_uppercase(), doc.summary.replace('|', "\\|"));
            let since = match (doc.valkey_since, doc.is_own) {
                (Some(version), _) => format!("Valkey {version}"),
                (None, true) => format!("Holdfast {}", doc.since),
                (None, false) => doc.since.to_owned(),
            };
            let _ = writeln!(page, "| `{name}` | {summary}{} | {since} |", deprecation(doc));
        }
    }
    page
}

/// What Redis and Valkey have and this server has not.
fn not_built() -> String {
    let mut section = String::from(
        "\n## Not built\n\nWhat Redis up to 8.8 and Valkey up to 9.1 have beyond these, and why it is missing.\n\n\
         | command | since | why it is missing |\n| --- | --- | --- |\n",
    );
    let mut rows = |missing: &[Missing]| {
        for Missing { names, since, why } in missing {
            let names: Vec<String> = names.split(", ").map(shown).collect();
            let _ = writeln!(section, "| {} | {since} | {why} |", names.join(", "));
        }
    };
    rows(MISSING);
    rows(MISSING_FAMILIES);
    rows(MISSING_OPTIONS);
    for (names, why) in MISSING_IN_DEBUG {
        let names: Vec<String> = names.split(", ").map(|name| format!("`{}`", name.to_uppercase())).collect();
        let _ = writeln!(section, "| `DEBUG` {} | | {why} |", names.join(", "));
    }
    section
}

/// A name as the page shows it. Settings are in lower case.
fn shown(name: &str) -> String {
    let name = name.replace('|', " ");
    if name.starts_with("notify") { format!("`{name}`") } else { format!("`{}`", name.to_uppercase()) }
}

/// Redis 7.0.15's COMMAND LIST, subcommands included.
const REDIS: &str = include_str!("redis_7_0_names.txt");
/// Those that Redis 7.2 to 8.8 added, by its documentation, and Valkey 8.0 to 9.1, by 9.1.2's COMMAND LIST.
const NEWER: &str = include_str!("newer_names.txt");

#[test]
fn every_command_of_redis_and_valkey_is_built_or_said_to_be_missing() {
    let missing: Vec<&str> = MISSING.iter().flat_map(|missing| missing.names.split(", ")).collect();
    let is_missing =
        |name: &str| missing.contains(&name) || name.split('|').next().is_some_and(|name| missing.contains(&name));
    for name in &missing {
        let is_known = REDIS.lines().chain(NEWER.lines()).any(|known| known == *name);
        assert!(is_known, "{name} is said to be missing, and no command of Redis or Valkey");
    }
    for name in REDIS.lines().chain(NEWER.lines()) {
        let is_built = registry().find_full(name.as_bytes()).is_some();
        assert!(is_built || is_missing(name), "{name} is neither built nor said to be missing");
        assert!(!is_built || !is_missing(name), "{name} is built, and said to be missing");
    }
}

#[test]
fn commands_that_redis_does_not_have_say_since_which_holdfast() {
    for row in registry().rows() {
        let (name, docs) = (&row.full_name, &row.command.docs);
        let is_in_redis_7_0 = REDIS.lines().any(|line| line == name);
        // Redis has no command with a dot in its name.
        assert!(docs.is_own || !name.contains('.'), "{name}: use own_doc, with a version of Holdfast");
        assert!(!docs.is_own || !is_in_redis_7_0, "{name} is a command of Redis: use doc");
        let is_later = ["7.2.0", "7.4.0", "8.0.0", "8.2.0", "8.4.0", "8.6.0", "8.8.0"].contains(&docs.since);
        assert!(docs.is_own || is_in_redis_7_0 || is_later, "{name}: since Redis {}?", docs.since);
    }
}

fn deprecation(doc: &CommandDoc) -> String {
    match (doc.deprecated_since, doc.replaced_by) {
        (Some(version), Some(other)) => format!(" Deprecated since {version} in favour of {other}."),
        (Some(version), None) => format!(" Deprecated since {version}."),
        (None, _) => String::new(),
    }
}
