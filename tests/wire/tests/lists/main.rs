//! List commands.

mod agreement;
mod blocking;
mod blocking_clients;
mod blocking_wakes;
mod commands;
mod dump;
mod elements;
mod encoding;
mod keyspace;
mod large;
mod model;
mod moves;
mod notifications;
mod pop;
mod push;
mod range;
