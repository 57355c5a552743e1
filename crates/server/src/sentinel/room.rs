//! All connections of the Sentinel port: how many there are, which one makes room, and who is told what has changed. Lives
//! on the thread of the port; refuses to know sockets and requests.

use super::topology::{Message, Topology};
use engine::Engine;
use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// The most connections at a time.
pub(super) const CONNECTIONS_MAX: usize = 1_000;
/// Messages that a client has not taken yet. One that does not read is closed beyond that.
const UNREAD_MESSAGES_MAX: usize = 128;

pub(super) struct Room {
    pub(super) engine: Arc<Engine>,
    topology: RefCell<Topology>,
    connections: RefCell<BTreeMap<u64, Rc<Place>>>,
    last_id: Cell<u64>,
}

/// A connection, as the others see it.
pub(super) struct Place {
    messages: RefCell<Option<mpsc::Sender<Rc<Message>>>>,
    /// It listens to channels: it may be idle.
    pub(super) listens: Cell<bool>,
    pub(super) active: Cell<Instant>,
    task: RefCell<Option<AbortHandle>>,
}

impl Room {
    pub(super) fn new(engine: Arc<Engine>) -> Room {
        let topology = Topology::new(&engine.settings.sentinel_master_name());
        let connections = RefCell::default();
        Room { engine, topology: RefCell::new(topology), connections, last_id: Cell::new(0) }
    }

    /// What is known now.
    pub(super) fn topology(&self) -> Ref<'_, Topology> {
        self.observe();
        self.topology.borrow()
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.engine.clock.monotonic_ms()
    }

    /// Looks what has changed, and tells those who listen.
    pub(super) fn observe(&self) {
        let mut replication = self.engine.persistence.replication();
        if self.engine.restrictions.is_loading() {
            // Clients that it sends to itself would only be told that it is loading.
            replication.members.iter_mut().filter(|member| member.is_self).for_each(|own| own.is_writer = false);
        }
        let messages = match self.topology.try_borrow_mut() {
            Ok(mut topology) => topology.observe(replication, self.now_ms()),
            Err(_) => return,
        };
        messages.into_iter().for_each(|message| self.publish(Rc::new(message)));
    }

    fn publish(&self, message: Rc<Message>) {
        let connections = self.connections.borrow();
        connections.values().filter(|place| place.listens.get()).for_each(|place| place.offer(&message));
    }

    pub(super) fn connections(&self) -> usize {
        self.connections.borrow().len()
    }

    /// A place for a new connection, and its messages. If there are too many, the one that has been idle longest ends. `None`
    /// if all of them listen.
    pub(super) fn enter(&self) -> Option<(u64, Rc<Place>, mpsc::Receiver<Rc<Message>>)> {
        let mut connections = self.connections.borrow_mut();
        if connections.len() >= CONNECTIONS_MAX {
            let idle = connections.iter().filter(|(_, place)| !place.listens.get());
            let (id, _) = idle.min_by_key(|(_, place)| place.active.get())?;
            let id = *id;
            if let Some(place) = connections.remove(&id) {
                place.task.borrow().iter().for_each(AbortHandle::abort);
            }
        }
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        let (place, receive) = Place::new();
        let place = Rc::new(place);
        connections.insert(id, place.clone());
        Some((id, place, receive))
    }

    pub(super) fn leave(&self, id: u64) {
        self.connections.borrow_mut().remove(&id);
    }
}

impl Place {
    fn new() -> (Place, mpsc::Receiver<Rc<Message>>) {
        let (send, receive) = mpsc::channel(UNREAD_MESSAGES_MAX);
        let place = Place {
            messages: RefCell::new(Some(send)),
            listens: Cell::new(false),
            active: Cell::new(Instant::now()),
            task: RefCell::default(),
        };
        (place, receive)
    }

    /// Passes a message on. A connection whose client does not read has no sender from then on, and ends.
    fn offer(&self, message: &Rc<Message>) {
        let mut messages = self.messages.borrow_mut();
        if messages.as_ref().is_some_and(|messages| messages.try_send(message.clone()).is_err()) {
            *messages = None;
        }
    }

    pub(super) fn set_task(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_does_not_read_gets_no_more_messages() {
        let (place, mut receive) = Place::new();
        let message = Rc::new(Message { channel: "+sdown", payload: String::new() });
        (0..UNREAD_MESSAGES_MAX).for_each(|_| place.offer(&message));
        assert!(receive.try_recv().is_ok());
        // There is room for one again.
        (0..10).for_each(|_| place.offer(&message));
        let left = std::iter::from_fn(|| receive.try_recv().ok()).count();
        assert_eq!(left, UNREAD_MESSAGES_MAX);
        assert_eq!(receive.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
    }
}
