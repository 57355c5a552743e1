//! The one thread that syncs, and tells whoever watches. Knows nothing of batches.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Core;
use super::progress::{Phase, Round};
use crate::failure::{Failure, Operation};
use crate::storage::Storage;

pub(super) fn run(core: &Core) {
    loop {
        let round = {
            let mut progress = core.progress.lock();
            loop {
                if progress.is_news {
                    progress.is_news = false;
                    break None;
                }
                if progress.stop {
                    return;
                }
                let now = Instant::now();
                match progress.due_at(now) {
                    Some(due) if due <= now => break Some(progress.begin_round()),
                    Some(due) => {
                        core.wake.wait_until(&mut progress, due);
                    }
                    None => core.wake.wait(&mut progress),
                }
            }
        };
        if let Some(round) = round {
            match sync(&*core.storage, &round) {
                Ok(()) => {
                    mark(core, &round);
                    finish(core, &round);
                }
                Err(failure) => {
                    core.fail(Some(round.epoch), failure);
                }
            }
            continue;
        }
        let watchers = core.watchers.lock().clone();
        watchers.iter().for_each(|notify| notify());
    }
}

/// IMPORTANT: old files first, then the directory, then the current file. Only so is the journal without a gap up to
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

/// Leaves a mark of what is durable now, before any client hears of it.
///
/// Should the journal have failed or been restarted during the round, the mark is still true. Should the mark itself
/// fail, nothing is lost but the proof of what this round has synced: the mark before it stays, and the next round
/// tries again.
fn mark(core: &Core, round: &Round) {
    if !round.is_sound {
        return;
    }
    let mut marks = core.marks.lock();
    let marked = marks.record(round.upto, round.current.first);
    // Not in every round: what survives the process is enough to notice what happens while the machine runs.
    if round.is_directory_dirty && marked.is_ok() {
        let _ = marks.sync();
    }
}

fn finish(core: &Core, round: &Round) {
    let mut progress = core.progress.lock();
    // A restart gave up what this round has synced; a failure elsewhere means that nothing counts any more.
    if round.epoch != progress.epoch || matches!(progress.phase, Phase::Failed(_)) {
        return;
    }
    progress.end_round(round);
    if matches!(progress.phase, Phase::Sound) {
        core.durable_mark.store(round.upto.0, Ordering::Release);
        progress.is_news = true;
    }
    core.advanced.notify_all();
}
