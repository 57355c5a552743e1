//! What the server keeps that is no key: libraries of functions, and indexes. Knows names and their texts; refuses to know what they
//! mean.
//!
//! Definitions live beside the databases of the first shard and change only while every shard is locked, so that they
//! have their place in the order of batches, and a walk meets them in its very first part.

use crate::effects::{Definable, Effect, codec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that is defined.
#[derive(Default)]
pub struct Definitions {
    /// The code of each library, by name.
    libraries: BTreeMap<Vec<u8>, Arc<[u8]>>,
    /// What each index is of, by name; nothing for one of the configuration that a client has dropped.
    indexes: BTreeMap<Vec<u8>, Vec<u8>>,
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

    /// All names that clients have decided about, with the definition as [`Definition`](crate::index::Definition) reads it;
    /// `None` when there is to be no index of that name.
    pub fn indexes(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        self.indexes.iter().map(|(name, definition)| {
            (name.as_slice(), Some(definition.as_slice()).filter(|definition| !definition.is_empty()))
        })
    }

    pub(super) fn define(&mut self, what: Definable, name: &[u8], definition: &[u8]) {
        match what {
            Definable::Library => drop(self.libraries.insert(name.to_vec(), definition.into())),
            Definable::Index => drop(self.indexes.insert(name.to_vec(), definition.to_vec())),
        }
    }

    pub(super) fn undefine(&mut self, what: Definable, name: &[u8]) -> bool {
        match what {
            Definable::Library => self.libraries.remove(name).is_some(),
            Definable::Index => self.indexes.remove(name).is_some(),
        }
    }

    /// Appends everything, as effects that make it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for (name, code) in self.libraries() {
            codec::encode(0, &Effect::Define { what: Definable::Library, name, definition: code }, out);
        }
        for (name, definition) in &self.indexes {
            codec::encode(0, &Effect::Define { what: Definable::Index, name, definition }, out);
        }
    }
}
