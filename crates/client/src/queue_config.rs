//! Where the jobs of a queue are, and what their fields and states are called. Knows no store.

use std::time::Duration;

/// Where the jobs of a queue are, and how they are processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// The indexes, most urgent first: each over the field `run_at` of pending and running jobs.
    pub indexes: Vec<String>,
    /// How long a worker holds a job unless it renews the lease.
    pub lease: Duration,
    /// How often a job is claimed before it becomes a dead letter; `None` is without limit.
    pub attempts_max: Option<u64>,
    /// How long a completed job is retained; `None` is forever.
    pub completed_ttl: Option<Duration>,
    /// The field by whose value jobs are kept apart, such as `tenant`: each of its values is a group, which takes its turns
    /// and has limits. With `None` the queue has no groups. Workers need not know it.
    pub group_by: Option<String>,
    /// What the fields of a job are called.
    pub fields: JobFields,
    /// What the states of a job are called.
    pub states: JobStates,
}

/// The names of a job's fields. A job may have any others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFields {
    /// Its state.
    pub state: String,
    /// When it may be claimed, in unix milliseconds: its start, then the end of each lease.
    pub run_at: String,
    /// The number of claims: the fencing token. It must never decrease.
    pub attempt: String,
    /// The worker that claimed it last.
    pub worker: String,
}

/// The states of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobStates {
    /// It waits for its time or for a worker.
    pub pending: String,
    /// A worker holds it, or held it and died.
    pub running: String,
    /// It is completed.
    pub completed: String,
    /// It is abandoned: a dead letter.
    pub dead: String,
}

impl Default for JobFields {
    /// `state`, `run_at`, `attempt`, `worker`.
    fn default() -> JobFields {
        let [state, run_at, attempt, worker] = ["state", "run_at", "attempt", "worker"].map(String::from);
        JobFields { state, run_at, attempt, worker }
    }
}

impl Default for JobStates {
    /// `pending`, `running`, `completed`, `dead`.
    fn default() -> JobStates {
        let [pending, running, completed, dead] = ["pending", "running", "completed", "dead"].map(String::from);
        JobStates { pending, running, completed, dead }
    }
}

impl QueueConfig {
    /// Jobs of these indexes, with a lease of half a minute, no limit of attempts, and the default names.
    pub fn new<I: Into<String>>(indexes: impl IntoIterator<Item = I>) -> QueueConfig {
        QueueConfig {
            indexes: indexes.into_iter().map(Into::into).collect(),
            lease: Duration::from_secs(30),
            attempts_max: None,
            completed_ttl: None,
            group_by: None,
            fields: JobFields::default(),
            states: JobStates::default(),
        }
    }
}
