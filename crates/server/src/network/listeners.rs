//! Where the server listens: binds addresses, accepts connections or refuses them, and rebinds when `port` or `bind` is
//! changed. Knows sockets and addresses; refuses to know requests.

use super::team::{Arrival, Team};
use anyhow::{Context, Result, ensure};
use engine::{Engine, Settings};
use locks::{Mutex, rank};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long CONFIG SET waits for the old listeners to close.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Pause after a connection could be neither accepted nor refused.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// Binds a listener for each address of `bind`, at the start. When `port` is 0, the system picks one for all of them,
/// and `port` is set to it.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<std::net::TcpListener>> {
    let mut listeners: Vec<std::net::TcpListener> = Vec::new();
    for mut wanted in wanted(settings)? {
        wanted.address.set_port(settings.port());
        match listen(wanted.address) {
            Ok(listener) => {
                let port = listener.local_addr()?.port();
                settings.load(b"port", port.to_string().as_bytes()).map_err(anyhow::Error::msg)?;
                listeners.push(listener);
            }
            Err(error) if wanted.optional => {
                tracing::debug!(address = %wanted.address, %error, "optional address not available");
            }
            Err(error) => {
                return Err(error).with_context(|| {
                    let address = wanted.address;
                    format!(
                        "cannot listen on {address}; is another server running there? Try --port with another number"
                    )
                });
            }
        }
    }
    ensure!(!listeners.is_empty(), "bind names no address that this machine has");
    Ok(listeners)
}

/// An address of `bind`, with the port.
struct Wanted {
    address: SocketAddr,
    /// It may be missing.
    optional: bool,
}

/// The addresses of `bind`. As in Redis, `-` before an address means that it may be missing, and `*`
/// stands for all of them.
fn wanted(settings: &Settings) -> Result<Vec<Wanted>> {
    let port = settings.port();
    let bind = settings.bind();
    let mut wanted = Vec::new();
    for word in bind.split_whitespace() {
        let (optional, address) = match word.strip_prefix('-') {
            Some(address) => (true, address),
            None => (false, word),
        };
        let address = match address {
            "*" => "0.0.0.0",
            "::*" => "::",
            "localhost" => "127.0.0.1",
            other => other,
        };
        let ip: IpAddr = address.parse().with_context(|| format!("bind: '{address}' is not an IP address"))?;
        wanted.push(Wanted { address: SocketAddr::new(ip, port), optional });
    }
    Ok(wanted)
}

fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(511)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// The addresses that are listened to, and a channel to change them from any thread.
pub(crate) struct Listeners {
    addresses: Mutex<Vec<SocketAddr>, { rank::LISTENERS }>,
    changes: mpsc::UnboundedSender<Change>,
}

/// What the listening task is asked for.
pub(crate) enum Change {
    Rebind(Rebind),
    /// The sockets, for another process to go on with.
    Share(std::sync::mpsc::SyncSender<Vec<std::net::TcpListener>>),
}

/// A change of the addresses: listen to those in `add` and `keep`, and to no others.
pub(crate) struct Rebind {
    keep: Vec<SocketAddr>,
    add: Vec<std::net::TcpListener>,
    done: std::sync::mpsc::SyncSender<()>,
}

impl Listeners {
    /// Creates the list, with the channel on which [`listen_and_assign`] receives changes.
    pub(crate) fn new(listeners: &[std::net::TcpListener]) -> (Listeners, mpsc::UnboundedReceiver<Change>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (Listeners { addresses: Mutex::new(addresses_of(listeners)), changes }, receiver)
    }

    /// Listens to the addresses of `bind` and `port`; to none, as in Redis, when one of them is empty. On an error
    /// nothing changes.
    pub(crate) fn follow(&self, settings: &Settings) -> Result<()> {
        let mut wanted = wanted(settings)?;
        // Port 0 means no listeners.
        wanted.retain(|to| to.address.port() > 0);
        let mut addresses = self.addresses.lock();
        let old = addresses.clone();
        let keep: Vec<SocketAddr> =
            old.iter().copied().filter(|old| wanted.iter().any(|to| to.address == *old)).collect();
        let new: Vec<&Wanted> = wanted.iter().filter(|to| !keep.contains(&to.address)).collect();
        let added = match listen_to(&new) {
            Ok(added) => added,
            // The wildcard address and one address of it cannot both be bound: the old listeners may be in the way.
            Err(_) if overlaps(&new, &old) => {
                self.rebind(keep.clone(), Vec::new());
                match listen_to(&new) {
                    Ok(added) => added,
                    Err(error) => {
                        self.restore(&old, &keep);
                        return Err(error);
                    }
                }
            }
            Err(error) => return Err(error),
        };
        *addresses = [keep.as_slice(), &addresses_of(&added)].concat();
        self.rebind(keep, added);
        Ok(())
    }

    /// Listens with the sockets of another process, which has ended.
    pub(crate) fn adopt(&self, listeners: Vec<std::net::TcpListener>, settings: &Settings) -> Result<()> {
        for listener in &listeners {
            listener.set_nonblocking(true)?;
            let port = listener.local_addr()?.port();
            settings.load(b"port", port.to_string().as_bytes()).map_err(anyhow::Error::msg)?;
        }
        *self.addresses.lock() = addresses_of(&listeners);
        self.rebind(Vec::new(), listeners);
        Ok(())
    }

    /// The sockets that are listened on, for another process.
    pub(crate) fn share(&self) -> Vec<std::net::TcpListener> {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        match self.changes.send(Change::Share(send)) {
            Ok(()) => receive.recv_timeout(CLOSE_WITHIN).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Listens again to addresses that were closed for a change that failed.
    fn restore(&self, old: &[SocketAddr], kept: &[SocketAddr]) {
        let lost = old.iter().filter(|address| !kept.contains(address));
        let again = lost.filter_map(|address| {
            let tried = listen(*address);
            tried.inspect_err(|error| tracing::error!(%address, %error, "cannot listen on this address any more")).ok()
        });
        let again = again.collect();
        self.rebind(kept.to_vec(), again);
    }

    /// Sends the change to the listening thread, and waits until the old listeners are closed.
    fn rebind(&self, keep: Vec<SocketAddr>, add: Vec<std::net::TcpListener>) {
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        if self.changes.send(Change::Rebind(Rebind { keep, add, done })).is_ok() {
            let _ = wait.recv_timeout(CLOSE_WITHIN);
        }
    }
}

fn addresses_of(listeners: &[std::net::TcpListener]) -> Vec<SocketAddr> {
    listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
}

/// Binds a listener for each address, except for optional ones that cannot be bound.
fn listen_to(wanted: &[&Wanted]) -> Result<Vec<std::net::TcpListener>> {
    let mut listeners = Vec::new();
    for to in wanted {
        match listen(to.address) {
            Ok(listener) => listeners.push(listener),
            Err(_) if to.optional => {}
            Err(error) => {
                tracing::warn!(address = %to.address, %error, "cannot listen on this address");
                return Err(error.into());
            }
        }
    }
    Ok(listeners)
}

fn overlaps(new: &[&Wanted], old: &[SocketAddr]) -> bool {
    let clash = |new: &SocketAddr, old: &SocketAddr| {
        new.port() == old.port() && (new.ip().is_unspecified() || old.ip().is_unspecified())
    };
    new.iter().any(|new| old.iter().any(|old| clash(&new.address, old)))
}

/// A listener at work.
struct Listening {
    address: SocketAddr,
    /// The same socket, to be shared.
    socket: std::net::TcpListener,
    task: JoinHandle<()>,
}

/// Runs the listeners as long as the server runs.
pub(crate) async fn listen_and_assign(
    listeners: Vec<std::net::TcpListener>,
    mut changes: mpsc::UnboundedReceiver<Change>,
    engine: Arc<Engine>,
    team: Arc<Team>,
) {
    let mut tasks: Vec<Listening> = Vec::new();
    let mut add = listeners;
    loop {
        for listener in add {
            let Ok(address) = listener.local_addr() else { continue };
            let socket = listener.try_clone();
            match (TcpListener::from_std(listener), socket) {
                (Ok(listener), Ok(socket)) => {
                    let task = tokio::spawn(accept(listener, engine.clone(), team.clone()));
                    tasks.push(Listening { address, socket, task });
                }
                (Err(error), _) | (_, Err(error)) => {
                    tracing::error!(%address, %error, "cannot listen on this address");
                }
            }
        }
        let rebind = loop {
            match changes.recv().await {
                Some(Change::Rebind(rebind)) => break rebind,
                Some(Change::Share(send)) => {
                    let _ = send.send(tasks.iter().filter_map(|task| task.socket.try_clone().ok()).collect());
                }
                None => return,
            }
        };
        let (kept, closed): (_, Vec<_>) = tasks.into_iter().partition(|task| rebind.keep.contains(&task.address));
        tasks = kept;
        for Listening { task, .. } in closed {
            task.abort();
            // Once it has ended, its socket is closed.
            let _ = task.await;
        }
        add = rebind.add;
        let _ = rebind.done.send(());
    }
}

/// Accepts connections until the listener is closed.
async fn accept(listener: TcpListener, engine: Arc<Engine>, team: Arc<Team>) {
    let mut spare = spare_file();
    loop {
        let error = match listener.accept().await {
            Ok((stream, peer)) => {
                take(stream, peer, &engine, &team);
                continue;
            }
            Err(error) => error,
        };
        if is_out_of_files(&error) && spare.take().is_some() {
            // Closing the spare file frees a descriptor for one connection, to send it the reason of its refusal.
            let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
            if let Ok(Ok((stream, _))) = accepted
                && let Ok(stream) = stream.into_std()
            {
                refuse(&stream, &engine, b"-ERR max number of clients reached\r\n");
                drop(stream);
                spare = spare_file();
                continue;
            }
            spare = spare_file();
        }
        tracing::warn!(%error, "could not accept a connection");
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
        spare = spare.or_else(spare_file);
    }
}

/// An open file whose descriptor is used when there are no others.
fn spare_file() -> Option<File> {
    File::open("/dev/null").ok()
}

fn is_out_of_files(error: &std::io::Error) -> bool {
    let code = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(code, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
}

fn take(stream: tokio::net::TcpStream, peer: SocketAddr, engine: &Engine, team: &Team) {
    match stream.into_std() {
        Ok(stream) => welcome(stream, peer, engine, team),
        Err(error) => tracing::warn!(%peer, %error, "could not set up a connection"),
    }
}

/// The reply to clients from other machines while there is no password.
const DENIED: &[u8] = b"-DENIED Holdfast is running in protected mode: it has no password and takes connections from this \
machine only. To connect from elsewhere, set a password (requirepass), or turn protected-mode off if the network is safe.\r\n";

fn refuse(stream: &TcpStream, engine: &Engine, why: &[u8]) {
    engine.clients.count_rejected();
    let _ = (&*stream).write_all(why);
}

/// Sets up a connection and assigns it to a worker, unless there are too many.
fn welcome(stream: TcpStream, peer: SocketAddr, engine: &Engine, team: &Team) {
    let settings = &engine.settings;
    if team.connections() as u64 >= settings.maxclients() {
        return refuse(&stream, engine, b"-ERR max number of clients reached\r\n");
    }
    if settings.protected_mode() && engine.acl.default_needs_no_password() && !peer.ip().is_loopback() {
        tracing::warn!(%peer, "refused: protected mode is on and there is no password");
        return refuse(&stream, engine, DENIED);
    }
    let _ = stream.set_nodelay(true);
    if peer.ip().is_loopback() {
        // There is no network to be congested: the simplest congestion control costs least. Systems that default to BBR
        // would pace and time every reply to a client on the same machine.
        let _ = SockRef::from(&stream).set_tcp_congestion(b"reno");
    }
    let keepalive = settings.tcp_keepalive();
    if keepalive > 0 {
        let times = TcpKeepalive::new()
            .with_time(Duration::from_secs(keepalive))
            .with_interval(Duration::from_secs((keepalive / 3).max(1)))
            .with_retries(3);
        let _ = SockRef::from(&stream).set_tcp_keepalive(&times);
    }
    team.assign(Arrival::New { stream, peer });
}
