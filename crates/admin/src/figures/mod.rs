//! All metrics. Reads the counters that INFO reads, and locks one shard at a time for a moment, as INFO does.

mod groups;
mod keys;
mod own;
mod redis;

use crate::exposition::Exposition;
use engine::Engine;
use engine::clients::ClientHandle;
use groups::GroupsLook;
use keys::Keys;
use std::sync::Arc;

/// Collects metrics.
pub(crate) struct Collector {
    engine: Arc<Engine>,
    /// The last look at the keys.
    keys: Keys,
    groups: GroupsLook,
}

/// What several families are made of, read once.
struct Sources<'a> {
    engine: &'a Engine,
    keys: &'a Keys,
    groups: &'a GroupsLook,
    clients: Vec<Arc<ClientHandle>>,
    persistence: engine::persistence::Report,
    replication: engine::persistence::Replication,
    cluster: Option<engine::persistence::ClusterReport>,
}

impl Collector {
    pub(crate) fn new(engine: Arc<Engine>) -> Collector {
        let keys = Keys::new(engine.keyspace.shard_count());
        Collector { engine, keys, groups: GroupsLook::default() }
    }

    pub(crate) fn collect(&mut self, text: &mut Exposition) {
        let engine = &*self.engine;
        self.keys.look(engine);
        self.groups.look(engine);
        let sources = Sources {
            engine,
            keys: &self.keys,
            groups: &self.groups,
            clients: engine.clients.all(),
            persistence: engine.persistence.report(),
            replication: engine.persistence.replication(),
            cluster: engine.persistence.cluster(),
        };
        redis::write(text, &sources);
        own::write(text, &sources);
    }
}
