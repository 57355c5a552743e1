//! Sorted set commands about ranges: by rank, by score, or by name where all scores are the same.

use super::gathered::Gathered;
use super::members::{Answer, remove_ranks, store};
use crate::shared::returned::Returned;
use crate::shared::sliced_array::SlicedArray;
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::slices::{RECORDS_PER_LOOK, TimeSlice};
use keyspace::types::sorted_set::{Direction, NameBound, NameRange, ScoreBound, ScoreRange};
use keyspace::views::index_ref::IndexMembers;
use keyspace::{IndexRef, SortedSetRef};
use numbers::{parse_f64_loosely, parse_i64};
use resp::{Protocol, Reply};
use std::ops::Range;

/// What the bounds of a range are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Name,
}

/// Which members to return.
#[derive(Clone, Copy)]
enum Span<'a> {
    /// From one rank to the other, both included; negative ones are counted from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Names(NameRange<'a>),
}

impl<'a> Span<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Span<'a>, CommandError> {
        match by {
            By::Rank => {
                let rank = |text| parse_i64(text).ok_or(CommandError::NotInteger);
                Ok(Span::Ranks(rank(min)?, rank(max)?))
            }
            By::Score => {
                let range = score_bound(min).zip(score_bound(max)).map(|(min, max)| ScoreRange { min, max });
                range.map(Span::Scores).ok_or(CommandError::fixed("ERR min or max is not a float"))
            }
            By::Name => {
                let range = name_bound(min).zip(name_bound(max)).map(|(min, max)| NameRange { min, max });
                range.map(Span::Names).ok_or(CommandError::fixed("ERR min or max not valid string range item"))
            }
        }
    }

    /// The ranks of the members in a set. Ranks are counted from the end at which the direction begins.
    fn ranks(&self, set: &SortedSetRef<'_>, direction: Direction) -> Range<usize> {
        let (start, end) = match self {
            Span::Ranks(start, end) => (*start, *end),
            Span::Scores(range) => return set.ranks_by_score(range),
            Span::Names(range) => return set.ranks_by_name(range),
        };
        let len = set.len() as i64;
        let start = if start < 0 { (len + start).max(0) } else { start };
        let end = if end < 0 { len + end } else { end.min(len - 1) };
        if start > end || start >= len {
            return 0..0;
        }
        let (start, end) = (start as usize, end as usize + 1);
        match direction {
            Direction::Ascending => start..end,
            Direction::Descending => set.len() - end..set.len() - start,
        }
    }
}

pub(crate) fn score_bound(text: &[u8]) -> Option<ScoreBound> {
    let (excluded, text) = match text {
        [b'(', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    parse_f64_loosely(text).map(|score| ScoreBound { score, excluded })
}

fn name_bound(text: &[u8]) -> Option<NameBound<'_>> {
    match text {
        // Redis reads only up to the first zero byte here.
        [b'-'] | [b'-', 0, ..] => Some(NameBound::Lowest),
        [b'+'] | [b'+', 0, ..] => Some(NameBound::Highest),
        [b'(', name @ ..] => Some(NameBound::Excluded(name)),
        [b'[', name @ ..] => Some(NameBound::Included(name)),
        _ => None,
    }
}

/// The options of ZRANGE and its older forms.
struct Query<'a> {
    span: Span<'a>,
    direction: Direction,
    /// How many members to skip, and how many to return; negative = all.
    offset: i64,
    limit: i64,
    scores: bool,
}

/// The progress of a range over an index.
struct RangeProgress {
    /// The most members to return.
    most: usize,
    found: usize,
    /// The members found so far.
    body: SlicedArray,
    /// The last member visited.
    last: Option<(f64, Vec<u8>)>,
    returned: Returned,
}

/// What the command itself determines, where ZRANGE has options.
#[derive(Clone, Copy, Default)]
struct Fixed {
    by: Option<By>,
    direction: Option<Direction>,
    /// The members are stored, so WITHSCORES is not accepted.
    stores: bool,
}

impl<'a> Query<'a> {
    /// Parses everything after the key.
    fn take(args: &mut Args<'a>, fixed: Fixed) -> Result<Query<'a>, CommandError> {
        let (first, second) = (args.bytes()?, args.bytes()?);
        let (mut by, mut direction, mut scores) = (fixed.by, fixed.direction, false);
        let (mut offset, mut limit) = (0, -1);
        while let Some(word) = args.try_next() {
            if !fixed.stores && is_word(word, "WITHSCORES") {
                scores = true;
            } else if is_word(word, "LIMIT") && args.left() >= 2 {
                offset = args.int()?;
                limit = args.int()?;
            } else if fixed.direction.is_none() && direction.is_none() && is_word(word, "REV") {
                direction = Some(Direction::Descending);
            } else if by.is_none() && is_word(word, "BYLEX") {
                by = Some(By::Name);
            } else if by.is_none() && is_word(word, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
        }
        let (by, direction) = (by.unwrap_or(By::Rank), direction.unwrap_or(Direction::Ascending));
        if limit != -1 && by == By::Rank {
            return Err(CommandError::fixed(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if scores && by == By::Name {
            return Err(CommandError::fixed("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        // In descending order, the greater bound of scores and names comes first.
        let (min, max) = match by != By::Rank && direction == Direction::Descending {
            true => (second, first),
            false => (first, second),
        };
        Ok(Query { span: Span::parse(by, min, max)?, direction, offset, limit, scores })
    }

    /// The ranks of the members to return.
    fn ranks(&self, set: &SortedSetRef<'_>) -> Range<usize> {
        let ranks = self.span.ranks(set, self.direction);
        if let Span::Ranks(..) = self.span {
            return ranks;
        }
        let Some(offset) = usize::try_from(self.offset).ok().filter(|offset| *offset < ranks.len()) else {
            return 0..0;
        };
        let wanted = usize::try_from(self.limit).unwrap_or(usize::MAX).min(ranks.len() - offset);
        match self.direction {
            Direction::Ascending => ranks.start + offset..ranks.start + offset + wanted,
            Direction::Descending => ranks.end - offset - wanted..ranks.end - offset,
        }
    }
}

impl RangeProgress {
    /// The members of an index after those of earlier slices; the first slice computes how many there are.
    fn members<'i>(resumed: Option<RangeProgress>, query: &Query<'_>, index: IndexRef<'i>) -> (Self, IndexMembers<'i>) {
        let direction = query.direction;
        let (mut start, mut end) = match &query.span {
            Span::Ranks(..) => index.whole(),
            Span::Scores(range) => index.by_score(range),
            Span::Names(range) => index.by_name(range),
        };
        let progress = match resumed {
            Some(progress) => {
                if let Some((score, name)) = &progress.last {
                    match direction {
                        Direction::Ascending => start = index.up_to(*score, name),
                        Direction::Descending => end = index.before(*score, name),
                    }
                }
                progress
            }
            None => {
                let ranks = query.ranks(&SortedSetRef::Index(index));
                // A range up to the end ends where the index ends in the last slice. Any other range has as many
                // members as in the first slice.
                let to_the_end = match direction {
                    Direction::Ascending => ranks.end == end.iter().sum(),
                    Direction::Descending => ranks.start == start.iter().sum(),
                };
                let most = match to_the_end && !ranks.is_empty() {
                    true => usize::try_from(query.limit).unwrap_or(usize::MAX),
                    false => ranks.len(),
                };
                match direction {
                    Direction::Ascending => start = index.up_to_rank(ranks.start),
                    Direction::Descending => end = index.up_to_rank(ranks.end),
                }
                RangeProgress {
                    most,
                    found: 0,
                    body: SlicedArray::default(),
                    last: None,
                    returned: Returned::default(),
                }
            }
        };
        for (start, end) in start.iter().zip(&mut end) {
            *end = (*end).max(*start);
        }
        (progress, index.between(&start, &end, direction))
    }

    /// Finds members until the slice is over. True when there are no more.
    fn find(&mut self, mut members: IndexMembers<'_>, format: Format, slice: TimeSlice<'_>) -> bool {
        let (mut looked_at, mut latest, mut found) = (0, None, Vec::new());
        let mut reply = self.body.writer(format.protocol, format.bytes_max);
        let mut answer = Answer { reply: &mut reply, scores: format.scores };
        let ended = loop {
            if self.found == self.most {
                break true;
            }
            if looked_at % RECORDS_PER_LOOK == 0 && looked_at > 0 && slice.is_over() {
                break false;
            }
            let Some((_, entry, score)) = members.next_entry() else { break true };
            looked_at += 1;
            latest = Some((score, entry.name()));
            if self.returned.contains(entry.name()) {
                continue;
            }
            self.found += 1;
            answer.add_named(entry.name(), score);
            found.push(entry.name());
        };
        let elements = answer.elements(self.found);
        // A range that ends in its first slice need not remember what it has returned.
        if !ended {
            self.returned.add(&found);
            if self.last.is_none() {
                let left = members.left().min(self.most - self.found);
                self.body.expect_more(elements, looked_at, left, format.bytes_max);
            }
            self.last = latest.map(|(score, name)| (score, name.to_vec())).or(self.last.take());
        }
        ended
    }
}

/// How members are written.
#[derive(Clone, Copy)]
struct Format {
    protocol: Protocol,
    scores: bool,
    bytes_max: usize,
}

/// Replies with a range of an index, or, if that takes longer than a slice, returns its progress.
fn range_of_index(
    query: &Query<'_>,
    index: IndexRef<'_>,
    resumed: Option<RangeProgress>,
    slice: TimeSlice<'_>,
    bytes_max: usize,
    reply: &mut Reply<'_>,
) -> Option<RangeProgress> {
    let format = Format { protocol: reply.protocol(), scores: query.scores, bytes_max };
    let (mut progress, members) = RangeProgress::members(resumed, query, index);
    let ended = progress.returned.begin_slice(&index, Some(slice)) && progress.find(members, format, slice);
    if !ended && progress.body.len() <= format.bytes_max {
        return Some(progress);
    }
    reply_found(query, progress, slice, reply);
    None
}

/// Replies with all members that the slices of a range have found.
fn reply_found(query: &Query<'_>, progress: RangeProgress, slice: TimeSlice<'_>, reply: &mut Reply<'_>) {
    let elements = Answer { reply, scores: query.scores }.elements(progress.found);
    progress.body.send(elements, reply);
    if !progress.returned.is_empty() {
        // A long list of names takes long to free.
        slice.free(progress.returned);
    }
}

pub(super) fn zrange(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, Fixed::default())
}

pub(super) fn zrevrange(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, fixed(By::Rank, Direction::Descending))
}

pub(super) fn zrangebyscore(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, fixed(By::Score, Direction::Ascending))
}

pub(super) fn zrevrangebyscore(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, fixed(By::Score, Direction::Descending))
}

pub(super) fn zrangebylex(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, fixed(By::Name, Direction::Ascending))
}

pub(super) fn zrevrangebylex(cx: &mut ReadCx<'_>) -> CommandResult {
    range(cx, fixed(By::Name, Direction::Descending))
}

fn fixed(by: By, direction: Direction) -> Fixed {
    Fixed { by: Some(by), direction: Some(direction), stores: false }
}

fn range(cx: &mut ReadCx<'_>, fixed: Fixed) -> CommandResult {
    let key = cx.args.key()?;
    let resumed = cx.resume::<RangeProgress>()?;
    if resumed.is_some() && cx.slice.is_none() {
        return Err(CommandError::fixed("ERR the index was dropped while it was read"));
    }
    let query = Query::take(&mut cx.args, fixed)?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    if let Some(slice) = cx.slice {
        match (set, resumed) {
            (Some(SortedSetRef::Index(index)), resumed) => {
                match range_of_index(&query, index, resumed, slice, cx.client.output_bytes_max, &mut cx.reply) {
                    Some(unfinished) => cx.leave(unfinished),
                    None => cx.keys.looked_up(key, true),
                }
                return Ok(());
            }
            // The index lost its last record since the first slice.
            (_, Some(progress)) => {
                reply_found(&query, progress, slice, &mut cx.reply);
                return Ok(());
            }
            _ => {}
        }
    }
    cx.keys.looked_up(key, set.is_some());
    let Some(set) = set else {
        cx.reply.array(0);
        return Ok(());
    };
    let ranks = query.ranks(&set);
    let mut answer = Answer { reply: &mut cx.reply, scores: query.scores };
    answer.begin(ranks.len());
    set.members(ranks, query.direction).for_each(|member| answer.add(&member));
    Ok(())
}

pub(super) fn zrangestore(cx: &mut WriteCx<'_>) -> CommandResult {
    let (to, from) = (cx.args.key()?, cx.args.key()?);
    let query = Query::take(&mut cx.args, Fixed { stores: true, ..Fixed::default() })?;
    let set = cx.keys.view().typed::<SortedSetRef>(from)?;
    if set.is_some_and(|set| cx.keys.view().is_long_walk(query.ranks(&set).len())) {
        cx.client.wants_index_copies = true;
        return Ok(());
    }
    cx.keys.view().looked_up(from, set.is_some());
    let members: Gathered = match set {
        Some(set) => set.members(query.ranks(&set), Direction::Ascending).collect(),
        None => Gathered::default(),
    };
    let members: Vec<_> = members.iter().collect();
    store(cx, to, &members, "zrangestore")
}

pub(super) fn zcount(cx: &mut ReadCx<'_>) -> CommandResult {
    count(cx, By::Score)
}

pub(super) fn zlexcount(cx: &mut ReadCx<'_>) -> CommandResult {
    count(cx, By::Name)
}

fn count(cx: &mut ReadCx<'_>, by: By) -> CommandResult {
    let (key, min, max) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let span = Span::parse(by, min, max)?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.integer(set.map_or(0, |set| span.ranks(&set, Direction::Ascending).len()) as i64);
    Ok(())
}

pub(super) fn zremrangebyrank(cx: &mut WriteCx<'_>) -> CommandResult {
    remove(cx, By::Rank, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(cx: &mut WriteCx<'_>) -> CommandResult {
    remove(cx, By::Score, "zremrangebyscore")
}

pub(super) fn zremrangebylex(cx: &mut WriteCx<'_>) -> CommandResult {
    remove(cx, By::Name, "zremrangebylex")
}

fn remove(cx: &mut WriteCx<'_>, by: By, event: &'static str) -> CommandResult {
    let (key, min, max) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let span = Span::parse(by, min, max)?;
    let set = cx.keys.to_change::<SortedSetRef>(key)?;
    let ranks = set.map_or(0..0, |set| span.ranks(&set, Direction::Ascending));
    if !ranks.is_empty() {
        remove_ranks(&mut cx.keys, key, ranks.clone(), event);
    }
    cx.reply.integer(ranks.len() as i64);
    Ok(())
}
