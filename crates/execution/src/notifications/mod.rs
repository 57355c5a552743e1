//! Notifications about keys: collected while a command runs, published at its end under its locks, so that subscribers
//! see the changes of a key in order. Knows channels and event names; refuses to know subscribers.

pub mod pending;

pub use pending::PendingNotifications;

use crate::caching;
use crate::clients::tracking::Reason;
use crate::engine::Engine;
use crate::sessions;
use crate::settings::ClientClass;
use crate::settings::events::Events;
use pending::{Notification, Pending, What};
use std::collections::BTreeMap;
use std::io::Write;

/// Publishes the notifications of a command of the client `by`, or 0. Events are delivered once the batch `sequence` is
/// persisted. IMPORTANT: call this while the changed shards are locked, or two changes of one key could be published in
/// the wrong order.
#[inline]
pub fn publish(engine: &Engine, pending: &PendingNotifications, sequence: u64, by: u64) {
    if !pending.is_empty() {
        publish_all(engine, &mut pending.0.borrow_mut(), sequence, by);
    }
}

#[inline(never)]
fn publish_all(engine: &Engine, pending: &mut Pending, sequence: u64, by: u64) {
    let channels = engine.settings.notify_keyspace_events();
    let bytes_max = engine.settings.client_output_buffer_limit(ClientClass::Pubsub).hard_bytes;
    let (mut channel, mut name_at) = (Vec::new(), 0);
    let mut changed = BTreeMap::new();
    for Notification { what, name_end } in &pending.notifications {
        let name = &pending.names[name_at..*name_end];
        name_at = *name_end;
        let (event, db) = match what {
            What::Event { event, db } => (event, db),
            What::AllStale => {
                caching::invalidate_all(engine);
                continue;
            }
            What::Request { client, id, payload } => {
                sessions::attachments::deliver_request(engine, *client, name, *id, payload, sequence);
                continue;
            }
            What::Stale { readers, reason } => {
                caching::invalidate_for_readers(engine, name, readers, by);
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
            engine.pubsub.publish(&channel, event.as_bytes(), bytes_max, sequence);
        }
        if channels.contains(Events::KEYEVENT) {
            channel.clear();
            let _ = write!(channel, "__keyevent@{db}__:{event}");
            engine.pubsub.publish(&channel, name, bytes_max, sequence);
        }
    }
    if !changed.is_empty() && engine.tracking.has_prefixes() {
        caching::invalidate_prefixes(engine, &changed, by);
    }
    pending.clear();
}
