//! Commands about single points: adding them, their coordinates, their distances. Searches are in `search`.

use crate::sorted_sets::{Rules, add_members};
use algorithms::geohash::Point;
use execution::args::Args;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use keyspace::SortedSetRef;
use numbers::long_double::LongDouble;
use numbers::parse_f64;
use resp::Reply;
use smallvec::SmallVec;

pub(super) fn geoadd(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut rules = Rules::default();
    loop {
        if cx.args.take_word("NX") {
            rules.only_new = true;
        } else if cx.args.take_word("XX") {
            rules.only_known = true;
        } else if cx.args.take_word("CH") {
            rules.count_changed = true;
        } else {
            break;
        }
    }
    if !cx.args.left().is_multiple_of(3) || rules.only_new && rules.only_known {
        return Err(CommandError::Syntax);
    }
    let mut given: SmallVec<[_; 8]> = SmallVec::with_capacity(cx.args.left() / 3);
    while !cx.args.is_empty() {
        let point = take_point(&mut cx.args)?;
        given.push((point.score(), cx.args.bytes()?));
    }
    if given.is_empty() {
        return Err(CommandError::Syntax);
    }
    add_members(cx, key, &rules, &given)
}

pub(super) fn geodist(cx: &mut ReadCx<'_>) -> CommandResult {
    let (key, one, other) = (cx.args.key()?, cx.args.bytes()?, cx.args.bytes()?);
    let unit_m = match cx.args.left() {
        0 => 1.0,
        1 => take_unit(&mut cx.args)?,
        _ => return Err(CommandError::Syntax),
    };
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let point = |name: &[u8]| set.as_ref().and_then(|set| set.score(name)).map(Point::of_score);
    match point(one).zip(point(other)) {
        Some((one, other)) => reply_distance(&mut cx.reply, one.distance_m(&other) / unit_m),
        None => cx.reply.null(),
    }
    Ok(())
}

pub(super) fn geohash(cx: &mut ReadCx<'_>) -> CommandResult {
    for_each_point(cx, |reply, point| match point {
        Some(point) => reply.bulk(&point.letters()),
        None => reply.null(),
    })
}

pub(super) fn geopos(cx: &mut ReadCx<'_>) -> CommandResult {
    for_each_point(cx, |reply, point| match point {
        Some(point) => reply_point(reply, &point),
        None => reply.null_array(),
    })
}

/// Replies with an array of something about each member.
fn for_each_point(cx: &mut ReadCx<'_>, answer: fn(&mut Reply<'_>, Option<Point>)) -> CommandResult {
    let key = cx.args.key()?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    cx.reply.array(cx.args.left());
    for name in cx.args.rest() {
        let score = set.as_ref().and_then(|set| set.score(name));
        answer(&mut cx.reply, score.map(Point::of_score));
    }
    Ok(())
}

// What searches share -------------------------------------------------------------------------------------------------

/// Takes a longitude and a latitude.
pub(super) fn take_point(args: &mut Args<'_>) -> Result<Point, CommandError> {
    let mut degrees = || parse_f64(args.bytes()?).ok_or(CommandError::NotFloat);
    let point = Point { longitude: degrees()?, latitude: degrees()? };
    match point.is_on_map() {
        true => Ok(point),
        false => Err(CommandError::said(format!(
            "ERR invalid longitude,latitude pair {:.6},{:.6}",
            point.longitude, point.latitude
        ))),
    }
}

/// Takes a unit. Returns its length in meters.
pub(super) fn take_unit(args: &mut Args<'_>) -> Result<f64, CommandError> {
    const UNITS: [(&str, f64); 4] = [("M", 1.0), ("KM", 1000.0), ("FT", 0.3048), ("MI", 1609.34)];
    let given = args.bytes()?;
    let unit = UNITS.iter().find(|(name, _)| given.eq_ignore_ascii_case(name.as_bytes()));
    let refusal = CommandError::fixed("ERR unsupported unit provided. please use M, KM, FT, MI");
    unit.map(|(_, meters)| *meters).ok_or(refusal)
}

/// Writes longitude and latitude.
pub(super) fn reply_point(reply: &mut Reply<'_>, point: &Point) {
    reply.array(2);
    for degrees in [point.longitude, point.latitude] {
        reply.double_text(&LongDouble::from(degrees).format_human());
    }
}

/// Writes a distance with four decimals: a bulk string in both protocols, as in Redis.
pub(super) fn reply_distance(reply: &mut Reply<'_>, distance: f64) {
    // Scaled first and then rounded, half to even: the last digit can differ from that of the exact number.
    let scaled = (distance * 10_000.0).round_ties_even() as i64;
    reply.bulk(format!("{}.{:04}", scaled / 10_000, scaled % 10_000).as_bytes());
}
