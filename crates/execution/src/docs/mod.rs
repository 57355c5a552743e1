//! What COMMAND DOCS says of a command: its purpose and its syntax. It is part of the command's row. Knows nothing of
//! how commands run.
//!
//! Facts (since, arguments, cost) are Redis's, so that tools that read them behave the same; the sentences are ours. Of
//! commands that Redis does not have, `since` is a version of Holdfast, as that of a module's command is its module's.

pub mod argument;

pub use argument::{Argument, ArgumentKind};

/// The documentation of a command or subcommand.
#[derive(Clone, Copy)]
pub struct CommandDoc {
    pub summary: &'static str,
    /// The first version of Redis with this command; of Holdfast, if Redis does not have it (`is_own`).
    pub since: &'static str,
    pub is_own: bool,
    /// The first version of Valkey with this command, if Redis does not have it and Valkey does.
    pub valkey_since: Option<&'static str>,
    /// Its group, where that differs from its table's.
    pub group: Option<&'static str>,
    pub complexity: Option<&'static str>,
    /// `deprecated` or `syscmd`.
    pub doc_flags: &'static [&'static str],
    pub deprecated_since: Option<&'static str>,
    pub replaced_by: Option<&'static str>,
    /// Version and what it changed, oldest first.
    pub history: &'static [(&'static str, &'static str)],
    pub arguments: &'static [Argument],
}

impl CommandDoc {
    /// No documentation.
    pub const EMPTY: CommandDoc = CommandDoc {
        summary: "",
        since: "",
        is_own: false,
        valkey_since: None,
        group: None,
        complexity: None,
        doc_flags: &[],
        deprecated_since: None,
        replaced_by: None,
        history: &[],
        arguments: &[],
    };
}
