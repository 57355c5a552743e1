//! Stream commands.

mod agreement;
mod append;
mod blocking;
mod claims;
mod commands;
mod dump;
mod groups;
mod idempotency;
mod info;
mod keyspace;
mod model;
mod notifications;
mod pending;
mod ranges;
mod read;
mod references;
mod trim;
