//! A queue of jobs: adding jobs, and the claims of workers. Claims need Holdfast.

use std::sync::Arc;
use std::time::Duration;

use crate::claim::Claim;
use crate::error::Error;
use crate::exchange::Exchange;
use crate::groups::Groups;
use crate::index::IndexDefinition;
use crate::job::{Job, offset_ms};
use crate::limits::{Limits, Scope};
use crate::queue_config::QueueConfig;
use crate::record::Fields;
use crate::store::{Indexed, Store};

/// The name of a group has at most so many bytes: a job with a longer one would be in no index, and never claimed.
const GROUP_BYTES_MAX: usize = 1024;

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
///
/// Jobs of a queue with [`group_by`](QueueConfig::group_by) are of groups, such as tenants. Groups take turns, and have
/// limits, which hold where a job is claimed:
///
/// ```no_run
/// use std::time::Duration;
/// use holdfast_client::{Error, Fields, Limits, Queue, QueueConfig, Rate, Scope, Store};
///
/// # async fn example() -> Result<(), Error> {
/// let store = Store::connect("redis://127.0.0.1:6379").await?;
/// let config = QueueConfig { group_by: Some("tenant".into()), ..QueueConfig::new(["mails"]) };
/// let queue = Queue::new(&store, config);
/// queue.create_index("mails", "mail:").await?;
/// queue.limit(&Scope::Each, &Limits::new().held(2)).await?;
/// queue.limit(&Scope::group("acme"), &Limits::new().rate(Rate::new(5, Duration::from_secs(1))).weight(3.0)).await?;
/// queue.add_to("acme", b"mail:1", &Fields::new().with("to", "ada@example.com"), Duration::ZERO).await?;
/// for group in queue.groups()?.collect().await? {
///     println!("{}: {} open, {} run", group.name.escape_ascii(), group.records, group.held);
/// }
/// # Ok(())
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
    /// unchanged. A queue with groups needs one that keeps them: another one is [`Error::Groups`].
    pub async fn create_index(&self, index: &str, prefix: &str) -> Result<(), Error> {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let open = [&*states.pending, &*states.running];
        let definition = IndexDefinition::new([prefix], &fields.run_at).only(&fields.state, open);
        let Some(group_by) = &self.config.group_by else {
            return self.store.create_index(index, &definition).await.map(drop);
        };
        let definition = definition.group(group_by).held(&fields.state, [&states.running]);
        if self.store.create_index(index, &definition).await? {
            return Ok(());
        }
        let there = self.store.index_groups(index).await?;
        let (state, running) = (fields.state.as_bytes(), states.running.as_bytes());
        let holds = there
            .held
            .as_deref()
            .and_then(<[_]>::split_first)
            .is_some_and(|(field, values)| field == state && values.iter().any(|value| value == running));
        if there.group.as_deref() == Some(group_by.as_bytes()) && holds {
            return Ok(());
        }
        Err(Error::Groups(format!(
            "there is an index {index} already, and it was created without GROUP {group_by} HELD {} 1 {}: drop it, or \
             choose another name",
            fields.state, states.running
        )))
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

    /// Adds a job to a group of a queue with [`group_by`](QueueConfig::group_by), otherwise like [`add`](Queue::add). A job
    /// that is added without a group is in the one that its field names, or in that of the empty name.
    pub async fn add_to(
        &self,
        group: impl AsRef<[u8]>,
        key: &[u8],
        fields: &Fields,
        delay: Duration,
    ) -> Result<bool, Error> {
        let (group, group_by) = (group.as_ref(), self.config.group_by.as_ref());
        let Some(group_by) = group_by else {
            return Err(Error::Groups("the queue has no groups: its configuration has no group_by".into()));
        };
        if group.len() > GROUP_BYTES_MAX {
            return Err(Error::Groups(format!(
                "the name of a group has at most {GROUP_BYTES_MAX} bytes, and this one has {}",
                group.len()
            )));
        }
        self.add(key, &fields.clone().with(group_by, group), delay).await
    }

    /// Limits what workers may take from the jobs of one group, of each group, or of all: how many run at a time, how
    /// fast they are taken, the share of the turns, a pause. What is not given stays as it is. Limits are those of one
    /// index: a queue with several has [`Store::limit`].
    pub async fn limit(&self, scope: &Scope, limits: &Limits) -> Result<(), Error> {
        self.store.limit(self.only_index()?, scope, limits).await
    }

    /// Takes back all limits of a scope; without one, of all scopes.
    pub async fn reset_limits(&self, scope: Option<&Scope>) -> Result<(), Error> {
        self.store.reset_limits(self.only_index()?, scope).await
    }

    /// The limits that were set.
    pub async fn limits(&self) -> Result<Vec<(Scope, Limits)>, Error> {
        self.store.limits(self.only_index()?).await
    }

    /// The groups of the queue, one by one: how many jobs are open and how many run, and which limits apply.
    pub fn groups(&self) -> Result<Groups<'_>, Error> {
        Ok(self.store.groups(self.only_index()?))
    }

    /// The index of a queue that has one.
    fn only_index(&self) -> Result<&str, Error> {
        match &*self.config.indexes {
            [index] => Ok(index),
            indexes => Err(Error::Groups(format!(
                "the queue has {} indexes, and each has limits of its own: name one to the store's method",
                indexes.len()
            ))),
        }
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
