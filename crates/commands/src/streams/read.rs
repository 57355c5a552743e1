//! XREAD and XREADGROUP, which wait for entries. Knows their arguments and which consumer gets which entries; refuses
//! to know how waiting works (`execution::waiting`).

use super::ids::{id, reply_id, text_of};
use super::pending::idle_ms;
use super::ranges::{reply_entries, reply_entry, reply_fields};
use super::stamp_ms;
use execution::args::{Args, is_word};
use execution::command::{FoundKeys, KeyFlags, KeyRange};
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::waiting::keys::{Condition, Wait, WaitKeys, WaitRole};
use keyspace::types::stream::{Change, Delivery, EntryRef, Group, Pending, Stream, StreamId};
use keyspace::{Effect, Key, Value};
use numbers::parse_i64;
use resp::{OwnedRequest, Protocol, Reply, Request};
use smallvec::{SmallVec, smallvec};

/// The most entries for a client that has waited, when it has not set a COUNT.
const COUNT_AFTER_WAIT: usize = 1000;

/// The arguments of XREAD and XREADGROUP.
struct Asked<'a> {
    request: Request<'a>,
    /// How long to wait, in milliseconds; 0 for ever.
    block_ms: Option<u64>,
    count: Option<usize>,
    /// The names of the group and the consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    no_ack: bool,
    /// Entries that have been pending for so many milliseconds are delivered too.
    claim_ms: Option<i64>,
    /// The position of the first key, and the number of keys.
    keys_at: usize,
    keys: usize,
}

impl<'a> Asked<'a> {
    fn take(args: &mut Args<'a>, is_group: bool) -> Result<Asked<'a>, CommandError> {
        let request = args.request();
        let mut asked = Asked {
            request,
            block_ms: None,
            count: None,
            group: None,
            no_ack: false,
            claim_ms: None,
            keys_at: 0,
            keys: 0,
        };
        while let Some(word) = args.try_next() {
            let more = args.left();
            if is_word(word, "BLOCK") && more > 0 {
                asked.block_ms = Some(block_ms(args.bytes()?)?);
            } else if is_word(word, "COUNT") && more > 0 {
                asked.count = usize::try_from(args.int()?).ok().filter(|count| *count > 0);
            } else if is_word(word, "STREAMS") && more > 0 {
                if !more.is_multiple_of(2) {
                    return Err(CommandError::fixed(match is_group {
                        false => {
                            "ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be specified."
                        }
                        true => {
                            "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
                        }
                    }));
                }
                (asked.keys_at, asked.keys) = (request.len() - more, more / 2);
                break;
            } else if is_word(word, "GROUP") && more >= 2 {
                if !is_group {
                    return Err(CommandError::fixed(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                asked.group = Some((args.bytes()?, args.bytes()?));
            } else if is_word(word, "CLAIM") && more > 0 {
                if !is_group {
                    return Err(CommandError::fixed(
                        "ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                asked.claim_ms = Some(claim_ms(args.bytes()?)?);
            } else if is_word(word, "NOACK") {
                if !is_group {
                    return Err(CommandError::fixed(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                asked.no_ack = true;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if asked.keys == 0 {
            return Err(CommandError::Syntax);
        }
        if is_group && asked.group.is_none() {
            return Err(CommandError::fixed("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(asked)
    }

    fn key(&self, number: usize) -> Key<'a> {
        Key::new(self.request.arg(self.keys_at + number))
    }

    fn id_at(&self, number: usize) -> usize {
        self.keys_at + self.keys + number
    }

    fn id(&self, number: usize) -> &'a [u8] {
        self.request.arg(self.id_at(number))
    }

    fn wait(&self, now_ms: u64, condition: Condition, role: WaitRole) -> Option<Wait> {
        let until_ms = |block_ms: u64| (block_ms > 0).then(|| now_ms.saturating_add(block_ms));
        self.block_ms.map(|block_ms| Wait { until_ms: until_ms(block_ms), keys: WaitKeys::All, condition, role })
    }
}

/// Parses how long to wait, in milliseconds.
fn block_ms(text: &[u8]) -> Result<u64, CommandError> {
    let ms = parse_i64(text).ok_or(CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    u64::try_from(ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))
}

/// Parses for how long entries have been pending that are claimed, in milliseconds.
fn claim_ms(text: &[u8]) -> Result<i64, CommandError> {
    match parse_i64(text) {
        None => Err(CommandError::fixed("ERR min-idle-time is not an integer")),
        Some(..0) => Err(CommandError::fixed("ERR min-idle-time must be a positive integer")),
        Some(ms) => Ok(ms),
    }
}

/// The keys of XREAD and XREADGROUP: the first half of the arguments after STREAMS, if that word is not the name of a
/// group or a consumer.
pub(super) fn keys(request: Request<'_>, flags: KeyFlags) -> FoundKeys {
    let mut at = 1;
    while at < request.len() {
        let word = request.arg(at);
        at += 1;
        if ["BLOCK", "COUNT", "CLAIM"].iter().any(|option| is_word(word, option)) {
            at += 1;
        } else if is_word(word, "GROUP") {
            at += 2;
        } else if is_word(word, "STREAMS") {
            let left = request.len().saturating_sub(at);
            if left == 0 || !left.is_multiple_of(2) {
                break;
            }
            let last = at + left / 2 - 1;
            let range = KeyRange { first: at as u32, last: last as u32, step: 1, flags };
            return FoundKeys { ranges: smallvec![range], is_invalid: false };
        } else if !is_word(word, "NOACK") {
            break;
        }
    }
    FoundKeys { is_invalid: true, ..FoundKeys::default() }
}

/// Begins a reply of so many streams.
fn begin(reply: &mut Reply<'_>, streams: usize) {
    match reply.protocol() {
        Protocol::Resp2 => reply.array(streams),
        Protocol::Resp3 => reply.map(streams),
    }
}

fn reply_name(reply: &mut Reply<'_>, key: Key<'_>) {
    if reply.protocol() == Protocol::Resp2 {
        reply.array(2);
    }
    reply.bulk(key.name);
}

pub(super) fn xread(cx: &mut ReadCx<'_>) -> CommandResult {
    let asked = Asked::take(&mut cx.args, false)?;
    let offer = cx.client.offer();
    let (mut ids, mut served) = (SmallVec::<[StreamId; 4]>::new(), SmallVec::<[usize; 4]>::new());
    for number in 0..asked.keys {
        let key = asked.key(number);
        if offer.as_ref().is_some_and(|offer| !offer.has(key)) {
            ids.push(StreamId::MAX);
            continue;
        }
        let stream = match cx.keys.typed::<&Stream>(key) {
            // It was a stream, or absent, when the wait began: it may become one again.
            Err(CommandError::WrongType(_)) if offer.is_some() => None,
            stream => stream?,
        };
        if offer.is_none() {
            cx.keys.looked_up(key, stream.is_some());
        }
        let id = read_after(asked.id(number), stream)?;
        ids.push(id);
        if stream.and_then(Stream::last_entry).is_some_and(|last| last > id) {
            served.push(number);
        }
    }
    if !served.is_empty() {
        let count = match offer {
            // A stream that is named twice is offered once.
            Some(_) => {
                served.truncate(1);
                asked.count.unwrap_or(COUNT_AFTER_WAIT)
            }
            None => asked.count.unwrap_or(usize::MAX),
        };
        begin(&mut cx.reply, served.len());
        for number in served {
            let key = asked.key(number);
            reply_name(&mut cx.reply, key);
            if let Some(stream) = cx.keys.typed::<&Stream>(key)? {
                reply_entries(&mut cx.reply, stream.after(ids[number]).take(count));
            }
        }
        return Ok(());
    }
    cx.reply.null_array();
    let lowest = ids.iter().copied().min().unwrap_or_default();
    let condition = Box::new(move |value: Option<&Value<'_>>| match value {
        Some(Value::Stream(stream)) => stream.last_entry().is_some_and(|last| last > lowest),
        _ => false,
    });
    if let Some(wait) = asked.wait(cx.keys.now_ms, condition, WaitRole::Reader) {
        cx.client.wait_as(wait, resolved(&asked, &ids));
    }
    Ok(())
}

/// The id after which to read. `$` is the last id that was assigned, `+` the one before the last entry.
fn read_after(arg: &[u8], stream: Option<&Stream>) -> Result<StreamId, CommandError> {
    match text_of(arg) {
        b"$" => Ok(stream.map(Stream::last).unwrap_or_default()),
        b"+" => Ok(stream.and_then(Stream::last_entry).and_then(StreamId::previous).unwrap_or_default()),
        b">" => Err(CommandError::fixed(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )),
        _ => id(arg, 0),
    }
}

/// The request with ids instead of words that mean something else later.
fn resolved(asked: &Asked<'_>, ids: &[StreamId]) -> Option<OwnedRequest> {
    let is_word = |number: &usize| matches!(text_of(asked.id(*number)), b"$" | b"+");
    let words: Vec<usize> = (0..asked.keys).filter(is_word).collect();
    if words.is_empty() {
        return None;
    }
    let texts: Vec<String> = ids.iter().map(StreamId::to_string).collect();
    let args =
        asked.request.iter().enumerate().map(|(at, arg)| match words.iter().find(|word| asked.id_at(**word) == at) {
            Some(word) => texts[*word].as_bytes(),
            None => arg,
        });
    Some(args.collect())
}

/// What XREADGROUP reads from a stream.
#[derive(Clone, Copy)]
enum From {
    /// Entries that were delivered to no consumer of the group.
    New,
    /// Entries after an id that are pending for the consumer.
    Pending(StreamId),
}

impl From {
    fn of_id(arg: &[u8]) -> Result<From, CommandError> {
        const LAST_ASSIGNED: CommandError = CommandError::fixed(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        );
        const LAST_ENTRY: CommandError = CommandError::fixed(
            "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just return an empty result set.",
        );
        match text_of(arg) {
            b"$" => Err(LAST_ASSIGNED),
            b"+" => Err(LAST_ENTRY),
            b">" => Ok(From::New),
            _ => Ok(match id(arg, 0)? {
                // In Redis the highest id is another way to write `>`.
                StreamId::MAX => From::New,
                after => From::Pending(after),
            }),
        }
    }
}

pub(super) fn xreadgroup(cx: &mut WriteCx<'_>) -> CommandResult {
    let asked = Asked::take(&mut cx.args, true)?;
    let (group, consumer) = asked.group.ok_or(CommandError::Syntax)?;
    if let Some(offer) = cx.client.offer() {
        let number = (0..asked.keys).find(|number| offer.has(asked.key(*number))).ok_or(CommandError::Internal)?;
        return read_offered(cx, &asked, number, group);
    }
    let count = asked.count.unwrap_or(usize::MAX);
    let mut served = SmallVec::<[(usize, From); 4]>::new();
    if asked.claim_ms.is_some() {
        // IMPORTANT: before anything is claimed: what is refused because of one stream changes no other.
        for number in 0..asked.keys {
            let key = asked.key(number);
            let found = cx.keys.to_change::<&Stream>(key)?.and_then(|stream| stream.group(group));
            if found.is_none() {
                return Err(no_key_or_group_to_read(key, group));
            }
            From::of_id(asked.id(number))?;
        }
    }
    for number in 0..asked.keys {
        let key = asked.key(number);
        prepare_claims(cx, key, &asked, group)?;
        let stream = cx.keys.to_change::<&Stream>(key)?;
        let found = stream.and_then(|stream| Some((stream, stream.group(group)?)));
        let (stream, found) = found.ok_or_else(|| no_key_or_group_to_read(key, group))?;
        let from = From::of_id(asked.id(number))?;
        let wants_new = matches!(from, From::New);
        if !wants_new {
            served.push((number, from));
        }
        if wants_new && claimable(cx.now_us, &asked, stream, found).next().is_some() {
            served.push((number, From::New));
        } else if wants_new && stream.last_entry().is_some_and(|last| last > found.last) {
            // A stream that is named twice is read twice, if it has enough entries.
            let is_before =
                |(before, from): &&(usize, From)| matches!(from, From::New) && asked.key(*before).name == key.name;
            let read = served.iter().filter(is_before).count().saturating_mul(count);
            if read == 0 || stream.after(found.last).nth(read).is_some() {
                served.push((number, From::New));
            }
        }
    }
    // A stream that has nothing for the consumer knows that it has asked.
    for number in (0..asked.keys).filter(|number| served.iter().all(|(other, _)| other != number)) {
        make_consumer(cx, asked.key(number), group, consumer)?;
        see(cx, asked.key(number), group, consumer);
    }
    if !served.is_empty() {
        begin(&mut cx.reply, served.len());
        for (number, from) in served {
            let key = asked.key(number);
            reply_name(&mut cx.reply, key);
            match from {
                From::New => read_new(cx, key, &asked, count)?,
                From::Pending(after) => read_pending(cx, key, &asked, after, count)?,
            }
        }
        return Ok(());
    }
    wait_for_group(cx, &asked, group);
    Ok(())
}

/// Waits for new entries in any of the streams.
fn wait_for_group(cx: &mut WriteCx<'_>, asked: &Asked<'_>, group: &[u8]) {
    cx.reply.null_array();
    let group: Box<[u8]> = group.into();
    let claims = asked.claim_ms.is_some();
    let condition = Box::new(move |value: Option<&Value<'_>>| match value {
        Some(Value::Stream(stream)) => stream.group(&group).is_none_or(|group| {
            // What is pending may have been idle for long enough by now: the command looks again.
            stream.last_entry().is_some_and(|last| last > group.last) || claims && !group.is_empty()
        }),
        // The key is gone, and its group with it.
        _ => true,
    });
    if let Some(wait) = asked.wait(cx.keys.now_ms(), condition, WaitRole::Taker) {
        match claims {
            true => cx.client.wait_and_look(wait),
            false => cx.client.wait(wait),
        }
    }
}

/// How many pending entries are looked at for one that can be claimed.
const LOOKED_AT_MAX: usize = 1000;

/// Lets a group keep its pending entries in the order in which they can be claimed, and drops some of those in front
/// whose entries are deleted, as XCLAIM does.
fn prepare_claims(cx: &mut WriteCx<'_>, key: Key<'_>, asked: &Asked<'_>, group: &[u8]) -> CommandResult {
    let Some(upto_ms) = claimed_upto(cx.now_us, asked) else { return Ok(()) };
    let stream = cx.keys.to_change::<&Stream>(key)?;
    if stream.and_then(|stream| stream.group(group)).is_some_and(|group| !group.is_ordered()) {
        cx.keys.record(&Effect::change(key, Change::Order { group }));
    }
    let found = cx.keys.view().typed::<&Stream>(key)?.and_then(|stream| Some((stream, stream.group(group)?)));
    let Some((stream, found)) = found else { return Ok(()) };
    let in_front = found.claimable(upto_ms).map(|(id, _)| id).take(LOOKED_AT_MAX);
    let gone: Vec<StreamId> = in_front.take_while(|id| stream.get(*id).is_none()).collect();
    if !gone.is_empty() {
        cx.keys.record(&Effect::change(key, Change::Acknowledge { group, ids: &gone }));
    }
    Ok(())
}

/// The time up to which entries were delivered that are claimed now.
fn claimed_upto(now_us: u64, asked: &Asked<'_>) -> Option<i64> {
    asked.claim_ms.map(|claim_ms| ((now_us / 1000) as i64).saturating_sub(claim_ms))
}

/// The pending entries that are claimed, with their state before, in order. Entries that are deleted are not among them.
fn claimable<'s>(
    now_us: u64,
    asked: &Asked<'_>,
    stream: &'s Stream,
    group: &'s Group,
) -> impl Iterator<Item = (EntryRef<'s>, &'s Pending)> {
    let pending = claimed_upto(now_us, asked).into_iter().flat_map(|upto_ms| group.claimable(upto_ms));
    pending.take(LOOKED_AT_MAX).filter_map(|(id, pending)| Some((stream.get(id)?, pending)))
}

/// The error of XREADGROUP for a key or a group that does not exist.
fn no_key_or_group_to_read(key: Key<'_>, group: &[u8]) -> CommandError {
    let (group, key) = (String::from_utf8_lossy(group), String::from_utf8_lossy(key.name));
    CommandError::said(format!(
        "NOGROUP No such key '{key}' or consumer group '{group}' in XREADGROUP with GROUP option"
    ))
}

/// Serves a client that has waited for a stream. The stream or its group may be gone.
fn read_offered(cx: &mut WriteCx<'_>, asked: &Asked<'_>, number: usize, group: &[u8]) -> CommandResult {
    let key = asked.key(number);
    prepare_claims(cx, key, asked, group)?;
    let found = cx.keys.to_change::<&Stream>(key)?.and_then(|stream| Some((stream, stream.group(group)?)));
    let (stream, found) = found.ok_or_else(|| no_key_or_group_to_read(key, group))?;
    let has_new = stream.last_entry().is_some_and(|last| last > found.last);
    if !has_new && claimable(cx.now_us, asked, stream, found).next().is_none() {
        wait_for_group(cx, asked, group);
        return Ok(());
    }
    begin(&mut cx.reply, 1);
    reply_name(&mut cx.reply, key);
    read_new(cx, key, asked, asked.count.unwrap_or(COUNT_AFTER_WAIT))
}

/// Creates the consumer, if it does not exist.
pub(super) fn make_consumer(
    cx: &mut WriteCx<'_>,
    key: Key<'_>,
    group: &[u8],
    consumer: &[u8],
) -> Result<(), CommandError> {
    let found = cx
        .keys
        .view()
        .typed::<&Stream>(key)?
        .and_then(|stream| stream.group(group))
        .and_then(|group| group.consumer(consumer));
    if found.is_none() {
        let at_ms = stamp_ms(cx) as i64;
        cx.keys.record(&Effect::change(key, Change::CreateConsumer { group, consumer, at_ms }));
        cx.keys.notify(Events::STREAM, "xgroup-createconsumer", key);
    }
    Ok(())
}

/// Notes that a consumer has asked for entries and got none. That is recorded only now and then: a consumer that polls
/// must not make the journal grow.
pub(super) fn see(cx: &mut WriteCx<'_>, key: Key<'_>, group: &[u8], consumer: &[u8]) {
    let at_ms = stamp_ms(cx) as i64;
    let stream = cx.keys.view().typed::<&Stream>(key).ok().flatten();
    let found = stream.and_then(|stream| stream.group(group)?.consumer(consumer));
    if found.is_some_and(|consumer| consumer.note_seen(at_ms)) {
        return;
    }
    cx.keys.record(&Effect::change(key, Change::See { group, consumer, at_ms, deliveries: &[] }));
}

/// Claims entries that have been pending for long enough, and writes them as part of an array that is open. Returns how
/// many. What is pending of deleted entries is dropped, as by XCLAIM.
fn claim_idle(cx: &mut WriteCx<'_>, key: Key<'_>, asked: &Asked<'_>, count: usize) -> Result<usize, CommandError> {
    let (group, consumer) = asked.group.ok_or(CommandError::Syntax)?;
    let Some(upto_ms) = claimed_upto(cx.now_us, asked) else { return Ok(0) };
    let at_ms = stamp_ms(cx) as i64;
    let (keys, reply) = (&mut cx.keys, &mut cx.reply);
    let (mut deliveries, mut gone) = (Vec::new(), Vec::new());
    let stream = keys.view().typed::<&Stream>(key)?;
    if let Some((stream, group)) = stream.and_then(|stream| Some((stream, stream.group(group)?))) {
        let looked_at_max = count.saturating_mul(10).max(LOOKED_AT_MAX);
        for (id, pending) in group.claimable(upto_ms).take(looked_at_max) {
            if deliveries.len() == count {
                break;
            }
            let Some(entry) = stream.get(id) else {
                gone.push(id);
                continue;
            };
            let before = pending.deliveries();
            reply_read(reply, &entry, Some((idle_ms(pending, at_ms), before)));
            deliveries.push(Delivery { id, delivered_ms: at_ms, deliveries: before.saturating_add(1) });
        }
    }
    if !gone.is_empty() {
        keys.record(&Effect::change(key, Change::Acknowledge { group, ids: &gone }));
    }
    if !deliveries.is_empty() {
        keys.record(&Effect::change(key, Change::Claim { group, consumer, at_ms, deliveries: &deliveries }));
    }
    Ok(deliveries.len())
}

/// Writes an entry; where entries are claimed, with how long it has been pending and how often it was delivered.
fn reply_read(reply: &mut Reply<'_>, entry: &EntryRef<'_>, pending: Option<(i64, u64)>) {
    let Some((idle_ms, deliveries)) = pending else { return reply_entry(reply, entry) };
    reply.array(4);
    reply_id(reply, entry.id);
    reply_fields(reply, entry);
    reply.integer(idle_ms);
    reply.integer(deliveries as i64);
}

/// Delivers entries that were delivered to no consumer of the group, behind those that are claimed.
fn read_new(cx: &mut WriteCx<'_>, key: Key<'_>, asked: &Asked<'_>, count: usize) -> CommandResult {
    let (group, consumer) = asked.group.ok_or(CommandError::Syntax)?;
    make_consumer(cx, key, group, consumer)?;
    let at_ms = stamp_ms(cx) as i64;
    let open = cx.reply.open_array();
    let claimed = claim_idle(cx, key, asked, count)?;
    let count = count - claimed;
    let (keys, reply) = (&mut cx.keys, &mut cx.reply);
    let mut ids = SmallVec::<[StreamId; 16]>::new();
    let mut replied = claimed;
    let (mut last, mut entries_read) = (StreamId::MIN, None);
    if let Some(stream) = keys.view().typed::<&Stream>(key)?
        && let Some(group) = stream.group(group)
    {
        (last, entries_read) = (group.last, group.entries_read);
        for entry in stream.after(last).take(count) {
            entries_read = stream.entries_read(entries_read, last, entry.id);
            last = entry.id;
            if !asked.no_ack {
                ids.push(entry.id);
            }
            reply_read(reply, &entry, asked.claim_ms.map(|_| (0, 0)));
            replied += 1;
        }
    }
    reply.close(open, replied);
    keys.record(&Effect::change(key, Change::Deliver { group, consumer, last, entries_read, at_ms, ids: &ids }));
    Ok(())
}

/// Delivers entries again that are pending for the consumer.
fn read_pending(cx: &mut WriteCx<'_>, key: Key<'_>, asked: &Asked<'_>, after: StreamId, count: usize) -> CommandResult {
    let (group, consumer) = asked.group.ok_or(CommandError::Syntax)?;
    make_consumer(cx, key, group, consumer)?;
    let at_ms = stamp_ms(cx) as i64;
    let (keys, reply) = (&mut cx.keys, &mut cx.reply);
    let mut deliveries = Vec::new();
    let stream = keys.view().typed::<&Stream>(key)?;
    let found = stream.and_then(|stream| Some((stream, stream.group(group)?)));
    if let Some((stream, group)) = found
        && let Some(consumer) = group.consumer(consumer)
    {
        let open = reply.open_array();
        let from = after.next().unwrap_or(StreamId::MAX);
        let mut replied = 0;
        for id in consumer.pending(from..).take(count) {
            replied += 1;
            match stream.get(id) {
                Some(entry) => {
                    reply_entry(reply, &entry);
                    let before = group.get(id).map_or(0, |pending| pending.deliveries());
                    deliveries.push(Delivery { id, delivered_ms: at_ms, deliveries: before.wrapping_add(1) });
                }
                None => {
                    reply.array(2);
                    reply_id(reply, id);
                    reply.null_array();
                }
            }
        }
        reply.close(open, replied);
    }
    if deliveries.is_empty() {
        // Even if nothing is pending, the consumer was seen.
        see(cx, key, group, consumer);
    } else {
        keys.record(&Effect::change(key, Change::See { group, consumer, at_ms, deliveries: &deliveries }));
    }
    Ok(())
}
