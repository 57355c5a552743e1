//! A store over the Redis protocol: records, which are hashes with conditional writes, lifetimes and filtered scans;
//! cells, which are values with versions; runs, which are logs of events; and transactions over any commands. Knows the
//! wire and nothing of how a server is made; decides nothing about what a record means.
//!
//! [`StateStore`] is the interface: object-safe, so that a program takes an `Arc<dyn StateStore>` and its tests another
//! one. [`Store`] is the implementation over a connection that reconnects automatically. It asks the server which of
//! Holdfast's commands it has, uses those, and does the rest with scripts and SCAN: results are the same on Holdfast
//! and on a plain Redis, only slower there. Operations on indexes need Holdfast, and are
//! [`Error::NeedsHoldfast`] elsewhere: [`Store::create_index`], [`Store::claim`], [`Store::range`] and [`Store::sweep`];
//! so do cells, runs, exactly-once state, sessions and transactions.
//!
//! [`Queue`] turns claims into work: it returns [`Job`]s, which a worker renews, completes, retries or fails. Its jobs may be
//! of groups, such as tenants, which take turns and have [`Limits`].
//! [`Cell`] is one value with a version, a history and a watch; a [`Branch`] is cells that are copied and removed as a
//! whole. [`Store::transaction`] runs commands that read their own writes and take effect together or not at all.
//! [`Run`] is a log of events, each appended once however often it is sent. [`ExactlyOnceState`] is keyed state that
//! applies each update once, with checkpoints; [`StateBackend`] is its interface, [`MemoryState`] the same in the
//! process, and `StatefulNode` a node of a pipeline over it. A request of a [`Session`] runs once, even if connections
//! are lost or the server is killed; other clients can push requests to it.
//!
//! Records, cells, runs and exactly-once state are the same over a store, a transaction and a session. Their values are
//! of the caller's types: what the redis crate sends as one argument, or `Json` of any type of serde's (feature `json`,
//! on by default).
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
//! let cancel = Exchange::new().expected("state", "pending").set("state", "cancelled");
//! let cancelled = store.exchange(job, &cancel).await?.applied;
//!
//! let open = Query::prefix("gbe:state:tasks:").filter(Filter::not_in("state", ["completed", "failed"]));
//! let mut scan = store.scan(open);
//! while let Some((key, record)) = scan.next().await? {
//!     println!("{} is {:?}", key.escape_ascii(), record.fields.text("state"));
//! }
//! # let _ = cancelled;
//! # Ok(())
//! # }
//! ```
//!
//! In the repository, `docs/packages.md` names every operation in Rust, Python and TypeScript, `docs/jobs.md` is the
//! guide to queues of jobs, `docs/cells.md` that to cells and transactions, and `examples/` has a pool of workers that
//! die.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod addresses;
mod answer;
mod asker;
mod branch;
mod cell;
mod claim;
mod claims;
mod encode;
mod error;
mod event;
mod exactly_once;
mod exchange;
mod filter;
mod follow;
mod groups;
mod index;
mod index_definition;
mod index_difference;
mod job;
#[cfg(feature = "json")]
mod json;
mod limits;
mod links;
mod lost;
mod memory_snapshot;
mod memory_state;
mod named;
mod own_connections;
mod pause;
mod prepared_request;
mod query;
mod queue;
mod queue_config;
mod record;
mod records;
mod register;
mod request_numbers;
mod run;
mod send;
mod session;
mod session_requests;
mod sessions;
mod snapshot;
mod state_backend;
mod state_store;
mod state_version;
#[cfg(feature = "json")]
mod stateful_node;
mod store;
mod sweep;
mod target;
mod transaction;
mod watch;

pub use addresses::NoWriter;
pub use answer::Answer;
pub use branch::Branch;
pub use cell::{Cell, Swap, Version};
pub use claim::{Claim, Order};
pub use encode::Encode;
pub use error::Error;
pub use event::{Append, Event, NewEvent, Receipt};
pub use exactly_once::ExactlyOnceState;
pub use exchange::{Exchange, Outcome};
pub use filter::Filter;
pub use follow::Follow;
pub use groups::{GroupLimits, GroupState, Groups};
pub use index_definition::IndexDefinition;
pub use index_difference::{IndexDiffers, OnDifference, OutsideIndex};
pub use job::Job;
#[cfg(feature = "json")]
pub use json::Json;
pub use limits::{Bound, Limits, Rate, Scope};
pub use lost::{Lost, LostSession};
pub use memory_state::MemoryState;
pub use prepared_request::PreparedRequest;
pub use query::{Found, Page, Query};
pub use queue::Queue;
pub use queue_config::{JobFields, JobStates, QueueConfig};
pub use record::{Fields, Record};
pub use redis;
pub use run::{Lag, Run};
pub use session::Session;
pub use session_requests::{PendingRequest, PushedRequest, RetriedRequest, SessionInfo};
pub use sessions::{Hook, SessionConfig, Sessions};
pub use snapshot::{RunInfo, Snapshot, Step};
pub use state_backend::StateBackend;
pub use state_store::{Scan, StateStore};
pub use state_version::{Applied, OrderedVersion, Restored, StateVersion};
#[cfg(feature = "json")]
pub use stateful_node::{NodeEntry, NodeState, Output, StatefulNode};
pub use store::{Config, Indexed, Store};
pub use sweep::{Fate, Sweep};
pub use transaction::{ReadTransaction, Transaction};
pub use watch::Watch;
