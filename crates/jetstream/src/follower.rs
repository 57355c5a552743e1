//! Follows the log: checks each frame, gives its batches out, and takes the log over. Knows when the writer has been silent
//! for too long; refuses to know what a batch means.

use crate::context::Context;
use crate::delivery::{Delivery, Outcome, Stored};
use crate::frame::{self, Assembly, Contents, Damage, Kind, Link, Position};
use crate::lease::has_passed;
use crate::log::StreamLog;
#[cfg(any(test, feature = "simulation"))]
use crate::mutation::{Mutation, is_broken};
use crate::stream::{Extent, Receive, Unanswered};
use bytes::Bytes;
use journal::{
    Batch, Epoch, Failure, Follow, Followed, Follower, OpenedLog, ReadError, RecoveryError, Sequence, Stopper,
};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A follower that has this many bytes of messages to apply takes no more for now.
const INBOX_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How often a follower to which nothing is sent asks how far the stream is.
const PROBE_EVERY: std::time::Duration = std::time::Duration::from_millis(500);

/// The messages that have arrived.
pub(crate) struct Inbox {
    context: Arc<Context>,
    state: Mutex<Arrived>,
}

struct Arrived {
    messages: VecDeque<(Position, Bytes)>,
    bytes: usize,
    /// When the last one was received.
    heard_ns: u64,
    failure: Option<Unanswered>,
    /// What the stream last said of itself, and when it was asked.
    extent: Option<(Extent, u64)>,
    asked_ns: u64,
}

impl Inbox {
    fn new(context: &Arc<Context>) -> Arc<Inbox> {
        let now_ns = context.stream.now_ns();
        let state = Arrived {
            messages: VecDeque::new(),
            bytes: 0,
            heard_ns: now_ns,
            failure: None,
            extent: None,
            asked_ns: now_ns,
        };
        Arc::new(Inbox { context: context.clone(), state: Mutex::new(state) })
    }

    /// Asks where the stream ends, now and then.
    fn probe(self: &Arc<Inbox>, now_ns: u64) {
        {
            let mut state = self.state.lock();
            if !has_passed(now_ns, state.asked_ns, PROBE_EVERY) {
                return;
            }
            state.asked_ns = now_ns;
        }
        let inbox = Arc::downgrade(self);
        let answer = move |extent: Result<Extent, Unanswered>| {
            let Some(inbox) = inbox.upgrade() else { return };
            let mut state = inbox.state.lock();
            match extent {
                Ok(extent) => state.extent = Some((extent, now_ns)),
                Err(unanswered) if unanswered.is_gone => state.failure = Some(unanswered),
                // IMPORTANT: the stream has no leader. Its writer cannot be heard, and may go on as soon as there is one:
                // the wait begins again.
                Err(_) => state.heard_ns = inbox.context.stream.now_ns(),
            }
        };
        self.context.stream.extent(Box::new(answer));
    }
}

impl Receive for Inbox {
    fn receive(&self, position: Position, message: Bytes) {
        let mut state = self.state.lock();
        state.heard_ns = self.context.stream.now_ns();
        state.bytes += message.len();
        state.messages.push_back((position, message));
    }

    fn has_room(&self) -> bool {
        self.state.lock().bytes < INBOX_BYTES_MAX
    }

    fn fail(&self, reason: Unanswered) {
        self.state.lock().failure = Some(reason);
    }
}

/// Follows the log.
pub(crate) struct StreamFollower {
    context: Arc<Context>,
    inbox: Arc<Inbox>,
    /// Messages arrive until it is dropped.
    _subscription: Box<dyn Send>,
    /// The last frame that was read.
    link: Link,
    assembly: Assembly,
    /// Batches of frames that were read, and not given out.
    ready: VecDeque<Batch>,
    /// The last batch that was given out or passed over.
    reached: Sequence,
    time_ms: u64,
    bytes: u64,
    /// The last frame gives the log up, for this member if it is named.
    release: Option<String>,
    /// The frame with which this process has taken the log over.
    claimed: Option<Stored>,
    /// When this process last tried to take the log over, and another was first.
    beaten_ns: Option<u64>,
    /// Since when the stream has ended before the last frame that was read.
    lost_since_ns: Option<u64>,
    is_over: bool,
    is_stopped: Arc<AtomicBool>,
}

impl StreamFollower {
    /// Follows from behind a frame.
    pub(crate) fn new(context: &Arc<Context>, link: Link) -> StreamFollower {
        let inbox = Inbox::new(context);
        let receiver: Arc<dyn Receive> = inbox.clone();
        let subscription = context.stream.follow(link.position + 1, Arc::downgrade(&receiver));
        StreamFollower {
            context: context.clone(),
            inbox,
            _subscription: subscription,
            link,
            assembly: Assembly::default(),
            ready: VecDeque::new(),
            reached: link.sequence,
            time_ms: link.time_ms,
            bytes: 0,
            release: None,
            claimed: None,
            beaten_ns: None,
            lost_since_ns: None,
            is_over: false,
            is_stopped: Arc::default(),
        }
    }

    /// Follows from behind the end of a log that this process has given up.
    pub(crate) fn after_release(context: &Arc<Context>, link: Link, time_ms: u64) -> StreamFollower {
        let mut follower = StreamFollower::new(context, link);
        follower.time_ms = time_ms;
        // Others have asked for it: this one waits as long as for a writer that is silent.
        follower.context.time.follow(link.time_ms);
        follower
    }

    /// The last frame that was read.
    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// How many bytes of frames were read.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn damaged(&self, damage: Damage) -> ReadError {
        let (target, offset) = (self.context.name.clone(), self.link.position + 1);
        ReadError::Damaged { target, offset, detail: damage.to_string() }
    }

    fn advance(&mut self) -> Result<Option<Batch>, ReadError> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                self.reached = batch.sequence;
                if batch.payload.is_empty() {
                    continue;
                }
                return Ok(Some(batch));
            }
            let arrived = {
                let mut state = self.inbox.state.lock();
                let arrived = state.messages.pop_front();
                if let Some((_, message)) = &arrived {
                    state.bytes -= message.len();
                }
                arrived
            };
            match arrived {
                // Delivery began again, a little before.
                Some((position, _)) if position <= self.link.position => {}
                Some((position, message)) => self.read(position, &message)?,
                None => return self.check_silence().map(|()| None),
            }
        }
    }

    /// Reads one frame.
    fn read(&mut self, position: Position, message: &Bytes) -> Result<(), ReadError> {
        let Context { log, partition, .. } = *self.context;
        let frame = match frame::decode(log, partition, &self.link, position, message) {
            Ok(frame) => frame,
            // What is missing was purged, because a snapshot has it. If not, the next start finds out.
            Err(Damage::Gap { found, .. }) => {
                return Err(ReadError::Forgotten { oldest: Sequence(found) });
            }
            Err(damage) => {
                // IMPORTANT: only what no writer of this log has put there, and not where this process remembers a frame. What
                // follows goes on behind it.
                let is_others = || frame::is_misplaced(log, partition, position, message);
                if self.context.skip.contains(&position) && !self.context.seen.remembers(position) && is_others() {
                    tracing::warn!(reason = %damage, "a message is passed over, as log-skip says");
                    self.link.position = position;
                    return Ok(());
                }
                return Err(self.damaged(damage));
            }
        };
        let (epoch, first) = (frame.epoch, self.link.sequence.next());
        let mut next = first;
        let ready = &mut self.ready;
        let added = self.assembly.add(&frame, |time_ms, payload| {
            ready.push_back(Batch { epoch, sequence: next, time_ms, payload });
            next = next.next();
        });
        added.map_err(|damage| self.damaged(damage))?;
        // IMPORTANT: a log that was lost and written anew may be longer than what this process remembers.
        if let Some(crc) = self.context.seen.contradicts(&frame.link) {
            let detail = format!("this server had read another one there (its checksum was {crc:08x})");
            return Err(self.damaged(Damage::Unchained { position, detail }));
        }
        self.bytes += message.len() as u64;
        self.link = frame.link;
        self.beaten_ns = None;
        self.context.seen.note(&self.link, self.context.stream.now_ns());
        self.time_ms = self.time_ms.max(frame.link.time_ms);
        self.release = match frame.kind {
            Kind::Release => Some(String::from_utf8_lossy(&frame.payload).into_owned()),
            Kind::Batches | Kind::Epoch => None,
        };
        if frame.kind == Kind::Epoch {
            *self.context.writer.lock() = String::from_utf8_lossy(&frame.payload).into_owned();
        }
        Ok(())
    }

    /// Nothing has arrived: is the stream still what it was?
    fn check_silence(&mut self) -> Result<(), ReadError> {
        let now_ns = self.context.stream.now_ns();
        let (failure, extent, heard_ns) = {
            let state = self.inbox.state.lock();
            (state.failure.clone(), state.extent, state.heard_ns)
        };
        if let Some(failure) = failure {
            let (target, detail) = (self.context.name.clone(), failure.reason);
            return Err(match failure.is_gone {
                true => ReadError::Damaged { target, offset: self.link.position + 1, detail },
                false => ReadError::Io {
                    operation: journal::Operation::Read,
                    target,
                    offset: self.link.position + 1,
                    source: std::io::Error::other(detail),
                },
            });
        }
        // IMPORTANT: only what the stream has said since the last message counts, and only if it says so for long enough. This
        // process may have been paused, and a new leader of the stream may not have read all of its own files at first.
        if let Some((extent, asked_ns)) = extent.filter(|(_, asked_ns)| *asked_ns > heard_ns) {
            if extent.last >= self.link.position {
                self.lost_since_ns = None;
            } else if has_passed(asked_ns, *self.lost_since_ns.get_or_insert(asked_ns), self.context.timing.lost_after)
            {
                return Err(self.damaged(Damage::Lost { last: extent.last, needed: self.link.position }));
            }
        }
        if has_passed(now_ns, heard_ns, self.context.timing.beat * 2) {
            self.inbox.probe(now_ns);
        }
        Ok(())
    }

    /// Reads what is stored, and passes over it: a rule that tests break.
    #[cfg(any(test, feature = "simulation"))]
    fn skip_to_end(&mut self) -> Result<(), ReadError> {
        let end = Arc::new(Mutex::new(None));
        let answer = end.clone();
        self.context.stream.extent(Box::new(move |extent| *answer.lock() = extent.ok()));
        for _ in 0..50 {
            self.context.stream.pause();
            if end.lock().is_some_and(|end: Extent| end.last <= self.link.position) {
                break;
            }
            let arrived = self.inbox.state.lock().messages.pop_front();
            if let Some((position, message)) = arrived.filter(|(position, _)| *position > self.link.position) {
                self.read(position, &message)?;
                self.ready.clear();
            }
        }
        Ok(())
    }

    /// How long the log has been silent, in nanoseconds.
    fn silence_ns(&self) -> u64 {
        self.context.stream.now_ns().saturating_sub(self.inbox.state.lock().heard_ns)
    }

    /// True when the stream has said, after this follower began to wait, that it ends with the last frame read here.
    fn is_at_end(&self) -> bool {
        let state = self.inbox.state.lock();
        state.messages.is_empty()
            && state
                .extent
                .is_some_and(|(extent, asked_ns)| extent.last == self.link.position && asked_ns > state.heard_ns)
    }
}

impl Follow for StreamFollower {
    fn next(&mut self) -> Result<Followed, ReadError> {
        loop {
            if self.is_stopped.load(Ordering::Acquire) {
                return Ok(Followed::Stopped);
            }
            match self.try_next()? {
                Some(batch) => return Ok(Followed::Batch(batch)),
                None => self.context.stream.pause(),
            }
        }
    }

    fn try_next(&mut self) -> Result<Option<Batch>, ReadError> {
        if self.is_over {
            return Ok(None);
        }
        let found = self.advance();
        self.is_over = found.is_err();
        found
    }

    fn stopper(&self) -> Stopper {
        let is_stopped = self.is_stopped.clone();
        Stopper::new(move || is_stopped.store(true, Ordering::Release))
    }
}

impl Follower for StreamFollower {
    fn reached(&self) -> Sequence {
        self.reached
    }

    fn time_ms(&self) -> u64 {
        self.time_ms
    }

    fn note_applied(&mut self) {
        // IMPORTANT: not once the log is taken over. The time is the writer's own from then on; as a follower's, it would go on
        // by a lease with each frame.
        if self.ready.is_empty() && self.claimed.is_none() {
            self.context.time.follow(self.link.time_ms);
        }
    }

    fn is_due(&self) -> bool {
        let timing = &self.context.timing;
        if self.is_over || !self.ready.is_empty() || !self.inbox.state.lock().messages.is_empty() {
            return false;
        }
        // The frame of the other one is on its way.
        let now_ns = self.context.stream.now_ns();
        if self.beaten_ns.is_some_and(|beaten_ns| !has_passed(now_ns, beaten_ns, timing.beat)) {
            return false;
        }
        let silence_ns = self.silence_ns();
        let has_waited = |wait: std::time::Duration| silence_ns >= wait.as_nanos() as u64;
        match &self.release {
            Some(successor) if successor.is_empty() || *successor == self.context.member => true,
            Some(_) => has_waited(timing.courtesy),
            None if self.link.epoch == Epoch::NONE => true,
            None => has_waited(timing.patience) && self.is_at_end(),
        }
    }

    /// Stores the record of a new epoch behind the last frame that was applied, or finds that another process was first.
    fn begin_epoch(&mut self) -> Result<Epoch, RecoveryError> {
        if !self.ready.is_empty() {
            return Err(RecoveryError::Unfinished);
        }
        #[cfg(any(test, feature = "simulation"))]
        if is_broken(Mutation::EpochBehindUnapplied) {
            self.skip_to_end()?;
        }
        let Context { log, partition, time, timing, stream, address, .. } = &*self.context;
        // IMPORTANT: a new one for each attempt, so that no attempt takes the record of another for its own.
        let nonce = stream.nonce();
        let epoch = self.link.epoch.next();
        // What had expired for the writer before must have expired here too.
        let time_ms = time.own_ms().max(self.link.ceiling_ms);
        let payload = format!("{} {}", self.context.member, &*address.lock());
        let contents = Contents {
            kind: Kind::Epoch,
            epoch,
            nonce,
            count: 0,
            time_ms,
            ceiling_ms: time_ms + timing.lease_ms(),
            payload: payload.as_bytes(),
        };
        let (message, link) = frame::encode(*log, *partition, &self.link, &contents);
        let outcome = Arc::new(Mutex::new(None));
        let done = outcome.clone();
        let delivery = Delivery::new(stream.clone(), *log, *timing, move |found| *done.lock() = Some(found));
        delivery.send(message, link);
        let outcome = loop {
            if let Some(outcome) = outcome.lock().take() {
                break outcome;
            }
            stream.pause();
        };
        let failure = match outcome {
            Outcome::Stored(stored) => {
                time.begin(time_ms, stored.link.ceiling_ms);
                self.claimed = Some(stored);
                return Ok(epoch);
            }
            Outcome::Fenced(by) => {
                self.beaten_ns = Some(stream.now_ns());
                Failure::Fenced { own: epoch, by: by.unwrap_or(epoch.next()) }
            }
            Outcome::Damaged(damage) => Failure::Damaged { detail: damage.to_string().into() },
        };
        Err(failure.into())
    }

    fn into_log(mut self: Box<Self>) -> Result<OpenedLog, RecoveryError> {
        let Some(claimed) = self.claimed.take().filter(|_| !self.is_over) else {
            return Err(RecoveryError::Unfinished);
        };
        *self.context.writer.lock() = format!("{} {}", self.context.member, &*self.context.address.lock());
        let log = StreamLog::new(self.context.clone(), claimed, self.time_ms, self.bytes);
        Ok(self.context.opened(log))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::STOPS_AFTER_MS;
    use crate::mark::Mark;
    use crate::simulation::World;
    use crate::testing::{LOG, OWN_MS, Process, ToldTime, next, store, take_snapshot};
    use journal::LogPlace;
    use std::time::Duration;

    fn two() -> (Arc<World>, Process, Process) {
        let world = World::new(11, 2, 1000);
        let (writer, reader) = (Process::begin(&world, 0, "a"), Process::begin(&world, 1, "b"));
        (world, writer, reader)
    }

    /// Milliseconds.
    fn ms(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    /// What another program has put into the stream stops everybody. Who is told of it reads on, and writes on behind it.
    #[test]
    fn messages_of_others_are_passed_over_if_they_are_listed_and_frames_are_not() {
        let world = World::new(12, 4, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        store(&opened, b"one");
        world.publish(Bytes::from_static(b"hello"));
        let foreign = world.extent().last;
        // A copy of a frame.
        world.publish(world.message(foreign - 1));
        opened.log.append(b"never", OWN_MS);
        world.advance(ms(10_000));
        assert!(opened.log.failure().is_some(), "it is fenced");
        let refusal = |skip: &[Position]| {
            let process = Process::begin_skipping(&world, 1, "b", skip, None);
            let refusal = process.try_follow().map(|_| ()).unwrap_err().to_string();
            world.kill(1);
            refusal
        };
        let (unlisted, half) = (refusal(&[]), refusal(&[foreign]));
        assert!(unlisted.contains("it begins with \"hello\""), "{unlisted}");
        assert!(half.contains(&format!("it is a copy of message {}", foreign - 1)), "{half}");
        let all: Vec<Position> = (1..=foreign + 1).collect();
        let process = Process::begin_skipping(&world, 1, "b", &all, None);
        let opened = process.write();
        store(&opened, b"two");
        let mut follower =
            Process::begin_skipping(&world, 2, "c", &[foreign, foreign + 1], None).place.read_live().unwrap();
        let mut found = Vec::new();
        while let Some(batch) = follower.next_batch().unwrap() {
            found.push(batch.payload.to_vec());
        }
        assert_eq!(found, [b"one", b"two"], "frames are read, listed or not");
        // One that remembers a frame there knows better.
        let known = Some(Mark { log: LOG, position: foreign, crc: 1 });
        let knowing = Process::begin_skipping(&world, 3, "d", &all, known).try_follow().map(|_| ()).unwrap_err();
        assert!(knowing.to_string().contains("it begins with \"hello\""), "{knowing}");
        world.kill(3);
        // When a snapshot has what is before, nobody has to be told any more.
        take_snapshot(&opened, b"first");
        store(&opened, b"three");
        take_snapshot(&opened, b"second");
        world.advance(ms(20));
        Process::begin(&world, 3, "d").follow();
    }

    #[test]
    fn a_follower_is_due_when_its_writer_has_been_silent_for_long_enough() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        let mut follower = reader.follow();
        assert!(reader.pass(&mut *follower, ms(20_000)).is_empty());
        assert!(!follower.is_due(), "it hears beats");
        store(&opened, b"last");
        world.kill(0);
        // What the writer had sent still arrives.
        assert_eq!(reader.pass(&mut *follower, ms(3400)), [b"last".to_vec()]);
        assert!(!follower.is_due());
        reader.pass(&mut *follower, ms(1200));
        assert!(follower.is_due());
    }

    #[test]
    fn a_stream_without_a_leader_begins_the_wait_again() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        let mut follower = reader.follow();
        store(&opened, b"one");
        world.lose_leader(ms(8000));
        reader.pass(&mut *follower, ms(8000));
        assert!(!follower.is_due(), "its writer cannot be heard");
        reader.pass(&mut *follower, ms(5000));
        assert!(!follower.is_due(), "and goes on when there is a leader");
        assert!(opened.log.may_answer());
    }

    #[test]
    fn the_successor_that_a_writer_names_is_due_at_once_and_others_later() {
        for (successor, is_due) in [("", true), ("b", true), ("c", false)] {
            let (_, writer, reader) = two();
            let opened = writer.write();
            let mut follower = reader.follow();
            writer.place.name_successor(successor);
            opened.log.close().unwrap();
            reader.pass(&mut *follower, ms(100));
            assert_eq!(follower.is_due(), is_due, "{successor:?}");
            reader.pass(&mut *follower, Duration::from_millis(1000));
            assert!(follower.is_due(), "it was not taken");
        }
    }

    #[test]
    fn only_one_of_two_followers_takes_over() {
        let world = World::new(12, 3, 1000);
        let opened = Process::begin(&world, 0, "a").write();
        let (left, right) = (Process::begin(&world, 1, "b"), Process::begin(&world, 2, "c"));
        let (mut first, mut second) = (left.follow(), right.follow());
        opened.log.close().unwrap();
        left.pass(&mut *first, ms(100));
        right.pass(&mut *second, ms(100));
        assert!(first.is_due() && second.is_due());
        assert_eq!(first.begin_epoch().unwrap(), Epoch(2));
        let refused = second.begin_epoch().unwrap_err();
        assert!(matches!(refused, RecoveryError::Log(Failure::Fenced { .. })), "{refused}");
        // It goes on as a follower.
        let opened = first.into_log().unwrap();
        store(&opened, b"of the new writer");
        assert_eq!(next(&mut *second), b"of the new writer");
    }

    #[test]
    fn an_end_that_is_lost_is_damage_if_it_stays_so() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        let mut follower = reader.follow();
        store(&opened, b"one");
        assert_eq!(next(&mut *follower), b"one");
        world.kill(0);
        world.advance(ms(4000));
        world.lose_end(1);
        let error = loop {
            world.advance(ms(50));
            assert!(!follower.is_due());
            match follower.try_next() {
                Ok(None) => {}
                Ok(found) => panic!("{found:?}"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("part of the log is lost"), "{error}");
    }

    /// Regression: the log was read again and again, and nobody was told why.
    #[test]
    fn a_message_that_is_missing_between_others_is_damage_at_a_start() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        for number in 0..4u8 {
            store(&opened, &[number]);
        }
        world.lose_message(3);
        let error = reader.try_follow().map(drop).unwrap_err();
        assert!(matches!(error, RecoveryError::Log(Failure::Damaged { .. })), "{error}");
        assert!(error.to_string().contains("message 3 of the stream is missing"), "{error}");
    }

    /// Regression: it was fenced, read the log anew, and forgot what it had stored itself.
    #[test]
    fn a_log_that_was_lost_and_written_on_is_not_what_this_process_knew() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        for number in 0..4u8 {
            store(&opened, &[number]);
        }
        let mark = writer.place.mark().unwrap();
        world.cut_off(0, ms(60_000), false);
        world.lose_end(2);
        let mut follower = reader.follow();
        while !follower.is_due() {
            reader.pass(&mut *follower, ms(100));
        }
        follower.begin_epoch().unwrap();
        let other = follower.into_log().unwrap();
        for number in 0..6u8 {
            store(&other, &[number]);
        }
        drop(opened);
        world.mend();
        let error = writer.try_follow().map(drop).unwrap_err();
        assert!(error.to_string().contains("this server had read another one there"), "{error}");
        assert_eq!(writer.place.mark(), Some(mark), "it is still known");
    }

    /// Regression: it tried again at once, as fast as the stream answered.
    #[test]
    fn one_that_was_beaten_waits_for_the_frame_of_the_other() {
        let world = World::new(13, 3, 1000);
        let (left, right) = (Process::begin(&world, 0, "a"), Process::begin(&world, 1, "b"));
        let (mut first, mut second) = (left.follow(), right.follow());
        assert!(first.is_due() && second.is_due(), "nobody has written yet");
        first.begin_epoch().unwrap();
        second.begin_epoch().unwrap_err();
        assert!(!second.is_due());
        world.advance(ms(600));
        assert!(!second.is_due(), "it has arrived");
    }

    /// Regression: it followed its own frames after it had taken the log over, and its time ran ahead by a lease with each.
    #[test]
    fn the_time_of_a_new_writer_is_its_own_from_the_ceiling_of_the_one_before() {
        let lease_ms = crate::lease::Timing::DEFAULT.lease_ms();
        // The time of one that hands over stops at once, that of one that is killed at the ceiling.
        for (hands_over, floor_ms) in [(true, OWN_MS + STOPS_AFTER_MS), (false, OWN_MS + lease_ms)] {
            let (world, writer, reader) = two();
            let opened = writer.write();
            store(&opened, b"one");
            let mut follower = reader.follow();
            assert_eq!(*reader.time.0.lock(), ToldTime::Follows(OWN_MS));
            if hands_over {
                opened.log.close().unwrap();
            } else {
                world.kill(0);
            }
            while !follower.is_due() {
                reader.pass(&mut *follower, ms(100));
            }
            follower.begin_epoch().unwrap();
            let expected = ToldTime::Writes { floor_ms, ceiling_ms: floor_ms + lease_ms };
            assert_eq!(*reader.time.0.lock(), expected);
            // As the role thread does before it writes.
            reader.pass(&mut *follower, ms(100));
            follower.note_applied();
            assert_eq!(*reader.time.0.lock(), expected);
        }
    }

    #[test]
    fn a_follower_that_a_purge_has_overtaken_begins_again() {
        let (world, writer, reader) = two();
        let opened = writer.write();
        let mut follower = reader.follow();
        world.cut_off(1, ms(3000), false);
        for number in 0..3u8 {
            store(&opened, &[number]);
            take_snapshot(&opened, &[number]);
        }
        world.advance(ms(3500));
        let error = loop {
            match follower.try_next() {
                Ok(_) => world.advance(ms(10)),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, ReadError::Forgotten { .. }), "{error}");
        assert_eq!(reader.follow().reached(), Sequence(3));
    }
}
