//! The search of CLAIM in an index with groups: looks at the records that groups may give, one after the other, each
//! under its own lock. Knows groups; refuses to know in which order groups give.

use super::arguments::Claim;
use super::locks::{lock_for_take, ms_of, rates_now_ns, shard_db};
use super::search::{How, Step};
use super::take::{Claimed, Taken, dropped, live_hash, position_of, take_record};
use execution::conditions;
use execution::context::ScriptCx;
use execution::database_tokens::LazyToken;
use execution::error::CommandError;
use execution::indexes;
use execution::slices::LazyTimeSlice;
use execution::waiting::records::Searched;
use keyspace::db::Db;
use keyspace::index::Index;
use keyspace::index::groups::{Found, GroupRef, GroupSearch, Take};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{Locked, NameHash};

/// A search of the groups of an index.
pub(super) struct GroupedSearch {
    search: GroupSearch,
    was_taken: bool,
    next_score: f64,
    again_ms: Option<u64>,
    /// How many records it has rejected.
    passed: usize,
}

/// A record that a group may give.
struct Offer {
    group: GroupRef,
    name: Vec<u8>,
    score: f64,
    id: u64,
}

/// What became of a record that was found.
enum Looked {
    Taken(Taken),
    /// It does not qualify, or has changed.
    Rejected,
    LetOthersFirst,
}

impl GroupedSearch {
    pub(super) fn new(claim: &Claim<'_>, index: &Index, range: ScoreRange) -> GroupedSearch {
        let take = Take { holds: claim.holds(&index.definition), counts: true };
        GroupedSearch {
            search: GroupSearch::new(claim.order, take, range),
            was_taken: false,
            next_score: f64::NEG_INFINITY,
            again_ms: None,
            passed: 0,
        }
    }

    /// How far it has searched without finding a record.
    pub(super) fn searched(&self) -> Searched {
        let ScoreBound { score, excluded } = self.search.range.max;
        let up_to = if excluded { score.next_down() } else { score };
        Searched { up_to, next_score: self.next_score, again_ms: self.again_ms }
    }

    /// The next record that a group may give; `None` at the end. `Err` when more steps are needed.
    fn next(&mut self, cx: &ScriptCx<'_, '_>, index: &Index) -> Result<Option<Offer>, ()> {
        let now_ns = rates_now_ns(cx.engine, index, cx.worker.now_ms);
        let mut groups = index.groups.lock(cx.client.db);
        match self.search.next(&mut groups, std::mem::take(&mut self.was_taken), now_ns) {
            Found::Unfinished => Err(()),
            Found::Nothing { next_score, again_ns } => {
                self.next_score = next_score;
                self.again_ms = again_ns.map(ms_of);
                Ok(None)
            }
            Found::Record { group, score, id } => {
                let name = groups.name(group).expect("it was just found").to_vec();
                Ok(Some(Offer { group, name, score, id }))
            }
        }
    }

    /// Takes records until the claim has enough, there are no more, or a slice of time is over.
    pub(super) fn run(
        &mut self,
        cx: &mut ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        index: &Index,
        how: How,
        claimed: &mut Claimed,
        token: &mut LazyToken,
    ) -> Result<Step, CommandError> {
        let (engine, db) = (cx.engine, cx.client.db);
        let reject_max = engine.settings.claim_reject_max();
        let mut slice = LazyTimeSlice::new(engine);
        loop {
            let offer = match self.next(cx, index) {
                Ok(Some(offer)) => offer,
                Ok(None) => return Ok(Step::Done),
                Err(()) if slice.is_over() => {
                    self.take_token(cx, token)?;
                    return Ok(Step::Yield);
                }
                Err(()) => continue,
            };
            let shard = NameHash::shard_of(offer.id);
            let mut locked = lock_for_take(engine, shard, index, Some(&offer.name))?;
            if token.pass(&engine.databases, &locked, db).is_err() {
                return Ok(Step::DatabaseChanged);
            }
            position_of(shard_db(&locked, shard, db), index).ok_or_else(|| dropped(index))?;
            match self.look(cx, claim, index, &offer, &mut locked, claimed, how.lets_others_first) {
                Looked::LetOthersFirst => return Ok(Step::LetOthersFirst),
                Looked::Taken(Taken::Claimed) => {}
                Looked::Taken(_) | Looked::Rejected => self.passed += 1,
            }
            if claimed.is_done(claim) {
                return Ok(Step::Done);
            }
            let is_over = slice.is_over();
            if is_over || !claimed.is_empty() {
                // IMPORTANT: under the lock. The rest of the work belongs to the same database.
                token.take(&engine.databases, &locked, db);
            }
            locked.release_fairly();
            if how.is_brief && claimed.is_empty() && self.passed > reject_max {
                return Ok(Step::Long);
            }
            if is_over {
                return Ok(Step::Yield);
            }
        }
    }

    /// Takes a token before the first record was looked at.
    fn take_token(&self, cx: &ScriptCx<'_, '_>, token: &mut LazyToken) -> Result<(), CommandError> {
        let engine = cx.engine;
        let locked = engine.keyspace.lock_shard_unless_busy(0).ok_or_else(|| conditions::busy(engine))?;
        token.take(&engine.databases, &locked, cx.client.db);
        Ok(())
    }

    /// Takes records under locks that hold everything.
    pub(super) fn run_held(
        &mut self,
        cx: &mut ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        index: &Index,
        locked: &mut Locked<'_>,
        claimed: &mut Claimed,
    ) {
        let db = cx.client.db;
        indexes::expire_for_index(cx.engine, cx.worker, db, locked);
        while !claimed.is_done(claim) {
            match self.next(cx, index) {
                Err(()) => {}
                Ok(None) => return,
                Ok(Some(offer)) => drop(self.look(cx, claim, index, &offer, locked, claimed, false)),
            }
        }
    }

    /// Looks at a record under the lock of its shard, and takes it if it qualifies.
    #[allow(clippy::too_many_arguments, reason = "the parts of one look")]
    fn look(
        &mut self,
        cx: &mut ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        index: &Index,
        offer: &Offer,
        locked: &mut Locked<'_>,
        claimed: &mut Claimed,
        lets_others_first: bool,
    ) -> Looked {
        let (engine, db, now_ms) = (cx.engine, cx.client.db, cx.worker.now_ms);
        let within = shard_db(locked, NameHash::shard_of(offer.id), db);
        let entry = within.grouped(offer.id);
        let qualifies = entry.is_some_and(|entry| match live_hash(within, Some(entry), now_ms) {
            Some(hash) => claim.judge(hash).is_some() && !claimed.judged.contains(entry.name()),
            // Expired records are removed on the way.
            None => Db::is_expired(entry, now_ms) && conditions::may_expire(engine),
        });
        let name = entry.filter(|_| qualifies).map(|entry| entry.name().to_vec());
        let Some(name) = name else {
            self.search.note_seen(offer.group, offer.score, offer.id);
            return Looked::Rejected;
        };
        if lets_others_first && claimed.is_empty() && engine.waiting.records.are_ready(index, db, now_ms) {
            return Looked::LetOthersFirst;
        }
        let served = cx.client.record_offer();
        // Before the change offers the record again.
        let set_aside_by = served.as_ref().map(|served| engine.waiting.records.set_aside_by(served, db, &name));
        let taken = take_record(cx, claim, locked, index, None, (offer.score, &name), claimed);
        if let (Taken::SetAside, Some(served), Some(before)) = (taken, &served, &set_aside_by) {
            engine.waiting.records.note_set_aside(served, db, &name, before);
        }
        match taken {
            Taken::Claimed => self.was_taken = true,
            // It may be in another group now, which comes before this one.
            Taken::Gone => {
                self.was_taken = true;
                self.search.note_seen(offer.group, offer.score, offer.id);
            }
            // IMPORTANT: also when a limit is in the way now, so that every step comes further.
            Taken::Not | Taken::SetAside | Taken::Full | Taken::NoRoom => {
                self.search.note_seen(offer.group, offer.score, offer.id);
            }
        }
        Looked::Taken(taken)
    }
}
