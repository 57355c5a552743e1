//! Opens the port for operators (`admin-port`) and starts its thread. Knows which addresses are allowed; refuses to know
//! what is asked there.

use super::Beginning;
use crate::network::{self, SidePort, Team, addresses};
use anyhow::{Context, Result, ensure};
use engine::{Engine, Settings};
use std::net::TcpListener;
use std::sync::Arc;

/// The most connections of operators.
pub(super) fn connections_max(settings: &Settings) -> usize {
    match (settings.admin_port(), settings.console()) {
        (0, _) => 0,
        (_, false) => admin::CONNECTIONS_MAX,
        // A page has a connection to this server, of which both ends are here.
        (_, true) => 3 * admin::CONNECTIONS_MAX,
    }
}

/// Starts the thread, if there is a port. The users are known.
pub(super) fn start(engine: &Arc<Engine>, team: &Arc<Team>, beginning: Beginning) -> Result<()> {
    if engine.settings.admin_port() == 0 {
        return Ok(());
    }
    let port = side_port(engine)?;
    let bound = match beginning {
        Beginning::Start => Some(port.bind()?),
        // The process that is being replaced has the port until it ends.
        Beginning::Upgrade => None,
    };
    let console = engine.settings.console().then(|| {
        let opener = (engine.clone(), team.clone());
        let open = move |address, user| network::open_inner(&opener.0, &opener.1, address, user);
        admin::Console::new(engine.clone(), Box::new(open))
    });
    let engine = engine.clone();
    let serve = move || {
        let listeners = bound.unwrap_or_else(|| port.bind_patiently());
        tracing::info!(addresses = %shown(&listeners), console = console.is_some(), "metrics and health are served");
        if let Err(error) = admin::serve(engine, console, listeners) {
            tracing::error!(%error, "metrics and health are not served");
        }
    };
    std::thread::Builder::new().name("admin".into()).spawn(serve).context("cannot start the thread for admin-port")?;
    Ok(())
}

/// The addresses of `admin-bind`. Those that other machines reach need a password, or an explicit setting.
fn side_port(engine: &Engine) -> Result<SidePort> {
    let settings = &engine.settings;
    let all = addresses("admin-bind", &settings.admin_bind())?;
    ensure!(!all.is_empty(), "admin-bind names no address");
    let is_local = all.iter().all(|(ip, _)| ip.to_canonical().is_loopback());
    ensure!(
        is_local || settings.admin_allow_remote() || !engine.acl.default_needs_no_password(),
        "admin-bind {} opens the metrics to other machines, and the default user needs no password: set requirepass, or \
         admin-allow-remote yes to let everyone read them",
        settings.admin_bind()
    );
    ensure!(
        is_local || !settings.console() || settings.console_allow_remote(),
        "admin-bind {} opens the console to other machines, and passwords would be sent without TLS: bind it to 127.0.0.1 \
         behind a proxy with TLS (console-origin), or set console-allow-remote yes if the network is safe",
        settings.admin_bind()
    );
    Ok(SidePort { settings: ("admin-bind", "admin-port"), addresses: all, port: settings.admin_port() })
}

fn shown(listeners: &[TcpListener]) -> String {
    let addresses = listeners.iter().filter_map(|listener| Some(listener.local_addr().ok()?.to_string()));
    addresses.collect::<Vec<_>>().join(" ")
}
