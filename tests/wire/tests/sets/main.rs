//! Set commands.

mod agreement;
mod combine;
mod combine_store;
mod commands;
mod dump;
mod encoding;
mod keyspace;
mod large;
mod members;
mod model;
mod notifications;
mod numbers;
mod pop;
mod races;
mod randmember;
mod scan;
mod smove;
mod sorted_sets;
mod survival;
mod transactions;
