//! Runs: append-only logs of events, with snapshots that the server maintains. Holdfast only. Knows the commands;
//! refuses to know what the data of an event means: the caller chooses its type.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, ParsingError, ToSingleRedisArg, Value, cmd};

use crate::error::Error;
use crate::store::Store;

/// A named log of events. The data of its events is of type `D` for this program; the server stores bytes.
///
/// ```no_run
/// # async fn example(store: holdfast_client::Store) -> Result<(), holdfast_client::Error> {
/// use holdfast_client::{Append, NewEvent};
///
/// let run = store.run::<String>("runs/42");
/// let started = NewEvent::new("RunStarted", "{}".to_owned()).if_last(0);
/// match run.append(&started).await? {
///     Append::Persisted(event) => println!("event {} is ours", event.run_seq),
///     Append::Known { event, mismatch } => println!("it is event {} already; another one: {mismatch}", event.run_seq),
///     Append::Refused { last } => println!("another engine has got to event {last}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Run<D> {
    store: Store,
    name: Vec<u8>,
    data: PhantomData<fn() -> D>,
}

/// An event to append.
#[derive(Clone, Debug)]
pub struct NewEvent<D> {
    event_type: Vec<u8>,
    data: D,
    key: Option<Vec<u8>>,
    if_last: Option<u64>,
    /// Options of RUN.APPEND with their texts.
    parts: Vec<(&'static str, Vec<u8>)>,
}

impl<D> NewEvent<D> {
    /// An event of this type. Its idempotency key is computed from the run, the step, the logical attempt, the type and
    /// the plan version, unless it is given one.
    pub fn new(event_type: impl AsRef<[u8]>, data: D) -> NewEvent<D> {
        NewEvent { event_type: event_type.as_ref().to_vec(), data, key: None, if_last: None, parts: Vec::new() }
    }

    /// The key that identifies a repeated append.
    pub fn key(mut self, key: impl AsRef<[u8]>) -> NewEvent<D> {
        self.key = Some(key.as_ref().to_vec());
        self
    }

    /// Only if the last event of the run is this one; 0 means that the run must not exist. Of two engines that append
    /// after the same event, one succeeds.
    pub fn if_last(mut self, run_seq: u64) -> NewEvent<D> {
        self.if_last = Some(run_seq);
        self
    }

    /// Its id; a random UUID otherwise.
    pub fn event_id(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("EVENTID", id)
    }

    /// The step that it belongs to.
    pub fn step(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("STEP", id)
    }

    /// The attempt of the platform.
    pub fn engine_attempt(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("ENGINEATTEMPT", id)
    }

    /// The attempt of the business logic.
    pub fn logical_attempt(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("LOGICALATTEMPT", id)
    }

    /// When it was emitted, in the caller's format; the server's time otherwise.
    pub fn emitted_at(self, time: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("EMITTEDAT", time)
    }

    /// The version of the adapter that emitted it.
    pub fn adapter_version(self, version: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("ADAPTER", version)
    }

    /// The engine's name for the run.
    pub fn engine_run_ref(self, reference: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("REF", reference)
    }

    /// The signal that caused it.
    pub fn caused_by_signal(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("SIGNAL", id)
    }

    /// The event that caused it.
    pub fn parent_event(self, id: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("PARENT", id)
    }

    /// The version of the plan that the run follows.
    pub fn plan_version(self, version: impl AsRef<[u8]>) -> NewEvent<D> {
        self.part("PLANVERSION", version)
    }

    fn part(mut self, option: &'static str, text: impl AsRef<[u8]>) -> NewEvent<D> {
        self.parts.push((option, text.as_ref().to_vec()));
        self
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
    pub step: Option<Vec<u8>>,
    pub engine_attempt: Option<Vec<u8>>,
    pub logical_attempt: Option<Vec<u8>>,
    pub adapter_version: Option<Vec<u8>>,
    pub engine_run_ref: Option<Vec<u8>>,
    pub caused_by_signal: Option<Vec<u8>>,
    pub parent_event: Option<Vec<u8>>,
    pub plan_version: Option<Vec<u8>>,
}

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

impl Store {
    /// The run with this name. Sends nothing to the server.
    pub fn run<D>(&self, name: impl AsRef<[u8]>) -> Run<D> {
        Run { store: self.clone(), name: name.as_ref().to_vec(), data: PhantomData }
    }

    /// The names of all runs under a prefix that have one of these statuses; with an empty list, any status.
    pub async fn runs(&self, prefix: impl AsRef<[u8]>, statuses: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        self.needs("run.append")?;
        let (mut found, mut cursor) = (Vec::new(), 0u64);
        loop {
            let mut list = cmd("RUN.LIST");
            list.arg("PREFIX").arg(prefix.as_ref()).arg("CURSOR").arg(cursor);
            if !statuses.is_empty() {
                list.arg("STATUS").arg(statuses.len()).arg(statuses);
            }
            let (next, names): (u64, Vec<Vec<u8>>) = self.ask(&list).await?;
            found.extend(names);
            cursor = next;
            if cursor == 0 {
                return Ok(found);
            }
        }
    }
}

impl<D> Run<D> {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Facts about the run, without its events.
    pub async fn info(&self) -> Result<Option<RunInfo>, Error> {
        self.store.ask(&self.command("RUN.INFO")?).await
    }

    /// Removes the run with all its events; false if it did not exist. A single event cannot be removed.
    pub async fn delete(&self) -> Result<bool, Error> {
        self.store.ask(&self.command("DEL")?).await
    }

    fn command(&self, name: &str) -> Result<Cmd, Error> {
        self.store.needs("run.append")?;
        let mut command = cmd(name);
        command.arg(&self.name);
        Ok(command)
    }
}

impl<D: ToSingleRedisArg + Clone> Run<D> {
    /// Appends an event, unless one with its idempotency key exists. After [`Error::Unavailable`] it may have been
    /// appended: the same call again finds out, and appends it at most once.
    pub async fn append(&self, event: &NewEvent<D>) -> Result<Append, Error> {
        let mut append = self.command("RUN.APPEND")?;
        let key = event.key.as_deref().unwrap_or(b"*");
        append.arg(key).arg(&event.event_type).arg(event.data.clone());
        event.if_last.iter().for_each(|last| _ = append.arg("IFLAST").arg(last));
        event.parts.iter().for_each(|(option, text)| _ = append.arg(*option).arg(text));
        self.store.ask(&append).await
    }
}

impl<D: FromRedisValue> Run<D> {
    /// The events after this one, in order, at most `limit`.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event<D>>, Error> {
        self.store.ask(self.command("RUN.EVENTS")?.arg("AFTER").arg(after).arg("LIMIT").arg(limit)).await
    }

    /// Like [`events`](Run::events); if there are none, waits for the next. Returns none after the wait.
    pub async fn wait_for_events(&self, after: u64, limit: usize, wait: Duration) -> Result<Vec<Event<D>>, Error> {
        self.store.connection()?; // unless the store is closed
        if wait.is_zero() {
            return self.events(after, limit).await;
        }
        let mut events = self.command("RUN.EVENTS")?;
        // BLOCK 0 would wait forever.
        let wait_ms = wait.as_millis().clamp(1, i64::MAX as u128) as u64;
        events.arg("AFTER").arg(after).arg("LIMIT").arg(limit).arg("BLOCK").arg(wait_ms);
        self.store.own_connections.ask(&events, wait).await
    }

    /// The current snapshot; `None` if there is no such run.
    pub async fn snapshot(&self) -> Result<Option<Snapshot<D>>, Error> {
        self.store.ask(&self.command("RUN.SNAPSHOT")?).await
    }

    /// The snapshot as of an event, replayed from the first one.
    pub async fn project(&self, upto: u64) -> Result<Option<Snapshot<D>>, Error> {
        self.store.ask(self.command("RUN.PROJECT")?.arg("UPTO").arg(upto)).await
    }

    /// A custom projection: a reducer over all events, which are read in pages.
    pub async fn fold<S>(&self, state: S, mut reducer: impl FnMut(S, Event<D>) -> S) -> Result<S, Error> {
        const PAGE: usize = 1000;
        let (mut state, mut after) = (state, 0);
        loop {
            let events = self.events(after, PAGE).await?;
            let Some(last) = events.last() else { return Ok(state) };
            after = last.run_seq;
            state = events.into_iter().fold(state, &mut reducer);
        }
    }
}

/// The fields of a reply by name.
struct Named(HashMap<String, Value>);

impl Named {
    fn of(value: Value) -> Result<Named, ParsingError> {
        HashMap::from_redis_value(value).map(Named)
    }

    /// Takes a field, which must exist, and must not be nil unless `T` allows it.
    fn take<T: FromRedisValue>(&mut self, name: &str) -> Result<T, ParsingError> {
        match self.0.remove(name) {
            Some(value) => T::from_redis_value(value),
            None => Err(format!("the reply has no {name}").into()),
        }
    }

    /// Takes a field that may be missing.
    fn take_given(&mut self, name: &str) -> Result<Option<Vec<u8>>, ParsingError> {
        self.0.remove(name).map(Vec::from_redis_value).transpose()
    }
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
            step: event.take_given("stepId")?,
            engine_attempt: event.take_given("engineAttemptId")?,
            logical_attempt: event.take_given("logicalAttemptId")?,
            adapter_version: event.take_given("adapterVersion")?,
            engine_run_ref: event.take_given("engineRunRef")?,
            caused_by_signal: event.take_given("causedBySignalId")?,
            parent_event: event.take_given("parentEventId")?,
            plan_version: event.take_given("planVersion")?,
        })
    }
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
