//! From a request to its end: finds the row, passes the gates, takes the locks, gives the handler its context, commits
//! what it has recorded. MULTI, interactive transactions, waiting, indexes, replay and the walk for snapshots are here
//! too. Refuses to know what any command does.

pub(crate) mod background_tasks;
pub(crate) mod batch_limit;
mod books;
mod caching;
pub mod client;
mod client_eviction;
pub mod command;
pub(crate) mod commit;
pub mod context;
mod dispatch;
pub mod docs;
pub mod engine;
pub mod eviction;
pub mod execute;
mod expiry;
pub(crate) mod forks;
pub(crate) mod gates;
pub mod indexes;
pub mod interactive;
pub(crate) mod notifications;
pub mod recorder;
pub(crate) mod register_restores;
pub mod replay;
pub mod restore;
pub mod scripts;
pub mod sessions;
pub mod transaction;
pub mod view;
pub mod waiting;
pub mod walk;
pub mod worker;
