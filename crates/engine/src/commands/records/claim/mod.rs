//! CLAIM: takes the first records of an index that qualify, changes each in the step in which it is found, and returns
//! them. Knows the steps of a claim: who is ahead, search, reply or wait; refuses to know in which order clients wait
//! (`execution::waiting::records`).
//!
//! A claim locks one shard at a time. The index publishes the lowest score of each shard (`keyspace::index::Heads`): the
//! search goes to the shard with the lowest, and takes what it finds there if no other shard can have a lower one.

mod arguments;
mod search;
mod take;

use self::arguments::{Claim, Verdict};
use self::search::{Search, Slice, Step};
use self::take::{Claimed, Taken, dropped, live_hash, position_of, take_record};
use super::indexes::remaining;
use crate::commands::shared::options::{error, shown};
use crate::error::{CommandError, CommandResult};
use crate::execution::context::{After, ScriptCx};
use crate::execution::waiting::records::{
    AheadInLine, Candidate, Offered, PlaceInLine, RecordOffer, RecordWait, Searched,
};
use keyspace::index::Index;
use keyspace::types::sorted_set::{Direction, ScoreBound};
use keyspace::{IndexRef, Key, Locked};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The progress of a CLAIM that works in slices, or searches again before it waits.
struct Progress {
    claimed: Claimed,
    /// The index that is searched, and how far.
    position: usize,
    search: Option<Search>,
    searched: SmallVec<[Searched; 2]>,
    /// It searches for the last time before it waits.
    place: Option<PlaceInLine>,
    /// When it began.
    began_ms: u64,
    /// How often others went first.
    put_off: usize,
}

/// How often others go first. Each time, they are served for a slice of time; after that, there are more than can be served.
const PUT_OFF_MAX: usize = 64;

pub(super) fn claim(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let unfinished = cx.client.unfinished.take().and_then(|unfinished| unfinished.downcast::<Progress>().ok());
    let began_ms = unfinished.as_ref().map_or(cx.worker.now_ms, |progress| progress.began_ms);
    let mut args = cx.args;
    let claim = match Claim::take(&mut cx.args, cx.worker.now_ms) {
        // `NOW-…` was in range when it began. No slice is refused after an earlier one has changed something.
        Err(_) if unfinished.is_some() => Claim::take(&mut args, began_ms)?,
        claim => claim?,
    };
    if cx.held.is_some() {
        return claim_held(cx, &claim);
    }
    if claim.set_bytes() > cx.engine.batch_bytes_max.load(Relaxed) {
        return Err(too_large());
    }
    let offer = cx.client.record_offer();
    let indexes = match &offer {
        Some(offer) => SmallVec::from_elem(offer.index.clone(), 1),
        None => find_indexes(cx, &claim)?,
    };
    let mut progress = match unfinished {
        Some(progress) => *progress,
        None => Progress {
            claimed: Claimed::new(),
            position: 0,
            search: None,
            searched: SmallVec::new(),
            place: None,
            began_ms,
            put_off: 0,
        },
    };
    if offer.is_none() && progress.search.is_none() {
        match ahead(cx, &indexes, &claim) {
            AheadInLine::Nobody => {}
            AheadInLine::ToBeServed if progress.put_off >= PUT_OFF_MAX => {}
            AheadInLine::ToBeServed => {
                progress.put_off += 1;
                cx.client.unfinished = Some(Box::new(progress));
                cx.after = After::Again;
                return Ok(());
            }
            AheadInLine::SameCriteria => {
                // There is nothing, or one of them would have it.
                if claim.block_ms.is_some() && progress.place.is_none() {
                    progress.place = Some(join(cx, &indexes));
                    progress.position = indexes.len();
                }
            }
        }
    }
    loop {
        let step = match &offer {
            Some(offer) => look_at_offer(cx, &claim, offer, &mut progress),
            None => search_all(cx, &claim, &indexes, &mut progress),
        };
        match step {
            // Reply with what was claimed so far: the index was dropped between slices, or the server is busy.
            Err(error) if progress.claimed.count == 0 => return Err(error),
            Err(_) => break,
            // A client that is served takes what was found by now.
            Ok(Step::Yield) if offer.is_some() && progress.claimed.count > 0 => break,
            Ok(step @ (Step::Yield | Step::LetOthersFirst)) => {
                progress.put_off += usize::from(matches!(step, Step::LetOthersFirst));
                cx.client.unfinished = Some(Box::new(progress));
                cx.after = After::Again;
                return Ok(());
            }
            Ok(Step::Done) if progress.claimed.count > 0 || claim.block_ms.is_none() => break,
            Ok(Step::Done) if offer.is_some() || progress.place.is_some() => return wait(cx, &claim, progress),
            // From here on no record is missed.
            Ok(Step::Done) => {
                progress.place = Some(join(cx, &indexes));
                progress.position = 0;
                progress.searched.clear();
            }
        }
    }
    reply(cx, progress.claimed)
}

/// The indexes of a claim, which must be complete.
fn find_indexes(cx: &ScriptCx<'_, '_>, claim: &Claim<'_>) -> Result<SmallVec<[Arc<Index>; 2]>, CommandError> {
    let indexes = cx.engine.indexes();
    let find = |name: &&[u8]| match indexes.find(name) {
        None => Err(error(format!("there is no index {}", shown(name)))),
        Some(index) if !index.is_built() => Err(error(format!("the index {} is not complete yet", shown(name)))),
        Some(index) => Ok(index.clone()),
    };
    claim.indexes.iter().map(find).collect()
}

/// Serves clients that came first, and tells whether others are still ahead.
fn ahead(cx: &mut ScriptCx<'_, '_>, indexes: &[Arc<Index>], claim: &Claim<'_>) -> AheadInLine {
    let (engine, db) = (cx.engine, cx.client.db);
    let look = |now_ms| engine.record_waiters.ahead_of(indexes, db, || claim.criteria(), now_ms);
    match look(cx.worker.now_ms) {
        AheadInLine::ToBeServed if !engine.may_expire() => AheadInLine::Nobody,
        AheadInLine::ToBeServed => {
            engine.serve_due_records(cx.worker);
            look(cx.worker.now_ms)
        }
        ahead => ahead,
    }
}

fn join(cx: &ScriptCx<'_, '_>, indexes: &[Arc<Index>]) -> PlaceInLine {
    cx.engine.record_waiters.join(indexes, cx.client.db, cx.engine.keyspace.shard_count())
}

/// Asks to wait for a record.
fn wait(cx: &mut ScriptCx<'_, '_>, claim: &Claim<'_>, progress: Progress) -> CommandResult {
    cx.reply.array(0);
    cx.client.depends_on = cx.client.depends_on.max(cx.engine.persistence.tail());
    let until_ms = claim.block_ms.filter(|ms| *ms > 0).map(|ms| progress.began_ms.saturating_add(ms));
    let Progress { place, searched, .. } = progress;
    let criteria = cx.client.record_offer().map_or_else(|| claim.criteria(), |offer| offer.criteria.clone());
    cx.client.wait_for_record(RecordWait { until_ms, criteria, place, searched });
    Ok(())
}

fn too_large() -> CommandError {
    error("its changes would be larger than one batch of the journal can be".into())
}

fn reply(cx: &mut ScriptCx<'_, '_>, claimed: Claimed) -> CommandResult {
    if claimed.count == 0 {
        if claimed.is_full && claimed.judged.is_empty() {
            return Err(too_large());
        }
        // That there is nothing may depend on any change.
        cx.client.depends_on = cx.client.depends_on.max(cx.engine.persistence.tail());
    }
    claimed.body.send(claimed.count, &mut cx.reply);
    // Many names take long to free.
    if claimed.judged.len() > 1 {
        cx.engine.free(vec![Box::new(claimed.judged)]);
    }
    Ok(())
}

/// Searches the indexes in their order, until one of them has records that qualify.
fn search_all(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    indexes: &[Arc<Index>],
    progress: &mut Progress,
) -> Result<Step, CommandError> {
    let (db, shard_count) = (cx.client.db, cx.engine.keyspace.shard_count());
    while progress.position < indexes.len() {
        let index = &indexes[progress.position];
        let mut search =
            progress.search.take().unwrap_or_else(|| Search::new(index.heads(db, shard_count), claim.range));
        let lets_others_first = progress.put_off < PUT_OFF_MAX;
        match search.run(cx, claim, index, lets_others_first, &mut progress.claimed)? {
            Step::Done => {}
            Step::Yield => {
                progress.search = Some(search);
                return Ok(Step::Yield);
            }
            Step::LetOthersFirst => return Ok(Step::LetOthersFirst),
        }
        if progress.claimed.count > 0 {
            return Ok(Step::Done);
        }
        progress.searched.push(search.searched());
        progress.position += 1;
    }
    Ok(Step::Done)
}

/// Takes what a client that waits is offered.
fn look_at_offer(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    offer: &RecordOffer,
    progress: &mut Progress,
) -> Result<Step, CommandError> {
    let candidates = match &offer.records {
        Offered::Candidates(candidates) => candidates,
        Offered::Above(score) => {
            let mut range = claim.range;
            if *score >= range.min.score {
                range.min = ScoreBound { score: *score, excluded: *score != f64::NEG_INFINITY };
            }
            let heads = offer.index.heads(cx.client.db, cx.engine.keyspace.shard_count());
            let mut search = progress.search.take().unwrap_or_else(|| Search::new(heads, range));
            let step = search.run(cx, claim, &offer.index, false, &mut progress.claimed)?;
            progress.searched.clear();
            progress.searched.push(search.searched());
            progress.search = Some(search);
            return Ok(step);
        }
    };
    let mut left = std::mem::take(&mut *candidates.lock());
    left.sort_by(|one, other| one.score.total_cmp(&other.score).then_with(|| one.name.cmp(&other.name)));
    let mut outcome = Ok(Step::Done);
    let mut slice = Slice::new(cx.engine);
    left.retain(|candidate| {
        // What is left stays for the next time.
        if progress.claimed.is_done(claim) || outcome.is_err() || slice.is_over() {
            return true;
        }
        match take_candidate(cx, claim, offer, candidate, progress) {
            Ok(is_done) => !is_done,
            Err(error) => {
                outcome = Err(error);
                true
            }
        }
    });
    candidates.lock().append(&mut left);
    outcome
}

/// Judges a record that may have become one to claim. False when it is one that others may claim.
fn take_candidate(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    offer: &RecordOffer,
    candidate: &Candidate,
    progress: &mut Progress,
) -> Result<bool, CommandError> {
    let (index, key, db) = (&offer.index, Key::new(&candidate.name), cx.client.db);
    if progress.claimed.judged.contains(&candidate.name) {
        // It was written more than once. The claim itself has made it ready for others.
        return Ok(true);
    }
    let mut locked = cx.engine.keyspace.lock_key_unless_busy(key).ok_or_else(|| cx.engine.busy())?;
    let within = locked.db(db, key);
    let at = position_of(within, index).ok_or_else(|| dropped(index))?;
    let score = live_hash(within, within.entry(key), cx.worker.now_ms).and_then(|hash| index.definition.score(hash));
    // It has changed since, and if it has a score, it was noted with that.
    let Some(score) = score.filter(|score| *score == candidate.score) else { return Ok(true) };
    let taken = take_record(cx, claim, &mut locked, index, Some(at), (score, &candidate.name), &mut progress.claimed);
    if taken == Taken::SetAside {
        cx.engine.record_waiters.note_set_aside(offer, db, &candidate.name, &candidate.set_aside_by);
    }
    Ok(taken != Taken::Full)
}

/// Claims in a transaction or script, which has locked everything. All is one batch, and nothing waits.
fn claim_held(cx: &mut ScriptCx<'_, '_>, claim: &Claim<'_>) -> CommandResult {
    let (engine, db) = (cx.engine, cx.client.db);
    let indexes = find_indexes(cx, claim)?;
    let mut held = cx.held.take().expect("the caller has looked");
    engine.expire_for_index(cx.worker, db, &mut held);
    let mut claimed = Claimed::new();
    for index in &indexes {
        // No record that was judged is judged again, so it makes no difference that all are found first.
        for (score, name) in find_held(claim, &held, db, index, cx.worker.now_ms) {
            if claimed.judged.contains(&name) {
                continue;
            }
            take_record(cx, claim, &mut held, index, None, (score, &name), &mut claimed);
            if claimed.is_done(claim) {
                break;
            }
        }
        if claimed.count > 0 || claimed.is_full {
            break;
        }
        // What ELSE has changed may be in the next index, too.
        held.apply_pending(db);
    }
    cx.held = Some(held);
    reply(cx, claimed)
}

/// As many records that qualify as a claim wants, and those before them that were claimed too often.
fn find_held(claim: &Claim<'_>, held: &Locked<'_>, db: usize, index: &Index, now_ms: u64) -> Vec<(f64, Vec<u8>)> {
    let Some(merged) = IndexRef::find(held, db, &index.name) else { return Vec::new() };
    let mut records = remaining(merged, &claim.range, Direction::Ascending, None);
    let (mut found, mut count) = (Vec::new(), 0);
    while count < claim.count
        && let Some((db, entry, score)) = records.next_entry()
    {
        let verdict = live_hash(db, Some(entry), now_ms).and_then(|hash| claim.judge(hash));
        if let Some(verdict) = verdict {
            count += usize::from(matches!(verdict, Verdict::Claimed { .. }));
            found.push((score, entry.name().to_vec()));
        }
    }
    found
}
