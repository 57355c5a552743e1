//! The NATS servers that keep a stream, as NATS tells of them. Knows nothing of what is in it.

use async_nats::jetstream::stream::{Info, PeerInfo};
use std::time::Duration;

/// A server that the leader has not heard for so long is offline, whether NATS says so yet or not. It says so after a
/// minute or more if the server was killed; servers speak every second.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// A NATS server that keeps the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaStatus {
    pub server: String,
    pub state: ReplicaState,
    /// Messages that it has not got yet.
    pub lag: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    Leader,
    Current,
    Behind,
    Offline,
}

impl ReplicaState {
    pub fn name(self) -> &'static str {
        match self {
            ReplicaState::Leader => "leader",
            ReplicaState::Current => "current",
            ReplicaState::Behind => "behind",
            ReplicaState::Offline => "offline",
        }
    }
}

/// The servers that keep a stream; `server` is the one that has told of it, which is not always one of them.
pub(super) fn replicas_of(info: &Info, server: &str) -> Vec<ReplicaStatus> {
    let leader = |name: &str| ReplicaStatus { server: name.to_owned(), state: ReplicaState::Leader, lag: 0 };
    let Some(cluster) = &info.cluster else { return vec![leader(server)] };
    let named = cluster.leader.as_deref().filter(|name| !name.is_empty());
    let others = cluster.replicas.iter().map(|peer| ReplicaStatus {
        server: peer.name.clone(),
        state: state_of(peer),
        lag: peer.lag.unwrap_or(0),
    });
    named.map(leader).into_iter().chain(others).collect()
}

fn state_of(peer: &PeerInfo) -> ReplicaState {
    match peer.current {
        _ if peer.offline => ReplicaState::Offline,
        true => ReplicaState::Current,
        // Zero: this leader has never heard it.
        false if peer.active.is_zero() || peer.active > SILENT_AFTER => ReplicaState::Offline,
        false => ReplicaState::Behind,
    }
}
