//! The search of CLAIM: the first records of an index that qualify, found with one shard locked at a time. Knows heads and
//! parts of an index; refuses to know what qualifies a record and what becomes of it.

use super::arguments::Claim;
use super::take::{Claimed, Taken, dropped, position_of, take_record};
use crate::error::CommandError;
use crate::execution::context::ScriptCx;
use crate::execution::engine::Engine;
use crate::execution::indexes::{RECORDS_PER_LOOK, SLICE_NS};
use crate::execution::waiting::records::Searched;
use keyspace::db::Db;
use keyspace::index::{Head, Heads, Index};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{Entry, Locked, Value};

/// What a slice of a claim has come to.
pub(super) enum Step {
    Done,
    /// There is more to look at: others go first.
    Yield,
    /// A record is there for clients that wait: they come first.
    LetOthersFirst,
}

/// A search for the first records of an index that qualify. It looks into one shard at a time: always the one that may
/// have the lowest score.
pub(super) struct Search {
    range: ScoreRange,
    /// What it knows of shards that it has looked into, if that is more than their heads say. Empty at first.
    floors: Vec<Option<Floor>>,
    /// How often a head was lowered when it began. When one is lowered meanwhile, it begins again.
    lowered: u64,
    restarts: usize,
    /// The lowest score above the range.
    next_score: f64,
    /// The name of the record that was found last.
    name: Vec<u8>,
}

/// How far a shard was looked at.
struct Floor {
    /// No record that is left comes before.
    head: Head,
    /// The last record that was looked at.
    behind: Option<(f64, Vec<u8>)>,
}

/// A slice of time, which begins when it is first asked whether it is over.
pub(super) struct Slice<'e> {
    engine: &'e Engine,
    until_ns: Option<u64>,
}

impl<'e> Slice<'e> {
    pub(super) fn new(engine: &'e Engine) -> Slice<'e> {
        Slice { engine, until_ns: None }
    }

    pub(super) fn is_over(&mut self) -> bool {
        let now_ns = self.engine.clock.monotonic_ns();
        now_ns >= *self.until_ns.get_or_insert(now_ns + SLICE_NS)
    }
}

/// How often a search begins again. After that it takes what it finds: records that have come before it since.
const RESTARTS_MAX: usize = 16;

/// What a look into a shard has found.
enum Found {
    /// A record of that score that seems to qualify. Its name is in the search.
    Record(f64),
    /// Nothing, or nothing that comes before what other shards may have.
    Nothing,
    /// The slice is over.
    Over,
}

impl Search {
    pub(super) fn new(heads: &Heads, range: ScoreRange) -> Search {
        Search {
            range,
            floors: Vec::new(),
            lowered: heads.lowered(),
            restarts: 0,
            next_score: f64::NEG_INFINITY,
            name: Vec::new(),
        }
    }

    /// How far it has come, if it has found nothing.
    pub(super) fn searched(&self) -> Searched {
        let ScoreBound { score, excluded } = self.range.max;
        Searched { up_to: if excluded { score.next_down() } else { score }, next_score: self.next_score }
    }

    /// Takes records until the claim has enough, there are no more, or a slice of time is over.
    pub(super) fn run(
        &mut self,
        cx: &mut ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        index: &Index,
        lets_others_first: bool,
        claimed: &mut Claimed,
    ) -> Result<Step, CommandError> {
        let (engine, db) = (cx.engine, cx.client.db);
        let heads = index.heads(db, engine.keyspace.shard_count());
        let offer = cx.client.record_offer();
        // Most claims are over before the clock is read.
        let mut slice = Slice::new(engine);
        loop {
            let Some((shard, others)) = self.choose(heads) else {
                if self.begins_again(heads) {
                    continue;
                }
                return Ok(Step::Done);
            };
            let mut locked = engine.keyspace.lock_shard_unless_busy(shard).ok_or_else(|| engine.busy())?;
            let at = position_of(nth_db(&locked, db), index).ok_or_else(|| dropped(index))?;
            locked.settle_index(db, at);
            let mut is_over = false;
            while !claimed.is_done(claim) && !is_over {
                match self.look(cx, claim, (nth_db(&locked, db), shard, at), index, others, claimed, &mut slice) {
                    Found::Nothing => break,
                    Found::Over => is_over = true,
                    Found::Record(_) if self.begins_again(heads) => break,
                    // A write that brought it has told those that wait before its lock was released. Once the claim has
                    // begun, its own changes may be for them.
                    Found::Record(_)
                        if lets_others_first
                            && claimed.is_empty()
                            && engine.record_waiters.are_ready(index, db, cx.worker.now_ms) =>
                    {
                        return Ok(Step::LetOthersFirst);
                    }
                    Found::Record(score) => {
                        let name = std::mem::take(&mut self.name);
                        // Before the change makes it ready anew.
                        let set_aside_by =
                            offer.as_ref().map(|offer| engine.record_waiters.set_aside_by(offer, db, &name));
                        let taken = take_record(cx, claim, &mut locked, index, Some(at), (score, &name), claimed);
                        if let (Taken::SetAside, Some(offer), Some(before)) = (taken, &offer, &set_aside_by) {
                            engine.record_waiters.note_set_aside(offer, db, &name, before);
                        }
                        debug_assert_ne!(taken, Taken::Not, "it was judged under the same lock");
                        self.name = name;
                        // Many that had expired, or are set aside, or are claimed at once.
                        is_over = !claimed.is_done(claim) && slice.is_over();
                    }
                }
            }
            if claimed.is_done(claim) {
                return Ok(Step::Done);
            }
            is_over |= slice.is_over();
            if is_over {
                // Records are spread evenly over shards.
                let in_all = nth_db(&locked, db).part(at).map_or(0, |part| part.len()) * engine.keyspace.shard_count();
                claimed.expect_more(in_all.min(claim.count - claimed.count), cx.client.output_bytes_max);
            }
            locked.release_fairly();
            if is_over {
                return Ok(Step::Yield);
            }
        }
    }

    /// The shard that may have the lowest score, and the lowest that any other may have; `None` when none has any within
    /// the range.
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

    /// The first record that a shard may still have, as far as it is known.
    fn floor(&self, shard: usize, head: Head) -> Head {
        match self.floors.get(shard) {
            Some(Some(floor)) => floor.head,
            _ if self.range.is_above(head.score()) => Head::new(self.range.min.score, b""),
            _ => head,
        }
    }

    /// True when a lower score has come since it began, so that it begins again.
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

    /// Looks for the next record in a shard.
    #[allow(clippy::too_many_arguments, reason = "one look, with all that it is about")]
    fn look(
        &mut self,
        cx: &ScriptCx<'_, '_>,
        claim: &Claim<'_>,
        (db, shard, at): (&Db, usize, usize),
        index: &Index,
        others: Head,
        claimed: &Claimed,
        slice: &mut Slice<'_>,
    ) -> Found {
        let (engine, now_ms) = (cx.engine, cx.worker.now_ms);
        let Some(part) = db.part(at) else { return self.leave(shard, Head::NONE, None) };
        let floor = self.floors.get_mut(shard).and_then(Option::take);
        // A shard whose first record was not looked at yet is known by its head, which is exact.
        let was_left = floor.is_some();
        let behind = floor.and_then(|floor| floor.behind);
        let start = match &behind {
            Some((score, name)) => part.partition_point(|item| db.is_indexed_up_to(*item, *score, name)),
            None if self.range.min.score == f64::NEG_INFINITY => 0,
            None => part.partition_point(|item| self.range.is_above(item.0)),
        };
        let mut last = None;
        let behind = |last: Option<(f64, &Entry)>| match last {
            Some((score, entry)) => Some((score, entry.name().to_vec())),
            None => behind,
        };
        for (looked_at, item) in part.range(start..part.len()).enumerate() {
            let Some(entry) = db.indexed(item) else { continue };
            let head = index.definition.head(item.0, entry.name());
            if head > others || !self.range.reaches(item.0) {
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
                // What has expired is removed on the way.
                _ if Db::is_expired(entry, now_ms) => engine.may_expire(),
                Value::Hash(hash) => claim.judge(hash).is_some() && !claimed.judged.contains(entry.name()),
                _ => false,
            };
            if qualifies {
                if was_left || start > 0 || looked_at > 0 {
                    self.leave(shard, head, behind(last));
                }
                self.name.clear();
                self.name.extend_from_slice(entry.name());
                return Found::Record(item.0);
            }
            last = Some((item.0, entry));
        }
        self.leave(shard, Head::NONE, behind(last))
    }

    /// Notes how far a shard was looked at.
    fn leave(&mut self, shard: usize, head: Head, behind: Option<(f64, Vec<u8>)>) -> Found {
        if self.floors.len() <= shard {
            self.floors.resize_with(shard + 1, || None);
        }
        self.floors[shard] = Some(Floor { head, behind });
        Found::Nothing
    }
}

/// The database of the one shard that is locked.
fn nth_db<'l>(locked: &'l Locked<'_>, db: usize) -> &'l Db {
    let (_, shard) = locked.shards().next().expect("a shard is locked");
    shard.db(db)
}
