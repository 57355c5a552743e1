//! The fenced blocks of the documents, with what is marked before them. Knows Markdown as far as fences go; refuses to
//! know what is in a block.

use std::fs;
use std::path::{Path, PathBuf};

/// A document that is tested.
pub struct Document {
    /// Its path from the repository's root.
    pub name: String,
    pub path: PathBuf,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub struct Fence {
    /// The line of its first fence.
    pub line: usize,
    /// The first word behind the fence; empty without one.
    pub language: String,
    pub text: String,
    /// Why it is not run.
    pub not_run: Option<String>,
    /// Words that differ from run to run.
    pub varies: Vec<String>,
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// README.md, all of docs/ and the README of the Rust package.
pub fn documents() -> Vec<Document> {
    let mut names = vec!["README.md".to_owned(), "crates/client/README.md".to_owned()];
    add_documents("docs", &mut names);
    names[2..].sort();
    names.into_iter().map(|name| Document { path: root().join(&name), name }).collect()
}

/// Adds the documents of a folder and of those in it.
fn add_documents(folder: &str, names: &mut Vec<String>) {
    for entry in fs::read_dir(root().join(folder)).expect("the folder is there") {
        let entry = entry.expect("it can be read");
        let name = format!("{folder}/{}", entry.file_name().to_str().expect("a name in UTF-8"));
        match entry.path().is_dir() {
            true => add_documents(&name, names),
            false if name.ends_with(".md") => names.push(name),
            false => {}
        }
    }
}

impl Document {
    pub fn fences(&self) -> Vec<Fence> {
        fences(&fs::read_to_string(&self.path).unwrap_or_else(|error| panic!("{}: {error}", self.name)))
    }
}

/// The blocks of a text.
pub fn fences(text: &str) -> Vec<Fence> {
    let (mut found, mut open) = (Vec::new(), None::<Fence>);
    let (mut not_run, mut varies) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            Some(_) if line == "```" => found.extend(open.take()),
            Some(fence) => {
                fence.text.push_str(line);
                fence.text.push('\n');
            }
            None => {
                if let Some(info) = line.strip_prefix("```") {
                    let language = info.split([',', ' ']).next().unwrap_or_default().to_owned();
                    let (not_run, varies) = (not_run.take(), std::mem::take(&mut varies));
                    open = Some(Fence { line: number + 1, language, text: String::new(), not_run, varies });
                } else if let Some(reason) = marked(line, "not run:") {
                    not_run = Some(reason.to_owned());
                } else if let Some(words) = marked(line, "varies:") {
                    varies = words.split_whitespace().map(str::to_owned).collect();
                } else if !line.is_empty() {
                    (not_run, varies) = (None, Vec::new()); // the mark was not right before a block
                }
            }
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    found
}

/// What a comment marks: `<!-- not run: a reason -->`.
fn marked<'a>(line: &'a str, mark: &str) -> Option<&'a str> {
    Some(line.strip_prefix("<!-- ")?.strip_suffix("-->")?.strip_prefix(mark)?.trim())
}
