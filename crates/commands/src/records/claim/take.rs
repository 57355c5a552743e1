//! Takes a record: checks and changes it in one step, under the lock of its shard, and adds it to the reply. Refuses to
//! know how it was found.

use super::arguments::{Claim, Verdict};
use super::locks::rates_now_ns;
use crate::records::record_reply::RecordReply;
use crate::shared::name_set::NameSet;
use crate::shared::options::{error, shown};
use crate::shared::sliced_array::SlicedArray;
use execution::commit;
use execution::context::ScriptCx;
use execution::error::CommandError;
use execution::recorder::Recorder;
use execution::view::View;
use keyspace::db::Db;
use keyspace::index::Index;
use keyspace::index::groups::{GroupQueues, Scope, encode_name};
use keyspace::{Effect, Entry, HashRef, Key, Locked, Value};
use resp::Reply;
use std::sync::atomic::Ordering::Relaxed;

/// The claimed records, encoded as in the reply.
pub(super) struct Claimed {
    pub(super) body: SlicedArray,
    pub(super) count: usize,
    /// Every record that was checked and changed: each is changed at most once.
    pub(super) judged: NameSet,
    /// The batch or the reply has no room for more.
    pub(super) is_full: bool,
}

/// Room for one record, in most cases.
const BODY_BYTES: usize = 1024;

impl Claimed {
    pub(super) fn new() -> Claimed {
        Claimed { body: SlicedArray::with_capacity(BODY_BYTES), count: 0, judged: NameSet::default(), is_full: false }
    }

    /// True when nothing was changed yet.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 && self.judged.is_empty()
    }

    /// Reserves room in the reply after the first slice that has claimed something, for up to `left` more records.
    pub(super) fn expect_more(&mut self, left: usize, output_bytes_max: usize) {
        if self.count > 0 && !self.body.expects_more() {
            self.body.expect_more(self.count, self.count, left, reply_bytes_max(output_bytes_max));
        }
    }

    pub(super) fn is_done(&self, claim: &Claim<'_>) -> bool {
        self.count >= claim.count || self.is_full
    }
}

/// The result of taking a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It does not qualify.
    Not,
    /// It had expired, or had another score without its expired fields.
    Gone,
    Claimed,
    /// It was claimed too often before: ELSE was applied.
    SetAside,
    /// It qualifies, but the batch has no room for more.
    Full,
    /// It qualifies, but a limit is in the way.
    NoRoom,
}

/// Checks a record under the lock of its shard, changes it if it qualifies, and commits. `at` is the position of the
/// index among those of the database, for the next search; `None` in a transaction or script.
pub(super) fn take_record(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    locked: &mut Locked<'_>,
    index: &Index,
    at: Option<usize>,
    (score, name): (f64, &[u8]),
    claimed: &mut Claimed,
) -> Taken {
    let (engine, db, key) = (cx.engine, cx.client.db, Key::new(name));
    let worker = &mut *cx.worker;
    let usage = engine.usage(&mut worker.random);
    let mut view = View::new(locked.lend(), db, worker.now_ms, usage, &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let bytes_max = engine.debug.batch_bytes_max.load(Relaxed);
    let now_ns = rates_now_ns(engine, index, worker.now_ms);
    let taken = judge_and_change(claim, &mut keys, index, (score, key), (db, now_ns), bytes_max);
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, Some(cx.client), locked);
    engine.free(garbage);
    match taken {
        Taken::Claimed => worker.metrics.stats.records_claimed.add(1),
        Taken::SetAside => worker.metrics.stats.records_set_aside.add(1),
        _ => {}
    }
    if taken == Taken::Claimed {
        let mut reply = claimed.body.writer(cx.reply.protocol(), usize::MAX);
        show(claim, locked.db(db, key), (score, key), worker.now_ms, &mut reply);
        claimed.count += 1;
        claimed.is_full |= claimed.body.len() > reply_bytes_max(cx.client.output_bytes_max);
    }
    if matches!(taken, Taken::Claimed | Taken::SetAside) && !claimed.is_done(claim) {
        claimed.judged.insert(name);
    }
    claimed.is_full |= taken == Taken::Full;
    if let Some(at) = at {
        locked.settle_index(db, at);
    }
    taken
}

/// Checks a record, and changes it if it qualifies.
fn judge_and_change(
    claim: &Claim<'_>,
    keys: &mut Recorder<'_>,
    index: &Index,
    (score, key): (f64, Key<'_>),
    (db, now_ns): (usize, u64),
    batch_bytes_max: usize,
) -> Taken {
    let recorded_bytes = keys.recorded_bytes();
    // Without expired fields it may not be in the index any more.
    let Ok(Some(hash)) = keys.to_change::<HashRef>(key) else { return Taken::Gone };
    if index.definition.score(hash) != Some(score) {
        return Taken::Gone;
    }
    let Some(verdict) = claim.judge(hash) else { return Taken::Not };
    if recorded_bytes + key.name.len() + claim.set_bytes() > batch_bytes_max {
        return Taken::Full;
    }
    let definition = &index.definition;
    if !definition.has_queues() && !index.groups.limits_all() {
        claim.change(keys, key, verdict);
    } else {
        let take = claim.take_of(definition, hash, verdict);
        let Some(group) = definition.group(hash) else { return Taken::Gone };
        let states = [Scope::Group(&group), Scope::All].map(|scope| encode_name(&index.name, scope));
        // Without its expired fields, or after a write, it may be in another group than that whose locks were taken. Then it
        // is found again there.
        let counted = if definition.has_queues() { &states[..] } else { &states[1..] };
        if index.groups.has_rates() && !counted.iter().all(|name| keys.view().locked().holds(Key::new(name))) {
            return Taken::Gone;
        }
        let id = keys.view().locked().db(db, key).grouped_id(key);
        let reserve = |groups: &mut GroupQueues| match definition.has_queues() {
            true => groups.reserve(&group, id, take, now_ns),
            false => groups.reserve_of_all(take, now_ns),
        };
        // IMPORTANT: in a statement of its own. The change takes the lock again.
        let reserved = reserve(&mut index.groups.lock(db));
        let Some(taken) = reserved else { return Taken::NoRoom };
        claim.change(keys, key, verdict);
        for (name, until_ns) in states.iter().zip([taken.group_until_ns, taken.all_until_ns]) {
            if let Some(until_ns) = until_ns {
                keys.record(&Effect::Rate { key: Key::new(name), until_ns, now_ns });
            }
        }
        index.groups.lock(db).end_take(&group, id);
    }
    match verdict {
        Verdict::Claimed { .. } => Taken::Claimed,
        Verdict::Exhausted => Taken::SetAside,
    }
}

/// Adds a record to the reply, as it is after the change.
fn show(claim: &Claim<'_>, db: &Db, (score, key): (f64, Key<'_>), now_ms: u64, reply: &mut Reply<'_>) {
    let entry = db.entry(key);
    let hash = live_hash(db, entry, now_ms).expect("it was changed, and its deadline was not");
    let record = RecordReply { name: key.name, score: Some(score), hash, deadline_ms: entry.and_then(Entry::deadline) };
    claim.reply_options.reply(&record, now_ms, reply);
}

/// The most bytes of records in a reply; it may exceed this by at most one record.
fn reply_bytes_max(output_bytes_max: usize) -> usize {
    output_bytes_max / 2
}

/// The hash of a record that has not expired.
pub(super) fn live_hash<'e>(db: &'e Db, entry: Option<&'e Entry>, now_ms: u64) -> Option<HashRef<'e>> {
    match db.value(entry.filter(|entry| !Db::is_expired(entry, now_ms))?, now_ms) {
        Value::Hash(hash) => Some(hash),
        _ => None,
    }
}

/// The position of an index among those of a database, unless it was dropped.
pub(super) fn position_of(db: &Db, index: &Index) -> Option<usize> {
    db.indexes().iter().position(|one| std::ptr::eq(&**one, index))
}

pub(super) fn dropped(index: &Index) -> CommandError {
    error(format!("the index {} was dropped", shown(&index.name)))
}
