//! Commands about several sets together: intersection, union, difference.

use crate::value_reply::ValueReply;
use execution::args::is_word;
use execution::context::{ReadCx, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::view::View;
use hashbrown::HashTable;
use keyspace::storage::table::NameHash;
use keyspace::types::set::{self, Form, SetRef, Thresholds, whole};
use keyspace::{Cause, Effect, Image, Key, Scalar};
use numbers::parse_i64;
use smallvec::SmallVec;

/// Sets in the order in which they were named; `None` where the key does not exist.
type Sources<'a> = SmallVec<[Option<SetRef<'a>>; 4]>;

/// Looks up every key, even after a missing one: each is counted, and each has to hold a set.
fn sources<'v, 'k>(keys: &'v View<'_>, named: impl Iterator<Item = Key<'k>>) -> Result<Sources<'v>, CommandError> {
    let source = |key: Key<'_>| {
        let found = keys.typed::<SetRef>(key);
        keys.looked_up(key, !matches!(found, Ok(None)));
        found
    };
    named.map(source).collect()
}

/// The members of a result, each once, unordered.
struct Combined<'a> {
    members: Vec<Scalar<'a>>,
    /// The form of a key that holds them: Redis makes the result step by step, and a set never returns to a smaller form.
    form: Form,
}

impl<'a> Combined<'a> {
    /// The result of a union or a difference, which grows by one member at a time.
    fn grown(members: Vec<Scalar<'a>>, thresholds: &Thresholds) -> Combined<'a> {
        Combined { form: thresholds.grown_form(&members), members }
    }
}

/// An operation on several sets.
type Operation = for<'a> fn(&Sources<'a>, &Thresholds) -> Combined<'a>;

fn intersection<'a>(sources: &Sources<'a>, thresholds: &Thresholds) -> Combined<'a> {
    let mut members = Vec::new();
    intersect(sources, |member| {
        members.push(member);
        true
    });
    Combined { form: thresholds.form_at_once(&members), members }
}

/// Visits the members that all sets have, until `visit` returns false.
fn intersect<'a>(sources: &Sources<'a>, mut visit: impl FnMut(Scalar<'a>) -> bool) {
    let Some(mut sets) = sources.iter().copied().collect::<Option<SmallVec<[SetRef<'_>; 4]>>>() else { return };
    // The smallest set determines the number of look-ups; the next one leaves the fewest for the following sets.
    sets.sort_by_key(SetRef::len);
    let [smallest, others @ ..] = sets.as_slice() else { return };
    for member in smallest.iter() {
        if others.iter().all(|set| set.has(member)) && !visit(member) {
            return;
        }
    }
}

fn union<'a>(sources: &Sources<'a>, thresholds: &Thresholds) -> Combined<'a> {
    let mut known = Distinct::default();
    let mut members = Vec::new();
    for member in sources.iter().flatten().flat_map(SetRef::iter) {
        if known.add(member) {
            members.push(member);
        }
    }
    Combined::grown(members, thresholds)
}

/// The members of the first set that no other set has.
fn difference<'a>(sources: &Sources<'a>, thresholds: &Thresholds) -> Combined<'a> {
    let [Some(first), others @ ..] = sources.as_slice() else { return Combined::grown(Vec::new(), thresholds) };
    let others: SmallVec<[SetRef<'_>; 4]> = others.iter().flatten().copied().collect();
    // Every member is looked up in every set, unless walking over all of those is less work.
    let by_look_ups = first.len().saturating_mul(1 + others.len()) / 2;
    let by_walks = first.len() + others.iter().map(SetRef::len).sum::<usize>();
    if by_look_ups <= by_walks {
        let kept = first.iter().filter(|member| !others.iter().any(|set| set.has(*member)));
        return Combined::grown(kept.collect(), thresholds);
    }
    let mut left = Distinct::default();
    first.iter().for_each(|member| {
        left.add(member);
    });
    // Redis adds all members of the first set to the result before it removes those of the others.
    let form = thresholds.grown_form(&first.iter().collect::<Vec<_>>());
    for member in others.iter().flat_map(SetRef::iter) {
        left.remove(member);
        if left.members.is_empty() {
            break;
        }
    }
    Combined { members: left.members.into_iter().collect(), form }
}

/// Distinct members. A whole number is the same member whether it comes as text or as a number.
#[derive(Default)]
struct Distinct<'a> {
    members: HashTable<Scalar<'a>>,
}

fn hash_of(member: Scalar<'_>) -> u64 {
    member.with_bytes(|member| NameHash::of(member).get())
}

fn is_same(a: Scalar<'_>, b: Scalar<'_>) -> bool {
    match (a, b) {
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a == b,
        (Scalar::Number(a), Scalar::Number(b)) => a == b,
        (Scalar::Number(number), text) | (text, Scalar::Number(number)) => whole(text) == Some(number),
    }
}

impl<'a> Distinct<'a> {
    /// Adds a member; true when it is new.
    fn add(&mut self, member: Scalar<'a>) -> bool {
        let hash = hash_of(member);
        let is_new = self.members.find(hash, |known| is_same(*known, member)).is_none();
        if is_new {
            self.members.insert_unique(hash, member, |member| hash_of(*member));
        }
        is_new
    }

    fn remove(&mut self, member: Scalar<'_>) {
        if let Ok(found) = self.members.find_entry(hash_of(member), |known| is_same(*known, member)) {
            found.remove();
        }
    }
}

pub(super) fn sinter(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, intersection)
}

pub(super) fn sunion(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, union)
}

pub(super) fn sdiff(cx: &mut ReadCx<'_>) -> CommandResult {
    show(cx, difference)
}

fn show(cx: &mut ReadCx<'_>, operation: Operation) -> CommandResult {
    let sources = sources(&cx.keys, cx.args.rest().map(Key::new))?;
    let combined = operation(&sources, &Thresholds::default());
    cx.reply.set(combined.members.len());
    combined.members.iter().for_each(|member| member.reply(&mut cx.reply));
    Ok(())
}

pub(super) fn sinterstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, intersection, "sinterstore")
}

pub(super) fn sunionstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, union, "sunionstore")
}

pub(super) fn sdiffstore(cx: &mut WriteCx<'_>) -> CommandResult {
    keep(cx, difference, "sdiffstore")
}

/// Stores the result at the destination. Without members, the destination is deleted.
fn keep(cx: &mut WriteCx<'_>, operation: Operation, event: &'static str) -> CommandResult {
    let to = cx.args.key()?;
    let thresholds = cx.keys.thresholds().set;
    let (count, image) = {
        let sources = sources(cx.keys.view(), cx.args.rest().map(Key::new))?;
        let Combined { members, form } = operation(&sources, &thresholds);
        let mut image = Vec::new();
        set::put_image(&members, form, &mut image);
        (members.len(), image)
    };
    cx.keys.remove_if_expired(cx.keys.db(), to);
    if count > 0 {
        let value = Image { value_type: &set::TYPE, bytes: &image };
        cx.keys.replace(&Effect::Put { key: to, value, deadline: None })?;
        cx.keys.notify(Events::SET, event, to);
    } else if cx.keys.view().exists(to) {
        cx.keys.replace(&Effect::Delete { key: to, cause: Cause::Deleted })?;
        cx.keys.notify(Events::GENERIC, "del", to);
    }
    cx.reply.integer(count as i64);
    Ok(())
}

pub(super) fn sintercard(cx: &mut ReadCx<'_>) -> CommandResult {
    let number = parse_i64(cx.args.bytes()?).filter(|number| *number > 0);
    let number = number.ok_or(CommandError::fixed("ERR numkeys should be greater than 0"))?;
    if number as u64 > cx.args.left() as u64 {
        return Err(CommandError::fixed("ERR Number of keys can't be greater than number of args"));
    }
    let keys = (0..number).map(|_| cx.args.key()).collect::<Result<SmallVec<[Key<'_>; 4]>, _>>()?;
    let mut limit = 0;
    while let Some(word) = cx.args.try_next() {
        if !is_word(word, "LIMIT") || cx.args.is_empty() {
            return Err(CommandError::Syntax);
        }
        let given = parse_i64(cx.args.bytes()?).and_then(|limit| usize::try_from(limit).ok());
        limit = given.ok_or(CommandError::fixed("ERR LIMIT can't be negative"))?;
    }
    let sources = sources(&cx.keys, keys.into_iter())?;
    let mut count = 0;
    intersect(&sources, |_| {
        count += 1;
        count != limit
    });
    cx.reply.integer(count as i64);
    Ok(())
}
