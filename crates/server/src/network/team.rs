//! The workers' view of each other: how many connections each has, and how a connection is sent to one. Knows nothing
//! of what a worker does.

use super::balance::AtWork;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use tokio::sync::mpsc;

/// A connection on its way to a worker.
pub(crate) enum Arrival {
    /// From the listener, without TLS.
    New { stream: std::net::TcpStream, peer: SocketAddr },
    /// From another worker, or from its TLS handshake. Called on the thread of the new worker, where the connection continues.
    Moved(Box<dyn FnOnce(Arc<AtomicUsize>) -> std::io::Result<()> + Send>),
}

/// A connection on its way from the listener to its TLS handshake.
pub(crate) struct NewHandshake {
    pub(crate) stream: std::net::TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) context: Arc<tls::Context>,
}

/// The workers' view of each other.
pub(crate) struct Team {
    pub(crate) members: Vec<Member>,
    pub(crate) at_work: AtWork,
    pub(crate) handshakes: Handshakes,
}

/// The shared state of the thread of TLS handshakes.
pub(crate) struct Handshakes {
    arrivals: mpsc::UnboundedSender<NewHandshake>,
    /// Those on their way to it included.
    count: AtomicUsize,
}

impl Handshakes {
    pub(crate) fn new() -> (Handshakes, mpsc::UnboundedReceiver<NewHandshake>) {
        let (arrivals, receiver) = mpsc::unbounded_channel();
        (Handshakes { arrivals, count: AtomicUsize::new(0) }, receiver)
    }

    /// Sends a new connection to its handshake.
    pub(crate) fn send(&self, new: NewHandshake) {
        self.count.fetch_add(1, SeqCst);
        if self.arrivals.send(new).is_err() {
            self.count_end();
        }
    }

    /// Counts one connection less: it was assigned to a worker, or has ended.
    pub(crate) fn count_end(&self) {
        self.count.fetch_sub(1, SeqCst);
    }
}

/// The shared state of a worker.
pub(crate) struct Member {
    pub(crate) arrivals: mpsc::UnboundedSender<Arrival>,
    pub(crate) connections: Arc<AtomicUsize>,
    /// The fraction of the last tick that it was working, in thousandths.
    pub(crate) busy: AtomicUsize,
}

impl Team {
    /// How many connections there are, with those in their handshake.
    pub(crate) fn connections(&self) -> usize {
        // IMPORTANT: handshakes first. One that ends meanwhile is counted twice then, and never not at all.
        let handshakes = self.handshakes.count.load(SeqCst);
        handshakes + self.members.iter().map(|member| member.connections.load(Relaxed)).sum::<usize>()
    }

    /// Sends a connection to the worker at work with the fewest connections.
    pub(crate) fn assign(&self, arrival: Arrival) {
        let at_work = self.members.iter().take(self.at_work.get());
        let Some(member) = at_work.min_by_key(|member| member.connections.load(Relaxed)) else { return };
        member.connections.fetch_add(1, Relaxed);
        if member.arrivals.send(arrival).is_err() {
            member.connections.fetch_sub(1, Relaxed);
        }
    }
}
