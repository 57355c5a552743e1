//! Interactive transactions: TXN.BEGIN, TXN.COMMIT and TXN.ROLLBACK. Holdfast only.

mod basics;
mod conflicts;
mod failed;
mod limits;
mod model;
mod races;
mod reading;
mod rules;
mod scripts;
mod survival;
mod types;
mod visibility;

use wire::{Product, Session, skip};

/// An empty server; `None`, and the test is skipped, where it is not a holdfast.
#[track_caller]
fn start() -> Option<Session> {
    let session = Session::start();
    if session.product() != Product::Holdfast {
        skip("only Holdfast has interactive transactions");
        return None;
    }
    Some(session)
}

/// Runs a transcript against such a server. In it `-CONFLICT` stands for the whole error.
#[track_caller]
fn check(transcript: &str) {
    if let Some(session) = start() {
        session.check(&transcript.replace("-CONFLICT\n", &format!("-{CONFLICT}\n")));
    }
}

const CONFLICT: &str = "CONFLICT a key that this transaction has read or written was changed by another client or has expired; nothing of \
     it was applied: begin again";
