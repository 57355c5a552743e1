//! One connection of the Sentinel port: reads requests, writes replies and messages, within limits of time and bytes.
//! Refuses to know what a request means.

use super::command::After;
use super::room::{Place, Room};
use super::run::run;
use super::session::Session;
use super::topology::Message;
use crate::network::{Stream, Transport};
use resp::{Limits, Scan, Scanner};
use std::future::poll_fn;
use std::io::{ErrorKind, Result};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{timeout, timeout_at};

/// The time in which a first request must have come, a request be complete, and a reply be taken.
const SECONDS_MAX: Duration = Duration::from_secs(10);
/// The most bytes that are kept of a request that is not complete, so the longest request.
const REQUEST_BYTES_MAX: usize = 16 * 1024;
/// The most words of a request, and the longest word.
const WORDS_MAX: usize = 128;
const WORD_BYTES_MAX: usize = 4 * 1024;
/// Replies are sent when there are so many bytes of them.
const SEND_BYTES: usize = 16 * 1024;

/// Serves a client until it leaves, or is too slow.
pub(super) async fn serve(
    room: Rc<Room>,
    mut stream: Stream,
    (id, place, messages): (u64, Rc<Place>, mpsc::Receiver<Rc<Message>>),
    peer: SocketAddr,
) {
    let mut session = Session::new(id, peer, stream.local_address());
    let handshake = timeout(SECONDS_MAX, poll_fn(|cx| stream.poll_handshake(cx)));
    let Ok(Ok(names)) = handshake.await else { return };
    session.log_in_by_certificate(&room, &names);
    let mut connection = Connection {
        room,
        stream,
        session,
        place,
        messages,
        scanner: Scanner::default(),
        input: Vec::new(),
        output: Vec::new(),
        unfinished_since: Some(Instant::now()),
    };
    // What a client does wrong is its own affair.
    let _ = connection.converse().await;
    connection.stream.close();
}

struct Connection {
    room: Rc<Room>,
    stream: Stream,
    session: Session,
    place: Rc<Place>,
    messages: mpsc::Receiver<Rc<Message>>,
    scanner: Scanner,
    input: Vec<u8>,
    output: Vec<u8>,
    /// A request has begun then, or the client was to send its first one.
    unfinished_since: Option<Instant>,
}

enum Arrived {
    Bytes(usize),
    Message(Option<Rc<Message>>),
}

impl Connection {
    async fn converse(&mut self) -> Result<()> {
        let mut buffer = [0; 4096];
        loop {
            match self.next(&mut buffer).await? {
                Arrived::Bytes(0) => return Ok(()),
                Arrived::Bytes(bytes) => {
                    self.place.active.set(Instant::now());
                    self.input.extend_from_slice(&buffer[..bytes]);
                    if !self.answer().await? {
                        return self.send().await;
                    }
                }
                Arrived::Message(Some(message)) => self.session.deliver(&message, &mut self.output),
                // It has not taken its messages.
                Arrived::Message(None) => return Ok(()),
            }
            self.send().await?;
            // Other clients have their turn, however much this one sends.
            tokio::task::yield_now().await;
        }
    }

    /// Waits for bytes of the client, or for a message to it.
    async fn next(&mut self, buffer: &mut [u8]) -> Result<Arrived> {
        let deadline = self.unfinished_since.map(|since| tokio::time::Instant::from_std(since + SECONDS_MAX));
        let (stream, messages) = (&mut self.stream, &mut self.messages);
        let arrived = async {
            tokio::select! {
                biased;
                message = messages.recv() => Arrived::Message(message),
                bytes = poll_fn(|cx| stream.poll_receive(buffer, cx)) => Arrived::Bytes(bytes),
            }
        };
        match deadline {
            Some(deadline) => timeout_at(deadline, arrived).await.map_err(|_| ErrorKind::TimedOut.into()),
            None => Ok(arrived.await),
        }
    }

    /// Answers the requests that have come. False if the connection is to be closed.
    async fn answer(&mut self) -> Result<bool> {
        let mut at = 0;
        let goes_on = loop {
            let limits = Limits {
                inline_bytes_max: WORD_BYTES_MAX,
                args_max: WORDS_MAX,
                bulk_bytes_max: WORD_BYTES_MAX,
                unauthenticated: !self.session.is_authenticated(&self.room),
            };
            let after = match self.scanner.scan(&self.input[at..], &limits) {
                Scan::Complete(request, bytes) => {
                    at += bytes;
                    run(&self.room, &mut self.session, request, &mut self.output)
                }
                Scan::Empty(bytes) => {
                    at += bytes;
                    After::GoOn
                }
                Scan::Incomplete(_) => break self.input.len() - at <= REQUEST_BYTES_MAX,
                Scan::Broken(error) => {
                    self.output.extend_from_slice(format!("-ERR {error}\r\n").as_bytes());
                    break false;
                }
            };
            self.place.listens.set(self.session.is_listening());
            match after {
                After::GoOn => {}
                After::Pause(pause) => tokio::time::sleep(pause).await,
                After::Close => break false,
            }
            if self.output.len() >= SEND_BYTES {
                self.send().await?;
            }
        };
        self.input.drain(..at);
        self.unfinished_since = match (self.input.is_empty(), self.unfinished_since) {
            (true, _) => None,
            // The rest of what has come is a new request.
            (false, Some(since)) if at == 0 => Some(since),
            (false, _) => Some(Instant::now()),
        };
        if self.input.is_empty() {
            self.input.shrink_to(SEND_BYTES);
        }
        self.scanner.shrink();
        Ok(goes_on)
    }

    /// Sends what is written. An error if the client does not take it.
    async fn send(&mut self) -> Result<()> {
        let deadline = tokio::time::Instant::now() + SECONDS_MAX;
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.send(&self.output[sent..]) {
                Ok(bytes) => sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let stream = &self.stream;
                    timeout_at(deadline, poll_fn(|cx| stream.poll_writable(cx)))
                        .await
                        .map_err(|_| std::io::Error::from(ErrorKind::TimedOut))??;
                }
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.output.shrink_to(SEND_BYTES);
        Ok(())
    }
}
