//! Client-side caching: sends invalidation messages to clients that have read a key. Which clients track is kept in
//! `clients::tracking`.

use super::client::Client;
use super::engine::Engine;
use crate::clients::ClientHandle;
use crate::clients::tracking::{Mode, Tracker};
use crate::settings::ClientClass;
use resp::{Protocol, Reply};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What an invalidation message covers.
enum Stale<'a> {
    Keys(&'a [&'a [u8]]),
    Everything,
}

/// Turns tracking off for a client.
pub fn stop_tracking(engine: &Engine, client: &mut Client) {
    if let Some(tracker) = client.tracker.take() {
        client.caching = false;
        engine.tracking.stop(&tracker);
    }
}

/// Sends an invalidation for a changed key to the clients that have read it. `by` is the client whose command is
/// running, or 0.
pub fn invalidate_for_readers(engine: &Engine, name: &[u8], readers: &[u64], by: u64) {
    for id in readers {
        // Skip clients that no longer track, or track in broadcast mode now.
        let Some(tracker) = engine.tracking.of(*id).filter(|tracker| tracker.mode != Mode::Broadcast) else {
            continue;
        };
        if !(tracker.no_loop && *id == by) {
            send_invalidation(engine, &tracker, &Stale::Keys(&[name]));
        }
    }
}

/// Sends a tracking client an invalidation for keys that it has just read in its own interactive transaction: the
/// values it read are not committed yet, and may never be.
pub fn invalidate_own_reads<'n>(engine: &Engine, client: &Client, names: impl Iterator<Item = &'n [u8]>) {
    if let Some(tracker) = &client.tracker {
        send_invalidation(engine, tracker, &Stale::Keys(&names.collect::<Vec<_>>()));
    }
}

/// Sends "all keys are invalid" to every tracking client.
pub fn invalidate_all(engine: &Engine) {
    let trackers: Vec<Arc<Tracker>> = engine.tracking.clients.read().values().cloned().collect();
    for tracker in trackers {
        send_invalidation(engine, &tracker, &Stale::Everything);
    }
}

/// Sends invalidations to clients in broadcast mode, one message for each prefix. The flag of each key says whether the
/// client `by` changed it.
pub fn invalidate_prefixes(engine: &Engine, changed: &BTreeMap<&[u8], bool>, by: u64) {
    for (prefix, ids) in &engine.tracking.prefixes.read().clients {
        let below = || changed.iter().filter(|(name, _)| name.starts_with(prefix));
        let all: Vec<&[u8]> = below().map(|(name, _)| *name).collect();
        for tracker in ids.iter().filter_map(|id| engine.tracking.of(*id)) {
            let others: Vec<&[u8]>;
            let keys = match tracker.no_loop && tracker.handle.id == by {
                true => {
                    others = below().filter(|(_, own)| !**own).map(|(name, _)| *name).collect();
                    &others
                }
                false => &all,
            };
            if !keys.is_empty() {
                send_invalidation(engine, &tracker, &Stale::Keys(keys));
            }
        }
    }
}

/// Sends an invalidation to a tracking client, or to its REDIRECT target: a push in RESP3; in RESP2 a message on a
/// channel, only to a target that has subscribed.
fn send_invalidation(engine: &Engine, tracker: &Tracker, stale: &Stale<'_>) {
    let target = match tracker.redirect {
        None => tracker.handle.clone(),
        Some(id) => match engine.clients.get(id) {
            Some(target) => target,
            None => return send_broken_redirect(engine, tracker, id),
        },
    };
    let mut bytes = Vec::new();
    let protocol = target.protocol();
    let mut message = Reply::new(&mut bytes, protocol);
    if message.protocol() == Protocol::Resp3 {
        message.push(2);
        message.bulk(b"invalidate");
    } else if tracker.redirect.is_some() && target.is_subscriber() {
        message.push(3);
        message.bulk(b"message");
        message.bulk(b"__redis__:invalidate");
    } else {
        return;
    }
    match stale {
        Stale::Keys(keys) => {
            message.array(keys.len());
            keys.iter().for_each(|key| message.bulk(key));
        }
        // As in Redis: the null is in the protocol of the tracking client, even when it redirects to another.
        Stale::Everything => {
            message.set_protocol(tracker.handle.protocol());
            message.null();
        }
    }
    send_push(engine, tracker, &target, &bytes, protocol);
}

fn send_broken_redirect(engine: &Engine, tracker: &Tracker, id: u64) {
    tracker.redirect_broken.store(true, Relaxed);
    if tracker.handle.protocol() == Protocol::Resp3 {
        let mut bytes = Vec::new();
        let mut message = Reply::new(&mut bytes, Protocol::Resp3);
        message.push(2);
        message.bulk(b"tracking-redir-broken");
        message.integer(id as i64);
        send_push(engine, tracker, &tracker.handle, &bytes, Protocol::Resp3);
    }
}

/// Sends a message that was encoded for a protocol, if the target still speaks it and would still be sent one.
fn send_push(engine: &Engine, tracker: &Tracker, target: &ClientHandle, bytes: &[u8], protocol: Protocol) {
    let class = if target.is_subscriber() { ClientClass::Pubsub } else { ClientClass::Normal };
    // An invalidation need not wait for the journal: the next read of the key does.
    let bytes_max = engine.settings.client_output_buffer_limit(class).hard_bytes;
    target.send_if(0, bytes, bytes_max, |target| {
        let hears = protocol == Protocol::Resp3 || target.is_subscriber();
        !tracker.is_stopped() && target.protocol() == protocol && hears
    });
}
