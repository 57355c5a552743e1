//! Snapshots on demand, and WAITAOF. The store is behind `Persistence`.

use execution::args::is_word;
use execution::context::{After, ServerCx};
use execution::error::{CommandError, CommandResult};
use execution::persistence::{SnapshotBusy, SnapshotReason};
use execution::waiting::{Blocked, Event, WAITAOF_WITHOUT_JOURNAL};
use numbers::parse_i64;

const WAIT_ON_FOLLOWER: &str = "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a \
     replica is configured to be writable (which is not the default) writes to replicas are just local and are not \
     propagated.";
const WAITAOF_ON_FOLLOWER: &str = "ERR WAITAOF cannot be used with replica instances. Please also note that writes to \
     replicas are just local and are not propagated.";
const SAVE_IN_PROGRESS: CommandError = CommandError::fixed("ERR Background save already in progress");

/// SAVE. Unlike in Redis, only the calling client waits.
pub(super) fn save(cx: &mut ServerCx<'_>) -> CommandResult {
    pass_writer(cx)?;
    let number = cx.engine.persistence.begin_snapshot(SnapshotReason::Save).map_err(|_| SAVE_IN_PROGRESS)?;
    cx.after = After::Block(Blocked { until_ms: None, event: Event::Snapshot(number), silent: false });
    Ok(())
}

pub(super) fn bgsave(cx: &mut ServerCx<'_>) -> CommandResult {
    pass_writer(cx)?;
    let may_wait = match cx.args.try_next() {
        None => false,
        Some(word) if is_word(word, "SCHEDULE") && cx.args.is_empty() => true,
        Some(_) => return Err(CommandError::Syntax),
    };
    let in_transaction = cx.worker.batch.is_atomic;
    match cx.engine.persistence.begin_snapshot(SnapshotReason::Save) {
        // The snapshot contains the whole transaction: it waits for the locks until the transaction has ended.
        Ok(_) if in_transaction => cx.reply.simple("Background saving scheduled"),
        Ok(_) => cx.reply.simple("Background saving started"),
        Err(SnapshotBusy(SnapshotReason::Save)) => return Err(SAVE_IN_PROGRESS),
        Err(SnapshotBusy(SnapshotReason::Compaction)) if may_wait || in_transaction => {
            cx.engine.persistence.schedule_snapshot(SnapshotReason::Save);
            cx.reply.simple("Background saving scheduled");
        }
        Err(SnapshotBusy(SnapshotReason::Compaction)) => {
            return Err(CommandError::fixed(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to \
                 schedule a BGSAVE whenever possible.",
            ));
        }
    }
    Ok(())
}

pub(super) fn lastsave(cx: &mut ServerCx<'_>) -> CommandResult {
    cx.reply.integer(cx.engine.persistence.report().last_save_s as i64);
    Ok(())
}

/// Refuses snapshots on a follower: the directory is the writer's.
fn pass_writer(cx: &ServerCx<'_>) -> CommandResult {
    match cx.engine.restrictions.is_following() {
        true => Err(CommandError::fixed("ERR a follower writes no snapshots: BGSAVE on the writer does")),
        false => Ok(()),
    }
}

/// BGREWRITEAOF. Here it takes a snapshot, which replaces the journal before it.
pub(super) fn bgrewriteaof(cx: &mut ServerCx<'_>) -> CommandResult {
    pass_writer(cx)?;
    match cx.engine.persistence.begin_snapshot(SnapshotReason::Compaction) {
        Ok(_) if cx.worker.batch.is_atomic => cx.reply.simple("Background append only file rewriting scheduled"),
        Ok(_) => cx.reply.simple("Background append only file rewriting started"),
        Err(SnapshotBusy(SnapshotReason::Save)) => {
            cx.engine.persistence.schedule_snapshot(SnapshotReason::Compaction);
            cx.reply.simple("Background append only file rewriting scheduled");
        }
        Err(SnapshotBusy(SnapshotReason::Compaction)) => {
            return Err(CommandError::fixed("ERR Background append only file rewriting already in progress"));
        }
    }
    Ok(())
}

pub(super) fn wait(cx: &mut ServerCx<'_>) -> CommandResult {
    let replicas = cx.args.int()?;
    let until_ms = deadline(cx)?;
    if cx.engine.restrictions.is_following() {
        return Err(CommandError::fixed(WAIT_ON_FOLLOWER));
    }
    let count = usize::try_from(replicas).unwrap_or(0);
    // A batch counts for its followers once it is in the file.
    cx.engine.persistence.write();
    let sequence = cx.client.last_batch;
    let replicated = cx.engine.persistence.replicas_at(sequence);
    match replicated >= count {
        true => cx.reply.integer(replicated as i64),
        false => {
            cx.after = After::Block(Blocked { until_ms, event: Event::Replicated { sequence, count }, silent: false })
        }
    }
    Ok(())
}

pub(super) fn waitaof(cx: &mut ServerCx<'_>) -> CommandResult {
    let here = cx.args.int()?;
    if !(0..=1).contains(&here) {
        return Err(CommandError::fixed("ERR value is out of range, value must between 0 and 1"));
    }
    let replicas = parse_i64(cx.args.bytes()?).filter(|replicas| *replicas >= 0);
    let replicas = replicas.ok_or(CommandError::fixed("ERR value is out of range, must be positive"))?;
    let until_ms = deadline(cx)?;
    if cx.engine.restrictions.is_following() {
        return Err(CommandError::fixed(WAITAOF_ON_FOLLOWER));
    }
    let replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
    let persistence = &cx.engine.persistence;
    let state = persistence.state();
    let journaling = state.promises_durability();
    if here > 0 && !journaling {
        return Err(CommandError::fixed(WAITAOF_WITHOUT_JOURNAL));
    }
    let sequence = if journaling { cx.client.last_batch } else { u64::MAX };
    let durable = persistence.durable().is_some_and(|durable| durable >= sequence);
    let followers = if durable { persistence.replicas_at(sequence) } else { 0 };
    if durable as i64 >= here && followers >= replicas {
        cx.reply.array(2);
        cx.reply.integer(i64::from(durable));
        cx.reply.integer(followers as i64);
        return Ok(());
    }
    if here > 0 && state.hides_unpersisted() {
        cx.engine.restrictions.pass_write()?;
    }
    persistence.request_sync();
    let event = Event::Durable { sequence, here: here > 0, on_replicas: replicas };
    cx.after = After::Block(Blocked { until_ms, event, silent: false });
    Ok(())
}

/// The next argument as a timeout in milliseconds; `None` for 0, which is for ever.
fn deadline(cx: &mut ServerCx<'_>) -> Result<Option<u64>, CommandError> {
    let timeout_ms =
        parse_i64(cx.args.bytes()?).ok_or(CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let Ok(timeout_ms) = u64::try_from(timeout_ms) else {
        return Err(CommandError::fixed("ERR timeout is negative"));
    };
    let until_ms = cx.now_ms + timeout_ms;
    if i64::try_from(until_ms).is_err() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    Ok((timeout_ms > 0).then_some(until_ms))
}
