//! The table of all commands: rows and their positions, found by name. Knows nothing of what commands do.

use super::flags::Flags;
use super::key_spec::{FoundKeys, KeyFlags, KeyRange, Locks};
use super::row::{Command, Handler, Table};
use hashbrown::HashTable;
use keyspace::Key;
use resp::Request;
use smallvec::{SmallVec, smallvec};
use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

/// A row and its position in the table.
pub struct CommandRow {
    pub command: &'static Command,
    /// Position in [`Registry::rows`]; the index of its counters.
    pub index: usize,
    /// `get`, `config|get`.
    pub full_name: String,
    /// In capitals, as most clients send it.
    name_in_capitals: String,
    pub table: &'static Table,
    /// The rows of its subcommands.
    pub subcommands: Vec<&'static CommandRow>,
    /// 1, or 2 for a subcommand: how many arguments its name takes.
    pub name_args: usize,
    /// It works on strings, hashes or registers, whose values are stored inside their entries unless they are large.
    pub values_are_inline: bool,
}

/// The table of all commands, with its index by name.
pub struct Registry {
    rows: Vec<&'static CommandRow>,
    by_name: HashTable<&'static CommandRow>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// The one table. `list` has been called before: an engine is created with the families.
pub fn registry() -> &'static Registry {
    // The commands are in a crate above this one: the tests of this crate have none.
    #[cfg(test)]
    list(&[]);
    REGISTRY.get().expect("commands are listed before anything asks for one")
}

/// Sets the command families. Their tables form the one table from then on.
pub fn list(families: &[&'static [Table]]) -> &'static Registry {
    REGISTRY.get_or_init(|| Registry::new(families))
}

impl Registry {
    fn new(families: &[&'static [Table]]) -> Registry {
        let mut registry = Registry { rows: Vec::new(), by_name: HashTable::new() };
        for table in families.iter().copied().flatten() {
            for command in table.commands {
                let subcommands = command
                    .subcommands
                    .iter()
                    .map(|sub| registry.add(sub, Some(command.name), table, Vec::new()))
                    .collect();
                let row = registry.add(command, None, table, subcommands);
                registry
                    .by_name
                    .insert_unique(hash_of(command.name.as_bytes()), row, |row| hash_of(row.command.name.as_bytes()));
            }
        }
        registry
    }

    /// Rows live as long as the process, so they are leaked once and referred to without counting.
    fn add(
        &mut self,
        command: &'static Command,
        container: Option<&str>,
        table: &'static Table,
        subcommands: Vec<&'static CommandRow>,
    ) -> &'static CommandRow {
        let full_name = match container {
            Some(container) => format!("{container}|{}", command.name),
            None => command.name.to_owned(),
        };
        let name_args = if container.is_some() { 2 } else { 1 };
        let row = Box::leak(Box::new(CommandRow {
            command,
            index: self.rows.len(),
            full_name,
            table,
            subcommands,
            name_args,
            values_are_inline: matches!(table.group, "string" | "hash" | "register"),
            name_in_capitals: command.name.to_ascii_uppercase(),
        }));
        self.rows.push(row);
        row
    }

    /// All rows, subcommands before their container.
    pub fn rows(&self) -> &[&'static CommandRow] {
        &self.rows
    }

    /// All top-level commands.
    pub fn commands(&self) -> impl Iterator<Item = &'static CommandRow> {
        self.rows.iter().copied().filter(|row| row.name_args == 1)
    }

    /// The command of that name, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<&'static CommandRow> {
        self.by_name.find(hash_of(name), |row| row.is_named(name)).copied()
    }

    /// The row of a full name such as `config|get`.
    pub fn find_full(&self, name: &[u8]) -> Option<&'static CommandRow> {
        match memchr::memchr(b'|', name) {
            None => self.find(name),
            Some(bar) => self.find(&name[..bar])?.subcommand(&name[bar + 1..]),
        }
    }
}

fn hash_of(name: &[u8]) -> u64 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    let mut lower = [0; 32];
    let len = name.len().min(lower.len());
    lower[..len].copy_from_slice(&name[..len]);
    lower[..len].make_ascii_lowercase();
    hasher.write(&lower[..len]);
    hasher.finish()
}

impl CommandRow {
    /// True when it works on the data of the selected database.
    pub fn uses_database(&self) -> bool {
        let has_keys = self.command.keys.has_any() && !self.command.keys.are_channels();
        has_keys || self.command.flags.has(Flags::READONLY.union(Flags::WRITE))
    }

    /// The subcommand of that name, in any case.
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static CommandRow> {
        self.subcommands.iter().copied().find(|row| name.eq_ignore_ascii_case(row.command.name.as_bytes()))
    }

    /// True when that is its name, in any case, without the container's.
    #[inline]
    pub fn is_named(&self, name: &[u8]) -> bool {
        // The first comparison costs a fraction of the second, which visits each byte.
        name == self.name_in_capitals.as_bytes() || name.eq_ignore_ascii_case(self.command.name.as_bytes())
    }

    /// True when a request names this command, has the right number of arguments, and has no subcommand.
    #[inline]
    pub fn is_plainly(&self, request: Request<'_>) -> bool {
        self.name_args == 1
            && self.subcommands.is_empty()
            && self.is_named(request.arg(0))
            && self.accepts(request.len())
    }

    /// True when a request only removes: see [`Command::only_removes`].
    #[cold]
    pub fn only_removes(&self, request: Request<'_>) -> bool {
        self.command.only_removes.is_some_and(|holds| holds(request))
    }

    /// The flags of a request: those of the row, unless the request only reads (see [`Command::only_reads`]).
    #[inline]
    pub fn flags_of(&self, request: Request<'_>) -> Flags {
        let flags = self.command.flags;
        match self.command.only_reads {
            Some(only_reads) if flags.has(Flags::WRITE) && only_reads(request) => {
                flags.difference(Flags::WRITE.union(Flags::DENYOOM)).union(Flags::READONLY)
            }
            _ => flags,
        }
    }

    /// True when a command grows nothing and removes something from every key that it names (DEL, HDEL, LPOP).
    pub fn only_takes_away(&self) -> bool {
        let specs = self.command.keys.specs();
        let grows = self.command.flags.has(Flags::DENYOOM) || !self.command.flags.has(Flags::WRITE);
        !grows && !specs.is_empty() && specs.iter().all(|spec| spec.flags.contains(KeyFlags::DELETE))
    }

    /// True when a request has a relative time: see [`Command::relative_time`].
    pub fn is_relative(&self, request: Request<'_>) -> bool {
        self.accepts(request.len()) && self.command.relative_time.is_some_and(|holds| holds(request))
    }

    /// True when a request of `count` arguments has the right number.
    #[inline]
    pub fn accepts(&self, count: usize) -> bool {
        self.command.arity.accepts(count)
    }

    /// The key and its position, for a command with one key at a fixed position.
    #[inline]
    pub fn only_key<'a>(&self, request: Request<'a>) -> Option<(usize, Key<'a>)> {
        match self.command.keys.locks {
            Locks::Key(at) => Some((usize::from(at), Key::new(request.arg(usize::from(at))))),
            _ => None,
        }
    }

    /// What has to be locked for a request.
    pub fn locks(&self, request: Request<'_>) -> Locks {
        match self.command.reaches_beyond {
            Some(holds) if holds(request) => Locks::Everything,
            _ => self.command.keys.locks,
        }
    }

    /// The keys of a request, and what is done with them. An invalid number of keys yields none: the handler refuses
    /// the request before it reads any.
    pub fn found_keys(&self, request: Request<'_>) -> FoundKeys {
        let count_min = if self.command.flags.has(Flags::NO_MANDATORY_KEYS) { 0 } else { 1 };
        self.command.keys.find(request, count_min)
    }

    /// Positions of the keys that are locked for a request.
    pub fn key_positions(&self, request: Request<'_>) -> impl Iterator<Item = usize> + use<> {
        let ranges = match self.command.keys.locks {
            Locks::Key(at) => smallvec![KeyRange::one(usize::from(at), KeyFlags::empty())],
            Locks::Keys => self.found_keys(request).ranges,
            Locks::None | Locks::Everything | Locks::Walk | Locks::Declared => SmallVec::new(),
        };
        ranges.into_iter().flat_map(KeyRange::positions)
    }

    /// The keys that are locked for a request.
    pub fn keys<'a>(&self, request: Request<'a>) -> impl Iterator<Item = Key<'a>> + use<'a> {
        self.key_positions(request).map(move |at| Key::new(request.arg(at)))
    }

    /// Its group in COMMAND DOCS.
    pub fn group(&self) -> &'static str {
        self.command.docs.group.unwrap_or(self.table.group)
    }

    /// ACL categories, `@` included, as COMMAND INFO lists them.
    pub fn acl_categories(&self) -> Vec<String> {
        let flags = self.command.flags;
        let has = |category: &str| match category {
            // What a script does is unknown: even a script that is declared read-only is not in this category.
            "read" => flags.has(Flags::READONLY) && !matches!(self.command.handler, Handler::Script(_)),
            "write" => flags.has(Flags::WRITE),
            "admin" => flags.has(Flags::ADMIN),
            "dangerous" => flags.has(Flags::ADMIN) || flags.has(Flags::DANGEROUS),
            "pubsub" => flags.has(Flags::PUBSUB),
            "blocking" => flags.has(Flags::BLOCKING),
            "fast" => flags.has(Flags::FAST),
            "slow" => !flags.has(Flags::FAST),
            _ => false,
        };
        let family = match self.command.handler {
            Handler::Container => "",
            _ => self.table.category,
        };
        ACL_CATEGORIES
            .iter()
            .filter(|name| has(name) || **name == family || self.command.categories.contains(name))
            .map(|name| format!("@{name}"))
            .collect()
    }
}

/// All ACL categories, in the order in which COMMAND INFO lists them.
pub const ACL_CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    // Those of our own commands.
    "record",
    "cell",
    "run",
    "register",
    "session",
];
