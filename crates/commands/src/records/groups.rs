//! IDX.LIMIT and IDX.GROUPS: limits of groups, and how groups fare. The groups themselves are in
//! `keyspace::index::groups`.

use super::claim::rates_now_ns;
use crate::shared::options::{argument, error, limit, number, once, shown, unknown_option};
use crate::shared::sliced_array::SlicedArray;
use crate::shared::slices::{run, take_token};
use execution::args::{Args, is_word};
use execution::commit;
use execution::conditions;
use execution::context::ScriptCx;
use execution::engine::Engine;
use execution::error::{CommandError, CommandResult};
use execution::own_changes;
use execution::revealed;
use execution::slices::TimeSlice;
use execution::view::View;
use execution::worker::Worker;
use keyspace::index::Index;
use keyspace::index::groups::{
    Applied, GroupState, Limits, RATE_MAX, Rate, Scope, Setting, WEIGHT_DEFAULT, WEIGHT_MAX, WEIGHT_MIN, encode_name,
};
use keyspace::{Definable, Effect, Locked};
use numbers::parse_f64;
use resp::{Protocol, Reply, Request};
use std::sync::Arc;

/// The most groups in one reply of IDX.GROUPS.
const LISTED_MAX: usize = 4096;
/// The groups that are listed under one lock.
const LISTED_AT_ONCE: usize = 256;
const LISTED: usize = 1000;
/// The limits that are taken back under one lock.
const RESET_AT_ONCE: usize = 64;
const NS_PER_MS: u64 = 1_000_000;
/// A weight is stored in thousandths.
const WEIGHT_UNIT: f64 = 1000.0;

/// What IDX.LIMIT changes.
#[derive(Default)]
struct Changes {
    held: Option<Setting<u64>>,
    rate: Option<Setting<Rate>>,
    weight: Option<u32>,
    pause: Option<bool>,
    reset: Option<bool>,
}

/// True when IDX.LIMIT sets nothing.
pub(super) fn only_lists(request: Request<'_>) -> bool {
    request.len() == 2
}

pub(super) fn set_limit(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let name = argument(&mut cx.args, "the name of the index")?;
    if cx.args.left() == 0 {
        return list_limits(cx, name);
    }
    let (scope, changes) = take_changes(&mut cx.args)?;
    let engine = cx.engine;
    let index = find(cx, name)?;
    pass_changes(&index, scope, &changes)?;
    if scope.is_none() && cx.held.is_none() {
        let token = take_token(cx)?;
        return run(
            cx,
            token,
            Reset { index },
            |job, engine, worker, _| job.step(engine, worker),
            |(), reply| reply.ok(),
        );
    }
    let worker = &mut *cx.worker;
    let mut own = match cx.held {
        Some(_) => None,
        None => Some(engine.keyspace.lock_all_unless_busy().ok_or_else(|| conditions::busy(engine))?),
    };
    let lent = cx.held.as_mut().map(Locked::lend).or(own.as_mut().map(Locked::lend));
    let mut locked = lent.expect("one of them is there");
    cx.client.depends_on = cx.client.depends_on.max(locked.changed_by());
    if !engine.indexes.list().iter().any(|known| Arc::ptr_eq(known, &index)) {
        return Err(error(format!("the index {} was dropped", shown(name))));
    }
    let usage = engine.usage(&mut worker.random);
    let mut view = View::new(locked.lend(), cx.client.db, worker.now_ms, usage, &worker.metrics.stats);
    view.notify_through(&worker.batch.notifications, engine.settings.notify_keyspace_events().published());
    let mut keys = view.into_recorder(engine, &mut worker.batch.effects);
    let set: Vec<(Vec<u8>, Limits)> = match scope {
        Some(scope) => {
            let before = index.groups.with_limits(|table| table.get(scope));
            vec![(encode_name(name, scope), changed(before, &changes))]
        }
        // Everything is taken back.
        None => index.groups.with_limits(|table| {
            table.iter().map(|(scope, _)| (encode_name(name, scope), Limits::default())).collect()
        }),
    };
    for (name, limits) in &set {
        match limits.is_empty() {
            true => keys.record(&Effect::Undefine { what: Definable::Limits, name }),
            false => keys.record(&Effect::Define { what: Definable::Limits, name, definition: &limits.encode() }),
        };
    }
    let garbage = keys.finish().take_garbage();
    commit::commit(engine, worker, Some(cx.client), &mut locked);
    drop(locked);
    drop(own);
    engine.free(garbage);
    cx.reply.ok();
    Ok(())
}

/// Takes all limits of an index back, in slices: there may be very many.
struct Reset {
    index: Arc<Index>,
}

impl Reset {
    /// Does one slice of the work. Limits belong to no database, so that none can be the wrong one.
    fn step(&mut self, engine: &Engine, worker: &mut Worker) -> Option<Result<(), CommandError>> {
        let (slice, index) = (TimeSlice::begin(engine), &self.index);
        while !slice.is_over() {
            if let Err(error) = engine.restrictions.pass_write() {
                return Some(Err(error));
            }
            let Some(mut locked) = engine.keyspace.lock_all_unless_busy() else {
                return Some(Err(conditions::busy(engine)));
            };
            // An index of that name that was created meanwhile has limits of its own.
            if !engine.indexes.list().iter().any(|known| Arc::ptr_eq(known, index)) {
                return Some(Ok(()));
            }
            let name_of = |(scope, _): (Scope<'_>, Limits)| encode_name(&index.name, scope);
            let names: Vec<_> =
                index.groups.with_limits(|table| table.iter().take(RESET_AT_ONCE).map(name_of).collect());
            if names.is_empty() {
                return Some(Ok(()));
            }
            let mut keys = own_changes::own_changes(engine, worker, locked.lend(), 0);
            for name in &names {
                keys.record(&Effect::Undefine { what: Definable::Limits, name });
            }
            let garbage = keys.finish().take_garbage();
            commit::commit(engine, worker, None, &mut locked);
            locked.release_fairly();
            engine.free(garbage);
        }
        None
    }
}

/// The scope, and what is to be set; without a scope, RESET takes everything back.
fn take_changes<'a>(args: &mut Args<'a>) -> Result<(Option<Scope<'a>>, Changes), CommandError> {
    let (mut scope, mut changes, mut burst) = (None, Changes::default(), None);
    while let Some(word) = args.try_next() {
        if is_word(word, "GROUP") {
            once(&mut scope, Scope::Group(argument(args, "the group behind GROUP")?), "GROUP, EACH or ALL")?;
        } else if is_word(word, "EACH") {
            once(&mut scope, Scope::Each, "GROUP, EACH or ALL")?;
        } else if is_word(word, "ALL") {
            once(&mut scope, Scope::All, "GROUP, EACH or ALL")?;
        } else if is_word(word, "HELD") {
            let held = match setting(args) {
                Some(held) => held,
                None => Setting::Is(number(args, "the maximum behind HELD", 0, i64::MAX)? as u64),
            };
            once(&mut changes.held, held, "HELD")?;
        } else if is_word(word, "RATE") {
            let rate = match setting(args) {
                Some(rate) => rate,
                None => {
                    let takes = number(args, "the number behind RATE", 1, RATE_MAX as i64)? as u64;
                    let per_ms = number(args, "the milliseconds behind RATE", 1, RATE_MAX as i64)? as u64;
                    Setting::Is(Rate { takes, per_ms, burst: takes })
                }
            };
            once(&mut changes.rate, rate, "RATE")?;
        } else if is_word(word, "BURST") {
            once(&mut burst, number(args, "the number behind BURST", 1, RATE_MAX as i64)? as u64, "BURST")?;
        } else if is_word(word, "WEIGHT") {
            once(&mut changes.weight, weight(argument(args, "the number behind WEIGHT")?)?, "WEIGHT")?;
        } else if is_word(word, "PAUSE") {
            let pause = match argument(args, "the word behind PAUSE")? {
                word if is_word(word, "YES") => true,
                word if is_word(word, "NO") => false,
                _ => return Err(unknown_option(args)),
            };
            once(&mut changes.pause, pause, "PAUSE")?;
        } else if is_word(word, "RESET") {
            once(&mut changes.reset, true, "RESET")?;
        } else {
            return Err(unknown_option(args));
        }
    }
    match (&mut changes.rate, burst) {
        (_, None) => {}
        (Some(Setting::Is(rate)), Some(burst)) => rate.burst = burst,
        _ => return Err(CommandError::fixed("ERR BURST has no meaning without the numbers of RATE")),
    }
    let sets = changes.held.is_some() || changes.rate.is_some() || changes.weight.is_some() || changes.pause.is_some();
    match (scope, sets, changes.reset.is_some()) {
        (_, true, true) => Err(CommandError::fixed("ERR RESET takes everything back: nothing can be set with it")),
        (None, true, false) => Err(CommandError::fixed("ERR limits are for GROUP g, for EACH group, or for ALL")),
        (_, false, false) => Err(CommandError::fixed("ERR nothing is set: send HELD, RATE, WEIGHT, PAUSE or RESET")),
        _ => Ok((scope, changes)),
    }
}

/// NONE or DEFAULT.
fn setting<T>(args: &mut Args<'_>) -> Option<Setting<T>> {
    let mut ahead = *args;
    let setting = match ahead.try_next()? {
        word if is_word(word, "NONE") => Setting::None,
        word if is_word(word, "DEFAULT") => Setting::Default,
        _ => return None,
    };
    *args = ahead;
    Some(setting)
}

/// A weight in thousandths. It is checked before it is rounded.
fn weight(text: &[u8]) -> Result<u32, CommandError> {
    let allowed = f64::from(WEIGHT_MIN) / WEIGHT_UNIT..=f64::from(WEIGHT_MAX) / WEIGHT_UNIT;
    let weight = parse_f64(text).filter(|weight| allowed.contains(weight));
    let thousandths = weight.map(|weight| (weight * WEIGHT_UNIT).round() as u32);
    thousandths.ok_or_else(|| error(format!("WEIGHT must be a number from 0.01 to 1000, not {}", shown(text))))
}

fn find(cx: &mut ScriptCx<'_, '_>, name: &[u8]) -> Result<Arc<Index>, CommandError> {
    let found = cx.engine.indexes.list().find(name).filter(|index| index.is_built()).cloned();
    if found.is_none() {
        revealed::await_definitions(cx)?;
    }
    found.ok_or_else(|| error(format!("there is no index {}", shown(name))))
}

/// Refuses limits that have no meaning for an index.
fn pass_changes(index: &Index, scope: Option<Scope<'_>>, changes: &Changes) -> CommandResult {
    let definition = &index.definition;
    let refuse = |text: String| Err(error(text));
    let name = shown(&index.name);
    if matches!(scope, Some(Scope::Group(_) | Scope::Each)) && definition.group.is_none() {
        return refuse(format!("the index {name} has no groups: it was created without GROUP"));
    }
    if changes.held.is_some() && definition.held.is_none() {
        return refuse(format!("the index {name} does not know what is held: it was created without HELD"));
    }
    match scope {
        Some(Scope::All) if changes.weight.is_some() => refuse("WEIGHT is for groups, not for ALL".into()),
        Some(Scope::Group(group)) if group.len() > keyspace::index::groups::GROUP_NAME_MAX => {
            refuse(format!("the name of a group has at most {} bytes", keyspace::index::groups::GROUP_NAME_MAX))
        }
        _ => Ok(()),
    }
}

fn changed(before: Limits, changes: &Changes) -> Limits {
    match changes.reset {
        Some(_) => Limits::default(),
        None => Limits {
            held: changes.held.unwrap_or(before.held),
            rate: changes.rate.unwrap_or(before.rate),
            weight: changes.weight.or(before.weight),
            pause: changes.pause.or(before.pause),
        },
    }
}

/// The progress of a list of limits.
struct Listing {
    index: Arc<Index>,
    /// Those so far, encoded as in the reply.
    body: SlicedArray,
    count: usize,
    /// The group of the last one.
    last: Option<Vec<u8>>,
}

/// `IDX.LIMIT name`, in slices: there may be very many.
fn list_limits(cx: &mut ScriptCx<'_, '_>, name: &[u8]) -> CommandResult {
    let (mut listing, token) = match cx.client.resume::<Listing>() {
        Some((listing, token)) => (listing, token),
        None => {
            let index = find(cx, name)?;
            revealed::await_definitions(cx)?;
            let token = match &cx.held {
                Some(held) => cx.engine.databases.take_token(held, cx.client.db),
                None => take_token(cx)?,
            };
            (Listing { index, body: SlicedArray::default(), count: 0, last: None }, token)
        }
    };
    let slice = TimeSlice::begin(cx.engine);
    let (protocol, bytes_max) = (cx.reply.protocol(), cx.client.output_bytes_max);
    while listing.step(protocol, bytes_max) && listing.body.len() <= bytes_max {
        // A transaction or script keeps its locks anyway, so there is no point in yielding.
        if slice.is_over() && cx.held.is_none() {
            let left = listing.index.groups.with_limits(|table| table.own_count()).saturating_sub(listing.count);
            if !listing.body.expects_more() {
                listing.body.expect_more(listing.count, listing.count, left, bytes_max);
            }
            cx.leave(listing, Some(token));
            return Ok(());
        }
    }
    listing.body.send(listing.count, &mut cx.reply);
    Ok(())
}

impl Listing {
    /// Lists some. False at the end.
    fn step(&mut self, protocol: Protocol, bytes_max: usize) -> bool {
        let Listing { index, body, count, last } = self;
        let before = *count;
        let mut reply = body.writer(protocol, bytes_max);
        let mut list = |some: &mut dyn Iterator<Item = (Scope<'_>, Limits)>| {
            let mut reached = None;
            for (scope, limits) in some.take(LISTED_AT_ONCE) {
                put_limits(&mut reply, scope, limits);
                reached = Some(scope_name(scope));
                *count += 1;
            }
            reached
        };
        let reached = index.groups.with_limits(|table| match last.as_deref() {
            None => list(&mut table.iter()),
            Some(last) => list(&mut table.iter_after(Scope::Group(last))),
        });
        *last = reached.flatten().or(last.take());
        *count - before == LISTED_AT_ONCE
    }
}

/// The group of a scope.
fn scope_name(scope: Scope<'_>) -> Option<Vec<u8>> {
    match scope {
        Scope::All | Scope::Each => None,
        Scope::Group(group) => Some(group.to_vec()),
    }
}

/// Everything that is set for a scope.
fn put_limits(reply: &mut Reply<'_>, scope: Scope<'_>, limits: Limits) {
    let (scope, group): (&[u8], _) = match scope {
        Scope::All => (b"all", None),
        Scope::Each => (b"each", None),
        Scope::Group(group) => (b"group", Some(group)),
    };
    let parts = [
        group.is_some(),
        limits.held != Setting::Default,
        limits.rate != Setting::Default,
        limits.weight.is_some(),
        limits.pause.is_some(),
    ];
    reply.map(1 + parts.into_iter().filter(|part| *part).count());
    reply.bulk(b"scope");
    reply.bulk(scope);
    if let Some(group) = group {
        reply.bulk(b"group");
        reply.bulk(group);
    }
    match limits.held {
        Setting::Default => {}
        Setting::None => none(reply, "held"),
        Setting::Is(max) => put_held(reply, max),
    }
    match limits.rate {
        Setting::Default => {}
        Setting::None => none(reply, "rate"),
        Setting::Is(rate) => put_rate(reply, rate),
    }
    if let Some(weight) = limits.weight {
        put_weight(reply, weight);
    }
    if let Some(pause) = limits.pause {
        put_pause(reply, pause);
    }
}

fn none(reply: &mut Reply<'_>, attribute: &str) {
    reply.bulk(attribute.as_bytes());
    reply.bulk(b"none");
}

fn put_held(reply: &mut Reply<'_>, max: u64) {
    reply.bulk(b"held");
    reply.integer(max as i64);
}

fn put_rate(reply: &mut Reply<'_>, rate: Rate) {
    reply.bulk(b"rate");
    reply.array(3);
    [rate.takes, rate.per_ms, rate.burst].into_iter().for_each(|number| reply.integer(number as i64));
}

fn put_weight(reply: &mut Reply<'_>, weight: u32) {
    reply.bulk(b"weight");
    reply.double(f64::from(weight) / WEIGHT_UNIT);
}

fn put_pause(reply: &mut Reply<'_>, pause: bool) {
    reply.bulk(b"pause");
    reply.bulk(if pause { b"yes" } else { b"no" });
}

/// `IDX.GROUPS name [CURSOR c] [LIMIT n]`
pub(super) fn groups(cx: &mut ScriptCx<'_, '_>) -> CommandResult {
    let name = argument(&mut cx.args, "the name of the index")?;
    let (mut cursor, mut asked) = (None, None);
    while let Some(word) = cx.args.try_next() {
        if is_word(word, "CURSOR") {
            once(
                &mut cursor,
                number(&mut cx.args, "the cursor behind CURSOR", 0, i64::from(u32::MAX))? as u32,
                "CURSOR",
            )?;
        } else if is_word(word, "LIMIT") {
            once(&mut asked, limit(&mut cx.args)?, "LIMIT")?;
        } else {
            return Err(unknown_option(&cx.args));
        }
    }
    let index = find(cx, name)?;
    // What is counted may not be durable yet.
    cx.client.depends_on = cx.client.depends_on.max(cx.engine.persistence.tail());
    let (db, now_ns) = (cx.client.db, rates_now_ns(cx.engine, &index, cx.worker.now_ms));
    let mut left = asked.unwrap_or(LISTED).min(LISTED_MAX);
    let (mut body, mut count, mut next) = (Vec::new(), 0, Some(cursor.unwrap_or(0)));
    let mut reply = Reply::new(&mut body, cx.reply.protocol());
    while left > 0
        && let Some(from) = next
    {
        let mut groups = index.groups.lock(db);
        groups.pass_time(now_ns);
        next = groups.list(from, left.min(LISTED_AT_ONCE), |group| {
            put_group(&mut reply, &group);
            count += 1;
            left -= 1;
        });
    }
    cx.reply.array(2);
    cx.reply.bulk(next.unwrap_or(0).to_string().as_bytes());
    cx.reply.array(count);
    cx.reply.raw(&body);
    Ok(())
}

fn put_group(reply: &mut Reply<'_>, group: &GroupState<'_>) {
    reply.array(2);
    reply.bulk(group.name);
    reply.map(5);
    reply.bulk(b"records");
    reply.integer(group.records as i64);
    reply.bulk(b"held");
    reply.integer(group.held as i64);
    reply.bulk(b"first_score");
    match group.first_score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    reply.bulk(b"allowed_at");
    reply.integer(group.allowed_ns.map_or(-1, |at_ns| at_ns.div_ceil(NS_PER_MS) as i64));
    reply.bulk(b"limits");
    put_applied(reply, &group.limits);
}

fn put_applied(reply: &mut Reply<'_>, limits: &Applied) {
    let parts = [limits.held.is_some(), limits.rate.is_some(), limits.weight != WEIGHT_DEFAULT, limits.is_paused];
    reply.map(parts.into_iter().filter(|part| *part).count());
    if let Some(max) = limits.held {
        put_held(reply, max);
    }
    if let Some(rate) = limits.rate {
        put_rate(reply, rate);
    }
    if limits.weight != WEIGHT_DEFAULT {
        put_weight(reply, limits.weight);
    }
    if limits.is_paused {
        put_pause(reply, true);
    }
}
