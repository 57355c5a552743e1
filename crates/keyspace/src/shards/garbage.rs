//! Values that were removed from the keyspace but not freed yet. Knows how many there are; refuses to know when and
//! where they are freed.

use super::db::Db;
use crate::types::Entry;
use std::any::Any;

/// Removed values that take long to free: large ones and whole databases. A pointer, as nearly always there is nothing.
#[derive(Default)]
pub struct Garbage(Option<Box<Removed>>);

#[derive(Default)]
struct Removed(Vec<Box<dyn Any + Send>>);

impl Garbage {
    /// One value.
    pub fn of(value: impl Send + 'static) -> Garbage {
        let mut garbage = Garbage::default();
        garbage.add(value);
        garbage
    }

    /// Adds a removed value.
    #[cold]
    pub fn add(&mut self, value: impl Send + 'static) {
        self.0.get_or_insert_default().0.push(Box::new(value));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The number of key values in it.
    pub fn value_count(&self) -> u64 {
        let values = self.0.iter().flat_map(|removed| &removed.0).map(|item| match item.downcast_ref::<Vec<Db>>() {
            Some(emptied) => emptied.iter().map(Db::len).sum(),
            None => usize::from(item.is::<Entry>()),
        });
        values.sum::<usize>() as u64
    }
}
