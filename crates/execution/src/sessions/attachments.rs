//! Clients that are attached to sessions: the delivery of requests to them, and the end of an attachment. Refuses to
//! know what sessions hold.

use crate::client::Client;
use crate::clients::{ClientHandle, NameKind};
use crate::engine::Engine;
use crate::settings::ClientClass;
use crate::worker::Worker;
use keyspace::types::session::Session;
use keyspace::{DATABASES, Key, Locked};
use resp::{Protocol, Reply};

/// A client remembers at most about so many removed sessions besides the existing ones.
const ENDED_MAX: usize = 64;

/// Sends a request of a session to the attached client, once the batch `sequence` is persisted.
#[cold]
pub fn deliver_request(engine: &Engine, client: u64, session: &[u8], id: u64, payload: &[u8], sequence: u64) {
    let Some(handle) = engine.clients.get(client).filter(|handle| speaks_resp3(handle)) else { return };
    let mut frame = Vec::with_capacity(payload.len() + session.len() + 64);
    let mut message = Reply::new(&mut frame, Protocol::Resp3);
    message.push(4);
    message.bulk(b"session");
    message.bulk(session);
    message.integer(id as i64);
    message.bulk(payload);
    let class = if handle.is_subscriber() { ClientClass::Pubsub } else { ClientClass::Normal };
    let bytes_max = engine.settings.client_output_buffer_limit(class).hard_bytes;
    handle.send_if(sequence, &frame, bytes_max, speaks_resp3);
}

/// The client to which a session's requests are sent, if it is still connected.
pub fn attached_client(engine: &Engine, session: &Session) -> Option<u64> {
    let client = session.attached();
    (client != 0 && engine.clients.get(client).is_some_and(|handle| speaks_resp3(&handle))).then_some(client)
}

/// Detaches a client from all sessions. IMPORTANT: the caller holds no locks. A session whose lock a long script holds
/// keeps the client's number; the client is sent nothing in RESP2.
pub fn detach_all(engine: &Engine, client: &mut Client) {
    let Some(attached) = client.attached.take() else { return };
    for (_, name) in attached.names {
        client.handle.remove_names(NameKind::Attachment.bytes(name.len()));
        let key = Key::new(&name);
        let Some(locked) = engine.keyspace.lock_key_unless_busy(key) else { continue };
        attached_to(client.id(), &locked, key).for_each(|(_, session)| session.detach());
    }
}

/// True when a client is attached to an existing session. In a transaction, whose locks are held, a removed session
/// counts as well.
pub fn is_attached(engine: &Engine, worker: &Worker, client: &mut Client) -> bool {
    if !worker.batch.is_atomic {
        forget_ended(engine, client, worker.now_ms);
    }
    client.attached.is_some()
}

/// Drops removed sessions from a client's list if it has doubled since the last time. IMPORTANT: the caller holds no
/// locks.
pub fn forget_ended_if_many(engine: &Engine, client: &mut Client, now_ms: u64) {
    if client.attached.as_ref().is_some_and(|attached| attached.names.len() >= 2 * attached.checked + ENDED_MAX) {
        forget_ended(engine, client, now_ms);
    }
}

/// Drops removed sessions from a client's list, and finds those that SWAPDB has moved.
fn forget_ended(engine: &Engine, client: &mut Client, now_ms: u64) {
    let Some(mut attached) = client.attached.take() else { return };
    let mut before = std::mem::take(&mut attached.names);
    while let Some((db, name)) = before.pop_first() {
        let key = Key::new(&name);
        let Some(locked) = engine.keyspace.lock_key_unless_busy(key) else {
            attached.names.insert((db, name));
            continue;
        };
        client.handle.remove_names(NameKind::Attachment.bytes(name.len()));
        for (db, _) in attached_to(client.id(), &locked, key).filter(|(_, session)| !session.is_expired(now_ms)) {
            if attached.names.insert((db, name.clone())) {
                client.handle.add_name(NameKind::Attachment.bytes(name.len()));
            }
        }
    }
    attached.checked = attached.names.len();
    client.attached = Some(attached).filter(|attached| !attached.names.is_empty());
}

/// The sessions of that name to which a client is attached, with their databases.
fn attached_to<'a>(client: u64, locked: &'a Locked<'_>, key: Key<'a>) -> impl Iterator<Item = (usize, &'a Session)> {
    (0..DATABASES).filter_map(move |db| {
        let within = locked.db(db, key);
        let session = within.typed::<&Session>(within.entry(key)?, 0)?;
        (session.attached() == client).then_some((db, session))
    })
}

fn speaks_resp3(handle: &ClientHandle) -> bool {
    handle.protocol() == Protocol::Resp3
}
