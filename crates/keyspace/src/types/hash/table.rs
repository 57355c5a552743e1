//! A large hash: a table of fields, with ordered deadlines. Knows fields; refuses to know commands.

use super::Form;
use super::packed::Pair;
use crate::storage::entry::Entry;
use crate::storage::scalar::{NUMBER, TEXT};
use crate::storage::size_class::{DEADLINE_BYTES, size_class};
use crate::storage::table::Table;
use crate::storage::{NameHash, NameId, Scalar};
use std::collections::BTreeSet;

/// A field is an entry whose value is always inline.
pub(crate) type Field = Entry<NoObject>;

/// An empty type: fields are always inline.
#[derive(Clone)]
pub enum NoObject {}

/// A large hash, or one with field deadlines.
#[derive(Default, Clone)]
pub struct FieldTable {
    fields: Table<NoObject>,
    /// Deadline and id of each field that has one, soonest first.
    deadlines: BTreeSet<(u64, NameId)>,
    /// The fields in insertion order, for a hash that is small by the settings, as in Redis.
    #[expect(clippy::box_collection, reason = "few hashes have one, and every table pays for the place")]
    order: Option<Box<Vec<NameId>>>,
    form: Form,
}

/// Beyond this many fields the order is dropped: removing one takes a search.
const ORDERED_MAX: usize = 65_536;

impl FieldTable {
    /// How many fields there are, including expired ones.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// True when there is no field.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// How many fields have expired but are not removed yet.
    pub fn overdue(&self, now_ms: u64) -> usize {
        self.deadlines.range(..=(now_ms, NameId::MAX)).count()
    }

    /// The soonest deadline of any field.
    pub fn soonest(&self) -> Option<u64> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The soonest deadline of those fields that have not expired.
    pub fn next_expiry(&self, now_ms: u64) -> Option<u64> {
        self.deadlines.range((now_ms + 1, NameId::MIN)..).next().map(|(deadline, _)| *deadline)
    }

    /// True when every field has expired.
    pub fn all_expired(&self, now_ms: u64) -> bool {
        self.deadlines.len() == self.fields.len()
            && self.deadlines.last().is_none_or(|(deadline, _)| *deadline <= now_ms)
    }

    /// Names of expired fields, earliest deadline first, at most `count`.
    pub fn expired_names(&self, now_ms: u64, count: usize) -> Vec<Vec<u8>> {
        let due = self.deadlines.range(..=(now_ms, NameId::MAX)).take(count);
        due.filter_map(|(_, id)| self.fields.by_id(*id)).map(|field| field.name().to_vec()).collect()
    }

    /// All fields, including expired ones; in insertion order if that is known.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Field> {
        let order = self.order.as_deref();
        let ordered = order.into_iter().flatten().filter_map(|id| self.fields.by_id(*id));
        ordered.chain(order.is_none().then(|| self.fields.iter()).into_iter().flatten())
    }

    /// The encoding that Redis would use.
    pub fn form(&self) -> Form {
        self.form
    }

    pub(super) fn set_form(&mut self, form: Form) {
        self.form = form;
        if form != Form::Small {
            self.order = None;
        }
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<&Field> {
        self.fields.get(NameHash::of(field), field)
    }

    /// Sets a field; returns true when it is new. Its deadline is removed unless `keep_deadline`.
    pub fn set(&mut self, field: &[u8], value: &[u8], keep_deadline: bool) -> bool {
        let hash = NameHash::of(field);
        let number;
        let (kind, body) = match Scalar::of(value) {
            Scalar::Number(value) => {
                number = value.to_le_bytes();
                (NUMBER, number.as_slice())
            }
            Scalar::Bytes(bytes) => (TEXT, bytes),
        };
        match self.fields.get_mut(hash, field) {
            Some(entry) => {
                entry.set_body(kind, body);
                if let Some(deadline) = entry.deadline()
                    && !keep_deadline
                {
                    entry.set_deadline(None);
                    self.deadlines.remove(&(deadline, self.fields.id_of(hash, field)));
                }
                false
            }
            None => {
                self.fields.insert(hash, Field::new(field, kind, body, None));
                self.note_added(hash, field);
                true
            }
        }
    }

    fn note_added(&mut self, hash: NameHash, field: &[u8]) {
        if self.form == Form::Small && self.len() == 1 {
            self.order = Some(Box::default());
        }
        let Some(order) = &mut self.order else { return };
        order.push(self.fields.id_of(hash, field));
        if order.len() > ORDERED_MAX {
            self.order = None;
        }
    }

    pub fn remove(&mut self, field: &[u8]) -> bool {
        let hash = NameHash::of(field);
        let id = self.fields.id_of(hash, field);
        let Some(entry) = self.fields.remove(hash, field) else { return false };
        if let Some(order) = &mut self.order
            && let Some(at) = order.iter().position(|known| *known == id)
        {
            order.remove(at);
        }
        if let Some(deadline) = entry.deadline() {
            self.deadlines.remove(&(deadline, id));
        }
        true
    }

    pub fn set_deadline(&mut self, field: &[u8], deadline: Option<u64>) {
        let hash = NameHash::of(field);
        let id = self.fields.id_of(hash, field);
        let Some(entry) = self.fields.get_mut(hash, field) else { return };
        if let Some(old) = entry.deadline() {
            self.deadlines.remove(&(old, id));
        }
        entry.set_deadline(deadline);
        if let Some(deadline) = deadline {
            self.set_form(self.form.max(Form::SmallWithDeadlines));
            self.deadlines.insert((deadline, id));
        }
    }

    pub fn from_pairs<'a>(pairs: impl Iterator<Item = Pair<'a>>, form: Form) -> FieldTable {
        let mut table = FieldTable { form, ..FieldTable::default() };
        for (field, value) in pairs {
            table.set(field, value, false);
        }
        table
    }

    /// Visits fields from `cursor` on, expired ones included: see [`Table::scan`].
    pub(super) fn scan(&self, cursor: u32, count: usize, visit: impl FnMut(&Field)) -> Option<u32> {
        self.fields.scan(cursor, count, visit)
    }

    /// A random field, perhaps an expired one.
    pub(super) fn random(&self, random: &mut fastrand::Rng) -> Option<&Field> {
        self.fields.random(random)
    }

    /// Heap bytes of the table and its contents, estimated from the first `samples` fields.
    pub fn heap_bytes(&self, samples: usize) -> usize {
        let taken = samples.clamp(1, self.len().max(1));
        let sampled: usize = self.fields.iter().take(taken).map(|field| size_class(field.heap_bytes())).sum();
        let order = self.order.as_ref().map_or(0, |order| size_class(order.capacity() * size_of::<NameId>()));
        sampled * self.len() / taken + self.fields.heap_bytes() + self.deadlines.len() * DEADLINE_BYTES + order
    }
}

/// True when a field has not expired.
pub(super) fn is_alive(field: &Field, now_ms: u64) -> bool {
    field.deadline().is_none_or(|deadline| deadline > now_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &FieldTable) -> Vec<String> {
        table.entries().map(|field| String::from_utf8_lossy(field.name()).into_owned()).collect()
    }

    #[test]
    fn a_small_hash_keeps_the_order_of_its_fields_up_to_a_limit() {
        let mut table = FieldTable::default();
        let mut expected: Vec<String> = (0..3000).map(|number| format!("field {number}")).collect();
        expected.iter().for_each(|name| assert!(table.set(name.as_bytes(), b"1", false)));
        for at in [2999, 1500, 0] {
            assert!(table.remove(expected.remove(at).as_bytes()));
        }
        assert!(!table.set(b"field 7", b"2", false) && table.set(b"field 0", b"3", false));
        expected.push("field 0".into());
        assert!(names(&table) == expected && names(&table.clone()) == expected);
        let mut large = table.clone();
        large.set_form(Form::Large);
        assert!(large.order.is_none() && names(&large).len() == expected.len());
        (0..=ORDERED_MAX).for_each(|number| assert!(table.set(format!("more {number}").as_bytes(), b"", false)));
        assert!(table.order.is_none());
        let mut found = names(&table);
        assert_eq!((found.len(), table.len()), (expected.len() + ORDERED_MAX + 1, expected.len() + ORDERED_MAX + 1));
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), table.len());
    }
}
