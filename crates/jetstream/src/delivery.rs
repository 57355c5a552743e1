//! Sends one frame at a time, until it is known what became of it. Knows when to send again and how to find out; refuses
//! to know what a frame says.
//!
//! A frame is sent for one position. Without an answer, the same bytes are sent for the same position again: the stream
//! takes them at most once. When the position is taken, it is read: if our frame is there, it is stored; if another's is
//! there, or was, another process writes. A position that is empty decides nothing.

use crate::frame::{self, Damage, Link, LogId, Position};
use crate::lease::{Timing, has_passed};
use crate::mutation::{Mutation, is_broken};
use crate::stream::{Appended, Extent, Found, Stream, Tick, Unanswered};
use bytes::Bytes;
use journal::Epoch;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often it is said why nothing is stored.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Stored(Stored),
    /// Another process writes, of this epoch if it is known.
    Fenced(Option<Epoch>),
    /// The stream has lost what it had acknowledged.
    Damaged(Damage),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) link: Link,
    /// When it was first sent. A lease counts from here, and not from the answer or from a later attempt.
    pub(crate) first_sent_ns: u64,
}

/// Sends the frames of one writer.
pub(crate) struct Delivery {
    stream: Arc<dyn Stream>,
    log: LogId,
    timing: Timing,
    state: Mutex<State>,
    /// When it was last said why nothing is stored.
    told_ns: Mutex<Option<u64>>,
    /// Called with each outcome, without a lock of this.
    done: Box<dyn Fn(Outcome) + Send + Sync>,
    itself: Weak<Delivery>,
}

#[derive(Default)]
struct State {
    flight: Option<Flight>,
    /// The number of the last frame that was sent: answers to an earlier one are of no interest.
    number: u64,
}

struct Flight {
    number: u64,
    message: Bytes,
    link: Link,
    first_sent_ns: u64,
    sent_ns: u64,
    /// Since when the stream has ended before the last frame that is stored, or has nothing in the place of this one.
    lost_since_ns: Option<u64>,
}

impl Flight {
    /// The last frame that is stored.
    fn last(&self) -> Position {
        self.link.position - 1
    }
}

impl Delivery {
    pub(crate) fn new(
        stream: Arc<dyn Stream>,
        log: LogId,
        timing: Timing,
        done: impl Fn(Outcome) + Send + Sync + 'static,
    ) -> Arc<Delivery> {
        let delivery = Arc::new_cyclic(|itself| Delivery {
            stream,
            log,
            timing,
            state: Mutex::default(),
            told_ns: Mutex::default(),
            done: Box::new(done),
            itself: itself.clone(),
        });
        let ticking: Arc<dyn Tick> = delivery.clone();
        delivery.stream.tick(Arc::downgrade(&ticking));
        delivery
    }

    /// Sends a frame. IMPORTANT: only when the frame before is stored: with two on the way, the second could be stored
    /// behind another writer's, and nobody could read on.
    pub(crate) fn send(&self, message: Bytes, link: Link) {
        let now_ns = self.stream.now_ns();
        let mut state = self.state.lock();
        assert!(state.flight.is_none(), "one frame at a time");
        state.number += 1;
        let number = state.number;
        let flight = Flight { number, message, link, first_sent_ns: now_ns, sent_ns: now_ns, lost_since_ns: None };
        self.append(&flight);
        state.flight = Some(flight);
    }

    fn append(&self, flight: &Flight) {
        let (itself, number) = (self.itself.clone(), flight.number);
        let answer = move |appended| {
            if let Some(delivery) = itself.upgrade() {
                delivery.on_appended(number, appended);
            }
        };
        self.stream.append(flight.last(), flight.message.clone(), Box::new(answer));
    }

    fn on_appended(&self, number: u64, appended: Result<Appended, Unanswered>) {
        let state = self.state.lock();
        let Some(flight) = state.flight.as_ref().filter(|flight| flight.number == number) else { return };
        match appended {
            Ok(Appended::At(position)) if position == flight.link.position => self.end(state, None),
            Ok(Appended::At(position)) => {
                let damage = Damage::Gap { last: flight.last(), found: position };
                self.end(state, Some(Outcome::Damaged(damage)));
            }
            // Taken: by an earlier attempt of this frame, or by another process.
            Ok(Appended::Conflict) => {
                let (itself, position) = (self.itself.clone(), flight.link.position);
                drop(state);
                let answer = move |found| {
                    if let Some(delivery) = itself.upgrade() {
                        delivery.on_found(number, found);
                    }
                };
                self.stream.read(position, Box::new(answer));
            }
            // It is sent again in a while.
            Err(unanswered) => {
                drop(state);
                self.tell(&unanswered);
            }
        }
    }

    /// Says why nothing is stored, now and then.
    fn tell(&self, unanswered: &Unanswered) {
        let now_ns = self.stream.now_ns();
        let mut told_ns = self.told_ns.lock();
        if told_ns.is_none_or(|told_ns| has_passed(now_ns, told_ns, TELL_EVERY)) {
            *told_ns = Some(now_ns);
            tracing::warn!(reason = unanswered.reason, "the log has not stored a frame: it is sent again");
        }
    }

    fn on_found(&self, number: u64, found: Result<Found, Unanswered>) {
        let now_ns = self.stream.now_ns();
        let mut state = self.state.lock();
        let Some(flight) = state.flight.as_mut().filter(|flight| flight.number == number) else { return };
        let last = flight.last();
        match found {
            // IMPORTANT: the whole frame is compared. Another attempt of this process may have had the same epoch.
            Ok(Found::Message(message)) if message == flight.message => self.end(state, None),
            Ok(Found::Message(message)) => {
                let by = frame::writer_of(self.log, &message).map(|(epoch, _)| epoch);
                if is_broken(Mutation::ComparedByEpoch) && by == Some(flight.link.epoch) {
                    return self.end(state, None);
                }
                self.end(state, Some(Outcome::Fenced(by)));
            }
            Ok(Found::Purged) => self.end(state, Some(Outcome::Fenced(None))),
            Ok(Found::Empty { last: found }) if found < last => {
                let since_ns = *flight.lost_since_ns.get_or_insert(now_ns);
                if has_passed(now_ns, since_ns, self.timing.lost_after) {
                    self.end(state, Some(Outcome::Damaged(Damage::Lost { last: found, needed: last })));
                }
            }
            Ok(Found::Empty { .. }) => flight.lost_since_ns = None,
            Ok(Found::Missing) => {
                let since_ns = *flight.lost_since_ns.get_or_insert(now_ns);
                if has_passed(now_ns, since_ns, self.timing.lost_after) {
                    self.end(state, Some(Outcome::Damaged(Damage::Hole { position: last + 1 })));
                }
            }
            Err(_) => {}
        }
    }

    /// A stream that was deleted does not answer: without this, its writer would wait for ever and say nothing.
    fn ask_whether_it_is_gone(&self, number: u64) {
        let itself = self.itself.clone();
        let answer = move |extent: Result<Extent, Unanswered>| {
            let (Some(delivery), Err(unanswered)) = (itself.upgrade(), extent) else { return };
            let state = delivery.state.lock();
            if unanswered.is_gone && state.flight.as_ref().is_some_and(|flight| flight.number == number) {
                let damage = Damage::Gone { reason: unanswered.reason };
                delivery.end(state, Some(Outcome::Damaged(damage)));
            }
        };
        self.stream.extent(Box::new(answer));
    }

    /// It is known what became of the frame; `None`: it is stored.
    fn end(&self, mut state: parking_lot::MutexGuard<'_, State>, outcome: Option<Outcome>) {
        let flight = state.flight.take().expect("a frame is on the way");
        drop(state);
        let Flight { link, first_sent_ns, sent_ns, .. } = flight;
        let first_sent_ns = match () {
            () if is_broken(Mutation::LeaseFromAnswer) => self.stream.now_ns(),
            () if is_broken(Mutation::LeaseFromResend) => sent_ns,
            () => first_sent_ns,
        };
        (self.done)(outcome.unwrap_or(Outcome::Stored(Stored { link, first_sent_ns })));
    }
}

impl Tick for Delivery {
    fn tick(&self) {
        let now_ns = self.stream.now_ns();
        let mut state = self.state.lock();
        if let Some(flight) = &mut state.flight
            && has_passed(now_ns, flight.sent_ns, self.timing.resend)
        {
            flight.sent_ns = now_ns;
            self.append(flight);
            if has_passed(now_ns, flight.first_sent_ns, self.timing.beat * 2) {
                self.ask_whether_it_is_gone(flight.number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Contents, Kind, Nonce};
    use crate::testing::{LOG, Script};

    const TIMING: Timing = Timing::DEFAULT;

    type Outcomes = Arc<Mutex<Vec<Outcome>>>;

    fn delivery() -> (Arc<Script>, Arc<Delivery>, Outcomes) {
        let (script, outcomes) = (Arc::new(Script::default()), Outcomes::default());
        let done = outcomes.clone();
        let delivery = Delivery::new(script.clone(), LOG, TIMING, move |outcome| done.lock().push(outcome));
        (script, delivery, outcomes)
    }

    fn frame(after: &Link, epoch: u32, nonce: u128) -> (Bytes, Link) {
        let (epoch, nonce) = (Epoch(epoch), Nonce(nonce));
        let contents =
            Contents { kind: Kind::Batches, epoch, nonce, count: 0, time_ms: 1, ceiling_ms: 2, payload: b"payload" };
        frame::encode(LOG, 0, after, &contents)
    }

    /// Sends a frame behind message 4.
    fn send(delivery: &Delivery) -> (Bytes, Link) {
        let (message, link) = frame(&Link { position: 4, ..Link::START }, 3, 9);
        delivery.send(message.clone(), link);
        (message, link)
    }

    fn stored(link: Link, first_sent_ns: u64) -> Outcome {
        Outcome::Stored(Stored { link, first_sent_ns })
    }

    #[test]
    fn a_frame_without_an_answer_is_sent_again_and_counts_from_the_first_time() {
        let (script, delivery, outcomes) = delivery();
        script.pass(Duration::from_secs(5));
        let (message, link) = send(&delivery);
        let (last, sent, _unanswered) = script.append();
        assert_eq!((last, &sent), (4, &message));
        script.pass(TIMING.resend - Duration::from_millis(1));
        assert!(script.appends.lock().is_empty(), "too early");
        script.pass(Duration::from_millis(1));
        let (last, again, refused) = script.append();
        assert_eq!((last, &again), (4, &message));
        refused(Err(Unanswered::new("no leader")));
        assert!(outcomes.lock().is_empty(), "an error decides nothing");
        script.pass(TIMING.resend);
        script.answer(Appended::At(5));
        assert_eq!(*outcomes.lock(), [stored(link, 5_000_000_000)]);
        script.pass(TIMING.resend * 3);
        assert!(script.appends.lock().is_empty(), "it is not sent any more");
    }

    #[test]
    fn a_position_that_is_taken_by_the_own_frame_is_stored() {
        let (script, delivery, outcomes) = delivery();
        let (message, link) = send(&delivery);
        script.pass(TIMING.resend);
        script.answer(Appended::Conflict);
        assert_eq!(script.reads.lock()[0].0, 5);
        script.find(Found::Message(message));
        assert_eq!(*outcomes.lock(), [stored(link, 0)]);
    }

    #[test]
    fn a_position_that_another_has_taken_fences() {
        let after = Link { position: 4, ..Link::START };
        // Another epoch, another attempt of the same epoch, another program.
        let others = [
            (frame(&after, 8, 1).0, Some(Epoch(8))),
            (frame(&after, 3, 10).0, Some(Epoch(3))),
            (Bytes::from_static(b"hello"), None),
        ];
        for (message, by) in others {
            let (script, delivery, outcomes) = delivery();
            send(&delivery);
            script.answer(Appended::Conflict);
            script.find(Found::Message(message));
            assert_eq!(*outcomes.lock(), [Outcome::Fenced(by)]);
        }
        let (script, delivery, outcomes) = delivery();
        send(&delivery);
        script.answer(Appended::Conflict);
        script.find(Found::Purged);
        assert_eq!(*outcomes.lock(), [Outcome::Fenced(None)]);
    }

    #[test]
    fn an_empty_position_decides_nothing() {
        let (script, delivery, outcomes) = delivery();
        let (_, link) = send(&delivery);
        script.answer(Appended::Conflict);
        script.find(Found::Empty { last: 4 });
        assert!(outcomes.lock().is_empty());
        script.pass(TIMING.resend);
        script.answer(Appended::At(5));
        assert_eq!(*outcomes.lock(), [stored(link, 0)]);
    }

    /// Regression: an earlier attempt that was stored between two questions was taken for another's, which was purged.
    #[test]
    fn a_position_that_is_missing_is_looked_at_again() {
        let (script, delivery, outcomes) = delivery();
        let (message, link) = send(&delivery);
        script.answer(Appended::Conflict);
        script.find(Found::Missing);
        assert!(outcomes.lock().is_empty());
        script.pass(TIMING.resend);
        script.answer(Appended::Conflict);
        script.find(Found::Message(message));
        assert_eq!(*outcomes.lock(), [stored(link, 0)]);

        let (script, delivery, outcomes) = self::delivery();
        send(&delivery);
        for wait in [TIMING.resend, TIMING.lost_after] {
            script.answer(Appended::Conflict);
            script.find(Found::Missing);
            assert!(outcomes.lock().is_empty());
            script.pass(wait);
        }
        script.appends.lock().drain(1..);
        script.answer(Appended::Conflict);
        script.find(Found::Missing);
        assert_eq!(*outcomes.lock(), [Outcome::Damaged(Damage::Hole { position: 5 })]);
    }

    #[test]
    fn a_stream_that_ends_before_what_was_stored_is_damage_if_it_stays_so() {
        let (script, delivery, outcomes) = delivery();
        send(&delivery);
        let look = |found: Position| {
            script.answer(Appended::Conflict);
            script.find(Found::Empty { last: found });
            script.pass(TIMING.resend);
        };
        // A new leader that reads its files.
        look(2);
        script.pass(TIMING.lost_after);
        script.appends.lock().pop_front();
        look(4);
        look(2);
        assert!(outcomes.lock().is_empty(), "the wait has begun again");
        script.pass(TIMING.lost_after);
        script.appends.lock().pop_front();
        look(2);
        assert_eq!(*outcomes.lock(), [Outcome::Damaged(Damage::Lost { last: 2, needed: 4 })]);
    }

    #[test]
    fn a_frame_that_is_stored_elsewhere_is_damage() {
        let (script, delivery, outcomes) = delivery();
        send(&delivery);
        script.answer(Appended::At(9));
        assert_eq!(*outcomes.lock(), [Outcome::Damaged(Damage::Gap { last: 4, found: 9 })]);
    }

    #[test]
    fn late_answers_to_an_earlier_frame_mean_nothing() {
        let (script, delivery, outcomes) = delivery();
        let (_, first) = send(&delivery);
        script.pass(TIMING.resend);
        script.pass(TIMING.resend);
        script.answer(Appended::Conflict);
        script.answer(Appended::At(5));
        assert_eq!(outcomes.lock().len(), 1);
        let (message, second) = frame(&first, 3, 9);
        delivery.send(message, second);
        // The third attempt of the first frame, and what was read for the second.
        let (last, _, late) = script.append();
        assert_eq!(last, 4);
        late(Ok(Appended::At(5)));
        script.find(Found::Purged);
        assert_eq!(outcomes.lock().len(), 1);
        script.answer(Appended::At(6));
        assert_eq!(outcomes.lock()[1], stored(second, 2 * TIMING.resend.as_nanos() as u64));
    }
}
