//! CLAIM: takes the first records of an index that qualify, changes each in the step in which it is found, and returns
//! them. Knows the steps of a claim: serve earlier waiters, search, then reply or wait; refuses to know in which order
//! clients wait (`execution::waiting::records`).
//!
//! A claim locks one shard at a time. The index publishes the lowest score of each shard (`keyspace::index::Heads`):
//! the search visits the shard with the lowest, and takes a record there if no other shard can have a lower one.

mod arguments;
mod groups;
mod locks;
mod search;
mod side;
mod take;

use self::arguments::{Claim, Verdict};
use self::groups::GroupedSearch;
use self::locks::lock_for_take_of;
pub(super) use self::locks::rates_now_ns;
use self::search::{ClaimSearch, How, Step};
use self::take::{Claimed, Taken, dropped, live_hash, position_of, take_record};
use super::indexes::remaining;
use crate::shared::options::{error, shown};
use crate::shared::slices::take_token;
use execution::conditions;
use execution::context::{After, ScriptCx};
use execution::database_tokens::LazyToken;
use execution::error::{CommandError, CommandResult};
use execution::indexes;
use execution::revealed;
use execution::slices::LazyTimeSlice;
use execution::waiting;
use execution::waiting::records::{
    AheadInLine, Offered, OfferedRecord, PlaceInLine, RecordOffer, RecordWait, Searched,
};
use keyspace::garbage::Garbage;
use keyspace::index::Index;
use keyspace::types::sorted_set::{Direction, ScoreBound, ScoreRange};
use keyspace::{IndexRef, Key, Locked};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The progress of a CLAIM that works in slices, or searches again before it waits.
struct Progress {
    /// The indexes to search, as they were when it began.
    indexes: SmallVec<[Arc<Index>; 2]>,
    claimed: Claimed,
    /// The token of the searched database, once it is needed.
    token: LazyToken,
    /// The index that is searched, and how far.
    position: usize,
    search: Option<Search>,
    searched: SmallVec<[Searched; 2]>,
    /// Its place in the lines, while it searches for the last time before it waits.
    place: Option<PlaceInLine>,
    /// When it began.
    began_ms: u64,
    /// How often it has yielded to waiters.
    put_off: usize,
}

/// A search of one index.
enum Search {
    Whole(ClaimSearch),
    Groups(Box<GroupedSearch>),
}

impl Search {
    fn new(cx: &ScriptCx<'_, '_>, claim: &Claim<'_>, index: &Index, range: ScoreRange) -> Search {
        match index.definition.has_queues() {
            true => Search::Groups(Box::new(GroupedSearch::new(claim, index, range))),
            false => {
                let heads = index.heads(cx.client.db, cx.engine.keyspace.shard_count());
                Search::Whole(ClaimSearch::new(heads, range))
            }
        }
    }

    fn run(
        &mut self,
        cx: &mut ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        index: &Index,
        how: How,
        claimed: &mut Claimed,
        token: &mut LazyToken,
    ) -> Result<Step, CommandError> {
        match self {
            Search::Whole(search) => search.run(cx, claim, index, how, claimed, token),
            Search::Groups(search) => search.run(cx, claim, index, how, claimed, token),
        }
    }

    fn searched(&self) -> Searched {
        match self {
            Search::Whole(search) => search.searched(),
            Search::Groups(search) => search.searched(),
        }
    }

    /// The score of the last record taken, if no record before it qualifies. Groups give in another order.
    fn reached(&self) -> Option<f64> {
        match self {
            Search::Whole(search) => search.reached,
            Search::Groups(_) => None,
        }
    }
}

/// The search result of an index in which no record can qualify.
const NEVER: Searched = Searched { up_to: f64::INFINITY, next_score: f64::INFINITY, again_ms: None };

/// How often a claim yields to waiters. Each time they are served for a slice; after so many times there are more than
/// can be served.
const PUT_OFF_MAX: usize = 64;

pub(super) fn claim(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let unfinished = cx.client.resume::<Progress>();
    let began_ms = unfinished.as_ref().map_or(cx.worker.now_ms, |(progress, _)| progress.began_ms);
    let mut args = cx.args;
    let claim = match Claim::take(&mut cx.args, cx.worker.now_ms) {
        // `NOW-…` was in range when it began. A slice is not refused after an earlier one has changed something.
        Err(_) if unfinished.is_some() => Claim::take(&mut args, began_ms)?,
        claim => claim?,
    };
    if cx.held.is_some() {
        return claim_held(cx, &claim);
    }
    if claim.set_bytes() > cx.engine.debug.batch_bytes_max.load(Relaxed) {
        return Err(too_large());
    }
    let offer = cx.client.record_offer();
    let mut progress = match unfinished {
        Some((progress, token)) => Progress { token: token.into(), ..progress },
        None => Progress {
            indexes: match &offer {
                Some(offer) => SmallVec::from_elem(offer.index.clone(), 1),
                None => match find_indexes(cx, &claim) {
                    Ok(indexes) => indexes,
                    Err(error) => {
                        revealed::await_definitions(cx)?;
                        return Err(error);
                    }
                },
            },
            claimed: Claimed::new(),
            token: LazyToken::default(),
            position: 0,
            search: None,
            searched: SmallVec::new(),
            place: None,
            began_ms,
            put_off: 0,
        },
    };
    if offer.is_none() && progress.search.is_none() {
        match ahead(cx, &progress.indexes, &claim) {
            AheadInLine::NoWaiter => {}
            AheadInLine::ToBeServed if progress.put_off >= PUT_OFF_MAX => {}
            AheadInLine::ToBeServed if claim.block_ms.is_some() && progress.claimed.is_empty() => {
                // It comes after the waiters.
                progress.position = progress.indexes.len();
                progress.searched.clear();
                progress.place.get_or_insert_with(|| join(cx, &progress.indexes));
            }
            AheadInLine::ToBeServed => {
                progress.put_off += 1;
                return leave(cx, progress);
            }
            AheadInLine::SameCriteria { has_searched } if has_searched || claim.block_ms.is_some() => {
                // There is no record, or one of these waiters would have it.
                progress.position = progress.indexes.len();
                if claim.block_ms.is_some() && progress.place.is_none() {
                    progress.place = Some(join(cx, &progress.indexes));
                }
            }
            AheadInLine::SameCriteria { .. } => {}
        }
    }
    loop {
        let step = match &offer {
            Some(offer) => look_at_offer(cx, &claim, offer, &mut progress),
            None => search_all(cx, &claim, &mut progress),
        };
        match step {
            // It continues when the script has ended.
            Err(CommandError::AwaitsScript) if offer.is_none() && !progress.claimed.is_empty() => {
                leave(cx, progress)?;
                return Err(CommandError::AwaitsScript);
            }
            // Reply with the records claimed so far: the index was dropped between slices, or the server is busy.
            Err(error) if progress.claimed.count == 0 => {
                revealed::await_definitions(cx)?;
                return Err(error);
            }
            Err(_) => break,
            // One search serves all waiters with the same criteria.
            Ok(Step::Long) => {
                progress.position = progress.indexes.len();
                progress.search = None;
                progress.searched.clear();
                progress.place.get_or_insert_with(|| join(cx, &progress.indexes));
            }
            Ok(step @ (Step::Yield | Step::LetOthersFirst)) => {
                if let Some(offer) = offer.as_ref().filter(|_| progress.claimed.count > 0) {
                    offer.note_taken();
                }
                progress.put_off += usize::from(matches!(step, Step::LetOthersFirst));
                return leave(cx, progress);
            }
            // A waiter searches again from the beginning.
            Ok(Step::DatabaseChanged) if offer.is_some() && progress.claimed.count == 0 => {
                return wait(cx, &claim, progress);
            }
            // The reply has the records claimed before. Without any, it is as if the search had begun after the change.
            Ok(Step::DatabaseChanged) if !progress.claimed.is_empty() => break,
            Ok(Step::DatabaseChanged) => {
                progress.token = LazyToken::default();
                (progress.position, progress.search) = (0, None);
                progress.searched.clear();
            }
            Ok(Step::Done) if progress.claimed.count > 0 || claim.block_ms.is_none() => break,
            Ok(Step::Done) if offer.is_some() || progress.place.is_some() => return wait(cx, &claim, progress),
            // From here on no record is missed.
            Ok(Step::Done) => {
                progress.place = Some(join(cx, &progress.indexes));
                progress.position = 0;
                progress.searched.clear();
            }
        }
    }
    reply(cx, progress.claimed)
}

/// Continues in another slice.
fn leave(cx: &mut ScriptCx<'_, '_>, mut progress: Progress) -> CommandResult {
    let token = std::mem::take(&mut progress.token);
    let token = match token.into_token() {
        Some(token) => token,
        // It will search everything again that it has searched.
        None => take_token(cx)?,
    };
    cx.client.leave(progress, token);
    cx.after = After::Again;
    Ok(())
}

/// The indexes of a claim, which must be complete.
fn find_indexes(cx: &ScriptCx<'_, '_>, claim: &Claim<'_>) -> Result<SmallVec<[Arc<Index>; 2]>, CommandError> {
    let indexes = cx.engine.indexes.list();
    let find = |name: &&[u8]| match indexes.find(name) {
        None => Err(error(format!("there is no index {}", shown(name)))),
        Some(index) if !index.is_built() => Err(error(format!("the index {} is not complete yet", shown(name)))),
        Some(index) => claim.pass_groups(&index.definition).map(|()| index.clone()),
    };
    claim.indexes.iter().map(find).collect()
}

/// Serves clients that came first. Returns which are still ahead.
fn ahead(cx: &mut ScriptCx<'_, '_>, indexes: &[Arc<Index>], claim: &Claim<'_>) -> AheadInLine {
    let (engine, db) = (cx.engine, cx.client.db);
    let look = |now_ms| engine.waiting.records.ahead_of(indexes, db, || claim.criteria(indexes), now_ms);
    match look(cx.worker.now_ms) {
        AheadInLine::ToBeServed if !conditions::may_expire(engine) => AheadInLine::NoWaiter,
        AheadInLine::ToBeServed => {
            waiting::records::serving::serve_due_records(engine, cx.worker);
            look(cx.worker.now_ms)
        }
        ahead => ahead,
    }
}

fn join(cx: &ScriptCx<'_, '_>, indexes: &[Arc<Index>]) -> PlaceInLine {
    cx.engine.waiting.records.join(indexes, cx.client.db, cx.engine.keyspace.shard_count())
}

/// Requests to wait for a record.
fn wait(cx: &mut ScriptCx<'_, '_>, claim: &Claim<'_>, progress: Progress) -> CommandResult {
    cx.reply.array(0);
    cx.client.depends_on = cx.client.depends_on.max(cx.engine.persistence.tail());
    let until_ms = claim.block_ms.filter(|ms| *ms > 0).map(|ms| progress.began_ms.saturating_add(ms));
    let Progress { place, searched, indexes, .. } = progress;
    let criteria = cx.client.record_offer().map_or_else(|| claim.criteria(&indexes), |offer| offer.criteria.clone());
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
        // Any change may be the reason why there is no record.
        cx.client.depends_on = cx.client.depends_on.max(cx.engine.persistence.tail());
    }
    claimed.body.send(claimed.count, &mut cx.reply);
    // A long list of names takes long to free.
    if claimed.judged.len() > 1 {
        cx.engine.free(Garbage::of(claimed.judged));
    }
    Ok(())
}

/// Searches the indexes in order, until one of them has records that qualify.
fn search_all(cx: &mut ScriptCx<'_, '_>, claim: &Claim<'_>, progress: &mut Progress) -> Result<Step, CommandError> {
    while progress.position < progress.indexes.len() {
        let index = &progress.indexes[progress.position];
        if claim.contradicts(&index.definition) {
            progress.searched.push(NEVER);
            progress.position += 1;
            continue;
        }
        let mut search = progress.search.take().unwrap_or_else(|| Search::new(cx, claim, index, claim.range));
        let how = How {
            lets_others_first: progress.put_off < PUT_OFF_MAX,
            // With several indexes, the first that has a record decides, so they are searched one after the other.
            is_brief: claim.block_ms.is_some() && progress.indexes.len() == 1,
        };
        match search.run(cx, claim, index, how, &mut progress.claimed, &mut progress.token)? {
            Step::Done => {}
            Step::Yield => {
                progress.search = Some(search);
                return Ok(Step::Yield);
            }
            step @ (Step::LetOthersFirst | Step::Long | Step::DatabaseChanged) => return Ok(step),
        }
        if progress.claimed.count > 0 {
            return Ok(Step::Done);
        }
        progress.searched.push(search.searched());
        progress.position += 1;
    }
    Ok(Step::Done)
}

/// Takes records that a waiter is offered.
fn look_at_offer(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    offer: &RecordOffer,
    progress: &mut Progress,
) -> Result<Step, CommandError> {
    let candidates = match &offer.records {
        Offered::Candidates(candidates) => candidates,
        Offered::Above(_) if claim.contradicts(&offer.index.definition) => {
            progress.searched.clear();
            progress.searched.push(NEVER);
            return Ok(Step::Done);
        }
        Offered::Above(score) => {
            let mut range = claim.range;
            // What limits have kept back before may be given now, whatever its score.
            let has_limits = offer.index.definition.has_queues() || offer.index.groups.limits_all();
            if *score >= range.min.score && !has_limits {
                range.min = ScoreBound { score: *score, excluded: *score != f64::NEG_INFINITY };
            }
            let mut search = progress.search.take().unwrap_or_else(|| Search::new(cx, claim, &offer.index, range));
            let how = How { lets_others_first: false, is_brief: false };
            let step = search.run(cx, claim, &offer.index, how, &mut progress.claimed, &mut progress.token)?;
            if let (Step::Done, Some(score)) = (&step, search.reached()) {
                offer.note_reached(score);
            }
            progress.searched.clear();
            progress.searched.push(search.searched());
            progress.search = Some(search);
            return Ok(step);
        }
    };
    let mut left = std::mem::take(&mut *candidates.lock());
    left.sort_by(|one, other| one.score.total_cmp(&other.score).then_with(|| one.name.cmp(&other.name)));
    let mut outcome = Ok(Step::Done);
    let mut slice = LazyTimeSlice::new(cx.engine);
    left.retain(|candidate| {
        // The rest stays for the next time.
        if progress.claimed.is_done(claim) || !matches!(outcome, Ok(Step::Done)) {
            return true;
        }
        if slice.is_over() {
            outcome = Ok(Step::Yield);
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

/// Takes an offered record, if it qualifies. False when the batch is full: the record stays for others.
fn take_candidate(
    cx: &mut ScriptCx<'_, '_>,
    claim: &Claim<'_>,
    offer: &RecordOffer,
    candidate: &OfferedRecord,
    progress: &mut Progress,
) -> Result<bool, CommandError> {
    let (index, key, db) = (&offer.index, Key::new(&candidate.name), cx.client.db);
    if progress.claimed.judged.contains(&candidate.name) {
        // It was written more than once. The claim itself has made it ready for others.
        return Ok(true);
    }
    let mut locked = lock_for_take_of(cx.engine, db, key, index)?;
    if let Err(changed) = progress.token.pass(&cx.engine.databases, &locked, db) {
        if !progress.claimed.is_empty() {
            return Err(changed);
        }
        // It is as if the claim had begun after the change.
        progress.token = LazyToken::default();
    }
    let within = locked.db(db, key);
    let at = position_of(within, index).ok_or_else(|| dropped(index))?;
    let score = live_hash(within, within.entry(key), cx.worker.now_ms).and_then(|hash| index.definition.score(hash));
    // It has changed since. If it still has a score, it was noted with that.
    let Some(score) = score.filter(|score| *score == candidate.score) else { return Ok(true) };
    let taken = take_record(cx, claim, &mut locked, index, Some(at), (score, &candidate.name), &mut progress.claimed);
    if taken == Taken::NoRoom {
        offer.note_limited();
    }
    if taken == Taken::SetAside {
        cx.engine.waiting.records.note_set_aside(offer, db, &candidate.name, &candidate.set_aside_by);
    }
    if !progress.claimed.is_empty() && !progress.claimed.is_done(claim) {
        progress.token.take(&cx.engine.databases, &locked, db);
    }
    Ok(taken != Taken::Full)
}

/// Claims in a transaction or script, which has locked everything. All changes are one batch, and the claim does not
/// wait.
fn claim_held(cx: &mut ScriptCx<'_, '_>, claim: &Claim<'_>) -> CommandResult {
    let (engine, db) = (cx.engine, cx.client.db);
    let indexes = find_indexes(cx, claim)?;
    let mut held = cx.held.take().expect("the caller has looked");
    indexes::expire_for_index(engine, cx.worker, db, &mut held);
    let mut claimed = Claimed::new();
    for index in &indexes {
        if index.definition.has_queues() {
            let mut search = GroupedSearch::new(claim, index, claim.range);
            search.run_held(cx, claim, index, &mut held, &mut claimed);
            if claimed.count > 0 || claimed.is_full {
                break;
            }
            held.apply_pending(db);
            continue;
        }
        // A record is judged at most once, so all can be found before the first is changed.
        for (score, name) in find_held(claim, &held, db, index, cx.worker.now_ms) {
            if claimed.judged.contains(&name) {
                continue;
            }
            let taken = take_record(cx, claim, &mut held, index, None, (score, &name), &mut claimed);
            if claimed.is_done(claim) || taken == Taken::NoRoom {
                break;
            }
        }
        if claimed.count > 0 || claimed.is_full {
            break;
        }
        // Records that ELSE has changed may be in the next index, too.
        held.apply_pending(db);
    }
    cx.held = Some(held);
    reply(cx, claimed)
}

/// Finds as many qualifying records as the claim wants, and the records before them that were claimed too often.
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
