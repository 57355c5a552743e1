//! FILTER: which records match. Knows how values are compared; refuses to know where records come from.

use crate::shared::options::{argument, error, names, shown};
use execution::args::{Args, is_word};
use execution::error::CommandError;
use keyspace::index::{Condition, Definition, number};
use keyspace::types::sorted_set::{ScoreBound, ScoreRange};
use keyspace::{HashRef, Scalar};
use smallvec::SmallVec;
use std::cmp::Ordering;

/// All filters of a request: a record must pass each.
pub(super) type Filters<'a> = SmallVec<[Filter<'a>; 4]>;

/// `FILTER field op value`
pub(super) struct Filter<'a> {
    field: &'a [u8],
    op: Op,
    /// One, or several for `in` and `notin`.
    operands: SmallVec<[Operand<'a>; 1]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
}

/// A value to compare with: as bytes, and as a number if it is one.
#[derive(Clone, Copy)]
struct Operand<'a> {
    bytes: &'a [u8],
    whole: Option<i64>,
    number: Option<f64>,
}

const OPS: [(&str, Op); 8] = [
    ("eq", Op::Eq),
    ("ne", Op::Ne),
    ("lt", Op::Lt),
    ("le", Op::Le),
    ("gt", Op::Gt),
    ("ge", Op::Ge),
    ("in", Op::In),
    ("notin", Op::NotIn),
];

impl<'a> Operand<'a> {
    fn new(bytes: &'a [u8]) -> Operand<'a> {
        let scalar = Scalar::of(bytes);
        let whole = if let Scalar::Number(whole) = scalar { Some(whole) } else { None };
        Operand { bytes, whole, number: number(scalar) }
    }

    /// Compares a record's value with the operand. Two numbers compare as numbers, anything else as bytes.
    fn compare(&self, value: Scalar<'_>) -> Ordering {
        if let (Scalar::Number(value), Some(whole)) = (value, self.whole) {
            return value.cmp(&whole);
        }
        match (self.number, number(value)) {
            (Some(operand), Some(value)) => value.total_cmp(&operand),
            _ => value.with_bytes(|value| value.cmp(self.bytes)),
        }
    }
}

impl<'a> Filter<'a> {
    /// Parses what follows the word FILTER.
    pub(super) fn take(args: &mut Args<'a>) -> Result<Filter<'a>, CommandError> {
        let field = argument(args, "the field behind FILTER")?;
        let word = argument(args, "the operator behind FILTER and its field")?;
        let Some((_, op)) = OPS.iter().find(|(name, _)| is_word(word, name)) else {
            return Err(error(format!("the operator {} is none of eq ne lt le gt ge in notin", shown(word))));
        };
        let operands = match op {
            Op::In | Op::NotIn => names(args, &shown(word))?.into_iter().map(Operand::new).collect(),
            _ => {
                SmallVec::from_iter([Operand::new(argument(args, "the value behind FILTER, its field and operator")?)])
            }
        };
        Ok(Filter { field, op: *op, operands })
    }

    fn passes(&self, hash: HashRef<'_>) -> bool {
        let Some(value) = hash.get(self.field) else { return matches!(self.op, Op::Ne | Op::NotIn) };
        let any = |test: fn(Ordering) -> bool| self.operands.iter().any(|operand| test(operand.compare(value)));
        match self.op {
            Op::Eq | Op::In => any(Ordering::is_eq),
            Op::Ne | Op::NotIn => !any(Ordering::is_eq),
            Op::Lt => any(Ordering::is_lt),
            Op::Le => any(Ordering::is_le),
            Op::Gt => any(Ordering::is_gt),
            Op::Ge => any(Ordering::is_ge),
        }
    }

    /// The range of scores of records that may pass the filter, when the field is a number; `None` when the filter does
    /// not limit them.
    fn scores(&self) -> Option<ScoreRange> {
        let [operand] = self.operands[..] else { return None };
        let bound = || operand.number.map(|score| ScoreBound { score, excluded: false });
        let (lowest, highest) = (f64::NEG_INFINITY, f64::INFINITY);
        let open = |score| ScoreBound { score, excluded: false };
        let (min, max) = match self.op {
            Op::Eq => (bound()?, bound()?),
            // Scores are doubles, and integers may be more precise: the filter itself decides at the bound.
            Op::Lt => (open(lowest), bound()?),
            Op::Le => (open(lowest), bound()?),
            Op::Gt => (bound()?, open(highest)),
            Op::Ge => (bound()?, open(highest)),
            Op::Ne | Op::In | Op::NotIn => return None,
        };
        Some(ScoreRange { min, max })
    }

    /// True when the condition of an index admits every record that passes the filter.
    fn implies(&self, condition: &Condition) -> bool {
        let listed = |operand: &Operand<'_>| condition.values.iter().any(|value| value == operand.bytes);
        // Numbers may be written in other ways than the index lists them.
        let exact = |operand: &Operand<'_>| operand.number.is_none();
        self.field == condition.field
            && matches!(self.op, Op::Eq | Op::In)
            && self.operands.iter().all(|operand| exact(operand) && listed(operand) == condition.only)
    }
}

/// True when a record passes all filters.
pub(super) fn pass(filters: &[Filter<'_>], hash: HashRef<'_>) -> bool {
    filters.iter().all(|filter| filter.passes(hash))
}

/// The range of scores in which an index contains all records of a prefix that pass the filters; `None` when it may not
/// contain all.
pub(super) fn scores_in(definition: &Definition, prefix: &[u8], filters: &[Filter<'_>]) -> Option<ScoreRange> {
    let covers = definition.prefixes.iter().any(|covered| prefix.starts_with(covered));
    let admits = definition.condition.as_ref().is_none_or(|condition| filters.iter().any(|one| one.implies(condition)));
    if !covers || !admits {
        return None;
    }
    let ranges = filters.iter().filter(|filter| filter.field == definition.field).filter_map(Filter::scores);
    ranges.reduce(|a, b| {
        let tighter_min = |a: ScoreBound, b: ScoreBound| match a.score.total_cmp(&b.score) {
            Ordering::Less => b,
            Ordering::Greater => a,
            Ordering::Equal => ScoreBound { excluded: a.excluded || b.excluded, ..a },
        };
        let tighter_max = |a: ScoreBound, b: ScoreBound| match a.score.total_cmp(&b.score) {
            Ordering::Less => a,
            Ordering::Greater => b,
            Ordering::Equal => ScoreBound { excluded: a.excluded || b.excluded, ..a },
        };
        ScoreRange { min: tighter_min(a.min, b.min), max: tighter_max(a.max, b.max) }
    })
}
