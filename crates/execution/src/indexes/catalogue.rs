//! The catalogue of indexes. Knows their definitions; refuses to know how an index is filled and read.

use crate::error::{CommandError, CommandResult};
use keyspace::db::Db;
use keyspace::index::{INDEXES_MAX, Indexes};
use keyspace::{DATABASES, Key, Locked};
use locks::{RwLock, rank};
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All indexes of records.
#[derive(Default)]
pub struct IndexCatalogue {
    indexes: RwLock<Indexes, { rank::INDEXES }>,
    /// Names of the indexes that the configuration asks for.
    configured: RwLock<BTreeSet<Vec<u8>>, { rank::CONFIGURED_INDEXES }>,
    /// There is at least one.
    is_any: AtomicBool,
    /// At least one index stamps records.
    stamps: AtomicBool,
}

impl IndexCatalogue {
    /// All indexes.
    pub fn list(&self) -> Indexes {
        self.indexes.read().clone()
    }

    /// Locks the list of indexes for reading.
    pub fn read(&self) -> impl Deref<Target = Indexes> + '_ {
        self.indexes.read()
    }

    /// True when there is no index.
    pub fn is_empty(&self) -> bool {
        self.indexes.read().is_empty()
    }

    /// True when one of these names is an index.
    pub fn has_any_of<'n>(&self, mut names: impl Iterator<Item = &'n [u8]>) -> bool {
        let indexes = self.indexes.read();
        !indexes.is_empty() && names.any(|name| indexes.position(name).is_some())
    }

    /// The prefixes of an index; none if there is no index of that name.
    #[inline]
    pub fn prefixes_of(&self, name: &[u8]) -> Vec<Vec<u8>> {
        if !self.is_any.load(Relaxed) {
            return Vec::new();
        }
        let indexes = self.indexes.read();
        indexes.find(name).map_or_else(Vec::new, |index| index.definition.prefixes.clone())
    }

    /// True when an index stamps records: writes have to find the records to stamp.
    #[inline]
    pub fn stamps_records(&self) -> bool {
        self.stamps.load(Relaxed)
    }

    /// Replaces all indexes. The shards have them already.
    pub(super) fn set(&self, indexes: Indexes) {
        self.is_any.store(!indexes.is_empty(), Relaxed);
        self.stamps.store(indexes.iter().any(|index| index.definition.stamp), Relaxed);
        *self.indexes.write() = indexes;
    }

    /// Notes which indexes the configuration asks for.
    pub(super) fn set_configured(&self, names: impl Iterator<Item = Vec<u8>>) {
        *self.configured.write() = names.collect();
    }

    pub(super) fn is_configured(&self, name: &[u8]) -> bool {
        self.configured.read().contains(name)
    }

    /// Checks that an index of that name can be created. Everything is locked.
    pub fn pass_limits(&self, locked: &Locked<'_>, name: &[u8], now_ms: u64) -> CommandResult {
        let indexes = self.list();
        let taken = match indexes.position(name).is_some() {
            true => Some("an index"),
            false => is_key(locked, name, now_ms).then_some("a key"),
        };
        if let Some(taken) = taken {
            let name = name.escape_ascii();
            return Err(CommandError::said(format!("ERR the name '{name}' is taken by {taken}")));
        }
        if indexes.iter().len() >= INDEXES_MAX {
            let text = format!("ERR there are {INDEXES_MAX} indexes, and every write looks at each: drop one first");
            return Err(CommandError::said(text));
        }
        Ok(())
    }
}

/// True when a key of that name exists in any database. Everything is locked.
pub(super) fn is_key(locked: &Locked<'_>, name: &[u8], now_ms: u64) -> bool {
    let key = Key::new(name);
    (0..DATABASES).any(|db| locked.db(db, key).entry(key).is_some_and(|entry| !Db::is_expired(entry, now_ms)))
}

/// The error for commands that would change an index.
pub fn is_index(name: &[u8]) -> CommandError {
    let name = name.escape_ascii();
    CommandError::said(format!(
        "ERR '{name}' is an index: it changes with its records, and no command changes or watches it"
    ))
}
