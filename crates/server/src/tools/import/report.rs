//! What an import has read and left out, as text.

use formats::aof_file::Cut;
use formats::{Kind, Noun, Value};
use std::collections::BTreeMap;
use std::fmt;

/// What became of everything in the files: nothing is left out without being counted here.
#[derive(Debug, Default)]
pub(crate) struct ImportReport {
    pub(crate) loaded: Values,
    /// Libraries of functions.
    pub(crate) libraries: u64,
    /// Commands that were executed, other than SELECT and the words around a transaction.
    pub(crate) commands: u64,
    pub(crate) keys_expired: u64,
    /// Of hashes that are still there, or that were gone with them.
    pub(crate) fields_expired: u64,
    /// Values without an element: Redis passes over them too.
    pub(crate) empty: Values,
    /// What is not kept here.
    pub(crate) skipped: BTreeMap<Kind, u64>,
    /// Keys and commands for databases that do not exist here, and the first of these.
    pub(crate) outside: Option<(u64, u64)>,
    /// Commands that were refused, by name.
    pub(crate) failed: BTreeMap<String, Failed>,
    /// Where the last file was cut off.
    pub(crate) cut: Option<Cut>,
}

/// How many values of each type.
#[derive(Debug, Default)]
pub(crate) struct Values(BTreeMap<Noun, u64>);

impl Values {
    pub(crate) fn count(&mut self, value: &Value) {
        *self.0.entry(value.noun()).or_default() += 1;
    }

    /// Those of which there are some, in words.
    fn words(&self) -> Vec<String> {
        self.0.iter().map(|(noun, count)| noun.counted(*count)).collect()
    }
}

/// Commands of one name that were refused.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) count: u64,
    /// The first error.
    pub(crate) example: String,
}

/// Names and kinds that are told apart; more are counted together.
const NAMES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 32;
const EXAMPLE_CHARS_MAX: usize = 160;
const OTHERS: &str = "(others)";

impl ImportReport {
    /// True when something that a server of Redis's would have is not here now.
    pub(crate) fn has_left_something_out(&self) -> bool {
        !self.skipped.is_empty() || self.outside.is_some() || !self.failed.is_empty() || self.cut.is_some()
    }

    pub(crate) fn pass_over(&mut self, kind: Kind) {
        let kind = match self.skipped.len() >= NAMES_MAX && !self.skipped.contains_key(&kind) {
            true => Kind::Module(OTHERS.into()),
            false => kind,
        };
        *self.skipped.entry(kind).or_default() += 1;
    }

    pub(crate) fn outside(&mut self, db: u64) {
        let (count, _) = self.outside.get_or_insert((0, db));
        *count += 1;
    }

    pub(crate) fn failed(&mut self, name: &[u8], error: &str) {
        let mut name = name[..name.len().min(NAME_BYTES_MAX)].escape_ascii().to_string().to_uppercase();
        if self.failed.len() >= NAMES_MAX && !self.failed.contains_key(&name) {
            name = OTHERS.into();
        }
        // What a file says may be anything, and a terminal may do anything with it.
        let shown = |char: char| if char.is_control() { '.' } else { char };
        let example = || error.chars().take(EXAMPLE_CHARS_MAX).map(shown).collect();
        self.failed.entry(name).or_insert_with(|| Failed { count: 0, example: example() }).count += 1;
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// A line for each thing worth saying.
impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = self.loaded.words();
        if self.libraries > 0 {
            words.push(Kind::FunctionLibrary.counted(self.libraries));
        }
        match words.as_slice() {
            [] => f.write_str("Loaded no values")?,
            [all @ .., last] if !all.is_empty() => write!(f, "Loaded {} and {last}", all.join(", "))?,
            words => write!(f, "Loaded {}", words.join(""))?,
        }
        if self.commands > 0 {
            write!(f, "; executed {}", counted(self.commands, "command"))?;
        }
        if self.keys_expired > 0 || self.fields_expired > 0 {
            let (keys, fields) = (counted(self.keys_expired, "key"), counted(self.fields_expired, "hash field"));
            write!(f, "\nExpired and left out: {keys}, {fields}")?;
        }
        let empty = self.empty.words();
        if !empty.is_empty() {
            write!(f, "\nEmpty and left out: {}", empty.join(", "))?;
        }
        if !self.skipped.is_empty() {
            let kinds: Vec<String> = self.skipped.iter().map(|(kind, count)| kind.counted(*count)).collect();
            write!(f, "\nLeft out: {}: not supported by this version", kinds.join(", "))?;
        }
        if let Some((count, db)) = self.outside {
            let records = counted(count, "record");
            write!(f, "\nLeft out: {records} of databases that do not exist here, the first of them {db}")?;
        }
        if !self.failed.is_empty() {
            let count = self.failed.values().map(|failed| failed.count).sum();
            write!(f, "\nRefused: {}", counted(count, "command"))?;
            for (name, failed) in &self.failed {
                write!(f, "\n  {name}: {}, for example: {}", failed.count, failed.example)?;
            }
        }
        if let Some(cut) = self.cut {
            let what = if cut.in_transaction { "transaction" } else { "command" };
            let bytes = counted(cut.bytes, "byte");
            write!(
                f,
                "\nThe file ends in the middle of a {what} that begins at byte {}: its {bytes} were left out",
                cut.offset
            )?;
        }
        Ok(())
    }
}
