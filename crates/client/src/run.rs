//! Runs: append-only logs of events, with snapshots that the server maintains. Holdfast only. Knows the commands;
//! refuses to know what the data of an event means, which the caller's type says, and whether a store, a transaction or
//! a session sends them.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, FromRedisValue, cmd};

use crate::asker::{Asker, block_ms};
use crate::encode::Encode;
use crate::error::Error;
use crate::event::{Append, Event, NewEvent};
use crate::snapshot::{RunInfo, Snapshot};
use crate::store::Store;

/// A named log of events. The data of its events is of type `D` for this program; the server stores bytes. A run is of a
/// store, of a [`Transaction`](crate::Transaction) or of a [`Session`](crate::Session), and its operations are part of
/// that.
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
pub struct Run<D> {
    asker: Arc<dyn Asker>,
    name: Vec<u8>,
    data: PhantomData<fn() -> D>,
}

impl<D> Clone for Run<D> {
    fn clone(&self) -> Run<D> {
        Run::new(self.asker.clone(), &self.name)
    }
}

/// How far a reader of a run is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// The number of events after the reader's position.
    pub events: u64,
    /// The age of the oldest of them, by the server's clock; zero if there is none.
    pub age: Duration,
}

impl Store {
    /// The run with this name. Sends nothing to the server.
    pub fn run<D>(&self, name: impl AsRef<[u8]>) -> Run<D> {
        Run::new(self.asker(), name.as_ref())
    }

    /// The names of all runs under a prefix that have one of these statuses; with an empty list, any status.
    pub async fn runs(&self, prefix: impl AsRef<[u8]>, statuses: &[&str]) -> Result<Vec<Vec<u8>>, Error> {
        self.needs(NEEDED)?;
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

/// A command that every server with runs has.
const NEEDED: &str = "run.append";

impl<D> Run<D> {
    pub(crate) fn new(asker: Arc<dyn Asker>, name: &[u8]) -> Run<D> {
        Run { asker, name: name.to_vec(), data: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Facts about the run, without its events; `None` if there is no such run.
    pub async fn info(&self) -> Result<Option<RunInfo>, Error> {
        self.asker.ask(&self.command("RUN.INFO")?).await
    }

    /// How far a reader at this position is behind: the position is the number of the last event that it has handled,
    /// 0 before the first. A position beyond the end is refused, as in [`events`](Run::events).
    pub async fn lag(&self, position: u64) -> Result<Lag, Error> {
        let mut first = self.command("RUN.EVENTS")?;
        first.arg("AFTER").arg(position).arg("LIMIT").arg(1);
        let first: Vec<Event<redis::Value>> = self.asker.ask(&first).await?;
        let (Some(oldest), Some(info)) = (first.first(), self.info().await?) else { return Ok(Lag::default()) };
        let (seconds, micros): (u64, u64) = self.asker.ask(&cmd("TIME")).await?;
        let now_ms = seconds * 1000 + micros / 1000;
        let age = Duration::from_millis(now_ms.saturating_sub(oldest.persisted_at_ms));
        Ok(Lag { events: info.events.saturating_sub(position), age })
    }

    /// Removes the run with all its events; false if it did not exist. A single event cannot be removed.
    pub async fn delete(&self) -> Result<bool, Error> {
        self.asker.ask(&self.command("DEL")?).await
    }

    fn command(&self, name: &str) -> Result<Cmd, Error> {
        self.asker.needs(NEEDED)?;
        let mut command = cmd(name);
        command.arg(&self.name);
        Ok(command)
    }
}

impl<D: Encode> Run<D> {
    /// Appends an event, unless one with its idempotency key exists. After [`Error::Unavailable`] it may have been
    /// appended: the same call again finds out, and appends it at most once.
    pub async fn append(&self, event: &NewEvent<D>) -> Result<Append, Error> {
        let mut append = self.command("RUN.APPEND")?;
        event.write(&mut append)?;
        self.asker.ask(&append).await
    }
}

impl<D: FromRedisValue> Run<D> {
    /// The events after this one, in order, at most `limit`.
    pub async fn events(&self, after: u64, limit: usize) -> Result<Vec<Event<D>>, Error> {
        self.asker.ask(self.command("RUN.EVENTS")?.arg("AFTER").arg(after).arg("LIMIT").arg(limit)).await
    }

    /// Like [`events`](Run::events); if there are none, waits for the next. Returns none after the wait. Needs a run of
    /// a store: nothing waits in a transaction or in a session. [`follow`](Run::follow) does this in a loop.
    pub async fn wait_for_events(&self, after: u64, limit: usize, wait: Duration) -> Result<Vec<Event<D>>, Error> {
        if wait.is_zero() {
            return self.events(after, limit).await;
        }
        let mut events = self.command("RUN.EVENTS")?;
        events.arg("AFTER").arg(after).arg("LIMIT").arg(limit).arg("BLOCK").arg(block_ms(wait));
        self.asker.wait(&events, wait).await
    }

    /// The current snapshot; `None` if there is no such run.
    pub async fn snapshot(&self) -> Result<Option<Snapshot<D>>, Error> {
        self.asker.ask(&self.command("RUN.SNAPSHOT")?).await
    }

    /// The snapshot, replayed by the server from the first event. An unknown run has the snapshot of no events, which
    /// is `pending`.
    pub async fn project(&self) -> Result<Snapshot<D>, Error> {
        self.projection(&self.command("RUN.PROJECT")?).await
    }

    /// Like [`project`](Run::project), as of an event; one beyond the end is the end.
    pub async fn project_up_to(&self, run_seq: u64) -> Result<Snapshot<D>, Error> {
        self.projection(self.command("RUN.PROJECT")?.arg("UPTO").arg(run_seq)).await
    }

    /// A custom projection: a reducer over all events, which are read in pages.
    pub async fn fold<S>(&self, state: S, mut reducer: impl FnMut(S, Event<D>) -> S) -> Result<S, Error> {
        const PAGE: usize = 1000;
        let (mut state, mut after) = (state, 0);
        loop {
            let events = self.events(after, PAGE).await?;
            let is_last = events.len() < PAGE;
            after = events.last().map_or(after, |last| last.run_seq);
            state = events.into_iter().fold(state, &mut reducer);
            if is_last {
                return Ok(state);
            }
        }
    }

    async fn projection(&self, command: &Cmd) -> Result<Snapshot<D>, Error> {
        let snapshot: Option<Snapshot<D>> = self.asker.ask(command).await?;
        Ok(snapshot.unwrap_or_else(Snapshot::of_nothing))
    }
}
