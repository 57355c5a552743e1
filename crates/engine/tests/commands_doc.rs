//! Keeps docs/COMMANDS.md equal to the command table, so that the page cannot forget a command or invent one.

use engine::command::{Handler, registry};
use engine::docs::{self, CommandDoc};
use std::collections::BTreeMap;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/COMMANDS.md");
const BLESS: &str = "HOLDFAST_TEST_BLESS";

#[test]
fn the_page_lists_every_command() {
    let rendered = page(&documented_rows());
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
    let documented = |name| docs::find(name).unwrap();
    let rendered = page(&[documented("hget"), documented("config|get"), documented("hdel")]);
    let lines: Vec<&str> = rendered.lines().filter(|line| line.starts_with(['#', '|'])).collect();
    let expected = [
        "# Commands",
        "## Hash",
        "| command | what it does | since Redis |",
        "| --- | --- | --- |",
        &format!("| `HDEL` | {} | 2.0.0 |", documented("hdel").summary),
        &format!("| `HGET` | {} | 2.0.0 |", documented("hget").summary),
        "## Server",
        "| command | what it does | since Redis |",
        "| --- | --- | --- |",
        &format!("| `CONFIG GET` | {} | 2.0.0 |", documented("config|get").summary),
    ];
    assert_eq!(lines, expected);
}

/// What is known of each command that can be called: containers cannot, their subcommands can.
fn documented_rows() -> Vec<&'static CommandDoc> {
    let callable = registry().rows().iter().filter(|row| !matches!(row.command.handler, Handler::Container));
    callable.map(|row| docs::find(&row.full_name).unwrap_or_else(|| panic!("{} has no docs", row.full_name))).collect()
}

/// The page: a table for each group, groups and commands in the order of their names.
fn page(documented: &[&CommandDoc]) -> String {
    let mut groups: BTreeMap<&str, BTreeMap<&str, &CommandDoc>> = BTreeMap::new();
    for doc in documented {
        groups.entry(doc.group).or_default().insert(doc.name, doc);
    }
    let mut page = format!(
        "# Commands\n\n\
         The {} commands of this version, subcommands counted, in Redis's groups. The last column is the version of\n\
         Redis that had the command first. `COMMAND DOCS name` tells more of each.\n\n\
         A test writes this page from the command table: `{BLESS}=1 cargo test -p engine --test commands_doc`.\n",
        documented.len()
    );
    for (group, commands) in groups {
        let title = group[..1].to_uppercase() + &group[1..];
        let _ = write!(page, "\n## {title}\n\n| command | what it does | since Redis |\n| --- | --- | --- |\n");
        for (name, doc) in commands {
            let (name, summary) = (name.replace('|', " ").to_uppercase(), doc.summary.replace('|', "\\|"));
            let _ = writeln!(page, "| `{name}` | {summary}{} | {} |", deprecation(doc), doc.since);
        }
    }
    page
}

fn deprecation(doc: &CommandDoc) -> String {
    match (doc.deprecated_since, doc.replaced_by) {
        (Some(version), Some(other)) => format!(" Deprecated since {version} in favour of {other}."),
        (Some(version), None) => format!(" Deprecated since {version}."),
        (None, _) => String::new(),
    }
}
