//! RUN.SNAPSHOT and RUN.PROJECT: the projection of a run's events, as stored at every append, and replayed. A replay
//! works in slices, and so does the reply for a run with many steps.

use crate::shared::options::{number, once, unknown_option};
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::CommandResult;
use execution::slices::TimeSlice;
use keyspace::Key;
use keyspace::types::run::{Replay, Run, SnapshotRef, StepRef};
use resp::{Protocol, Reply};

/// A stored snapshot with more steps than this is copied, and the copy is sent in slices: another client may change the
/// stored one meanwhile.
const STEPS_AT_ONCE: usize = 1000;
/// Events replayed, or steps replied, between two checks of the clock.
const EVENTS_PER_LOOK: usize = 256;
const STEPS_PER_LOOK: usize = 64;

pub(super) fn snapshot(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let run = cx.keys.typed::<&Run>(key)?;
    let is_long = run.is_some_and(|run| run.snapshot().step_count() > STEPS_AT_ONCE) && cx.begin_slice().is_some();
    if cx.client.unfinished.is_some() || is_long {
        return reply_in_slices(cx, key, |run| (run.kept(), run.len()));
    }
    cx.keys.looked_up(key, run.is_some());
    match run {
        Some(run) => reply_whole(&mut cx.reply, key.name, &run.snapshot()),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn project(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut upto = None;
    while let Some(word) = cx.args.try_next() {
        if !is_word(word, "UPTO") {
            return Err(unknown_option(&cx.args));
        }
        once(&mut upto, number(&mut cx.args, "the runSeq behind UPTO", 0, i64::MAX)? as u64, "UPTO")?;
    }
    let upto = upto.unwrap_or(u64::MAX);
    reply_in_slices(cx, key, |run| (Replay::default(), upto.min(run.len())))
}

/// The progress of a replay in slices.
struct Progress {
    /// Identifies the run that is replayed.
    birth: u64,
    upto: u64,
    replay: Replay,
    /// The reply, once all events are replayed, and how many steps are in it.
    body: Vec<u8>,
    steps: usize,
}

/// Replies with the result of a replay, which starts from `begin`.
fn reply_in_slices(cx: &mut ReadCx<'_>, key: Key<'_>, begin: impl Fn(&Run) -> (Replay, u64)) -> CommandResult {
    let resumed = cx.resume::<Progress>()?;
    let run = cx.keys.typed::<&Run>(key)?;
    cx.keys.looked_up(key, run.is_some());
    let Some(run) = run else {
        cx.reply.null();
        return Ok(());
    };
    let mut progress = match resumed {
        Some(progress) if progress.birth == run.birth() => progress,
        // The run was replaced since.
        _ => {
            let (replay, upto) = begin(run);
            Progress { birth: run.birth(), upto, replay, body: Vec::new(), steps: 0 }
        }
    };
    let slice = cx.begin_slice();
    match progress.go_on(run, key.name, slice, cx.reply.protocol(), cx.client.output_bytes_max) {
        true => {
            cx.reply.take_over(progress.body);
            if let Some(slice) = slice {
                slice.free(progress.replay);
            }
        }
        false => cx.leave(progress),
    }
    Ok(())
}

impl Progress {
    /// Replays events, then writes the reply. False when the time is over before that.
    fn go_on(
        &mut self,
        run: &Run,
        name: &[u8],
        slice: Option<TimeSlice<'_>>,
        protocol: Protocol,
        bytes_max: usize,
    ) -> bool {
        let is_over = || slice.is_some_and(|slice| slice.is_over());
        while self.replay.last() < self.upto {
            run.replay(&mut self.replay, self.upto, EVENTS_PER_LOOK);
            if is_over() {
                return false;
            }
        }
        let snapshot = run.replayed(&self.replay);
        let mut writer = Reply::new(&mut self.body, protocol).limited(bytes_max);
        if writer.position() == 0 {
            reply_head(&mut writer, name, &snapshot);
        }
        for step in snapshot.steps_from(self.steps) {
            reply_step(&mut writer, &step);
            self.steps += 1;
            if self.steps.is_multiple_of(STEPS_PER_LOOK) && is_over() {
                return false;
            }
        }
        reply_tail(&mut writer, &snapshot);
        true
    }
}

fn reply_whole(reply: &mut Reply<'_>, name: &[u8], snapshot: &SnapshotRef<'_>) {
    reply_head(reply, name, snapshot);
    snapshot.steps_from(0).for_each(|step| reply_step(reply, &step));
    reply_tail(reply, snapshot);
}

/// Writes the part of a snapshot before its steps.
fn reply_head(reply: &mut Reply<'_>, name: &[u8], snapshot: &SnapshotRef<'_>) {
    reply.map(7);
    reply.bulk(b"runId");
    reply.bulk(name);
    reply.bulk(b"status");
    reply.bulk(snapshot.status().name().as_bytes());
    reply.bulk(b"lastEventSeq");
    reply.integer(snapshot.last() as i64);
    reply.bulk(b"startedAt");
    reply_time(reply, snapshot.started_ms());
    reply.bulk(b"updatedAt");
    reply_time(reply, snapshot.updated_ms());
    reply.bulk(b"steps");
    reply.map(snapshot.step_count());
}

/// Writes the part of a snapshot after its steps.
fn reply_tail(reply: &mut Reply<'_>, snapshot: &SnapshotRef<'_>) {
    reply.bulk(b"data");
    match snapshot.data() {
        Some(data) => reply.bulk(data),
        None => reply.null(),
    }
}

fn reply_step(reply: &mut Reply<'_>, step: &StepRef<'_>) {
    reply.bulk(step.name);
    reply.map(5);
    reply.bulk(b"status");
    reply.bulk(step.status.name().as_bytes());
    reply.bulk(b"attempts");
    reply.integer(step.attempts.into());
    reply.bulk(b"startedAt");
    reply_time(reply, step.started_ms);
    reply.bulk(b"updatedAt");
    reply.integer(step.updated_ms as i64);
    reply.bulk(b"data");
    reply.bulk(step.data);
}

fn reply_time(reply: &mut Reply<'_>, time_ms: Option<u64>) {
    match time_ms {
        Some(time_ms) => reply.integer(time_ms as i64),
        None => reply.null(),
    }
}
