//! Keeps docs/designs.md equal to the table in docs/designs.toml, and the table true: every test that it names exists.
//! Reads sources as text; refuses to know what the tests do.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

use documents::fences::root;
use serde::Deserialize;

const BLESS: &str = "HOLDFAST_TEST_BLESS";
const AS_DESIGNED: &str = "as designed";
const DIFFERS: &str = "differs: ";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    designs: Vec<Design>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Design {
    /// What the ids of its requirements begin with.
    id: String,
    title: String,
    about: String,
    /// The page of docs/ that is about it.
    page: String,
    requirements: Vec<Requirement>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    requires: String,
    /// "as designed", or "differs: " and why.
    holds: String,
    /// Where a difference is documented: a page of docs/, with a heading if there is one.
    see: Option<String>,
    /// `path::name` each.
    tests: Vec<String>,
}

impl Table {
    fn read() -> Table {
        let text = fs::read_to_string(root().join("docs/designs.toml")).unwrap();
        toml::from_str(&text).unwrap_or_else(|error| panic!("docs/designs.toml: {error}"))
    }

    fn requirements(&self) -> impl Iterator<Item = &Requirement> {
        self.designs.iter().flat_map(|design| &design.requirements)
    }
}

#[test]
fn the_page_is_made_from_the_table() {
    let (path, rendered) = (root().join("docs/designs.md"), page(&Table::read()));
    if std::env::var_os(BLESS).is_some() {
        fs::write(path, rendered).unwrap();
        return;
    }
    assert!(
        rendered == fs::read_to_string(path).unwrap_or_default(),
        "docs/designs.md differs from docs/designs.toml.\n\
         Rewrite it with {BLESS}=1 cargo test -p documents --test designs"
    );
}

#[test]
fn every_test_of_the_table_exists() {
    let table = Table::read();
    let named: BTreeSet<&str> = table.requirements().flat_map(|one| &one.tests).map(String::as_str).collect();
    let missing: Vec<&&str> = named.iter().filter(|test| !exists(test)).collect();
    assert!(missing.is_empty(), "docs/designs.toml names tests that do not exist, or are ignored: {missing:#?}");
}

/// A test that was written for a design, and shows none of its requirements, is one that the table has forgotten.
#[test]
fn the_table_names_every_test_of_the_designs() {
    const FOLDER: &str = "tests/wire/tests/designs";
    let table = Table::read();
    let named: BTreeSet<&String> = table.requirements().flat_map(|one| &one.tests).collect();
    for entry in fs::read_dir(root().join(FOLDER)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = fs::read_to_string(root().join(FOLDER).join(&name)).unwrap();
        for test in text.split("#[test]\nfn ").skip(1) {
            let test = format!("{FOLDER}/{name}::{}", test.split('(').next().unwrap());
            assert!(named.contains(&test), "docs/designs.toml does not name {test}");
        }
    }
}

#[test]
fn every_requirement_is_whole() {
    for design in &Table::read().designs {
        assert!(is_documented(&design.page), "{}: there is no docs/{}", design.id, design.page);
        for (requirement, number) in design.requirements.iter().zip(1..) {
            let Requirement { id, requires, holds, see, tests } = requirement;
            assert_eq!(*id, format!("{}-{number:02}", design.id), "ids are in order and without gaps");
            assert!(requires.ends_with('.') && !requires.contains('|'), "{id}: {requires}");
            assert!(!tests.is_empty(), "{id}: no test shows it");
            match (holds.strip_prefix(DIFFERS), see) {
                (None, None) => assert_eq!(holds, AS_DESIGNED, "{id}"),
                (Some(why), Some(see)) => {
                    assert!(!why.is_empty() && !why.contains('|'), "{id}: {why}");
                    assert!(is_documented(see), "{id}: there is no docs/{see}");
                }
                _ => panic!("{id}: what differs has a `see`, and nothing else has"),
            }
        }
    }
}

#[test]
fn a_missing_test_is_found() {
    assert!(exists("tests/documents/tests/designs.rs::a_missing_test_is_found"));
    for missing in [
        "tests/documents/tests/designs.rs::a_test_that_there_is_not",
        "tests/documents/tests/designs.rs::exists", // a function, and not a test
        "tests/documents/tests/nosuch.rs::a_missing_test_is_found",
        "clients/python/tests/test_cells.py::test_nosuch",
        "clients/typescript/tests/cells.test.ts::no such test",
        "a_missing_test_is_found",
    ] {
        assert!(!exists(missing), "{missing}");
    }
    assert!(is_documented("exactly-once.md#-nosession") && is_documented("cells.md#a-cells-life"));
    assert!(!is_documented("cells.md#nosuch") && !is_documented("nosuch.md"));
}

/// Whether a file has a test of this name that is run.
fn exists(test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else { return false };
    let Ok(text) = fs::read_to_string(root().join(path)) else { return false };
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs") => is_rust_test(&text, name),
        Some("py") => name.starts_with("test_") && text.lines().any(|line| python_function(line) == Some(name)),
        Some("ts") => text.lines().any(|line| typescript_test(line) == Some(name)),
        _ => false,
    }
}

/// Whether a function has an attribute for tests, and is not ignored.
fn is_rust_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let head = format!("fn {name}(");
    let Some(at) = lines.iter().position(|line| line.starts_with(&head) || line.starts_with(&format!("async {head}")))
    else {
        return false;
    };
    let attributes = || lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
    attributes().any(|line| line.contains("test]") || line.contains("test("))
        && !attributes().any(|line| line.starts_with("#[ignore"))
}

fn python_function(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = line.strip_prefix("def ").or_else(|| line.strip_prefix("async def "))?;
    name.split('(').next()
}

/// The name of a test that begins on this line; `test.skip(…)` is none.
fn typescript_test(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix("test(")?;
    let quote = name.chars().next().filter(|first| ['\'', '"', '`'].contains(first))?;
    name[1..].split(quote).next()
}

/// Whether docs/ has this page, with this heading.
fn is_documented(see: &str) -> bool {
    let (page, heading) = see.split_once('#').map_or((see, None), |(page, heading)| (page, Some(heading)));
    let Ok(text) = fs::read_to_string(root().join("docs").join(page)) else { return false };
    heading.is_none_or(|heading| text.lines().any(|line| line.starts_with('#') && anchor(line) == heading))
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    words.chars().filter(|c| c.is_alphanumeric() || *c == '-' || *c == '_').collect()
}

fn page(table: &Table) -> String {
    let count = table.requirements().count();
    let differing = table.requirements().filter(|one| one.see.is_some()).count();
    let mut text = format!(
        "# The designs, requirement by requirement\n\n\
         Holdfast's own commands come from five designs. This page lists what each of them requires, whether it holds here,\n\
         and the tests that show it: {count} requirements, of which {} hold as designed and {differing} differ, each with the\n\
         reason and a link to its description.\n\n\
         The page is made from the table in [designs.toml](designs.toml). Change the table, then run\n\
         `{BLESS}=1 cargo test -p documents --test designs`. The same test fails when a test that the table names does not\n\
         exist.\n",
        count - differing
    );
    for design in &table.designs {
        write!(
            text,
            "\n## {}\n\nThe design: {}. Described in [{2}]({2}).\n\n\
             | | requirement | holds | tests |\n| --- | --- | --- | --- |\n",
            design.title, design.about, design.page
        )
        .unwrap();
        for Requirement { id, requires, holds, see, tests } in &design.requirements {
            let see = see.as_ref().map(|see| format!(" ([where]({see}))")).unwrap_or_default();
            let tests: Vec<String> = tests.iter().map(|test| link(test)).collect();
            writeln!(text, "| {id} | {requires} | {holds}{see} | {} |", tests.join("<br>")).unwrap();
        }
    }
    text
}

/// A test's name, with a link to its file.
fn link(test: &str) -> String {
    let (path, name) = test.split_once("::").expect("a path and a name");
    format!("[`{name}`](../{path})")
}
