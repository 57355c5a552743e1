//! The thread that syncs, retries reserving space, and calls the watchers. Knows nothing of batches.

use std::time::{Duration, Instant};

use super::core::Core;
use super::sync_state::{Phase, Round};
use super::writer::{OpenSegment, Preparation};
use crate::failure::{Failure, Operation};
use crate::files::marks::MarkError;
use crate::storage::Storage;

/// How often reserving space is retried.
const RESERVE_EVERY: Duration = Duration::from_millis(100);

enum Task {
    Sync(Round),
    /// Free the space that is reserved behind the data of segments that have ended, and prepare the next segment.
    Trim(Vec<OpenSegment>),
    /// Retry reserving space.
    Reserve,
    Notify,
}

pub(super) fn run(core: &Core) {
    let mut reserve_at = None;
    while let Some(task) = next_task(core, &mut reserve_at) {
        match task {
            Task::Sync(round) => match timed_sync(core, &round) {
                // IMPORTANT: the fence is checked after the sync, and before anything is reported durable.
                Ok(()) => match core.check_written().and_then(|()| mark(core, &round)) {
                    Ok(()) => finish(core, &round),
                    Err(fenced) => {
                        core.fail(None, fenced);
                    }
                },
                Err(failure) => {
                    core.fail(Some(round.restarts), failure);
                }
            },
            Task::Trim(ended) => {
                for segment in ended.into_iter().filter(|_| core.check_fence().is_ok()) {
                    // If that fails, the space is lost until the segment is removed; the data is not affected.
                    let _ = segment.file.set_len(segment.data_end);
                }
                prepare_next(core);
            }
            Task::Reserve => {
                let mut writer = core.writer.lock();
                let has_room = writer.extend_reserve();
                core.set_room(has_room);
            }
            Task::Notify => {
                let watchers = core.watchers.lock().clone();
                watchers.iter().for_each(|notify| notify());
            }
        }
    }
}

/// Makes the file of the next segment. IMPORTANT: not under the writer's lock, for which everybody waits.
fn prepare_next(core: &Core) {
    let preparation = core.writer.lock().preparation();
    if let Some(prepared) = preparation.and_then(Preparation::make) {
        core.writer.lock().set_prepared(prepared);
    }
}

/// Waits for the next task; `None` when the thread must stop. `reserve_at` is the time of the next retry.
fn next_task(core: &Core, reserve_at: &mut Option<Instant>) -> Option<Task> {
    let mut sync = core.sync.lock();
    loop {
        if sync.notifies {
            sync.notifies = false;
            return Some(Task::Notify);
        }
        if !sync.untrimmed.is_empty() {
            return Some(Task::Trim(std::mem::take(&mut sync.untrimmed)));
        }
        if sync.stop {
            return None;
        }
        let now = Instant::now();
        match core.has_room() || matches!(sync.phase, Phase::Failed(_)) {
            true => *reserve_at = None,
            false => *reserve_at = reserve_at.or(Some(now + RESERVE_EVERY)),
        }
        // First, because it is rare, while there may always be something to sync.
        if reserve_at.is_some_and(|at| at <= now) {
            *reserve_at = None;
            return Some(Task::Reserve);
        }
        let due_at = sync.due_at(now);
        if due_at.is_some_and(|at| at <= now) {
            return Some(Task::Sync(sync.begin_round()));
        }
        match due_at.into_iter().chain(*reserve_at).min() {
            Some(at) => {
                core.wake.wait_until(&mut sync, at);
            }
            None => core.wake.wait(&mut sync),
        }
    }
}

/// Syncs the files of a round, and counts how long that took if it succeeds.
fn timed_sync(core: &Core, round: &Round) -> Result<(), Failure> {
    let began = Instant::now();
    sync(&*core.storage, round)?;
    core.sync_times.add(began.elapsed());
    Ok(())
}

/// Syncs the files of a round. IMPORTANT: old files first, then the directory, then the current file. Only this order
/// leaves no gap before the end of each synced file.
fn sync(storage: &dyn Storage, round: &Round) -> Result<(), Failure> {
    for segment in &round.retired {
        let failed = |operation| move |error| Failure::io(operation, &segment.name, &error);
        if segment.file.len().map_err(failed(Operation::Read))? > segment.data_end {
            segment.file.set_len(segment.data_end).map_err(failed(Operation::Truncate))?;
        }
        segment.file.sync().map_err(failed(Operation::Sync))?;
    }
    let name = &round.current.name;
    if round.is_directory_dirty {
        storage.sync_directory().map_err(|error| Failure::io(Operation::SyncDirectory, name, &error))?;
    }
    round.current.file.sync().map_err(|error| Failure::io(Operation::Sync, name, &error))
}

/// Records in `MARKS` what is durable now, before any reply depends on it. Fails if another writer has recorded a later
/// epoch: then nothing that this one has written since counts.
///
/// If the log has failed or been restarted during the round, the mark is still true. If it cannot be written, only the
/// proof of this round's sync is lost: the previous mark stays, and the next round tries again.
fn mark(core: &Core, round: &Round) -> Result<(), Failure> {
    let mut marks = core.marks.lock();
    let marked = match round.is_sound {
        true => marks.record(round.upto, round.current.first),
        false => marks.fenced_by().map_or(Ok(()), |by| Err(MarkError::Fenced { by })),
    };
    if let Err(MarkError::Fenced { by }) = marked {
        return Err(Failure::Fenced { own: core.identity.epoch, by });
    }
    // Not in every round: surviving the process is enough to detect losses while the machine runs.
    if round.is_sound && round.is_directory_dirty && marked.is_ok() {
        let _ = marks.sync();
    }
    Ok(())
}

fn finish(core: &Core, round: &Round) {
    let mut sync = core.sync.lock();
    // A restart has dropped what this round synced; after a failure elsewhere nothing counts any more.
    if round.restarts != sync.restarts || matches!(sync.phase, Phase::Failed(_)) {
        return;
    }
    sync.end_round(round);
    if matches!(sync.phase, Phase::Sound) {
        core.watermarks.set_durable(round.upto);
        sync.notifies = true;
    }
    core.advanced.notify_all();
}
