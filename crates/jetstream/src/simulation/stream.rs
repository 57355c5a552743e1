//! The stream, as one process of a simulation reaches it. Decides nothing.

use super::network::{Crash, Event, Process};
use super::world::World;
use crate::frame::{Nonce, Position};
use crate::stream::{Answer, Appended, Extent, Found, Receive, Stream, Tick};
use bytes::Bytes;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The stream, for one life of a process.
pub struct SimulatedStream {
    pub(super) world: Arc<World>,
    pub(super) process: Process,
}

impl SimulatedStream {
    /// A process begins on a machine where none runs.
    pub fn begin(world: &Arc<World>, machine: usize) -> Arc<SimulatedStream> {
        Arc::new(SimulatedStream { world: world.clone(), process: world.begin_process(machine) })
    }
}

impl Stream for SimulatedStream {
    fn append(&self, last: Position, message: Bytes, answer: Answer<Appended>) {
        let mut inner = self.world.inner.lock();
        let answer: Answer<Appended> = match inner.answers_when_sent {
            true => {
                let now_ns = inner.now_ns;
                let sent = move || answer(Ok(Appended::At(last + 1)));
                inner.network.schedule(now_ns, Event::Answer(self.process, Box::new(sent)));
                Box::new(|_| {})
            }
            false => answer,
        };
        inner.send(self.process, answer, move |inner| {
            if inner.stored.extent().last != last {
                return Appended::Conflict;
            }
            inner.store(message.clone());
            Appended::At(last + 1)
        });
    }

    fn read(&self, position: Position, answer: Answer<Found>) {
        self.world.inner.lock().send(self.process, answer, move |inner| match inner.stored.at(position) {
            Some(message) => Found::Message(message.clone()),
            None if position < inner.stored.first => Found::Purged,
            None if position <= inner.stored.extent().last => Found::Missing,
            None => Found::Empty { last: inner.stored.extent().last },
        });
    }

    fn extent(&self, answer: Answer<Extent>) {
        self.world.inner.lock().send(self.process, answer, |inner| inner.stored.extent());
    }

    fn purge(&self, upto: Position, answer: Answer<()>) {
        self.world.inner.lock().send(self.process, answer, move |inner| {
            while inner.stored.first <= upto && inner.stored.messages.pop_front().is_some() {
                inner.stored.first += 1;
            }
        });
    }

    fn follow(&self, from: Position, receiver: Weak<dyn Receive>) -> Box<dyn Send> {
        let id = self.world.inner.lock().subscribe(self.process, from, receiver);
        Box::new(Unsubscribes { world: self.world.clone(), process: self.process, id })
    }

    fn message_max(&self) -> usize {
        self.world.message_max()
    }

    fn now_ns(&self) -> u64 {
        self.world.clock_ns(self.process.machine)
    }

    fn tick(&self, ticking: Weak<dyn Tick>) {
        let mut inner = self.world.inner.lock();
        if inner.is_alive(self.process) {
            inner.machines[self.process.machine].ticking.push(ticking);
        }
    }

    fn tick_after(&self, after: Duration, ticking: Weak<dyn Tick>) {
        let mut inner = self.world.inner.lock();
        let at_ns = inner.now_ns + after.as_nanos() as u64;
        inner.network.schedule(at_ns, Event::TickOnce(self.process, ticking));
    }

    fn nonce(&self) -> Nonce {
        self.world.nonce()
    }

    /// Lets the others go on. A process that was killed meanwhile ends here.
    fn pause(&self) {
        if std::thread::panicking() {
            return;
        }
        let machine = self.process.machine;
        loop {
            let (on_pause, moment_ns) = {
                let mut inner = self.world.inner.lock();
                (inner.on_pause, inner.rng.u64(1_000_000..20_000_000))
            };
            match on_pause {
                Some(called) => called(machine),
                None => self.world.advance(Duration::from_nanos(moment_ns)),
            }
            if !self.world.inner.lock().is_alive(self.process) {
                std::panic::resume_unwind(Box::new(Crash));
            }
            if !self.world.is_stopped(machine) {
                return;
            }
        }
    }
}

/// Ends a subscription when it is dropped.
struct Unsubscribes {
    world: Arc<World>,
    process: Process,
    id: u64,
}

impl Drop for Unsubscribes {
    fn drop(&mut self) {
        let mut inner = self.world.inner.lock();
        let removed = inner.machines[self.process.machine].subscriptions.remove(&self.id);
        drop(inner);
        drop(removed);
    }
}
