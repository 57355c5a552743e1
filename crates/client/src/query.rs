//! What a scan searches for, and one page of its results. Knows no store.

use crate::filter::Filter;
use crate::record::{Fields, Record};

/// What a scan searches for: records under a prefix that pass every filter.
///
/// ```
/// use holdfast_client::{Filter, Query};
///
/// let stuck = Query::prefix("gbe:state:tasks:")
///     .filter(Filter::lt("updated_at", 1_760_000_000_000_u64))
///     .filter(Filter::not_in("state", ["completed", "failed", "cancelled"]))
///     .limit(100);
/// assert_eq!(stuck.filters.len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// The prefix of the keys.
    pub prefix: Vec<u8>,
    /// What the records must pass.
    pub filters: Vec<Filter>,
    /// The fields to return; `None` is all. Filters may use others.
    pub fields: Option<Vec<Vec<u8>>>,
    /// How many records at most; `None` is all.
    pub limit: Option<usize>,
}

impl Query {
    /// All records whose key has this prefix.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Query {
        Query { prefix: prefix.as_ref().to_vec(), ..Query::default() }
    }

    /// Only records that pass this filter.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Query {
        self.filters.push(filter);
        self
    }

    /// Only these fields of each record.
    #[must_use]
    pub fn fields<F: AsRef<[u8]>>(mut self, fields: impl IntoIterator<Item = F>) -> Query {
        self.fields = Some(fields.into_iter().map(|field| field.as_ref().to_vec()).collect());
        self
    }

    /// At most this many records.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Query {
        self.limit = Some(limit);
        self
    }

    /// The requested fields of a record.
    pub(crate) fn wanted(&self, fields: Fields) -> Fields {
        match &self.fields {
            None => fields,
            Some(wanted) => wanted.iter().filter_map(|name| Some((name.clone(), fields.get(name)?.clone()))).collect(),
        }
    }
}

/// A key and its record.
pub type Found = (Vec<u8>, Record);

/// One page of a query's results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where the next page begins; `None` after the last one. Opaque outside of the store.
    pub next: Option<Vec<u8>>,
    /// The records of this page; possibly none even though more pages follow.
    pub records: Vec<Found>,
}
