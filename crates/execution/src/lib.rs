//! From a request to its reply: finds the row, passes the gates, takes the locks, runs the handler, commits its
//! effects. MULTI, interactive transactions, waiting, indexes, replay and the walk for snapshots are here too. Refuses
//! to know what any command does.

#![deny(unsafe_code)]

pub mod ahead;
pub mod apply;
pub mod args;
pub mod background_tasks;
pub mod batch_limit;
pub mod caching;
pub mod call;
pub mod client;
pub mod client_eviction;
pub mod clients;
pub mod command;
pub mod commit;
pub mod conditions;
pub mod context;
pub mod database_tokens;
pub mod departure;
pub mod dispatch;
pub mod docs;
pub mod engine;
pub mod error;
pub mod eviction;
pub mod execute;
pub mod expiry;
pub mod flow;
pub mod following;
pub mod forks;
pub mod gates;
pub mod handler;
pub mod host;
pub mod indexes;
pub mod interactive;
pub mod invalidations;
pub mod metrics;
pub mod notifications;
pub mod observability;
mod observers;
pub mod own_changes;
pub mod panics;
pub mod parts;
pub mod pending_batch;
pub mod persistence;
pub mod queued;
pub mod recorder;
pub mod register_restores;
pub mod replay;
pub mod restore;
pub mod restrictions;
pub mod revealed;
pub mod run;
pub mod scripts;
pub mod sessions;
pub mod settings;
pub mod slices;
mod sync;
pub mod ticket;
pub mod transaction;
pub mod upkeep;
pub mod view;
pub mod waiting;
pub mod walk;
pub mod walks;
pub mod watches;
pub mod worker;
