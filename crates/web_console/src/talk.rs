//! Runs commands as a client of this server: over a connection that a worker serves like any other. So access control, gates,
//! slices, durability, MONITOR and the slow log are those of clients, and a command that waits holds nobody up. Knows time and
//! size limits; refuses to know what is asked.

use crate::reply::{Reader, Reply, Unreadable};
use engine::acl::User;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream as Socket;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::Instant;

/// Opens a connection to this server: for a browser at this address, as this user. Without a user it is as any new connection.
pub type Opener = Box<dyn Fn(SocketAddr, Option<Arc<User>>) -> io::Result<Socket> + Send + Sync>;

/// The time that all commands of one page may take. Shorter than the life of a connection of the admin port.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(6);
/// The most bytes of all replies to one page.
pub(crate) const REPLY_BYTES_MAX: usize = 8 << 20;

/// Why a command has no reply.
#[derive(Debug)]
pub(crate) enum Trouble {
    TooLate,
    TooLarge,
    /// The server has closed the connection: the client was killed, or the server stops.
    Closed,
    Failed(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::TooLate => write!(
                text,
                "There was no reply within {} seconds, so the console has hung up. What was sent may still be carried out.",
                TIME_MAX.as_secs()
            ),
            Trouble::TooLarge => {
                write!(text, "The reply is longer than {} MiB, and is not shown.", REPLY_BYTES_MAX >> 20)
            }
            Trouble::Closed => write!(text, "The server has closed the connection of the console."),
            Trouble::Failed(error) => write!(text, "The connection to the server has failed: {error}."),
        }
    }
}

/// A connection to this server for the time of one page.
pub(crate) struct Talk {
    socket: UnixStream,
    reader: Reader,
    until: Instant,
}

impl Talk {
    /// Wraps a connection.
    pub(crate) fn begin(socket: Socket) -> Result<Talk, Trouble> {
        socket.set_nonblocking(true).map_err(Trouble::Failed)?;
        let socket = UnixStream::from_std(socket).map_err(Trouble::Failed)?;
        Ok(Talk { socket, reader: Reader::new(REPLY_BYTES_MAX), until: Instant::now() + TIME_MAX })
    }

    /// Switches to RESP3, so that maps are maps, and to the database. Both are allowed for every user that has signed in.
    pub(crate) async fn set_up(&mut self, db: usize) -> Result<(), Trouble> {
        let mut requests = vec![request(&[b"HELLO", b"3", b"SETNAME", b"console"])];
        if db > 0 {
            requests.push(request(&[b"SELECT", db.to_string().as_bytes()]));
        }
        self.run(&requests).await.map(drop)
    }

    /// Sends requests, and reads a reply for each.
    pub(crate) async fn run(&mut self, requests: &[Vec<u8>]) -> Result<Vec<Reply>, Trouble> {
        match self.run_as_many(requests).await {
            (replies, None) => Ok(replies),
            (_, Some(trouble)) => Err(trouble),
        }
    }

    /// Sends requests: the replies that came, and why there are no more if some are missing.
    pub(crate) async fn run_as_many(&mut self, requests: &[Vec<u8>]) -> (Vec<Reply>, Option<Trouble>) {
        let until = self.until;
        let mut replies = Vec::new();
        let all = async {
            let sent = requests.concat();
            let (mut from, mut to) = self.socket.split();
            // IMPORTANT: at the same time. A server whose replies are not read stops reading requests.
            let (written, read) = tokio::join!(
                to.write_all(&sent),
                read_replies(&mut from, &mut self.reader, requests.len(), &mut replies)
            );
            read?;
            written.map_err(Trouble::Failed)
        };
        let done = tokio::time::timeout_at(until, all).await.unwrap_or(Err(Trouble::TooLate));
        (replies, done.err())
    }

    /// True when more can be asked without much of the time being used up.
    pub(crate) fn has_time(&self) -> bool {
        self.until.saturating_duration_since(Instant::now()) > TIME_MAX / 2
    }
}

async fn read_replies(
    from: &mut (impl AsyncReadExt + Unpin),
    reader: &mut Reader,
    count: usize,
    replies: &mut Vec<Reply>,
) -> Result<(), Trouble> {
    let mut buffer = vec![0; 64 << 10];
    let unreadable = |why| match why {
        Unreadable::TooLarge => Trouble::TooLarge,
        Unreadable::Malformed => Trouble::Failed(io::ErrorKind::InvalidData.into()),
    };
    while replies.len() < count {
        match reader.take().map_err(unreadable)? {
            // Nothing was asked for that is pushed, but invalidations of CLIENT TRACKING at the prompt are.
            Some(Reply::Push(_)) => {}
            Some(reply) => replies.push(reply),
            None => match from.read(&mut buffer).await.map_err(Trouble::Failed)? {
                0 => return Err(Trouble::Closed),
                len => reader.feed(&buffer[..len]).map_err(unreadable)?,
            },
        }
    }
    Ok(())
}

/// A request as bytes.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let owned: resp::OwnedRequest = words.iter().copied().collect();
    owned.as_request().encoded()
}
