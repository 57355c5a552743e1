//! Searches for points within a circle or a rectangle. Knows which ranges of a sorted set have them and how results are
//! ordered; geometry is in `algorithms::geohash`.

use super::members::{reply_distance, reply_point, take_point, take_unit};
use crate::sorted_sets::store;
use algorithms::geohash::{Point, Shape};
use algorithms::partial_sort::partial_sort;
use execution::args::Args;
use execution::command::{FoundKeys, KeyFlags, KeyRange};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::view::View;
use keyspace::types::sorted_set::{Direction, ScoreBound, ScoreRange};
use keyspace::{Key, SortedSetRef};
use numbers::{parse_f64, parse_i64};
use resp::{Reply, Request};
use std::cmp::Ordering;

/// The arguments of the different commands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// GEORADIUS: coordinates and a radius, then options.
    AroundPoint { may_store: bool },
    /// GEORADIUSBYMEMBER: a member and a radius, then options.
    AroundMember { may_store: bool },
    /// GEOSEARCH: options only.
    Free,
    /// GEOSEARCHSTORE.
    FreeStore,
}

impl Form {
    fn is_free(self) -> bool {
        matches!(self, Form::Free | Form::FreeStore)
    }

    /// Whether STORE and STOREDIST name a key.
    fn may_name_target(self) -> bool {
        matches!(self, Form::AroundPoint { may_store: true } | Form::AroundMember { may_store: true })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Nearest,
    Farthest,
}

/// A parsed request.
struct Search<'a> {
    /// `None` when it is around a member of a set that does not exist.
    centre: Option<Point>,
    shape: Shape,
    unit_m: f64,
    with_distance: bool,
    with_score: bool,
    with_point: bool,
    order: Option<Order>,
    /// The most results; 0 = all.
    count: usize,
    /// Any `count` results, not the nearest.
    any: bool,
    /// Where the results are stored, and whether with their distances.
    target: Option<Key<'a>>,
    store_distance: bool,
}

impl<'a> Search<'a> {
    /// Parses everything after the keys. Members are looked up on the way, as in Redis: which of several errors is
    /// returned depends on it.
    fn take(
        args: &mut Args<'a>,
        form: Form,
        target: Option<Key<'a>>,
        set: Option<&SortedSetRef<'_>>,
    ) -> Result<Search<'a>, CommandError> {
        let command = args.request().arg(0);
        let mut search = Search {
            centre: None,
            shape: Shape::circle(0.0, 1.0),
            unit_m: 1.0,
            with_distance: false,
            with_score: false,
            with_point: false,
            order: None,
            count: 0,
            any: false,
            target,
            store_distance: false,
        };
        match form {
            Form::AroundPoint { .. } => {
                search.centre = Some(take_point(args)?);
                search.take_radius(args)?;
            }
            Form::AroundMember { .. } => {
                let name = args.bytes()?;
                match set {
                    Some(set) => {
                        search.centre = Some(point_of(set, name)?);
                        search.take_radius(args)?;
                    }
                    // Without a set, the radius is not checked.
                    None => drop((args.bytes()?, args.bytes()?)),
                }
            }
            Form::Free | Form::FreeStore => {}
        }
        let (mut from_member, mut from_place, mut by_radius, mut by_box) = (false, false, false, false);
        while !args.is_empty() {
            let left = args.left() - 1;
            if args.take_word("WITHDIST") {
                search.with_distance = true;
            } else if args.take_word("WITHHASH") {
                search.with_score = true;
            } else if args.take_word("WITHCOORD") {
                search.with_point = true;
            } else if args.take_word("ANY") {
                search.any = true;
            } else if args.take_word("ASC") {
                search.order = Some(Order::Nearest);
            } else if args.take_word("DESC") {
                search.order = Some(Order::Farthest);
            } else if left >= 1 && args.take_word("COUNT") {
                let count = parse_i64(args.bytes()?).ok_or(CommandError::NotInteger)?;
                if count <= 0 {
                    return Err(CommandError::fixed("ERR COUNT must be > 0"));
                }
                search.count = count as usize;
            } else if left >= 1 && form.may_name_target() && args.take_word("STORE") {
                search.target = Some(args.key()?);
                search.store_distance = false;
            } else if left >= 1 && form.may_name_target() && args.take_word("STOREDIST") {
                search.target = Some(args.key()?);
                search.store_distance = true;
            } else if form == Form::FreeStore && args.take_word("STOREDIST") {
                search.store_distance = true;
            } else if left >= 1 && form.is_free() && !from_place && args.take_word("FROMMEMBER") {
                let name = args.bytes()?;
                search.centre = set.map(|set| point_of(set, name)).transpose()?;
                from_member = true;
            } else if left >= 2 && form.is_free() && !from_member && args.take_word("FROMLONLAT") {
                search.centre = Some(take_point(args)?);
                from_place = true;
            } else if left >= 2 && form.is_free() && !by_box && args.take_word("BYRADIUS") {
                search.take_radius(args)?;
                by_radius = true;
            } else if left >= 3 && form.is_free() && !by_radius && args.take_word("BYBOX") {
                search.take_box(args)?;
                by_box = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if search.target.is_some() && (search.with_distance || search.with_score || search.with_point) {
            let what = if form.is_free() { "GEOSEARCHSTORE" } else { "STORE option in GEORADIUS" };
            let text = format!("ERR {what} is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
            return Err(CommandError::said(text));
        }
        let missing = |what: &str| {
            let command = String::from_utf8_lossy(command);
            Err(CommandError::said(format!("ERR exactly one of {what} can be specified for {command}")))
        };
        if form.is_free() && !from_member && !from_place {
            return missing("FROMMEMBER or FROMLONLAT");
        }
        if form.is_free() && !by_radius && !by_box {
            return missing("BYRADIUS and BYBOX");
        }
        if search.any && search.count == 0 {
            return Err(CommandError::fixed("ERR the ANY argument requires COUNT argument"));
        }
        Ok(search)
    }

    fn take_radius(&mut self, args: &mut Args<'_>) -> CommandResult {
        let radius = parse_f64(args.bytes()?).ok_or(CommandError::fixed("ERR need numeric radius"))?;
        if radius < 0.0 {
            return Err(CommandError::fixed("ERR radius cannot be negative"));
        }
        self.unit_m = take_unit(args)?;
        self.shape = Shape::circle(radius, self.unit_m);
        Ok(())
    }

    fn take_box(&mut self, args: &mut Args<'_>) -> CommandResult {
        let width = parse_f64(args.bytes()?).ok_or(CommandError::fixed("ERR need numeric width"))?;
        let height = parse_f64(args.bytes()?).ok_or(CommandError::fixed("ERR need numeric height"))?;
        if width < 0.0 || height < 0.0 {
            return Err(CommandError::fixed("ERR height or width cannot be negative"));
        }
        self.unit_m = take_unit(args)?;
        self.shape = Shape::rectangle(width, height, self.unit_m);
        Ok(())
    }

    /// The ranges of ranks that may have points within the shape.
    fn rank_ranges(&self, set: &SortedSetRef<'_>) -> Vec<std::ops::Range<usize>> {
        let Some(centre) = &self.centre else { return Vec::new() };
        let bound = |score: f64, excluded: bool| ScoreBound { score, excluded };
        let ranges = self.shape.score_ranges(centre);
        let ranges = ranges.map(|(from, to)| ScoreRange { min: bound(from, false), max: bound(to, true) });
        ranges.map(|range| set.ranks_by_score(&range)).filter(|ranks| !ranks.is_empty()).collect()
    }

    /// The points found, in order; `None` if it takes too long here.
    fn run(&self, keys: &View<'_>, set: Option<SortedSetRef<'_>>) -> Option<Found> {
        let mut found = Found::default();
        let (Some(set), Some(centre)) = (set, &self.centre) else { return Some(found) };
        let ranges = self.rank_ranges(&set);
        if keys.is_long_walk(ranges.iter().map(std::ops::Range::len).sum()) {
            return None;
        }
        let enough = if self.any { self.count } else { usize::MAX };
        'ranges: for ranks in ranges {
            for member in set.members(ranks, Direction::Ascending) {
                let point = Point::of_score(member.score);
                let Some(distance_m) = self.shape.distance_within_m(centre, &point) else { continue };
                member.name.with_bytes(|name| found.add(name, member.score, point, distance_m));
                if found.members.len() >= enough {
                    break 'ranges;
                }
            }
        }
        found.order(self.order.or((self.count > 0 && !self.any).then_some(Order::Nearest)), self.count);
        Some(found)
    }
}

fn point_of(set: &SortedSetRef<'_>, name: &[u8]) -> Result<Point, CommandError> {
    let score = set.score(name).ok_or(CommandError::fixed("ERR could not decode requested zset member"))?;
    Ok(Point::of_score(score))
}

/// A member that was found.
struct FoundMember {
    /// Where its name is in `Found::names`.
    name: (usize, usize),
    score: f64,
    point: Point,
    distance_m: f64,
}

/// The members found; all names concatenated.
#[derive(Default)]
struct Found {
    names: Vec<u8>,
    members: Vec<FoundMember>,
}

impl Found {
    fn add(&mut self, name: &[u8], score: f64, point: Point, distance_m: f64) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.members.push(FoundMember { name: (start, self.names.len()), score, point, distance_m });
    }

    /// Sorts, and keeps the first `count` members; all if it is 0.
    fn order(&mut self, order: Option<Order>, count: usize) {
        let nearest = |a: &FoundMember, b: &FoundMember| a.distance_m.total_cmp(&b.distance_m);
        let compare = |a: &FoundMember, b: &FoundMember| -> Ordering {
            if order == Some(Order::Farthest) { nearest(b, a) } else { nearest(a, b) }
        };
        let wanted = if count == 0 { self.members.len() } else { count.min(self.members.len()) };
        match order {
            None => {}
            Some(_) if wanted == self.members.len() => self.members.sort_by(compare),
            Some(_) => partial_sort(&mut self.members, 0, wanted.saturating_sub(1), &compare),
        }
        self.members.truncate(wanted);
    }

    fn name(&self, member: &FoundMember) -> &[u8] {
        &self.names[member.name.0..member.name.1]
    }

    fn reply(&self, search: &Search<'_>, reply: &mut Reply<'_>) {
        let options = [search.with_distance, search.with_score, search.with_point];
        let options = options.into_iter().filter(|is_wanted| *is_wanted).count();
        reply.array(self.members.len());
        for member in &self.members {
            if options > 0 {
                reply.array(1 + options);
            }
            reply.bulk(self.name(member));
            if search.with_distance {
                reply_distance(reply, member.distance_m / search.unit_m);
            }
            if search.with_score {
                // A score that is not a geohash may be out of range: an x86 converts it to the least number.
                let is_in_range = member.score.abs() < i64::MAX as f64;
                reply.integer(if is_in_range { member.score as i64 } else { i64::MIN });
            }
            if search.with_point {
                reply_point(reply, &member.point);
            }
        }
    }

    /// The members of a sorted set, in its order.
    fn scored(&self, search: &Search<'_>) -> Vec<(f64, &[u8])> {
        let score = |member: &FoundMember| match search.store_distance {
            true => member.distance_m / search.unit_m,
            false => member.score,
        };
        let mut members: Vec<_> = self.members.iter().map(|member| (score(member), self.name(member))).collect();
        members.sort_unstable_by(|a, b| keyspace::types::sorted_set::compare(*a, *b));
        members
    }
}

// Commands ------------------------------------------------------------------------------------------------------------

pub(super) fn geosearch(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Form::Free)
}

pub(super) fn georadius_ro(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Form::AroundPoint { may_store: false })
}

pub(super) fn georadiusbymember_ro(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, Form::AroundMember { may_store: false })
}

fn show(cx: &mut ReadCx<'_>, form: Form) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    let search = Search::take(&mut cx.args, form, None, set.as_ref())?;
    let Some(found) = search.run(&cx.keys, set) else {
        cx.client.wants_index_copies = true;
        return Ok(());
    };
    cx.keys.looked_up(key, set.is_some());
    found.reply(&search, &mut cx.reply);
    Ok(())
}

pub(super) fn geosearchstore(cx: &mut WriteCx<'_>) -> CommandResult {
    let target = cx.args.key()?;
    show_or_store(cx, Form::FreeStore, Some(target))
}

pub(super) fn georadius(cx: &mut WriteCx<'_>) -> CommandResult {
    show_or_store(cx, Form::AroundPoint { may_store: true }, None)
}

pub(super) fn georadiusbymember(cx: &mut WriteCx<'_>) -> CommandResult {
    show_or_store(cx, Form::AroundMember { may_store: true }, None)
}

fn show_or_store<'a>(cx: &mut WriteCx<'a>, form: Form, target: Option<Key<'a>>) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.view().typed::<SortedSetRef>(key)?;
    let search = Search::take(&mut cx.args, form, target, set.as_ref())?;
    let Some(found) = search.run(cx.keys.view(), set) else {
        cx.client.wants_index_copies = true;
        return Ok(());
    };
    cx.keys.view().looked_up(key, set.is_some());
    match search.target {
        None => {
            found.reply(&search, &mut cx.reply);
            Ok(())
        }
        Some(target) => {
            let event = if form.is_free() { "geosearchstore" } else { "georadiusstore" };
            store(cx, target, &found.scored(&search), event)
        }
    }
}

/// The keys of GEORADIUS and GEORADIUSBYMEMBER: the arguments after the first STORE and the first STOREDIST, as Redis's
/// key specifications find them, and the argument after the last of either, where the results go.
pub(super) fn keys_of_radius(request: Request<'_>) -> FoundKeys {
    let is_word = |at: usize, word: &str| request.arg(at).eq_ignore_ascii_case(word.as_bytes());
    let words = 5..request.len().saturating_sub(1);
    let first = |word: &str| words.clone().find(|at| is_word(*at, word));
    let (mut at, mut target) = (words.start, None);
    while at < words.end {
        if is_word(at, "STORE") || is_word(at, "STOREDIST") {
            target = Some(at);
            at += 1;
        }
        at += 1;
    }
    let (store, storedist) = (first("STORE"), first("STOREDIST"));
    let others = target.filter(|target| store != Some(*target) && storedist != Some(*target));
    let mut found = FoundKeys::one(1, KeyFlags::READ);
    let words = [store, storedist, others].into_iter().flatten();
    found.ranges.extend(words.map(|at| KeyRange::one(at + 1, KeyFlags::OVERWRITE)));
    found
}
