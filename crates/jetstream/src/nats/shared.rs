//! What everything of NATS in this process uses. Does nothing by itself.

use super::alarm::Alarm;
use super::url::NatsUrl;
use crate::stream::Tick;
use async_nats::{Client, jetstream};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Instant;

/// The connection, and what is called as time passes.
pub(super) struct Connection {
    pub(super) url: NatsUrl,
    pub(super) subject: async_nats::Subject,
    pub(super) client: Client,
    pub(super) jetstream: jetstream::Context,
    pub(super) runtime: tokio::runtime::Handle,
    pub(super) ticking: Mutex<Vec<Weak<dyn Tick>>>,
    /// Since when NATS says that it does not know the stream.
    pub(super) unknown_since: Mutex<Option<Instant>>,
    pub(super) alarm: Arc<Alarm>,
}
