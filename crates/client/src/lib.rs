//! A store over the Redis protocol: records, which are hashes with conditional writes, lifetimes and filtered scans;
//! cells, which are values with versions; runs, which are logs of events; and transactions over any commands. Knows the
//! wire and nothing of how a server is made; decides nothing about what a record means.
//!
//! [`StateStore`] is the interface: object-safe, so that a program takes an `Arc<dyn StateStore>` and its tests another
//! one. [`Store`] is the implementation over a connection that reconnects automatically. It asks the server which of
//! Holdfast's commands it has, uses those, and does the rest with scripts and SCAN: results are the same on Holdfast
//! and on a plain Redis, only slower there. Operations on indexes need Holdfast, and are
//! [`Error::NeedsHoldfast`] elsewhere: [`Store::claim`], [`Store::range`] and [`Store::sweep`]; so do cells, runs,
//! exactly-once state, sessions and transactions.
//!
//! [`Queue`] turns claims into work: it returns [`Job`]s, which a worker renews, completes, retries or fails.
//! [`Cell`] is one value with a version, a history and a watch. [`Store::transaction`] runs commands that read their
//! own writes and take effect together or not at all. [`Run`] is a log of events, each appended once however often it
//! is sent. [`ExactlyOnceState`] is keyed state that applies each update once, with checkpoints. A request of a
//! [`Session`] runs once, even if connections are lost or the server is killed; other clients can push requests to it.
//!
//! ```no_run
//! use holdfast_client::{Exchange, Fields, Filter, Query, StateStore, Store};
//!
//! # async fn example() -> Result<(), holdfast_client::Error> {
//! let store = Store::connect("redis://127.0.0.1:6379").await?;
//! let job = b"gbe:state:tasks:email-send:job_1";
//! store.put(job, &Fields::new().with("state", "pending").with("attempt", 0), None).await?;
//!
//! // Of all clients that try, exactly one succeeds.
//! let cancel = Exchange::new().expect("state", "pending").set("state", "cancelled");
//! let cancelled = store.exchange(job, &cancel).await?.applied;
//!
//! let open = Query::prefix("gbe:state:tasks:").filter(Filter::not_in("state", ["completed", "failed"]));
//! let mut scan = store.scan(open);
//! while let Some((key, fields)) = scan.next().await? {
//!     println!("{} is {:?}", key.escape_ascii(), fields.text("state"));
//! }
//! # let _ = cancelled;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/jobs.md` is the guide to queues of jobs, `docs/cells.md` that to cells and transactions; `examples/` has a
//! pool of workers that die.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cell;
mod claim;
mod error;
mod exactly_once;
mod exchange;
mod filter;
mod job;
mod lost;
mod own_connections;
mod query;
mod queue;
mod queue_config;
mod record;
mod request_numbers;
mod run;
mod send;
mod session;
mod session_requests;
mod sessions;
mod state_store;
mod store;
mod sweep;
mod transaction;

pub use cell::{Cell, Swap, Version};
pub use claim::Claim;
pub use error::Error;
pub use exactly_once::{Applied, ExactlyOnceState, StateVersion};
pub use exchange::{Exchange, Outcome};
pub use filter::Filter;
pub use job::Job;
pub use lost::{Lost, LostSession};
pub use query::{Found, Page, Query};
pub use queue::Queue;
pub use queue_config::{JobFields, JobStates, QueueConfig};
pub use record::{Fields, Record};
pub use redis;
pub use run::{Append, Event, NewEvent, Receipt, Run, RunInfo, Snapshot, Step};
pub use session::Session;
pub use session_requests::{PendingRequest, PushedRequest, RetriedRequest, SessionInfo};
pub use sessions::{Hook, SessionConfig, Sessions};
pub use state_store::{Answer, Scan, StateStore};
pub use store::{Config, Indexed, Store};
pub use sweep::{Fate, Sweep};
pub use transaction::Transaction;

/// The Rust of the guides compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/cells.md")]
#[doc = include_str!("../../../docs/jobs.md")]
#[doc = include_str!("../../../docs/runs.md")]
#[doc = include_str!("../../../docs/sweeping.md")]
struct Guide;
