//! Set commands.

mod agreement;
mod combine;
mod combine_store;
mod command_table;
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

use wire::{Product, Session};

/// Runs a transcript of what changed after Redis 7.0, and where this server does as 7.0 did: how small sets are encoded and
/// dumped. A newer Redis is left out.
#[track_caller]
fn check_as_redis_7_0(transcript: &str) {
    let session = Session::start();
    if session.product() != Product::Holdfast && session.has_redis("7.2") {
        return wire::skip(&format!("{} encodes sets otherwise", session.product()));
    }
    session.check(transcript);
}
