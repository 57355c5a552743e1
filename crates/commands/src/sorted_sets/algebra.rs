//! Commands about several sorted sets together: union, intersection, difference.

use super::gathered::{Gathered, GatheredByName};
use super::members::{Answer, store};
use execution::args::{Args, is_word};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::view::View;
use keyspace::types::set::{self, SetRef};
use keyspace::types::sorted_set::{Member, Name};
use keyspace::views::Members;
use keyspace::{Key, Scalar, SortedSetRef, Value};
use numbers::{parse_f64, parse_i64};
use smallvec::SmallVec;

/// An operation on several sets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of a member that is in several sets are combined.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    fn join(self, a: f64, b: f64) -> f64 {
        match self {
            // The sum of opposite infinities is 0, as in Redis.
            Aggregate::Sum => number_or_zero(a + b),
            Aggregate::Min => {
                if b < a {
                    b
                } else {
                    a
                }
            }
            Aggregate::Max => {
                if b > a {
                    b
                } else {
                    a
                }
            }
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// An operand: any value whose members have scores or could have them.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// The key does not exist.
    Nothing,
    SortedSet(SortedSetRef<'a>),
    /// Every member has the score 1.
    Set(SetRef<'a>),
}

impl<'a> Source<'a> {
    fn of(value: Option<Value<'a>>) -> Result<Source<'a>, CommandError> {
        match value {
            None => Ok(Source::Nothing),
            Some(Value::SortedSet(set)) => Ok(Source::SortedSet(set)),
            Some(Value::Set(set)) => Ok(Source::Set(set)),
            Some(other) => Err(CommandError::wrong_type(other.value_type())),
        }
    }

    fn len(&self) -> usize {
        match self {
            Source::Nothing => 0,
            Source::SortedSet(set) => set.len(),
            Source::Set(set) => set.len(),
        }
    }

    fn score(&self, name: &[u8]) -> Option<f64> {
        match self {
            Source::Nothing => None,
            Source::SortedSet(set) => set.score(name),
            Source::Set(set) => set.has(Scalar::Bytes(name)).then_some(1.0),
        }
    }

    fn members(&self) -> SourceMembers<'a> {
        match self {
            Source::Nothing => SourceMembers::Nothing,
            Source::SortedSet(set) => SourceMembers::SortedSet(set.iter()),
            Source::Set(set) => SourceMembers::Set(set.iter()),
        }
    }
}

enum SourceMembers<'a> {
    Nothing,
    SortedSet(Members<'a>),
    Set(set::Members<'a>),
}

impl<'a> Iterator for SourceMembers<'a> {
    type Item = Member<'a>;

    fn next(&mut self) -> Option<Member<'a>> {
        match self {
            SourceMembers::Nothing => None,
            SourceMembers::SortedSet(members) => members.next(),
            SourceMembers::Set(members) => members.next().map(|member| Member { name: Name::kept(member), score: 1.0 }),
        }
    }
}

/// Sets with their weights.
type Weighted<'a> = SmallVec<[(Source<'a>, f64); 4]>;

/// A request, parsed as far as possible without the sets.
struct Request<'a> {
    keys: SmallVec<[Key<'a>; 4]>,
    options: Args<'a>,
}

impl<'a> Request<'a> {
    /// Parses the number of keys and the keys.
    fn take(mut args: Args<'a>, command: &str) -> Result<Request<'a>, CommandError> {
        let number = parse_i64(args.bytes()?).ok_or(CommandError::NotInteger)?;
        if number < 1 {
            return Err(CommandError::said(format!("ERR at least 1 input key is needed for '{command}' command")));
        }
        if number as u64 > args.left() as u64 {
            return Err(CommandError::Syntax);
        }
        let keys = (0..number).map(|_| args.key()).collect::<Result<_, _>>()?;
        Ok(Request { keys, options: args })
    }

    /// The sets, each with weight 1.
    fn sources<'v>(&self, keys: &'v View<'_>) -> Result<Weighted<'v>, CommandError> {
        let source = |key: &Key<'_>| {
            let found = keys.get(*key);
            keys.looked_up(*key, found.is_some());
            Ok((Source::of(found)?, 1.0))
        };
        self.keys.iter().map(source).collect()
    }
}

/// Options after the keys.
struct Options {
    aggregate: Aggregate,
    scores: bool,
}

impl Options {
    /// Parses the options, and the weights of sets.
    fn take(
        args: &mut Args<'_>,
        operation: Operation,
        stores: bool,
        sources: &mut Weighted<'_>,
    ) -> Result<Options, CommandError> {
        let mut options = Options { aggregate: Aggregate::Sum, scores: false };
        let weighs = operation != Operation::Difference;
        while let Some(word) = args.try_next() {
            if weighs && is_word(word, "WEIGHTS") && args.left() >= sources.len() {
                for (_, weight) in sources.iter_mut() {
                    let refusal = CommandError::fixed("ERR weight value is not a float");
                    *weight = parse_f64(args.bytes()?).ok_or(refusal)?;
                }
            } else if weighs && is_word(word, "AGGREGATE") && !args.is_empty() {
                let way = args.bytes()?;
                options.aggregate = if is_word(way, "SUM") {
                    Aggregate::Sum
                } else if is_word(way, "MIN") {
                    Aggregate::Min
                } else if is_word(way, "MAX") {
                    Aggregate::Max
                } else {
                    return Err(CommandError::Syntax);
                };
            } else if !stores && is_word(word, "WITHSCORES") {
                options.scores = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(options)
    }
}

/// About how many members are visited for a result.
fn work(operation: Operation, sources: &Weighted<'_>) -> usize {
    let lens = || sources.iter().map(|(source, _)| source.len());
    match operation {
        Operation::Union => lens().sum(),
        Operation::Intersection => lens().min().unwrap_or(0),
        Operation::Difference => lens().next().unwrap_or(0) + walked_for_difference(sources).unwrap_or(0),
    }
}

/// The members of the result, unordered.
fn combine(operation: Operation, mut sources: Weighted<'_>, aggregate: Aggregate) -> Gathered {
    if operation == Operation::Difference {
        return difference(&sources);
    }
    // The smallest first, and sets of one size in the order in which they were named: sums of doubles depend on it.
    sources.sort_by_key(|(source, _)| source.len());
    match operation {
        Operation::Union => union(&sources, aggregate),
        _ => {
            let mut members = Gathered::default();
            intersect(&sources, aggregate, |score, name| {
                members.push(score, name);
                true
            });
            members
        }
    }
}

fn union(sources: &[(Source<'_>, f64)], aggregate: Aggregate) -> Gathered {
    let mut joined = GatheredByName::default();
    for (source, weight) in sources {
        for member in source.members() {
            let score = number_or_zero(weight * member.score);
            member.name.with_bytes(|name| {
                if let Some(known) = joined.known_or_add(score, name) {
                    *known = aggregate.join(*known, score);
                }
            });
        }
    }
    joined.members
}

/// Visits the members that all sets have, until `visit` returns false. The first set is the smallest.
fn intersect(sources: &[(Source<'_>, f64)], aggregate: Aggregate, mut visit: impl FnMut(f64, &[u8]) -> bool) {
    let [(smallest, weight), others @ ..] = sources else { return };
    for member in smallest.members() {
        let score = number_or_zero(weight * member.score);
        let more = member.name.with_bytes(|name| {
            let joined = others.iter().try_fold(score, |score, (source, weight)| {
                source.score(name).map(|other| aggregate.join(score, other * weight))
            });
            joined.is_none_or(|score| visit(score, name))
        });
        if !more {
            return;
        }
    }
}

/// The members of the first set that no other set has.
fn difference(sources: &[(Source<'_>, f64)]) -> Gathered {
    let [(first, _), others @ ..] = sources else { return Gathered::default() };
    let walks_others = walked_for_difference(sources).is_some();
    let mut others_joined = GatheredByName::default();
    if walks_others {
        for member in others.iter().flat_map(|(source, _)| source.members()) {
            member.name.with_bytes(|name| {
                others_joined.known_or_add(0.0, name);
            });
        }
    }
    let is_elsewhere = |name: &[u8]| match walks_others {
        true => others_joined.has(name),
        false => others.iter().any(|(source, _)| source.score(name).is_some()),
    };
    let mut members = Gathered::default();
    for member in first.members() {
        member.name.with_bytes(|name| {
            if !is_elsewhere(name) {
                members.push(member.score, name);
            }
        });
    }
    members
}

/// How many members the other sets have, if walking over all of them is less work than looking up every member of the
/// first in each.
fn walked_for_difference(sources: &[(Source<'_>, f64)]) -> Option<usize> {
    let [(first, _), others @ ..] = sources else { return None };
    let by_look_ups = first.len().saturating_mul(others.len()) / 2;
    let by_walks: usize = others.iter().map(|(source, _)| source.len()).sum();
    (by_walks < by_look_ups).then_some(by_walks)
}

pub(super) fn zunion(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Operation::Union)
}

pub(super) fn zinter(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Operation::Intersection)
}

pub(super) fn zdiff(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Operation::Difference)
}

fn show(cx: &mut ReadCx<'_>, operation: Operation) -> CommandResult {
    let mut request = Request::take(cx.args, cx.command.command.name)?;
    let mut sources = request.sources(&cx.keys)?;
    let options = Options::take(&mut request.options, operation, false, &mut sources)?;
    if cx.keys.is_long_walk(work(operation, &sources)) {
        cx.client.wants_index_copies = true;
        return Ok(());
    }
    let members = combine(operation, sources, options.aggregate);
    let members = members.in_order();
    let mut answer = Answer { reply: &mut cx.reply, scores: options.scores };
    answer.begin(members.len());
    for (score, name) in members {
        answer.add(&Member { name: Name::kept(Scalar::Bytes(name)), score });
    }
    Ok(())
}

pub(super) fn zunionstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, Operation::Union, "zunionstore")
}

pub(super) fn zinterstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, Operation::Intersection, "zinterstore")
}

pub(super) fn zdiffstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, Operation::Difference, "zdiffstore")
}

fn keep(cx: &mut WriteCx<'_>, operation: Operation, event: &'static str) -> CommandResult {
    let to = cx.args.key()?;
    let mut request = Request::take(cx.args, cx.command.command.name)?;
    let mut sources = request.sources(cx.keys.view())?;
    let options = Options::take(&mut request.options, operation, true, &mut sources)?;
    if cx.keys.view().is_long_walk(work(operation, &sources)) {
        cx.client.wants_index_copies = true;
        return Ok(());
    }
    let members = combine(operation, sources, options.aggregate);
    store(cx, to, &members.in_order(), event)
}

pub(super) fn zintercard(cx: &mut ReadCx<'_>) -> CommandResult {
    let mut request = Request::take(cx.args, cx.command.command.name)?;
    let mut sources = request.sources(&cx.keys)?;
    let mut limit = 0;
    while let Some(word) = request.options.try_next() {
        if !is_word(word, "LIMIT") || request.options.is_empty() {
            return Err(CommandError::Syntax);
        }
        let given = parse_i64(request.options.bytes()?).and_then(|limit| usize::try_from(limit).ok());
        limit = given.ok_or(CommandError::fixed("ERR LIMIT can't be negative"))?;
    }
    if cx.keys.is_long_walk(work(Operation::Intersection, &sources)) {
        cx.client.wants_index_copies = true;
        return Ok(());
    }
    sources.sort_by_key(|(source, _)| source.len());
    let mut count = 0;
    intersect(&sources, Aggregate::Sum, |_, _| {
        count += 1;
        count != limit
    });
    cx.reply.integer(count as i64);
    Ok(())
}
