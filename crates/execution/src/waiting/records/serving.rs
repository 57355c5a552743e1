//! Serves clients that wait for records: searches on their behalf, and runs their commands.

use super::{Outcome, Work};

use crate::acl::Context;
use crate::call::Call;
use crate::command::Handler;
use crate::conditions;
use crate::context::After;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::gates;
use crate::handler;
use crate::slices::SLICE_NS;
use crate::waiting;
use crate::waiting::waiter::WaitPhase;
use crate::worker::Worker;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};
use std::task::Waker;

/// Serves clients that wait for records, as long as there may be a record for one, or for a slice of time. The caller
/// holds no locks. False when it is to be retried later: another thread is serving, or a long script holds the locks.
/// The first search of a class, which may be long, is left to a caller that `searches`.
pub fn serve_record_waiters(engine: &Engine, worker: &mut Worker, searches: bool) -> bool {
    let waiters = &engine.waiting.records;
    let began_ns = engine.clock.monotonic_ns();
    let mut is_served = false;
    while (waiters.has_work() || searches && waiters.has_to_search.load(SeqCst)) && conditions::may_expire(engine) {
        if waiters.is_serving.swap(true, SeqCst) {
            // That thread sees the records that became ready since.
            is_served = false;
            break;
        }
        let mut is_over = false;
        while !is_over && let Some(mut work) = waiters.next_work(worker.now_ms, searches) {
            is_served = serve_record_waiter(engine, worker, &mut work);
            is_over = !is_served || engine.clock.monotonic_ns().saturating_sub(began_ns) > SLICE_NS;
        }
        waiters.is_searching.store(false, SeqCst);
        waiters.is_serving.store(false, SeqCst);
        if is_over {
            waiters.wake_timer();
            break;
        }
    }
    // This time does not count for the command that has changed the records.
    worker.last_ns += engine.clock.monotonic_ns().saturating_sub(began_ns);
    is_served
}

/// Runs a client's command on its behalf, now that there may be a record for it. False when a long script holds the
/// locks, and it is to be retried later.
fn serve_record_waiter(engine: &Engine, worker: &mut Worker, work: &mut Work) -> bool {
    let (waiters, blocked) = (&engine.waiting.records, &work.waiter.blocked);
    if !work.is_claimed && !blocked.claim() {
        // It no longer waits, and its connection is about to leave the lines.
        waiters.note_served(work, Outcome::Ended, worker.now_ms);
        return true;
    }
    let began_ns = engine.clock.monotonic_ns();
    let mut client = blocked.stand_in(&engine.acl, &engine.tracking, WaitPhase::RecordsServing(work.offer.clone()));
    let Handler::Script(handler) = blocked.command.command.handler else {
        panic!("only commands that take their locks themselves wait for records");
    };
    let mut out = Vec::new();
    let request = blocked.request.as_request();
    client.unfinished = work.unfinished.take();
    let allowed = gates::pass_user(engine, &client, blocked.command, request);
    let (result, after) = match allowed {
        // The right was taken away while the client waited.
        Err(error) => {
            gates::note_if_denied(engine, &client, &error, Context::TopLevel);
            (client.unfinished, client.wait_phase) = (None, WaitPhase::Idle);
            (Err(error), After::Continue)
        }
        Ok(()) => {
            let mut call = Call::new(worker, &mut client, blocked.command, request);
            let result = handler::run_scripting(engine, &mut call, blocked.reply_to(&mut out), handler, None);
            (result, call.after)
        }
    };
    if let (After::Again, Some(unfinished)) = (after, client.unfinished.take()) {
        let has_taken = work.offer.has_taken.load(Relaxed);
        waiters.note_served(work, Outcome::Unfinished { unfinished, has_taken }, worker.now_ms);
        if !has_taken {
            blocked.give_back();
        }
        return true;
    }
    if let WaitPhase::RecordsRequested(wait) = &client.wait_phase {
        waiters.note_served(work, Outcome::Nothing(&wait.searched), worker.now_ms);
        blocked.give_back();
        return true;
    }
    if matches!(result, Err(CommandError::AwaitsScript | CommandError::Busy | CommandError::BusyFunction)) {
        waiters.note_served(work, Outcome::Later, worker.now_ms);
        blocked.give_back();
        return false;
    }
    waiters.note_served(work, Outcome::Ended, worker.now_ms);
    let took_ns = engine.clock.monotonic_ns().saturating_sub(began_ns);
    waiting::outcome::deliver(engine, blocked, worker, &client, result, out, took_ns);
    true
}

/// When `serve_due_records` is to be called next, in unix milliseconds; `None` when no client waits for a time. `waker`
/// is woken when that changes.
pub fn next_due_record(engine: &Engine, waker: &Waker) -> Option<u64> {
    let waiters = &engine.waiting.records;
    let mut timer = waiters.timer.lock();
    if !timer.as_ref().is_some_and(|known| known.will_wake(waker)) {
        *timer = Some(waker.clone());
    }
    drop(timer);
    match waiters.has_work() || waiters.has_to_search.load(SeqCst) {
        // While writes are refused, the periodic work retries.
        true => conditions::may_expire(engine).then_some(0),
        false => Some(waiters.due_ms.load(SeqCst)).filter(|due_ms| waiters.any() && *due_ms != u64::MAX),
    }
}

/// Serves clients that wait for records that are due now, and runs the first searches of new classes for a slice of
/// time. False when there was nothing to do, or it is to be retried later.
pub fn serve_due_records(engine: &Engine, worker: &mut Worker) -> bool {
    let waiters = &engine.waiting.records;
    let is_due = || waiters.due_ms.load(Relaxed) <= worker.now_ms;
    let was_set_back = || worker.now_ms < waiters.looked_ms.load(Relaxed);
    if waiters.any() && (is_due() || was_set_back()) {
        waiters.has_work.store(true, SeqCst);
    }
    (waiters.has_work() || waiters.has_to_search.load(SeqCst)) && serve_record_waiters(engine, worker, true)
}
