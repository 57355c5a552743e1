//! The one thread that syncs, looks for space when there was none, and calls the watchers. Knows nothing of batches.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::core::Core;
use super::progress::{Phase, Round};
use crate::failure::{Failure, Operation};
use crate::files::marks::MarkError;
use crate::storage::Storage;

/// How often space is looked for when there was none.
const RESERVE_EVERY: Duration = Duration::from_millis(100);

enum Task {
    Sync(Round),
    /// There was no space to be had: is there now?
    Reserve,
    Notify,
}

pub(super) fn run(core: &Core) {
    let mut reserve_at = None;
    while let Some(task) = next_task(core, &mut reserve_at) {
        match task {
            Task::Sync(round) => match sync(&*core.storage, &round) {
                Ok(()) => match mark(core, &round) {
                    Ok(()) => finish(core, &round),
                    Err(fenced) => {
                        core.fail(None, fenced);
                    }
                },
                Err(failure) => {
                    core.fail(Some(round.restarts), failure);
                }
            },
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

/// Waits for something to do; `None` when it is time to stop. `reserve_at` is when space is looked for next.
fn next_task(core: &Core, reserve_at: &mut Option<Instant>) -> Option<Task> {
    let mut progress = core.progress.lock();
    loop {
        if progress.notifies {
            progress.notifies = false;
            return Some(Task::Notify);
        }
        if progress.stop {
            return None;
        }
        let now = Instant::now();
        match core.has_room() || matches!(progress.phase, Phase::Failed(_)) {
            true => *reserve_at = None,
            false => *reserve_at = reserve_at.or(Some(now + RESERVE_EVERY)),
        }
        // First, because it is rare, while there may always be something to sync.
        if reserve_at.is_some_and(|at| at <= now) {
            *reserve_at = None;
            return Some(Task::Reserve);
        }
        let due_at = progress.due_at(now);
        if due_at.is_some_and(|at| at <= now) {
            return Some(Task::Sync(progress.begin_round()));
        }
        match due_at.into_iter().chain(*reserve_at).min() {
            Some(at) => {
                core.wake.wait_until(&mut progress, at);
            }
            None => core.wake.wait(&mut progress),
        }
    }
}

/// IMPORTANT: old files first, then the directory, then the current file. Only so is the log without a gap up to
/// the end of each file whose sync has returned.
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

/// Leaves a mark of what is durable now, before any reply depends on it. Fails if another writer has left one of a later
/// epoch: then nothing that this one has written since counts.
///
/// If the log has failed or been restarted during the round, the mark is still true. If the mark cannot be written,
/// nothing is lost but the proof of what this round has synced: the mark before it stays, and the next round tries
/// again.
fn mark(core: &Core, round: &Round) -> Result<(), Failure> {
    let mut marks = core.marks.lock();
    let marked = match round.is_sound {
        true => marks.record(round.upto, round.current.first),
        false => marks.fenced_by().map_or(Ok(()), |by| Err(MarkError::Fenced { by })),
    };
    if let Err(MarkError::Fenced { by }) = marked {
        return Err(Failure::Fenced { own: core.epoch, by });
    }
    // Not in every round: what survives the process is enough to notice what happens while the machine runs.
    if round.is_sound && round.is_directory_dirty && marked.is_ok() {
        let _ = marks.sync();
    }
    Ok(())
}

fn finish(core: &Core, round: &Round) {
    let mut progress = core.progress.lock();
    // A restart dropped what this round has synced; after a failure elsewhere nothing counts any more.
    if round.restarts != progress.restarts || matches!(progress.phase, Phase::Failed(_)) {
        return;
    }
    progress.end_round(round);
    if matches!(progress.phase, Phase::Sound) {
        core.durable_mark.store(round.upto.0, Ordering::Release);
        progress.notifies = true;
    }
    core.advanced.notify_all();
}
