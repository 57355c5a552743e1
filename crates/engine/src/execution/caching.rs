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

impl Engine {
    /// Turns tracking off for a client.
    pub(crate) fn stop_tracking(&self, client: &mut Client) {
        if let Some(tracker) = client.tracker.take() {
            client.caching = false;
            self.tracking.stop(&tracker);
        }
    }

    /// Sends an invalidation for a changed key to the clients that have read it. `by` is the client whose command is
    /// running, or 0.
    pub(crate) fn invalidate_for_readers(&self, name: &[u8], readers: &[u64], by: u64) {
        for id in readers {
            // Skip clients that no longer track, or track in broadcast mode now.
            let Some(tracker) = self.tracking.of(*id).filter(|tracker| tracker.mode != Mode::Broadcast) else {
                continue;
            };
            if !(tracker.no_loop && *id == by) {
                self.send_invalidation(&tracker, &Stale::Keys(&[name]));
            }
        }
    }

    /// Sends a tracking client an invalidation for keys that it has just read from its own interactive transaction: what
    /// it has read is no value of the keys yet, and perhaps never will be.
    pub(crate) fn invalidate_own_reads<'n>(&self, client: &Client, names: impl Iterator<Item = &'n [u8]>) {
        if let Some(tracker) = &client.tracker {
            self.send_invalidation(tracker, &Stale::Keys(&names.collect::<Vec<_>>()));
        }
    }

    /// Sends "all keys are invalid" to every tracking client.
    pub(crate) fn invalidate_all(&self) {
        let trackers: Vec<Arc<Tracker>> = self.tracking.clients.read().values().cloned().collect();
        for tracker in trackers {
            self.send_invalidation(&tracker, &Stale::Everything);
        }
    }

    /// Sends invalidations to clients in broadcast mode, one message for each prefix. Each key comes with whether the
    /// client `by` changed it.
    pub(crate) fn invalidate_prefixes(&self, changed: &BTreeMap<&[u8], bool>, by: u64) {
        for (prefix, ids) in &self.tracking.prefixes.read().clients {
            let below = || changed.iter().filter(|(name, _)| name.starts_with(prefix));
            let all: Vec<&[u8]> = below().map(|(name, _)| *name).collect();
            for tracker in ids.iter().filter_map(|id| self.tracking.of(*id)) {
                let others: Vec<&[u8]>;
                let keys = match tracker.no_loop && tracker.handle.id == by {
                    true => {
                        others = below().filter(|(_, own)| !**own).map(|(name, _)| *name).collect();
                        &others
                    }
                    false => &all,
                };
                if !keys.is_empty() {
                    self.send_invalidation(&tracker, &Stale::Keys(keys));
                }
            }
        }
    }

    /// Sends an invalidation to a tracking client, or to its REDIRECT target: a push in RESP3; in RESP2 a message on a
    /// channel, only to a target that has subscribed.
    fn send_invalidation(&self, tracker: &Tracker, stale: &Stale<'_>) {
        let target = match tracker.redirect {
            None => tracker.handle.clone(),
            Some(id) => match self.clients.get(id) {
                Some(target) => target,
                None => return self.send_broken_redirect(tracker, id),
            },
        };
        let mut bytes = Vec::new();
        let mut message = Reply::new(&mut bytes, protocol(&target));
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
                message.set_protocol(protocol(&tracker.handle));
                message.null();
            }
        }
        self.send_push(&target, &bytes);
    }

    fn send_broken_redirect(&self, tracker: &Tracker, id: u64) {
        tracker.redirect_broken.store(true, Relaxed);
        if protocol(&tracker.handle) == Protocol::Resp3 {
            let mut bytes = Vec::new();
            let mut message = Reply::new(&mut bytes, Protocol::Resp3);
            message.push(2);
            message.bulk(b"tracking-redir-broken");
            message.integer(id as i64);
            self.send_push(&tracker.handle, &bytes);
        }
    }

    fn send_push(&self, target: &ClientHandle, bytes: &[u8]) {
        let class = if target.is_subscriber() { ClientClass::Pubsub } else { ClientClass::Normal };
        // An invalidation need not wait for the journal: the next read of the key does.
        target.send(bytes, self.settings.client_output_buffer_limit(class).hard_bytes);
    }
}

fn protocol(handle: &ClientHandle) -> Protocol {
    if handle.resp.load(Relaxed) == 3 { Protocol::Resp3 } else { Protocol::Resp2 }
}
