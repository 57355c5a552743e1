//! Events of a run: what is appended, what the server answers, and what is read. Knows the words; sends nothing, and
//! refuses to know what the data means.

use std::collections::BTreeMap;

use redis::{Cmd, FromRedisValue, ParsingError, Value};

use crate::encode::Encode;
use crate::error::Error;
use crate::named::Named;

/// An event to append.
#[derive(Clone, Debug)]
pub struct NewEvent<D> {
    event_type: Vec<u8>,
    data: D,
    key: Option<Vec<u8>>,
    if_last: Option<u64>,
    /// Options of RUN.APPEND with their texts.
    parts: Vec<(&'static str, Vec<u8>)>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

impl<D> NewEvent<D> {
    /// An event of this type. Its idempotency key is computed from the run, the step, the logical attempt, the type and
    /// the plan version, unless it is given one.
    pub fn new(event_type: impl AsRef<[u8]>, data: D) -> NewEvent<D> {
        let event_type = event_type.as_ref().to_vec();
        NewEvent { event_type, data, key: None, if_last: None, parts: Vec::new(), attributes: Vec::new() }
    }

    /// The key that identifies a repeated append.
    #[must_use]
    pub fn key(mut self, key: impl AsRef<[u8]>) -> NewEvent<D> {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    /// Only if the last event of the run is this one; 0 means that the run must not exist. Of two engines that append
    /// after the same event, one succeeds.
    #[must_use]
    pub fn if_last(mut self, run_seq: u64) -> NewEvent<D> {
        self.if_last = Some(run_seq);
        self
    }

    /// Its id; a random UUID otherwise.
    #[must_use]
    pub fn event_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("EVENTID", id)
    }

    /// The step that it belongs to.
    #[must_use]
    pub fn step_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("STEP", id)
    }

    /// The earlier name of [`step_id`](NewEvent::step_id).
    #[must_use]
    #[deprecated(note = "its name is `step_id` now, as in the other packages")]
    pub fn step(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.step_id(id)
    }

    /// The attempt of the platform.
    #[must_use]
    pub fn engine_attempt_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("ENGINEATTEMPT", id)
    }

    /// The earlier name of [`engine_attempt_id`](NewEvent::engine_attempt_id).
    #[must_use]
    #[deprecated(note = "its name is `engine_attempt_id` now, as in the other packages")]
    pub fn engine_attempt(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.engine_attempt_id(id)
    }

    /// The attempt of the business logic.
    #[must_use]
    pub fn logical_attempt_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("LOGICALATTEMPT", id)
    }

    /// The earlier name of [`logical_attempt_id`](NewEvent::logical_attempt_id).
    #[must_use]
    #[deprecated(note = "its name is `logical_attempt_id` now, as in the other packages")]
    pub fn logical_attempt(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.logical_attempt_id(id)
    }

    /// When it was emitted, in the caller's format; the server's time otherwise.
    #[must_use]
    pub fn emitted_at(self, time: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("EMITTEDAT", time)
    }

    /// The version of the adapter that emitted it.
    #[must_use]
    pub fn adapter_version(self, version: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("ADAPTER", version)
    }

    /// The engine's name for the run.
    #[must_use]
    pub fn engine_run_ref(self, reference: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("REF", reference)
    }

    /// The signal that caused it.
    #[must_use]
    pub fn caused_by_signal_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("SIGNAL", id)
    }

    /// The earlier name of [`caused_by_signal_id`](NewEvent::caused_by_signal_id).
    #[must_use]
    #[deprecated(note = "its name is `caused_by_signal_id` now, as in the other packages")]
    pub fn caused_by_signal(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.caused_by_signal_id(id)
    }

    /// The event that caused it.
    #[must_use]
    pub fn parent_event_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("PARENT", id)
    }

    /// The earlier name of [`parent_event_id`](NewEvent::parent_event_id).
    #[must_use]
    #[deprecated(note = "its name is `parent_event_id` now, as in the other packages")]
    pub fn parent_event(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.parent_event_id(id)
    }

    /// The version of the plan that the run follows.
    #[must_use]
    pub fn plan_version(self, version: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("PLANVERSION", version)
    }

    /// A field that neither the server nor this package knows, stored and returned unchanged.
    #[must_use]
    pub fn attribute(mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> NewEvent<D> {
        self.attributes.push((name.as_ref().to_vec(), value.as_ref().to_vec()));
        self
    }

    fn part(mut self, option: &'static str, text: impl AsRef<[u8]>) -> NewEvent<D> {
        self.parts.push((option, text.as_ref().to_vec()));
        self
    }
}

impl<D: Encode> NewEvent<D> {
    /// Adds what comes after the run's name in RUN.APPEND.
    pub(crate) fn write(&self, append: &mut Cmd) -> Result<(), Error> {
        append.arg(self.key.as_deref().unwrap_or(b"*")).arg(&self.event_type).arg(self.data.encode()?);
        self.if_last.iter().for_each(|last| _ = append.arg("IFLAST").arg(last));
        self.parts.iter().for_each(|(option, text)| _ = append.arg(*option).arg(text));
        if !self.attributes.is_empty() {
            append.arg("ATTR").arg(self.attributes.len()).arg(&self.attributes);
        }
        Ok(())
    }
}

/// The result of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The event is now the last one of the run.
    Persisted(Receipt),
    /// An event with that idempotency key exists, and nothing was changed. With `mismatch` its type or its data differ.
    Known {
        /// The existing event.
        event: Receipt,
        /// True when it is another event under the same key.
        mismatch: bool,
    },
    /// The last event is not the one that [`NewEvent::if_last`] names; nothing was changed.
    Refused {
        /// The last event of the run, 0 if there is none.
        last: u64,
    },
}

impl Append {
    /// The event in the run, appended by this call or an earlier one.
    pub fn event(&self) -> Option<&Receipt> {
        match self {
            Append::Persisted(event) | Append::Known { event, .. } => Some(event),
            Append::Refused { .. } => None,
        }
    }
}

/// The identity of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number in the run: 1, 2, 3… without gaps.
    pub run_seq: u64,
    /// Its id.
    pub event_id: Vec<u8>,
    /// When it was appended, in unix milliseconds by the server's clock.
    pub persisted_at_ms: u64,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of NewEvent")]
pub struct Event<D> {
    pub run_seq: u64,
    pub event_id: Vec<u8>,
    pub event_type: Vec<u8>,
    pub data: D,
    pub key: Vec<u8>,
    pub emitted_at: Vec<u8>,
    pub persisted_at_ms: u64,
    pub step_id: Option<Vec<u8>>,
    pub engine_attempt_id: Option<Vec<u8>>,
    pub logical_attempt_id: Option<Vec<u8>>,
    pub adapter_version: Option<Vec<u8>>,
    pub engine_run_ref: Option<Vec<u8>>,
    pub caused_by_signal_id: Option<Vec<u8>>,
    pub parent_event_id: Option<Vec<u8>>,
    pub plan_version: Option<Vec<u8>>,
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl FromRedisValue for Append {
    fn from_redis_value(value: Value) -> Result<Append, ParsingError> {
        let mut reply = Named::of(value)?;
        let run_seq = reply.take("runSeq")?;
        let (persisted, idempotent): (bool, bool) = (reply.take("persisted")?, reply.take("idempotent")?);
        if !persisted && !idempotent {
            return Ok(Append::Refused { last: run_seq });
        }
        let event = Receipt { run_seq, event_id: reply.take("eventId")?, persisted_at_ms: reply.take("persistedAt")? };
        Ok(match persisted {
            true => Append::Persisted(event),
            false => Append::Known { event, mismatch: reply.take("mismatch")? },
        })
    }
}

impl<D: FromRedisValue> FromRedisValue for Event<D> {
    fn from_redis_value(value: Value) -> Result<Event<D>, ParsingError> {
        let mut event = Named::of(value)?;
        Ok(Event {
            run_seq: event.take("runSeq")?,
            event_id: event.take("eventId")?,
            event_type: event.take("eventType")?,
            data: event.take("eventData")?,
            key: event.take("idempotencyKey")?,
            emitted_at: event.take("emittedAt")?,
            persisted_at_ms: event.take("persistedAt")?,
            step_id: event.take_given("stepId")?,
            engine_attempt_id: event.take_given("engineAttemptId")?,
            logical_attempt_id: event.take_given("logicalAttemptId")?,
            adapter_version: event.take_given("adapterVersion")?,
            engine_run_ref: event.take_given("engineRunRef")?,
            caused_by_signal_id: event.take_given("causedBySignalId")?,
            parent_event_id: event.take_given("parentEventId")?,
            plan_version: event.take_given("planVersion")?,
            attributes: event.take_or_default("attributes")?,
        })
    }
}
