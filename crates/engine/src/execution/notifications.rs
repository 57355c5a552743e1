//! Notifications about keys: pending while a command runs, published when it is done, with its locks still held, so
//! that subscribers see the changes of a key in the order in which they were made. Knows channels and event names;
//! refuses to know subscribers.

use crate::clients::tracking::Reason;
use crate::execution::engine::Engine;
use crate::execution::waiting::records::{RecordWaiters, Written};
use crate::settings::ClientClass;
use crate::settings::events::Events;
use keyspace::Locked;
use keyspace::index::Index;
use keyspace::interest::readers::Readers;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::Write;
use std::sync::Arc;

/// Notifications that a worker has not published yet.
#[derive(Default)]
pub(crate) struct PendingNotifications(RefCell<Pending>);

#[derive(Default)]
struct Pending {
    notifications: Vec<Notification>,
    /// The names of their keys, one behind the other.
    names: Vec<u8>,
    /// Keys with waiters that have changed.
    ready: BTreeMap<(usize, Box<[u8]>), Turn>,
    /// How often one of them was given a turn.
    turns: usize,
    /// Records that have got a score in an index with waiters.
    records: Vec<Written>,
    /// Databases that were exchanged while clients waited for records.
    exchanged: Vec<usize>,
}

/// When the waiters of a key are served, among those of other keys.
struct Turn {
    order: usize,
    /// The key had a value when it got this turn.
    has_value: bool,
}

struct Notification {
    what: What,
    /// Where the key's name ends; it begins where that of the one before ends.
    name_end: usize,
}

enum What {
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
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().notifications.is_empty()
    }

    /// How many there are to publish.
    pub(crate) fn len(&self) -> usize {
        self.0.borrow().notifications.len()
    }

    /// About how many bytes they take.
    pub(crate) fn bytes(&self) -> usize {
        let pending = self.0.borrow();
        pending.names.len() + pending.notifications.len() * size_of::<Notification>()
    }

    /// Forgets all but the first `len`.
    pub(crate) fn truncate(&self, len: usize) {
        let Pending { notifications, names, .. } = &mut *self.0.borrow_mut();
        notifications.truncate(len);
        names.truncate(notifications.last().map_or(0, |last| last.name_end));
    }

    /// Adds the events of another collection.
    pub(crate) fn append(&self, events: &PendingNotifications) {
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
    pub(crate) fn event(&self, event: &'static str, db: usize, name: &[u8]) {
        self.add(What::Event { event, db }, name);
    }

    /// Adds an invalidation of a key for the clients that have read it.
    pub(crate) fn stale(&self, name: &[u8], readers: Readers, reason: Reason) {
        self.add(What::Stale { readers, reason }, name);
    }

    /// Adds a request of a session for the client that is attached to it.
    pub(crate) fn request(&self, client: u64, session: &[u8], id: u64, payload: &[u8]) {
        self.add(What::Request { client, id, payload: payload.into() }, session);
    }

    /// Adds an invalidation of everything.
    pub(crate) fn all_stale(&self) {
        self.add(What::AllStale, b"");
    }

    /// Notes that a key with waiters has changed, and whether it has a value now. Its turn is that of its first value: FLUSHALL
    /// in front of pushes changes every key, in no order, and has nothing for those who wait for a push.
    pub(crate) fn ready(&self, db: usize, name: &[u8], has_value: bool) {
        let Pending { ready, turns, .. } = &mut *self.0.borrow_mut();
        let turn = Turn { order: *turns, has_value };
        match ready.entry((db, name.into())) {
            Entry::Vacant(entry) => {
                entry.insert(turn);
            }
            Entry::Occupied(mut entry) if has_value && !entry.get().has_value => *entry.get_mut() = turn,
            Entry::Occupied(_) => return,
        }
        *turns += 1;
    }

    /// Notes that a record has got a score in an index with waiters.
    pub(crate) fn record(&self, db: usize, index: Arc<Index>, name: Arc<[u8]>) {
        self.0.borrow_mut().records.push((db, index, name));
    }

    /// Notes that databases were exchanged while clients wait for records.
    pub(crate) fn exchanged(&self, dbs: [usize; 2]) {
        self.0.borrow_mut().exchanged.extend(dbs);
    }

    /// True when there is nothing to publish and no waiter to serve.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        let pending = self.0.borrow();
        pending.notifications.is_empty()
            && pending.ready.is_empty()
            && pending.records.is_empty()
            && pending.exchanged.is_empty()
    }

    /// Makes the noted records, which are locked, ready for those that wait for them.
    #[inline]
    pub(crate) fn make_records_ready(&self, waiters: &RecordWaiters, locked: &Locked<'_>, now_ms: u64) {
        let Pending { records, exchanged, .. } = &mut *self.0.borrow_mut();
        if !records.is_empty() {
            waiters.note(&std::mem::take(records), locked, now_ms);
        }
        if !exchanged.is_empty() {
            let exchanged = std::mem::take(exchanged);
            waiters.search_anew(|db| exchanged.contains(&db));
        }
    }

    /// True when a key with waiters has changed.
    #[inline]
    pub(crate) fn has_ready(&self) -> bool {
        !self.0.borrow().ready.is_empty()
    }

    /// Takes the changed keys with waiters, each once, in the order of their turns.
    pub(crate) fn take_ready(&self) -> Vec<(usize, Box<[u8]>)> {
        let Pending { ready, turns, .. } = &mut *self.0.borrow_mut();
        *turns = 0;
        let mut in_order: Vec<_> = std::mem::take(ready).into_iter().collect();
        in_order.sort_unstable_by_key(|(_, turn)| turn.order);
        in_order.into_iter().map(|(key, _)| key).collect()
    }

    fn add(&self, what: What, name: &[u8]) {
        let Pending { notifications, names, .. } = &mut *self.0.borrow_mut();
        names.extend_from_slice(name);
        notifications.push(Notification { what, name_end: names.len() });
    }
}

impl Pending {
    /// Forgets everything, but keeps a little memory for the next command.
    fn clear(&mut self) {
        self.notifications.clear();
        self.notifications.shrink_to(NOTIFICATIONS_KEPT);
        self.names.clear();
        self.names.shrink_to(NAME_BYTES_KEPT);
    }
}

const NOTIFICATIONS_KEPT: usize = 64;
const NAME_BYTES_KEPT: usize = 4096;

impl Engine {
    /// Publishes what became pending during a command of the client `by`, or 0. Events are delivered once the batch
    /// `sequence` is persisted. IMPORTANT: call this while the changed shards are locked, or two changes of one key
    /// could be published in the wrong order.
    #[inline]
    pub(crate) fn publish(&self, pending: &PendingNotifications, sequence: u64, by: u64) {
        if !pending.is_empty() {
            self.publish_all(&mut pending.0.borrow_mut(), sequence, by);
        }
    }

    #[inline(never)]
    fn publish_all(&self, pending: &mut Pending, sequence: u64, by: u64) {
        let channels = self.settings.notify_keyspace_events();
        let bytes_max = self.settings.client_output_buffer_limit(ClientClass::Pubsub).hard_bytes;
        let (mut channel, mut name_at) = (Vec::new(), 0);
        let mut changed = BTreeMap::new();
        for Notification { what, name_end } in &pending.notifications {
            let name = &pending.names[name_at..*name_end];
            name_at = *name_end;
            let (event, db) = match what {
                What::Event { event, db } => (event, db),
                What::AllStale => {
                    self.invalidate_all();
                    continue;
                }
                What::Request { client, id, payload } => {
                    self.deliver_request(*client, name, *id, payload, sequence);
                    continue;
                }
                What::Stale { readers, reason } => {
                    self.invalidate_for_readers(name, readers, by);
                    if *reason != Reason::Forgotten {
                        changed.entry(name).or_insert(*reason == Reason::Changed);
                    }
                    continue;
                }
            };
            if channels.contains(Events::KEYSPACE) {
                channel.clear();
                let _ = write!(channel, "__keyspace@{db}__:");
                channel.extend_from_slice(name);
                self.pubsub.publish(&channel, event.as_bytes(), bytes_max, sequence);
            }
            if channels.contains(Events::KEYEVENT) {
                channel.clear();
                let _ = write!(channel, "__keyevent@{db}__:{event}");
                self.pubsub.publish(&channel, name, bytes_max, sequence);
            }
        }
        if !changed.is_empty() && self.tracking.has_prefixes() {
            self.invalidate_prefixes(&changed, by);
        }
        pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_cleared() {
        let pending = PendingNotifications::default();
        assert!(pending.is_empty());
        pending.event("set", 0, b"a");
        pending.stale(b"b", Readers::new(), Reason::Changed);
        assert!(!pending.is_empty());
        pending.0.borrow_mut().clear();
        assert!(pending.is_empty());
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
