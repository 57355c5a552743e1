//! What everything of NATS in this process uses. Does nothing by itself.

use super::alarm::Alarm;
use super::url::NatsUrl;
use crate::stream::Tick;
use async_nats::{Client, jetstream};
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

/// The id of the log, among the properties of the stream, and as an object of the bucket.
pub(super) const LOG_ID: &str = "holdfast-log";

/// The connection, and what is called as time passes.
pub(super) struct Connection {
    pub(super) url: NatsUrl,
    /// That of the frames, once the log is known.
    pub(super) subject: OnceLock<async_nats::Subject>,
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) ticking: Mutex<Vec<Weak<dyn Tick>>>,
    pub(super) unknown: Mutex<Option<Unknown>>,
    pub(super) alarm: Arc<Alarm>,
}

impl Connection {
    /// The subject of the frames.
    pub(super) fn subject(&self) -> &async_nats::Subject {
        self.subject.get().expect("the log is open")
    }

    /// True while a NATS server is connected.
    pub(super) fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }
}

/// NATS says that it does not know the stream: since when, and when it last did.
#[derive(Clone, Copy)]
pub(super) struct Unknown {
    pub(super) since: Instant,
    pub(super) last: Instant,
}
