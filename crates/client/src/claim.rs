//! The claim of records from indexes: which ones, and how they are changed. Holdfast only. Refuses to know what a job
//! is ([`Queue`](crate::Queue) does).

use std::time::Duration;

use redis::{Cmd, ToSingleRedisArg, cmd};

use crate::asker::block_ms;
use crate::error::Error;
use crate::record::{Fields, bytes};

/// Takes the first matching records of an index and changes each atomically: of any number of workers exactly one gets
/// a record.
///
/// ```
/// use holdfast_client::{Claim, Fields};
///
/// let claim = Claim::new(["due:high", "due:low"])
///     .max("NOW")
///     .only("tenant", ["acme"])
///     .set("state", "running")
///     .stamp("run_at", 30_000)
///     .counter("attempt")
///     .up_to(5, Fields::new().with("state", "dead"))
///     .count(10);
/// # let _ = claim;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The indexes; records are taken from the first that has any.
    pub indexes: Vec<Vec<u8>>,
    /// The lowest score, written as in ZRANGEBYSCORE (`5`, `(5`, `-inf`) or `NOW`, `NOW+ms`, `NOW-ms`; `None` is no
    /// bound.
    pub min: Option<String>,
    /// The highest score.
    pub max: Option<String>,
    /// Fields, each with the values that it may have.
    pub only: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The fields to write. In values, `NOW`, `NOW+ms` and `NOW-ms` are replaced by the server's time.
    pub set: Fields,
    /// The field that counts the claims of a record.
    pub counter: Option<Vec<u8>>,
    /// The maximum of the counter, and the fields to write to a record above it, which is then not returned.
    pub limit: Option<(u64, Fields)>,
    /// How many records at most; `None` is one.
    pub count: Option<usize>,
    /// Which group's record is next, of an index with groups; `None` is [`Order::Fair`].
    pub order: Option<Order>,
    /// How long to wait if there is no record. Zero does not wait. Waiting forever is not possible: on a connection
    /// that has silently died it would not end.
    pub block: Duration,
    /// The fields to return; `None` is all.
    pub fields: Option<Vec<Vec<u8>>>,
}

/// In which order the groups of an index give their records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// They take turns, in proportion to their weights.
    Fair,
    /// The lowest score of all is first.
    Score,
}

impl Claim {
    /// Claims from these indexes, the most urgent first.
    pub fn new<I: AsRef<[u8]>>(indexes: impl IntoIterator<Item = I>) -> Claim {
        Claim { indexes: indexes.into_iter().map(|index| index.as_ref().to_vec()).collect(), ..Claim::default() }
    }

    /// Only records with this score or a higher one.
    #[must_use]
    pub fn min(mut self, score: impl Into<String>) -> Claim {
        self.min = Some(score.into());
        self
    }

    /// Only records with this score or a lower one: `NOW` is what is due.
    #[must_use]
    pub fn max(mut self, score: impl Into<String>) -> Claim {
        self.max = Some(score.into());
        self
    }

    /// Only records whose field has one of these values. Other records are examined one by one and skipped: an index
    /// that excludes them is faster.
    #[must_use]
    pub fn only<V: ToSingleRedisArg>(mut self, field: impl AsRef<[u8]>, values: impl IntoIterator<Item = V>) -> Claim {
        self.only.push((field.as_ref().to_vec(), values.into_iter().map(bytes).collect()));
        self
    }

    /// Writes the field.
    #[must_use]
    pub fn set(mut self, field: impl AsRef<[u8]>, value: impl ToSingleRedisArg) -> Claim {
        self.set = self.set.with(field, value);
        self
    }

    /// Writes the server's time plus an offset to the field.
    #[must_use]
    pub fn stamp(self, field: impl AsRef<[u8]>, offset_ms: i64) -> Claim {
        self.set(field, format!("NOW{offset_ms:+}"))
    }

    /// Adds 1 to the field: the attempt, and the fencing token.
    #[must_use]
    pub fn counter(mut self, field: impl AsRef<[u8]>) -> Claim {
        self.counter = Some(field.as_ref().to_vec());
        self
    }

    /// Writes other values to a record whose counter would exceed `max`, and does not return it: the dead letters.
    #[must_use]
    pub fn up_to(mut self, max: u64, otherwise: Fields) -> Claim {
        self.limit = Some((max, otherwise));
        self
    }

    /// At most this many records.
    #[must_use]
    pub fn count(mut self, count: usize) -> Claim {
        self.count = Some(count);
        self
    }

    /// Which group's record is next, of an index with groups.
    #[must_use]
    pub fn order(mut self, order: Order) -> Claim {
        self.order = Some(order);
        self
    }

    /// Waits this long for a record if there is none.
    #[must_use]
    pub fn block(mut self, block: Duration) -> Claim {
        self.block = block;
        self
    }

    /// Only these fields of each record.
    #[must_use]
    pub fn fields<F: AsRef<[u8]>>(mut self, fields: impl IntoIterator<Item = F>) -> Claim {
        self.fields = Some(fields.into_iter().map(|field| field.as_ref().to_vec()).collect());
        self
    }

    pub(crate) fn command(&self) -> Result<Cmd, Error> {
        let otherwise = self.limit.iter().flat_map(|(_, otherwise)| otherwise.removed());
        if self.set.removed().chain(otherwise).next().is_some() {
            return Err(Error::CannotRemove);
        }
        let mut command = cmd("CLAIM");
        command.arg(self.indexes.len()).arg(&self.indexes);
        for (option, score) in [("MIN", &self.min), ("MAX", &self.max)] {
            score.iter().for_each(|score| _ = command.arg(option).arg(score));
        }
        for (field, values) in &self.only {
            command.arg("WHERE").arg(field).arg(values.len()).arg(values);
        }
        command.arg("SET").arg(self.set.len()).arg(&*self.set);
        if let Some(field) = &self.counter {
            command.arg("COUNTER").arg(field);
        }
        if let Some((max, otherwise)) = &self.limit {
            command.arg("UPTO").arg(max).arg("ELSE").arg(otherwise.len()).arg(&**otherwise);
        }
        self.count.iter().for_each(|count| _ = command.arg("COUNT").arg(count));
        match self.order {
            None => {}
            Some(Order::Fair) => _ = command.arg("ORDER").arg("fair"),
            Some(Order::Score) => _ = command.arg("ORDER").arg("score"),
        }
        if !self.block.is_zero() {
            command.arg("BLOCK").arg(block_ms(self.block));
        }
        if let Some(fields) = &self.fields {
            command.arg("FIELDS").arg(fields.len()).arg(fields);
        }
        Ok(command)
    }
}
