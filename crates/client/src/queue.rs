//! A queue of jobs: adding jobs, and the claims of workers. Claims need Holdfast.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::Cmd;

use crate::claim::Claim;
use crate::error::{Error, is_dropped_index};
use crate::exchange::Exchange;
use crate::groups::Groups;
use crate::index_definition::IndexDefinition;
use crate::index_difference::{OnDifference, OutsideIndex};
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
///     let job = match queue.next("w-1", Duration::from_secs(5)).await {
///         Ok(Some(job)) => job,
///         Ok(None) => continue,
///         Err(error) if error.is_temporary() => continue, // the server restarts
///         Err(error) => return Err(error),
///     };
///     let ended = match resize(&job).await {
///         Ok(result) => job.complete(&Fields::new().with("result", result)).await,
///         Err(error) => job.retry(Duration::from_secs(10), &Fields::new().with("error", error)).await.map(drop),
///     };
///     match ended {
///         Err(Error::Lost(lost)) => eprintln!("{lost}"), // cancelled, or another worker has it
///         Err(error) if error.is_temporary() => eprintln!("{error}"), // it comes again when its lease ends
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
    /// The prefixes of its indexes, as far as they were asked for.
    prefixes: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Queue {
    /// A queue in a store.
    pub fn new(store: &Store, config: QueueConfig) -> Queue {
        Queue { store: store.clone(), config: Arc::new(config), prefixes: Arc::default() }
    }

    /// How the queue is configured.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// Creates an index over the open jobs whose keys have this prefix. Returns false if one of that name exists with
    /// this definition. One with another definition is [`Error::IndexDiffers`].
    pub async fn create_index(&self, index: &str, prefix: &str) -> Result<bool, Error> {
        self.create_index_with(index, prefix, OnDifference::Raise).await
    }

    /// Like [`create_index`](Queue::create_index), and says what becomes of an index with another definition. Workers
    /// go on while it is replaced.
    pub async fn create_index_with(
        &self,
        index: &str,
        prefix: &str,
        on_difference: OnDifference,
    ) -> Result<bool, Error> {
        let (fields, states) = (&self.config.fields, &self.config.states);
        let open = [&*states.pending, &*states.running];
        let definition = IndexDefinition::new([prefix], &fields.run_at).only(&fields.state, open);
        let definition = match &self.config.group_by {
            Some(group_by) => definition.group(group_by).held(&fields.state, [&states.running]),
            None => definition,
        };
        self.set_prefixes(Vec::new());
        self.store.create_index_with(index, &definition, on_difference).await
    }

    /// Adds a job, to be claimed after a delay. Returns true when it is new: an existing one is left unchanged, so this
    /// may be repeated. A key without the prefix of one of the queue's indexes is [`Error::OutsideIndex`].
    pub async fn add(&self, key: &[u8], fields: &Fields, delay: Duration) -> Result<bool, Error> {
        let (names, states) = (&self.config.fields, &self.config.states);
        let job = Exchange { set: fields.clone(), ..Exchange::new() }
            .absent(&names.state)
            .set(&names.state, &states.pending)
            .stamp(&names.run_at, offset_ms(delay));
        self.check_prefix(key).await?;
        Ok(self.store.exchange(key, &job).await?.applied)
    }

    /// Checks that the key is in an index of the queue. If not all of them exist, it may be in one that is created later.
    async fn check_prefix(&self, key: &[u8]) -> Result<(), Error> {
        let is_covered = |prefixes: &[Vec<u8>]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        if is_covered(&self.prefixes.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let mut prefixes = Vec::new();
        for index in &self.config.indexes {
            match self.store.index_definition(index.as_bytes()).await {
                Ok(Some(definition)) => prefixes.extend(definition.prefixes),
                // A plain Redis, or a user who may not ask.
                Ok(None) | Err(Error::NeedsHoldfast(_) | Error::Refused(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.set_prefixes(prefixes.clone());
        if is_covered(&prefixes) {
            return Ok(());
        }
        Err(Error::OutsideIndex(Box::new(OutsideIndex { key: key.to_vec(), prefixes })))
    }

    fn set_prefixes(&self, prefixes: Vec<Vec<u8>>) {
        *self.prefixes.lock().unwrap_or_else(PoisonError::into_inner) = prefixes;
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

    /// Claims the next due job, most urgent index first, then by time. Waits this long if there is none. If the future is
    /// dropped, what had come is given back as if it had not been claimed.
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

    /// Claims jobs. If the future is dropped, what had come is given back as if it had not been claimed.
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
        Ok(self.claim_records(request).await?.into_iter().filter_map(hold).collect())
    }

    async fn claim_records(&self, mut request: Claim) -> Result<Vec<Indexed>, Error> {
        let (began, block) = (Instant::now(), request.block);
        loop {
            let config = Arc::clone(&self.config);
            let give_back =
                move |claimed: Vec<Indexed>| claimed.iter().filter_map(|job| given_back(&config, job)).collect();
            match self.store.claim_or_give_back(&request, give_back).await {
                // One that was replaced exists. If it does not, the next claim says so.
                Err(error) if is_dropped_index(&error) => {}
                claimed => return claimed,
            }
            request.block = block.saturating_sub(began.elapsed()).max(Duration::from_millis(1));
        }
    }
}

/// The command that leaves a claimed job as it was. The attempt does not count: no handler has seen it. So the command is
/// sent once. A second one could meet the same attempt of the next worker.
fn given_back(config: &QueueConfig, (key, score, fields): &Indexed) -> Option<Cmd> {
    let (names, states) = (&config.fields, &config.states);
    let token = fields.number(&names.attempt)?;
    let exchange = Exchange::new()
        .expected(&names.attempt, token)
        .expected(&names.state, &states.running)
        .set(&names.state, &states.pending)
        .set(&names.run_at, score.to_string())
        .remove(&names.worker);
    let exchange = match token {
        ..=1 => exchange.remove(&names.attempt),
        _ => exchange.set(&names.attempt, token - 1),
    };
    exchange.hcas(key).ok()
}
