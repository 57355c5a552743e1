//! A proxy between two processes that cuts their connections or holds them up. Knows requests only by a word that is in them.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    rules: Arc<Rules>,
}

/// What the proxy does beside carrying bytes.
#[derive(Default)]
struct Rules {
    /// A request with this word ends its connection.
    refused: Mutex<Option<&'static [u8]>>,
    /// A request with this word is held up for so long.
    held_up: Mutex<Option<(&'static [u8], Duration)>>,
    /// The request with this word is carried, its reply is not: the connection is cut. Once.
    unanswered: Mutex<Option<&'static [u8]>>,
    /// How often a rule was applied.
    applied: AtomicU64,
}

impl Proxy {
    pub(crate) fn to(target: SocketAddr) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("cannot bind to a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let rules: Arc<Rules> = Arc::default();
        let (kept, of_connections) = (open.clone(), rules.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A target that is down closes what comes to it.
                let Ok(server) = TcpStream::connect(target) else { continue };
                let pair = |from: &TcpStream, to: &TcpStream| Some((from.try_clone().ok()?, to.try_clone().ok()?));
                let (Some(there), Some(back)) = (pair(&client, &server), pair(&server, &client)) else { continue };
                // Replies of this connection are no longer carried.
                let is_silent: Arc<AtomicBool> = Arc::default();
                let (rules, silent) = (of_connections.clone(), is_silent.clone());
                thread::spawn(move || carry(there, |bytes| rules.request(bytes, &silent)));
                let rules = of_connections.clone();
                thread::spawn(move || carry(back, |_| rules.reply(&is_silent)));
                kept.lock().expect("no test panics here").extend([client, server]);
            }
        });
        Proxy { address, open, rules }
    }

    /// Breaks every connection, with what is on its way.
    pub(crate) fn cut(&self) {
        for socket in self.open.lock().expect("no test panics here").drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Cuts each connection with a request that has this word.
    pub(crate) fn refuse(&self, word: Option<&'static [u8]>) {
        *self.rules.refused.lock().expect("no test panics here") = word;
    }

    /// Holds up each request with this word.
    pub(crate) fn hold_up(&self, word: &'static [u8], time: Duration) {
        *self.rules.held_up.lock().expect("no test panics here") = Some((word, time));
    }

    /// Lets the next request with this word through, and cuts the connection before its reply.
    pub(crate) fn lose_reply_to(&self, word: &'static [u8]) {
        *self.rules.unanswered.lock().expect("no test panics here") = Some(word);
    }

    /// How many requests were held up or left without a reply.
    pub(crate) fn applied(&self) -> u64 {
        self.rules.applied.load(Relaxed)
    }
}

impl Rules {
    /// Called with bytes of a client before they are carried; false ends the connection.
    fn request(&self, bytes: &[u8], is_silent: &AtomicBool) -> bool {
        let has = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        if self.refused.lock().expect("no test panics here").is_some_and(has) {
            return false;
        }
        let held_up = *self.held_up.lock().expect("no test panics here");
        if let Some((_, time)) = held_up.filter(|(word, _)| has(word)) {
            self.applied.fetch_add(1, Relaxed);
            thread::sleep(time);
        }
        let mut unanswered = self.unanswered.lock().expect("no test panics here");
        if unanswered.is_some_and(has) {
            *unanswered = None;
            self.applied.fetch_add(1, Relaxed);
            is_silent.store(true, Relaxed);
        }
        true
    }

    /// Called with bytes of a server before they are carried; false ends the connection.
    fn reply(&self, is_silent: &AtomicBool) -> bool {
        !is_silent.load(Relaxed)
    }
}

fn carry((mut from, mut to): (TcpStream, TcpStream), passes: impl Fn(&[u8]) -> bool) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !passes(&buffer[..count]) || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
