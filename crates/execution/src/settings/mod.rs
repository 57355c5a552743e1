//! The server's settings under Redis's names: what CONFIG GET and CONFIG SET read and write, and what the rest of the
//! engine asks for. Knows nothing of clients, files or what a setting does; the code that a setting affects looks at
//! the changed rows that `set` returns.
//!
//! - `table`: one row for each setting. Start there to add one.
//! - `value`, `text`, `limits`, `events`: what each kind of value accepts and how it prints.
//! - `read`: typed accessors, cheap enough for every command.

mod choices;
pub mod events;
mod limits;
mod memory;
mod read;
mod schema;
mod table;
mod text;
mod value;

pub use choices::{
    AllowedFor, AppendFsync, LogLevel, MaxmemoryPolicy, TlsAuthClients, TlsAuthClientsUser, WorkerBalance,
};
pub use limits::{BufferLimit, ClientClass};
pub use memory::parse_memory;
pub use schema::{Access, Row};
pub use table::{TABLE, index_of as row_of, row};
pub use value::Kind;

use algorithms::glob::Pattern;
use algorithms::nearest::nearest;
use limits::BufferLimits;
use locks::{Mutex, RwLock, rank};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use value::Value;

/// The current value of every setting; shared by all threads.
pub struct Settings {
    /// One slot for each row, so that a reader needs no lock. Rows of text keep the text's length here, which answers
    /// "is there a password?" without a lock. A reader may see some settings of a CONFIG SET before the others; no code
    /// relies on two of them together.
    numbers: [AtomicI64; TABLE.len()],
    /// One slot for each row, empty for numbers. Writers hold its lock from the first check to the last store, which
    /// makes a CONFIG SET of several settings one step for other writers and for `get`.
    texts: RwLock<Vec<Arc<str>>, { rank::SETTINGS_TEXTS }>,
    /// `client-output-buffer-limit`: hard bytes, soft bytes and soft seconds of each `ClientClass`.
    buffer_limits: [[AtomicU64; 3]; 3],
    /// Held while settings are changed and applied.
    changing: Mutex<(), { rank::SETTINGS_CHANGE }>,
}

/// Where a change of a setting comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client on another machine, or of unknown address.
    Remote,
    /// A client on this machine.
    Local,
}

impl Default for Settings {
    fn default() -> Self {
        Settings::new()
    }
}

impl Settings {
    /// Every setting at its default.
    pub fn new() -> Settings {
        let settings = Settings {
            numbers: [const { AtomicI64::new(0) }; TABLE.len()],
            texts: RwLock::new(vec![Arc::from(""); TABLE.len()]),
            buffer_limits: [const { [const { AtomicU64::new(0) }; 3] }; 3],
            changing: Mutex::new(()),
        };
        for row in TABLE {
            let loaded = settings.load(row.name.as_bytes(), row.default.as_bytes());
            loaded.expect("a default is a value its row accepts");
        }
        settings
    }

    /// The row at an index that `set` returned or `row` names.
    pub fn row(index: usize) -> &'static Row {
        &TABLE[index]
    }

    /// The row of a setting, by its name or its alias, in any case.
    pub fn find(name: &[u8]) -> Option<&'static Row> {
        find(name).map(|(index, _)| &TABLE[index])
    }

    /// CONFIG SET from an unknown origin; see `set_from`.
    pub fn set(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<usize>, String> {
        self.set_from(Origin::Remote, pairs)
    }

    /// CONFIG SET of settings that need not be applied; see `set_and_follow`.
    pub fn set_from(&self, origin: Origin, pairs: &[(&[u8], &[u8])]) -> Result<Vec<usize>, String> {
        self.set_and_follow(origin, pairs, |_| Ok(()))
    }

    /// CONFIG SET: all pairs or none. Calls `follow` with the names of the changed settings, and of those that name
    /// a file, in the given order; when
    /// it fails, with one of them and a reason, all settings get their old values back. Returns the changed rows, or
    /// the error's wire text.
    pub fn set_and_follow(
        &self,
        origin: Origin,
        pairs: &[(&[u8], &[u8])],
        follow: impl FnOnce(&[&'static str]) -> Result<(), (&'static str, String)>,
    ) -> Result<Vec<usize>, String> {
        let _one_at_a_time = self.changing.lock();
        let mut named = Vec::with_capacity(pairs.len());
        for (typed, _) in pairs {
            let found = find(typed).ok_or_else(|| unknown(typed))?;
            let (index, name) = found;
            match TABLE[index].access {
                Access::Immutable => return Err(failed(typed, "can't set immutable config")),
                Access::Protected if !self.allows_protected(origin) => {
                    return Err(failed(typed, "can't set protected config"));
                }
                // Two names of one setting are two parameters; the later one wins.
                _ if named.contains(&found) => return Err(failed(typed, "duplicate parameter")),
                _ => named.push((index, name)),
            }
        }
        let mut texts = self.texts.write();
        let mut values = Vec::with_capacity(pairs.len());
        for (&(index, name), (_, input)) in named.iter().zip(pairs) {
            let refused = |reason: String| failed(name.as_bytes(), &reason);
            let row = &TABLE[index];
            let value = row.kind.parse(input, &self.limits()).map_err(refused)?;
            if row.access == Access::Pinned && value != self.value(index, &texts) {
                return Err(failed(name.as_bytes(), "can't set immutable config"));
            }
            values.push((index, value));
        }
        let before: Vec<(usize, Value)> = values.iter().map(|(i, _)| (*i, self.value(*i, &texts))).collect();
        for (index, value) in &values {
            self.store(*index, value, &mut texts);
        }
        let is_changed =
            |(index, before): &&(usize, Value)| TABLE[*index].names_file || *before != self.value(*index, &texts);
        let mut changed: Vec<usize> = before.iter().filter(is_changed).map(|(index, _)| *index).collect();
        drop(texts);
        let names: Vec<&'static str> = changed.iter().map(|index| TABLE[*index].name).collect();
        if let Err((name, reason)) = follow(&names) {
            let mut texts = self.texts.write();
            before.iter().for_each(|(index, value)| self.store(*index, value, &mut texts));
            return Err(failed(name.as_bytes(), &reason));
        }
        changed.sort_unstable();
        changed.dedup();
        Ok(changed)
    }

    /// Sets a value at the start, before there are clients: any setting may be set. The error is the reason alone.
    pub fn load(&self, name: &[u8], input: &[u8]) -> Result<(), String> {
        let (index, _) = find(name).ok_or("Bad directive or wrong number of arguments")?;
        let mut texts = self.texts.write();
        let value = TABLE[index].kind.parse(input, &self.limits())?;
        self.store(index, &value, &mut texts);
        Ok(())
    }

    /// CONFIG GET: names and values of the settings that match any pattern, each name once. A pattern without wildcards
    /// is looked up as it is, finds hidden settings too, and is returned in the case of the request.
    pub fn get(&self, patterns: &[&[u8]], out: &mut Vec<(String, String)>) {
        let texts = self.texts.read();
        let mut listed: HashSet<(usize, &'static str)> = HashSet::new();
        for pattern in patterns {
            let has_wildcard = pattern.iter().any(|b| b"*?[".contains(b));
            if !has_wildcard {
                let Some(found) = find(pattern) else { continue };
                if listed.insert(found) {
                    let typed = String::from_utf8_lossy(pattern).into_owned();
                    out.push((typed, self.print(found.0, &texts)));
                }
                continue;
            }
            let pattern = Pattern::new(pattern, true);
            for (index, name) in names().filter(|(index, _)| !TABLE[*index].hidden) {
                if pattern.matches(name.as_bytes()) && listed.insert((index, name)) {
                    out.push((name.to_owned(), self.print(index, &texts)));
                }
            }
        }
    }

    /// Every setting and its value.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let texts = self.texts.read();
        TABLE.iter().enumerate().map(|(index, row)| (row.name, self.print(index, &texts))).collect()
    }

    /// The settings that differ from their defaults, for a configuration file.
    pub fn changed_from_defaults(&self) -> Vec<(&'static str, String)> {
        let texts = self.texts.read();
        let printed = TABLE.iter().enumerate().map(|(i, row)| (row, self.print(i, &texts)));
        printed.filter(|(row, value)| row.default != value).map(|(row, value)| (row.name, value)).collect()
    }

    fn allows_protected(&self, origin: Origin) -> bool {
        match AllowedFor::from_number(self.number(row::ENABLE_PROTECTED_CONFIGS)) {
            AllowedFor::None => false,
            AllowedFor::All => true,
            AllowedFor::Local => origin == Origin::Local,
        }
    }

    fn value(&self, index: usize, texts: &[Arc<str>]) -> Value {
        match TABLE[index].kind {
            Kind::Text(_) => Value::Text(texts[index].as_ref().to_owned()),
            Kind::BufferLimits => Value::Limits(self.limits()),
            _ => Value::Number(self.number(index)),
        }
    }

    fn print(&self, index: usize, texts: &[Arc<str>]) -> String {
        match self.value(index, texts) {
            Value::Text(text) => text,
            Value::Limits(limits) => limits.to_string(),
            Value::Number(number) => TABLE[index].kind.print_number(number),
        }
    }

    /// Returns the name of a setting that is most similar to a mistyped one, if one is similar enough.
    pub fn nearest(typed: &[u8]) -> Option<&'static str> {
        let names: Vec<&str> = names().map(|(_, name)| name).collect();
        nearest(typed, &names)
    }

    fn store(&self, index: usize, value: &Value, texts: &mut [Arc<str>]) {
        match value {
            Value::Number(number) => self.numbers[index].store(*number, Relaxed),
            Value::Text(text) => {
                texts[index] = Arc::from(text.as_str());
                self.numbers[index].store(text.len() as i64, Relaxed);
            }
            Value::Limits(BufferLimits(classes)) => {
                for (slots, limit) in self.buffer_limits.iter().zip(classes) {
                    slots[0].store(limit.hard_bytes, Relaxed);
                    slots[1].store(limit.soft_bytes, Relaxed);
                    slots[2].store(limit.soft_seconds, Relaxed);
                }
            }
        }
    }
}

/// Every name of every setting, with its row.
fn names() -> impl Iterator<Item = (usize, &'static str)> {
    TABLE.iter().enumerate().flat_map(|(index, row)| {
        let names = [Some(row.name), row.alias];
        names.into_iter().flatten().map(move |name| (index, name))
    })
}

fn find(typed: &[u8]) -> Option<(usize, &'static str)> {
    names().find(|(_, name)| name.as_bytes().eq_ignore_ascii_case(typed))
}

/// Redis's error, and the setting that may be meant.
fn unknown(typed: &[u8]) -> String {
    let near = Settings::nearest(typed).map(|near| format!(": did you mean '{near}'?")).unwrap_or_default();
    // As in Redis, which takes a NUL for the end.
    let typed = String::from_utf8_lossy(typed.split(|byte| *byte == 0).next().unwrap_or_default());
    format!("ERR Unknown option or number of arguments for CONFIG SET - '{typed}'{near}")
}

fn failed(name: &[u8], reason: &str) -> String {
    let name = String::from_utf8_lossy(name);
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
}

#[cfg(test)]
mod tests;
