//! The groups of an index: how many records each has, how many of them are held, and which limits apply. Holdfast only.

use std::time::Duration;
use std::vec;

use redis::{FromRedisValue, ParsingError, Value, cmd};

use crate::error::Error;
use crate::index_definition::NEEDED;
use crate::limits::Rate;
use crate::named::Named;
use crate::store::Store;

/// How a group fares.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupState {
    /// Its name: the value of the group's field.
    pub name: Vec<u8>,
    /// Its records in the index.
    pub records: u64,
    /// Its records that are held, in the index or not.
    pub held: u64,
    /// The score of its first record.
    pub first_score: Option<f64>,
    /// When its limits allow a claim to take from it, in unix time: zero is now, `None` not by time alone, such as while
    /// it is paused.
    pub allowed_at: Option<Duration>,
    /// The limits that it has.
    pub limits: GroupLimits,
}

/// The limits that a group has: its own, or those of each group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupLimits {
    /// How many of its records may be held at a time.
    pub held: Option<u64>,
    /// How fast its records are taken.
    pub rate: Option<Rate>,
    /// Its share of the turns.
    pub weight: f64,
    /// Nothing is taken from it.
    pub pause: bool,
}

/// The groups of an index, page by page, in no order. One that is there all the time is listed.
pub struct Groups<'a> {
    store: &'a Store,
    index: Vec<u8>,
    /// Where the next page begins; `None` after the last one.
    cursor: Option<u64>,
    page: vec::IntoIter<GroupState>,
}

/// Groups that one page has at most.
const PAGE: usize = 500;

impl Store {
    /// The groups of an index, one by one. Needs Holdfast.
    ///
    /// ```no_run
    /// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
    /// let mut groups = store.groups("due");
    /// while let Some(group) = groups.next().await? {
    ///     println!("{}: {} open, {} run", group.name.escape_ascii(), group.records, group.held);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn groups(&self, index: impl AsRef<[u8]>) -> Groups<'_> {
        Groups { store: self, index: index.as_ref().to_vec(), cursor: Some(0), page: Vec::new().into_iter() }
    }
}

impl Groups<'_> {
    /// The next group, or `None` when there are no more. After an error it may be called again: it asks for the same
    /// page.
    pub async fn next(&mut self) -> Result<Option<GroupState>, Error> {
        loop {
            if let Some(group) = self.page.next() {
                return Ok(Some(group));
            }
            let Some(cursor) = self.cursor else { return Ok(None) };
            self.store.needs(NEEDED)?;
            let mut list = cmd("IDX.GROUPS");
            list.arg(&self.index).arg("CURSOR").arg(cursor).arg("LIMIT").arg(PAGE);
            let (next, page): (u64, Vec<GroupState>) = self.store.ask(&list).await?;
            self.cursor = (next != 0).then_some(next);
            self.page = page.into_iter();
        }
    }

    /// All remaining groups.
    pub async fn collect(mut self) -> Result<Vec<GroupState>, Error> {
        let mut all = Vec::new();
        while let Some(group) = self.next().await? {
            all.push(group);
        }
        Ok(all)
    }
}

impl FromRedisValue for GroupState {
    fn from_redis_value(reply: Value) -> Result<GroupState, ParsingError> {
        let (name, state) = FromRedisValue::from_redis_value(reply)?;
        let mut state = Named::of(state)?;
        let allowed_at: i64 = state.take("allowed_at")?;
        Ok(GroupState {
            name,
            records: state.take("records")?,
            held: state.take("held")?,
            first_score: state.take("first_score")?,
            allowed_at: u64::try_from(allowed_at).ok().map(Duration::from_millis),
            limits: state.take("limits")?,
        })
    }
}

impl FromRedisValue for GroupLimits {
    fn from_redis_value(reply: Value) -> Result<GroupLimits, ParsingError> {
        let mut limits = Named::of(reply)?;
        let weight: Option<f64> = limits.take_or_default("weight")?;
        let pause: Option<String> = limits.take_or_default("pause")?;
        Ok(GroupLimits {
            held: limits.take_or_default("held")?,
            rate: limits.take_or_default("rate")?,
            weight: weight.unwrap_or(1.0),
            pause: pause.is_some_and(|pause| pause == "yes"),
        })
    }
}
