//! One client's connection as a task of its worker, and its move to another worker. Knows nothing of what is in the
//! buffers.

use super::local::{Local, try_with_local, with_local};
use super::peer::Peer;
use super::socket::{Socket, TaskWaker};
use super::state::ConnectionState;
use super::stream::Stream;
use super::team::Arrival;
use super::transport::Transport;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

/// A connection at a worker. Call [`Connection::end`] when it ends.
pub(super) struct Connection<T: Transport> {
    /// The stream, until the first poll, which is the first moment on the worker's thread.
    arrival: Option<(T, SocketAddr)>,
    peer: Option<Peer<T>>,
    /// Its handle wakes this task.
    registered: bool,
}

impl<T: Transport> Connection<T> {
    pub(super) fn new(stream: T, address: SocketAddr) -> Connection<T> {
        Connection { arrival: Some((stream, address)), peer: None, registered: false }
    }

    /// Runs the connection. Ready when it has ended here; the result says whether it moves to another worker.
    // By this name `scripts/instructions` finds what connections do.
    #[inline(never)]
    pub(super) fn poll(&mut self, local: &mut Local<T>, cx: &mut Context<'_>) -> Poll<Option<Moving<T>>> {
        if let Some((stream, address)) = self.arrival.take() {
            self.peer = Some(Peer::start(local, stream, address));
        }
        if let Some(peer) = &self.peer
            && !std::mem::replace(&mut self.registered, true)
        {
            local.sockets[peer.socket].task.register(cx.waker());
        }
        if let Some(peer) = self.peer.take_if(|peer| peer.may_leave(local)) {
            return Poll::Ready(Moving::leave(peer, local));
        }
        self.peer.as_mut().map_or(Poll::Ready(()), |peer| peer.poll(local, cx)).map(|()| None)
    }

    /// True when a script of its client may be running on another thread.
    #[cfg(test)]
    pub(super) fn may_run_script(&self, local: &Local<T>) -> bool {
        let state = self.peer.as_ref().map(|peer| &local.sockets[peer.socket].state);
        state.is_some_and(|state| state.runs_script() || matches!(state, ConnectionState::Closing))
    }

    /// Removes the connection from its worker, unless it has moved.
    pub(super) fn end(&mut self, local: &mut Local<T>) {
        let Some(mut peer) = self.peer.take() else { return };
        let mut socket = local.sockets.remove(peer.socket);
        socket.stream.close();
        peer.unregister(&local.engine, &socket.state);
        local.give_buffer(socket.output);
    }
}

/// A connection between two workers.
pub(super) struct Moving<T: Transport> {
    stream: T::Detached,
    peer: Peer<T>,
    task: Arc<TaskWaker>,
    /// The error that it gets before it is closed, if it is refused.
    refusal: Option<String>,
}

impl<T: Transport> Moving<T> {
    /// A connection that has no worker yet.
    pub(super) fn new(stream: T::Detached, peer: Peer<T>, task: Arc<TaskWaker>, refusal: Option<String>) -> Moving<T> {
        Moving { stream, peer, task, refusal }
    }

    /// Removes the connection from its worker.
    fn leave(mut peer: Peer<T>, local: &mut Local<T>) -> Option<Moving<T>> {
        let socket = local.sockets.remove(peer.socket);
        local.give_buffer(socket.output);
        match socket.stream.detach() {
            Ok(stream) => Some(Moving { stream, peer, task: socket.task, refusal: None }),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be moved");
                peer.unregister(&local.engine, &socket.state);
                None
            }
        }
    }

    /// Continues at another worker, on whose thread this is called.
    pub(super) fn arrive(self, local: &mut Local<T>) -> std::io::Result<Connection<T>> {
        let Moving { stream, mut peer, task, refusal } = self;
        let stream = T::attach(stream).inspect_err(|_| peer.unregister(&local.engine, &ConnectionState::Running))?;
        let mut socket = Socket::new(stream, peer.client.handle.clone(), task);
        if let Some(error) = refusal {
            socket.refuse(&error);
        }
        peer.socket = local.sockets.insert(socket);
        Ok(Connection { arrival: None, peer: Some(peer), registered: false })
    }
}

impl Moving<Stream> {
    /// Continues as a task at the worker that it arrives at.
    pub(super) fn into_arrival(self) -> Arrival {
        Arrival::Moved(Box::new(move |connections| {
            let connection = with_local(|local| self.arrive(local))?;
            tokio::spawn(ConnectionTask { connection, connections });
            Ok(())
        }))
    }
}

/// A connection as a task of its worker's runtime.
pub(super) struct ConnectionTask {
    connection: Connection<Stream>,
    /// The worker's number of connections.
    connections: Arc<AtomicUsize>,
}

impl ConnectionTask {
    pub(super) fn new(connection: Connection<Stream>, connections: Arc<AtomicUsize>) -> ConnectionTask {
        ConnectionTask { connection, connections }
    }
}

impl Future for ConnectionTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        with_local(|local| {
            this.connection.poll(local, cx).map(|moving| {
                if let Some(moving) = moving {
                    local.team.assign(moving.into_arrival());
                }
            })
        })
    }
}

impl Drop for ConnectionTask {
    fn drop(&mut self) {
        self.connections.fetch_sub(1, Relaxed);
        // When the runtime drops the task while the worker ends, there is no worker any more.
        let _ = try_with_local(|local| self.connection.end(local));
    }
}
