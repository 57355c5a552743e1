//! Sorted set commands.

mod add;
mod agreement;
mod blocking_wakes;
mod combine;
mod combine_store;
mod commands;
mod dump;
mod encoding;
mod members;
mod notifications;
mod numbers;
mod pop;
mod range;
mod range_by;
mod range_store;
mod rank;
mod remove_range;
mod scan;
mod transactions;

use wire::{Product, Session, skip};

/// Runs a transcript of what changed after Redis 7.0, and where this server does as 7.0 did: how scores are printed, how
/// bounds are read. Skipped on a newer Redis.
#[track_caller]
fn check_as_redis_7_0(transcript: &str) {
    let session = Session::start();
    if session.product() != Product::Holdfast && session.has_redis("7.2") {
        skip(&format!("{} is newer than 7.0", session.product()));
        return;
    }
    session.check(transcript);
}
