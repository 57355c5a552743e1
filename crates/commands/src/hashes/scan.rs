//! Commands that return some fields of a hash: HSCAN step by step, HRANDFIELD at random.

use crate::shared::random::{OUT_OF_RANGE, REPEATED_BYTES_MAX, random_count};
use crate::shared::scanning::{Selection, parse_cursor, step_size};
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::hash::FieldName;
use keyspace::{HashRef, Key, Scalar};
use resp::{Protocol, Reply};
use std::collections::HashMap;

/// A field with its value.
type Pair<'a> = (FieldName<'a>, Scalar<'a>);

/// The default COUNT of HSCAN.
const SCAN_COUNT: usize = 10;

/// The options of HSCAN.
struct ScanOptions {
    count: usize,
    fields: Selection,
    values: bool,
}

pub(super) fn hscan(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let cursor = parse_cursor(cx.args.bytes()?).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    let Some(hash) = hash else {
        // Redis does not check the options then.
        cx.reply.array(2);
        cx.reply.bulk(b"0");
        cx.reply.array(0);
        return Ok(());
    };
    let options = scan_options(&mut cx.args)?;
    // The cursor precedes the fields in the reply but is known after them, so they are buffered.
    let (mut found, mut items) = (0, Vec::new());
    let mut reply = Reply::new(&mut items, cx.reply.protocol());
    // No step returns a cursor of more than 32 bits: such a cursor is at the end.
    let cursor = u32::try_from(cursor).unwrap_or(u32::MAX);
    let next = hash.scan(cursor, options.count, |field, value| {
        if !field.scalar().with_bytes(|name| options.fields.has(name)) {
            return;
        }
        field.reply(&mut reply);
        found += 1;
        if options.values {
            value.reply(&mut reply);
            found += 1;
        }
    });
    cx.reply.array(2);
    cx.reply.bulk_integer(next.map_or(0, i64::from));
    cx.reply.array(found);
    cx.reply.raw(&items);
    Ok(())
}

fn scan_options(args: &mut Args<'_>) -> Result<ScanOptions, CommandError> {
    let mut options = ScanOptions { count: SCAN_COUNT, fields: Selection::All, values: true };
    while let Some(word) = args.try_next() {
        if is_word(word, "COUNT") {
            options.count = step_size(args.int()?)?;
        } else if is_word(word, "MATCH") {
            options.fields = Selection::of(args.bytes()?);
        } else if is_word(word, "NOVALUES") {
            options.values = false;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(options)
}

pub(super) fn hrandfield(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if !cx.args.is_empty() {
        return several(cx, key);
    }
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    match hash.and_then(|hash| hash.random(cx.random)) {
        Some((field, _)) => field.reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

/// HRANDFIELD with a count: that many different fields, or, if it is negative, that many with repetitions.
fn several(cx: &mut ReadCx<'_>, key: Key<'_>) -> CommandResult {
    let (count, values) = random_count(&mut cx.args, "WITHVALUES")?;
    let hash = cx.keys.typed::<HashRef>(key)?;
    cx.keys.looked_up(key, hash.is_some());
    let Some(hash) = hash else {
        cx.reply.array(0);
        return Ok(());
    };
    let wanted = count.unsigned_abs() as usize;
    let mut answer = Answer { reply: &mut cx.reply, values };
    if count < 0 {
        return repeat(hash, wanted, cx.random, &mut answer);
    }
    match sample(hash, wanted, cx.random) {
        None => {
            answer.begin(hash.len());
            hash.iter().for_each(|pair| answer.add(pair));
        }
        Some(picked) => {
            answer.begin(picked.len());
            picked.into_iter().for_each(|pair| answer.add(pair));
        }
    }
    Ok(())
}

/// The shortest encoding of a field in a reply: `$0` and two line ends.
const FIELD_BYTES_MIN: usize = 6;

/// Replies `wanted` random fields, with repetitions.
fn repeat(hash: HashRef<'_>, wanted: usize, random: &mut fastrand::Rng, answer: &mut Answer<'_, '_>) -> CommandResult {
    if wanted > REPEATED_BYTES_MAX / FIELD_BYTES_MIN {
        return Err(OUT_OF_RANGE);
    }
    // Only a table finds a random field without walking over the fields before it.
    let listed: Option<Vec<Pair<'_>>> = matches!(hash, HashRef::Packed(_)).then(|| hash.iter().collect());
    let begin = answer.reply.position();
    answer.begin(wanted);
    for _ in 0..wanted {
        let pair = match &listed {
            Some(listed) => listed[random.usize(..listed.len())],
            None => hash.random(random).expect("a hash that is there has a field"),
        };
        answer.add(pair);
        if answer.reply.position() - begin > REPEATED_BYTES_MAX {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}

/// Picks `wanted` different fields at random; `None` when that means all.
fn sample<'a>(hash: HashRef<'a>, wanted: usize, random: &mut fastrand::Rng) -> Option<Vec<Pair<'a>>> {
    let len = hash.len();
    if wanted >= len {
        return None;
    }
    // Draw a few out of many one by one. Draws that hit a field twice are wasted, so their number is limited.
    if let HashRef::Table(..) = hash
        && wanted * 3 <= len
    {
        let mut drawn = HashMap::with_capacity(wanted);
        for _ in 0..wanted * 4 + 16 {
            if drawn.len() == wanted {
                break;
            }
            let pair = hash.random(random)?;
            drawn.insert(pair.0.scalar().bytes(), pair);
        }
        if drawn.len() == wanted {
            return Some(drawn.into_values().collect());
        }
    }
    // Selection sampling in one walk: each remaining field has the same chance to be picked.
    let mut picked = Vec::with_capacity(wanted);
    for (at, pair) in hash.iter().enumerate() {
        if random.usize(..len - at) < wanted - picked.len() {
            picked.push(pair);
        }
    }
    Some(picked)
}

/// Writes fields, with or without their values: pairs in RESP3, a flat array in RESP2.
struct Answer<'r, 'o> {
    reply: &'r mut Reply<'o>,
    values: bool,
}

impl Answer<'_, '_> {
    fn begin(&mut self, fields: usize) {
        let flat = self.values && self.reply.protocol() == Protocol::Resp2;
        self.reply.array(if flat { fields * 2 } else { fields });
    }

    fn add(&mut self, (field, value): Pair<'_>) {
        if self.values && self.reply.protocol() == Protocol::Resp3 {
            self.reply.array(2);
        }
        field.reply(self.reply);
        if self.values {
            value.reply(self.reply);
        }
    }
}
