//! Random members of sets: SRANDMEMBER returns them, SPOP removes them.

use crate::shared::random::{OUT_OF_RANGE, REPEATED_BYTES_MAX, random_count};
use crate::value_reply::ValueReply;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use keyspace::types::set::{Change, Form, SetRef};
use keyspace::{Cause, Effect, Key, Scalar};
use numbers::parse_i64;
use resp::Reply;
use smallvec::SmallVec;
use std::collections::HashSet;

/// The most members that one effect removes.
const REMOVED_AT_ONCE: usize = 4096;

/// Few members are left of many when so many times as many are removed.
const FEW_LEFT: usize = 5;

pub(super) fn spop(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match cx.args.left() {
        0 => pop_one(cx, key),
        1 => pop_several(cx, key),
        _ => Err(CommandError::Syntax),
    }
}

fn pop_one(cx: &mut WriteCx<'_>, key: Key<'_>) -> CommandResult {
    let Some(set) = cx.keys.to_change::<SetRef>(key)? else {
        cx.reply.null();
        return Ok(());
    };
    let member = set.random(cx.random);
    member.reply(&mut cx.reply);
    let member: SmallVec<[u8; 64]> = member.with_bytes(SmallVec::from_slice);
    let removed = cx.keys.record(&Effect::change(key, Change::Remove { members: &[&member] }));
    cx.keys.notify(Events::SET, "spop", key);
    if removed.emptied() {
        cx.keys.notify(Events::GENERIC, "del", key);
    }
    Ok(())
}

fn pop_several(cx: &mut WriteCx<'_>, key: Key<'_>) -> CommandResult {
    let count = parse_i64(cx.args.bytes()?).and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(CommandError::fixed("ERR value is out of range, must be positive"))?;
    let small_max = cx.keys.thresholds().set.small_entries_max;
    let set = cx.keys.to_change::<SetRef>(key)?;
    let Some(set) = set.filter(|_| count > 0) else {
        cx.reply.set(0);
        return Ok(());
    };
    if count >= set.len() {
        cx.reply.set(set.len());
        set.iter().for_each(|member| member.reply(&mut cx.reply));
        cx.keys.record(&Effect::Delete { key, cause: Cause::Deleted });
        cx.keys.notify(Events::SET, "spop", key);
        cx.keys.notify(Events::GENERIC, "del", key);
        return Ok(());
    }
    // As in Redis: where few are left of many, they become a new set.
    let left = set.len() - count;
    let is_large = matches!(set, SetRef::Table(table) if table.form() == Form::Large);
    let is_rebuilt = is_large && left.saturating_mul(FEW_LEFT) <= count && left <= small_max;
    let picked = sample(set, count, cx.random);
    cx.reply.set(picked.len());
    // Copied, because they are about to be removed: concatenated, with the end of each.
    let (mut names, mut ends) = (Vec::new(), Vec::with_capacity(picked.len()));
    for member in picked {
        member.reply(&mut cx.reply);
        member.with_bytes(|member| names.extend_from_slice(member));
        ends.push(names.len());
    }
    let mut start = 0;
    for some in ends.chunks(REMOVED_AT_ONCE) {
        let mut members: SmallVec<[&[u8]; 8]> = SmallVec::with_capacity(some.len());
        for end in some {
            members.push(&names[start..*end]);
            start = *end;
        }
        cx.keys.record(&Effect::change(key, Change::Remove { members: &members }));
    }
    if is_rebuilt {
        cx.keys.record(&Effect::change(key, Change::Rebuild));
    }
    cx.keys.notify(Events::SET, "spop", key);
    Ok(())
}

pub(super) fn srandmember(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match cx.args.left() {
        0 => show_one(cx, key),
        1 => show_several(cx, key),
        _ => Err(CommandError::Syntax),
    }
}

fn show_one(cx: &mut ReadCx<'_>, key: Key<'_>) -> CommandResult {
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    match set {
        Some(set) => set.random(cx.random).reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

/// SRANDMEMBER with a count: that many different members, or, if it is negative, that many with repetitions.
fn show_several(cx: &mut ReadCx<'_>, key: Key<'_>) -> CommandResult {
    let (count, _) = random_count(&mut cx.args, "")?;
    let set = cx.keys.typed::<SetRef>(key)?;
    cx.keys.looked_up(key, set.is_some());
    let Some(set) = set else {
        cx.reply.array(0);
        return Ok(());
    };
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if count < 0 {
        return repeat(set, wanted, cx.random, &mut cx.reply);
    }
    if wanted >= set.len() {
        cx.reply.array(set.len());
        set.iter().for_each(|member| member.reply(&mut cx.reply));
        return Ok(());
    }
    cx.reply.array(wanted);
    sample(set, wanted, cx.random).iter().for_each(|member| member.reply(&mut cx.reply));
    Ok(())
}

/// The shortest encoding of a member in a reply: `$0` and two line ends.
const MEMBER_BYTES_MIN: usize = 6;

/// Replies `wanted` random members, with repetitions.
fn repeat(set: SetRef<'_>, wanted: usize, random: &mut fastrand::Rng, reply: &mut Reply<'_>) -> CommandResult {
    if wanted > REPEATED_BYTES_MAX / MEMBER_BYTES_MIN {
        return Err(OUT_OF_RANGE);
    }
    // A packed set finds a member by walking over those before it.
    let listed: Option<Vec<Scalar<'_>>> = matches!(set, SetRef::Packed(_)).then(|| set.iter().collect());
    let begin = reply.position();
    reply.array(wanted);
    for _ in 0..wanted {
        match &listed {
            Some(listed) => listed[random.usize(..listed.len())].reply(reply),
            None => set.random(random).reply(reply),
        }
        if reply.position() - begin > REPEATED_BYTES_MAX {
            return Err(OUT_OF_RANGE);
        }
    }
    Ok(())
}

/// Picks `wanted` different members at random, fewer than there are.
fn sample<'a>(set: SetRef<'a>, wanted: usize, random: &mut fastrand::Rng) -> Vec<Scalar<'a>> {
    let len = set.len();
    // Draw a few out of many one by one. Draws that hit a member twice are wasted, so their number is limited.
    if let SetRef::Table(_) = set
        && wanted <= len / 3
    {
        let (mut drawn, mut known) = (Vec::with_capacity(wanted), HashSet::with_capacity(wanted));
        for _ in 0..wanted * 4 + 16 {
            if drawn.len() == wanted {
                return drawn;
            }
            let member = set.random(random);
            if let Scalar::Bytes(bytes) = member
                && known.insert(bytes)
            {
                drawn.push(member);
            }
        }
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
