//! Definitions: libraries of functions, indexes, incomplete forks and restores, and session hooks. Knows names and
//! bytes; refuses to know what they mean.
//!
//! Definitions are in the first shard and change only while all shards are locked, so that they are ordered with all
//! batches, and a walk finds them in its first part.

use crate::effects::{Definable, Effect, codec};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

/// All definitions.
#[derive(Default)]
pub struct Definitions {
    /// The code of each library, by name.
    libraries: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// The definition of each index, by name; empty for an index of the configuration that a client has dropped.
    indexes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Database and prefix of each incomplete fork.
    forks: BTreeSet<Vec<u8>>,
    /// The remaining work of restores of registers, and which of them have begun.
    restores: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// The function of each hook, by the hook's name.
    hooks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The limits of groups, by the name of an index and of what they are for.
    limits: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Definitions {
    /// All libraries, by name.
    pub fn libraries(&self) -> impl Iterator<Item = (&[u8], &Arc<[u8]>)> {
        self.libraries.iter().map(|(name, code)| (name.as_slice(), code))
    }

    /// The code of a library.
    pub fn library(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        self.libraries.get(name)
    }

    /// All index names that clients have created or dropped, with the bytes of the
    /// [`Definition`](crate::index::Definition); `None` for a dropped one.
    pub fn indexes(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.indexes.iter().map(|(name, definition)| {
            (name.as_slice(), Some(definition.as_slice()).filter(|definition| !definition.is_empty()))
        })
    }

    /// The names of all incomplete forks: the number of a database, and a prefix.
    pub fn forks(&self) -> impl Iterator<Item = &[u8]> {
        self.forks.iter().map(Vec::as_slice)
    }

    /// The function of a hook.
    pub fn hook(&self, name: &[u8]) -> Option<&[u8]> {
        self.hooks.get(name).map(Vec::as_slice)
    }

    /// The names of all hooks that have a function.
    pub fn hooks(&self) -> impl Iterator<Item = &[u8]> {
        self.hooks.keys().map(Vec::as_slice)
    }

    /// The limits of groups: the name of an index and of what they are for, and their bytes.
    pub fn limits(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.limits.iter().map(|(name, limits)| (name.as_slice(), limits.as_slice()))
    }

    /// Forgets all limits whose names begin so.
    pub(super) fn forget_limits(&mut self, prefix: &[u8]) {
        self.limits.retain(|name, _| !name.starts_with(prefix));
    }

    /// The names of the remaining work of restores: the number of a database, alone or with the number of a piece.
    pub fn restores(&self) -> impl Iterator<Item = &[u8]> {
        self.restores.keys().map(Vec::as_slice)
    }

    /// The steps of a piece of a restore.
    pub fn restore(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        self.restores.get(name)
    }

    /// The definition of that kind and name.
    pub fn definition(&self, what: Definable, name: &[u8]) -> Option<&[u8]> {
        match what {
            Definable::Library => self.libraries.get(name).map(|code| &**code),
            Definable::Index => self.indexes.get(name).map(Vec::as_slice),
            Definable::Fork => self.forks.contains(name).then_some(b""),
            Definable::Restore => self.restores.get(name).map(|steps| &**steps),
            Definable::Hook => self.hook(name),
            Definable::Limits => self.limits.get(name).map(Vec::as_slice),
        }
    }

    pub(super) fn define(&mut self, what: Definable, name: &[u8], definition: &[u8]) {
        match what {
            Definable::Library => drop(self.libraries.insert(name.to_vec(), definition.into())),
            Definable::Index => drop(self.indexes.insert(name.to_vec(), definition.to_vec())),
            Definable::Fork => drop(self.forks.insert(name.to_vec())),
            Definable::Restore => drop(self.restores.insert(name.to_vec(), definition.into())),
            Definable::Hook => drop(self.hooks.insert(name.to_vec(), definition.to_vec())),
            Definable::Limits => drop(self.limits.insert(name.to_vec(), definition.to_vec())),
        }
    }

    pub(super) fn undefine(&mut self, what: Definable, name: &[u8]) -> bool {
        match what {
            Definable::Library => self.libraries.remove(name).is_some(),
            Definable::Index => self.indexes.remove(name).is_some(),
            Definable::Fork => self.forks.remove(name),
            Definable::Restore => {
                let before = self.restores.len();
                while let Some((first, _)) = self.restores.range::<[u8], _>((Included(name), Unbounded)).next() {
                    if !first.starts_with(name) {
                        break;
                    }
                    let first = first.clone();
                    self.restores.remove(&first);
                }
                self.restores.len() < before
            }
            Definable::Hook => self.hooks.remove(name).is_some(),
            Definable::Limits => self.limits.remove(name).is_some(),
        }
    }

    /// Appends all definitions, as the effects that create them.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (name, code) in self.libraries() {
            codec::encode(0, &Effect::Define { what: Definable::Library, name, definition: code }, out);
        }
        for (name, definition) in &self.indexes {
            codec::encode(0, &Effect::Define { what: Definable::Index, name, definition }, out);
        }
        for name in self.forks() {
            codec::encode(0, &Effect::Define { what: Definable::Fork, name, definition: b"" }, out);
        }
        for (name, definition) in &self.restores {
            codec::encode(0, &Effect::Define { what: Definable::Restore, name, definition }, out);
        }
        for (name, definition) in &self.hooks {
            codec::encode(0, &Effect::Define { what: Definable::Hook, name, definition }, out);
        }
        for (name, definition) in &self.limits {
            codec::encode(0, &Effect::Define { what: Definable::Limits, name, definition }, out);
        }
    }
}
