//! Stream commands.

mod agreement;
mod append;
mod blocking;
mod commands;
mod dump;
mod groups;
mod info;
mod keyspace;
mod model;
mod notifications;
mod pending;
mod ranges;
mod read;
mod trim;
