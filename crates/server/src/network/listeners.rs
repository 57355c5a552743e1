//! Where the server listens: binds addresses, accepts connections or refuses them, and rebinds when `port`, `tls-port` or
//! `bind` is changed. Knows sockets and addresses; refuses to know requests.

use super::team::{Arrival, NewHandshake, Team};
use super::tls_settings::{self, CurrentTls};
use crate::platform::sockets::ListeningSocket;
use anyhow::{Context, Result, ensure};
use engine::{Engine, Settings};
use locks::{Mutex, rank};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::fs::File;
use std::io::{ErrorKind, Write};
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

/// Binds a listener for each address of `bind`, at the start. When `port` and `tls-port` are 0, the system picks a port
/// for all of them, and `port` is set to it.
pub(crate) fn bind(settings: &Settings) -> Result<Vec<ListeningSocket>> {
    let mut listeners: Vec<ListeningSocket> = Vec::new();
    for mut wanted in wanted(settings)? {
        if !wanted.is_tls {
            wanted.address.set_port(settings.port());
        }
        match listen(wanted.address) {
            Ok(socket) => {
                if !wanted.is_tls {
                    let port = socket.local_addr()?.port();
                    settings.load(b"port", port.to_string().as_bytes()).map_err(anyhow::Error::msg)?;
                }
                listeners.push(ListeningSocket { socket, is_tls: wanted.is_tls });
            }
            Err(error) if wanted.optional => {
                tracing::debug!(address = %wanted.address, %error, "optional address not available");
            }
            Err(error) => {
                let advice = advice(&error);
                return Err(error).with_context(|| format!("cannot listen on {}{advice}", wanted.address));
            }
        }
    }
    ensure!(!settings.bind().trim().is_empty(), "bind is empty: give it the addresses to listen on");
    ensure!(!listeners.is_empty(), "bind names no address that this machine has");
    Ok(listeners)
}

/// What can be done about an address that cannot be listened on.
fn advice(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::AddrInUse => "; is another server running there? Try --port with another number",
        ErrorKind::AddrNotAvailable => {
            "; no network interface of this machine has this address: give --bind one that `ip address` shows, or * for all"
        }
        ErrorKind::PermissionDenied => "; ports below 1024 need a privilege: try --port with a higher number",
        _ => "",
    }
}

/// An address of `bind`, with a port.
struct Wanted {
    address: SocketAddr,
    is_tls: bool,
    /// It may be missing.
    optional: bool,
}

/// The addresses of `bind`, with `port` and with `tls-port` if that is set. With `tls-port` alone, connections without TLS
/// are not accepted.
fn wanted(settings: &Settings) -> Result<Vec<Wanted>> {
    let mut ports = vec![(settings.port(), false), (settings.tls_port(), true)];
    ports.retain(|(port, is_tls)| *port > 0 || !is_tls && settings.tls_port() == 0);
    let mut wanted = Vec::new();
    for (ip, optional) in addresses("bind", &settings.bind())? {
        wanted.extend(ports.iter().map(|(port, is_tls)| Wanted {
            address: SocketAddr::new(ip, *port),
            is_tls: *is_tls,
            optional,
        }));
    }
    Ok(wanted)
}

/// The addresses of a setting, and whether each may be missing. As in Redis, `-` before an address means that it may, and
/// `*` stands for all addresses.
pub(crate) fn addresses(setting: &str, text: &str) -> Result<Vec<(IpAddr, bool)>> {
    let parsed = text.split_whitespace().map(|word| {
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
        let ip = address.parse().with_context(|| format!("{setting}: '{address}' is not an IP address"))?;
        Ok((ip, optional))
    });
    parsed.collect()
}

/// A socket that listens there and does not block.
pub(super) fn listen(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
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
    addresses: Mutex<Vec<Listened>, { rank::LISTENERS }>,
    tls: Arc<CurrentTls>,
    changes: mpsc::UnboundedSender<Change>,
}

/// An address that is listened to, and whether with TLS.
type Listened = (SocketAddr, bool);

/// What the listening task is asked for.
pub(crate) enum Change {
    Rebind(Rebind),
    /// The sockets, for another process to go on with.
    Share(std::sync::mpsc::SyncSender<Vec<ListeningSocket>>),
}

/// A change of the addresses: listen to those in `add` and `keep`, and to no others.
pub(crate) struct Rebind {
    keep: Vec<Listened>,
    add: Vec<ListeningSocket>,
    done: std::sync::mpsc::SyncSender<()>,
}

impl Listeners {
    /// Creates the list, with the channel on which [`listen_and_assign`] receives changes.
    pub(crate) fn new(listeners: &[ListeningSocket]) -> (Listeners, mpsc::UnboundedReceiver<Change>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        (Listeners { addresses: Mutex::new(addresses_of(listeners)), tls: Arc::default(), changes }, receiver)
    }

    /// The configuration of TLS that new connections get.
    pub(crate) fn tls(&self) -> Arc<CurrentTls> {
        self.tls.clone()
    }

    /// Reads the configuration of TLS and its files again, if TLS is in use. On an error nothing changes. The result undoes
    /// the change.
    pub(crate) fn follow_tls(&self, settings: &Settings) -> Result<impl FnOnce() + use<>> {
        let before = match settings.tls_port() {
            0 => None,
            _ => Some(self.tls.replace(Some(tls_settings::load(settings)?))),
        };
        let tls = self.tls.clone();
        Ok(move || before.into_iter().for_each(|before| drop(tls.replace(before))))
    }

    /// Listens to the addresses of `bind`, `port` and `tls-port`; to none, as in Redis, when one of them is empty. On an error
    /// nothing changes.
    pub(crate) fn follow(&self, settings: &Settings) -> Result<()> {
        let mut wanted = wanted(settings)?;
        // Port 0 means no listeners.
        wanted.retain(|to| to.address.port() > 0);
        let mut addresses = self.addresses.lock();
        let old = addresses.clone();
        let keep: Vec<Listened> =
            old.iter().copied().filter(|old| wanted.iter().any(|to| to.listened() == *old)).collect();
        let closed: Vec<Listened> = old.iter().copied().filter(|old| !keep.contains(old)).collect();
        let new: Vec<&Wanted> = wanted.iter().filter(|to| !keep.contains(&to.listened())).collect();
        let added = match listen_to(&new) {
            Ok(added) => added,
            // The wildcard address and one address of it cannot both be bound: the old listeners may be in the way.
            Err(_) if overlaps(&new, &closed) => {
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
    pub(crate) fn adopt(&self, mut listeners: Vec<ListeningSocket>, settings: &Settings) -> Result<()> {
        if listeners.iter().any(|listener| listener.is_tls) && self.tls.get().is_none() {
            match tls_settings::load(settings) {
                Ok(context) => drop(self.tls.replace(Some(context))),
                // The other process has ended: what can be served is served.
                Err(error) => {
                    tracing::error!(%error, "the process before this one had a port for TLS, which is closed now");
                    listeners.retain(|listener| !listener.is_tls);
                }
            }
        }
        for (name, is_tls) in [("port", false), ("tls-port", true)] {
            let first = listeners.iter().find(|listener| listener.is_tls == is_tls);
            let port = first.map_or(Ok(0), |listener| listener.socket.local_addr().map(|address| address.port()))?;
            settings.load(name.as_bytes(), port.to_string().as_bytes()).map_err(anyhow::Error::msg)?;
        }
        for listener in &listeners {
            listener.socket.set_nonblocking(true)?;
        }
        *self.addresses.lock() = addresses_of(&listeners);
        self.rebind(Vec::new(), listeners);
        Ok(())
    }

    /// The sockets that are listened on, for another process.
    pub(crate) fn share(&self) -> Vec<ListeningSocket> {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        match self.changes.send(Change::Share(send)) {
            Ok(()) => receive.recv_timeout(CLOSE_WITHIN).unwrap_or_default(),
            Err(_) => Vec::new(),
        }
    }

    /// Listens again to addresses that were closed for a change that failed.
    fn restore(&self, old: &[Listened], kept: &[Listened]) {
        let lost = old.iter().filter(|listened| !kept.contains(listened));
        let again = lost.filter_map(|(address, is_tls)| match listen(*address) {
            Ok(socket) => Some(ListeningSocket { socket, is_tls: *is_tls }),
            Err(error) => {
                tracing::error!(%address, %error, "cannot listen on this address any more");
                None
            }
        });
        let again = again.collect();
        self.rebind(kept.to_vec(), again);
    }

    /// Sends the change to the listening thread, and waits until the old listeners are closed.
    fn rebind(&self, keep: Vec<Listened>, add: Vec<ListeningSocket>) {
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        if self.changes.send(Change::Rebind(Rebind { keep, add, done })).is_ok() {
            let _ = wait.recv_timeout(CLOSE_WITHIN);
        }
    }
}

fn addresses_of(listeners: &[ListeningSocket]) -> Vec<Listened> {
    listeners.iter().filter_map(|listener| Some((listener.socket.local_addr().ok()?, listener.is_tls))).collect()
}

/// Binds a listener for each address, except for optional ones that cannot be bound.
fn listen_to(wanted: &[&Wanted]) -> Result<Vec<ListeningSocket>> {
    let mut listeners = Vec::new();
    for to in wanted {
        match listen(to.address) {
            Ok(socket) => listeners.push(ListeningSocket { socket, is_tls: to.is_tls }),
            Err(_) if to.optional => {}
            Err(error) => {
                tracing::warn!(address = %to.address, %error, "cannot listen on this address");
                return Err(error.into());
            }
        }
    }
    Ok(listeners)
}

fn overlaps(new: &[&Wanted], old: &[Listened]) -> bool {
    let clash = |new: &SocketAddr, old: &SocketAddr| {
        // The same address is only new if it changes between TLS and none.
        new == old || new.port() == old.port() && (new.ip().is_unspecified() || old.ip().is_unspecified())
    };
    new.iter().any(|new| old.iter().any(|(old, _)| clash(&new.address, old)))
}

impl Wanted {
    fn listened(&self) -> Listened {
        (self.address, self.is_tls)
    }
}

/// A listener at work.
struct Listening {
    listened: Listened,
    /// The same socket, to be shared.
    socket: std::net::TcpListener,
    task: JoinHandle<()>,
}

/// Runs the listeners as long as the server runs.
pub(crate) async fn listen_and_assign(
    listeners: Vec<ListeningSocket>,
    tls: Arc<CurrentTls>,
    mut changes: mpsc::UnboundedReceiver<Change>,
    engine: Arc<Engine>,
    team: Arc<Team>,
) {
    let mut tasks: Vec<Listening> = Vec::new();
    let mut add = listeners;
    loop {
        for ListeningSocket { socket: listener, is_tls } in add {
            let Ok(address) = listener.local_addr() else { continue };
            let socket = listener.try_clone();
            match (TcpListener::from_std(listener), socket) {
                (Ok(listener), Ok(socket)) => {
                    let tls = is_tls.then(|| tls.clone());
                    let task = tokio::spawn(accept(listener, tls, engine.clone(), team.clone()));
                    tasks.push(Listening { listened: (address, is_tls), socket, task });
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
                    let shared = tasks.iter().filter_map(|task| {
                        let socket = task.socket.try_clone().ok()?;
                        Some(ListeningSocket { socket, is_tls: task.listened.1 })
                    });
                    let _ = send.send(shared.collect());
                }
                None => return,
            }
        };
        let (kept, closed): (_, Vec<_>) = tasks.into_iter().partition(|task| rebind.keep.contains(&task.listened));
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
async fn accept(listener: TcpListener, tls: Option<Arc<CurrentTls>>, engine: Arc<Engine>, team: Arc<Team>) {
    let mut spare = spare_file();
    loop {
        let error = match listener.accept().await {
            Ok((stream, peer)) => {
                take(stream, peer, tls.as_deref(), &engine, &team);
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
                refuse(&stream, tls.is_some(), &engine, b"-ERR max number of clients reached\r\n");
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

fn take(stream: tokio::net::TcpStream, peer: SocketAddr, tls: Option<&CurrentTls>, engine: &Engine, team: &Team) {
    match stream.into_std() {
        Ok(stream) => welcome(stream, peer, tls, engine, team),
        Err(error) => tracing::warn!(%peer, %error, "could not set up a connection"),
    }
}

/// The reply to clients from other machines while there is no password.
pub(crate) const DENIED: &[u8] = b"-DENIED Holdfast is running in protected mode: it has no password and takes connections from this \
machine only. To connect from elsewhere, set a password (requirepass), or turn protected-mode off if the network is safe.\r\n";

/// Says why a connection is not taken. With TLS nothing is said: there are no keys yet to say it with.
fn refuse(stream: &TcpStream, is_tls: bool, engine: &Engine, why: &[u8]) {
    engine.clients.count_rejected();
    if !is_tls {
        let _ = (&*stream).write_all(why);
    }
}

/// Sets up a connection and assigns it to a worker, unless there are too many.
fn welcome(stream: TcpStream, peer: SocketAddr, tls: Option<&CurrentTls>, engine: &Engine, team: &Team) {
    let settings = &engine.settings;
    if team.connections() as u64 >= settings.maxclients() {
        return refuse(&stream, tls.is_some(), engine, b"-ERR max number of clients reached\r\n");
    }
    if settings.protected_mode() && engine.acl.default_needs_no_password() && !peer.ip().is_loopback() {
        tracing::warn!(%peer, "refused: protected mode is on and there is no password");
        return refuse(&stream, tls.is_some(), engine, DENIED);
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
    match tls.map(CurrentTls::get) {
        None => team.assign(Arrival::New { stream, peer }),
        Some(Some(context)) => team.handshakes.send(NewHandshake { stream, peer, context }),
        // There is a listener only if there is a configuration.
        Some(None) => {}
    }
}
