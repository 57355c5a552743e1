//! Members of sets at random: SRANDMEMBER shows them, SPOP takes them out.

use super::{set, set_to_change};
use crate::commands::shared::random::{OUT_OF_RANGE, REPEATED_BYTES_MAX, random_count};
use crate::error::{CommandError, CommandResult};
use crate::execution::context::{ReadCx, WriteCx};
use crate::settings::events::Events;
use crate::value_reply::ValueReply;
use keyspace::types::set::{Change, SetRef};
use keyspace::{Cause, Effect, Key, Scalar};
use numbers::parse_i64;
use resp::Reply;
use smallvec::SmallVec;
use std::collections::HashSet;

/// Members whose removal one effect tells.
const REMOVED_AT_ONCE: usize = 4096;

pub(super) fn spop(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    match cx.args.left() {
        0 => pop_one(cx, key),
        1 => pop_several(cx, key),
        _ => Err(CommandError::Syntax),
    }
}

fn pop_one(cx: &mut WriteCx<'_>, key: Key<'_>) -> CommandResult {
    let Some(set) = set_to_change(&mut cx.keys, key)? else {
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
    let set = set_to_change(&mut cx.keys, key)?;
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
    let picked = sample(set, count, cx.random);
    cx.reply.set(picked.len());
    // Copied out: they are about to go. All in one run of bytes, with the end of each.
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
    let set = set(&cx.keys, key)?;
    cx.keys.looked_up(key, set.is_some());
    match set {
        Some(set) => set.random(cx.random).reply(&mut cx.reply),
        None => cx.reply.null(),
    }
    Ok(())
}

/// That many different members, or, if the count is negative, that many whether different or not.
fn show_several(cx: &mut ReadCx<'_>, key: Key<'_>) -> CommandResult {
    let (count, _) = random_count(&mut cx.args, "")?;
    let set = set(&cx.keys, key)?;
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

/// The shortest that one member can be in a reply: `$0`, and two ends of line.
const MEMBER_BYTES_MIN: usize = 6;

/// Replies `wanted` random members, the same one perhaps several times.
fn repeat(set: SetRef<'_>, wanted: usize, random: &mut fastrand::Rng, reply: &mut Reply<'_>) -> CommandResult {
    if wanted > REPEATED_BYTES_MAX / MEMBER_BYTES_MIN {
        return Err(OUT_OF_RANGE);
    }
    // A packed set finds a member by a walk over those before it.
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

/// Different members at random, `wanted` of them, which is fewer than there are.
fn sample<'a>(set: SetRef<'a>, wanted: usize, random: &mut fastrand::Rng) -> Vec<Scalar<'a>> {
    let len = set.len();
    // A few out of many are drawn one by one. Draws that meet a member twice are wasted, so there is an end to them.
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
    // One walk: of the members that are left, each has the same chance to be one of those still wanted.
    let mut picked = Vec::with_capacity(wanted);
    for (at, member) in set.iter().enumerate() {
        if random.usize(..len - at) < wanted - picked.len() {
            picked.push(member);
        }
    }
    picked
}
