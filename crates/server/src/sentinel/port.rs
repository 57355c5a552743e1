//! Opens the Sentinel port and starts its thread: a runtime of its own, so nothing that comes in there can hold a worker.
//! Refuses to know what is asked there.

use super::connection;
use super::room::{CONNECTIONS_MAX, Room};
use crate::network::{CurrentTls, DENIED, SidePort, Stream, addresses};
use crate::platform::threads;
use anyhow::{Context, Result};
use engine::{Engine, Settings};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::LocalSet;

/// How often it looks whether another server writes, if no client asks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Pause after a connection could not be accepted.
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The most connections of that port.
pub(crate) fn connections_max(settings: &Settings) -> usize {
    if settings.sentinel_port() == 0 { 0 } else { CONNECTIONS_MAX }
}

/// Starts the thread, if there is a port. A process that takes another's place `waits` until that one has left the port.
pub(crate) fn start(engine: &Arc<Engine>, tls: Arc<CurrentTls>, waits: bool) -> Result<()> {
    if engine.settings.sentinel_port() == 0 {
        return Ok(());
    }
    let port = side_port(&engine.settings)?;
    let bound = if waits { None } else { Some(port.bind()?) };
    let engine = engine.clone();
    let serve = move || {
        threads::lower_priority();
        let listeners = bound.unwrap_or_else(|| port.bind_patiently());
        if let Err(error) = run(engine, &tls, listeners) {
            tracing::error!(%error, "the Sentinel port is not served");
        }
    };
    let thread = std::thread::Builder::new().name("sentinel".into()).spawn(serve);
    thread.context("cannot start the thread for sentinel-port")?;
    Ok(())
}

fn side_port(settings: &Settings) -> Result<SidePort> {
    Ok(SidePort {
        settings: ("bind", "sentinel-port"),
        addresses: addresses("bind", &settings.bind())?,
        port: settings.sentinel_port(),
    })
}

fn run(engine: Arc<Engine>, tls: &Arc<CurrentTls>, listeners: Vec<TcpListener>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let room = Rc::new(Room::new(engine));
        for listener in listeners {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::task::spawn_local(accept(room.clone(), tls.clone(), listener));
        }
        loop {
            room.observe();
            tokio::time::sleep(LOOK_EVERY).await;
        }
    })
}

async fn accept(room: Rc<Room>, tls: Arc<CurrentTls>, listener: tokio::net::TcpListener) {
    loop {
        let accepted = listener.accept().await;
        match accepted.and_then(|(socket, peer)| Ok((socket.into_std()?, peer))) {
            Ok((socket, peer)) => welcome(&room, &tls, socket, peer),
            Err(error) => {
                tracing::debug!(%error, "no connection to the Sentinel port could be accepted");
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
            }
        }
    }
}

/// Serves a connection, unless there are too many. As on the port for clients, other machines need a password in protected
/// mode. Connections use TLS if those of clients can only use TLS.
fn welcome(room: &Rc<Room>, tls: &CurrentTls, socket: TcpStream, peer: SocketAddr) {
    let (settings, acl) = (&room.engine.settings, &room.engine.acl);
    let is_tls = settings.port() == 0 && settings.tls_port() > 0;
    let refuse = |mut socket: TcpStream, why: &[u8]| {
        if !is_tls {
            let _ = socket.write_all(why);
        }
    };
    if settings.protected_mode() && acl.default_needs_no_password() && !peer.ip().to_canonical().is_loopback() {
        return refuse(socket, DENIED);
    }
    let Some(entered) = room.enter() else {
        return refuse(socket, b"-ERR max number of clients reached\r\n");
    };
    let (id, place) = (entered.0, entered.1.clone());
    let _ = socket.set_nodelay(true);
    let stream = match (is_tls, tls.get()) {
        (false, _) => Stream::plain(socket),
        (true, Some(context)) => Stream::with_tls(socket, &context),
        (true, None) => return room.leave(id),
    };
    let Ok(stream) = stream else { return room.leave(id) };
    let serve = {
        let room = room.clone();
        async move {
            connection::serve(room.clone(), stream, entered, peer).await;
            room.leave(id);
        }
    };
    place.set_task(tokio::task::spawn_local(serve).abort_handle());
}
