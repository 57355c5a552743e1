//! Notifications that a worker has not published yet. Refuses to know how they are published.

use crate::clients::tracking::Reason;
use crate::waiting::records::{RecordWaiters, Written};
use keyspace::Locked;
use keyspace::index::Index;
use keyspace::interest::readers::Readers;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// Notifications that a worker has not published yet.
#[derive(Default)]
pub struct PendingNotifications(pub(super) RefCell<Pending>);

#[derive(Default)]
pub(super) struct Pending {
    pub(super) notifications: Vec<Notification>,
    /// The names of their keys, concatenated.
    pub(super) names: Vec<u8>,
    /// Keys with waiters that have changed.
    ready: BTreeMap<(usize, Box<[u8]>), ServeOrder>,
    /// The next order number of a key in `ready`.
    next_order: usize,
    /// Records that got a score in an index with waiters.
    records: Vec<Written>,
    /// Databases that were emptied or swapped while clients waited for records.
    replaced: Vec<usize>,
}

/// When the waiters of a key are served, relative to those of other keys.
struct ServeOrder {
    order: usize,
    /// The key had a value when it got this number.
    has_value: bool,
}

pub(super) struct Notification {
    pub(super) what: What,
    /// Where the key's name ends. It begins where the previous name ends.
    pub(super) name_end: usize,
}

pub(super) enum What {
    /// An event of `notify-keyspace-events` in this database.
    Event { event: &'static str, db: usize },
    /// These clients have read a value that has changed.
    Stale { readers: Readers, reason: Reason },
    /// Everything that any client has read is stale.
    AllStale,
    /// A request to a client that is attached to a session.
    Request { client: u64, id: u64, payload: Box<[u8]> },
}

impl PendingNotifications {
    /// True when there is nothing to publish.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.borrow().notifications.is_empty()
    }

    /// How many notifications there are.
    pub fn len(&self) -> usize {
        self.0.borrow().notifications.len()
    }

    /// About how many bytes they take.
    pub fn bytes(&self) -> usize {
        let pending = self.0.borrow();
        pending.names.len() + pending.notifications.len() * size_of::<Notification>()
    }

    /// Drops all but the first `len` notifications.
    pub fn truncate(&self, len: usize) {
        let Pending { notifications, names, .. } = &mut *self.0.borrow_mut();
        notifications.truncate(len);
        names.truncate(notifications.last().map_or(0, |last| last.name_end));
    }

    /// Drops the events and requests after the first `len` notifications, because the changes were undone.
    /// Invalidations stay: the table of readers has forgotten these readers.
    pub fn retract(&self, len: usize) {
        let Pending { notifications, names, .. } = &mut *self.0.borrow_mut();
        let name_at = notifications[..len].last().map_or(0, |last| last.name_end);
        let (later, later_names) = (notifications.split_off(len), names.split_off(name_at));
        let mut later_at = 0;
        for Notification { what, name_end } in later {
            let name = &later_names[later_at..name_end - name_at];
            later_at = name_end - name_at;
            if matches!(what, What::Stale { .. } | What::AllStale) {
                names.extend_from_slice(name);
                notifications.push(Notification { what, name_end: names.len() });
            }
        }
    }

    /// Adds the events of another collection.
    pub fn append(&self, events: &PendingNotifications) {
        let Pending { notifications, names, .. } = &*events.0.borrow();
        let mut name_at = 0;
        for Notification { what, name_end } in notifications {
            if let What::Event { event, db } = what {
                self.event(event, *db, &names[name_at..*name_end]);
            }
            name_at = *name_end;
        }
    }

    /// Adds an event of `notify-keyspace-events` for a key.
    pub fn event(&self, event: &'static str, db: usize, name: &[u8]) {
        self.add(What::Event { event, db }, name);
    }

    /// Adds an invalidation of a key for the clients that have read it.
    pub fn stale(&self, name: &[u8], readers: Readers, reason: Reason) {
        self.add(What::Stale { readers, reason }, name);
    }

    /// Adds a request of a session for the client that is attached to it.
    pub fn request(&self, client: u64, session: &[u8], id: u64, payload: &[u8]) {
        self.add(What::Request { client, id, payload: payload.into() }, session);
    }

    /// Adds an invalidation of everything.
    pub fn all_stale(&self) {
        self.add(What::AllStale, b"");
    }

    /// Notes that a key with waiters has changed, and whether it has a value now. Keys are served in the order in which
    /// they got a value: a FLUSHALL before pushes changes every key, in no order, and has nothing for clients that wait
    /// for a push.
    pub fn ready(&self, db: usize, name: &[u8], has_value: bool) {
        let Pending { ready, next_order, .. } = &mut *self.0.borrow_mut();
        let serve_order = ServeOrder { order: *next_order, has_value };
        match ready.entry((db, name.into())) {
            Entry::Vacant(entry) => {
                entry.insert(serve_order);
            }
            Entry::Occupied(mut entry) if has_value && !entry.get().has_value => *entry.get_mut() = serve_order,
            Entry::Occupied(_) => return,
        }
        *next_order += 1;
    }

    /// Notes that a record got a score in an index with waiters.
    pub fn record(&self, db: usize, index: Arc<Index>, name: Arc<[u8]>) {
        self.0.borrow_mut().records.push((db, index, name));
    }

    /// Notes that databases were emptied or swapped while clients wait for records.
    pub fn replaced(&self, dbs: impl Iterator<Item = usize>) {
        self.0.borrow_mut().replaced.extend(dbs);
    }

    /// True when there is nothing to publish and no waiter to serve.
    #[inline]
    pub fn is_idle(&self) -> bool {
        let pending = self.0.borrow();
        pending.notifications.is_empty()
            && pending.ready.is_empty()
            && pending.records.is_empty()
            && pending.replaced.is_empty()
    }

    /// Offers the noted records, which are locked, to the clients that wait for them.
    #[inline]
    pub fn make_records_ready(&self, waiters: &RecordWaiters, locked: &Locked<'_>, now_ms: u64) {
        let Pending { records, replaced, .. } = &mut *self.0.borrow_mut();
        if !records.is_empty() {
            waiters.note(&std::mem::take(records), locked, now_ms);
        }
        if !replaced.is_empty() {
            let replaced = std::mem::take(replaced);
            waiters.search_anew(|db| replaced.contains(&db));
        }
    }

    /// True when a key with waiters has changed.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.0.borrow().ready.is_empty()
    }

    /// Takes the changed keys with waiters, each once, in the order in which they are served.
    pub fn take_ready(&self) -> Vec<(usize, Box<[u8]>)> {
        let Pending { ready, next_order, .. } = &mut *self.0.borrow_mut();
        *next_order = 0;
        let mut in_order: Vec<_> = std::mem::take(ready).into_iter().collect();
        in_order.sort_unstable_by_key(|(_, serve_order)| serve_order.order);
        in_order.into_iter().map(|(key, _)| key).collect()
    }

    fn add(&self, what: What, name: &[u8]) {
        let Pending { notifications, names, .. } = &mut *self.0.borrow_mut();
        names.extend_from_slice(name);
        notifications.push(Notification { what, name_end: names.len() });
    }
}

impl Pending {
    /// Clears everything, but keeps a little memory for the next command.
    pub(super) fn clear(&mut self) {
        self.notifications.clear();
        self.notifications.shrink_to(NOTIFICATIONS_KEPT);
        self.names.clear();
        self.names.shrink_to(NAME_BYTES_KEPT);
    }
}

const NOTIFICATIONS_KEPT: usize = 64;
const NAME_BYTES_KEPT: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_notifications_are_cleared() {
        let pending = PendingNotifications::default();
        assert!(pending.is_empty());
        pending.event("set", 0, b"a");
        pending.stale(b"b", Readers::new(), Reason::Changed);
        assert!(!pending.is_empty());
        pending.0.borrow_mut().clear();
        assert!(pending.is_empty());
    }

    #[test]
    fn of_changes_that_are_undone_invalidations_stay() {
        let pending = PendingNotifications::default();
        pending.event("set", 0, b"kept");
        let len = pending.len();
        pending.event("set", 0, b"one");
        pending.stale(b"two", Readers::new(), Reason::Changed);
        pending.request(7, b"three", 1, b"payload");
        pending.all_stale();
        pending.stale(b"four", Readers::new(), Reason::Changed);
        pending.event("del", 0, b"five");
        pending.retract(len);
        let Pending { notifications, names, .. } = &*pending.0.borrow();
        let ends: Vec<usize> = notifications.iter().map(|notification| notification.name_end).collect();
        assert_eq!((ends, names.as_slice()), (vec![4, 7, 7, 11], &b"kepttwofour"[..]));
        assert!(matches!(notifications[0].what, What::Event { .. }) && matches!(notifications[2].what, What::AllStale));
    }

    #[test]
    fn keys_are_ready_in_the_order_in_which_they_got_a_value() {
        let pending = PendingNotifications::default();
        for (db, name) in [(0, "b"), (1, "a"), (0, "a"), (0, "b")] {
            pending.ready(db, name.as_bytes(), true);
        }
        let ready = || pending.take_ready().into_iter().map(|(db, name)| (db, name[0])).collect::<Vec<_>>();
        assert_eq!(ready(), [(0, b'b'), (1, b'a'), (0, b'a')]);
        for (name, has_value) in [("a", false), ("b", false), ("c", true), ("b", true), ("c", false), ("b", true)] {
            pending.ready(0, name.as_bytes(), has_value);
        }
        assert_eq!(ready(), [(0, b'a'), (0, b'c'), (0, b'b')]);
        assert!(!pending.has_ready() && pending.take_ready().is_empty());
    }

    #[test]
    fn a_long_command_leaves_little_memory_behind() {
        let pending = PendingNotifications::default();
        (0..10_000).for_each(|_| pending.event("set", 0, &[0; 100]));
        let mut pending = pending.0.borrow_mut();
        pending.clear();
        assert!(pending.notifications.capacity() <= NOTIFICATIONS_KEPT && pending.names.capacity() <= NAME_BYTES_KEPT);
    }
}
