//! A proxy between a client and a server that cuts connections: at once, after so many bytes of a request or of a
//! reply, or at random. Knows nothing of what is said.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use wire::Random;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Request,
    Reply,
}

struct Shared {
    server: SocketAddr,
    cuts: AtomicUsize,
    refuses: AtomicBool,
    /// What is cut after so many more bytes of all connections.
    next: Mutex<Option<(Way, usize)>>,
    /// With it every connection is cut after a random number of bytes, in one of the two directions.
    random: Option<Mutex<Random>>,
    cut_all: broadcast::Sender<()>,
    /// Connections up to this number are frozen.
    frozen: AtomicUsize,
    accepted: AtomicUsize,
}

const BYTES_MAX: usize = 4000;

impl Proxy {
    pub(crate) async fn start(server: SocketAddr, random: Option<Random>) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            cuts: AtomicUsize::new(0),
            refuses: AtomicBool::new(false),
            next: Mutex::new(None),
            random: random.map(Mutex::new),
            cut_all: broadcast::channel(1).0,
            frozen: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Proxy { address, shared, accepting }
    }

    /// How many connections were cut.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts.load(SeqCst)
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        _ = self.shared.cut_all.send(()); // which fails if there are none
    }

    /// Cuts a connection when so many more bytes have passed in all.
    pub(crate) fn cut_after(&self, way: Way, bytes: usize) {
        *self.shared.next.lock().unwrap() = Some((way, bytes));
    }

    /// Lets nothing pass any more on the connections that are there, without an end that their clients could see.
    pub(crate) fn freeze(&self) {
        self.shared.frozen.store(self.shared.accepted.load(SeqCst), SeqCst);
    }

    /// Ends every new connection at once, or does not.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.shared.refuses.store(refuses, SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (client, _) = listener.accept().await.unwrap();
        if !shared.refuses.load(SeqCst) {
            tokio::spawn(relay(client, shared.clone()));
        }
    }
}

async fn relay(client: TcpStream, shared: Arc<Shared>) {
    let mut cut_all = shared.cut_all.subscribe();
    let number = shared.accepted.fetch_add(1, SeqCst) + 1;
    let Ok(server) = TcpStream::connect(shared.server).await else { return };
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    let limit = shared.random.as_ref().map(|random| {
        let mut random = random.lock().unwrap();
        (random.pick(&[Way::Request, Way::Reply]), random.below(BYTES_MAX))
    });
    let limit_of = |way| limit.filter(|(limited, _)| *limited == way).map_or(usize::MAX, |(_, bytes)| bytes);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        () = copy(number, Way::Request, from_client, to_server, limit_of(Way::Request), &shared) => {}
        () = copy(number, Way::Reply, from_server, to_client, limit_of(Way::Reply), &shared) => {}
        _ = cut_all.recv() => {}
    }
    shared.cuts.fetch_add(1, SeqCst);
}

async fn copy(
    number: usize,
    way: Way,
    mut source: OwnedReadHalf,
    mut target: OwnedWriteHalf,
    mut left: usize,
    shared: &Shared,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(read @ 1..) = source.read(&mut buffer).await {
        if number <= shared.frozen.load(SeqCst) {
            continue;
        }
        let passed = shared.allowed(way, read.min(left));
        left -= passed;
        if target.write_all(&buffer[..passed]).await.is_err() || passed < read {
            return;
        }
    }
}

impl Shared {
    /// How many of these bytes pass before the connection is cut.
    fn allowed(&self, way: Way, count: usize) -> usize {
        let mut next = self.next.lock().unwrap();
        match &mut *next {
            Some((cut, left)) if *cut == way => {
                let passed = count.min(*left);
                *left -= passed;
                if passed < count {
                    *next = None;
                }
                passed
            }
            _ => count,
        }
    }
}
