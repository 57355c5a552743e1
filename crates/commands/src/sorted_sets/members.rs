//! Sorted set commands about single members. Ranges of members are in `ranges`, pops from either end in `pops`,
//! operations on several sets in `algebra`, ZSCAN and random members in `scan`.

use super::gathered::Gathered;
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::recorder::Recorder;
use execution::settings::events::Events;
use keyspace::types::sorted_set::{self, Direction, Member};
use keyspace::{Cause, Effect, Image, Key, SortedSetRef};
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits, parse_f64};
use resp::{Protocol, Reply};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;

/// A score and the member that is to have it.
pub(crate) type Scored<'a> = (f64, &'a [u8]);

// Replies and changes that the other files share ----------------------------------------------------------------------

/// Writes a score.
pub(crate) fn reply_score(reply: &mut Reply<'_>, score: f64) {
    reply.double_text(format_f64_in_17_digits(score, &mut [0; F64_CHARS_MAX]));
}

/// Writes members, with or without their scores: pairs in RESP3, a flat array in RESP2.
pub(super) struct Answer<'r, 'o> {
    pub(super) reply: &'r mut Reply<'o>,
    pub(super) scores: bool,
}

impl Answer<'_, '_> {
    pub(super) fn begin(&mut self, members: usize) {
        let elements = self.elements(members);
        self.reply.array(elements);
    }

    /// The number of array elements for so many members.
    pub(super) fn elements(&self, members: usize) -> usize {
        let flat = self.scores && self.reply.protocol() == Protocol::Resp2;
        if flat { members * 2 } else { members }
    }

    pub(super) fn add(&mut self, member: &Member<'_>) {
        self.begin_member();
        member.name.reply(self.reply);
        self.end_member(member.score);
    }

    pub(super) fn add_named(&mut self, name: &[u8], score: f64) {
        self.begin_member();
        self.reply.bulk(name);
        self.end_member(score);
    }

    fn begin_member(&mut self) {
        if self.scores && self.reply.protocol() == Protocol::Resp3 {
            self.reply.array(2);
        }
    }

    fn end_member(&mut self, score: f64) {
        if self.scores {
            reply_score(self.reply, score);
        }
    }
}

/// The most members that one effect removes.
const REMOVED_AT_ONCE: usize = 4096;

/// Removes the members of these ranks, at least one, from the set at a key, and notifies subscribers.
pub(super) fn remove_ranks(keys: &mut Recorder<'_>, key: Key<'_>, ranks: Range<usize>, event: &'static str) {
    let mut left = ranks.len();
    while left > 0 {
        let set = keys.view().typed::<SortedSetRef>(key).ok().flatten().expect("members are left");
        if left == set.len() {
            keys.record(&Effect::Delete { key, cause: Cause::Deleted });
            keys.notify(Events::ZSET, event, key);
            keys.notify(Events::GENERIC, "del", key);
            return;
        }
        let some = left.min(REMOVED_AT_ONCE);
        let gathered: Gathered = set.members(ranks.start..ranks.start + some, Direction::Ascending).collect();
        let names: SmallVec<[&[u8]; 4]> = gathered.iter().map(|(_, name)| name).collect();
        keys.record(&Effect::change(key, sorted_set::Change::Remove { members: &names }));
        left -= some;
    }
    keys.notify(Events::ZSET, event, key);
}

/// Stores a set of these members, which are in order, at a key, and replies their number. Without members, the key is
/// deleted.
pub(crate) fn store(cx: &mut WriteCx<'_>, to: Key<'_>, members: &[Scored<'_>], event: &'static str) -> CommandResult {
    cx.keys.remove_if_expired(cx.keys.db(), to);
    if !members.is_empty() {
        let mut image = Vec::new();
        sorted_set::put_image(members, &cx.keys.thresholds().sorted_set, &mut image);
        let value = Image { value_type: &sorted_set::TYPE, bytes: &image };
        cx.keys.replace(&Effect::Put { key: to, value, deadline: None })?;
        cx.keys.notify(Events::ZSET, event, to);
    } else if cx.keys.view().exists(to) {
        cx.keys.replace(&Effect::Delete { key: to, cause: Cause::Deleted })?;
        cx.keys.notify(Events::GENERIC, "del", to);
    }
    cx.reply.integer(members.len() as i64);
    Ok(())
}

// Adding --------------------------------------------------------------------------------------------------------------

/// The options of ZADD.
#[derive(Default)]
pub(crate) struct Rules {
    /// Existing members stay as they are.
    pub(crate) only_new: bool,
    /// Only existing members change.
    pub(crate) only_known: bool,
    /// Scores of existing members only grow.
    only_greater: bool,
    /// Scores of existing members only shrink.
    only_less: bool,
    /// Reply with the number of changed members, not of new ones.
    pub(crate) count_changed: bool,
    /// Scores are added to the members' current scores.
    increment: bool,
}

impl Rules {
    fn take(args: &mut Args<'_>, increment: bool) -> Rules {
        let mut rules = Rules { increment, ..Rules::default() };
        while let Some(word) = args.peek() {
            let rule = if is_word(word, "NX") {
                &mut rules.only_new
            } else if is_word(word, "XX") {
                &mut rules.only_known
            } else if is_word(word, "CH") {
                &mut rules.count_changed
            } else if is_word(word, "INCR") {
                &mut rules.increment
            } else if is_word(word, "GT") {
                &mut rules.only_greater
            } else if is_word(word, "LT") {
                &mut rules.only_less
            } else {
                break;
            };
            *rule = true;
            args.try_next();
        }
        rules
    }

    fn check(&self, members: usize) -> CommandResult {
        if self.only_new && self.only_known {
            return Err(CommandError::fixed("ERR XX and NX options at the same time are not compatible"));
        }
        let one_way = self.only_greater || self.only_less;
        if one_way && self.only_new || self.only_greater && self.only_less {
            return Err(CommandError::fixed("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.increment && members > 1 {
            return Err(CommandError::fixed("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// The new score of a member; `None` when the rules leave it as it is.
    fn outcome(&self, current: Option<f64>, score: f64) -> Result<Option<f64>, CommandError> {
        let Some(current) = current else { return Ok((!self.only_known).then_some(score)) };
        if self.only_new {
            return Ok(None);
        }
        let score = if self.increment { score + current } else { score };
        if score.is_nan() {
            return Err(CommandError::fixed("ERR resulting score is not a number (NaN)"));
        }
        let left_alone = self.only_less && score >= current || self.only_greater && score <= current;
        Ok((!left_alone).then_some(score))
    }
}

pub(super) fn zadd(cx: &mut WriteCx<'_>) -> CommandResult {
    add(cx, false)
}

pub(super) fn zincrby(cx: &mut WriteCx<'_>) -> CommandResult {
    add(cx, true)
}

fn add(cx: &mut WriteCx<'_>, increment: bool) -> CommandResult {
    let key = cx.args.key()?;
    let rules = Rules::take(&mut cx.args, increment);
    if cx.args.is_empty() || !cx.args.left().is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    rules.check(cx.args.left() / 2)?;
    let mut given: SmallVec<[Scored<'_>; 8]> = SmallVec::with_capacity(cx.args.left() / 2);
    while let (Some(score), Some(name)) = (cx.args.try_next(), cx.args.try_next()) {
        given.push((parse_f64(score).ok_or(CommandError::NotFloat)?, name));
    }
    add_members(cx, key, &rules, &given)
}

/// Sets the scores of members, as far as the rules allow, and replies.
pub(crate) fn add_members(cx: &mut WriteCx<'_>, key: Key<'_>, rules: &Rules, given: &[Scored<'_>]) -> CommandResult {
    let set = cx.keys.to_change::<SortedSetRef>(key)?;
    let mut changes = Changes::new(given.len());
    let (mut added, mut updated, mut result) = (0, 0, None);
    for &(score, name) in given {
        let current = changes.score(name).or_else(|| set.as_ref().and_then(|set| set.score(name)));
        result = rules.outcome(current, score)?;
        match result {
            Some(score) if current.is_none() => {
                changes.add((score, name));
                added += 1;
            }
            Some(score) if current != Some(score) => {
                changes.add((score, name));
                updated += 1;
            }
            _ => {}
        }
    }
    if !changes.members.is_empty() {
        cx.keys.record(&Effect::change(key, sorted_set::Change::Add { members: &changes.members }));
        cx.keys.notify(Events::ZSET, if rules.increment { "zincr" } else { "zadd" }, key);
    }
    match (rules.increment, result) {
        (true, Some(score)) => reply_score(&mut cx.reply, score),
        (true, None) => cx.reply.null(),
        (false, _) => cx.reply.integer(if rules.count_changed { added + updated } else { added }),
    }
    Ok(())
}

/// The changes of one ZADD, in order. A member may occur several times: each time it starts from its latest score.
struct Changes<'a> {
    members: SmallVec<[Scored<'a>; 8]>,
    /// The latest score by name, where searching all members would take long.
    latest: Option<HashMap<&'a [u8], f64>>,
}

impl<'a> Changes<'a> {
    fn new(members_max: usize) -> Changes<'a> {
        let latest = (members_max > 8).then(|| HashMap::with_capacity(members_max));
        Changes { members: SmallVec::new(), latest }
    }

    fn score(&self, name: &[u8]) -> Option<f64> {
        match &self.latest {
            Some(latest) => latest.get(name).copied(),
            None => self.members.iter().rfind(|(_, known)| *known == name).map(|(score, _)| *score),
        }
    }

    fn add(&mut self, member: Scored<'a>) {
        self.members.push(member);
        if let Some(latest) = &mut self.latest {
            latest.insert(member.1, member.0);
        }
    }
}

// Removing and reading ------------------------------------------------------------------------------------------------

pub(super) fn zrem(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let members: SmallVec<[&[u8]; 8]> = cx.args.rest().collect();
    let removed = match cx.keys.to_change::<SortedSetRef>(key)? {
        Some(set) if members.iter().any(|name| set.score(name).is_some()) => {
            let removed = cx.keys.record(&Effect::change(key, sorted_set::Change::Remove { members: &members }));
            cx.keys.notify(Events::ZSET, "zrem", key);
            if removed.emptied() {
                cx.keys.notify(Events::GENERIC, "del", key);
            }
            removed.count
        }
        _ => 0,
    };
    cx.reply.integer(removed as i64);
    Ok(())
}

pub(super) fn zcard(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.integer(set.map_or(0, |set| set.len()) as i64);
    Ok(())
}

pub(super) fn zscore(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, name) = (cx.args.key()?, cx.args.bytes()?);
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    match set.and_then(|set| set.score(name)) {
        Some(score) => reply_score(&mut cx.reply, score),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn zmscore(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.array(cx.args.left());
    for name in cx.args.rest() {
        match set.as_ref().and_then(|set| set.score(name)) {
            Some(score) => reply_score(&mut cx.reply, score),
            None => cx.reply.null(),
        }
    }
    Ok(())
}

pub(super) fn zrank(cx: &mut ReadCx<'_>) -> CommandResult {
    rank(cx, |rank, _| rank)
}

pub(super) fn zrevrank(cx: &mut ReadCx<'_>) -> CommandResult {
    rank(cx, |rank, len| len - 1 - rank)
}

fn rank(cx: &mut ReadCx<'_>, counted: fn(usize, usize) -> usize) -> CommandResult {
    let (key, name) = (cx.args.key()?, cx.args.bytes()?);
    if cx.args.left() > 1 {
        return Err(CommandError::WrongArity(cx.command.command.name.into()));
    }
    let with_score = cx.args.take_word("WITHSCORE");
    cx.args.finish()?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let found = set.and_then(|set| set.rank(name).map(|(rank, score)| (counted(rank, set.len()), score)));
    match (found, with_score) {
        (Some((rank, _)), false) => cx.reply.integer(rank as i64),
        (Some((rank, score)), true) => {
            cx.reply.array(2);
            cx.reply.integer(rank as i64);
            reply_score(&mut cx.reply, score);
        }
        (None, false) => cx.reply.null(),
        (None, true) => cx.reply.null_array(),
    }
    Ok(())
}
