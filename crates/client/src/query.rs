//! What a scan looks for, and its way through the pages of an answer. Knows no server; a [`StateStore`] gives the pages.

use std::vec;

use crate::error::Error;
use crate::filter::Filter;
use crate::record::Fields;
use crate::state_store::StateStore;

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

/// A scan under way, page by page. What it promises is what SCAN promises: a record that is there all the time
/// is found, one that comes or goes meanwhile may be, and one may be found twice.
pub struct Scan<'a> {
    store: &'a dyn StateStore,
    query: Query,
    /// Where the next page begins: `Some(None)` is the first, `None` is behind the last.
    cursor: Option<Option<Vec<u8>>>,
    page: vec::IntoIter<Found>,
    left: usize,
}

impl<'a> Scan<'a> {
    /// Begins a scan over the pages of a store: what every [`StateStore::scan`] returns.
    pub fn new(store: &'a dyn StateStore, query: Query) -> Scan<'a> {
        let left = query.limit.unwrap_or(usize::MAX);
        Scan { store, query, cursor: Some(None), page: Vec::new().into_iter(), left }
    }

    /// The next record, or `None` when there are no more. After an error it may be called again: it asks for the same page.
    pub async fn next(&mut self) -> Result<Option<Found>, Error> {
        while self.left > 0 {
            if let Some(found) = self.page.next() {
                self.left -= 1;
                return Ok(Some(found));
            }
            let Some(cursor) = &self.cursor else { break };
            let page = self.store.page(&self.query, cursor.as_deref(), self.left).await?;
            self.cursor = page.next.map(Some);
            self.page = page.records.into_iter();
        }
        Ok(None)
    }

    /// All records that are left.
    pub async fn collect(mut self) -> Result<Vec<Found>, Error> {
        let mut all = Vec::new();
        while let Some(found) = self.next().await? {
            all.push(found);
        }
        Ok(all)
    }
}
