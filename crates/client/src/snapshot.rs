//! The snapshot of a run, and facts about it, as the server replies them. Refuses to know how the server makes them.

use redis::{FromRedisValue, ParsingError, Value};

use crate::named::Named;

/// The state that the events of a run add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot<D> {
    /// `pending`, `running`, `paused`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// The last event in it.
    pub last_event_seq: u64,
    /// When the first `RunStarted` was appended.
    pub started_at_ms: Option<u64>,
    /// When it last changed.
    pub updated_at_ms: Option<u64>,
    /// The steps, in the order in which they were first named.
    pub steps: Vec<(Vec<u8>, Step<D>)>,
    /// The data of the last event that changed the status.
    pub data: Option<D>,
}

impl<D> Snapshot<D> {
    /// The snapshot of no events.
    pub(crate) fn of_nothing() -> Snapshot<D> {
        Snapshot {
            status: "pending".to_owned(),
            last_event_seq: 0,
            started_at_ms: None,
            updated_at_ms: None,
            steps: Vec::new(),
            data: None,
        }
    }
}

/// The state that the events of a step add up to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step<D> {
    /// `pending`, `running`, `retrying`, `completed`, `failed` or `skipped`.
    pub status: String,
    /// How often it was started.
    pub attempts: u64,
    /// When it was first started.
    pub started_at_ms: Option<u64>,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// The data of its last event.
    pub data: D,
}

/// Facts about a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// As [`Snapshot::status`].
    pub status: String,
    /// The number of events, which is the number of the last one.
    pub events: u64,
    /// When the first event was appended.
    pub first_at_ms: u64,
    /// When the last one was.
    pub last_at_ms: u64,
    /// The memory of its events at the server.
    pub bytes: u64,
}

impl<D: FromRedisValue> FromRedisValue for Snapshot<D> {
    fn from_redis_value(value: Value) -> Result<Snapshot<D>, ParsingError> {
        let mut snapshot = Named::of(value)?;
        let steps: Value = snapshot.take("steps")?;
        let steps = steps.into_map_iter().map_err(|_| ParsingError::from("the steps are no map".to_owned()))?;
        let step = |(name, step): (Value, Value)| Ok((Vec::from_redis_value(name)?, Step::from_redis_value(step)?));
        Ok(Snapshot {
            status: snapshot.take("status")?,
            last_event_seq: snapshot.take("lastEventSeq")?,
            started_at_ms: snapshot.take("startedAt")?,
            updated_at_ms: snapshot.take("updatedAt")?,
            steps: steps.map(step).collect::<Result<_, ParsingError>>()?,
            data: snapshot.take("data")?,
        })
    }
}

impl<D: FromRedisValue> FromRedisValue for Step<D> {
    fn from_redis_value(value: Value) -> Result<Step<D>, ParsingError> {
        let mut step = Named::of(value)?;
        Ok(Step {
            status: step.take("status")?,
            attempts: step.take("attempts")?,
            started_at_ms: step.take("startedAt")?,
            updated_at_ms: step.take("updatedAt")?,
            data: step.take("data")?,
        })
    }
}

impl FromRedisValue for RunInfo {
    fn from_redis_value(value: Value) -> Result<RunInfo, ParsingError> {
        let mut info = Named::of(value)?;
        Ok(RunInfo {
            status: info.take("status")?,
            events: info.take("events")?,
            first_at_ms: info.take("firstAt")?,
            last_at_ms: info.take("lastAt")?,
            bytes: info.take("bytes")?,
        })
    }
}
