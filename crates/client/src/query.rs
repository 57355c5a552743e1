//! What a scan looks for, and one page of what it finds. Knows no store.

use crate::filter::Filter;
use crate::record::Fields;

/// What a scan looks for: records under a prefix that pass every filter.
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
    /// How the keys begin.
    pub prefix: Vec<u8>,
    /// What the records must pass.
    pub filters: Vec<Filter>,
    /// The fields that are wanted; `None` is all. Filters may look at others.
    pub fields: Option<Vec<Vec<u8>>>,
    /// How many records at most; `None` is all.
    pub limit: Option<usize>,
}

impl Query {
    /// All records whose key begins so.
    pub fn prefix(prefix: impl AsRef<[u8]>) -> Query {
        Query { prefix: prefix.as_ref().to_vec(), ..Query::default() }
    }

    /// Of these, only those that pass.
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

    /// At most so many records.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Query {
        self.limit = Some(limit);
        self
    }

    /// Of a record's fields, those that are wanted.
    pub(crate) fn wanted(&self, fields: Fields) -> Fields {
        match &self.fields {
            None => fields,
            Some(wanted) => wanted.iter().filter_map(|name| Some((name.clone(), fields.get(name)?.clone()))).collect(),
        }
    }
}

/// A key and the fields of its record.
pub type Found = (Vec<u8>, Fields);

/// One answer of many to a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Where the next page begins; `None` after the last one. Only the store that gave it understands it.
    pub next: Option<Vec<u8>>,
    /// What this page found; may be nothing even though more pages follow.
    pub records: Vec<Found>,
}
