//! What COMMAND DOCS says: what commands are for and how they are written. Knows nothing of how they run; the command
//! table does.
//!
//! A file per group of commands, each a table sorted by name. Facts (since, arguments, cost) are Redis's, so that tools
//! that read them behave the same; the sentences are ours.

mod argument;
mod bitmap;
mod connection;
mod generic;
mod hash;
mod pubsub;
mod record;
mod scripting;
mod server;
mod sorted_set;
mod string;
mod transactions;

pub use argument::{Argument, ArgumentKind};

/// The tables to merge; each is sorted by name.
const TABLES: &[&[CommandDoc]] = &[
    bitmap::DOCS,
    connection::DOCS,
    generic::DOCS,
    hash::DOCS,
    pubsub::DOCS,
    record::DOCS,
    scripting::DOCS,
    server::DOCS,
    sorted_set::DOCS,
    string::DOCS,
    transactions::DOCS,
];

/// All documented commands and subcommands, sorted by name.
pub static DOCS: &[&CommandDoc] = &merged();

/// What COMMAND DOCS says of a command, or of a subcommand, which is named `config|get`.
#[derive(Clone, Copy)]
pub struct CommandDoc {
    pub name: &'static str,
    pub summary: &'static str,
    /// The version of Redis that had it first.
    pub since: &'static str,
    pub group: &'static str,
    pub complexity: Option<&'static str>,
    /// `deprecated` or `syscmd`.
    pub doc_flags: &'static [&'static str],
    pub deprecated_since: Option<&'static str>,
    pub replaced_by: Option<&'static str>,
    /// Version and what it changed, oldest first.
    pub history: &'static [(&'static str, &'static str)],
    pub arguments: &'static [Argument],
}

/// The documentation of a command, by its lowercase name.
pub fn find(name: &str) -> Option<&'static CommandDoc> {
    let at = DOCS.binary_search_by(|doc| doc.name.cmp(name)).ok()?;
    Some(DOCS[at])
}

/// The documentation of all subcommands of a command, sorted by name.
pub fn subcommands(container: &str) -> impl Iterator<Item = &'static CommandDoc> {
    let is_sub = move |doc: &&CommandDoc| {
        let rest = doc.name.strip_prefix(container);
        rest.is_some_and(|rest| rest.starts_with('|'))
    };
    DOCS.iter().copied().filter(is_sub)
}

impl CommandDoc {
    const fn new(group: &'static str, name: &'static str, since: &'static str, summary: &'static str) -> CommandDoc {
        CommandDoc {
            name,
            summary,
            since,
            group,
            complexity: None,
            doc_flags: &[],
            deprecated_since: None,
            replaced_by: None,
            history: &[],
            arguments: &[],
        }
    }

    const fn complexity(mut self, complexity: &'static str) -> CommandDoc {
        self.complexity = Some(complexity);
        self
    }

    /// Not meant for applications.
    const fn system(mut self) -> CommandDoc {
        self.doc_flags = &["syscmd"];
        self
    }

    const fn deprecated(mut self, since: &'static str, replaced_by: &'static str) -> CommandDoc {
        self.doc_flags = &["deprecated"];
        self.deprecated_since = Some(since);
        self.replaced_by = Some(replaced_by);
        self
    }

    const fn history(mut self, history: &'static [(&'static str, &'static str)]) -> CommandDoc {
        self.history = history;
        self
    }

    const fn arguments(mut self, arguments: &'static [Argument]) -> CommandDoc {
        self.arguments = arguments;
        self
    }
}

const fn total() -> usize {
    let mut count = 0;
    let mut table = 0;
    while table < TABLES.len() {
        count += TABLES[table].len();
        table += 1;
    }
    count
}

/// One sorted list of all tables, made by the compiler: takes the least of the tables' next rows until none is left.
const fn merged() -> [&'static CommandDoc; total()] {
    let mut all = [&TABLES[0][0]; total()];
    let mut next = [0; TABLES.len()];
    let mut filled = 0;
    while filled < all.len() {
        let mut least: Option<usize> = None;
        let mut table = 0;
        while table < TABLES.len() {
            if next[table] < TABLES[table].len() {
                let name = TABLES[table][next[table]].name;
                least = match least {
                    Some(best) if !is_before(name, TABLES[best][next[best]].name) => least,
                    _ => Some(table),
                };
            }
            table += 1;
        }
        let Some(table) = least else { panic!("total() counts more rows than the tables have") };
        all[filled] = &TABLES[table][next[table]];
        next[table] += 1;
        filled += 1;
    }
    all
}

/// `<` on strings is not const yet.
const fn is_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod tests;
