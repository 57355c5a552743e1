//! The workers' view of each other: how many connections each has, and how a connection is sent to one. Knows nothing
//! of what a worker does.

use super::balance::AtWork;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::sync::mpsc;

/// A connection on its way to a worker.
pub(crate) enum Arrival {
    /// From the listener, with the configuration of its TLS.
    New { stream: std::net::TcpStream, peer: SocketAddr, tls: Option<Arc<tls::Context>> },
    /// From another worker. Called on the thread of the new worker, where the connection continues.
    Moved(Box<dyn FnOnce(Arc<AtomicUsize>) -> std::io::Result<()> + Send>),
}

/// The workers' view of each other.
pub(crate) struct Team {
    pub(crate) members: Vec<Member>,
    pub(crate) at_work: AtWork,
}

/// The shared state of a worker.
pub(crate) struct Member {
    pub(crate) arrivals: mpsc::UnboundedSender<Arrival>,
    pub(crate) connections: Arc<AtomicUsize>,
    /// The fraction of the last tick that it was working, in thousandths.
    pub(crate) busy: AtomicUsize,
}

impl Team {
    /// How many connections there are.
    pub(crate) fn connections(&self) -> usize {
        self.members.iter().map(|member| member.connections.load(Relaxed)).sum()
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
