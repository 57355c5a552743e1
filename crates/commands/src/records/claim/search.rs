//! The search of CLAIM: finds the first qualifying records of an index, with one shard locked at a time. Knows heads
//! and parts of an index; refuses to know which records qualify and how they are changed.

use super::arguments::Claim;
use super::locks::{lock_for_take, ms_of, rates_now_ns, shard_db};
use super::side;
use super::take::{Claimed, Taken, dropped, position_of, take_record};
use execution::conditions;
use execution::context::ScriptCx;
use execution::database_tokens::LazyToken;
use execution::engine::Engine;
use execution::error::CommandError;
use execution::slices::{LazyTimeSlice, RECORDS_PER_LOOK};
use execution::waiting::records::Searched;
use keyspace::db::Db;
use keyspace::index::{Head, Heads, Index};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{Entry, HashRef, Value};
use smallvec::SmallVec;

/// The result of one slice of a claim.
pub(super) enum Step {
    Done,
    /// The search is not finished: yield.
    Yield,
    /// There is a record for waiters: serve them first.
    LetOthersFirst,
    /// So many records were rejected that the search is left to the waiters with the same criteria.
    Long,
    /// The database was emptied or swapped: what was searched does not exist any more.
    DatabaseChanged,
}

/// A search for the first qualifying records of an index. It visits one shard at a time: always the one that may have
/// the lowest score.
pub(super) struct ClaimSearch {
    range: ScoreRange,
    /// Lower bounds of visited shards, where they are higher than the shards' heads. Empty at first.
    floors: Vec<Option<Floor>>,
    shard_count: usize,
    /// `Heads::lowered` when it began. When a head is lowered meanwhile, the search restarts.
    lowered: u64,
    restarts: usize,
    /// The lowest score above the range.
    next_score: f64,
    /// The name of the last record found.
    name: Vec<u8>,
    /// How many records it has rejected.
    passed: usize,
    /// The score of the last record taken.
    pub(super) reached: Option<f64>,
    /// When a rate allows a take again.
    again_ms: Option<u64>,
}

/// How far a shard was searched.
struct Floor {
    /// No remaining record comes before this.
    head: Head,
    /// The last record visited.
    behind: Option<(f64, Vec<u8>)>,
}

/// How often a search restarts. After that it takes what it finds, even if records with lower scores were added.
const RESTARTS_MAX: usize = 16;

/// How a claim searches.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// When there is a record for waiters, they are served first.
    pub(super) lets_others_first: bool,
    /// It rejects at most `claim-reject-max` records before it gives up: see [`Step::Long`]. Beyond that, one search
    /// serves all waiters with the same criteria.
    pub(super) is_brief: bool,
}

/// A shard that is locked and searched.
struct ShardLook<'l> {
    /// The database in this shard.
    db: &'l Db,
    shard: usize,
    index: &'l Index,
    /// The position of the index among those of the database.
    at: usize,
    /// The positions of its side indexes.
    sides: &'l [usize],
    /// The lowest record that another shard may have.
    others: Head,
}

/// The result of a look into a shard.
enum Found {
    /// A record of that score that seems to qualify. Its name is in the search.
    Record(f64),
    /// No record, or none that comes before those of other shards.
    Nothing,
    /// The slice is over.
    Over,
}

impl ClaimSearch {
    pub(super) fn new(heads: &Heads, range: ScoreRange) -> ClaimSearch {
        ClaimSearch {
            range,
            floors: Vec::new(),
            shard_count: heads.iter().len(),
            lowered: heads.lowered(),
            restarts: 0,
            next_score: f64::NEG_INFINITY,
            name: Vec::new(),
            passed: 0,
            reached: None,
            again_ms: None,
        }
    }

    /// How far it has searched without finding a record.
    pub(super) fn searched(&self) -> Searched {
        let ScoreBound { score, excluded } = self.range.max;
        let up_to = if excluded { score.next_down() } else { score };
        Searched { up_to, next_score: self.next_score, again_ms: self.again_ms }
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
        let heads = index.heads(db, engine.keyspace.shard_count());
        let offer = cx.client.record_offer();
        let reject_max = engine.settings.claim_reject_max();
        // Most claims are over before the clock is read.
        let mut slice = LazyTimeSlice::new(engine);
        loop {
            let Some((shard, others)) = self.choose(heads) else {
                if self.begins_again(heads) {
                    continue;
                }
                return Ok(Step::Done);
            };
            if index.groups.limits_all() && self.is_closed(engine, index, db, cx.worker.now_ms) {
                return Ok(Step::Done);
            }
            let mut locked = lock_for_take(engine, shard, index, None)?;
            if token.pass(&engine.databases, &locked, db).is_err() {
                return Ok(Step::DatabaseChanged);
            }
            let at = position_of(shard_db(&locked, shard, db), index).ok_or_else(|| dropped(index))?;
            locked.settle_index(db, at);
            let sides = match self.passed >= reject_max {
                true => side::positions(shard_db(&locked, shard, db), claim, index),
                false => SmallVec::new(),
            };
            let mut is_over = false;
            while !claimed.is_done(claim) && !is_over {
                // The last change has changed these indexes, too.
                sides.iter().for_each(|at| locked.settle_index(db, *at));
                let look = ShardLook { db: shard_db(&locked, shard, db), shard, index, at, sides: &sides, others };
                match self.look(cx, claim, &look, claimed, &mut slice) {
                    Found::Nothing => break,
                    Found::Over => is_over = true,
                    Found::Record(_) if self.begins_again(heads) => break,
                    // The write that created the record has notified the waiters before its lock was released. Once the
                    // claim has begun, its own changes may be for them.
                    Found::Record(_)
                        if how.lets_others_first
                            && claimed.is_empty()
                            && engine.waiting.records.are_ready(index, db, cx.worker.now_ms) =>
                    {
                        return Ok(Step::LetOthersFirst);
                    }
                    Found::Record(score) => {
                        let name = std::mem::take(&mut self.name);
                        // Before the change offers the record again.
                        let set_aside_by =
                            offer.as_ref().map(|offer| engine.waiting.records.set_aside_by(offer, db, &name));
                        let taken = take_record(cx, claim, &mut locked, index, Some(at), (score, &name), claimed);
                        if let (Taken::SetAside, Some(offer), Some(before)) = (taken, &offer, &set_aside_by) {
                            engine.waiting.records.note_set_aside(offer, db, &name, before);
                        }
                        if taken == Taken::NoRoom {
                            // A limit for the whole index is reached.
                            self.is_closed(engine, index, db, cx.worker.now_ms);
                            return Ok(Step::Done);
                        }
                        debug_assert_ne!(taken, Taken::Not, "it was judged under the same lock");
                        self.name = name;
                        self.reached = Some(score);
                        // Many records may have expired, be set aside, or be claimed at once.
                        is_over = !claimed.is_done(claim) && slice.is_over();
                    }
                }
            }
            if claimed.is_done(claim) {
                return Ok(Step::Done);
            }
            if how.is_brief && claimed.is_empty() && self.passed > reject_max {
                return Ok(Step::Long);
            }
            is_over |= slice.is_over();
            if is_over || !claimed.is_empty() {
                // IMPORTANT: under the lock. The rest of the work belongs to the same database.
                token.take(&engine.databases, &locked, db);
            }
            if is_over {
                // Records are spread evenly over shards.
                let in_all =
                    shard_db(&locked, shard, db).part(at).map_or(0, |part| part.len()) * engine.keyspace.shard_count();
                claimed.expect_more(in_all.min(claim.count - claimed.count), cx.client.output_bytes_max);
            }
            locked.release_fairly();
            if is_over {
                return Ok(Step::Yield);
            }
        }
    }

    /// True when a limit for the whole index allows no take now.
    fn is_closed(&mut self, engine: &Engine, index: &Index, db: usize, now_ms: u64) -> bool {
        let mut groups = index.groups.lock(db);
        groups.pass_time(rates_now_ns(engine, index, now_ms));
        let Some(again_ns) = groups.closed() else { return false };
        self.next_score = f64::INFINITY;
        self.again_ms = again_ns.map(ms_of);
        true
    }

    /// The shard that may have the lowest score, and the lowest that any other may have; `None` when no shard has a
    /// score within the range.
    fn choose(&mut self, heads: &Heads) -> Option<(usize, Head)> {
        let (mut lowest, mut shard, mut others) = (Head::NONE, 0, Head::NONE);
        let mut meet = |number: usize, head: Head| {
            others = others.min(lowest.max(head));
            if head < lowest {
                (lowest, shard) = (head, number);
            }
        };
        match self.floors.is_empty() && self.range.min.score == f64::NEG_INFINITY {
            true => heads.iter().enumerate().for_each(|(number, head)| meet(number, head)),
            false => heads.iter().enumerate().for_each(|(number, head)| meet(number, self.floor(number, head))),
        }
        let score = lowest.score();
        self.next_score = score;
        (score < f64::INFINITY && self.range.reaches(score)).then_some((shard, others))
    }

    /// A lower bound of the records that a shard still has.
    fn floor(&self, shard: usize, head: Head) -> Head {
        match self.floors.get(shard) {
            Some(Some(floor)) => floor.head,
            _ if self.range.is_above(head.score()) => Head::new(self.range.min.score, b""),
            _ => head,
        }
    }

    /// True when a lower score was added since the search began: it restarts.
    fn begins_again(&mut self, heads: &Heads) -> bool {
        let lowered = heads.lowered();
        if lowered == self.lowered || self.restarts == RESTARTS_MAX {
            return false;
        }
        self.lowered = lowered;
        self.restarts += 1;
        self.floors.clear();
        true
    }

    /// Finds the next record in a shard.
    fn look(
        &mut self,
        cx: &ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        look: &ShardLook<'_>,
        claimed: &Claimed,
        slice: &mut LazyTimeSlice<'_>,
    ) -> Found {
        let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
        let ShardLook { db, shard, index, at, sides, others } = *look;
        let Some(part) = db.part(at) else { return self.leave(shard, Head::NONE, None) };
        let floor = self.floors.get_mut(shard).and_then(Option::take);
        // For a shard that was not visited yet, the head is exact.
        let was_left = floor.is_some();
        let behind = floor.and_then(|floor| floor.behind);
        let start = match &behind {
            Some((score, name)) => part.partition_point(|item| db.is_indexed_up_to(*item, *score, name)),
            None if self.range.min.score == f64::NEG_INFINITY => 0,
            None => part.partition_point(|item| self.range.is_above(item.0)),
        };
        if !sides.is_empty()
            && let Some(side) = side::choose(db, claim, sides, part.len() - start)
        {
            let qualifies =
                |hash: HashRef<'_>, name: &[u8]| claim.judge(hash).is_some() && !claimed.judged.contains(name);
            let last = behind.as_ref().map(|(score, name)| (*score, &name[..]));
            let Some(first) = side.first(db, index, &self.range, last, now_ms, qualifies) else {
                return self.leave(shard, Head::NONE, None);
            };
            let head = index.definition.head(first.score, first.name);
            self.leave(shard, head, behind);
            if head > others || !self.range.reaches(first.score) {
                return Found::Nothing;
            }
            self.name.clear();
            self.name.extend_from_slice(first.name);
            return Found::Record(first.score);
        }
        // Most rejected records come one by one from each shard in turn, and switching shards takes longer than
        // checking a record. So a shard is searched beyond the lowest record of the others, by at most as many records
        // as were rejected so far per shard.
        let mut ahead = self.passed / self.shard_count;
        let mut last = None;
        let behind = |last: Option<(f64, &Entry)>| match last {
            Some((score, entry)) => Some((score, entry.name().to_vec())),
            None => behind,
        };
        for (looked_at, item) in part.range(start..part.len()).enumerate() {
            let Some(entry) = db.indexed(item) else { continue };
            let head = index.definition.head(item.0, entry.name());
            let is_ahead = head > others;
            if is_ahead && ahead == 0 || !self.range.reaches(item.0) {
                if was_left || start > 0 || looked_at > 0 {
                    return self.leave(shard, head, behind(last));
                }
                return Found::Nothing;
            }
            if looked_at % RECORDS_PER_LOOK == RECORDS_PER_LOOK - 1 && slice.is_over() {
                self.leave(shard, head, behind(last));
                return Found::Over;
            }
            let qualifies = match db.value(entry, now_ms) {
                // Expired records are removed on the way.
                _ if Db::is_expired(entry, now_ms) => conditions::may_expire(engine),
                Value::Hash(hash) => claim.judge(hash).is_some() && !claimed.judged.contains(entry.name()),
                _ => false,
            };
            if qualifies && is_ahead {
                return self.leave(shard, head, behind(last));
            }
            if qualifies {
                if was_left || start > 0 || looked_at > 0 {
                    self.leave(shard, head, behind(last));
                }
                self.name.clear();
                self.name.extend_from_slice(entry.name());
                return Found::Record(item.0);
            }
            last = Some((item.0, entry));
            self.passed += 1;
            ahead -= usize::from(is_ahead);
        }
        self.leave(shard, Head::NONE, behind(last))
    }

    /// Notes how far a shard was searched.
    fn leave(&mut self, shard: usize, head: Head, behind: Option<(f64, Vec<u8>)>) -> Found {
        if self.floors.len() <= shard {
            self.floors.resize_with(shard + 1, || None);
        }
        self.floors[shard] = Some(Floor { head, behind });
        Found::Nothing
    }
}
