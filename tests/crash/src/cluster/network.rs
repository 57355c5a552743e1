//! The links between the processes of a cluster: each is a proxy that can be cut, fall silent, become slow, and drop or
//! repeat the acknowledgements of NATS. Knows where messages of the NATS protocol end; refuses to know what they mean,
//! but for acknowledgements.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// One end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Party {
    Holdfast(usize),
    Nats(usize),
}

/// What a link does with what is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passage {
    Open = 0,
    /// Connections are closed, and new ones too.
    Cut = 1,
    /// Nothing arrives, and nobody is told. What was sent arrives when the link is open again, as with TCP.
    Silent = 2,
}

/// What becomes of the acknowledgements of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acks {
    Pass = 0,
    Drop = 1,
    Repeat = 2,
}

pub(crate) struct Network {
    /// Where links listen.
    at: Ipv4Addr,
    links: Vec<Link>,
}

struct Link {
    from: Party,
    to: Party,
    address: SocketAddr,
    state: Arc<State>,
}

struct State {
    target: SocketAddr,
    /// What the client side receives are messages of NATS for clients.
    is_client_link: bool,
    passage: AtomicU8,
    acks: AtomicU8,
    delay_ms: AtomicU64,
    acks_changed: AtomicU64,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Network {
    pub(crate) fn new(at: Ipv4Addr) -> Network {
        Network { at, links: Vec::new() }
    }

    /// Adds a link and returns where `from` has to connect to reach `to`, which listens at `target`.
    pub(crate) fn link(&mut self, from: Party, to: Party, target: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind((self.at, 0)).expect("a port is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(State {
            target,
            is_client_link: matches!(from, Party::Holdfast(_)),
            passage: AtomicU8::new(Passage::Open as u8),
            acks: AtomicU8::new(Acks::Pass as u8),
            delay_ms: AtomicU64::new(0),
            acks_changed: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let accepting = state.clone();
        thread::spawn(move || accepting.accept(&listener));
        self.links.push(Link { from, to, address, state });
        address
    }

    fn between<'a>(&'a self, chosen: &'a dyn Fn(Party, Party) -> bool) -> impl Iterator<Item = &'a State> {
        self.links
            .iter()
            .filter(|link| chosen(link.from, link.to) || chosen(link.to, link.from))
            .map(|link| &*link.state)
    }

    /// Changes the links between two parties for which `chosen` holds, in either order.
    pub(crate) fn set_passage(&self, chosen: &dyn Fn(Party, Party) -> bool, passage: Passage) {
        for state in self.between(chosen) {
            state.passage.store(passage as u8, Ordering::SeqCst);
            if passage == Passage::Cut {
                state.close_all();
            }
        }
    }

    pub(crate) fn set_delay(&self, chosen: &dyn Fn(Party, Party) -> bool, delay: Duration) {
        self.between(chosen).for_each(|state| state.delay_ms.store(delay.as_millis() as u64, Ordering::SeqCst));
    }

    pub(crate) fn set_acks(&self, chosen: &dyn Fn(Party, Party) -> bool, acks: Acks) {
        self.between(chosen).for_each(|state| state.acks.store(acks as u8, Ordering::SeqCst));
    }

    /// How many acknowledgements were dropped or repeated so far.
    pub(crate) fn acks_changed(&self) -> u64 {
        self.links.iter().map(|link| link.state.acks_changed.load(Ordering::SeqCst)).sum()
    }

    pub(crate) fn heal(&self) {
        let all = |_, _| true;
        self.set_passage(&all, Passage::Open);
        self.set_delay(&all, Duration::ZERO);
        self.set_acks(&all, Acks::Pass);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for link in &self.links {
            link.state.is_over.store(true, Ordering::SeqCst);
            link.state.close_all();
            // The thread that accepts sees that it is over.
            drop(TcpStream::connect(link.address));
        }
    }
}

impl State {
    fn is(&self, passage: Passage) -> bool {
        self.passage.load(Ordering::SeqCst) == passage as u8
    }

    fn close_all(&self) {
        for socket in self.open.lock().expect("no thread panicked with it").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn accept(self: Arc<State>, listener: &TcpListener) {
        for near in listener.incoming() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let Ok(near) = near else { continue };
            if self.is(Passage::Cut) {
                continue;
            }
            let link = self.clone();
            thread::spawn(move || link.serve(near));
        }
    }

    fn serve(self: Arc<State>, near: TcpStream) {
        // Nobody answers over a silent link.
        self.wait_until_open();
        let Ok(far) = TcpStream::connect(self.target) else { return };
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let both = [near.try_clone(), near.try_clone(), far.try_clone(), far.try_clone()];
        let [Ok(near_in), Ok(near_kept), Ok(far_in), Ok(far_kept)] = both else { return };
        self.open.lock().expect("no thread panicked with it").extend([near_kept, far_kept]);
        // It may have been cut before these could be closed.
        if self.is(Passage::Cut) {
            self.close_all();
        }
        let outward = self.clone();
        thread::spawn(move || outward.pump(near_in, far, false));
        let is_client_link = self.is_client_link;
        self.pump(far_in, near, is_client_link);
    }

    fn wait_until_open(&self) {
        while self.is(Passage::Silent) && !self.is_over.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Passes bytes on until either side closes.
    fn pump(&self, mut from: TcpStream, mut to: TcpStream, has_acks: bool) {
        let mut messages = has_acks.then(Messages::default);
        let mut bytes = vec![0; 64 * 1024];
        while let Ok(len @ 1..) = from.read(&mut bytes) {
            self.wait_until_open();
            let delay_ms = self.delay_ms.load(Ordering::SeqCst);
            if delay_ms > 0 {
                thread::sleep(Duration::from_millis(delay_ms));
            }
            let passed = match &mut messages {
                None => to.write_all(&bytes[..len]),
                Some(messages) => messages.add(&bytes[..len], |message| self.pass(message, &mut to)),
            };
            if passed.is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    fn pass(&self, message: &[u8], to: &mut TcpStream) -> io::Result<()> {
        let acks = self.acks.load(Ordering::SeqCst);
        let times = match is_ack(message) {
            true if acks == Acks::Drop as u8 => 0,
            true if acks == Acks::Repeat as u8 => 2,
            _ => 1,
        };
        if times != 1 {
            self.acks_changed.fetch_add(1, Ordering::SeqCst);
        }
        (0..times).try_for_each(|_| to.write_all(message))
    }
}

/// Splits what a NATS server sends to a client into messages.
#[derive(Default)]
struct Messages {
    rest: Vec<u8>,
}

impl Messages {
    fn add(&mut self, bytes: &[u8], mut pass: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        self.rest.extend_from_slice(bytes);
        let mut begin = 0;
        while let Some(len) = message_len(&self.rest[begin..]) {
            pass(&self.rest[begin..begin + len])?;
            begin += len;
        }
        self.rest.drain(..begin);
        Ok(())
    }
}

/// The length of the first message, if it is complete: a line, and the payload that the line's last word counts.
fn message_len(bytes: &[u8]) -> Option<usize> {
    let line_len = bytes.windows(2).position(|end| end == b"\r\n")? + 2;
    let line = &bytes[..line_len - 2];
    let payload = match line.starts_with(b"MSG ") || line.starts_with(b"HMSG ") {
        true => {
            let last = line.rsplit(|byte| *byte == b' ').next().and_then(|word| std::str::from_utf8(word).ok());
            last.and_then(|word| word.parse::<usize>().ok()).map_or(0, |len| len + 2)
        }
        false => 0,
    };
    (bytes.len() >= line_len + payload).then_some(line_len + payload)
}

/// True for the acknowledgement of a message that a stream has stored.
fn is_ack(message: &[u8]) -> bool {
    let Some(line_len) = message.windows(2).position(|end| end == b"\r\n") else { return false };
    let payload = &message[line_len + 2..];
    message.starts_with(b"MSG ") && payload.starts_with(b"{\"stream\":") && contains(payload, b"\"seq\":")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_split_where_they_end_and_acknowledgements_are_known() {
        let ack = b"MSG _INBOX.a.b 1 29\r\n{\"stream\":\"S\", \"seq\":1234567}\r\n".as_slice();
        let sent =
            [b"INFO {}\r\nPING\r\n".as_slice(), b"MSG a 1 r 4\r\na\r\nb\r\n", b"HMSG a 1 4 6\r\nab\r\ncd\r\n", ack]
                .concat();
        for split in 0..sent.len() {
            let (mut messages, mut found) = (Messages::default(), Vec::new());
            for part in [&sent[..split], &sent[split..]] {
                let take = |message: &[u8]| {
                    found.push(message.to_vec());
                    Ok(())
                };
                messages.add(part, take).expect("nothing fails");
            }
            assert_eq!(found.len(), 5, "split at {split}");
            assert_eq!(found.concat(), sent);
            assert_eq!(
                found.iter().map(|message| is_ack(message)).collect::<Vec<_>>(),
                [false, false, false, false, true]
            );
        }
    }

    #[test]
    fn a_link_can_be_cut_and_healed() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut network = Network::new(Ipv4Addr::LOCALHOST);
        let address = network.link(Party::Nats(0), Party::Nats(1), server.local_addr().unwrap());
        let talk = || -> io::Result<u8> {
            let mut client = TcpStream::connect(address)?;
            client.write_all(b"x")?;
            client.set_read_timeout(Some(Duration::from_secs(20)))?;
            server.set_nonblocking(true)?;
            let mut byte = [0];
            loop {
                if let Ok((mut accepted, _)) = server.accept() {
                    accepted.set_nonblocking(false)?;
                    accepted.read_exact(&mut byte)?;
                    accepted.write_all(&byte)?;
                    client.read_exact(&mut byte)?;
                    return Ok(byte[0]);
                }
                client.set_nonblocking(true)?;
                match client.read(&mut byte) {
                    Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                    Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
                    _ => client.set_nonblocking(false)?,
                }
            }
        };
        assert_eq!(talk().unwrap(), b'x');
        network.set_passage(&|_, _| true, Passage::Cut);
        assert!(talk().is_err());
        network.heal();
        assert_eq!(talk().unwrap(), b'x');
    }
}
