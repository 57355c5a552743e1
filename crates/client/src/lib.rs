//! Records in a store: hashes with conditional writes, lifetimes and filtered scans, over the Redis protocol.
//! Knows the wire and nothing of how a server is made; decides nothing about what a record means.
//!
//! [`StateStore`] is the interface: object-safe, so that a program takes an `Arc<dyn StateStore>` and its tests
//! another one. [`Store`] is the implementation over a connection that reconnects by itself. It asks the server which
//! of Holdfast's commands it knows, uses those, and does the rest with scripts and SCAN: results are the same on
//! Holdfast and on a plain Redis, only slower there. Two things need Holdfast itself, because they live on an index that
//! the server keeps: [`Store::range`] and [`Store::sweep`].
//!
//! ```no_run
//! use holdfast_client::{Exchange, Fields, Filter, Query, StateStore, Store};
//!
//! # async fn example() -> Result<(), holdfast_client::Error> {
//! let store = Store::connect("redis://127.0.0.1:6379").await?;
//! let job = b"gbe:state:tasks:email-send:job_1";
//! store.put(job, &Fields::new().with("state", "pending").with("attempt", 0), None).await?;
//!
//! // Of all workers that try, one is told `true`.
//! let claim = Exchange::new().expect("state", "pending").set("state", "claimed").set("worker", "w-17");
//! let claimed = store.exchange(job, &claim).await?.applied;
//!
//! let open = Query::prefix("gbe:state:tasks:").filter(Filter::not_in("state", ["completed", "failed"]));
//! let mut scan = store.scan(open);
//! while let Some((key, fields)) = scan.next().await? {
//!     println!("{} is {:?}", key.escape_ascii(), fields.text("state"));
//! }
//! # let _ = claimed;
//! # Ok(())
//! # }
//! ```
//!
//! `docs/jobs.md` follows a job from its creation to the sweep; `examples/` has a pool of workers that die.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod claim;
mod error;
mod exchange;
mod filter;
mod query;
mod record;
mod state_store;
mod store;
mod sweep;
mod waits;

pub use claim::Claim;
pub use error::Error;
pub use exchange::{Exchange, Outcome};
pub use filter::Filter;
pub use query::{Found, Page, Query};
pub use record::{Fields, Record};
pub use redis;
pub use state_store::{Answer, Scan, StateStore};
pub use store::{Config, Indexed, Store};
pub use sweep::{Fate, Sweep};

/// The Rust of the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/jobs.md")]
struct Guide;
