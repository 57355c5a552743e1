//! The sweep of overdue records of an index. Holdfast only.

use redis::{Cmd, FromRedisValue, ParsingError, Value, cmd};

use crate::error::Error;
use crate::record::Fields;

/// Requeues overdue records: each record of an index with a score below a bound gets other values, with a limit on how
/// often. Each record is checked and written atomically, so one that finishes in between is left alone. In values,
/// `NOW`, `NOW+ms` and `NOW-ms` are replaced by the server's time.
///
/// ```
/// use holdfast_client::{Fields, Sweep};
///
/// let sweep = Sweep {
///     index: "idx:timeout_at".into(),
///     before_ms: 1_760_000_000_000,
///     only: Some(("state".into(), vec!["claimed".into(), "running".into()])),
///     retry: Some(("attempt".into(), 3, Fields::new().with("state", "failed"))),
///     set: Fields::new().with("state", "pending").with("updated_at", "NOW"),
///     ..Sweep::default()
/// };
/// # let _ = sweep;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The index.
    pub index: Vec<u8>,
    /// Records with a score below it are overdue.
    pub before_ms: u64,
    /// A field, and the values that it may have.
    pub only: Option<(Vec<u8>, Vec<Vec<u8>>)>,
    /// The field that counts how often a record was requeued, its maximum, and what is written to a record that has
    /// reached it. `None` is without limit.
    pub retry: Option<(Vec<u8>, u64, Fields)>,
    /// The fields to write.
    pub set: Fields,
    /// How many records at most; with `None` there is no limit.
    pub limit: Option<usize>,
    /// The channel on which the keys are published.
    pub publish: Option<Vec<u8>>,
}

/// The result of a sweep for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was requeued.
    Requeued,
    /// It had used up its retries.
    Exhausted,
}

impl FromRedisValue for Fate {
    fn from_redis_value(reply: Value) -> Result<Fate, ParsingError> {
        match String::from_redis_value(reply)?.as_str() {
            "requeued" => Ok(Fate::Requeued),
            "exhausted" => Ok(Fate::Exhausted),
            other => Err(format!("a record was neither requeued nor exhausted but {other:?}").into()),
        }
    }
}

impl Sweep {
    pub(crate) fn command(&self) -> Result<Cmd, Error> {
        let exhausted = self.retry.iter().flat_map(|(_, _, exhausted)| exhausted.removed());
        if self.set.removed().chain(exhausted).next().is_some() {
            return Err(Error::CannotRemove);
        }
        let mut command = cmd("SWEEP");
        command.arg(&self.index).arg("BEFORE").arg(self.before_ms);
        if let Some((field, values)) = &self.only {
            command.arg("WHERE").arg(field).arg(values.len()).arg(values);
        }
        if let Some((field, max, exhausted)) = &self.retry {
            command.arg("RETRY").arg(field).arg(max).arg("ELSE").arg(exhausted.len()).arg(&**exhausted);
        }
        command.arg("SET").arg(self.set.len()).arg(&*self.set);
        if let Some(limit) = self.limit {
            command.arg("LIMIT").arg(limit);
        }
        if let Some(channel) = &self.publish {
            command.arg("PUBLISH").arg(channel);
        }
        Ok(command)
    }
}
