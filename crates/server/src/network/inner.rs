//! Connections that begin in this process: a pair of sockets, of which a worker serves one like that of any client. Knows how
//! such a connection comes to a worker; refuses to know what is sent over it.

use super::connection::Moving;
use super::peer::Peer;
use super::socket::TaskWaker;
use super::stream::Stream;
use super::team::Team;
use super::transport::Transport;
use engine::Engine;
use engine::acl::User;
use std::io::Result;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Opens a connection for a peer at this address, as this user, or as any new connection is. Called where a runtime of tokio is.
///
/// It is not refused by `maxclients`: an operator wants in when all places are taken.
pub(crate) fn open(
    engine: &Arc<Engine>,
    team: &Team,
    address: SocketAddr,
    user: Option<Arc<User>>,
) -> Result<UnixStream> {
    let (near, far) = UnixStream::pair()?;
    far.set_nonblocking(true)?;
    // A worker only reads, writes and polls: for that the kind of socket makes no difference.
    let stream = Stream::plain(TcpStream::from(OwnedFd::from(far)))?;
    let task = Arc::new(TaskWaker::default());
    let mut peer = Peer::register(engine, &stream, address, task.clone());
    let begun = match user {
        Some(user) => peer.client.become_user(user),
        None => peer.client.begin_as_default(&engine.acl),
    };
    let refusal = begun.err().map(|error| {
        engine.clients.count_rejected();
        error.to_string()
    });
    match stream.detach() {
        Ok(stream) => team.assign(Moving::new(stream, peer, task, refusal).into_arrival()),
        Err(error) => {
            peer.unregister(engine, &super::state::ConnectionState::Running);
            return Err(error);
        }
    }
    Ok(near)
}
