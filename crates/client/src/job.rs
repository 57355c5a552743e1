//! A job that a worker holds, and what the worker may do with it. Every write has the hold as its condition: the attempt,
//! which is the fencing token, and the state. Knows how a job is written, refuses to know how it was found.

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
/// Every method writes only if the job is still this worker's: the record has the same attempt and is still running.
/// [`Error::Lost`] says that it is not, and that nothing was written: stop working on it.
/// After [`Error::Unavailable`] any of them may be called again: if the first call was made after all, the second one
/// finds the job as it would leave it, and succeeds.
///
/// Dropping a job does nothing. Its lease ends, and another worker gets it.
#[derive(Clone)]
pub struct Job {
    /// The key of its record.
    pub key: Vec<u8>,
    /// The score it had in its index: when it became due.
    pub score: f64,
    /// Its fields as they were when it was claimed.
    pub fields: Fields,
    /// How often it was claimed, this time included. It only grows, so a service that remembers the highest token it has
    /// seen for a job can refuse the work of a worker that has lost it.
    pub token: i64,
    pub(crate) store: Store,
    pub(crate) config: Arc<QueueConfig>,
}

impl Job {
    /// Makes the lease end so long from now.
    pub async fn renew(&self, lease: Duration) -> Result<(), Error> {
        let renewal = Exchange::new().stamp(&self.config.fields.run_at, offset_ms(lease));
        self.update(&renewal).await.map(drop)
    }

    /// Ends the job: it is done, with these fields as its result.
    pub async fn complete(&self, fields: &Fields) -> Result<(), Error> {
        let config = &self.config;
        let end = Exchange { set: fields.clone(), ttl: config.completed_ttl, ..Exchange::new() };
        self.leave(end, &config.states.completed).await
    }

    /// Ends the job: it cannot be done, and becomes a dead letter with these fields, such as the error. One that has become
    /// a dead letter because this was the last attempt and its lease has ended is left as it is.
    pub async fn fail(&self, fields: &Fields) -> Result<(), Error> {
        self.leave(Exchange { set: fields.clone(), ..Exchange::new() }, &self.config.states.dead).await
    }

    /// Gives the job back, to be claimed again so long from now. If this was the last attempt, it becomes a dead letter.
    pub async fn retry(&self, after: Duration, fields: &Fields) -> Result<Fate, Error> {
        let config = &self.config;
        if config.attempts_max.is_some_and(|max| self.token.unsigned_abs() >= max) {
            return self.fail(fields).await.map(|()| Fate::Exhausted);
        }
        let back = Exchange { set: fields.clone(), ..Exchange::new() }.stamp(&config.fields.run_at, offset_ms(after));
        self.leave(back, &config.states.pending).await.map(|()| Fate::Requeued)
    }

    /// Changes the record if the job is still this worker's, and the exchange's own conditions hold. Whether those did is in
    /// the outcome.
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
        let held = exchange.clone().expect(&fields.attempt, self.token).expect(&fields.state, &states.running);
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

    /// Leaves the job in another state. One that is there already under the same token was left so by an earlier call, whose
    /// answer was lost.
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

/// A time from now, as STAMP and `NOW+ms` take it. What is too long for the server is refused there.
pub(crate) fn offset_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
