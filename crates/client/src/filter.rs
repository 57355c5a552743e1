//! Conditions on a field of a record, with the meaning that HFIND and IDX.RANGE give them. Knows no server: on a plain
//! Redis the client evaluates them itself.

use std::cmp::Ordering;

use redis::{Cmd, ToSingleRedisArg};

use crate::record::{Fields, bytes};

/// A condition on one field.
///
/// Two numbers compare as numbers, anything else as bytes. A number is a finite decimal number and nothing else: `7`,
/// `-0.5`, `1e3`. 64-bit integers in canonical form compare exactly, others as doubles. A record without the field
/// passes only [`Filter::ne`] and [`Filter::not_in`].
///
/// ```
/// use holdfast_client::{Fields, Filter};
///
/// let job = Fields::new().with("state", "running").with("updated_at", 1_760_000_000_000_u64);
/// assert!(Filter::lt("updated_at", "1760000000001").passes(&job));
/// assert!(Filter::not_in("state", ["completed", "failed"]).passes(&job));
/// assert!(!Filter::eq("worker", "w-17").passes(&job)); // it has no worker
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    field: Vec<u8>,
    op: Op,
    /// One value, except for `In` and `NotIn`.
    values: Vec<Vec<u8>>,
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

impl Filter {
    /// The field is equal to `value`.
    pub fn eq(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Eq, [value])
    }

    /// The field differs from `value`, or is absent.
    pub fn ne(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Ne, [value])
    }

    /// The field is less than `value`.
    pub fn lt(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Lt, [value])
    }

    /// The field is less than `value` or equal to it.
    pub fn le(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Le, [value])
    }

    /// The field is greater than `value`.
    pub fn gt(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Gt, [value])
    }

    /// The field is greater than `value` or equal to it.
    pub fn ge(field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Filter {
        Filter::new(field, Op::Ge, [value])
    }

    /// The field is equal to one of `values`.
    pub fn is_in<V: ToSingleRedisArg>(field: impl AsRef<[u8]>, values: impl IntoIterator<Item = V>) -> Filter {
        Filter::new(field, Op::In, values)
    }

    /// The field is equal to none of `values`, or is absent.
    pub fn not_in<V: ToSingleRedisArg>(field: impl AsRef<[u8]>, values: impl IntoIterator<Item = V>) -> Filter {
        Filter::new(field, Op::NotIn, values)
    }

    fn new<V: ToSingleRedisArg>(field: impl AsRef<[u8]>, op: Op, values: impl IntoIterator<Item = V>) -> Filter {
        Filter { field: field.as_ref().to_vec(), op, values: values.into_iter().map(bytes).collect() }
    }

    /// True when a record with these fields passes.
    pub fn passes(&self, fields: &Fields) -> bool {
        let held = fields.get(&self.field);
        let any = |passes: fn(Ordering) -> bool| {
            held.is_some_and(|held| self.values.iter().any(|value| passes(compare(held, value))))
        };
        match self.op {
            Op::Eq | Op::In => any(Ordering::is_eq),
            Op::Ne | Op::NotIn => !any(Ordering::is_eq),
            Op::Lt => any(Ordering::is_lt),
            Op::Le => any(Ordering::is_le),
            Op::Gt => any(Ordering::is_gt),
            Op::Ge => any(Ordering::is_ge),
        }
    }

    /// Adds `FILTER field op value` to a command.
    pub(crate) fn write(&self, command: &mut Cmd) {
        const WORDS: [&str; 8] = ["eq", "ne", "lt", "le", "gt", "ge", "in", "notin"]; // in the order of Op
        command.arg("FILTER").arg(&self.field).arg(WORDS[self.op as usize]);
        if matches!(self.op, Op::In | Op::NotIn) {
            command.arg(self.values.len());
        }
        command.arg(&self.values);
    }
}

fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (Ok(text_a), Ok(text_b)) = (str::from_utf8(a), str::from_utf8(b)) else { return a.cmp(b) };
    // Milliseconds and counters fit a double; 64-bit identifiers do not.
    let whole = |text: &str| text.parse().ok().filter(|number: &i64| number.to_string() == text);
    if let (Some(a), Some(b)) = (whole(text_a), whole(text_b)) {
        return a.cmp(&b);
    }
    let double = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
    match (double(text_a), double(text_b)) {
        (Some(a), Some(b)) => a.partial_cmp(&b).expect("finite numbers have an order"),
        _ => a.cmp(b),
    }
}
