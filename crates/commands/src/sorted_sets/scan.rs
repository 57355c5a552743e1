//! Commands that return some members of a sorted set: ZSCAN step by step, ZRANDMEMBER at random.

use super::members::Answer;
use crate::shared::random::{OUT_OF_RANGE, REPEATED_BYTES_MAX, random_count};
use crate::shared::scanning::{Selection, parse_cursor, step_size};
use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::ReadCx;
use execution::error::{CommandError, CommandResult};
use keyspace::types::sorted_set::{Direction, Member};
use keyspace::{Key, SortedSetRef};
use numbers::{F64_CHARS_MAX, format_f64_in_17_digits};
use resp::Reply;
use std::collections::BTreeSet;

/// The default COUNT of ZSCAN.
const SCAN_COUNT: usize = 10;

pub(super) fn zscan(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let cursor = parse_cursor(cx.args.bytes()?).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let Some(set) = set else {
        // Redis does not check the options then.
        cx.reply.array(2);
        cx.reply.bulk(b"0");
        cx.reply.array(0);
        return Ok(());
    };
    let (mut count, mut selection) = (SCAN_COUNT, Selection::All);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "COUNT") {
            count = step_size(cx.args.int()?)?;
        } else if is_word(word, "MATCH") {
            selection = Selection::of(cx.args.bytes()?);
        } else if is_word(word, "NOVALUES") {
            return Err(CommandError::fixed("ERR NOVALUES option can only be used in HSCAN"));
        } else {
            return Err(CommandError::Syntax);
        }
    }
    // Scores are texts here, in both protocols; whole numbers of small sets are written in full.
    let in_full = set.encoding() == "listpack";
    // The cursor precedes the members in the reply but is known after them, so they are buffered.
    let (mut found, mut items) = (0, Vec::new());
    let mut reply = Reply::new(&mut items, cx.reply.protocol());
    let next = set.scan(cursor, count, |member| {
        if !member.name.with_bytes(|name| selection.has(name)) {
            return;
        }
        member.name.reply(&mut reply);
        match formats::whole(member.score).filter(|_| in_full) {
            Some(score) => reply.bulk_integer(score),
            None => reply.bulk(format_f64_in_17_digits(member.score, &mut [0; F64_CHARS_MAX])),
        }
        found += 2;
    });
    cx.reply.array(2);
    cx.reply.bulk_integer(next.map_or(0, |next| next as i64));
    cx.reply.array(found);
    cx.reply.raw(&items);
    Ok(())
}

pub(super) fn zrandmember(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    if !cx.args.is_empty() {
        return several(cx, key);
    }
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    match set.and_then(|set| set.pick(cx.random.usize(..set.len()))) {
        Some(member) => member.name.reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

/// ZRANDMEMBER with a count: that many different members, or, if it is negative, that many with repetitions.
fn several(cx: &mut ReadCx<'_>, key: Key<'_>) -> CommandResult {
    let (count, scores) = random_count(&mut cx.args, "WITHSCORES")?;
    let set = cx.keys.typed::<SortedSetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let Some(set) = set else {
        cx.reply.array(0);
        return Ok(());
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if cx.keys.is_long_walk(if count < 0 { wanted } else { wanted.min(set.len()) }) {
        cx.client.wants_index_copies = true;
        return Ok(());
    }
    let mut answer = Answer { reply: &mut cx.reply, scores };
    if count < 0 {
        return repeat(&set, wanted, cx.random, &mut answer);
    }
    if wanted >= set.len() {
        answer.begin(set.len());
        // The highest first, as in Redis.
        set.members(0..set.len(), Direction::Descending).for_each(|member| answer.add(&member));
        return Ok(());
    }
    answer.begin(wanted);
    for member in sample(&set, wanted, cx.random) {
        answer.add(&member);
    }
    Ok(())
}

/// The shortest encoding of a member in a reply: `$0` and two line ends.
const MEMBER_BYTES_MIN: usize = 6;

/// Replies `wanted` random members, with repetitions.
fn repeat(
    set: &SortedSetRef<'_>,
    wanted: usize,
    random: &mut fastrand::Rng,
    answer: &mut Answer<'_, '_>,
) -> CommandResult {
    if wanted > REPEATED_BYTES_MAX / MEMBER_BYTES_MIN {
        return Err(OUT_OF_RANGE);
    }
    // A few are found one by one; for many, the members are listed first.
    let listed: Vec<Member<'_>> = if wanted > set.len() { set.iter().collect() } else { Vec::new() };
    let begin = answer.reply.position();
    answer.begin(wanted);
    for _ in 0..wanted {
        let rank = random.usize(..set.len());
        match listed.get(rank) {
            Some(member) => answer.add(member),
            None => answer.add(&set.pick(rank).expect("it is below the number of members")),
        }
        if answer.reply.position() - begin > REPEATED_BYTES_MAX {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}

/// Picks `wanted` different members at random, fewer than there are.
fn sample<'a>(set: &SortedSetRef<'a>, wanted: usize, random: &mut fastrand::Rng) -> Vec<Member<'a>> {
    let len = set.len();
    if wanted * 3 <= len {
        // Draw a few out of many by rank until there are enough different ones.
        let mut ranks = BTreeSet::new();
        while ranks.len() < wanted {
            ranks.insert(random.usize(..len));
        }
        return ranks.into_iter().filter_map(|rank| set.pick(rank)).collect();
    }
    // Selection sampling in one walk: each remaining member has the same chance to be picked.
    let mut picked = Vec::with_capacity(wanted);
    for (at, member) in set.iter().enumerate() {
        if random.usize(..len - at) < wanted - picked.len() {
            picked.push(member);
        }
    }
    picked
}
