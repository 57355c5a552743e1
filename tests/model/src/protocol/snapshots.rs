//! Snapshots: begun and published in two steps by any server, two kept, the log purged up to the older one. Knows
//! nothing of how they are loaded.

use super::config::{Config, Mutation};
use super::state::*;

/// How many the store keeps.
const KEPT: usize = 2;

impl Config {
    pub(super) fn begin_snapshot(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        (server.snapshot.is_none() && server.role != Role::Candidate && server.epoch > 0).then_some(())?;
        let newest = self.newest_change(server);
        let position = match self.mutation {
            Mutation::SnapshotByFrame => newest,
            Mutation::SnapshotInsideBatch => server.applied,
            // The pieces of an unfinished batch are the last frames, and are read again.
            _ => server.applied - server.unfinished.map_or(0, |unfinished| unfinished.pieces),
        };
        (position > 1 && all.store.iter().all(|kept| kept.position != position)).then_some(())?;
        all.budget.snapshots = all.budget.snapshots.checked_sub(1)?;
        let snapshot = Snapshot { position, newest, epoch: server.epoch, state: server.state };
        server.snapshot = Some((snapshot, all.store.clone()));
        Some(())
    }

    pub(super) fn publish_snapshot(&self, all: &mut State, at: u8) -> Option<()> {
        let server = &mut all.servers[usize::from(at)];
        let (taken, store_at_begin) = server.snapshot.clone()?;
        (taken.newest <= server.applied || self.mutation == Mutation::SnapshotNotAwaited).then_some(())?;
        server.snapshot = None;
        if self.mutation == Mutation::ManifestOverwritten {
            all.store = store_at_begin;
        }
        all.store.push(taken);
        if self.mutation != Mutation::KeepLastPublished {
            all.store.sort_unstable_by_key(|kept| kept.position);
            all.store.dedup_by_key(|kept| kept.position);
        }
        if all.store.len() > KEPT {
            all.store.remove(0);
        }
        if all.store.len() == KEPT {
            let needed = if self.mutation == Mutation::PurgeToNewest { KEPT - 1 } else { 0 };
            server.purge_to = Some(all.store[needed].position);
        }
        Some(())
    }

    pub(super) fn purge(&self, all: &mut State, at: u8) -> Option<()> {
        let purge_to = all.servers[usize::from(at)].purge_to.take()?;
        all.purged = all.purged.max(purge_to);
        Some(())
    }
}
