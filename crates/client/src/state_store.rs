//! The interface of a store of records, and the scan over its pages. Knows no server and no protocol.
//!
//! Both are in one file: a store creates scans, and a scan asks its store for pages.

use std::pin::Pin;
use std::time::Duration;
use std::vec;

use crate::answer::Answer;
use crate::error::Error;
use crate::query::{Found, Page, Query};
use crate::record::{Fields, Record};

/// A store of records, each a map of fields under a key.
///
/// Futures are boxed so that the trait is object-safe: workers and sweepers take an `Arc<dyn StateStore>`, and tests
/// can pass another implementation. `async fn` in a trait would prevent that, and a box costs nothing compared with a
/// round trip.
///
/// ```
/// use holdfast_client::{Error, StateStore};
///
/// async fn finish(store: &dyn StateStore, job: &[u8]) -> Result<bool, Error> {
///     store.compare_and_swap(job, b"state", b"running", b"completed").await
/// }
/// ```
pub trait StateStore: Send + Sync {
    /// The record under a key, with its remaining lifetime; `None` if it does not exist.
    fn get<'a>(&'a self, key: &'a [u8]) -> Answer<'a, Option<Record>>;

    /// Writes fields and, if given, the record's lifetime, atomically. Fields without a value
    /// ([`Fields::without`]) are removed in the same step. Other fields stay, as with HSET; without a lifetime the
    /// existing one stays too.
    fn put<'a>(&'a self, key: &'a [u8], fields: &'a Fields, ttl: Option<Duration>) -> Answer<'a, ()>;

    /// Removes a record; returns whether it existed.
    fn delete<'a>(&'a self, key: &'a [u8]) -> Answer<'a, bool>;

    /// One field's value; `None` if the record or the field does not exist.
    fn get_field<'a>(&'a self, key: &'a [u8], field: &'a [u8]) -> Answer<'a, Option<Vec<u8>>>;

    /// Writes one field, or removes it if the value is `None`; others stay. A record that loses its last field is
    /// deleted.
    fn set_field<'a>(&'a self, key: &'a [u8], field: &'a [u8], value: Option<&'a [u8]>) -> Answer<'a, ()>;

    /// Writes some fields atomically, and removes those without a value; others stay.
    fn set_fields<'a>(&'a self, key: &'a [u8], fields: &'a Fields) -> Answer<'a, ()>;

    /// Writes `new` to a field if it has the value `expected`; returns whether it did. A missing field has no value,
    /// not even an empty one. Of several calls that expect the same value and write another, exactly one returns
    /// `true`.
    fn compare_and_swap<'a>(
        &'a self,
        key: &'a [u8],
        field: &'a [u8],
        expected: &'a [u8],
        new: &'a [u8],
    ) -> Answer<'a, bool>;

    /// The records of a query with their lifetimes, one by one.
    fn scan(&self, query: Query) -> Scan<'_>;

    /// One page of a scan, for [`Scan`]. A page may have more records than `most`, none, or some that another page has
    /// too.
    fn page<'a>(&'a self, query: &'a Query, cursor: Option<&'a [u8]>, most: usize) -> Answer<'a, Page>;

    /// True when the server answers.
    fn ping(&self) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;

    /// Closes the connection once the requests in flight are answered. Later requests are [`Error::Closed`].
    fn close(&self);
}

/// A scan in progress, page by page. It has SCAN's guarantee: a record that exists all the time is found, one that is
/// added or removed in between may be, and one may be found twice.
pub struct Scan<'a> {
    store: &'a dyn StateStore,
    query: Query,
    /// Where the next page begins: `Some(None)` is the first page, `None` is after the last.
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

    /// The next record, or `None` when there are no more. After an error it may be called again: it asks for the same
    /// page.
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

    /// All remaining records.
    pub async fn collect(mut self) -> Result<Vec<Found>, Error> {
        let mut all = Vec::new();
        while let Some(found) = self.next().await? {
            all.push(found);
        }
        Ok(all)
    }
}
