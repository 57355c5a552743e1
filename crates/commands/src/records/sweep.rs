//! SWEEP: finds records that were not written for long, and checks and changes each atomically.

use super::change::{Lifetime, change};
use super::indexes::remaining;
use super::times::{Settings, time_at, values_at};
use crate::pubsub::unread_bytes_max;
use crate::shared::name_set::NameSet;
use crate::shared::options::{
    Names, Pairs, argument, error, limit, missing, names, number, once, pairs, shown, unknown_option,
};
use crate::shared::sliced_array::SlicedArray;
use execution::args::{Args, is_word};
use execution::commit;
use execution::context::ScriptCx;
use execution::database_tokens::DatabaseToken;
use execution::error::{CommandError, CommandResult};
use execution::indexes;
use execution::recorder::Recorder;
use execution::slices::{RECORDS_PER_LOOK, TimeSlice};
use execution::view::View;
use keyspace::IndexRef;
use keyspace::garbage::Garbage;
use keyspace::types::sorted_set::{Direction, ScoreBound, ScoreRange};
use keyspace::{HashRef, Key, Locked, Scalar, Value};
use numbers::parse_i64;
use resp::Request;
use std::sync::atomic::Ordering::Relaxed;

/// `SWEEP index BEFORE ms …`
struct Sweep<'a> {
    index: &'a [u8],
    before: i64,
    condition: Option<(&'a [u8], Names<'a>)>,
    retry: Option<Retry<'a>>,
    set: Settings<'a>,
    limit: usize,
    channel: Option<&'a [u8]>,
}

/// How often a record may be retried, and what is set after that.
struct Retry<'a> {
    field: &'a [u8],
    max: i64,
    otherwise: Settings<'a>,
}

/// Checks whether a request is a SWEEP that could run at this time, whether or not its index exists yet.
pub(crate) fn check_sweep(request: Request<'_>, now_ms: u64) -> Result<(), CommandError> {
    let row = crate::registry().find(b"sweep").expect("the table has SWEEP");
    let taken = Sweep::take(&mut Args::new(request, row.name_args, None), now_ms);
    taken.map(drop).map_err(|error| row.explain(request, error))
}

impl<'a> Sweep<'a> {
    fn take(args: &mut Args<'a>, now_ms: u64) -> Result<Sweep<'a>, CommandError> {
        let index = argument(args, "the name of the index")?;
        let (mut before, mut condition, mut retry, mut otherwise) = (None, None, None, None);
        let (mut set, mut limit_asked, mut channel) = (None, None, None);
        while let Some(word) = args.try_next() {
            if is_word(word, "BEFORE") {
                once(&mut before, time_at(args, "the time behind BEFORE", now_ms)?, "BEFORE")?;
            } else if is_word(word, "WHERE") {
                let field = argument(args, "the field behind WHERE")?;
                once(&mut condition, (field, names(args, "WHERE")?), "WHERE")?;
            } else if is_word(word, "RETRY") {
                let field = argument(args, "the field behind RETRY")?;
                once(&mut retry, (field, number(args, "the maximum behind RETRY", 0, i64::MAX)?), "RETRY")?;
            } else if is_word(word, "ELSE") {
                once(&mut otherwise, values_at(pairs(args, "ELSE")?, now_ms)?, "ELSE")?;
            } else if is_word(word, "SET") {
                once(&mut set, values_at(pairs(args, "SET")?, now_ms)?, "SET")?;
            } else if is_word(word, "LIMIT") {
                once(&mut limit_asked, limit(args)?, "LIMIT")?;
            } else if is_word(word, "PUBLISH") {
                once(&mut channel, argument(args, "the channel behind PUBLISH")?, "PUBLISH")?;
            } else {
                return Err(unknown_option(args));
            }
        }
        let retry = match (retry, otherwise) {
            (None, None) => None,
            (Some((field, max)), Some(otherwise)) => Some(Retry { field, max, otherwise }),
            (Some(_), None) => return Err(missing("ELSE, which says what becomes of a record after the last RETRY")),
            (None, Some(_)) => return Err(missing("RETRY, without which ELSE has no meaning")),
        };
        let set =
            set.filter(|set| !set.is_empty()).ok_or_else(|| missing("SET, which says what becomes of a record"))?;
        if retry.as_ref().is_some_and(|retry| retry.otherwise.is_empty()) {
            return Err(error("ELSE must set at least one field, or the record would be found again and again".into()));
        }
        Ok(Sweep {
            index,
            before: before.ok_or_else(|| missing("BEFORE, which says which records are old"))?,
            condition,
            retry,
            set,
            limit: limit_asked.unwrap_or(usize::MAX),
            channel,
        })
    }

    /// The most bytes of effects for one record, without its name.
    fn set_bytes(&self) -> usize {
        let bytes =
            |fields: &Settings<'_>| fields.iter().map(|(field, value)| field.len() + value.len()).sum::<usize>();
        bytes(&self.set).max(self.retry.as_ref().map_or(0, |retry| bytes(&retry.otherwise)))
    }

    fn concerns(&self, hash: HashRef<'_>) -> bool {
        self.condition.as_ref().is_none_or(|(field, values)| {
            hash.get(field).is_some_and(|value| value.with_bytes(|value| values.contains(&value)))
        })
    }

    /// Changes one record. Returns what was done.
    fn change(&self, keys: &mut Recorder<'_>, name: &[u8]) -> Option<SweepAction> {
        let key = Key::new(name);
        let hash = keys.to_change::<HashRef>(key).ok().flatten()?;
        let tries = self.retry.as_ref().map(|retry| match hash.get(retry.field) {
            None => Some(0),
            Some(Scalar::Number(tries)) => Some(tries),
            Some(Scalar::Bytes(text)) => parse_i64(text),
        });
        let mut count = None;
        let (fields, action) = match (&self.retry, tries) {
            // A counter that is not a number counts as used up; otherwise the record would be retried for ever.
            (Some(retry), Some(tries)) => match tries.filter(|tries| *tries < retry.max) {
                None => (&retry.otherwise, SweepAction::Exhausted),
                Some(tries) => {
                    count = Some((retry.field, (tries + 1).to_string()));
                    (&self.set, SweepAction::Requeued)
                }
            },
            _ => (&self.set, SweepAction::Requeued),
        };
        // The counter first: SET may overwrite it.
        let count = count.iter().map(|(field, count)| (*field, count.as_bytes()));
        let fields: Pairs<'_> = count.chain(fields.iter().map(|(field, value)| (*field, &**value))).collect();
        change(keys, key, &fields, &[], Lifetime::Kept);
        Some(action)
    }
}

/// What SWEEP did with a record.
#[derive(Clone, Copy)]
enum SweepAction {
    Requeued,
    Exhausted,
}

/// The progress of a SWEEP.
#[derive(Default)]
struct SweepProgress {
    /// The token of the swept database, once it is taken.
    token: Option<DatabaseToken>,
    /// The changed records, encoded as in the reply.
    body: SlicedArray,
    /// The last record visited.
    last: Option<(f64, Vec<u8>)>,
    /// Names of the changed records: each is changed at most once.
    swept: NameSet,
    has_begun: bool,
    /// The time of `NOW`.
    began_ms: u64,
    /// The batch has no room for more.
    is_full: bool,
}

pub(super) fn sweep(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let mut progress = match cx.client.resume::<SweepProgress>() {
        Some((progress, token)) => SweepProgress { token: Some(token), ..progress },
        None => SweepProgress { began_ms: cx.worker.now_ms, ..SweepProgress::default() },
    };
    // All slices use the same times, so that none is refused after an earlier one has changed something.
    let sweep = Sweep::take(&mut cx.args, progress.began_ms)?;
    let ended = loop {
        match slice(cx, &sweep, &mut progress) {
            // It continues when the script has ended.
            Err(CommandError::AwaitsScript) if !progress.swept.is_empty() => {
                let token = progress.token.take();
                cx.leave(progress, token);
                return Err(CommandError::AwaitsScript);
            }
            // Reply with the records changed so far: the index was dropped between slices, or the server is busy or
            // refuses writes.
            Err(_) if !progress.swept.is_empty() => break true,
            // A transaction or script keeps its locks anyway, so there is no point in yielding.
            Ok(false) if cx.held.is_some() => {}
            outcome => break outcome?,
        }
    };
    if !ended {
        let token = progress.token.take();
        cx.leave(progress, token);
        return Ok(());
    }
    progress.body.send(progress.swept.len(), &mut cx.reply);
    // A long list of names takes long to free.
    cx.engine.free(Garbage::of(progress.swept));
    Ok(())
}

/// Checks and changes some records under one set of locks, as one batch. True when there are no more.
fn slice(cx: &mut ScriptCx<'_, '_>, sweep: &Sweep<'_>, progress: &mut SweepProgress) -> Result<bool, CommandError> {
    let engine = cx.engine;
    let is_part = cx.held.is_some();
    if progress.has_begun && !is_part {
        engine.restrictions.pass_write()?;
    }
    let mut own;
    let mut locked = match &mut cx.held {
        Some(held) => held.lend(),
        None => match indexes::lock_for_index(engine, cx.worker, cx.client.db)? {
            Some(all) => {
                own = all;
                own.lend()
            }
            None => return Ok(false),
        },
    };
    match &progress.token {
        // The reply has the records that were changed before the database was emptied.
        Some(token) if token.pass(&locked).is_err() => return Ok(true),
        None if !is_part => progress.token = Some(engine.databases.take_token(&locked, cx.client.db)),
        _ => {}
    }
    let slice = TimeSlice::begin(engine);
    let is_over = || !is_part && slice.is_over();
    indexes::expire_for_index(engine, cx.worker, cx.client.db, &mut locked);
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    let stuck = find(sweep, &locked, cx.client.db, progress, cx.worker.now_ms, is_over)
        .ok_or_else(|| error(format!("there is no index {}", shown(sweep.index))))?;
    progress.has_begun = true;
    let worker = &mut *cx.worker;
    let mut view =
        View::new(locked.lend(), cx.client.db, worker.now_ms, engine.usage(&mut worker.random), &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let (mut changed, mut cut_short) = (Vec::new(), false);
    for (score, name) in stuck.records {
        if keys.recorded_bytes() + sweep.set_bytes() > engine.debug.batch_bytes_max.load(Relaxed) {
            if changed.is_empty() {
                return Err(error("its changes would be larger than one batch of the journal can be".into()));
            }
            // In a transaction or script all changes are one batch; a sweep ends where that is full, as it would at its
            // limit.
            progress.is_full = is_part;
            cut_short = true;
            break;
        }
        let is_long = changed.len() >= CHANGES_MIN && is_over() || keys.recorded_bytes() >= SLICE_BYTES;
        if !changed.is_empty() && !is_part && is_long {
            cut_short = true;
            break;
        }
        if let Some(action) = sweep.change(&mut keys, &name) {
            changed.push((name.clone(), action));
        }
        progress.last = Some((score, name));
    }
    if !cut_short {
        progress.last = stuck.last.or(progress.last.take());
    }
    let garbage = keys.finish().take_garbage();
    let sequence = commit::commit(engine, worker, Some(cx.client), &mut locked).unwrap_or(0);
    engine.free(garbage);
    cx.client.depends_on = cx.client.depends_on.max(engine.persistence.tail());
    let mut reply = progress.body.writer(cx.reply.protocol(), cx.client.output_bytes_max);
    for (name, action) in changed {
        if let Some(channel) = sweep.channel {
            engine.pubsub.publish(channel, &name, unread_bytes_max(engine), sequence);
        }
        let (shown, counter): (&[u8], _) = match action {
            SweepAction::Requeued => (b"requeued", &worker.metrics.stats.records_requeued),
            SweepAction::Exhausted => (b"exhausted", &worker.metrics.stats.records_exhausted),
        };
        counter.add(1);
        reply.array(2);
        reply.bulk(&name);
        reply.bulk(shown);
        progress.swept.insert(&name);
    }
    let ended = !cut_short && stuck.ended || progress.is_full || progress.swept.len() >= sweep.limit;
    if !ended && !progress.swept.is_empty() && !progress.body.expects_more() {
        let (swept, left) = (progress.swept.len(), stuck.left.min(sweep.limit - progress.swept.len()));
        progress.body.expect_more(swept, swept, left, cx.client.output_bytes_max);
    }
    Ok(ended)
}

/// About how many bytes of effects one slice of a sweep records: they are one journal batch.
const SLICE_BYTES: usize = 1024 * 1024;
/// The most records that one slice changes, and the least, unless fewer are left: finding where to continue takes as
/// long as a few dozen changes.
const CHANGES_MAX: usize = 256;
const CHANGES_MIN: usize = 64;

/// Records to change.
struct Stuck {
    records: Vec<(f64, Vec<u8>)>,
    /// The last record visited.
    last: Option<(f64, Vec<u8>)>,
    /// There are no more.
    ended: bool,
    /// How many more there may be.
    left: usize,
}

/// Finds some of the records to change, after the last one visited; `None` when the index does not exist.
fn find(
    sweep: &Sweep<'_>,
    locked: &Locked<'_>,
    db: usize,
    progress: &SweepProgress,
    now_ms: u64,
    is_over: impl Fn() -> bool,
) -> Option<Stuck> {
    let range = ScoreRange {
        min: ScoreBound { score: f64::NEG_INFINITY, excluded: false },
        max: ScoreBound { score: sweep.before as f64, excluded: true },
    };
    let index = IndexRef::find(locked, db, sweep.index)?;
    let mut records = remaining(index, &range, Direction::Ascending, progress.last.as_ref());
    let mut stuck = Stuck { records: Vec::new(), last: None, ended: false, left: 0 };
    for looked_at in 1.. {
        if progress.swept.len() + stuck.records.len() >= sweep.limit {
            stuck.ended = true;
            break;
        }
        if stuck.records.len() == CHANGES_MAX || looked_at % RECORDS_PER_LOOK == 0 && is_over() {
            break;
        }
        let Some((db, entry, score)) = records.next_entry() else {
            stuck.ended = true;
            break;
        };
        stuck.last = Some((score, entry.name().to_vec()));
        // A record that this sweep has changed is skipped, even if it is still old.
        if let Value::Hash(hash) = db.value(entry, now_ms)
            && sweep.concerns(hash)
            && !progress.swept.contains(entry.name())
        {
            stuck.records.push((score, entry.name().to_vec()));
        }
    }
    stuck.left = records.left();
    Some(stuck)
}
