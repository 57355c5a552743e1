//! SORT and SORT_RO: parse the request, gather the elements, weigh them, sort them, return or store them.

use super::elements::{Elements, SortOrder, weight_of};
use super::patterns::Pattern;
use crate::value_reply::ValueReply;
use execution::args::{Args, is_word};
use execution::batch_limit;
use execution::command::{FoundKeys, KeyFlags, KeyRange};
use execution::context::{ReadCx, WholeServer, WriteCx};
use execution::error::{CommandError, CommandResult};
use execution::settings::events::Events;
use execution::view::View;
use keyspace::types::list::{self, Side};
use keyspace::types::sorted_set::Direction;
use keyspace::{Cause, Effect, Image, Key, Scalar, Value};
use resp::{Reply, Request};
use smallvec::SmallVec;
use std::ops::Range;

/// A parsed request.
struct Sort<'a> {
    /// `None` sorts elements by themselves.
    by: Option<Pattern<'a>>,
    /// BY a pattern without a `*`: elements keep their order.
    is_unsorted: bool,
    is_descending: bool,
    /// By text, not by number.
    is_alpha: bool,
    /// How many elements to skip, and how many to return at most; negative = all.
    limit: (i64, i64),
    /// What is returned for each element; the element itself if empty.
    get: SmallVec<[Pattern<'a>; 4]>,
    target: Option<Key<'a>>,
}

impl<'a> Sort<'a> {
    fn take(args: &mut Args<'a>, may_store: bool) -> Result<Sort<'a>, CommandError> {
        let mut sort = Sort {
            by: None,
            is_unsorted: false,
            is_descending: false,
            is_alpha: false,
            limit: (0, -1),
            get: SmallVec::new(),
            target: None,
        };
        while let Some(word) = args.try_next() {
            let left = args.left();
            if is_word(word, "ASC") {
                sort.is_descending = false;
            } else if is_word(word, "DESC") {
                sort.is_descending = true;
            } else if is_word(word, "ALPHA") {
                sort.is_alpha = true;
            } else if is_word(word, "LIMIT") && left >= 2 {
                sort.limit = (args.int()?, args.int()?);
            } else if may_store && is_word(word, "STORE") && left >= 1 {
                sort.target = Some(args.key()?);
            } else if is_word(word, "BY") && left >= 1 {
                let pattern = args.bytes()?;
                sort.by = Some(Pattern::of(pattern));
                // A later BY does not restore sorting.
                sort.is_unsorted |= !pattern.contains(&b'*');
            } else if is_word(word, "GET") && left >= 1 {
                sort.get.push(Pattern::of(args.bytes()?));
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(sort)
    }

    /// The range of wanted elements, of so many.
    fn range(&self, len: usize) -> Range<usize> {
        let bound = |number: i64| usize::try_from(number).unwrap_or(0).min(len);
        let start = bound(self.limit.0);
        let count = if self.limit.1 < 0 { len } else { bound(self.limit.1) };
        start..start.saturating_add(count).min(len)
    }

    /// The wanted elements, in order.
    fn run(
        &mut self,
        keys: &View<'_>,
        key: Key<'_>,
        in_script: bool,
    ) -> Result<(Elements, Range<usize>), CommandError> {
        let value = keys.get(key);
        keys.looked_up(key, value.is_some());
        let mut elements = Elements::default();
        let len = match &value {
            None => 0,
            Some(Value::List(list)) => list.len(),
            Some(Value::Set(set)) => set.len(),
            Some(Value::SortedSet(set)) => set.len(),
            Some(other) => return Err(CommandError::wrong_type(other.value_type())),
        };
        let range = self.range(len);
        if self.is_unsorted && matches!(value, Some(Value::Set(_))) && (self.target.is_some() || in_script) {
            // A set has no order to keep, and the stored result should not depend on chance.
            (self.is_unsorted, self.is_alpha, self.by) = (false, true, None);
        }
        let direction = if self.is_descending { Direction::Descending } else { Direction::Ascending };
        // Elements that have an order, and keep it: only the wanted ones are read.
        let wanted = if self.is_descending { len - range.end..len - range.start } else { range.clone() };
        match &value {
            None => {}
            Some(Value::List(list)) if self.is_unsorted => {
                let from = if self.is_descending { Side::Right } else { Side::Left };
                list.visit(wanted, from, |element| {
                    element.with_bytes(|bytes| elements.push(bytes));
                    true
                });
                return Ok((elements, 0..range.len()));
            }
            Some(Value::SortedSet(set)) if self.is_unsorted => {
                set.members(wanted, direction).for_each(|member| member.name.with_bytes(|name| elements.push(name)));
                return Ok((elements, 0..range.len()));
            }
            Some(Value::List(list)) => list.for_each(|element| element.with_bytes(|bytes| elements.push(bytes))),
            Some(Value::SortedSet(set)) => {
                set.iter().for_each(|member| member.name.with_bytes(|name| elements.push(name)));
            }
            Some(Value::Set(set)) => set.iter().for_each(|member| member.with_bytes(|bytes| elements.push(bytes))),
            Some(other) => return Err(CommandError::wrong_type(other.value_type())),
        }
        if !self.is_unsorted {
            self.weigh(keys, &mut elements)?;
            let is_part = self.by.is_some() && range != (0..len);
            let order = SortOrder { is_descending: self.is_descending, is_binary: self.target.is_some() };
            elements.sort(order, is_part.then(|| range.clone()));
        }
        Ok((elements, range))
    }

    fn weigh(&self, keys: &View<'_>, elements: &mut Elements) -> CommandResult {
        let refusal = CommandError::fixed("ERR One or more scores can't be converted into double");
        let number_of = |value: Scalar<'_>| match value {
            Scalar::Number(number) => Some(number as f64),
            Scalar::Bytes(text) => weight_of(text),
        };
        if self.by.is_none() && self.is_alpha {
            elements.weigh_by_themselves();
            return Ok(());
        }
        let mut is_refused = false;
        for at in 0..elements.len() {
            match (&self.by, self.is_alpha) {
                (None, _) => match weight_of(elements.get(at)) {
                    Some(number) => elements.weigh_by_number(at, number),
                    None => is_refused = true,
                },
                (Some(by), true) => {
                    let text =
                        by.look_up(keys, elements.get(at), |value| value.map(|value| value.bytes().into_owned()));
                    elements.weigh_by_text(at, text.as_deref());
                }
                (Some(by), false) => {
                    match by.look_up(keys, elements.get(at), |value| value.map_or(Some(0.0), number_of)) {
                        Some(number) => elements.weigh_by_number(at, number),
                        None => is_refused = true,
                    }
                }
            }
        }
        if is_refused { Err(refusal) } else { Ok(()) }
    }

    /// How many values are returned for so many elements.
    fn values(&self, elements: usize) -> usize {
        elements * self.get.len().max(1)
    }

    fn reply(&self, keys: &View<'_>, elements: &Elements, range: Range<usize>, reply: &mut Reply<'_>) {
        reply.array(self.values(range.len()));
        for element in range.map(|at| elements.get(at)) {
            if self.get.is_empty() {
                reply.bulk(element);
            }
            for pattern in &self.get {
                pattern.look_up(keys, element, |value| match value {
                    Some(value) => value.reply(reply),
                    None => reply.null(),
                });
            }
        }
    }

    /// The values to store: a missing value is stored as an empty one.
    fn stored(&self, keys: &View<'_>, elements: &Elements, range: Range<usize>) -> Vec<Vec<u8>> {
        let mut stored = Vec::with_capacity(self.values(range.len()));
        for element in range.map(|at| elements.get(at)) {
            if self.get.is_empty() {
                stored.push(element.to_vec());
            }
            for pattern in &self.get {
                stored.push(
                    pattern.look_up(keys, element, |value| {
                        value.map_or_else(Vec::new, |value| value.bytes().into_owned())
                    }),
                );
            }
        }
        stored
    }
}

pub(super) fn sort_ro(cx: &mut ReadCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut sort = Sort::take(&mut cx.args, false)?;
    let (elements, range) = sort.run(&cx.keys, key, cx.in_script)?;
    sort.reply(&cx.keys, &elements, range, &mut cx.reply);
    Ok(())
}

pub(super) fn sort(cx: &mut WriteCx<'_>) -> CommandResult {
    let key = cx.args.key()?;
    let mut sort = Sort::take(&mut cx.args, true)?;
    let (elements, range) = sort.run(cx.keys.view(), key, cx.in_script)?;
    let Some(target) = sort.target else {
        sort.reply(cx.keys.view(), &elements, range, &mut cx.reply);
        return Ok(());
    };
    let stored = sort.stored(cx.keys.view(), &elements, range);
    let mut image = Vec::new();
    list::put_image(stored.iter().map(Vec::as_slice), &cx.keys.thresholds().list, &mut image);
    batch_limit::pass_batch_bytes(cx.server(), image.len())?;
    cx.keys.remove_if_expired(cx.keys.db(), target);
    if !stored.is_empty() {
        let value = Image { value_type: &list::TYPE, bytes: &image };
        cx.keys.replace(&Effect::Put { key: target, value, deadline: None })?;
        cx.keys.notify(Events::LIST, "sortstore", target);
    } else if cx.keys.view().exists(target) {
        cx.keys.replace(&Effect::Delete { key: target, cause: Cause::Deleted })?;
        cx.keys.notify(Events::GENERIC, "del", target);
    }
    cx.reply.integer(stored.len() as i64);
    Ok(())
}

/// The keys that a request names: the sorted key, and the target. Of several targets, the last one counts.
pub(super) fn keys_of(request: Request<'_>) -> FoundKeys {
    let mut found = FoundKeys::one(1, KeyFlags::READ);
    let target = options(request).filter(|(word, _)| is_word(word, "STORE")).last();
    found.ranges.extend(target.map(|(_, at)| KeyRange::one(at, KeyFlags::OVERWRITE)));
    found
}

/// True for a request that looks up keys by patterns.
pub(super) fn looks_up_others(request: Request<'_>) -> bool {
    let is_by_or_get = |word: &[u8]| is_word(word, "BY") || is_word(word, "GET");
    options(request).any(|(word, at)| is_by_or_get(word) && Pattern::of(request.arg(at)).is_of_keys())
}

/// The options that have an argument, and its position.
fn options(request: Request<'_>) -> impl Iterator<Item = (&[u8], usize)> {
    let mut at = 2;
    std::iter::from_fn(move || {
        while at + 1 < request.len() {
            let word = request.arg(at);
            let arguments = if is_word(word, "LIMIT") {
                2
            } else if ["STORE", "BY", "GET"].iter().any(|option| is_word(word, option)) {
                1
            } else {
                0
            };
            at += 1 + arguments;
            if arguments == 1 {
                return Some((word, at - 1));
            }
        }
        None
    })
}
