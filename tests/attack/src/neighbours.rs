//! Clients that pipeline without pause, some of which never read a reply: the others must be served all the same. Knows
//! nothing of what the server replies.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use wire::{Random, split_args};

use crate::talk::encode;

/// What one neighbour sends, again and again.
const LINES: &[&str] = &[
    "PING",
    "GET str:short",
    "GET str:long",
    "SET flood:1 value",
    "INCR flood:2",
    "HGETALL hash:small",
    "HSET flood:3 updated_at 1 f2 two",
    "LRANGE list:large 0 -1",
    "ZRANGE idx:updated_at 0 3",
    "EVAL \"return redis.call('GET', KEYS[1])\" 1 str:short",
    "PUBLISH ch:1 message",
];
/// Requests that go out in one piece.
const PIECE_REQUESTS: usize = 600;
/// How much one that does not read sends before it hangs up and comes again. The replies are held by the server.
const UNREAD_BYTES_MAX: usize = 4 << 20;
const PAUSE: Duration = Duration::from_micros(200);

/// Pipelines until the round is over. A connection that is closed is opened again.
pub(crate) fn flood(address: SocketAddr, mut random: Random, reads: bool, is_over: &dyn Fn() -> bool) {
    while !is_over() {
        let requests: Vec<_> =
            (0..PIECE_REQUESTS).map(|_| split_args(random.pick(LINES)).expect("a line of the table above")).collect();
        let piece = encode(&requests);
        if let Ok(socket) = TcpStream::connect(address) {
            pipeline(socket, &piece, reads, is_over);
        }
        // No server, or one that closes connections: others find out which.
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends the piece over and over, until the connection is closed or enough was sent.
fn pipeline(mut socket: TcpStream, piece: &[u8], reads: bool, is_over: &dyn Fn() -> bool) {
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    let mut buffer = vec![0; 64 << 10];
    let (mut sent, mut idle) = (0, 0);
    while !is_over() {
        let written = match socket.write(&piece[sent % piece.len()..]) {
            Ok(len) => len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => return,
        };
        sent += written;
        let read = match reads.then(|| socket.read(&mut buffer)) {
            None => 0,
            Some(Ok(0)) => return,
            Some(Ok(len)) => len,
            Some(Err(error)) if error.kind() == ErrorKind::WouldBlock => 0,
            Some(Err(_)) => return,
        };
        // The server may stop reading from one that does not read: half a second of that is enough.
        if !reads && (sent > UNREAD_BYTES_MAX || idle > 2_500) {
            return;
        }
        if written + read > 0 {
            idle = 0;
            continue;
        }
        idle += 1;
        thread::sleep(PAUSE);
    }
}
