//! One client's connection as a task of its worker, and its move to another worker. Knows nothing of what is in the buffers.

use super::local::{Local, try_with_local, with_local};
use super::peer::Peer;
use super::socket::{Socket, TaskWaker};
use super::team::Arrival;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

/// A connection as a task of its worker.
pub(crate) struct Connection {
    /// Until the first poll, which is the first moment on the worker's thread.
    arrival: Option<(TcpStream, SocketAddr)>,
    peer: Option<Peer>,
    connections: Arc<AtomicUsize>,
    /// Its handle wakes this task.
    registered: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream, peer: SocketAddr, connections: Arc<AtomicUsize>) -> Connection {
        Connection { arrival: Some((stream, peer)), peer: None, connections, registered: false }
    }
}

impl Future for Connection {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        with_local(|local| {
            if let Some((stream, address)) = this.arrival.take() {
                this.peer = Some(Peer::start(local, stream, address));
            }
            if let Some(peer) = &this.peer
                && !std::mem::replace(&mut this.registered, true)
            {
                local.sockets[peer.socket].task.register(cx.waker());
            }
            if let Some(peer) = this.peer.take_if(|peer| peer.may_leave(local)) {
                Moving::leave(peer, local);
                return Poll::Ready(());
            }
            this.peer.as_mut().map_or(Poll::Ready(()), |peer| peer.poll(local, cx))
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
        let Some(mut peer) = self.peer.take() else { return };
        // Dropped by the runtime while the worker ends, there is no worker any more.
        let _ = try_with_local(|local| {
            peer.unregister(&local.engine);
            let socket = local.sockets.remove(peer.socket);
            local.give_buffer(socket.output);
        });
    }
}

/// A connection between two workers.
struct Moving {
    stream: std::net::TcpStream,
    peer: Peer,
    task: Arc<TaskWaker>,
}

impl Moving {
    /// Takes the connection from its worker and sends it to another.
    fn leave(mut peer: Peer, local: &mut Local) {
        let socket = local.sockets.remove(peer.socket);
        local.give_buffer(socket.output);
        match socket.stream.into_std() {
            Ok(stream) => {
                let moving = Moving { stream, peer, task: socket.task };
                local.team.assign(Arrival::Moved(Box::new(move |connections| moving.arrive(connections))));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be moved");
                peer.unregister(&local.engine);
            }
        }
    }

    /// Goes on at another worker, on whose thread this is called.
    fn arrive(self, connections: Arc<AtomicUsize>) -> std::io::Result<()> {
        let Moving { stream, mut peer, task } = self;
        let handle = peer.client.handle.clone();
        let stream = TcpStream::from_std(stream).inspect_err(|_| with_local(|local| peer.unregister(&local.engine)))?;
        let socket = Socket::new(stream, handle, task);
        peer.socket = with_local(|local| local.sockets.insert(socket));
        tokio::spawn(Connection { arrival: None, peer: Some(peer), connections, registered: false });
        Ok(())
    }
}
