//! The arguments of CLAIM: which records qualify, and how they are changed. Refuses to know how records are found.

use crate::records::change::{Lifetime, change};
use crate::records::record_reply::RecordReplyOptions;
use crate::records::times::{Settings, bound_at, offset_ms, values_at};
use crate::shared::options::{
    Names, Pairs, argument, error, missing, names, number, once, pairs, shown, unknown_option,
};
use execution::args::{Args, is_word};
use execution::error::CommandError;
use execution::recorder::Recorder;
use execution::waiting::records::{Condition, Criteria, TimeBound};
use keyspace::index::groups::{Order, Take};
use keyspace::index::{Definition, INDEXES_MAX, Index};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{HashRef, Key, Scalar};
use numbers::parse_i64;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most values of one WHERE. They are parsed again in each slice of a long search.
const VALUES_MAX: usize = 1024;

/// `CLAIM n index … SET n field value …`
pub(super) struct Claim<'a> {
    pub(super) indexes: Names<'a>,
    min: TimeBound,
    max: TimeBound,
    pub(super) range: ScoreRange,
    /// Fields, and the values that each may have, sorted.
    conditions: SmallVec<[(&'a [u8], Names<'a>); 2]>,
    set: Settings<'a>,
    counter: Option<Counter<'a>>,
    pub(super) count: usize,
    /// How long it waits, in milliseconds; 0 is for ever.
    pub(super) block_ms: Option<u64>,
    pub(super) reply_options: RecordReplyOptions<'a>,
    /// In which order groups give. Without groups it has no meaning.
    pub(super) order: Order,
}

/// A field that counts the claims of a record.
struct Counter<'a> {
    field: &'a [u8],
    limit: Option<Limit<'a>>,
}

/// How often a record may be claimed, and the fields to set instead after that.
struct Limit<'a> {
    max: i64,
    otherwise: Settings<'a>,
}

impl<'a> Claim<'a> {
    pub(super) fn take(args: &mut Args<'a>, now_ms: u64) -> Result<Claim<'a>, CommandError> {
        let indexes = names(args, "CLAIM")?;
        if indexes.is_empty() {
            return Err(error("CLAIM needs the name of at least one index".into()));
        }
        if indexes.len() > INDEXES_MAX {
            return Err(error(format!("CLAIM takes at most {INDEXES_MAX} indexes")));
        }
        let (mut min, mut max, mut set, mut counter, mut upto, mut otherwise) = (None, None, None, None, None, None);
        let (mut count, mut block_ms, mut reply_options) = (None, None, RecordReplyOptions::default());
        let mut order = None;
        let mut conditions: SmallVec<[(&[u8], Names<'_>); 2]> = SmallVec::new();
        while let Some(word) = args.try_next() {
            if is_word(word, "MIN") {
                once(&mut min, argument(args, "the score behind MIN")?, "MIN")?;
            } else if is_word(word, "MAX") {
                once(&mut max, argument(args, "the score behind MAX")?, "MAX")?;
            } else if is_word(word, "WHERE") {
                let field = argument(args, "the field behind WHERE")?;
                let mut values = names(args, "WHERE")?;
                if values.len() > VALUES_MAX {
                    return Err(error(format!("WHERE takes at most {VALUES_MAX} values")));
                }
                values.sort_unstable();
                values.dedup();
                conditions.push((field, values));
            } else if is_word(word, "SET") {
                once(&mut set, pairs(args, "SET")?, "SET")?;
            } else if is_word(word, "COUNTER") {
                once(&mut counter, argument(args, "the field behind COUNTER")?, "COUNTER")?;
            } else if is_word(word, "UPTO") {
                once(&mut upto, number(args, "the maximum behind UPTO", 0, i64::MAX)?, "UPTO")?;
            } else if is_word(word, "ELSE") {
                once(&mut otherwise, pairs(args, "ELSE")?, "ELSE")?;
            } else if is_word(word, "COUNT") {
                once(&mut count, number(args, "the number behind COUNT", 1, i64::MAX)? as usize, "COUNT")?;
            } else if is_word(word, "BLOCK") {
                once(&mut block_ms, number(args, "the time behind BLOCK", 0, i64::MAX)? as u64, "BLOCK")?;
            } else if is_word(word, "ORDER") {
                let given = argument(args, "the order behind ORDER")?;
                let given = match given {
                    _ if is_word(given, "FAIR") => Order::Fair,
                    _ if is_word(given, "SCORE") => Order::Score,
                    _ => return Err(unknown_option(args)),
                };
                once(&mut order, given, "ORDER")?;
            } else if !reply_options.take(word, args)? {
                return Err(unknown_option(args));
            }
        }
        let (min, max) = (bound(min, "MIN", f64::NEG_INFINITY, now_ms)?, bound(max, "MAX", f64::INFINITY, now_ms)?);
        let set: Pairs<'_> = set.ok_or_else(|| missing("SET, which says what becomes of a record"))?;
        if set.is_empty() && counter.is_none() {
            return Err(error("SET must set at least one field, or the record would be found again and again".into()));
        }
        let limit = match (upto, otherwise) {
            (None, None) => None,
            (Some(_), None) => return Err(missing("ELSE, which says what becomes of a record above UPTO")),
            (None, Some(_)) => return Err(missing("UPTO, without which ELSE has no meaning")),
            (Some(_), Some(otherwise)) if otherwise.is_empty() => {
                return Err(error("ELSE must set at least one field, or the record would be found again".into()));
            }
            (Some(max), Some(otherwise)) => Some(Limit { max, otherwise: values_at(otherwise, now_ms)? }),
        };
        let counter = match (counter, limit) {
            (None, None) => None,
            (None, Some(_)) => return Err(missing("COUNTER, without which UPTO has no meaning")),
            (Some(field), _) if set.iter().any(|(name, _)| *name == field) => {
                return Err(error(format!("the field {} is counted, and cannot be in SET too", shown(field))));
            }
            (Some(field), limit) => Some(Counter { field, limit }),
        };
        Ok(Claim {
            indexes,
            min,
            max,
            range: ScoreRange { min: min.at(now_ms), max: max.at(now_ms) },
            conditions,
            set: values_at(set, now_ms)?,
            counter,
            count: count.unwrap_or(1),
            block_ms,
            reply_options,
            order: order.unwrap_or(Order::Fair),
        })
    }

    /// Which records of these indexes it waits for.
    pub(super) fn criteria(&self, indexes: &[Arc<Index>]) -> Arc<Criteria> {
        let own = |(field, values): &(&[u8], Names<'_>)| Condition {
            field: (*field).into(),
            values: values.iter().map(|value| (*value).into()).collect(),
        };
        let conditions = self.conditions.iter().map(own).collect();
        let mut other = encode_counter(self.counter.as_ref());
        // In an index with groups, the order decides which record comes first, and what it sets whether a cap is in its
        // way.
        for index in indexes.iter().filter(|index| index.definition.has_queues()) {
            other.push(u8::from(self.order == Order::Score) | u8::from(self.holds(&index.definition)) << 1);
        }
        Arc::new(Criteria::new(self.min, self.max, conditions, other))
    }

    /// True when a record that it takes is held afterwards, whatever it was before.
    pub(super) fn holds(&self, definition: &Definition) -> bool {
        self.holds_after(definition, &self.set).unwrap_or(false)
    }

    /// Whether a record is held after these fields are set; `None` when they do not decide it.
    fn holds_after(&self, definition: &Definition, set: &Settings<'_>) -> Option<bool> {
        let held = definition.held.as_ref()?;
        let value = set.iter().rev().find(|(field, _)| **field == *held.field).map(|(_, value)| value)?;
        Some(held.values.iter().any(|one| **one == **value))
    }

    /// What limits have to know of a change.
    pub(super) fn take_of(&self, definition: &Definition, hash: HashRef<'_>, verdict: Verdict) -> Take {
        let is_held = definition.holds(|field| hash.get(field));
        let set = match (verdict, self.counter.as_ref().and_then(|counter| counter.limit.as_ref())) {
            (Verdict::Exhausted, Some(limit)) => &limit.otherwise,
            _ => &self.set,
        };
        let will_be_held = self.holds_after(definition, set).unwrap_or(is_held);
        Take { holds: will_be_held && !is_held, counts: matches!(verdict, Verdict::Claimed { .. }) }
    }

    /// Refuses a claim that would move the records that it takes to another group, or of which a counter decides whether
    /// it holds them: no search could know it.
    pub(super) fn pass_groups(&self, definition: &Definition) -> Result<(), CommandError> {
        if let (Some(held), Some(counter)) = (&definition.held, &self.counter)
            && counter.field == held.field
        {
            return Err(error(format!("the field {} says what is held, and cannot be counted", shown(&held.field))));
        }
        let Some(group) = &definition.group else { return Ok(()) };
        let counter = self.counter.iter().map(|counter| counter.field);
        let limit = self.counter.iter().filter_map(|counter| counter.limit.as_ref());
        let otherwise = limit.flat_map(|limit| &limit.otherwise);
        let set = self.set.iter().chain(otherwise).map(|(field, _)| *field);
        match set.chain(counter).any(|field| field == group) {
            true => Err(error(format!("the field {} is that of the group, which CLAIM does not change", shown(group)))),
            false => Ok(()),
        }
    }

    /// True when no record of an index can qualify, because of a field on which the index has a condition.
    pub(super) fn contradicts(&self, definition: &Definition) -> bool {
        let Some(condition) = &definition.condition else { return false };
        let is_listed = |value: &&[u8]| condition.values.iter().any(|one| one == value);
        let of_field = self.conditions.iter().filter(|(field, _)| **field == *condition.field);
        of_field.into_iter().any(|(_, values)| match condition.only {
            true => !values.iter().any(is_listed),
            false => values.iter().all(is_listed),
        })
    }

    /// The values that a field may have, from each WHERE on it.
    pub(super) fn conditions_on(&self, field: &[u8]) -> impl Iterator<Item = &Names<'a>> {
        self.conditions.iter().filter(move |(one, _)| *one == field).map(|(_, values)| values)
    }

    /// The most bytes of effects for one record, without its name.
    pub(super) fn set_bytes(&self) -> usize {
        let bytes =
            |fields: &Settings<'_>| fields.iter().map(|(field, value)| field.len() + value.len()).sum::<usize>();
        let limit = self.counter.as_ref().and_then(|counter| counter.limit.as_ref());
        bytes(&self.set).max(limit.map_or(0, |limit| bytes(&limit.otherwise)))
    }

    /// Whether a record qualifies, and how it is changed.
    pub(super) fn judge(&self, hash: HashRef<'_>) -> Option<Verdict> {
        let holds = |(field, values): &(&[u8], Names<'_>)| {
            hash.get(field).is_some_and(|value| value.with_bytes(|value| values.binary_search(&value).is_ok()))
        };
        if !self.conditions.iter().all(holds) {
            return None;
        }
        let Some(counter) = &self.counter else { return Some(Verdict::Claimed { attempt: None }) };
        let attempts = match hash.get(counter.field) {
            None => Some(0),
            Some(Scalar::Number(attempts)) => Some(attempts),
            Some(Scalar::Bytes(text)) => parse_i64(text),
        };
        let attempt = attempts.and_then(|attempts| attempts.checked_add(1));
        match (&counter.limit, attempt) {
            (None, None) => None,
            (Some(limit), attempt) if attempt.is_none_or(|attempt| attempt > limit.max) => Some(Verdict::Exhausted),
            (_, attempt) => Some(Verdict::Claimed { attempt }),
        }
    }

    /// Changes a record according to its verdict.
    pub(super) fn change(&self, keys: &mut Recorder<'_>, key: Key<'_>, verdict: Verdict) {
        let counted = match verdict {
            Verdict::Claimed { attempt } => attempt.map(|attempt| attempt.to_string()),
            Verdict::Exhausted => None,
        };
        let counter = self.counter.as_ref();
        let set = match (verdict, counter.and_then(|counter| counter.limit.as_ref())) {
            (Verdict::Exhausted, Some(limit)) => &limit.otherwise,
            _ => &self.set,
        };
        let counted = counter.zip(counted.as_ref()).map(|(counter, attempt)| (counter.field, attempt.as_bytes()));
        let fields: Pairs<'_> = set.iter().map(|(field, value)| (*field, &**value)).chain(counted).collect();
        change(keys, key, &fields, &[], Lifetime::Kept);
    }
}

/// How a qualifying record is changed.
#[derive(Clone, Copy)]
pub(super) enum Verdict {
    Claimed {
        attempt: Option<i64>,
    },
    /// It was claimed too often.
    Exhausted,
}

/// A bound of MIN or MAX.
fn bound(text: Option<&[u8]>, what: &str, default: f64, now_ms: u64) -> Result<TimeBound, CommandError> {
    let Some(text) = text else { return Ok(TimeBound::score(default, false)) };
    let ScoreBound { score, excluded } = bound_at(text, now_ms, what)?;
    Ok(match offset_ms(text.strip_prefix(b"(").unwrap_or(text))? {
        Some(offset_ms) => TimeBound::Now { offset_ms, excluded },
        None => TimeBound::score(score, excluded),
    })
}

/// Encodes the counter of a claim: equal for two claims that qualify the same records.
fn encode_counter(counter: Option<&Counter<'_>>) -> Vec<u8> {
    let Some(Counter { field, limit }) = counter else { return Vec::new() };
    let max = limit.as_ref().map_or(i64::MIN, |limit| limit.max);
    [&max.to_le_bytes(), *field].concat()
}
