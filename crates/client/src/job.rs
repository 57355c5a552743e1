//! A job that a worker holds, and its operations. Every write is conditional on the attempt, which is the fencing
//! token, and the state. Knows how a job is written; refuses to know how it was found.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::exchange::{Exchange, Outcome};
use crate::lost::Lost;
use crate::queue_config::QueueConfig;
use crate::record::Fields;
use crate::store::Store;
use crate::sweep::Fate;

/// A job that this worker has claimed, until its lease ends.
///
/// Every method writes only if this worker still holds the job: the record has the same attempt and is still running.
/// [`Error::Lost`] says that it does not, and that nothing was written: stop working on it. After
/// [`Error::Unavailable`] any method may be called again: if the first call was applied after all, the second one finds
/// the job in the resulting state, and succeeds.
///
/// Dropping a job does nothing: its lease ends, and another worker gets it.
#[derive(Clone)]
pub struct Job {
    /// The key of its record.
    pub key: Vec<u8>,
    /// Its score in the index: when it became due.
    pub score: f64,
    /// Its fields as they were when it was claimed.
    pub fields: Fields,
    /// The number of claims, including this one. It only grows, so a service that remembers the highest token of a job
    /// can refuse the work of a worker that has lost it.
    pub token: i64,
    pub(crate) store: Store,
    pub(crate) config: Arc<QueueConfig>,
}

impl Job {
    /// Extends the lease to this long from now.
    pub async fn renew(&self, lease: Duration) -> Result<(), Error> {
        let renewal = Exchange::new().stamp(&self.config.fields.run_at, offset_ms(lease));
        self.update(&renewal).await.map(drop)
    }

    /// Completes the job, with these fields as its result.
    pub async fn complete(&self, fields: &Fields) -> Result<(), Error> {
        let config = &self.config;
        let end = Exchange { set: fields.clone(), ttl: config.completed_ttl, ..Exchange::new() };
        self.leave(end, &config.states.completed).await
    }

    /// Fails the job: it becomes a dead letter with these fields, such as the error. A job that became a dead letter
    /// because its lease ended at the last attempt is left unchanged.
    pub async fn fail(&self, fields: &Fields) -> Result<(), Error> {
        self.leave(Exchange { set: fields.clone(), ..Exchange::new() }, &self.config.states.dead).await
    }

    /// Returns the job, to be claimed again after this time. After the last attempt it becomes a dead letter.
    pub async fn retry(&self, after: Duration, fields: &Fields) -> Result<Fate, Error> {
        let config = &self.config;
        if config.attempts_max.is_some_and(|max| self.token.unsigned_abs() >= max) {
            return self.fail(fields).await.map(|()| Fate::Exhausted);
        }
        let back = Exchange { set: fields.clone(), ..Exchange::new() }.stamp(&config.fields.run_at, offset_ms(after));
        self.leave(back, &config.states.pending).await.map(|()| Fate::Requeued)
    }

    /// Changes the record if this worker still holds the job and the exchange's conditions hold. The outcome says
    /// whether those held.
    ///
    /// ```no_run
    /// # async fn example(job: holdfast_client::Job) -> Result<(), holdfast_client::Error> {
    /// use holdfast_client::Exchange;
    ///
    /// job.update(&Exchange::new().set("current_step", 2).stamp("run_at", 30_000)).await?; // and renews the lease
    /// # Ok(())
    /// # }
    /// ```
    pub async fn update(&self, exchange: &Exchange) -> Result<Outcome, Error> {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let held = exchange.clone().expected(&fields.attempt, self.token).expected(&fields.state, &states.running);
        let outcome = self.store.exchange(&self.key, &held).await?;
        let holds = |name: &String| outcome.current.get(name.as_bytes()) == held.expected.get(name.as_bytes());
        if outcome.applied || (holds(&fields.attempt) && holds(&fields.state)) {
            return Ok(outcome);
        }
        let of_the_hold = [&fields.attempt, &fields.state].map(|name| name.as_bytes());
        let current = outcome.current.iter().filter(|(name, _)| of_the_hold.contains(&name.as_slice()));
        let current = current.map(|(name, value)| (name.clone(), value.clone())).collect();
        Err(Error::Lost(Box::new(Lost { key: self.key.clone(), token: self.token, current })))
    }

    /// Moves the job to another state. If it has that state under the same token, an earlier call whose answer was lost
    /// has done it.
    async fn leave(&self, exchange: Exchange, state: &str) -> Result<(), Error> {
        let fields = &self.config.fields;
        match self.update(&exchange.set(&fields.state, state)).await {
            Err(Error::Lost(lost))
                if lost.current.number(&fields.attempt) == Some(self.token)
                    && lost.current.text(&fields.state) == Some(state) =>
            {
                Ok(())
            }
            left => left.map(drop),
        }
    }
}

/// A time from now, for STAMP and `NOW+ms`. The server refuses one that is too long.
pub(crate) fn offset_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
