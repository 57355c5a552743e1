//! A record in an index, and the order of scores. Refuses to know where records are kept.

use crate::storage::NameId;
use std::cmp::Ordering;

/// A record in a part: its score, and the id of its name in the table of keys.
pub(crate) type Item = (f64, NameId);

/// The order of scores, which are never NaN or minus zero.
#[inline]
pub(crate) fn by_score(one: f64, other: f64) -> Ordering {
    one.partial_cmp(&other).unwrap_or(Ordering::Equal)
}
