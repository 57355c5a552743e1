//! A queue of jobs: adding jobs, and the claims of workers. Claims need Holdfast.

use std::sync::Arc;
use std::time::Duration;

use crate::claim::Claim;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::index::IndexDefinition;
use crate::job::{Job, offset_ms};
use crate::queue_config::QueueConfig;
use crate::record::Fields;
use crate::store::{Indexed, Store};

/// Jobs in a store: a job is a record that is indexed by the time at which it may be claimed.
///
/// A claim sets that time to the end of the lease, so a job whose worker dies becomes due again. It also counts the
/// attempt, on which every later write of the worker is conditional ([`Job`]).
///
/// ```no_run
/// use std::time::Duration;
/// use holdfast_client::{Error, Fields, Queue, QueueConfig, Store};
///
/// # async fn resize(job: &holdfast_client::Job) -> Result<String, String> { Ok(String::new()) }
/// # async fn example() -> Result<(), Error> {
/// let store = Store::connect("redis://127.0.0.1:6379").await?;
/// let queue = Queue::new(&store, QueueConfig { attempts_max: Some(5), ..QueueConfig::new(["due"]) });
/// queue.create_index("due", "job:").await?;
/// queue.add(b"job:7", &Fields::new().with("image", "cat.png"), Duration::ZERO).await?;
/// loop {
///     let Some(job) = queue.next("w-1", Duration::from_secs(5)).await? else { continue };
///     let ended = match resize(&job).await {
///         Ok(result) => job.complete(&Fields::new().with("result", result)).await,
///         Err(error) => job.retry(Duration::from_secs(10), &Fields::new().with("error", error)).await.map(drop),
///     };
///     match ended {
///         Err(Error::Lost(lost)) => eprintln!("{lost}"), // another worker has it
///         ended => ended?,
///     }
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Queue {
    store: Store,
    config: Arc<QueueConfig>,
}

impl Queue {
    /// A queue in a store.
    pub fn new(store: &Store, config: QueueConfig) -> Queue {
        Queue { store: store.clone(), config: Arc::new(config) }
    }

    /// How the queue is configured.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Creates an index over the open jobs whose keys have this prefix. An existing index of that name is left
    /// unchanged.
    pub async fn create_index(&self, index: &str, prefix: &str) -> Result<(), Error> {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let open = [&*states.pending, &*states.running];
        let definition = IndexDefinition::new([prefix], &fields.run_at).only(&fields.state, open);
        self.store.create_index(index, &definition).await.map(drop)
    }

    /// Adds a job, to be claimed after a delay. Returns true when it is new: an existing one is left unchanged, so this
    /// may be repeated. Its key needs the prefix of the index.
    pub async fn add(&self, key: &[u8], fields: &Fields, delay: Duration) -> Result<bool, Error> {
        let (names, states) = (&self.config.fields, &self.config.states);
        let job = Exchange { set: fields.clone(), ..Exchange::new() }
            .expect_absent(&names.state)
            .set(&names.state, &states.pending)
            .stamp(&names.run_at, offset_ms(delay));
        Ok(self.store.exchange(key, &job).await?.applied)
    }

    /// Claims the next due job, most urgent index first, then by time. Waits this long if there is none.
    pub async fn next(&self, worker: &str, wait: Duration) -> Result<Option<Job>, Error> {
        Ok(self.claim(self.request(worker).block(wait)).await?.pop())
    }

    /// The claim of a worker: one due job, without waiting. Conditions, a count, a wait or a choice of fields may be
    /// added before it is passed to [`Queue::claim`].
    pub fn request(&self, worker: &str) -> Claim {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let claim = Claim::new(&self.config.indexes)
            .max("NOW")
            .set(&fields.state, &states.running)
            .set(&fields.worker, worker)
            .stamp(&fields.run_at, offset_ms(self.config.lease))
            .counter(&fields.attempt);
        match self.config.attempts_max {
            Some(max) => claim.up_to(max, Fields::new().with(&fields.state, &states.dead)),
            None => claim,
        }
    }

    /// Claims jobs.
    pub async fn claim(&self, mut request: Claim) -> Result<Vec<Job>, Error> {
        let attempt = &self.config.fields.attempt;
        if let Some(fields) = &mut request.fields {
            fields.push(attempt.clone().into());
        }
        let hold = |(key, score, fields): Indexed| {
            // A job without the counter has expired during the claim.
            let token = fields.number(attempt)?;
            Some(Job { key, score, fields, token, store: self.store.clone(), config: Arc::clone(&self.config) })
        };
        Ok(self.store.claim(&request).await?.into_iter().filter_map(hold).collect())
    }
}
